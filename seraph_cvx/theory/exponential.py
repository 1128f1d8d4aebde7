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

**The bound.** At a PSD A take w_k = -g'(u_k) = 1 / (e^{u_k} - 1), whose matrix is the gradient of
f. w = 0 is always feasible, and each term of D grows up to 1 / (e^delta - 1), so on the ray from 0
through w, up to that value, the best point is where the ray leaves the feasible set: at tau*w, tau
the largest with C - tau * sum_k b_k w_k v_k v_k' PSD. All this is in floating point;
`certify_problem(state_exponential(problem))` proves bounds for small data.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from scipy.optimize import minimize

from ..model.posterior import check_soft_labels
from ..numerics.checks import FloatArray, check_number
from ..numerics.psd_cone import check_metric, symmetrize
from ..pairs.pair_set import PairSet
from ..paper import differences
from .claim_data import distances, moment, state_squared_distances

if TYPE_CHECKING:
    import cvxpy as cp


def dissimilar_loss(u: FloatArray) -> FloatArray:
    """The loss of a dissimilar pair, g(u) = -log(1 - e^{-u}), accurate for all u > 0."""
    far = -np.log1p(-np.minimum(np.exp(-u), 0.5))
    return np.asarray(np.where(u > np.log(2.0), far, -np.log(-np.expm1(-u))))


def dissimilar_slope(u: FloatArray) -> FloatArray:
    """The weight of a dissimilar pair in the gradient: w = -g'(u) = 1 / (e^u - 1), for u > 0."""
    return np.asarray(np.exp(-u) / -np.expm1(-u))


def geometric_entropy(w: FloatArray) -> FloatArray:
    """The entropy h(w) = (1 + w) log(1 + w) - w log w, the least g(u) + w u over u > 0."""
    return np.asarray(np.log1p(w) + w * np.log1p(1.0 / np.maximum(w, 1e-200)))


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
        u = distances(self.differences, metric) + self.offset
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


class ExponentialSolution(NamedTuple):
    """A metric, f there, and a lower bound on f by the dual; all in floating point."""

    metric: FloatArray
    value: float
    dual_value: float

    @property
    def relative_gap(self) -> float:
        """The duality gap relative to max(1, |value|)."""
        return (self.value - self.dual_value) / max(1.0, abs(self.value))


def lower_bound(problem: ExponentialMStep, A: ArrayLike) -> float:
    """Bound the optimum from below at any PSD matrix A, by D on the ray through the gradient."""
    V, b, delta = problem.differences, problem.far, problem.offset
    w = np.maximum(dissimilar_slope(distances(V, np.asarray(A)) + delta), 1e-100)
    matrix = symmetrize(moment(V, b * w))
    largest = float(eigh(matrix, problem.linear_matrix, eigvals_only=True)[-1])
    w = np.minimum(w / max(largest, 1e-300), dissimilar_slope(np.array(delta)))
    return problem.constant + float(b @ (geometric_entropy(w) - delta * w))


def solve_exponential(problem: ExponentialMStep, max_iter: int = 2000) -> ExponentialSolution:
    """Minimize f over A = TFF'T', T'CT = I, by L-BFGS on F: ||F||^2 + sum_k b_k g(u_k)."""
    eigenvalues, vectors = np.linalg.eigh(problem.linear_matrix)
    T = vectors / np.sqrt(eigenvalues)
    Z, b, m = problem.differences @ T, problem.far, len(T)

    def value_and_gradient(x: FloatArray) -> tuple[float, FloatArray]:
        F = x.reshape(m, m)
        u = np.sum(np.square(Z @ F), axis=1) + problem.offset
        gradient = F - moment(Z, b * dissimilar_slope(u)) @ F
        return float(np.sum(F * F) + b @ dissimilar_loss(u)), 2.0 * gradient.ravel()

    options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "ftol": 1e-16, "gtol": 1e-12}
    start = np.eye(m).ravel()
    found = minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", options=options)
    L = T @ found.x.reshape(m, m)
    metric = symmetrize(L @ L.T)
    return ExponentialSolution(metric, problem.value(metric), lower_bound(problem, metric))
