"""The M-step with similarity that decays exponentially: stated, certified and solved.

With u = d + delta, d = v'Av and delta > 0, the model p(+1) = e^{-u} has

    -ln p(+1) = u,          -ln p(-1) = g(u) = -log(1 - e^{-u}),

the one affine, the other convex. It is the feature phi(d) - eta = log(e^u - 1) in the place of the
d - eta of (4); :mod:`.feature_functions` says when such an exchange keeps (11) convex. Here every
similar pair pulls with the force 1, which under (4) is the limit for distant pairs. With b_k the
weight of the label -1 of pair k and a_k that of its label +1, (11) becomes

    f(A) = <C, A> + delta * sum_k a_k + sum_k b_k g(v_k'Av_k + delta)                 over A PSD,
    C = sum_k a_k v_k v_k' + lambda I.

**The dual.** For w >= 0 the infimum of g(u) + w u over u > 0 is at e^u = 1 + 1/w and equals
h(w) = (1 + w) log(1 + w) - w log w, so that the Lagrange dual reads

    maximise    D(w) = sum_k b_k (h(w_k) - delta w_k) + delta * sum_k a_k             over w >= 0
    subject to  C - sum_k b_k w_k v_k v_k'  PSD.

h is the entropy of the geometric distribution with mean w; for (4) the binary entropy stands there.
A = I is strictly feasible and f >= 0, so the optima agree; lambda > 0 makes f coercive.

**The certificate.** At a PSD A take w_k = -g'(u_k) = 1 / (e^{u_k} - 1), whose matrix is the
gradient of f. The anchor w = 0 is always feasible. Each term of D grows up to 1 / (e^delta - 1), so
on the ray from the anchor through w, cut off there, the best point is where the ray leaves the
feasible set: with T'CT = I and z = T'v, at 1 / lambda_max(sum_k b_k w_k z_k z_k') times w.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from ..certificate import ROUNDING, Certificate
from ..checks import FloatArray, check_number
from ..pairs import PairSet
from ..psd_cone import check_metric, symmetrise
from ..soft_labels import check_soft_labels

if TYPE_CHECKING:
    import cvxpy as cp

LEAST_PUSH = 1e-100
"""Smaller ones would be lost in the sum that the dual point is judged by."""


def dissimilar_loss(u: FloatArray) -> FloatArray:
    """g(u) = -log(1 - e^{-u}) = -ln p(-1), for u > 0.

    Examples
    --------
    >>> dissimilar_loss(np.log([2.0, 4.0])).round(4)
    array([0.6931, 0.2877])
    """
    return np.asarray(-np.log(-np.expm1(-u)))


def dissimilar_push(u: FloatArray) -> FloatArray:
    """w = -g'(u) = 1 / (e^u - 1), for u > 0: how hard a dissimilar pair pushes.

    Examples
    --------
    >>> dissimilar_push(np.array([np.log(2.0), 1e4]))
    array([1., 0.])
    """
    return np.asarray(np.exp(-u) / -np.expm1(-u))


def geometric_entropy(w: FloatArray) -> FloatArray:
    """h(w) = (1 + w) log(1 + w) - w log w = inf over u > 0 of g(u) + w u, for w >= 0.

    Examples
    --------
    >>> geometric_entropy(np.array([0.0, 1.0])).round(4)
    array([0.    , 1.3863])
    """
    return np.asarray((1.0 + w) * np.log1p(w) - xlogy(w, w))


@dataclass(frozen=True, eq=False, repr=False)
class ExponentialMStep:
    """f(A) = <C, A> + delta * sum_k a_k + sum_k b_k g(v_k'Av_k + delta): (11) with p(+1) = e^{-u}.

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
        delta > 0: two points in the same place are similar with probability e^{-delta}.

    Attributes
    ----------
    differences, near, far : arrays
        v_k, a_k and b_k: of the similar, the dissimilar and, with mu > 0, the unlabeled pairs.

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
        """C = sum_k a_k v_k v_k' + lambda I."""
        V = self.differences
        return symmetrise((V * self.near[:, None]).T @ V) + self.trace_weight * np.eye(V.shape[1])

    @property
    def constant(self) -> float:
        """delta * sum_k a_k."""
        return self.offset * float(np.sum(self.near))

    def shifted_distances(self, A: FloatArray) -> FloatArray:
        """u_k = v_k'Av_k + delta."""
        V = self.differences
        return np.asarray(np.maximum(np.einsum("ij,ij->i", V @ A, V), 0.0) + self.offset)

    def value(self, A: ArrayLike) -> float:
        """f(A), at a PSD matrix A."""
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
    """min <C, A> + delta * sum_k a_k + sum_k b_k t_k  s.t.  e^{-t_k} + e^{-u_k} <= 1, A PSD.

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
    """D(w) <= inf f <= f(A), w = min(w_A / lambda_max(sum_k b_k w_k z_k z_k'), 1/(e^delta - 1)).

    Plain NumPy; no solver is trusted. The dual point is kept inside the feasible set by the error
    that its matrix may have, and the dual value lowered by that of the sums.

    Parameters
    ----------
    problem : ExponentialMStep
    A : (m, m) array_like
        Any PSD matrix, however far from the optimum.

    Examples
    --------
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> problem = ExponentialMStep(pairs)
    >>> certify_exponential(problem, [[0.3]]).relative_gap > 0.01
    True
    >>> from seraph_cvx.theory.exponential_solver import solve_exponential
    >>> certify_exponential(problem, solve_exponential(problem).metric).relative_gap <= 1e-6
    True
    """
    metric = check_metric(A, problem.pairs.n_features)
    w = np.maximum(dissimilar_push(problem.shifted_distances(metric)), LEAST_PUSH)
    T, noise = whitened_axes(problem.pull)
    Z, b = problem.differences @ T, problem.far
    largest = float(np.linalg.eigvalsh(symmetrise((Z * (b * w)[:, None]).T @ Z))[-1])
    w = np.minimum(w / max(largest * (1.0 + noise), LEAST_PUSH), 1.0 / np.expm1(problem.offset))
    entropies, costs = b * geometric_entropy(w), problem.offset * b * w
    value = problem.value(metric)
    dual = float(np.sum(entropies) - np.sum(costs)) + problem.constant
    size = abs(value) + float(np.sum(np.abs(problem.pull * metric)) + np.sum(entropies + costs))
    return Certificate(value, dual - ROUNDING * size, "ray through the gradient")


def whitened_axes(C: FloatArray) -> tuple[FloatArray, float]:
    """T with T'CT = I, and how far a sum of z z', z = T'v, may be off relative to its size."""
    scale = 1.0 / np.sqrt(np.diag(C))
    eigenvalues, vectors = np.linalg.eigh(C * scale[:, None] * scale)
    if eigenvalues[0] <= ROUNDING * len(C):
        raise ValueError(
            "The trace weight is lost in rounding beside the spread of the similar pairs: raise "
            "trace_weight, or standardize the features."
        )
    noise = ROUNDING * len(C) * float(eigenvalues[-1] / eigenvalues[0])
    return scale[:, None] * vectors / np.sqrt(eigenvalues), noise
