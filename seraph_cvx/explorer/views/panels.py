"""The panels of the page as HTML, in its order: each a function of the state."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from ...numerics.psd_cone import numerical_rank
from ..link import link_of
from ..results import COLUMNS, Result
from ..state import ExplorerState
from ..stepwise_alternation import TOLERANCE, HalfStep
from .curves import draw_course, draw_gaps
from .messages import announce
from .pictures import draw_learned, draw_pairs, draw_plane, draw_regions

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
    scene, half_step = state.scene, state.half_step
    picture = draw_plane(scene, half_step)
    above = [_panel("moves", "", buttons(state)), _panel("status", "", announce(state))]
    below = [
        _panel("results", "Results of all runs", results_table(state.results)),
        _panel("link", "", link_line(state)),
    ]
    if half_step is None:
        return [*above, _panel("plane", "The plane, Euclidean", picture, HINT), *below]
    unit = "unit strip" if numerical_rank(half_step.metric) == 1 else "unit ellipse"
    around = AROUND.format(unit=unit, even=EVEN if state.settings.threshold != 1.0 else "")
    J, paper = draw_course(state.history)
    before, after = state.error_before, state.error_after
    return [
        *above,
        _panel("plane", "The plane: click on it", picture, HINT + around),
        _panel(
            "before",
            f"Before: Euclidean{_error(before)}",
            draw_regions(scene, np.eye(2)),
            REGIONS,
        ),
        _panel(
            "after",
            f"After: under A{_error(after)}",
            draw_regions(scene, half_step.metric),
            "The same plane, its nearest points by the learned metric A.",
        ),
        _panel(
            "learned",
            "As A sees it",
            draw_learned(scene, half_step),
            f"The points A<sup>½</sup>x, and the unit circle: in the plane it is the {unit}.",
        ),
        _panel("gaps", "", draw_gaps(state.history), GAPS),
        _panel("certificate", "Certificate of the current M-step", certificate_table(half_step)),
        _panel("pairs", "Every pair", draw_pairs(scene, half_step), PAIRS),
        _panel("descent", "", J),
        _panel("paper", "", paper),
        *below,
    ]


def buttons(state: ExplorerState) -> str:
    """The HTML of the buttons, one for each move; undo is off where nothing can be undone."""
    off = {} if state.past else {"undo": ' disabled="" title="No point or label was changed."'}
    return "".join(
        f'<button data-move="{move}"{off.get(move, "")}>{label}</button>'
        for move, label in BUTTONS.items()
    )


def results_table(rows: Sequence[Result]) -> str:
    """The HTML table of all runs, the last one first, each with a button that shows it again."""
    if not rows:
        return "<p>Run to the end adds a row here, which stays when the scene changes.</p>"
    head = "".join(f'<th scope="col">{name}</th>' for name in (*COLUMNS, ""))
    body = "".join(
        "<tr>"
        + "".join(f"<td>{escape(text)}</td>" for text in rows[k].cells)
        + f'<td><button data-show="{k}">Show</button></td></tr>'
        for k in reversed(range(len(rows)))
    )
    return (
        f'<div class="scrolled"><table data-value="results"><tr>{head}</tr>{body}</table></div>'
        '<button data-move="clear">Clear the table</button>'
    )


def link_line(state: ExplorerState) -> str:
    """The HTML of the button that copies the link, and of the command that opens the scene."""
    command = f"seraph-cvx explore --scene '{link_of(state)}'"
    return (
        '<button data-copy="link">Copy the link to this scene</button> The address of this page '
        "restores it while the explorer runs, also after a reload; later this command does:"
        f'<pre data-value="link">{escape(command)}</pre>'
    )


def verdict_on(half_step: HalfStep) -> str:
    """Whether A solves the current M-step, by its certificate."""
    if half_step.trouble:
        return "no optimum exists"
    if half_step.certificate.relative_gap <= TOLERANCE:
        return f"certified to {TOLERANCE:g}"
    return "not certified" if half_step.number % 2 else "not optimal"


def certificate_table(half_step: HalfStep) -> str:
    """The HTML table of the certificate, D(p) <= inf f <= f(A), and of the metric A."""
    certificate, objective = half_step.certificate, half_step.objective
    (a, b), (_, d) = half_step.metric.tolist()
    rows = {
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
    cells = "".join(
        f'<tr><th>{escape(name)}</th><td data-value="{key}">{escape(text)}</td></tr>'
        for key, (name, text) in rows.items()
    )
    return f"<table>{cells}</table>"


def _error(error: object) -> str:
    return "" if error is None else f", error {error}"


def _panel(name: str, title: str, content: str, caption: str = "") -> dict[str, str]:
    return {"name": name, "title": title, "content": content, "caption": caption}
