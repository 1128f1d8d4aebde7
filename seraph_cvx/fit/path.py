"""The regularization path: the metric of an M-step for a falling trace weight."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..certificate import Certificate
from ..m_step.solve import OWN_SOLVERS, MStepSolver
from ..model.m_step_objective import MStepObjective
from ..numerics.arrays import one_blas_thread
from ..numerics.checks import FloatArray, check_number
from ..numerics.psd_cone import numerical_rank
from ..pairs.pair_set import PairSet
from ..penalties.penalty import Penalty
from ..solvers.solution import Status


@dataclass(frozen=True, eq=False)
class PathPoint:
    """The metric at one trace weight.

    Attributes
    ----------
    trace_weight : float
    metric : (m, m) array
    value : float
        f, eq. (11).
    certificate : Certificate
    message : str
        If the point is not certified, what was not reached, and the remedy.
    """

    trace_weight: float
    metric: FloatArray
    value: float
    certificate: Certificate
    status: Status
    seconds: float
    message: str

    @property
    def rank(self) -> int:
        """The rank of the metric."""
        return numerical_rank(self.metric)

    @property
    def trace(self) -> float:
        """The trace of the metric."""
        return float(np.trace(self.metric))


@dataclass(frozen=True, eq=False)
class SeraphPath(Sequence[PathPoint]):
    """The points of a path, largest weight first; a sequence of :class:`PathPoint`.

    Attributes
    ----------
    points : tuple of PathPoint
    critical_trace_weight : float
        The metric is zero at this trace weight and above; NaN with penalties, which change it.
    """

    points: tuple[PathPoint, ...]
    critical_trace_weight: float

    @property
    def trace_weights(self) -> FloatArray:
        """The trace weight lambda of each point."""
        return np.array([point.trace_weight for point in self.points])

    @property
    def metrics(self) -> FloatArray:
        """The metrics of all points, an (n_weights, m, m) array."""
        return np.array([point.metric for point in self.points])

    @property
    def ranks(self) -> list[int]:
        """The rank of each metric."""
        return [point.rank for point in self.points]

    def __getitem__(self, index: Any) -> Any:
        return self.points[index]

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        first, last = self.trace_weights[[0, -1]]
        ends = f"from {first:.4g} to {last:.4g}"
        return f"SeraphPath({len(self)} trace weights {ends}, ranks {self.ranks})"


def seraph_path(
    pairs: PairSet,
    trace_weights: str | ArrayLike = "auto",
    *,
    n_weights: int = 20,
    smallest: float = 1e-3,
    unlabeled_weight: float | str = "ratio",
    threshold: float = 1.0,
    sharpness: float | None = None,
    previous_metric: FloatArray | None = None,
    solver: Any = "newton",
    tol: float = 1e-6,
    manifold_term: FloatArray | None = None,
    n_jobs: int | None = None,
    penalties: Sequence[Penalty] = (),
) -> SeraphPath:
    """Learn the metric of an M-step for decreasing trace weights, each with a certificate.

    A(lambda) = argmin_A f(A) with R = lambda*I, eq. (11).

    Parameters
    ----------
    pairs : PairSet
    trace_weights : "auto" or array_like
        The weights, which are used in decreasing order, each once. "auto", without penalties, is a
        geometric sequence of `n_weights` from the critical trace weight, above which the metric is
        zero, down to `smallest` times it.
    n_weights, smallest : int, float
        The number of weights of "auto", and the smallest as a fraction of the critical one.
    previous_metric : (m, m) array, optional
        The metric whose soft labels the M-steps have; by default q(-1) = 1, the paper's start.
    unlabeled_weight, threshold, sharpness, solver, n_jobs, manifold_term, penalties
        As for :func:`seraph_cvx.alternate`.
    tol : float
        Certified relative gap of each M-step.

    Returns
    -------
    SeraphPath
        Each M-step starts from the metric before it. With penalties, an M-step that is not
        certified from that start is solved again from zero.

    Examples
    --------
    >>> from seraph_cvx import PairSet, seraph_path
    >>> X = [[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0], [0.2, 5.0], [1.9, 4.0]]
    >>> pairs = PairSet.from_labels(X, [0, 0, 1, 1, -1, -1])
    >>> seraph_path(pairs, n_weights=4)
    SeraphPath(4 trace weights from 97.4 to 0.0974, ranks [0, 2, 2, 1])
    """
    first = MStepObjective(
        pairs,
        previous_metric=previous_metric,
        sharpness=sharpness,
        unlabeled_weight=unlabeled_weight,
        threshold=threshold,
        n_jobs=n_jobs,
        manifold_term=manifold_term,
    )
    critical = np.nan if penalties else first.critical_trace_weight
    weights = _weights(critical, trace_weights, n_weights, smallest)
    objectives = (replace(first, trace_weight=w, penalties=penalties) for w in weights)
    with one_blas_thread() if solver in OWN_SOLVERS else nullcontext():
        points = tuple(_points(objectives, MStepSolver(solver), tol))
    short = [point for point in points if point.message]
    if short:
        from ..solvers.not_certified import NotCertified  # it imports scikit-learn

        warnings.warn(
            f"{len(short)} of the {len(points)} points of the path did not end certified; the "
            f"first, at trace_weight={short[0].trace_weight:g}: {short[0].message}",
            NotCertified,
            stacklevel=2,
        )
    return SeraphPath(points, critical)


def _weights(
    critical: float, trace_weights: str | ArrayLike, n_weights: int, smallest: float
) -> list[float]:
    """The trace weights, largest first; "auto" is from the critical one on."""
    if isinstance(trace_weights, str):
        if trace_weights != "auto":
            raise ValueError(
                f'trace_weights={trace_weights!r} is not known: give numbers or "auto".'
            )
        check_number(smallest, "smallest", 0.0, strict=True)
        if np.isnan(critical):
            raise ValueError(
                "With penalties no critical trace weight is known: give trace_weights as numbers."
            )
        if critical == 0.0:
            raise ValueError(
                "The metric is zero at every trace weight (no pair pulls it up), so there is no "
                "path from the critical one: give dissimilar pairs, or trace_weights as numbers."
            )
        n = int(check_number(n_weights, "n_weights", 1.0))
        trace_weights = np.geomspace(critical, smallest * critical, n)
    numbers = {check_number(w, "trace_weights", 0.0) for w in np.ravel(np.asarray(trace_weights))}
    if not numbers:
        raise ValueError("trace_weights is empty: give at least one number.")
    return sorted(numbers, reverse=True)


def _points(
    objectives: Iterable[MStepObjective], solver: MStepSolver, tol: float
) -> Iterator[PathPoint]:
    """The solution of each M-step, started from the one before."""
    start: FloatArray | None = None
    for objective in objectives:
        clock, weight = time.perf_counter(), objective.trace_weight
        solution = solver.solve(objective, tol, start)
        is_short = start is not None and solution.status is not Status.CERTIFIED
        if is_short and objective.penalties:
            solution = solver.solve(objective, tol)
        if solution.metric is None or solution.certificate is None:
            raise RuntimeError(f"At trace_weight={weight:g}: {solution.message}")
        start = solution.metric if np.any(solution.metric) else None
        yield PathPoint(
            trace_weight=weight,
            metric=solution.metric,
            value=solution.value,
            certificate=solution.certificate,
            status=solution.status,
            seconds=time.perf_counter() - clock,
            message=solution.shortfall(tol),
        )
