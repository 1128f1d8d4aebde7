"""The regularization path: metrics for a falling trace weight, or weight of another penalty."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import KroghInterpolator

from ..certificate import Certificate
from ..m_step.solve import OWN_SOLVERS, MStepSolver
from ..model.m_step_objective import MStepObjective
from ..numerics.arrays import one_blas_thread
from ..numerics.checks import FloatArray, check_number
from ..numerics.psd_cone import numerical_rank, symmetrize
from ..pairs.pair_set import PairSet
from ..penalties.penalty import Penalty
from ..solvers.solution import Status
from .alternation import run_alternation

if TYPE_CHECKING:
    from ..display.result_table import ResultTable


@dataclass(frozen=True, eq=False)
class PathPoint:
    """The metric at one trace weight, or at one weight of another penalty.

    Attributes
    ----------
    trace_weight : float
    metric : (m, m) array
    value : float
        f of the M-step, eq. (11); for algorithm="em", of its last M-step.
    descent_value : float
        J; for one M-step the same as `value`.
    certificate : Certificate
        The certificate of the (last) M-step.
    start : str
        "zero", "previous point" (the metric before it on the path) or "cold" (the paper's start,
        q(-1) = 1).
    evaluations : int
        Sweeps over the pairs.
    message : str
        What was not reached and the remedy, where the point is not certified.
    penalty_weight : float or None
        The weight of the penalty that is varied; None where it is the trace weight that is.
    """

    trace_weight: float
    metric: FloatArray
    value: float
    descent_value: float
    certificate: Certificate
    status: Status
    start: str
    evaluations: int
    seconds: float
    message: str = ""
    penalty_weight: float | None = None

    @property
    def weight(self) -> float:
        """The weight that is varied along the path."""
        return self.trace_weight if self.penalty_weight is None else self.penalty_weight

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
    algorithm : str
    critical_trace_weight : float
        From this trace weight on the metric of the first M-step is zero; infinite where a penalty
        keeps it from zero, NaN where it has no closed form or another weight is varied.
    axis : str
        What is varied: "trace weight", "weight of Ridge", "bound of TraceBound", ...
    """

    points: tuple[PathPoint, ...]
    algorithm: str
    critical_trace_weight: float
    axis: str = "trace weight"

    @property
    def weights(self) -> FloatArray:
        """The weight that is varied, at each point."""
        return np.array([point.weight for point in self.points])

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

    def to_table(self) -> ResultTable:
        """Tabulate the path, one row per point."""
        from ..display.result_table import ResultTable

        return ResultTable(
            f"Regularization path ({self.algorithm})",
            [
                {
                    self.axis: point.weight,
                    "rank": point.rank,
                    "trace": point.trace,
                    "f": point.value,
                    "J": point.descent_value,
                    "relative gap": point.certificate.relative_gap,
                    "status": point.status.value,
                    "start": point.start,
                    "evaluations": point.evaluations,
                    "seconds": point.seconds,
                }
                for point in self.points
            ],
        )

    def __getitem__(self, index: Any) -> Any:
        return self.points[index]

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        plural = re.sub("weight|bound", r"\g<0>s", self.axis, count=1)
        return (
            f"SeraphPath({len(self)} {plural} from {self.weights[0]:.4g} to "
            f"{self.weights[-1]:.4g}, ranks {self.ranks})"
        )

    def _repr_html_(self) -> str:
        from ..display.cards import path_card

        return path_card(self)


