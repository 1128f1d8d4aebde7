"""What a certificate says, and the dual points that are proven feasible, which it rests on.

With r_k = 1 - p_k the dual of the M-step is a maximum-entropy problem,

    maximize  D(r) = sum_k c_k H(r_k) + eta * (sum_k c_k r_k - kappa)       over r in [0, 1]^N
    subject to  R + sum_k c_k (q_k - r_k) v_k v_k'  PSD.

At LL' the natural candidate is r_k = sigma(-s_k), whose matrix is the gradient of f. Where that is
not proven PSD, r is moved toward a point that is feasible anyway: r = 0 (which is p = 1), or r = q
(p = b/c). Eigenvalues only choose the step; a verified Cholesky factorization proves it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self, TypeAlias

import numpy as np
import scipy

from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray, IntArray, read_only
from ..numerics.exact_rank import component_roots
from ..numerics.psd_cone import symmetrize
from ..pairs.labeled_pairs import LabeledPairs
from ..pairs.pair_set import PairSet
from ..proof.rounding import FEW_ROUNDINGS, UNIT, gamma
from ..proof.verified_psd import is_proven_positive_definite, power_of_two_scale
from .pair_bounds import PairBounds, bound_pairs
from .written import LowerBound, m_step_file


@dataclass(frozen=True)
class Certificate:
    """Bounds on the optimum of an M-step: it lies in [dual_value, primal_value].

    Attributes
    ----------
    primal_value : float
        An upper bound on f(LL'), L = `factor`.
    dual_value : float
        A lower bound on D at a dual point that is proven feasible, so no PSD matrix has a smaller
        f. With penalties, F takes the place of f, and D minus their conjugates that of D.
    dual_point : str
        Which dual point: "gradient" (r = sigma(-s), which needed no correction), "toward p = 1",
        "toward p = b/c" or "p = b/c"; empty where nothing could be proven.
    factor : (m, rho) array
        L, its entries taken as exact: LL' is PSD, and as near to A as rounding and the constraints
        among the penalties allow.
    objective : MStepObjective or None
        The M-step.
    lower : LowerBound or None
        How to find the dual point again; None if nothing could be proven.

    Examples
    --------
    >>> from seraph_cvx import MStepObjective, PairSet, certify
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> bounds = certify(MStepObjective(pairs), [[0.92]])
    >>> f"{bounds.dual_value:.3f} <= optimum <= {bounds.primal_value:.3f}"
    '2.757 <= optimum <= 2.759'
    >>> bounds.duality_gap < 0.002
    True
    """

    primal_value: float
    dual_value: float
    dual_point: str
    factor: FloatArray = field(default_factory=partial(np.zeros, (0, 0)), repr=False, compare=False)
    objective: MStepObjective | None = field(default=None, kw_only=True, repr=False, compare=False)
    lower: LowerBound | None = field(default=None, kw_only=True, repr=False, compare=False)

    def __post_init__(self) -> None:
        read_only(self.factor)

    @property
    def metric(self) -> FloatArray:
        """The metric LL', as computed."""
        return symmetrize(self.factor @ self.factor.T)

    @property
    def duality_gap(self) -> float:
        """An upper bound on f(LL') - inf f: primal_value - dual_value, rounded up."""
        gap = self.primal_value - self.dual_value
        return gap if gap in (0.0, math.inf) else math.nextafter(gap, math.inf)

    @property
    def relative_gap(self) -> float:
        """The gap relative to the value: duality_gap / max(1, |primal_value|), rounded up."""
        gap, size = self.duality_gap, max(1.0, abs(self.primal_value))
        return gap if gap in (0.0, math.inf) else math.nextafter(gap / size, math.inf)

    def with_bound_of(self, other: Certificate | LowerBound) -> Self:
        """The certificate, with the other's lower bound on the same M-step if that is better."""
        if not other.dual_value > self.dual_value:
            return self
        lower = (
            other.lower if isinstance(other, Certificate) else replace(other, factor=self.factor)
        )
        return replace(self, dual_value=other.dual_value, dual_point=other.dual_point, lower=lower)

    def alone(self) -> Self:
        """The same certificate, of an M-step without what that shares with others."""
        own = None if self.objective is None else self.objective.alone()
        return replace(self, objective=own)

    def to_json(self) -> str:
        """The M-step and the numbers of the proof, for :func:`seraph_cvx.check_certificate`.

        Examples
        --------
        >>> import json
        >>> from seraph_cvx import MStepObjective, PairSet, certify
        >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
        >>> list(json.loads(certify(MStepObjective(pairs), [[0.92]]).to_json()))
        ['format', 'version', 'm_step', 'claim', 'primal', 'dual']
        """
        if self.objective is None:
            raise ValueError(
                "This certificate was made without an M-step: write that of certify(objective, A), "
                "or of a model, model.certificate_."
            )
        return m_step_file(self.objective, self.primal_value, self.factor, self.lower)

    def checked(self, culprits: str = "") -> Self:
        """The certificate itself; an ArithmeticError if its bounds contradict each other.

        `culprits` are the user's own penalties, whose methods the bounds rest on.
        """
        if self.dual_value > self.primal_value:
            cause = (
                f"So {culprits} is not convex, or its value, subgradient and conjugate do not "
                "agree: seraph_cvx.penalties.check_penalty shows where."
                if culprits
                else "This is a defect of seraph_cvx: please report it with the data."
            )
            raise ArithmeticError(
                f"The lower bound {self.dual_value!r} is above the upper bound "
                f"{self.primal_value!r}. {cause}"
            )
        return self

    def _repr_html_(self) -> str:
        from ..display.cards import certificate_card

        return certificate_card(self)


MARGINS = (1.0, 4.0, 64.0)
"""How much more than the errors a step leaves to the proof, one try each: nothing hangs on them,
since each step is proven."""

MOST_PAIRS = 1 << 17
"""Pairs in the span of the similar ones up to which an M-step of them is listed: 2 MB of rows."""

Errors: TypeAlias = Sequence[Callable[[FloatArray], float]]
"""Errors of the parts of a matrix, each relative to a diagonal one."""


def lower_bounds(objective: MStepObjective, bounds: PairBounds | None) -> Iterator[LowerBound]:
    """Lower bounds on the dual value at feasible points, one after the other."""
    is_psd = objective.linear_penalty.is_proven_psd()
    if is_psd:
        at_labels = 0.0 if bounds is None else bounds.value_at_labels
        yield LowerBound(at_labels, "p = b/c", step=0.0)
    coordinates = objective.geometry.dual_coordinates
    if bounds is None or coordinates is None:  # f(LL') overflows, or R = 0 and nothing spans
        return
    R, R_error = coordinates.regularizer, coordinates.regularizer_error
    N, S = bounds.labels.matrix, bounds.dual_matrix
    N_error, S_error = bounds.labels.error.relative_to, bounds.dual_error.relative_to
    step = _proven_step(R + N, [R_error, N_error], S, [S_error])
    if step is not None and step < 1.0:
        yield LowerBound(bounds.value_toward_one(step, objective.threshold), "toward p = 1", step)
    if step != 1.0 and is_psd and not objective.linear_penalty.is_zero():
        step = _proven_step(R, [R_error], S - N, [S_error, N_error])
        if step is not None and step < 1.0:
            yield LowerBound(bounds.value_toward_labels(step), "toward p = b/c", step)
    if step == 1.0:  # nothing had to be moved
        yield LowerBound(bounds.tangent_value, "gradient")


def _proven_step(M: FloatArray, M_errors: Errors, S: FloatArray, S_errors: Errors) -> float | None:
    """The largest tau in (0, 1], nearly, with M - tau*S proven PSD; None if none is."""
    D = np.diag(M)
    if not np.all(D > 0.0):
        return None
    error = S_error = 0.0
    for error_of in M_errors:
        error += error_of(D)
    for error_of in S_errors:
        S_error += error_of(D)
    if is_proven_positive_definite(M - S, (error + S_error) * D):
        return 1.0
    lengths = np.sqrt(D)
    # about the share of the diagonal that the proof takes
    sums = np.sum(np.abs(M - S) / lengths, axis=1) / lengths
    room = 8.0 * gamma(len(M) + FEW_ROUNDINGS) * float(np.max(sums, initial=1.0))
    for margin in MARGINS:
        spare = error + margin * room
        largest = largest_eigenvalue(S + np.diag(S_error * D), M - np.diag(spare * D))
        if largest is None:
            return None
        step = min(1.0, (1.0 - 4.0 * UNIT) / largest) if largest > 0.0 else 1.0
        if step > 0.0 and is_proven_positive_definite(M - step * S, (error + step * S_error) * D):
            return step
    return None


def largest_eigenvalue(S: FloatArray, M: FloatArray) -> float | None:
    """The largest eigenvalue of the pencil S - t*M; None where M is not positive definite."""
    if not len(S):
        return 0.0
    if not np.all(np.isfinite(S)) or not np.all(np.isfinite(M)) or not np.all(np.diag(M) > 0.0):
        return None
    scale = power_of_two_scale(np.diag(M))
    try:
        F = np.linalg.cholesky(M * scale[:, None] * scale)
    except np.linalg.LinAlgError:
        return None
    reduced = scipy.linalg.lapack.dsygst(S * scale[:, None] * scale, F, lower=1)[0]
    return float(np.linalg.eigvalsh(reduced, UPLO="L")[-1])


def pinned_bounds(objective: MStepObjective, L: FloatArray) -> Iterator[LowerBound]:
    """Lower bounds with r_k = 0 on the pairs that leave the span of the similar ones."""
    if not objective.has_soft_labels and objective.linear_penalty.is_proven_psd():
        for reduced in _reduced_m_steps(objective):
            groups = component_roots(objective.pairs.n_points, reduced.pairs.labeled)
            for bound in lower_bounds(reduced, bound_pairs(reduced, L)):
                yield replace(bound, groups=groups)


def _reduced_m_steps(objective: MStepObjective) -> Iterator[MStepObjective]:
    """The M-steps of the pairs that stay in the span of the similar ones, with R = 0.

    An unlabeled pair of weight w with q = 0 becomes a dissimilar one of confidence w.
    """
    # Every pair of which q = 0 adds a term log(1 + e^{-s}) >= 0 to f, and so does <R, A> where R is
    # PSD: without some of them f is smaller everywhere. If R is zero, or as good as zero, and the
    # similar pairs do not span the space, this gives better bounds: sum_S c_k v_k v_k' - S(r) can
    # be PSD only if r_k = 0 on every pair that leaves the span of the similar pairs. Which pairs
    # stay in it is decided without rounding, in two ways: two points that a chain of similar pairs
    # joins differ by a sum of similar differences; and two points that are equal in every feature
    # in which all similar pairs are equal differ in the others only. A span that is oblique to the
    # features is not looked for.
    pairs = objective.pairs
    i, j = pairs.similar.T
    if not len(i):
        return
    fixed = np.all(pairs.points[i] == pairs.points[j], axis=0)
    equal = np.unique(pairs.points[:, fixed], axis=0, return_inverse=True)[1].reshape(-1)
    of_similar, of_dissimilar = np.split(pairs.labeled_weights, [len(i)])
    for group in (component_roots(pairs.n_points, pairs.similar), equal):
        unlabeled = _unlabeled_within(objective, group)
        if unlabeled is None:
            continue
        first, second = group[pairs.dissimilar].T
        kept = first == second
        c = [of_similar, of_dissimilar[kept], np.full(len(unlabeled), objective.mu)]
        apart = np.vstack([pairs.dissimilar[kept], unlabeled])
        if len(i) + len(apart) <= MOST_PAIRS:
            labeled = LabeledPairs(pairs.similar, apart, np.concatenate(c))
            yield MStepObjective(
                PairSet(pairs.points, labeled),
                unlabeled_weight=0.0,
                trace_weight=0.0,
                threshold=objective.threshold,
            )


def _unlabeled_within(objective: MStepObjective, group: IntArray) -> IntArray | None:
    """The unlabeled pairs that count, of points of one group; None if they are too many."""
    pairs, none = objective.pairs, np.empty((0, 2), dtype=np.int64)
    if objective.mu == 0.0:
        return none
    sizes = np.bincount(group)
    if np.sum(sizes * (sizes - 1)) > 2 * MOST_PAIRS:
        return None
    members = (np.flatnonzero(group == number) for number in np.flatnonzero(sizes > 1))
    within = (points[np.column_stack(np.triu_indices(len(points), 1))] for points in members)
    rows = np.vstack([none, *within])
    code = [pairs.n_points, 1]
    return rows[~np.isin(rows @ code, pairs.labeled @ code)]
