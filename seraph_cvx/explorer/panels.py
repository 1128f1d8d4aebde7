"""The panels of the page as HTML, and its words: each a function of the state alone."""

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
    """Name, title, content and caption of each panel, in the order of the page.

    Examples
    --------
    >>> [panel["name"] for panel in panels_of(ExplorerState())]
    ['moves', 'place', 'plane', 'learned', 'pairs', 'certificate', 'descent', 'paper']
    """
    scene, moment = state.scene, state.moment
    picture = draw_plane(scene, moment)
    above = [_panel("moves", "", buttons()), _panel("place", "", announce(state))]
    if moment is None:
        return [*above, _panel("plane", "The plane, Euclidean", picture, HINT)]
    unit = "unit strip" if numerical_rank(moment.metric) == 1 else "unit ellipse"
    around = AROUND.format(unit=unit, even=EVEN if state.settings.threshold != 1.0 else "")
    J, paper = draw_course(state.history)
    return [
        *above,
        _panel("plane", "The plane, Euclidean", picture, HINT + around),
        _panel(
            "learned",
            "Under the metric A",
            draw_learned(scene, moment),
            f"The points A<sup>½</sup>x, and the unit circle: in the plane it is the {unit}.",
        ),
        _panel(
            "pairs",
            "Every pair",
            draw_pairs(scene, moment),
            "Above the diagonal: p(+1), the deeper the nearer to 1. Below: what the M-step at hand "
            "is told, the labels and q(+1).",
        ),
        _panel("certificate", "Certificate of the M-step at hand", certificate_table(moment)),
        _panel("descent", "", J),
        _panel("paper", "", paper),
    ]


def buttons() -> str:
    """One button a move.

    Examples
    --------
    >>> buttons().count("<button")
    6
    """
    return "".join(
        f'<button data-move="{move}">{label}</button>' for move, label in BUTTONS.items()
    )


def announce(state: ExplorerState) -> str:
    """The counter, and what is to be said.

    Examples
    --------
    >>> announce(ExplorerState())
    '<b data-value="position">half-step 0: start</b>'
    """
    words = "".join(f'<p data-value="words">{escape(text)}</p>' for text in words_on(state))
    return f'<b data-value="position">{escape(position_of(state))}</b>{words}'


def position_of(state: ExplorerState) -> str:
    """The counter: half-steps done, and the name of the last.

    Examples
    --------
    >>> position_of(ExplorerState().forward().forward())
    'half-step 2: E-step 1'
    """
    moment = state.moment
    return "no alternation" if moment is None else f"half-step {moment.number}: {moment.name}"


def words_on(state: ExplorerState) -> list[str]:
    """What is wrong or worth a word, with the cure; nothing where all is well.

    Examples
    --------
    >>> state = ExplorerState()
    >>> words_on(state), words_on(state.forget_labels())[0][:20]
    ([], 'No point has a label')
    """
    moment, words = state.moment, [state.trouble] if state.trouble else []
    if len(state.scene.points) >= MOST_POINTS:
        words.append(f"The plane is full: it takes no more than {MOST_POINTS} points.")
    if moment is None:
        return words
    if len({label for label in state.scene.labels if label >= 0}) == 1:
        words.append(
            "Only one class is known, so no labeled pair is to be kept apart: label points of "
            "another class."
        )
    if not np.ptp(state.scene.X, axis=0).any():
        words.append("All points are equal: every distance is 0 under every metric. Add others.")
    elif not moment.metric.any():
        critical = moment.objective.critical_trace_weight
        words.append(f"The metric is 0, for λ is not below {critical:.4g}: move it to the left.")
    return words


def verdict_on(moment: HalfStep) -> str:
    """The referee's word on A for the M-step at hand.

    Examples
    --------
    >>> verdict_on(ExplorerState().moment), verdict_on(ExplorerState().forward().moment)
    ('not optimal', 'certified to 1e-08')
    """
    if moment.trouble:
        return "no optimum exists"
    if moment.certificate.relative_gap <= TOLERANCE:
        return f"certified to {TOLERANCE:g}"
    return "not certified" if moment.number % 2 else "not optimal"


def certificate_table(moment: HalfStep) -> str:
    """D(p) <= inf f <= f(A): both bounds, the gap, the verdict; and what else is of A.

    Examples
    --------
    >>> certificate_table(ExplorerState().forward().moment).count("<tr>")
    10
    """
    certificate, objective = moment.certificate, moment.objective
    (a, b), (_, d) = moment.metric.tolist()
    rows = {
        "primal": ("f(A), primal", f"{certificate.primal_value:.10g}"),
        "dual": ("D(p), dual", f"{certificate.dual_value:.10g}"),
        "gap": ("relative gap", f"{certificate.relative_gap:.2e}"),
        "verdict": ("verdict", verdict_on(moment)),
        "descent": ("J(q, A)", f"{moment.descent_value:.10g}"),
        "paper": ("(7)", f"{moment.paper_objective:.10g}"),
        "metric": ("A", f"{a:.3f}, {b:.3f}; {b:.3f}, {d:.3f}"),
        "rank": ("rank, trace", f"{numerical_rank(moment.metric)}, {a + d:.4g}"),
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
