"""The M-step with similarity that decays exponentially: stated, certified and solved.

With u = d + delta, d = v'Av and delta > 0, the model p(+1) = e^{-u} has

    -ln p(+1) = u,          -ln p(-1) = g(u) = -log(1 - e^{-u}),

the one affine, the other convex. It is the feature phi(d) - eta = log(e^u - 1) instead of the
d - eta of (4); :mod:`.feature_claims` says when such an exchange keeps (11) convex. Here every
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
bounded as :mod:`~seraph_cvx.numerics.proven_sums` says, and that of a smaller w is not below it.
h is a sum of positive terms, log(1 + w) + w log(1 + 1/w), so it is accurate relative to itself;
what D subtracts is summed apart. f is bounded at LL', L the factor of A: a distance enters by its
upper bound where it pulls and by its lower bound where g falls with it.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..baselines.rival import moment, quadratic_forms, state_squared_distances
from ..certificate import Certificate
from ..certificate.certificate import LowerBound
from ..model.posterior import check_soft_labels
from ..numerics.checks import FloatArray, check_number
from ..numerics.proven_sums import (
    moment_along,
    proven_step,
    squared_lengths,
    sum_bounds,
    unit_basis,
)
from ..numerics.psd_cone import check_metric, factor, project, scaled_factor, symmetrize
from ..numerics.rounding import ENTROPY_ROUNDINGS, LARGEST_SCORE, LOSS_ROUNDINGS, UNIT, down, up
from ..pairs.pair_set import PairSet
from ..paper import differences
from ..solvers.gradient_steps import Iterate, projected_step
from ..solvers.solution import MStepSolution, Status

if TYPE_CHECKING:
    import cvxpy as cp

LEAST_WEIGHT = 1e-100
"""The least weight w at the start of the ray, which would otherwise have no direction."""

NO_WEIGHT = 1e-200
"""Smaller weights w on the ray count as 0: their reciprocals are near overflow."""


def dissimilar_loss(u: FloatArray) -> FloatArray:
    """The loss of a dissimilar pair, g(u) = -log(1 - e^{-u}), accurate for all u > 0."""
    far = -np.log1p(-np.minimum(np.exp(-u), 0.5))
    return np.asarray(np.where(u > np.log(2.0), far, -np.log(-np.expm1(-u))))


def dissimilar_slope(u: FloatArray) -> FloatArray:
    """The weight of a dissimilar pair in the gradient: w = -g'(u) = 1 / (e^u - 1), for u > 0."""
    return np.asarray(np.exp(-u) / -np.expm1(-u))


def geometric_entropy(w: FloatArray) -> FloatArray:
    """The entropy h(w) = (1 + w) log(1 + w) - w log w, the least g(u) + w u over u > 0."""
    return np.asarray(np.log1p(w) + w * np.log1p(1.0 / np.maximum(w, NO_WEIGHT)))


