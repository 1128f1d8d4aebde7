"""What `seraph-cvx demo` and `fit` report: the data, iterations, certificate, errors, pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from ..datasets import Sampling
from ..display.result_table import visible
from ..fit.alternation import Iteration
from ..numerics.checks import UNKNOWN, FloatArray, IntArray
from ..numerics.psd_cone import numerical_rank
from ..pairs.data_warnings import UNKNOWN_LABELS, first_twins, stray_values
from ..pairs.pair_set import PairSet
from ..processes.whole_file import write_whole
from ..solvers.solution import Status
from .messages import alert, needs_matplotlib, say, tell
from .tables import MOST_PLACES, UserTable

if TYPE_CHECKING:
    from ..estimators.seraph import SERAPH


CURES = {
    Status.ITERATION_LIMIT: "Raise --max-iter.",
    Status.TIME_LIMIT: "Raise --time-limit.",
    Status.INACCURATE: "Leave out a column that others determine, or use --solver newton.",
}
"""What to do about a fit that ended so."""

COLUMNS = "iter               J   objective (7)  M-step gap  rank      trace  seconds  step"


def describe(table: UserTable, pairs: PairSet, name: str) -> None:
    """Describe the data, and how many pairs are similar, dissimilar and unlabeled."""
    counts = np.bincount(table.y[table.y != UNKNOWN], minlength=len(table.class_names))
    classes = dict(zip(table.class_names, counts.tolist(), strict=True))
    tell("data", name=name, table=table, classes=classes, pairs=pairs)
    doubtful = [name for name in table.class_names if name.lower() in UNKNOWN_LABELS]
    if doubtful:
        alert(
            f"Note: {doubtful[0]!r} is read as a class. If it means that the class is not known, "
            f"use --unknown {doubtful[0]!r}, or leave the cell empty."
        )


def note_far_values(X: FloatArray, rows: IntArray, names: Sequence[str], cure: str) -> None:
    """Name values far outside their column (NaN: missing); the cure has a place for the numbers."""
    is_missing = np.isnan(X)
    medians = np.nanmedian(np.where(np.all(is_missing, axis=0), 0.0, X), axis=0)
    strays = stray_values(np.where(is_missing, medians, X))
    if not len(strays):
        return
    places = [f"row {rows[i]}, column {names[j]}: {X[i, j]:.12g}" for i, j in strays[:MOST_PLACES]]
    more = f"; and {len(strays) - MOST_PLACES} more" if len(strays) > MOST_PLACES else ""
    numbers = ",".join(f"{number:.12g}" for number in np.unique(X[tuple(strays.T)])[:MOST_PLACES])
    alert(
        f"Note: far outside {'its column' if len(strays) == 1 else 'their columns'}: "
        f"{'; '.join(places)}{more}. For missing values, use {cure.format(numbers)}; otherwise "
        "check the units."
    )


def note_repeated_rows(table: UserTable) -> None:
    """Say how many rows have all features of an earlier one, and name the first of them."""
    earlier = first_twins(table.X)
    repeated = np.flatnonzero(earlier != np.arange(len(earlier)))
    if len(repeated):
        row = repeated[0]
        alert(
            f"Note: {len(repeated)} of {len(table.X)} rows repeat the features of an earlier one "
            f"(row {table.rows[row]} those of row {table.rows[earlier[row]]}). Remove them if the "
            "same thing was entered twice."
        )


def report_iteration(step: Iteration) -> None:
    """Print an iteration, the first one below the names of the columns."""
    if step.number == 1:
        say(
            "Gap, rank and trace are of the matrix A of the M-step, before it is mixed with its "
            "reference."
        )
        say(COLUMNS, style="bold")
    gap = f"{step.relative_gap:.1e}" if np.isfinite(step.relative_gap) else "-"
    tell("iteration", step=step, gap=gap)


def report_metric(table: UserTable, seraph: SERAPH, sampling: Sampling | None = None) -> None:
    """Report the ranks, and the errors on test points or on held-out labels."""
    L = seraph.components_
    has_proof = seraph.certificate_ is not None
    say(f"\n{'Which metric is certified' if has_proof else 'The metric'}", style="bold")
    mixed_rank = numerical_rank(L @ L.T) if seraph.is_mixed_ else None
    tell("ranks", hang=13, seraph=seraph, rank=seraph.m_step_rank_, mixed_rank=mixed_rank)
    if not np.any(L) or len(table.class_names) < 2:
        return
    if sampling is None:
        tell("held_out", result=seraph.held_out_, classifier=seraph.classifier_)
    else:
        from ..estimators.held_out import class_probabilities

        known, n_test = table.y != UNKNOWN, len(sampling.X_test)
        errors = [
            np.mean(np.argmax(proba, axis=1) != sampling.y_test)
            for proba in (
                class_probabilities(name, table.X[known], table.y[known], L, sampling.X_test)
                for name in ("nearest", "plain-nearest")
            )
        ]
        tell("test_error", n_test=n_test, n=np.sum(known), learned=errors[0], euclidean=errors[1])


def finish(status: Status, kept: list[str]) -> None:
    """Exit with code 1 unless the result is certified, as far as rounding allows, or stationary."""
    if not status.reached_tolerance:
        files = " and ".join(kept) or "nothing was written"
        said = f"Not certified: the status is {status.value}; {files}. {CURES.get(status, '')}"
        alert(f"{said} Exit code 1.", style="red")
        raise typer.Exit(1)


# Pictures


def draw_fit(path: Path, table: UserTable, seraph: SERAPH, title: str, kept: list[str]) -> None:
    """Write the picture of a fit, or say why there is none."""
    with needs_matplotlib("picture"):
        from ..plots import MetricDisplay

        names = [visible(name) for name in table.class_names]
        display = MetricDisplay.from_estimator(seraph, table.X, table.y, class_names=names)
        figure = display.draw(title=visible(title))
        _write_picture(path, figure, "the points before and after", kept)


def draw_demo(
    path: Path,
    sampling: Sampling,
    table: UserTable,
    seraph: SERAPH,
    gaps: Sequence[float],
    kept: list[str],
) -> None:
    """Write the picture of the demo, or say why there is none."""
    counts = f"{sampling.labeled.sum()} of {len(table.y)} points labeled"
    title = f"SERAPH on {sampling.name}: {counts}, tested on {len(sampling.y_test)} others by 1-NN"
    with needs_matplotlib("picture"):
        from ..plots.regions import RegionsDisplay

        figure = RegionsDisplay.from_result(
            *(seraph.metric_, table.X, table.y, sampling.X_test, sampling.y_test, gaps),
            table.class_names,
        ).draw(title=title)
        _write_picture(path, figure, "1-NN regions before and after, the certified gap", kept)


def _write_picture(path: Path, figure: Any, content: str, kept: list[str]) -> None:
    from ..plots.style import picture_bytes

    write_whole(path, picture_bytes(figure, path.suffix[1:]))
    kept.append(f"the picture is in {path}")
    say(f"Written: the picture ({content}), to {path}")
