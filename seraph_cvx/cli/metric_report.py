"""What the `seraph-cvx` command reports while a metric is learned, and of the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..datasets import Sampling
from ..display.result_table import visible
from ..estimators.evidence import describe_features, leave_one_out
from ..fit.alternation import Iteration
from ..numerics.checks import UNKNOWN, FloatArray
from ..numerics.psd_cone import factor, numerical_rank
from .report import say
from .result_files import write_picture
from .tables.user_table import UserTable

if TYPE_CHECKING:
    from ..estimators.seraph import SERAPH

History = Sequence[Iteration] | Sequence[float]

REFERENCE_WORDS = {
    "identity": "the Euclidean distance",
    "within": "the distance in units of the spread inside the classes",
}
"""What a learned metric is mixed with."""


class IterationPrinter:
    """A callback that prints each iteration, and hands its metric on where `then` is given."""

    def __init__(self, then: Callable[[FloatArray], object] | None = None) -> None:
        self.then = then
        self.has_begun = False

    def __call__(self, step: Iteration, metric: FloatArray) -> None:
        if not self.has_begun:
            titles = ("iter", "J", "objective (7)", "M-step gap", "rank", "trace", "seconds")
            say(
                "Gap, rank and trace are of the matrix A of the M-step, before it is mixed with "
                "its reference."
            )
            say("{:>4} {:>15} {:>15} {:>11} {:>5} {:>10} {:>8}".format(*titles), style="bold")
        self.has_begun = True
        if self.then is not None:
            self.then(metric)
        is_certified = np.isfinite(step.relative_gap)
        gap = f"{step.relative_gap:.1e}" if is_certified else step.kind
        say(
            f"{step.number:>4} {step.descent_value:>15.8f} {step.paper_objective:>15.8f} "
            f"{gap:>11} {step.rank:>5} {step.trace:>10.4g} {step.seconds:>8.2f}"
        )


def report_metric(
    table: UserTable,
    seraph: SERAPH,
    X_test: FloatArray | None = None,
    y_test: FloatArray | None = None,
) -> None:
    """Report the ranks, and the 1-NN error on test points or, leaving one out, on labeled ones."""
    metric, m = seraph.metric_, len(seraph.metric_)
    report_ranks(seraph)
    if not np.any(metric) or len(table.class_names) < 2:
        return
    known = table.y != UNKNOWN
    X, y = table.X[known], table.y[known]
    if y_test is None or X_test is None:
        judged = leave_one_out(X, y.astype(np.int64), metric)
        if judged is not None:
            counted = f"the {judged.n} labeled points, whose labels were used"
            say(f"\n1-NN leave-one-out error on {counted}")
            say(f"  learned metric      {judged.learned_error:.1%}")
            say(f"  Euclidean distance  {judged.euclidean_error:.1%}")
            error = f"standard error {judged.standard_error:.1%}"
            say(f"  difference          {judged.gain:.1%}, {error}")
            say(f"  {judged.verdict}")
    else:
        n = len(y_test)
        say(f"\n1-NN test error on {n} other points, by the nearest of the {len(y)} labeled ones")
        for name, L in (("learned metric    ", factor(metric)), ("Euclidean distance", np.eye(m))):
            say(f"  {name}  {_one_nn_error(X @ L.T, y, X_test @ L.T, y_test):.1%}")
    varying = np.flatnonzero(np.ptp(table.X, axis=0) > 0.0)
    names = [table.feature_names[i] for i in varying] if table.feature_names else None
    for note in describe_features(table.X[:, varying], names):
        say(f"Note. {visible(note)}")


def report_ranks(seraph: SERAPH) -> None:
    """Report which metric is certified, the rank of each, and why there are two."""
    metric, A, m = seraph.metric_, seraph.m_step_metric_, len(seraph.metric_)
    learned, has_proof = numerical_rank(A), seraph.certificate_ is not None
    of_A = "the matrix of the last M-step, which the certificate is about"
    of_A = of_A if has_proof else "where the descent on (7) ended: it has no certificate"
    say("\nWhich metric is certified" if has_proof else "\nThe metric", style="bold")
    if np.array_equal(metric, A):
        say(f"  rank {learned} of {m}  A, {of_A}. All distances use A itself.", hang=13)
        return
    doubt = "leave A uncertain" if learned == m else "say nothing about what A leaves out"
    say(f"  rank {learned} of {m}  A, {of_A}.", hang=13)
    say(
        f"  rank {numerical_rank(metric)} of {m}  the metric of all distances: A mixed with "
        f"{REFERENCE_WORDS[seraph.reference]} (reference {seraph.reference}), because few labels "
        f"{doubt}. It is mixed in after the fit, so no certificate is about the mixture.",
        hang=13,
    )


def _one_nn_error(
    X: FloatArray,
    y: FloatArray,
    X_test: FloatArray,
    y_test: FloatArray,
) -> float:
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=1).fit(X)
    nearest = search.kneighbors(X_test, return_distance=False)[:, 0]
    return float(np.mean(y[nearest] != y_test))


def draw_fit(
    path: Path,
    table: UserTable,
    metric: FloatArray,
    history: History,
    title: str,
    kept: list[str],
) -> None:
    """Write the picture of a fit, or say why there is none."""
    written = write_picture(
        path,
        "fit",
        lambda plots: plots.plot_fit(
            *(table.X, table.y, factor(metric), history),
            title=visible(title),
            class_names=[visible(name) for name in table.class_names],
        ),
    )
    _say_where(path, "points before and after, J by iteration", written, kept)


def draw_demo(
    path: Path,
    sampling: Sampling,
    class_names: Sequence[str],
    metric: FloatArray,
    gaps: Sequence[float],
    kept: list[str],
) -> None:
    """Write the picture of the demo, or say why there is none."""
    labels = sampling.y.astype(np.int64)
    counts = f"{sampling.labeled.sum()} of {len(labels)} points labeled"
    title = f"SERAPH on {sampling.name}: {counts}, tested on {len(sampling.y_test)} others by 1-NN"
    written = write_picture(
        path,
        "regions",
        lambda plots: plots.RegionsDisplay.from_result(
            *(metric, sampling.X, labels, sampling.X_test, sampling.y_test, gaps, class_names)
        ).draw(title=title),
    )
    _say_where(path, "1-NN regions before and after, the certified gap", written, kept)


def _say_where(path: Path, what: str, written: Sequence[str], kept: list[str]) -> None:
    if written:
        kept.append(f"the picture is in {path}")
        say(f"Written: the picture ({what}), to {path}")