def seraph_path(
    pairs: PairSet,
    trace_weights: str | ArrayLike = "auto",
    *,
    algorithm: str = "m-step",
    n_weights: int = 20,
    smallest: float = 1e-3,
    unlabeled_weight: float | str = "ratio",
    threshold: float = 1.0,
    sharpness: float | None = None,
    previous_metric: FloatArray | None = None,
    solver: Any = "newton",
    tol: float = 1e-6,
    m_step_tol: float = 1e-6,
    manifold_term: FloatArray | None = None,
    n_jobs: int | None = None,
    penalties: Sequence[Penalty] = (),
    varied: int | None = None,
    penalty_weights: ArrayLike | None = None,
    trace_weight: float = 1.0,
) -> SeraphPath:
    """Learn the metric for decreasing trace weights, each with a certificate.

    A(lambda) = argmin_A f(A) with R = lambda*I, eq. (11). Or the same for decreasing weights of
    one of the `penalties`, at one trace weight.

    Parameters
    ----------
    pairs : PairSet
    trace_weights : "auto" or array_like
        The weights, taken from the largest down, each once. "auto" is a geometric sequence of
        `n_weights` from the critical trace weight, above which the metric of the first M-step is
        zero, down to `smallest` times it.
    algorithm : "m-step" or "em"
        At each weight either one M-step, with the soft labels of `previous_metric` (None:
        q(-1) = 1, the paper's start), or the whole alternation.
    n_weights, smallest : int, float
        The number of weights of "auto", and the smallest as a share of the critical one.
    unlabeled_weight, threshold, sharpness, solver, tol, n_jobs, manifold_term, penalties
        As for :func:`seraph_cvx.alternate`.
    m_step_tol : float
        Certified relative gap of each (last) M-step.
    varied : int, optional
        The number of the block in `penalties`, from 0, whose weight (for TraceBound: bound) is
        varied. None: the trace weight is varied.
    penalty_weights : array_like
        The weights of that block, taken from the largest down, each once.
    trace_weight : float
        The trace weight lambda of all points, where a block is varied.

    Returns
    -------
    SeraphPath
        Each point starts from the one before, which matters for "em", since J is not convex; the
        point after a zero metric, whose soft labels are all equal, starts cold. With penalties, an
        M-step that is not certified from its start is solved again from zero.

    Examples
    --------
    >>> from seraph_cvx import PairSet, seraph_path
    >>> X = [[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0], [0.2, 5.0], [1.9, 4.0]]
    >>> pairs = PairSet.from_labels(X, [0, 0, 1, 1, -1, -1])
    >>> seraph_path(pairs, n_weights=4)
    SeraphPath(4 trace weights from 97.4 to 0.0974, ranks [0, 2, 2, 1])

    How few entries off the diagonal the metric keeps, as their penalty falls:

    >>> from seraph_cvx.penalties import Sparse
    >>> path = seraph_path(pairs, penalties=[Sparse()], varied=0, penalty_weights=[10.0, 0.1])
    >>> path
    SeraphPath(2 weights of Sparse from 10 to 0.1, ranks [2, 2])
    >>> path.metrics[:, 0, 1].round(3) + 0.0
    array([ 0.   , -0.015])
    """
    if algorithm not in ("m-step", "em"):
        raise ValueError(f'algorithm={algorithm!r} is not known: use "m-step" or "em".')
    if algorithm == "em" and previous_metric is not None:
        raise ValueError('previous_metric belongs to algorithm="m-step": the alternation moves it.')
    first = MStepObjective(
        pairs,
        previous_metric=previous_metric,
        sharpness=sharpness,
        unlabeled_weight=unlabeled_weight,
        threshold=threshold,
        n_jobs=n_jobs,
        manifold_term=manifold_term,
    )
    if varied is None:
        if penalty_weights is not None:
            raise ValueError(
                "penalty_weights belongs to varied, the number of the block in penalties whose "
                "weight is varied, from 0: give both."
            )
        axis = _vary_trace(first, penalties, trace_weights, n_weights, smallest)
    else:
        if not isinstance(trace_weights, str):
            raise ValueError(
                "With varied= the path is one of penalty_weights: give the trace weight of all "
                "its points as trace_weight=."
            )
        fixed = first.with_trace_weight(trace_weight)
        axis = _vary_penalty(fixed, penalties, varied, penalty_weights)
    with one_blas_thread() if solver in OWN_SOLVERS else nullcontext():
        em_tol = tol if algorithm == "em" else None
        points = tuple(_points(axis, MStepSolver(solver), m_step_tol, em_tol))
    short = [point for point in points if point.message]
    if short:
        from ..solvers.not_certified import NotCertified  # it imports scikit-learn

        warnings.warn(
            f"{len(short)} of the {len(points)} points of the path did not end certified; the "
            f"first, at {axis.label}={short[0].weight:g}: {short[0].message}",
            NotCertified,
            stacklevel=2,
        )
    return SeraphPath(points, algorithm, axis.critical_trace_weight, axis.name)


class _Axis(NamedTuple):
    """What a path varies: the weights, largest first, and the M-step at each."""

    name: str
    weights: list[float]
    m_step: Callable[[float], MStepObjective]
    critical_trace_weight: float = np.nan
    trace_weight: float | None = None  # that of all points, where another weight is varied

    @property
    def label(self) -> str:
        """What is varied, in messages."""
        return "trace_weight" if self.trace_weight is None else self.name


def _vary_trace(
    first: MStepObjective,
    penalties: Sequence[Penalty],
    trace_weights: str | ArrayLike,
    n_weights: int,
    smallest: float,
) -> _Axis:
    """Vary the trace weight, with these penalties; the parameters are those of the path."""
    from ..penalties import Trace

    if any(isinstance(block, Trace) for block in penalties):
        raise ValueError(
            "The trace weight is what is varied, so leave the Trace block out; or give its "
            "number as varied, with trace_weight=0."
        )
    try:
        critical = first.with_penalties(penalties).critical_trace_weight
    except ValueError:  # it has no closed form
        if isinstance(trace_weights, str):
            raise
        critical = np.nan
    if isinstance(trace_weights, str):
        if trace_weights != "auto":
            raise ValueError(
                f'trace_weights={trace_weights!r} is not known: give numbers or "auto".'
            )
        check_number(smallest, "smallest", 0.0, strict=True)
        if critical == 0.0 or np.isinf(critical):
            when = "every trace weight (no pair pulls it up)"
            cure = "give dissimilar pairs, or trace_weights as numbers"
            if critical:
                when, cure = (
                    "no trace weight, with these penalties",
                    "give trace_weights as numbers",
                )
            raise ValueError(
                f"The metric is zero at {when}, so there is no path from the critical one: {cure}."
            )
        n = int(check_number(n_weights, "n_weights", 1.0))
        trace_weights = np.geomspace(critical, smallest * critical, n)
    return _Axis(
        "trace weight",
        _check_weights(trace_weights, "trace_weights"),
        lambda weight: replace(first, trace_weight=weight, penalties=penalties),
        critical,
    )


