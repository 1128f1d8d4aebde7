"""The panels of the page as HTML, and its messages: each a function of the state."""

from __future__ import annotations

from html import escape

import numpy as np

from ..numerics.psd_cone import numerical_rank
from .pictures import draw_course, draw_learned, draw_pairs, draw_plane
from .scene import MOST_POINTS
from .state import ExplorerState
from .stepwise_alternation import TOLERANCE, HalfStep

HINT = (
    "Click a point: unknown → 0 → 1 → 2 → unknown. Click elsewhere: a new point. Shift-click: "
    "remove. Keys: arrows, Enter, Delete. "
)
AROUND = "Around the ringed point: the {unit} v'Av = 1{even}, and p(+1) with it as a shade."
EVEN = ", dashed v'Av = η where p(+1) = ½"


BUTTONS = {
    "reset": "Reset",
    "back": "◀ Back",
    "forward": "Step ▶",
    "run": "Run to the end",
    "forget": "Forget the labels",
    "restore": "Restore the data",
}
"""The moves of :data:`seraph_cvx.explorer.state.MOVES` in words."""


def panels_of(state: ExplorerState) -> list[dict[str, str]]:
    """List the name, title, content and caption of each panel, in the order of the page.

    Examples
    --------
    >>> [panel["name"] for panel in panels_of(ExplorerState())]
    ['moves', 'status', 'plane', 'learned', 'pairs', 'certificate', 'descent', 'paper']
    """
    scene, half_step = state.scene, state.half_step
    picture = draw_plane(scene, half_step)
    above = [_panel("moves", "", buttons()), _panel("status", "", announce(state))]
    if half_step is None:
        return [*above, _panel("plane", "The plane, Euclidean", picture, HINT)]
    unit = "unit strip" if numerical_rank(half_step.metric) == 1 else "unit ellipse"
    around = AROUND.format(unit=unit, even=EVEN if state.settings.threshold != 1.0 else "")
    J, paper = draw_course(state.history)
    return [
        *above,
        _panel("plane", "The plane, Euclidean", picture, HINT + around),
        _panel(
            "learned",
            "Under the metric A",
            draw_learned(scene, half_step),
            f"The points A<sup>½</sup>x, and the unit circle: in the plane it is the {unit}.",
        ),
        _panel(
            "pairs",
            "Every pair",
            draw_pairs(scene, half_step),
            "Above the diagonal: p(+1), the deeper the nearer to 1. Below: the labels and q(+1) in "
            "the current M-step.",
        ),
        _panel("certificate", "Certificate of the current M-step", certificate_table(half_step)),
        _panel("descent", "", J),
        _panel("paper", "", paper),
    ]


def buttons() -> str:
    """The HTML of the buttons, one for each move.

    Examples
    --------
    >>> buttons().count("<button")
    6
    """
    return "".join(
        f'<button data-move="{move}">{label}</button>' for move, label in BUTTONS.items()
    )


def announce(state: ExplorerState) -> str:
    """The HTML of the half-step counter and of the messages below it.

    Examples
    --------
    >>> announce(ExplorerState())
    '<b data-value="position">half-step 0: start</b>'
    """
    words = "".join(f'<p data-value="words">{escape(text)}</p>' for text in words_on(state))
    return f'<b data-value="position">{escape(position_of(state))}</b>{words}'


def position_of(state: ExplorerState) -> str:
    """The counter as text: the half-steps done, and the name of the last.

    Examples
    --------
    >>> position_of(ExplorerState().forward().forward())
    'half-step 2: E-step 1'
    """
    half_step = state.half_step
    return (
        "no alternation" if half_step is None else f"half-step {half_step.number}: {half_step.name}"
    )


def words_on(state: ExplorerState) -> list[str]:
    """Messages on what is wrong or worth knowing, with the remedy.

    Examples
    --------
    >>> state = ExplorerState()
    >>> words_on(state), words_on(state.forget_labels())[0][:20]
    ([], 'No point has a label')
    """
    half_step, words = state.half_step, [state.trouble] if state.trouble else []
    if len(state.scene.points) >= MOST_POINTS:
        words.append(f"The plane is full: it takes no more than {MOST_POINTS} points.")
    if half_step is None:
        return words
    if len({label for label in state.scene.labels if label >= 0}) == 1:
        words.append(
            "Only one class is known, so no labeled pair is to be kept apart: label points of "
            "another class."
        )
    if not np.ptp(state.scene.X, axis=0).any():
        words.append("All points are equal: every distance is 0 under every metric. Add others.")
    elif not half_step.metric.any():
        critical = half_step.objective.critical_trace_weight
        words.append(f"The metric is 0, for λ is not below {critical:.4g}: move it to the left.")
    return words


def verdict_on(half_step: HalfStep) -> str:
    """Whether A solves the current M-step, by its certificate.

    Examples
    --------
    >>> verdict_on(ExplorerState().half_step), verdict_on(ExplorerState().forward().half_step)
    ('not optimal', 'certified to 1e-08')
    """
    if half_step.trouble:
        return "no optimum exists"
    if half_step.certificate.relative_gap <= TOLERANCE:
        return f"certified to {TOLERANCE:g}"
    return "not certified" if half_step.number % 2 else "not optimal"


def certificate_table(half_step: HalfStep) -> str:
    """The HTML table of the certificate, D(p) <= inf f <= f(A), and of the metric A.

    Examples
    --------
    >>> certificate_table(ExplorerState().forward().half_step).count("<tr>")
    10
    """
    certificate, objective = half_step.certificate, half_step.objective
    (a, b), (_, d) = half_step.metric.tolist()
    rows = {
        "primal": ("f(A), primal", f"{certificate.primal_value:.10g}"),
        "dual": ("D(p), dual", f"{certificate.dual_value:.10g}"),
        "gap": ("relative gap", f"{certificate.relative_gap:.2e}"),
        "verdict": ("verdict", verdict_on(half_step)),
        "descent": ("J(q, A)", f"{half_step.descent_value:.10g}"),
        "paper": ("(7)", f"{half_step.paper_objective:.10g}"),
        "metric": ("A", f"{a:.3f}, {b:.3f}; {b:.3f}, {d:.3f}"),
        "rank": ("rank, trace", f"{numerical_rank(half_step.metric)}, {a + d:.4g}"),
        "weight": ("μ", f"{objective.mu:.4g}"),
        "sharpness": ("sharpness", f"{objective.soft_labeling.sharpness:.4g}"),
    }
    cells = "".join(
        f'<tr><th>{escape(name)}</th><td data-value="{key}">{escape(text)}</td></tr>'
        for key, (name, text) in rows.items()
    )
    return f"<table>{cells}</table>"


def _panel(name: str, title: str, content: str, caption: str = "") -> dict[str, str]:
    return {"name": name, "title": title, "content": content, "caption": caption}
