"""The points that `seraph-cvx fit` learns from: read, brought to scale, and their work foretold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from ..numerics.checks import FloatArray
from ..pairs.pair_set import PairSet
from .report import alert
from .tables.text_rows import TableError
from .tables.user_table import UserTable, read_table
from .tables.workload import LONG, expected_seconds, in_words


def read_points(
    file: Path, label: str, standardize: bool
) -> tuple[UserTable, dict[str, FloatArray]]:
    """The table, and the mean and scale of each feature if it is standardized."""
    table = read_table(file, label)
    with np.errstate(over="ignore", invalid="ignore"):
        mean, spread = table.X.mean(axis=0), table.X.std(axis=0)
        sizes = spread if standardize else np.abs(table.X).max(axis=0) ** 4
    if not np.all(np.isfinite(sizes)):
        feature = table.feature_names[int(np.argmin(np.isfinite(sizes)))]
        raise TableError(
            f"The numbers in the column {feature!r} are too large to be squared: divide them by "
            "their unit, or remove the column."
        )
    if not np.any(spread):
        raise TableError(f"All points of {file} are the same, so there is nothing to learn.")
    for name in np.array(table.feature_names, dtype=object)[spread == 0.0][:3]:
        alert(f"Note: the column {name!r} is constant: it tells nothing.")
    if not standardize:
        return table, {}
    scale = np.where(spread > 0.0, spread, 1.0)
    return replace(table, X=(table.X - mean) / scale), {"mean": mean, "scale": scale}


def announce_long_work(pairs: PairSet, only_labeled: bool) -> None:
    """Say before hours of work that they come, and what to do instead."""
    seconds = expected_seconds(pairs, only_labeled)
    if seconds > LONG:
        cure = "fewer features" if only_labeled else "a random sample of the rows, fewer features"
        cure += "" if only_labeled else " or --unlabeled-weight 0"
        alert(
            f"Note: {pairs.n_points} points in {pairs.n_features} features: expect about "
            f"{in_words(seconds)}, by a trial on a few of them. Far shorter: {cure}. Ctrl-C keeps "
            "the last iteration."
        )