@dataclass(frozen=True, eq=False, repr=False)
class ExponentialMStep:
    """An M-step with the exponential feature: (11) with p(+1) = e^{-u}, u = d + offset."""

    pairs: PairSet
    soft_labels: ArrayLike | None = None  # q(+1) per row of pairs.unlabeled; None: q(-1) = 1
    unlabeled_weight: float | str = "ratio"  # mu
    trace_weight: float = 1.0  # lambda > 0
    offset: float = 0.1  # delta > 0: equal points are similar with probability e^{-delta}

    def __post_init__(self) -> None:
        check_number(self.trace_weight, "trace_weight", 0.0, strict=True)
        check_number(self.offset, "offset", 0.0, strict=True)
        self.near  # noqa: B018 (checks the soft labels)

    @cached_property
    def weights(self) -> FloatArray:
        """The weights c_k of similar, dissimilar and, with mu > 0, unlabeled pairs."""
        mu = self.pairs.resolve_unlabeled_weight(self.unlabeled_weight)
        unlabeled = np.full(self.pairs.n_unlabeled, mu)
        return np.append(self.pairs.labeled_weights, unlabeled if mu else [])

    @cached_property
    def differences(self) -> FloatArray:
        """The differences v_k of these pairs."""
        rows = np.vstack([self.pairs.labeled, self.pairs.unlabeled])
        return differences(self.pairs.points, rows[: len(self.weights)])

    @cached_property
    def near(self) -> FloatArray:
        """The weights a_k of the label +1; these doubles are the problem."""
        pairs = self.pairs
        given = np.zeros(pairs.n_unlabeled) if self.soft_labels is None else self.soft_labels
        label = np.repeat([1.0, 0.0], [len(pairs.similar), len(pairs.dissimilar)])
        q = np.append(label, check_soft_labels(given, pairs))
        return np.asarray(self.weights * q[: len(self.weights)])

    @cached_property
    def far(self) -> FloatArray:
        """The weights b_k of the label -1; these doubles are the problem."""
        return self.weights - self.near

    @cached_property
    def linear_matrix(self) -> FloatArray:
        """The matrix of the linear term, C = sum_k a_k v_k v_k' + lambda I."""
        matrix = symmetrize(moment(self.differences, self.near))
        return matrix + self.trace_weight * np.eye(len(matrix))

    @property
    def constant(self) -> float:
        """The constant term, delta * sum_k a_k."""
        return self.offset * float(np.sum(self.near))

    def value(self, A: ArrayLike) -> float:
        """The objective f at a PSD matrix A."""
        metric = check_metric(A, self.pairs.n_features)
        u = quadratic_forms(metric, self.differences) + self.offset
        losses = float(self.far @ dissimilar_loss(u))
        return float(np.vdot(self.linear_matrix, metric)) + self.constant + losses


def state_exponential(problem: ExponentialMStep) -> cp.Problem:
    """State the M-step with the exponential feature in CVXPY, DCP and DPP.

    min <C, A> + delta * sum_k a_k + sum_k b_k t_k  s.t.  e^{-t_k} + e^{-u_k} <= 1, A PSD,

    because t >= -log(1 - e^{-u}) is log_sum_exp(-t, -u) <= 0. The labels +1 reach it through one
    matrix C and one number, both Parameters; the labels -1 pair by pair, through the Parameter b.
    """
    import cvxpy as cp

    m, n_similar = problem.pairs.n_features, len(problem.pairs.similar)
    A = cp.Variable((m, m), PSD=True, name="A")
    C = cp.Parameter((m, m), name="C", value=problem.linear_matrix)
    goal = cp.vdot(C, A) + cp.Parameter(name="delta sum a", value=problem.constant)
    V, far = problem.differences[n_similar:], problem.far[n_similar:]
    if not len(far):
        return cp.Problem(cp.Minimize(goal))
    b, t = cp.Parameter(len(far), nonneg=True, name="b", value=far), cp.Variable(len(far), name="t")
    u = state_squared_distances(A, V) + problem.offset
    likely = cp.log_sum_exp(cp.vstack([-t, -u]), axis=0) <= 0
    return cp.Problem(cp.Minimize(goal + b @ t), [likely])


def certify_exponential(problem: ExponentialMStep, A: ArrayLike) -> Certificate:
    """Certify any PSD matrix: D(w) <= inf f <= f(LL'), with LL' = A to rounding."""
    metric = check_metric(A, problem.pairs.n_features)
    return certify_exponential_factor(problem, scaled_factor(metric))


def certify_exponential_factor(problem: ExponentialMStep, L: FloatArray) -> Certificate:
    """Certify the metric A = LL', given its factor L, an (m, rho) array."""
    try:
        primal_value = up(_value_from_above(problem, L))
    except OverflowError:
        primal_value = math.inf
    anchor = Fraction(problem.offset) * sum_bounds(problem.near)[0]
    certificate = Certificate(primal_value, down(anchor), "w = 0", L)
    w = _feasible_weights(problem, L)
    if w is not None:
        on_ray = LowerBound(down(anchor + _dual_gain(problem, w)), "ray through the gradient")
        certificate = certificate.with_bound_of(on_ray)
    return certificate.checked()


