"""What the `seraph-cvx` command reports while a metric is learned, and of the result."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..display.result_table import visible
from ..estimators.evidence import describe_features, leave_one_out
from ..fit.alternation import Iteration
from ..numerics.checks import UNKNOWN, FloatArray
from ..numerics.psd_cone import factor, numerical_rank
from ..processes.whole_file import write_whole
from .report import alert, say
from .tables.user_table import UserTable

History = Sequence[Iteration] | Sequence[float]


class IterationPrinter:
    """A callback that prints each iteration, and remembers the last one."""

    metric: FloatArray | None = None
    number = 0

    def __call__(self, step: Iteration, metric: FloatArray) -> None:
        if self.metric is None:
            titles = ("iter", "J", "objective (7)", "M-step gap", "rank", "trace", "seconds")
            say(
                "Gap, rank and trace are of the matrix A of the M-step, before it is mixed with "
                "its reference."
            )
            say("{:>4} {:>15} {:>15} {:>11} {:>5} {:>10} {:>8}".format(*titles), style="bold")
        self.metric, self.number = metric, step.number
        is_certified = np.isfinite(step.relative_gap)
        gap = f"{step.relative_gap:.1e}" if is_certified else step.kind
        say(
            f"{step.number:>4} {step.descent_value:>15.8f} {step.paper_objective:>15.8f} "
            f"{gap:>11} {step.rank:>5} {step.trace:>10.4g} {step.seconds:>8.2f}"
        )


def report_metric(
    table: UserTable,
    metric: FloatArray,
    m_step_metric: FloatArray,
    X_test: FloatArray | None = None,
    y_test: FloatArray | None = None,
) -> None:
    """Report the ranks, and the 1-NN error on test points or, leaving one out, on labeled ones."""
    m, rank, learned = len(metric), numerical_rank(metric), numerical_rank(m_step_metric)
    say("")
    if np.array_equal(metric, m_step_metric):
        say(f"Rank {rank} of {m}: the learned matrix A itself is the metric of all distances.")
    else:
        say(
            f"Rank {rank} of {m}: the metric of all distances is the learned matrix A, of rank "
            f"{learned}, mixed with its reference. No certificate is about this mixture."
        )
    if not np.any(metric) or len(table.class_names) < 2:
        return
    known = table.y != UNKNOWN
    X, y = table.X[known], table.y[known]
    if y_test is None or X_test is None:
        judged = leave_one_out(X, y.astype(np.int64), metric)
        if judged is not None:
            say(
                f"1-NN leave-one-out error on the {judged.n} labeled points, whose labels were used"
            )
            say(f"  learned metric      {judged.learned_error:.1%}")
            say(f"  Euclidean distance  {judged.euclidean_error:.1%}")
            error = f"standard error {judged.standard_error:.1%}"
            say(f"  difference          {judged.gain:.1%}, {error}")
            say(f"  {judged.verdict}")
    else:
        n = len(y_test)
        say(f"1-NN test error on {n} other points, by the nearest of the {len(y)} labeled ones")
        for name, L in (("learned metric    ", factor(metric)), ("Euclidean distance", np.eye(m))):
            say(f"  {name}  {_one_nn_error(X @ L.T, y, X_test @ L.T, y_test):.1%}")
    varying = np.flatnonzero(np.ptp(table.X, axis=0) > 0.0)
    names = [table.feature_names[i] for i in varying] if table.feature_names else None
    for note in describe_features(table.X[:, varying], names):
        say(f"Note. {visible(note)}")


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


def draw(
    path: Path,
    table: UserTable,
    metric: FloatArray,
    history: History,
    title: str,
    kept: list[str],
) -> None:
    """Write the picture of a fit, or say why there is none."""
    try:
        from ..plots import plot_fit
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        alert('No picture: matplotlib is not installed. Run  pip install "seraph-cvx[plot]"')
        return
    names = [visible(name) for name in table.class_names]
    figure = plot_fit(
        *(table.X, table.y, factor(metric), history),
        title=visible(title),
        class_names=names,
    )
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix[1:])
    write_whole(path, content.getvalue())
    kept.append(f"the picture is in {path}")
    say(f"Written: the picture (points before and after, J by iteration), to {path}")