def _vary_penalty(
    first: MStepObjective, penalties: Sequence[Penalty], varied: int, weights: Any
) -> _Axis:
    """Vary the weight of one of the penalties, `first` having the trace weight."""
    if varied not in range(len(penalties)):
        raise ValueError(
            f"varied={varied!r} is not the number of one of the {len(penalties)} penalties, "
            "which count from 0."
        )
    from ..penalties import TraceBound

    blocks = list(penalties)
    block = blocks[varied]
    if "weight" not in vars(block):
        raise ValueError(f"{block!r} has no weight that could be varied: vary another block.")

    def m_step(weight: float) -> MStepObjective:
        blocks[varied] = blocks[varied].with_weight(weight)  # keeps what the last one computed
        return first.with_penalties(tuple(blocks))

    kind = "bound" if isinstance(block, TraceBound) else "weight"
    numbers = _check_weights(weights, "penalty_weights", strict=True)
    return _Axis(f"{kind} of {block.name}", numbers, m_step, trace_weight=first.trace_weight)


def _check_weights(given: Any, name: str, strict: bool = False) -> list[float]:
    """Check given weights, and sort them, largest first."""
    if given is None or isinstance(given, str):
        raise ValueError(
            f"{name}={given!r}: give numbers, such as numpy.geomspace(10, 0.01, 8). There is no "
            'range that suits every penalty, so there is no "auto".'
        )
    numbers = [check_number(w, name, 0.0, strict=strict) for w in np.ravel(np.asarray(given))]
    if not numbers:
        raise ValueError(f"{name} is empty: give at least one number.")
    return sorted(set(numbers), reverse=True)


def _points(
    axis: _Axis, solver: MStepSolver, m_step_tol: float, em_tol: float | None
) -> Iterator[PathPoint]:
    """One M-step at each weight, or the whole alternation, started from the points before."""
    last: list[tuple[float, FloatArray]] = []
    for weight in axis.weights:
        clock, objective, start = time.perf_counter(), axis.m_step(weight), None
        has_start = bool(last) and np.any(last[-1][1])
        if em_tol is None:
            start = _predict(last, weight) if has_start else None
            solution = solver.solve(objective, m_step_tol, start)
            evaluations = solution.evaluations
            is_short = start is not None and solution.status is not Status.CERTIFIED
            if is_short and objective.penalties:
                start, solution = None, solver.solve(objective, m_step_tol)
                evaluations += solution.evaluations
            metric, descent_value, status = solution.metric, solution.value, solution.status
            message, error = solution.shortfall(m_step_tol), solution.message
        else:
            if has_start:
                start = last[-1][1]
                objective = objective.with_soft_labels_of(start)
            run = run_alternation(objective, solver, tol=em_tol, m_step_tol=m_step_tol)
            solution, metric, status = run.m_step, run.metric, run.status
            evaluations = sum(iteration.evaluations for iteration in run.history)
            descent_value = run.history[-1].descent_value if run.history else np.nan
            error, message = run.message, "" if status is Status.CERTIFIED else run.message
        if metric is None or solution.certificate is None:
            raise RuntimeError(f"At {axis.label}={weight:g}: {error}")
        last = [*last[-2:], (weight, metric)]
        without_start = "zero" if em_tol is None else "cold"
        yield PathPoint(
            trace_weight=weight if axis.trace_weight is None else axis.trace_weight,
            penalty_weight=None if axis.trace_weight is None else weight,
            metric=metric,
            value=solution.value,
            descent_value=descent_value,
            certificate=solution.certificate,
            status=status,
            start=without_start if start is None else "previous point",
            evaluations=evaluations,
            seconds=time.perf_counter() - clock,
            message=message,
        )


def _predict(last: Sequence[tuple[float, FloatArray]], weight: float) -> FloatArray:
    """Predict the metric at `weight` by the parabola in log(lambda) through the last points.

    The prediction is cut to the last metric's rank: beyond it the parabola cannot be trusted.
    """
    latest, weights = last[-1][1], [at for at, _ in last]
    if len(last) < 2 or min(weight, *weights) <= 0.0:
        return latest
    parabola = KroghInterpolator(np.log(weights), [metric for _, metric in last])
    eigenvalues, vectors = np.linalg.eigh(symmetrize(parabola(np.log(weight))))
    rank = numerical_rank(latest)
    kept = vectors[:, -rank:] * np.sqrt(np.maximum(eigenvalues[-rank:], 0.0))
    return np.asarray(kept @ kept.T)
