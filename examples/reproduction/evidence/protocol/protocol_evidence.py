"""What Tables 1 and 2 reveal of the protocol, which the paper does not spell out.

The printed sizes of S and D are means over the paper's samplings, so they tell the ways of drawing
labels apart; the Euclidean row of Table 2 needs no learning, so it tells the scalings apart.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seraph_cvx.display.result_table import ResultTable

from .printed_table2 import PRINTED
from .samplings import (
    SCALINGS,
    VARIANTS,
    draw_labeled,
    draw_sampling,
    load_task,
    nearest_neighbor_error,
)
from .tasks import Task

PAPER_SAMPLINGS = 50
"""The number of samplings behind the paper's means."""


@dataclass(frozen=True)
class ExpectedSizes:
    """The numbers of pairs #S, #D and #U of a task, over many draws."""

    similar: float
    dissimilar: float
    unlabeled: float
    error_of_fifty: float


def expected_sizes(
    task: Task,
    variant: str | None = None,
    n_draws: int = 2_000,
    data_dir: str | os.PathLike[str] | None = None,
) -> ExpectedSizes:
    """Estimate E#S, E#D and #U = n(n-1)/2 - #(S u D) of a task by drawing its labels (Table 1)."""
    y = load_task(task, "none", data_dir)[1]
    rng = np.random.default_rng(0)
    similar = np.empty(n_draws)
    for k in range(n_draws):
        labeled = draw_labeled(task, y, rng, variant)[0]
        counts = np.unique(y[labeled], return_counts=True)[1]
        similar[k] = np.sum(counts * (counts - 1)) / 2
    n, labels = task.n_training, task.n_labels
    pairs = labels * (labels - 1) / 2
    mean = float(similar.mean())
    error = float(similar.std()) / np.sqrt(PAPER_SAMPLINGS)
    return ExpectedSizes(mean, pairs - mean, n * (n - 1) / 2 - pairs, float(error))


def sampling_evidence(
    tasks: Sequence[Task],
    n_draws: int = 2_000,
    data_dir: str | os.PathLike[str] | None = None,
) -> ResultTable:
    """Compare E#S of each way of drawing labels with Table 1, in standard errors."""
    rows = []
    distances: dict[str, list[float]] = {variant: [] for variant in VARIANTS}
    for task in tasks:
        row = {"task": task.title, "printed": f"{task.similar:.2f}"}
        for variant in VARIANTS:
            sizes = expected_sizes(task, variant, n_draws, data_dir)
            row[variant] = f"{sizes.similar:.2f}"
            if sizes.error_of_fifty > 0.0 and not task.is_stratified:
                distances[variant].append((task.similar - sizes.similar) / sizes.error_of_fifty)
                row[variant] += f" ({distances[variant][-1]:+.1f} se)"
        rows.append(row)
    summary = {"task": "root mean square", "printed": ""}
    for variant, found in distances.items():
        summary[variant] = f"{np.sqrt(np.mean(np.square(found))):.1f} se" if found else "not random"
    return ResultTable("E#S by the way of drawing labels", [*rows, summary])


def scaling_evidence(
    tasks: Sequence[Task],
    n_samplings: int = 20,
    scalings: Sequence[str] = SCALINGS,
    data_dir: str | os.PathLike[str] | None = None,
    variant: str | None = None,
) -> ResultTable:
    """Compare the Euclidean 1-NN error (in %) of each scaling with Table 2."""
    rows = []
    for task in tasks:
        printed, printed_error = PRINTED["EUCLIDEAN", task.name]
        row = {"task": task.title, "printed": f"{printed:.2f} ± {printed_error:.2f}"}
        apart = {}
        for scaling in scalings:
            X, y = load_task(task, scaling, data_dir)
            identity = np.eye(X.shape[1])
            errors = [
                nearest_neighbor_error(draw_sampling(task, X, y, seed, variant), identity)
                for seed in range(n_samplings)
            ]
            mean, error = np.mean(errors), np.std(errors, ddof=1) / np.sqrt(n_samplings)
            apart[scaling] = float((mean - printed) / np.hypot(error, printed_error))
            row[scaling] = f"{mean:.2f} ± {error:.2f} ({apart[scaling]:+.1f} se)"
        row["nearest"] = min(scalings, key=lambda scaling: abs(apart[scaling]))
        rows.append(row)
    return ResultTable(f"Euclidean 1-NN error in %, {n_samplings} samplings", rows)
