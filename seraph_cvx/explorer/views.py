"""What the page shows, as functions of its state: controls, messages, panels, tabs, Python code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from ..display.formulas import (
    CERTIFICATE,
    DESCENT,
    E_STEP,
    M_STEP_ONE_TERM,
    OBJECTIVE_MINIMIZED,
    PROBABILITY,
    typeset,
)
from ..display.mathml import to_mathml
from ..display.symbols import prose
from ..numerics.psd_cone import numerical_rank
from ..solvers.solution import MStepSolution
from .alternation import (
    SOLVERS,
    TOLERANCE,
    HalfStep,
    ask_solver,
    gaps_by_iteration,
    has_converged,
)
from .pictures import (
    draw_course,
    draw_gaps,
    draw_learned,
    draw_pairs,
    draw_plane,
    draw_regions,
    draw_solver_gaps,
    html,
)
from .scene import DRAWN, MOST_POINTS, SCENES
from .state import SEEDS, SLIDERS, ExplorerState, link_of

if TYPE_CHECKING:
    from ..m_step.explain import ConvexityProof

TABS = ("Formulas", "Statement", "Solvers", "Python")


def view_of(state: ExplorerState) -> dict[str, Any]:
    """Everything that follows from the state, in one message to the browser."""
    return {
        "controls": controls_of(state),
        "panels": panels_of(state),
        "link": link_of(state),
        "heard": state.heard,
        "tabs": TABS,
        "solvers": SOLVERS,
    }


# The controls above the pictures

DATA_NOTE = "100 points, four labels per class; the classes of the others only judge the metric."
SEED_NOTE = "Another random draw of the same data: does the result depend on it?"
PAPER_NOTE = "The sharpness that the paper uses; without it, the slider beside sets a."


def controls_of(state: ExplorerState) -> list[dict[str, Any]]:
    """List the controls in the order of the page.

    Each has a name, kind ("select", "range" or "check"), label, note, value, text, off (the reason
    why it does nothing, or an empty string) and options, the texts that it can show.
    """
    settings, half_step = state.settings, state.half_step

    def control(name: str, kind: str, label: str, note: str, **more: Any) -> dict[str, Any]:
        plain = {"name": name, "kind": kind, "label": label, "note": note, "text": ""}
        return plain | {"options": [], **more, "off": state.why_off(name)}

    def slider(name: str, label: str, note: str, stops: Sequence[float], value: float) -> Any:
        options, at = [f"{stop:g}" for stop in stops], stops.index(value)
        text = options[at]
        if name == "weight_factor" and half_step is not None:
            text += f" → {half_step.objective.mu:.3g}"
        return control(name, "range", label, note, value=at, text=text, options=options)

    is_paper = settings.paper_sharpness
    on = {"value": is_paper, "text": "on" if is_paper else "off"}
    *sliders, sharpness = (slider(k, *SLIDERS[k], getattr(settings, k)) for k in SLIDERS)
    return [
        control("source", "select", "data", DATA_NOTE, value=state.source, options=SCENES),
        slider("seed", "draw (seed)", SEED_NOTE, SEEDS, state.seed),
        *sliders,
        control("paper_sharpness", "check", "paper: a = 1 + μ", PAPER_NOTE, **on),
        sharpness,
    ]


# What the page says: where the alternation stands, what is wrong, what to try next

AFTERWARDS = {
    "stripes": "press Reset, then Step ▶, and watch the metric find the direction across the "
    "stripes; or move λ to 70 and run: the metric shrinks, and turns the wrong way",
    "Gaussians": "move μ to 0, so that only the labels count, and run: do the errors in the table "
    "differ?",
    "two moons": "compare with the stripes: a linear metric cannot unroll the moons, and the best "
    "one looks along a single direction; certified is not the same as useful",
    "rings": "move the seed and run: no linear metric separates rings, and the certificate never "
    "said so; it is about f, not about the error",
    "iris (2 components)": "move the seed and run: with twelve labels the gain depends on the draw",
    "wine (2 components)": "move η to 5 and run: the metric grows; does the error follow?",
    DRAWN: "add a point of each class far away, run, and see whether the metric turns",
}
"""What to try when a run has come to its end, by the name of the scene."""


def position_of(state: ExplorerState) -> str:
    """The counter as text: the half-steps done, and the name of the last."""
    half_step = state.half_step
    return (
        "no alternation" if half_step is None else f"half-step {half_step.number}: {half_step.name}"
    )


def next_to_try(state: ExplorerState) -> str:
    """A sentence that says what to try next."""
    if state.half_step is None:
        what = "add points and label two or more of them, or press Undo"
    elif messages_on(state):
        what = "do as the message says, or press Undo or Restore the data"
    elif state.position == 0:
        what = (
            "press Step ▶. The first M-step counts every unlabeled pair as dissimilar, and its gap "
            "closes"
        )
    elif has_come_to_rest(state):
        what = AFTERWARDS[state.source]
    elif state.half_step.number % 2:
        what = (
            "press Step ▶. The E-step guesses the labels of the unlabeled pairs anew, from this "
            "metric: the gap opens, for the problem is another one"
        )
    else:
        what = "press Step ▶. The M-step closes the gap again; or press Run to the end"
    return f"Try next: {what.removesuffix('?')}{'?' if what.endswith('?') else '.'}"


def has_come_to_rest(state: ExplorerState) -> bool:
    """Whether the last M-step lowered J so little that the alternation is at its end."""
    history = state.history
    if len(history) < 3 or history[-1].number % 2 == 0:
        return False
    return has_converged(history[-2].descent_value, history[-1].descent_value)


def messages_on(state: ExplorerState) -> list[str]:
    """Messages on what is wrong or worth knowing, with the remedy."""
    half_step = state.half_step
    messages = [text for text in (state.message, state.trouble) if text]
    if len(state.scene.points) >= MOST_POINTS:
        messages.append(f"The plane is full: it takes no more than {MOST_POINTS} points.")
    if half_step is None:
        return messages
    if len({label for label in state.scene.labels if label >= 0}) == 1:
        messages.append(
            "Only one class is known, so no labeled pair is to be kept apart: label points of "
            "another class."
        )
    if not np.ptp(state.scene.X, axis=0).any():
        messages.append("All points are equal: every distance is 0 under every metric. Add others.")
    elif not half_step.metric.any():
        critical = half_step.objective.critical_trace_weight
        messages.append(f"The metric is 0, for λ is not below {critical:.4g}: move it to the left.")
    return messages


# The panels

HINT = (
    "Click a point: unknown → 0 → 1 → 2 → unknown. Click elsewhere: a new point. Shift-click: "
    "remove. Keys: arrows, Enter, Delete, Ctrl+Z. "
)
AROUND = "Around the ringed point: the {unit} v'Av = 1{even}, and p(+1) with it as a shade."
EVEN = ", dashed v'Av = η where p(+1) = ½"
REGIONS = (
    "The shade is the class of the nearest labeled point (1-NN), a dot has its true class, which "
    "nothing here learns from, a cross is a dot in the wrong shade."
)
PAIRS = (
    "Row i, column j: a pair of points, both sorted by the first principal coordinate of "
    "A<sup>½</sup>x; the bars mark those with a label. Above the diagonal: p(+1), the deeper the "
    "nearer to 1. Below: the label 0 or 1, or q(+1), in the current M-step."
)
UNDER_A = "The same plane, its nearest points by the learned metric A."
GAPS = (
    "Relative to max(1, |f|). The M-step closes the gap. The E-step changes f, and the old metric "
    "is no longer optimal: the less it opens the gap, the nearer the alternation is to its end."
)

BUTTONS = {
    "reset": "Reset",
    "back": "◀ Back",
    "forward": "Step ▶",
    "run": "Run to the end",
    "undo": "Undo",
    "forget": "Forget the labels",
    "restore": "Restore the data",
}
"""The moves of :data:`seraph_cvx.explorer.state.MOVES` in words."""


def panels_of(state: ExplorerState) -> list[dict[str, str]]:
    """List the name, title, content and caption of each panel, in the order of the page."""
    scene, half_step, past = state.scene, state.half_step, state.past
    before, after = state.error_before, state.error_after
    progress = position_of(state), before, after, messages_on(state), next_to_try(state)
    picture = draw_plane(scene, half_step)
    above = [
        ("moves", "", html().buttons(BUTTONS, bool(past)), ""),
        ("status", "", html().status(*progress), ""),
    ]
    below = [
        ("results", "Results of all runs", html().results(state.results), ""),
        ("link", "", html().link(link_of(state)), ""),
    ]
    shown = [("plane", "The plane, Euclidean", picture, HINT)]
    if half_step is not None:
        metric, history = half_step.metric, state.history
        unit = "unit strip" if numerical_rank(metric) == 1 else "unit ellipse"
        around = AROUND.format(unit=unit, even=EVEN if state.settings.threshold != 1.0 else "")
        learned = f"The points A<sup>½</sup>x, and the unit circle: in the plane it is the {unit}."
        errors = ["" if error is None else f", error {error}" for error in (before, after)]
        table = html().certificate(certificate_rows(half_step))
        J, paper = draw_course(history)
        shown = [
            ("plane", "The plane: click on it", picture, HINT + around),
            ("before", f"Before: Euclidean{errors[0]}", draw_regions(scene, np.eye(2)), REGIONS),
            ("after", f"After: under A{errors[1]}", draw_regions(scene, metric), UNDER_A),
            ("learned", "As A sees it", draw_learned(scene, half_step), learned),
            ("gaps", "", draw_gaps(history), GAPS),
            ("certificate", "Certificate of the current M-step", table, ""),
            ("pairs", "Every pair", draw_pairs(scene, half_step), PAIRS),
            ("descent", "", J, ""),
            ("paper", "", paper, ""),
        ]
    keys = "name", "title", "content", "caption"
    return [dict(zip(keys, panel, strict=True)) for panel in (*above, *shown, *below)]


def verdict_on(half_step: HalfStep) -> str:
    """Whether A solves the current M-step, by its certificate."""
    if half_step.trouble:
        return "no optimum exists"
    if half_step.certificate.relative_gap <= TOLERANCE:
        return f"certified to {TOLERANCE:g}"
    return "not certified" if half_step.number % 2 else "not optimal"


def certificate_rows(half_step: HalfStep) -> dict[str, tuple[str, str]]:
    """The certificate, D(p) <= inf f <= f(A), and the metric A: a name and a text by key."""
    certificate, objective = half_step.certificate, half_step.objective
    (a, b), (_, d) = half_step.metric.tolist()
    return {
        "primal": ("f(A), primal", f"{certificate.primal_value:.10g}"),
        "dual": ("D(p), dual bound", f"{certificate.dual_value:.10g}"),
        "gap": ("relative gap", f"{certificate.relative_gap:.2e}"),
        "verdict": ("verdict", verdict_on(half_step)),
        "descent": ("J(q, A)", f"{half_step.descent_value:.10g}"),
        "paper": ("-ℒ(A), of (7)", f"{half_step.paper_objective:.10g}"),
        "metric": ("A", f"{a:.3f}, {b:.3f}; {b:.3f}, {d:.3f}"),
        "rank": ("rank, trace of A", f"{numerical_rank(half_step.metric)}, {a + d:.4g}"),
        "weight": ("μ", f"{objective.mu:.4g}"),
        "sharpness": ("sharpness a", f"{objective.soft_labeling.sharpness:.4g}"),
    }


# The tabs below the pictures

FORMULAS = (PROBABILITY, M_STEP_ONE_TERM, E_STEP, DESCENT, OBJECTIVE_MINIMIZED, CERTIFICATE)
ASK = (
    "The page itself uses FISTA. Ask another solver to solve the current M-step: a certificate "
    "grades it. On 100 points CLARABEL takes about a second, SCS several."
)
ROLES = ("objective ", "constraint ")
"""How a proof begins the name of a part of the problem."""


def sheet(state: ExplorerState, name: str, solver: str | None = None) -> str:
    """The content of a tab: HTML, for "Python" plain text; by default no solver is run."""
    half_step = state.half_step
    if name == "Python":
        return python_of(state)
    if name == "Formulas":
        return str(html().formulas([(shown, prose(shown.where)) for shown in FORMULAS]))
    if half_step is None:
        return str(html().paragraph(state.trouble))
    if name == "Statement":
        return statement_sheet(half_step)
    if solver is None:
        return str(html().paragraph(ASK))
    if half_step.trouble:
        return str(html().paragraph(half_step.trouble))
    names = list(dict.fromkeys(("fista", solver)))
    answers = [ask_solver(half_step, name) for name in names]
    gaps = {name: gaps_by_iteration(half_step, name) for name in names}
    chart = draw_solver_gaps({name: course for name, course in gaps.items() if course})
    return answer_sheet(answers, chart)


def answer_sheet(answers: Sequence[MStepSolution], chart: str) -> str:
    """What each solver claims, what its answer is worth, and how its gap closed."""
    rows = [
        {
            "solver": answer.solver,
            "it says": answer.solver_status,
            "f(A)": f"{answer.value:.10g}",
            "relative gap, proved": f"{answer.relative_gap:.1e}",
            "referee": answer.status.value,
            "iterations": answer.iterations,
            "seconds": f"{answer.seconds:.3f}",
            "‖A - A of fista‖": _distance(answer, answers[0]),
        }
        for answer in answers
    ]
    messages = [f"{answer.solver}: {answer.message}" for answer in answers if answer.message]
    return str(html().answers(rows, messages, chart))


def _distance(answer: MStepSolution, reference: MStepSolution) -> str:
    if answer.metric is None or reference.metric is None:
        return "no answer"
    return f"{np.linalg.norm(answer.metric - reference.metric):.1e}"


def statement_sheet(half_step: HalfStep) -> str:
    """The current M-step (11), the numbers in it, and the DCP proof that it is convex."""
    from ..m_step.explain import explain_convexity
    from ..m_step.statement import state_m_step

    objective, pairs = half_step.objective, half_step.objective.pairs
    (a, b), (_, d) = objective.label_matrix.tolist()
    values = {
        r"\# \mathcal{S}": f"{pairs.n_similar}",
        r"\# \mathcal{D}": f"{pairs.n_labeled - pairs.n_similar}",
        r"\# \mathcal{U}": f"{pairs.n_unlabeled}",
        r"\mu": f"{objective.mu:.4g}",
        r"\lambda": f"{objective.trace_weight:g}",
        r"\eta": f"{objective.threshold:g}",
        r"\beta": f"{objective.label_total:.4g}",
        "G": f"({a:.4g}, {b:.4g}; {b:.4g}, {d:.4g})",
    }
    numbers = [(to_mathml(name, inline=True), text) for name, text in values.items()]
    proof = _proof_item(explain_convexity(state_m_step(objective)), set())
    explanation = prose(M_STEP_ONE_TERM.where)
    return str(html().statement(M_STEP_ONE_TERM, explanation, numbers, proof))


def _proof_item(node: ConvexityProof, shown: set[str]) -> str:
    """A node of the proof and those below it; what is below an expression is shown once."""
    role = next((role for role in ROLES if node.expression.startswith(role)), "")
    below = ""
    if node.children and node.expression in shown:
        below = ", as above"
    elif node.children:
        shown.add(node.expression)
        below = f"<ul>{''.join(_proof_item(child, shown) for child in node.children)}</ul>"
    formula = typeset(node.expression.removeprefix(role))
    rule = f"<b>{escape(node.curvature.lower())}</b> ({escape(node.rule)})"
    return f"<li>{role}{formula}: {rule}{below}</li>"


# The Python code that reproduces a state of the page


def python_of(state: ExplorerState) -> str:
    """Write Python code that makes the M-steps (11) and E-steps (10) of the page.

    Its `metric`, `objective` and `certificate` equal those of the page to the last digit.
    """
    half_step = state.half_step
    if half_step is None:
        return f"# {state.trouble}\n"
    settings, number = state.settings, half_step.number
    steps = "metric, objective = np.eye(2), program(None)"
    if number:
        steps = f"""\
