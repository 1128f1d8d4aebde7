"""The objective of the M-step (11); the paper's (7) and J are the same with other losses.

With s_k(A) = v_k' A v_k - eta, c_k the weight of pair k and b_k the weight of its label -1, the
M-step is the convex program

    f(A) = sum_k c_k log(1 + e^{s_k}) - <G, A> + eta*beta + <R, A>        over A PSD.

Since log(1 + e^s) = s + log(1 + e^{-s}), it is also

    f(A) = sum_k c_k log(1 + e^{-s_k}) + <M, A> - eta*kappa,
    M = sum_k (c_k - b_k) v_k v_k' + R,      kappa = sum_k (c_k - b_k),

which is the form computed: s_k >= -eta on the cone, so that no term is large and nothing
cancels. The matrix M is M(1) of the dual and gives the recession function <M, D> of f.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, cast

import numpy as np
import scipy  # imports its parts when they are first used
from numpy.typing import ArrayLike

from ..engine.distances import Factor
from ..engine.moments import PairMoments, Regularizer, WhitenedBasis, spanning_directions
from ..engine.pair_sums import PairSums
from ..engine.passes import Limit, PairLoss
from ..numerics.checks import LARGEST_SUM, MOST, FloatArray, check_number, read_only
from ..numerics.exact_rank import link_differences, rank_unless_spanning
from ..numerics.psd_cone import check_metric, symmetrize
from ..pairs.pair_set import PairSet
from .label_bounds import LabelBounds, LabelEnclosure, Thresholds, bound_labels
from .m_step_family import Geometry, MStepFamily
from .pair_program import PairProgram, PenalizedProgram
from .posterior import (
    LOGISTIC,
    EntropyLoss,
    SharpenedLoss,
    SoftLabels,
    SoftLabelSums,
    check_soft_labels,
    tabulate,
)

if TYPE_CHECKING:
    from ..penalties.penalty import Penalty

RANK_TOLERANCE = 1e-12
"""An eigenvalue of M(1) below this, in coordinates where C = I, counts as zero."""


@dataclass(frozen=True, eq=False, repr=False)
class MStepObjective:
    """The objective f(A) of the M-step (11), to be minimized over A PSD: f = -F in the paper.

    Parameters
    ----------
    pairs : PairSet
    soft_labels : (n_unlabeled,) array_like, optional
        The soft label q(+1) of each row of ``pairs.unlabeled``. None: q(-1) = 1, the paper's start.
        Refused for sampled pairs.
    previous_metric : (m, m) array_like, optional
        Instead of `soft_labels`: a PSD matrix whose soft labels (10) are used; they are computed
        block by block and never stored. The objective of a fit keeps a factor of it;
        ``np.asarray(objective.previous_metric)`` is the matrix.
    sharpness : float, optional
        The sharpness of those soft labels; None is the paper's 1 + mu.
    unlabeled_weight : float or "ratio"
        The weight mu of an unlabeled pair; "ratio" is #(S u D) / #U, and 0 when U is empty.
    trace_weight : float
        The weight lambda >= 0 of the trace.
    threshold : float
        The squared distance eta > 0 at which a pair is as likely similar as dissimilar.
    n_jobs : int, optional
        The number of threads that sum over blocks of pairs.
    manifold_term : (m, m) array_like, optional
        The PSD matrix nu*X'LX, which is added to R; see
        :func:`seraph_cvx.penalties.manifold_term`.
    penalties : sequence of Penalty
        Building blocks that are added, see :mod:`seraph_cvx.penalties`; the value, the solvers and
        the certificate are then those of F(A) = f(A) + sum_j P_j(A).
    family : MStepFamily, optional
        What M-steps on the same pairs share, taken from another objective. It is computed again if
        it was made with other pairs, mu, eta, manifold term or threads.

    Attributes
    ----------
    critical_trace_weight : float
        The smallest trace weight at which A = 0 is optimal.
    attains_optimum : bool
        Whether some PSD matrix minimizes f.
    falling_direction : (m,) array or None
        A unit vector u such that f(A + t uu') decreases forever as t grows, or None.
    lipschitz_bound, smoothness_bound : float
        Lipschitz constants of f, eq. (12), and of its gradient, in the Frobenius norm.
    mu : float
        The weight of an unlabeled pair, as a number.
    regularizer : (m, m) array
        The matrix R of the linear term <R, A>: lambda*I + nu*X'LX.
    pair_moment, label_matrix : (m, m) arrays
        The second moments C = sum_k c_k v_k v_k' and G = sum_k b_k v_k v_k'.

    Examples
    --------
    >>> from seraph_cvx import MStepObjective, PairSet
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> objective = MStepObjective(pairs)
    >>> round(objective.value([[1.0]]), 6)
    2.768322
    """

    pairs: PairSet
    soft_labels: FloatArray | None = None
    previous_metric: FloatArray | Factor | None = None
    sharpness: float | None = None
    unlabeled_weight: float | str = "ratio"
    trace_weight: float = 1.0
    threshold: float = 1.0
    n_jobs: int | None = None
    manifold_term: FloatArray | None = None
    penalties: Sequence[Penalty] = ()
    family: MStepFamily = None  # type: ignore[assignment]
    mu: float = field(init=False, default=0.0)
    has_soft_labels: bool = field(init=False, default=False)  # whether some q(+1) may be > 0
    limit: Limit = field(init=False)  # of all sums over the pairs; shared with the family
    pair_total: float = field(init=False)  # the total weight of all pairs: sum_k c_k
    # whether all that minimizes f lies in the span of the points, of less than m dimensions
    is_wide: bool = field(init=False)
    # the coordinates in which f is minimized and certified; shared with the family, as is the rest
    geometry: Geometry = field(init=False)
    sums: PairSums = field(init=False)  # the pairs: in this process where q is given one by one
    moments: PairMoments = field(init=False)  # the sums that do not depend on the soft labels
    linear_penalty: Regularizer = field(init=False)  # R = lambda*I + manifold term, kept apart

    def __post_init__(self) -> None:
        pairs, penalties = self.pairs, []
        trace_weight = check_number(self.trace_weight, "trace_weight", minimum=0.0)
        if self.penalties:
            from ..penalties.penalty import Penalty
        for block in self.penalties:
            if not isinstance(block, Penalty):
                raise TypeError(
                    f"penalties holds {block!r}, which is not a Penalty: give blocks of "
                    "seraph_cvx.penalties, such as Ridge(0.1), or of your own class."
                )
            penalties.append(copy.copy(block.for_points(pairs.points)))
        family = MStepFamily.of(
            *(pairs, self.unlabeled_weight, self.threshold, self.manifold_term),
            *(self.n_jobs, self.family),
        )
        a = 1.0 + family.mu if self.sharpness is None else self.sharpness
        normalized = {
            "family": family,
            "unlabeled_weight": family.mu,
            "mu": family.mu,
            "limit": family.sums.limit,
            "threshold": family.threshold,
            "manifold_term": family.manifold_term,
            "trace_weight": trace_weight,
            "sharpness": check_number(a, "sharpness", minimum=0.0, strict=True),
            "penalties": tuple(penalties),
        }
        is_given = self.soft_labels is not None or self.previous_metric is not None
        normalized["has_soft_labels"] = is_given and family.mu > 0.0
        if self.soft_labels is not None and self.previous_metric is not None:
            raise ValueError("Give either soft_labels or previous_metric, not both.")
        if self.soft_labels is not None:
            normalized["soft_labels"] = check_soft_labels(self.soft_labels, pairs)
        previous, m = self.previous_metric, pairs.n_features
        if isinstance(previous, Factor) and len(previous.L) == m and np.isfinite(previous.L).all():
            normalized["previous_metric"] = Factor(read_only(previous.L.copy()))
        elif previous is not None:
            normalized["previous_metric"] = check_metric(previous, m, "previous_metric", repair=0.0)
        on_host, spans_all = self.soft_labels is not None, bool(penalties)
        geometry = family.geometry(trace_weight, on_host=on_host, spans_all=spans_all)
        is_plain = trace_weight > 0.0 and family.manifold_term is None and not penalties
        vars(self).update(
            normalized,
            is_wide=is_plain and pairs.n_features > pairs.n_points,
            pair_total=pairs.labeled_total + family.mu * pairs.n_unlabeled,
            geometry=geometry,
            sums=geometry.sums,
            moments=geometry.moments,
            linear_penalty=geometry.linear_penalty,
        )
        self._check_sizes()

    def _check_sizes(self) -> None:
        """Refuse weights that overflow in the unit of the points."""
        ranges = self.pairs.feature_ranges
        least = float(np.min(ranges, where=ranges > 0.0, initial=np.inf))
        if self.trace_weight > MOST * least**2:
            raise ValueError(
                f"trace_weight={self.trace_weight:g} is too large for a feature that varies by "
                f"{least:.3g}: it counts by its square. Lower it, or multiply the features."
            )
        if not self.threshold * self.pair_total <= LARGEST_SUM:
            raise ValueError(
                f"threshold={self.threshold:g} is too large for pairs whose weights add up to "
                f"{self.pair_total:.3g}: their losses overflow. Divide all weights by one number, "
                "trace_weight too, which leaves the metric as it is; or divide the features."
            )
        if self.manifold_term is not None:
            penalty, spread = np.diag(self.manifold_term), np.diag(self.moments.everything)
            too_large = np.flatnonzero((spread > 0.0) & (penalty / MOST > spread))
            if len(too_large):
                a = too_large[0]
                raise ValueError(
                    f"manifold_term[{a}, {a}]={penalty[a]:g} is too large for a feature whose "
                    f"squared distances, times the weights of pairs, add up to {spread[a]:.3g}. "
                    "Lower the weight of the manifold term, or multiply the features."
                )

    def value(self, A: ArrayLike) -> float:
        """The value f(A), eq. (11) with the sign reversed, plus the penalties, at any matrix A."""
        return self.penalized_value(self.program, A)

    def gradient(self, A: ArrayLike) -> FloatArray:
        """The gradient of f at A, that of (11) with the sign reversed.

        It is sum_k c_k sigma(s_k) v_k v_k' - G + R, plus a subgradient of each penalty.
        """
        return self.value_and_gradient(A)[1]

    def value_and_gradient(self, A: ArrayLike) -> tuple[float, FloatArray]:
        """The value and the gradient of f at A, in one sweep."""
        return self.penalized_gradient(self.program, A)

    def penalized_value(self, program: PairProgram, A: ArrayLike) -> float:
        """The value at A of a program of these pairs, plus that of the penalties."""
        matrix = self.check(A)
        return program.value(matrix) + sum(block.value(matrix) for block in self.penalties)

    def penalized_gradient(self, program: PairProgram, A: ArrayLike) -> tuple[float, FloatArray]:
        """That value and its gradient, in one sweep."""
        matrix = self.check(A)
        value, gradient = program.value_and_gradient(matrix)
        for block in self.penalties:
            value, gradient = value + block.value(matrix), gradient + block.subgradient(matrix)
        return value, gradient

    def with_trace_weight(self, trace_weight: float) -> MStepObjective:
        """The same M-step with another lambda, of the same family."""
        return replace(self, trace_weight=trace_weight)

    def with_soft_labels_of(self, metric: FloatArray | Factor) -> MStepObjective:
        """The M-step after the E-step (10) at `metric`, of the same family."""
        return replace(self, soft_labels=None, previous_metric=metric)

    def with_penalties(self, penalties: Sequence[Penalty]) -> MStepObjective:
        """The same M-step with other penalties, of the same family."""
        return replace(self, penalties=penalties)

    def alone(self) -> MStepObjective:
        """The same M-step, without sums that others share, and with its points on the host."""
        return replace(self, pairs=replace(self.pairs, device_array=None), family=None)  # type: ignore[arg-type]

    @property
    def directions(self) -> FloatArray:
        """Orthonormal directions (m, k) of the span of the points if this is wide, else I."""
        if not self.is_wide:
            return np.eye(self.pairs.n_features)
        span = self.moments.span if self.mu > 0.0 else None  # else of the labeled points alone
        return spanning_directions(self.pairs.points)[0] if span is None else span

    @property
    def basis(self) -> WhitenedBasis:
        """The whitened coordinates in which f is minimized."""
        return self.geometry.basis

    @cached_property
    def program(self) -> PairProgram:
        """The objective f in the coordinates of the data."""
        return pair_program(self, LOGISTIC)

    @cached_property
    def whitened_program(self) -> PairProgram:
        """The objective f in whitened coordinates B, A = Z B Z'; it has the same infimum."""
        return pair_program(self, LOGISTIC, whitened=True)

    @property
    def pair_moment(self) -> FloatArray:
        """The second moment of all pairs: C = sum_k c_k v_k v_k'."""
        return self.moments.everything

    @cached_property
    def soft_labeling(self) -> SoftLabels:
        """The source of the soft labels q."""
        table = (
            None
            if self.soft_labels is None
            else tabulate(self.soft_labels, self.pairs, self.sums.order)
        )
        a = cast(float, self.sharpness)  # a number since __post_init__
        return SoftLabels(a, self.threshold, self.previous_metric, table)

    @cached_property
    def soft_label_sums(self) -> SoftLabelSums:
        """The sums of q over the unlabeled pairs, the matrix in whitened coordinates."""
        source = self.soft_labeling if self.mu > 0.0 else SoftLabels(1.0, self.threshold)
        return self.family.soft_label_sums(source, self.moments)

    @cached_property
    def label_bounds(self) -> LabelBounds | None:
        """What the labels contribute to every certificate of this M-step; None if it overflows."""
        geometry = self.geometry
        similar, sums = geometry.dual_similar, geometry.dual_sums
        largest = self.moments.largest_weight
        return bound_labels(self.pairs, self.mu, similar, sums, self.label_enclosure, largest)

    @cached_property
    def label_enclosure(self) -> LabelEnclosure | None:
        """Bounds on the soft labels, pair by pair; None where these are zero."""
        if not self.has_soft_labels:
            return None
        return LabelEnclosure(self.soft_labeling, Thresholds.of(self.threshold))

    @cached_property
    def soft_label_matrix(self) -> FloatArray:
        """The soft labels' second moment sum_U q(+1) v v', in the coordinates of the data."""
        back = self.moments.unwhitening
        return read_only(symmetrize(back.T @ self.soft_label_sums.matrix @ back))

    @cached_property
    def regularizer(self) -> FloatArray:
        """The regularizer as a matrix: R = lambda*I + nu*X'LX."""
        return read_only(self.linear_penalty.matrix(self.pairs.n_features))

    @cached_property
    def similar_matrix(self) -> FloatArray:
        """The second moment of pairs weighted as similar: sum_k (c_k - b_k) v_k v_k'."""
        if not self.has_soft_labels:
            return self.moments.similar
        return read_only(symmetrize(self.moments.similar + self.mu * self.soft_label_matrix))

    @cached_property
    def recession_matrix(self) -> FloatArray:
        """The growth of f at infinity: along D it grows like <M(1), D>.

        M(1) = sum_k (c_k - b_k) v_k v_k' + R.
        """
        return read_only(symmetrize(self.similar_matrix + self.regularizer))

    @property
    def recession_total(self) -> float:
        """The total weight of pairs as similar: kappa = sum_k (c_k - b_k)."""
        if not self.has_soft_labels:
            return self.pairs.similar_total
        return self.pairs.similar_total + self.mu * self.soft_label_sums.total

    @property
    def label_matrix(self) -> FloatArray:
        """The second moment of pairs weighted as dissimilar: G = sum_k b_k v_k v_k'."""
        return symmetrize(self.pair_moment - self.similar_matrix)

    @cached_property
    def critical_trace_weight(self) -> float:
        """The smallest trace weight at which A = 0 is optimal.

        A = 0 is optimal <=> lambda >= lambda_max(G - sigma(-eta) sum_k c_k v_k v_k' - nu*X'LX).

        If the right side is negative, or positive only by rounding, it is replaced by zero. With
        penalties, which change the matrix, a ValueError is raised.
        """
        if self.penalties:
            raise ValueError(
                f"The critical trace weight has no closed form with {list(self.penalties)}: give "
                "trace weights as numbers."
            )
        moments, has_labels_alone = self.moments, not self.has_soft_labels
        span = None if self.manifold_term is not None else moments.span
        if span is not None and has_labels_alone:
            moment, push = moments.along(span), moments.similar_along(span)
        else:
            moment, push = self.moments.everything, self.similar_matrix
        if self.manifold_term is not None:
            push = push + self.manifold_term
        pull = scipy.special.expit(self.threshold) * moment - push
        sizes = np.diag(moment) + np.diag(push) + np.abs(np.diag(pull))
        return _largest_eigenvalue(symmetrize(pull), sizes)

    @property
    def attains_optimum(self) -> bool:
        """Whether some PSD A minimizes f: trace_weight > 0, or M(1) has the range of C.

        This is a rank decision: in coordinates where C = I, an eigenvalue of M(1) counts as zero if
        it is below 1e-12, or below the rounding error that nearly collinear features cause. If the
        labels alone decide (no soft labels, manifold term or penalties), the answer is True only if
        exact ranks confirm it. False is not confirmed in this way, and is also the answer for an
        optimum too large for doubles.
        """
        return self.falling_direction is None

    @property
    def zero_eigenvalue(self) -> float:
        """The size up to which an eigenvalue of M(1) in whitened coordinates counts as zero."""
        return max(RANK_TOLERANCE, 16.0 * self.moments.noise)

    @cached_property
    def falling_direction(self) -> FloatArray | None:
        """A unit vector u such that f(A + t uu') decreases forever as t grows, or None.

        With penalties, F takes the place of f; linear constraints are ignored.
        """
        if self.trace_weight > 0.0 or not self.moments.whitening.size:
            return None
        if any(block.is_coercive for block in self.penalties):
            return None
        if any(block.is_diagonal or block.is_sparse for block in self.penalties):
            spread, growth = np.diag(self.moments.everything), np.diag(self.recession_matrix)
            falling = (spread > 0.0) & (growth <= self.zero_eigenvalue * spread)
            return np.eye(len(spread))[np.argmax(falling)] if np.any(falling) else None
        eigenvalues, vectors = np.linalg.eigh(self.whitened_program.recession)
        if eigenvalues[0] <= self.zero_eigenvalue:
            u = self.basis.matrix @ vectors[:, 0]
            return np.asarray(u / np.linalg.norm(u))
        if self.has_soft_labels or self.manifold_term is not None or self.penalties:
            return None
        n_varying = np.count_nonzero(np.diag(self.moments.everything))
        # a million rounding errors from zero needs no exact rank
        is_clear = eigenvalues[0] > 1e6 * self.moments.noise * eigenvalues[-1]
        if is_clear and self.moments.whitening.shape[1] == n_varying:
            return None
        return self._direction_without_similar_pairs()

    def _direction_without_similar_pairs(self) -> FloatArray | None:
        """A direction that other pairs have but no similar one, by exact ranks, or None."""
        points, links = self.pairs.points, self.pairs.labels.similar_links
        counted = self.pairs.labels.labeled_links
        if self.mu > 0.0:
            counted = np.column_stack(np.broadcast_arrays(0, np.arange(len(points))))
        rank = rank_unless_spanning(points, links, counted)
        if rank is None:
            return None
        spread = np.sqrt(np.diag(self.moments.everything))
        scale = np.where(spread > 0.0, spread, 1.0)
        V = link_differences(points, links) / scale
        V = V / np.maximum(np.max(np.abs(V), axis=1, keepdims=True), np.finfo(np.float64).tiny)
        N = np.linalg.svd(np.linalg.qr(V, mode="r"))[2][rank:].T / scale[:, None]
        u = N @ np.linalg.eigh(self.moments.along(N))[1][:, -1]
        return np.asarray(u / np.linalg.norm(u))

    @property
    def lipschitz_bound(self) -> float:
        """A Lipschitz constant of f (Frobenius norm): (12) with lambda*sqrt(m) for lambda*m."""
        return self.pair_total * self.moments.longest + float(np.linalg.norm(self.regularizer))

    @property
    def smoothness_bound(self) -> float:
        """A Lipschitz constant of the gradient, in the Frobenius norm: sum_k c_k ||v_k||^4 / 4."""
        return self.moments.fourth / 4.0

    def __repr__(self) -> str:
        penalties = f", penalties={list(self.penalties)}" if self.penalties else ""
        return (
            f"MStepObjective({self.pairs!r}, unlabeled_weight={self.mu:.4g}, "
            f"trace_weight={self.trace_weight:.4g}, threshold={self.threshold:.4g}{penalties})"
        )

    def check(self, A: ArrayLike) -> FloatArray:
        """Check A, PSD or not, and return it as a symmetric matrix of the right size."""
        matrix = np.asarray(A, dtype=np.float64)
        m = self.pairs.n_features
        if matrix.shape != (m, m):
            raise ValueError(f"A has shape {matrix.shape}; the points have {m} features.")
        return symmetrize(matrix)


def pair_program(m_step: MStepObjective, loss: PairLoss, whitened: bool = False) -> PairProgram:
    """The function with this loss of unlabeled pairs; with the logistic one it is f.

    The soft labels are part of f alone; the other losses are minimized over them.
    """
    has_labels = loss == LOGISTIC and m_step.has_soft_labels
    geometry = m_step.geometry
    if whitened:
        sums, similar, R = (
            geometry.sums_in_basis,
            geometry.similar_in_basis,
            m_step.basis.regularizer,
        )
        soft = m_step.basis.from_whitened(m_step.soft_label_sums.matrix) if has_labels else 0.0
    else:
        sums, similar, R = geometry.sums, m_step.moments.similar, m_step.regularizer
        soft = m_step.soft_label_matrix if has_labels else 0.0
    M = symmetrize(similar + m_step.mu * soft + R)
    total = m_step.recession_total if has_labels else m_step.pairs.similar_total
    return PairProgram(sums, m_step.mu, m_step.threshold, M, m_step.threshold * total, loss)


def paper_program(m_step: MStepObjective, whitened: bool = False) -> PairProgram:
    """State the paper's objective (7) as a minimization, with the pairs and weights of `m_step`.

    -sum_{S u D} ln p(y) + mu sum_U H(p) + <R, A>.
    """
    return pair_program(m_step, EntropyLoss(), whitened)


def descent_program(m_step: MStepObjective, whitened: bool = False) -> PairProgram:
    """State J, minimized over the soft labels, with the pairs and weights of `m_step`.

    J(q, A) = -L_labeled(A) + <R, A> + mu sum_U [E_q(-ln p) - H(q)/sharpness] is what the
    alternation descends (derived here, not in the paper); the least q is the E-step (10) at A.
    """
    return pair_program(m_step, SharpenedLoss(m_step.soft_labeling.sharpness), whitened)


@dataclass(frozen=True, eq=False)
class SemiSupervisedObjective:
    """The paper's objective (7) as a minimization, which is not convex.

    -L(A) = -sum_{S u D} ln p(y) + mu sum_U H(p) + <R, A>, plus the penalties. Takes the parameters
    of :class:`MStepObjective` as one such object, and shares its sums.
    """

    m_step: MStepObjective

    @cached_property
    def program(self) -> PairProgram:
        """The objective as a function of metrics and of their factors, without penalties."""
        return paper_program(self.m_step)

    def value(self, A: ArrayLike) -> float:
        """The value at a metric."""
        return self.m_step.penalized_value(self.program, A)

    def value_and_gradient(self, A: ArrayLike) -> tuple[float, FloatArray]:
        """Value and gradient at a metric, in one sweep."""
        return self.m_step.penalized_gradient(self.program, A)


def descent_values(objective: MStepObjective, A: ArrayLike) -> tuple[float, float]:
    """The values of J(q(A), A), with the soft labels q(A) of the E-step (10), and of (7).

    Both with the penalties of `objective`.
    """
    J, seven = descent_program(objective), paper_program(objective)
    return objective.penalized_value(J, A), objective.penalized_value(seven, A)


def with_smooth_penalties(
    objective: MStepObjective, program: PairProgram
) -> PairProgram | PenalizedProgram:
    """Add the smooth penalties of an M-step to a program in its whitened coordinates."""
    if not objective.penalties:
        return program
    terms = [block.at for block in objective.penalties if block.is_smooth]
    return PenalizedProgram(program, objective.basis.matrix, terms) if terms else program


def _largest_eigenvalue(P: FloatArray, sizes: FloatArray) -> float:
    """The largest eigenvalue of P, or 0 if it is not positive, accurate whatever the units are.

    The entries of P have rounding errors relative to sqrt(s_i s_j), s = `sizes`. So the sign of
    P - t*I is judged by E(P - t*I)E, E = Diag(s + t)^(-1/2). Newton's method on t from below, where
    each new t is a Rayleigh quotient of P.
    """
    m, t = len(P), 0.0
    for _ in range(100):
        scale = np.sqrt(np.where(sizes + t > 0.0, sizes + t, 1.0))
        scaled = (P - t * np.eye(m)) / scale[:, None] / scale
        eigenvalues, vectors = scipy.linalg.eigh(scaled, subset_by_index=[m - 1, m - 1])
        largest = float(eigenvalues[0])
        if t == 0.0 and largest <= 16.0 * m * np.finfo(np.float64).eps:
            return 0.0
        step = largest / float(np.sum(np.square(vectors[:, 0] / scale)))
        t += step
        if step <= 1e-15 * t:
            break
    return t
