"""The referee: a rigorous duality gap for the M-step at any PSD point, trusting no solver.

The dual of the M-step is a maximum-entropy problem. With r_k = 1 - p_k it reads

    maximise  D(r) = sum_k c_k H(r_k) + eta * (sum_k c_k r_k - kappa)       over r in [0, 1]^N
    subject to  M - sum_k c_k r_k v_k v_k'  PSD,

and every feasible r bounds the optimum from below. At a PSD A the natural candidate is
r_k = sigma(-s_k(A)), whose matrix is the gradient g of f at A and for which f(A) - D(r) = <g, A>.
Where g is not PSD, r is moved towards an anchor that is always feasible: r = 0 (matrix M), or
r = (c - b)/c (matrix R), as far as needed and no further.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from .anchors import Anchors
from .checks import FloatArray
from .dual_points import DualPoint, DualTerms, Pinned, TowardsLabels, TowardsOne
from .formulas import CERTIFICATE
from .notebook import card, facts, gap_in_words, tone_of_gap
from .objective import MStepObjective
from .psd_cone import check_metric, symmetrise

if TYPE_CHECKING:
    from .proof import Proof

ROUNDING = 16 * float(np.finfo(np.float64).eps)
"""How far a sum over pairs may be off, relative to the same sum with all weights 1."""


@dataclass(frozen=True)
class Certificate:
    """optimum in [dual_value, primal_value], whoever found the point.

    Attributes
    ----------
    primal_value : float
        f(A).
    dual_value : float
        D at a feasible dual point: no PSD matrix has a smaller f.
    dual_point : str
        Which one: "gradient" (no move was needed), "towards p = 1", "towards p = b/c" or "p = b/c";
        "by concavity" where a bound on D between such points was enough.
    """

    primal_value: float
    dual_value: float
    dual_point: str

    @property
    def duality_gap(self) -> float:
        """f(A) - D >= f(A) - inf f."""
        return self.primal_value - self.dual_value

    @property
    def relative_gap(self) -> float:
        """duality_gap / max(1, |f(A)|)."""
        return self.duality_gap / max(1.0, abs(self.primal_value))

    def _repr_html_(self) -> str:
        return card(
            "Certificate",
            f"relative gap {self.relative_gap:.1e}",
            tone_of_gap(self.relative_gap),
            gap_in_words(self.dual_value, self.primal_value),
            [CERTIFICATE],
            facts({"duality gap": self.duality_gap, "dual point": self.dual_point}),
        )


@overload
def certify(
    objective: MStepObjective,
    A: ArrayLike,
    *,
    enough: float = ...,
    rigorous: Literal[False] = ...,
) -> Certificate: ...


@overload
def certify(
    objective: MStepObjective, A: ArrayLike, *, enough: float = ..., rigorous: Literal[True]
) -> Proof: ...


def certify(
    objective: MStepObjective, A: ArrayLike, *, enough: float = 0.0, rigorous: bool = False
) -> Certificate | Proof:
    """D(r) <= inf f <= f(A): the duality gap of the M-step (11) at a PSD point A.

    Parameters
    ----------
    objective : MStepObjective
        Any trace weight >= 0, attained or not.
    A : (m, m) array_like
        Any PSD matrix, however far from the optimum.
    enough : float
        Look no further for a better bound once the relative gap is so small.
    rigorous : bool
        Prove it: all in ball arithmetic, every rounding error enclosed. Needs python-flint,
        ``pip install "seraph-cvx[rigorous]"``, and a few hundred points at most.

    Returns
    -------
    Certificate
        Always finite. Rounding is allowed for: the dual point is kept inside the feasible set by
        the error a sum over pairs may have, and the dual value is lowered by the error that f(A)
        may have. With `rigorous` a :class:`~seraph_cvx.proof.Proof`, which has the same names.

    Notes
    -----
    The points are taken as rounded. A direction in which they spread less than 1e-11 of what their
    features do (collinear but for rounding) counts as one in which they do not differ. With
    `trace_weight` zero, or tiny beside that spread squared, a huge metric along it could lower f
    below `dual_value`. With `rigorous` the points are exact.

    Examples
    --------
    >>> import numpy as np
    >>> from seraph_cvx import MStepObjective, PairSet, certify
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> far = certify(MStepObjective(pairs), np.eye(1))
    >>> near = certify(MStepObjective(pairs), 0.9227 * np.eye(1))
    >>> far.relative_gap > near.relative_gap, near.relative_gap < 1e-4
    (True, True)
    """
    metric = check_metric(A, objective.pairs.n_features)
    if rigorous:
        from .proof import prove

        return prove(objective, metric, enough=enough)
    return _certify(objective, metric, allow_rounding=True, enough=enough)


def is_rounding_all(objective: MStepObjective, A: ArrayLike, tol: float) -> bool:
    """Whether the relative gap at A would be within `tol` but for what is allowed for rounding."""
    metric = check_metric(A, objective.pairs.n_features)
    return _certify(objective, metric, allow_rounding=False, enough=tol).relative_gap <= tol


def _certify(
    objective: MStepObjective, metric: FloatArray, allow_rounding: bool, enough: float
) -> Certificate:
    sums = objective.moments.whitened_sums
    swept = objective.sweep_with_soft_labels(metric) if objective.awaits_soft_labels else None
    value, tangent, pull = objective.program.value_tangent_and_pull(metric, sums, swept)
    anchors = Anchors.of(objective, allow_rounding)
    whitened = symmetrise(objective.whitened_program.recession - objective.axes.turned(pull))
    error = _rounding(objective, metric, value) if allow_rounding else 0.0
    best = Certificate(value, anchors.entropy_value - error, "p = b/c")
    for dual_value, dual_point in _candidates(objective, metric, anchors, whitened, tangent):
        if dual_value - error > best.dual_value:
            best = Certificate(value, dual_value - error, dual_point)
        if best.relative_gap <= enough:
            break
    return best


def _candidates(
    objective: MStepObjective,
    metric: FloatArray,
    anchors: Anchors,
    gradient: FloatArray,
    tangent: float,
) -> Iterator[tuple[float, str]]:
    """Lower bounds from feasible points near r = sigma(-s), and their names; the free one first."""
    yield anchors.quick_bound(tangent, gradient), "by concavity"
    step = anchors.step_from_one(gradient)
    if step is None:
        yield _pinned(objective, metric, anchors), "towards p = 1"
    else:
        yield _towards_one(objective, metric, step), "gradient" if step == 1.0 else "towards p = 1"
    step = anchors.step_from_labels(gradient)
    if step is not None and step < 1.0:
        yield _towards_labels(objective, metric, step), "towards p = b/c"


def _rounding(objective: MStepObjective, metric: FloatArray, value: float) -> float:
    """How far the computed f(A) may be off: it is the size of its terms that counts, not f's own.

    An error in v'Av moves log(1 + e^{-s}) by no more than itself.
    """
    program, X = objective.program, objective.sums.points
    linear = float(np.sum(np.abs(program.recession * metric))) + abs(program.constant)
    longest = float(np.max(np.einsum("ij,ij->i", X @ metric, X)))
    return ROUNDING * (abs(value) + linear + objective.pair_total * longest)


def _dual_value(
    objective: MStepObjective,
    metrics: Sequence[FloatArray],
    r: DualPoint,
    with_matrix: bool = False,
) -> tuple[float, FloatArray]:
    """D(r) and, if asked for, sum_k c_k r_k v_k v_k' in whitened axes, by one sweep."""
    sums, terms = objective.moments.whitened_sums, DualTerms(r, with_matrix)
    totals, matrix = sums.over_labeled(metrics, terms)
    if objective.mu > 0.0:
        more, more_matrix = sums.over_unlabeled(metrics, terms)
        totals = totals + objective.mu * more
        matrix = matrix + objective.mu * more_matrix
    return float(totals[0] + objective.threshold * totals[1]) - objective.program.constant, matrix