def _value_from_above(problem: ExponentialMStep, L: FloatArray) -> Fraction:
    """An upper bound on f(LL'), with every rounding error allowed for."""
    lower, upper = squared_lengths(L, problem.differences)
    u = np.minimum((lower + problem.offset) * (1.0 - 4.0 * UNIT), LARGEST_SCORE)
    with np.errstate(over="ignore"):
        linear, squares = problem.near * upper, np.square(L).ravel()
    value = sum_bounds(linear, 1)[1] + Fraction(problem.trace_weight) * sum_bounds(squares, 1)[1]
    value += Fraction(problem.offset) * sum_bounds(problem.near)[1]
    return value + sum_bounds(problem.far * dissimilar_loss(u), LOSS_ROUNDINGS)[1]


def _feasible_weights(problem: ExponentialMStep, L: FloatArray) -> FloatArray | None:
    """Find feasible w >= 0, with C - sum_k b_k w_k v_k v_k' proven PSD; or None.

    Each is at most tau times that of LL', rounded, and the matrix is proven PSD at that.
    """
    V, C = problem.differences, problem.linear_matrix
    if not np.all(np.isfinite(C)):
        return None
    T = unit_basis(C)
    M = moment_along(T, V, problem.near, ridge=problem.trace_weight)
    u = squared_lengths(L, V)[0] + problem.offset
    with np.errstate(over="ignore", divide="ignore"):
        start = np.maximum(dissimilar_slope(u), LEAST_WEIGHT)
        tau = proven_step(*M, *moment_along(T, V, problem.far * start))
        if tau is None:
            return None
        w = np.minimum(tau * start, 1.0 / np.expm1(problem.offset))
    return np.where(w > NO_WEIGHT, w, 0.0)


def _dual_gain(problem: ExponentialMStep, w: FloatArray) -> Fraction:
    """A lower bound on sum_k b_k (h(w_k) - delta w_k)."""
    entropies = sum_bounds(problem.far * geometric_entropy(w), ENTROPY_ROUNDINGS)[0]
    return entropies - Fraction(problem.offset) * sum_bounds(problem.far * w, 1)[1]


def solve_exponential(
    problem: ExponentialMStep, tol: float = 1e-6, max_iter: int = 5000
) -> MStepSolution:
    """Minimize f by projected gradient steps, until the certified gap is small.

    With A = T B T', f is <M, B> + sum_k b_k g(z_k'Bz_k + delta) + constant, M = T'CT = I to
    rounding. Each step tries twice the length of the last one.
    """
    clock = time.perf_counter()
    T = unit_basis(problem.linear_matrix)
    Z, b, delta = problem.differences @ T, problem.far, problem.offset
    M = symmetrize(moment(Z, problem.near) + problem.trace_weight * (T.T @ T))

    def value_and_gradient(B: FloatArray) -> tuple[float, FloatArray]:
        """The gradient alone, by which steps are judged."""
        w = b * dissimilar_slope(quadratic_forms(B, Z) + delta)
        return math.nan, M - symmetrize(moment(Z, w))

    B = np.zeros_like(T)
    current, iteration = Iterate(B, B, *value_and_gradient(B)), 0
    curvature = 1.0 / (np.expm1(delta) * -np.expm1(-delta))  # g''(delta), the largest on the cone
    L = curvature * float(np.sum(b * np.sum(Z**2, axis=1) ** 2)) + 1e-300
    certificate = certify_exponential_factor(problem, B)
    while certificate.relative_gap > tol and iteration < max_iter:
        iteration += 1
        current, L = projected_step(value_and_gradient, project, current, L / 2.0, False)
        certificate = certify_exponential_factor(problem, T @ factor(current.B).T)
    is_closed = certificate.relative_gap <= tol
    solution = MStepSolution(
        found=certificate.metric,
        value=certificate.primal_value,
        certificate=certificate,
        status=Status.CERTIFIED if is_closed else Status.ITERATION_LIMIT,
        solver="projected-gradient",
        solver_status="gap closed" if is_closed else "iteration limit",
        iterations=iteration,
        seconds=time.perf_counter() - clock,
        message=""
        if is_closed
        else "Raise max_iter, tol or trace_weight, or standardize the features.",
    )
    solution.warn_unless_certified(tol, stacklevel=2)
    return solution
