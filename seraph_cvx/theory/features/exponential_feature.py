"""The M-step with similarity that decays exponentially: stated, certified and solved.

With u = d + delta, d = v'Av and delta > 0, the model p(+1) = e^{-u} has

    -ln p(+1) = u,          -ln p(-1) = g(u) = -log(1 - e^{-u}),

the one affine, the other convex. It is the feature phi(d) - eta = log(e^u - 1) instead of the
d - eta of (4); :mod:`.feature_functions` says when such an exchange keeps (11) convex. Here every
similar pair pulls with the force 1, which under (4) is the limit for distant pairs. With b_k the
weight of the label -1 of pair k and a_k that of its label +1, (11) becomes

    f(A) = <C, A> + delta * sum_k a_k + sum_k b_k g(v_k'Av_k + delta)                 over A PSD,
    C = sum_k a_k v_k v_k' + lambda I.

**The dual.** For w >= 0 the infimum of g(u) + w u over u > 0 is at e^u = 1 + 1/w and equals
h(w) = (1 + w) log(1 + w) - w log w, so that the Lagrange dual reads

    maximize    D(w) = sum_k b_k (h(w_k) - delta w_k) + delta * sum_k a_k             over w >= 0
    subject to  C - sum_k b_k w_k v_k v_k'  PSD.

h is the entropy of the geometric distribution with mean w; for (4) it is the binary entropy.
A = I is strictly feasible and f >= 0, so the optima agree; lambda > 0 makes f coercive.

**The certificate.** At a PSD A take w_k = -g'(u_k) = 1 / (e^{u_k} - 1), whose matrix is the
gradient of f. The anchor w = 0 is always feasible. Each term of D grows up to 1 / (e^delta - 1), so
on the ray from the anchor through w, up to that value, the best point is where the ray leaves the
feasible set: at tau*w, tau the largest with C - tau * sum_k b_k w_k v_k v_k' PSD.

**Its rounding errors.** The problem is that of the points, a, b, lambda and delta as the doubles
they are. w need not be accurate, only feasible: D is taken at the doubles that the machine holds
for min(tau w_k, 1 / (e^delta - 1)). The matrix of tau*w is proven positive definite, its error
bounded as :mod:`~seraph_cvx.engine.proven_sums` says, and that of a smaller w is not below it.
h is a sum of positive terms, log(1 + w) + w log(1 + 1/w), so it is accurate relative to itself;
what D subtracts is summed apart. f is bounded at LL', L the factor of A: a distance enters by its
upper bound where it pulls and by its lower bound where g falls with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ...certificate import Certificate
from ...engine.proven_sums import moment_along, proven_step, squared_lengths, sum_bounds, unit_basis
from ...model.soft_labels import check_soft_labels
from ...numerics.checks import FloatArray, check_number
from ...numerics.psd_cone import check_metric, scaled_factor, symmetrize
from ...numerics.rounding import ENTROPY_ROUNDINGS, LARGEST_SCORE, LOSS_ROUNDINGS, UNIT, down, up
from ...pairs.pair_set import PairSet

if TYPE_CHECKING:
    import cvxpy as cp

LEAST_PUSH = 1e-100
"""The least push at the start of the ray, which would otherwise have no direction."""

NO_PUSH = 1e-200
"""Smaller pushes on the ray count as 0: their reciprocals are near overflow."""


def dissimilar_loss(u: FloatArray) -> FloatArray:
    """The loss of a dissimilar pair, g(u) = -log(1 - e^{-u}) = -ln p(-1), accurate for all u > 0.

    Examples
    --------
    >>> dissimilar_loss(np.log([2.0, 4.0])).round(4)
    array([0.6931, 0.2877])
    """
    far = -np.log1p(-np.minimum(np.exp(-u), 0.5))
    return np.asarray(np.where(u > np.log(2.0), far, -np.log(-np.expm1(-u))))


def dissimilar_push(u: FloatArray) -> FloatArray:
    """How hard a dissimilar pair pushes: w = -g'(u) = 1 / (e^u - 1), for u > 0.

    Examples
    --------
    >>> dissimilar_push(np.array([np.log(2.0), 1e4]))
    array([1., 0.])
    """
    return np.asarray(np.exp(-u) / -np.expm1(-u))


def geometric_entropy(w: FloatArray) -> FloatArray:
    """The entropy h(w) = (1 + w) log(1 + w) - w log w, the least g(u) + w u over u > 0.

    As log(1 + w) + w log(1 + 1/w), in which nothing cancels.

    Examples
    --------
    >>> geometric_entropy(np.array([0.0, 1.0])).round(4)
    array([0.    , 1.3863])
    """
    return np.asarray(np.log1p(w) + w * np.log1p(1.0 / np.maximum(w, NO_PUSH)))


@dataclass(frozen=True, eq=False, repr=False)
class ExponentialMStep:
    """State an M-step with the exponential feature.

    f(A) = <C, A> + delta * sum_k a_k + sum_k b_k g(v_k'Av_k + delta): (11) with p(+1) = e^{-u}.

    Parameters
    ----------
    pairs : PairSet
    soft_labels : (n_unlabeled,) array_like, optional
        q(+1) per row of ``pairs.unlabeled``. None: q(-1) = 1, the paper's start.
    unlabeled_weight : float or "ratio"
        mu; "ratio" is #(S u D) / #U.
    trace_weight : float
        lambda > 0.
    offset : float
        delta > 0: two equal points are similar with probability e^{-delta}.

    Attributes
    ----------
    differences, near, far : arrays
        v_k, a_k and b_k: of the similar, the dissimilar and, with mu > 0, the unlabeled pairs. The
        doubles a_k and b_k are the problem, whatever was rounded on the way to them.

    Examples
    --------
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> round(ExponentialMStep(pairs).value([[1.0]]), 4)
    2.9627
    """

    pairs: PairSet
    soft_labels: ArrayLike | None = None
    unlabeled_weight: float | str = "ratio"
    trace_weight: float = 1.0
    offset: float = 0.1
    differences: FloatArray = field(init=False)
    near: FloatArray = field(init=False)
    far: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        check_number(self.trace_weight, "trace_weight", 0.0, strict=True)
        check_number(self.offset, "offset", 0.0, strict=True)
        pairs, mu = self.pairs, self.pairs.resolve_unlabeled_weight(self.unlabeled_weight)
        given = np.zeros(pairs.n_unlabeled) if self.soft_labels is None else self.soft_labels
        rows = np.vstack([pairs.labeled, pairs.unlabeled])[: None if mu else pairs.n_labeled]
        c = np.append(pairs.labeled_weights, np.full(pairs.n_unlabeled, mu))[: len(rows)]
        label = np.arange(pairs.n_labeled) < len(pairs.similar)
        near = c * np.append(label, check_soft_labels(given, pairs))[: len(rows)]
        object.__setattr__(self, "differences", pairs.points[rows[:, 0]] - pairs.points[rows[:, 1]])
        object.__setattr__(self, "near", near)
        object.__setattr__(self, "far", c - near)

    @property
    def pull(self) -> FloatArray:
        """The matrix of the linear term, C = sum_k a_k v_k v_k' + lambda I."""
        V = self.differences
        return symmetrize((V * self.near[:, None]).T @ V) + self.trace_weight * np.eye(V.shape[1])

    @property
    def constant(self) -> float:
        """The constant term, delta * sum_k a_k."""
        return self.offset * float(np.sum(self.near))

    def shifted_distances(self, A: FloatArray) -> FloatArray:
        """The shifted squared distances u_k = v_k'Av_k + delta."""
        V = self.differences
        return np.asarray(np.maximum(np.einsum("ij,ij->i", V @ A, V), 0.0) + self.offset)

    def value(self, A: ArrayLike) -> float:
        """The objective f at a PSD matrix A."""
        metric = check_metric(A, self.pairs.n_features)
        losses = self.far * dissimilar_loss(self.shifted_distances(metric))
        return float(np.sum(self.pull * metric) + self.constant + np.sum(losses))


def state_exponential_m_step(
    pairs: PairSet,
    soft_labels: ArrayLike | None = None,
    unlabeled_weight: float | str = "ratio",
    trace_weight: float = 1.0,
    offset: float = 0.1,
) -> cp.Problem:
    """State the M-step with the exponential feature in CVXPY.

    min <C, A> + delta * sum_k a_k + sum_k b_k t_k  s.t.  e^{-t_k} + e^{-u_k} <= 1, A PSD.

    t >= -log(1 - e^{-u}) is the same as log_sum_exp(-t, -u) <= 0, which is DCP.

    Parameters
    ----------
    pairs, soft_labels, unlabeled_weight, trace_weight, offset
        As for :class:`ExponentialMStep`.

    Returns
    -------
    cvxpy.Problem
        DCP and DPP. The labels +1 reach it through one matrix C and one number, both Parameters;
        the labels -1 pair by pair, through the Parameter b.

    Examples
    --------
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> problem = state_exponential_m_step(pairs)
    >>> problem.is_dcp(dpp=True)
    True
    >>> round(float(problem.solve(solver="CLARABEL")), 4)
    2.9248
    """
    import cvxpy as cp

    numbers = ExponentialMStep(pairs, soft_labels, unlabeled_weight, trace_weight, offset)
    m, n_similar = pairs.n_features, len(pairs.similar)
    i, j = np.triu_indices(m)
    twice = np.where(i == j, 1.0, 2.0)
    A = cp.Variable((m, m), PSD=True, name="A")
    C = cp.Parameter(len(i), name="C", value=numbers.pull[i, j] * twice)
    constant = cp.Parameter(name="delta sum a", value=numbers.constant)
    goal = C @ A[i, j] + constant
    V, far = numbers.differences[n_similar:], numbers.far[n_similar:]
    if not len(far):
        return cp.Problem(cp.Minimize(goal))
    b, t = cp.Parameter(len(far), nonneg=True, name="b", value=far), cp.Variable(len(far), name="t")
    u = (V[:, i] * V[:, j] * twice) @ A[i, j] + offset
    likely = cp.log_sum_exp(cp.vstack([-t, -u]), axis=0) <= 0
    return cp.Problem(cp.Minimize(goal + b @ t), [likely])


def certify_exponential(problem: ExponentialMStep, A: ArrayLike) -> Certificate:
    """Certify a metric: D(w) <= inf f <= f(LL'), with LL' = A to rounding.

    Plain NumPy; no solver is trusted, and no tolerance decides: see the head of this file.

    Parameters
    ----------
    problem : ExponentialMStep
    A : (m, m) array_like
        Any PSD matrix, however far from the optimum.

    Returns
    -------
    Certificate
        `dual_point` is "ray through the gradient", or "w = 0" where only that is proven feasible.

    Examples
    --------
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> problem = ExponentialMStep(pairs)
    >>> certify_exponential(problem, [[0.3]]).relative_gap > 0.01
    True
    >>> from seraph_cvx.theory.features.exponential_solver import solve_exponential
    >>> certify_exponential(problem, solve_exponential(problem).metric).relative_gap <= 1e-6
    True
    """
    return certify_exponential_factor(
        problem, scaled_factor(check_metric(A, problem.pairs.n_features))
    )


def certify_exponential_factor(problem: ExponentialMStep, L: FloatArray) -> Certificate:
    """Certify the metric A = LL', given its factor L, an (m, rho) array."""
    try:
        primal_value = up(_value_from_above(problem, L))
    except OverflowError:
        primal_value = math.inf
    anchor = Fraction(problem.offset) * sum_bounds(problem.near)[0]
    dual_value, dual_point = down(anchor), "w = 0"
    w = _feasible_pushes(problem, L)
    if w is not None:
        on_ray = down(anchor + _dual_gain(problem, w))
        if on_ray > dual_value:
            dual_value, dual_point = on_ray, "ray through the gradient"
    if dual_value > primal_value:
        raise ArithmeticError(
            f"The lower bound {dual_value!r} is above the upper bound {primal_value!r}. "
            "This is a defect of seraph_cvx: please report it with the data."
        )
    return Certificate(primal_value, dual_value, dual_point, L)


def _value_from_above(problem: ExponentialMStep, L: FloatArray) -> Fraction:
    """An upper bound on f(LL'), with every rounding error allowed for."""
    lower, upper = squared_lengths(L, problem.differences)
    u = np.minimum((lower + problem.offset) * (1.0 - 4.0 * UNIT), LARGEST_SCORE)
    with np.errstate(over="ignore"):
        pulls, squares = problem.near * upper, np.square(L).ravel()
    value = sum_bounds(pulls, 1)[1] + Fraction(problem.trace_weight) * sum_bounds(squares, 1)[1]
    value += Fraction(problem.offset) * sum_bounds(problem.near)[1]
    return value + sum_bounds(problem.far * dissimilar_loss(u), LOSS_ROUNDINGS)[1]


def _feasible_pushes(problem: ExponentialMStep, L: FloatArray) -> FloatArray | None:
    """Find feasible pushes w >= 0, with C - sum_k b_k w_k v_k v_k' proven PSD; or None.

    Each is at most tau times that of LL', rounded, and the matrix is proven PSD at that.
    """
    V, b, C = problem.differences, problem.far, problem.pull
    if not np.all(np.isfinite(C)):
        return None
    T = unit_basis(C)
    M = moment_along(T, V, problem.near, ridge=problem.trace_weight)
    u = squared_lengths(L, V)[0] + problem.offset
    with np.errstate(over="ignore", divide="ignore"):
        start = np.maximum(dissimilar_push(u), LEAST_PUSH)
        tau = proven_step(*M, *moment_along(T, V, b * start))
        if tau is None:
            return None
        w = np.minimum(tau * start, 1.0 / np.expm1(problem.offset))
    return np.where(w > NO_PUSH, w, 0.0)


def _dual_gain(problem: ExponentialMStep, w: FloatArray) -> Fraction:
    """A lower bound on sum_k b_k (h(w_k) - delta w_k)."""
    entropies = sum_bounds(problem.far * geometric_entropy(w), ENTROPY_ROUNDINGS)[0]
    return entropies - Fraction(problem.offset) * sum_bounds(problem.far * w, 1)[1]