def _towards_one(objective: MStepObjective, metric: FloatArray, step: float) -> float:
    """D at TowardsOne."""
    return _dual_value(objective, [metric], TowardsOne(step, objective.threshold))[0]


def _towards_labels(objective: MStepObjective, metric: FloatArray, step: float) -> float:
    """D at TowardsLabels."""
    source = objective.soft_labeling
    r = TowardsLabels(step, objective.threshold, source, len(objective.pairs.similar))
    return _dual_value(objective, [metric, *source.metrics], r)[0]


def _pinned(objective: MStepObjective, metric: FloatArray, anchors: Anchors) -> float:
    """The anchor p = 1 where M is singular: r_k = 0 on the pairs that leave its range.

    On the null space of M feasibility forces those r_k to zero; in its range all goes as usual.
    """
    eigenvalues, vectors = np.linalg.eigh(objective.whitened_program.recession)
    in_range = eigenvalues > objective.zero_eigenvalue
    null = anchors.axes @ vectors[:, ~in_range]
    basis = vectors[:, in_range] / np.sqrt(eigenvalues[in_range])
    leaving = null @ null.T
    spread = float(np.max(np.sum(np.square(objective.sums.points @ null), axis=1)))
    limit = 4.0 * ROUNDING * spread  # the rounding error of a squared distance under `leaving`
    r = Pinned(1.0, objective.threshold, limit)
    _, pull = _dual_value(objective, [metric, leaving], r, with_matrix=True)
    if basis.shape[1]:
        pull = objective.axes.turned(pull)
        largest = float(np.linalg.eigvalsh(symmetrise(basis.T @ pull @ basis))[-1])
        rounding = anchors.noise / float(eigenvalues[in_range][0])
        r = replace(r, step=1.0 / max(1.0, largest + rounding))
    return _dual_value(objective, [metric, leaving], r)[0]