metric = None
for _ in range({(number + 1) // 2}):
    objective = program(metric)  # the E-step
    metric = solve_m_step(objective, start=metric).metric"""
        steps += "" if number % 2 else "\nobjective = program(metric)  # the last E-step"
    return f'''\
"""SERAPH on {len(state.scene.points)} points in the plane: {half_step.name}."""

import numpy as np

from seraph_cvx import MStepObjective, PairSet, certify, solve_m_step

X = np.array([
{_rows((f"[{a!r}, {b!r}]" for a, b in state.scene.points), 4)}
])
y = np.array([  # -1: unknown
{_rows(map(str, state.scene.labels), 25)}
])
pairs = PairSet.from_labels(X, y)
mu = {settings.weight_factor!r} * pairs.resolve_unlabeled_weight("ratio")


def program(metric):
    """The M-step (11) with the soft labels (10) of `metric`; None: q(-1) = 1."""
    return MStepObjective(
        pairs, previous_metric=metric, unlabeled_weight=mu,
        trace_weight={settings.trace_weight!r}, threshold={settings.threshold!r},
        sharpness={settings.sharpness!r},
    )


{steps}
certificate = certify(objective, metric)
print("metric", metric.tolist())
print("relative gap", certificate.relative_gap)
'''


def _rows(items: Iterable[str], per_line: int) -> str:
    """Lines of so many items each."""
    texts = list(items)
    starts = range(0, len(texts), per_line)
    return "\n".join(f"    {', '.join(texts[k : k + per_line])}," for k in starts)
