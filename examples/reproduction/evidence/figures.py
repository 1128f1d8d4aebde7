"""Figures 1 and 2: what the posterior and the projection sparsity do to two artificial sets.

The paper describes its sets but does not give them. Ours both have two classes side by side, each
with two labeled points that lie apart horizontally and level vertically, the classes at different
heights: six weak labels which favor the vertical feature, though the horizontal one has the gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from seraph_cvx import MStepObjective, PairSet, solve_m_step
from seraph_cvx.datasets import Sampling
from seraph_cvx.display.result_table import ResultTable

from .methods import learn_baseline, stop_early
from .results import text_files
from .tasks import UNKNOWN, classify, nearest_neighbor_error

POSTERIOR_FACTOR = 10.0
"""The weight mu of Figure 1, in units of #(S u D)/#U."""

PROJECTION_WEIGHT = 300.0
"""The weight lambda of Figure 2."""


class TwoBoxes(NamedTuple):
    """Boxes at -center and +center, and where the labeled points are: left, right, above, below."""

    center: float
    half_width: float
    half_height: float
    label_offset: float
    label_height: float


LAYOUTS = {1: TwoBoxes(0.5, 0.2, 0.6, 0.2, 0.4), 2: TwoBoxes(5.0, 3.0, 10.0, 3.0, 1.5)}
"""The layouts of Figures 1 and 2. At the second one's scale lambda = 300 leaves one direction."""


@dataclass(frozen=True, eq=False)
class LearnedPanel:
    """A row of a figure: a metric A, the points A^(1/2) x, their predicted classes, the error."""

    title: str
    metric: Any
    projected: Any
    predicted: Any
    error: float


def artificial_set(figure: int, n_each: int = 50, seed: int = 0) -> Sampling:
    """Draw the points of Figure 1 or 2: four labeled ones, then `n_each` of each class."""
    if figure not in LAYOUTS:
        raise ValueError(f"figure={figure}: the artificial sets are those of Figures 1 and 2.")
    box = LAYOUTS[figure]
    rng = np.random.default_rng(seed)
    classes = np.repeat([0, 1], n_each)
    half = np.array([box.half_width, box.half_height])
    points = rng.uniform(-half, half, size=(2 * n_each, 2))
    points[:, 0] += np.where(classes == 0, -1.0, 1.0) * box.center
    side, move = np.array([-1.0, -1.0, 1.0, 1.0]), np.array([-1.0, 1.0, -1.0, 1.0])
    across = side * box.center + move * box.label_offset
    labeled = np.column_stack([across, -side * box.label_height])
    y = np.concatenate([[0, 0, 1, 1], np.full(2 * n_each, UNKNOWN)])
    return Sampling(f"figure {figure}", np.vstack([labeled, points]), y, points, classes)


def learn_panels(figure: int, sampling: Sampling | None = None) -> list[LearnedPanel]:
    """Learn the rows of Figure 1 or 2: Euclidean distance, GDM, SERAPH of one kind of sparsity.

    Figure 1: mu = 10 #(S u D)/#U, lambda = 0, early-stopped gradient projection, for (7) has no
    optimum without a trace weight. Figure 2: mu = 0, lambda = 300, the certified optimum of (11).
    """
    sampling = artificial_set(figure) if sampling is None else sampling
    gdm = learn_baseline("GDM", sampling.X, sampling.y)
    pairs = PairSet.from_labels(sampling.X, sampling.y)
    if figure == 1:
        mu = POSTERIOR_FACTOR * pairs.resolve_unlabeled_weight("ratio")
        learned, word = stop_early(pairs, mu, 0.0).metric, "posterior"
    else:
        weights = {"unlabeled_weight": 0.0, "trace_weight": PROJECTION_WEIGHT}
        solution = solve_m_step(MStepObjective(pairs, **weights))
        learned, word = solution.metric, "projection"
        if learned is None:
            raise RuntimeError(f"The M-step of Figure 2 failed: {solution.message}")
    return [
        _panel("Euclidean distance", np.eye(2), sampling),
        _panel("GDM", gdm.T @ gdm, sampling),
        _panel(f"SERAPH, {word} sparsity", learned, sampling),
    ]


def _panel(title, metric, sampling):
    eigenvalues, vectors = np.linalg.eigh(metric)
    root = (vectors * np.sqrt(np.maximum(eigenvalues, 0.0))) @ vectors.T
    predicted, error = classify(sampling, root, sampling.X), nearest_neighbor_error(sampling, root)
    return LearnedPanel(title, metric, sampling.X @ root, predicted, error)


def figure_files(figure: int, sampling: Sampling, panels: Sequence[LearnedPanel]) -> dict[str, str]:
    """The files of the numbers in Figure 1 or 2.

    Of each point: class, position, and of each metric the projection and the predicted class.
    """
    columns = {
        "class": np.concatenate([sampling.y[sampling.labeled], sampling.y_test]),
        "labeled": sampling.labeled.astype(int),
        **dict(zip("xy", sampling.X.T, strict=True)),
    }
    for panel in panels:
        across, up = panel.projected.T
        columns |= {f"{panel.title}: x": across, f"{panel.title}: y": up}
        columns[f"{panel.title}: predicted"] = panel.predicted
    points = pd.DataFrame(columns).to_dict("records")
    return text_files(f"figure{figure}", [panels_table(figure, panels)], points)


def panels_table(figure: int, panels: Sequence[LearnedPanel]) -> ResultTable:
    """Tabulate Figure 1 or 2: error, metric of trace 1, its ratio of eigenvalues."""
    rows = []
    for panel in panels:
        A = panel.metric / np.trace(panel.metric)
        eigenvalues = np.linalg.eigvalsh(A)
        rows.append(
            {
                "metric": panel.title,
                "wrong in %": panel.error,
                "horizontal": f"{A[0, 0]:.3f}",
                "vertical": f"{A[1, 1]:.3f}",
                "mixed": f"{A[0, 1]:.3f}",
                "smaller / larger eigenvalue": f"{max(eigenvalues[0], 0.0) / eigenvalues[1]:.2g}",
            }
        )
    notes = [
        f"![The points, what each metric makes of them, and the classes by it](figure{figure}.png)",
        "The table has the entries of each metric, scaled to trace 1; GDM is the paper's rival.",
    ]
    return ResultTable(f"Figure {figure}: three metrics on two bands of points", rows, notes)
