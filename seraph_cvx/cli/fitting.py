"""What `seraph-cvx demo` and `fit` share: scale the points, learn, and report on the way."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from ..numerics.checks import FloatArray
from ..pairs.pair_set import PairSet
from .metric_report import IterationPrinter
from .report import alert, report_certificate, report_direct, say, screen
from .tables.files import TableError
from .tables.frames import name_columns
from .tables.user_table import UserTable, looks_like_identifier
from .tables.workload import LONG, expected_seconds, in_words

if TYPE_CHECKING:
    from ..estimators.seraph import SERAPH


def check_points(table: UserTable, standardize: bool) -> None:
    """Refuse numbers that cannot be squared; name columns that say nothing."""
    X = table.X
    with np.errstate(over="ignore", invalid="ignore"):
        spread = np.nanstd(X, axis=0)
        sizes = spread if standardize else np.nanmax(np.abs(X), axis=0) ** 4
    if not np.all(np.isfinite(sizes)):
        feature = table.feature_names[int(np.argmin(np.isfinite(sizes)))]
        raise TableError(
            f"The numbers in the column {feature!r} are too large to be squared: use a larger "
            "unit, or remove the column."
        )
    if not np.any(spread):
        raise TableError("All points of the table are the same, so there is nothing to learn.")
    for name, column, varies in zip(table.feature_names, X.T, spread > 0.0, strict=True):
        if not varies:
            alert(f"Note: the column {name!r} is constant, so nothing is learned from it.")
        elif looks_like_identifier(name, column):
            alert(
                f"Note: the column {name!r} looks like a number of each row, and counts as a "
                f"feature. --drop {name!r} leaves it out."
            )


def scale_points(
    table: UserTable, impute: str | None, standardize: bool
) -> tuple[list[tuple[str, Any]], FloatArray]:
    """Fit what comes before the metric; the steps of a pipeline, and the points after them."""
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import StandardScaler

    steps: list[tuple[str, Any]] = []
    X: Any = name_columns(table.X, table.feature_names)
    if impute is not None:
        steps.append(("impute", SimpleImputer(strategy=str(impute)).fit(X)))
    if standardize:
        before = steps[-1][1].transform(X) if steps else X
        steps.append(("scale", StandardScaler().fit(before)))
    for _, step in steps:
        X = step.transform(X)
    return steps, X


def announce_long_work(pairs: PairSet, only_labeled: bool) -> None:
    """Warn of a fit that takes long, and say what is faster."""
    seconds = expected_seconds(pairs, only_labeled)
    if seconds > LONG:
        cure = "fewer features" if only_labeled else "a random sample of the rows, fewer features"
        cure += "" if only_labeled else " or --unlabeled-weight 0"
        alert(
            f"Note: {pairs.n_points} points with {pairs.n_features} features take about "
            f"{in_words(seconds)}, by a trial on a few of them. Much faster: {cure}. Ctrl-C keeps "
            "the last iteration."
        )


def learn(
    seraph: SERAPH, X: Any, labels: Any, then: Callable[[FloatArray], object] | None = None
) -> None:
    """Fit SERAPH, print each iteration, and report the certificate; Ctrl-C keeps what there is.

    `then` is called with the metric of each iteration of EM.
    """
    is_direct = seraph.algorithm == "direct"
    if is_direct:
        say("\nDirect: descent on the paper's objective (7), from the scaled identity.")
    else:
        if seraph.solver == "fista":
            say("\nEM: a rough M-step, Newton's method on J, then soft labels and an exact M-step.")
        else:
            say("\nEM: soft labels, then a convex M-step for the metric, until J stops falling.")
        say("J never rises; the paper's objective (7) may.")
    callback = None if is_direct else IterationPrinter(then)
    seraph.set_params(callback=callback, on_interrupt="keep")
    with screen.status("learning"), warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.filterwarnings("ignore", "y holds")  # said before, with the option that helps
        try:
            seraph.fit(X, labels)
        except RuntimeError as error:
            if type(error) is not RuntimeError:  # only that says that no metric was found
                raise
            alert(f"The status is failed; nothing was written. {error} Exit code 1.", style="red")
            raise typer.Exit(1) from None
    seraph.set_params(callback=None, on_interrupt="raise")
    if is_direct:
        report_direct(seraph.history_, seraph.n_iter_, seraph.tol, seraph.status_)
    elif seraph.certificate_ is not None:
        report_certificate(seraph.certificate_, seraph.status_, seraph.m_step_tol)
