"""The duality gap of the M-step at any PSD point, rounding errors included, trusting no solver.

The dual of the M-step is a maximum-entropy problem. With r_k = 1 - p_k it reads

    maximise  D(r) = sum_k c_k H(r_k) + eta * (sum_k c_k r_k - kappa)       over r in [0, 1]^N
    subject to  R + sum_k c_k (q_k - r_k) v_k v_k'  PSD,

and every feasible r bounds the optimum from below. At LL' the natural candidate is
r_k = sigma(-s_k), whose matrix is the gradient of f. Where that is not proven PSD, r is moved
towards a point that is feasible anyway: r = 0 (which is p = 1), or r = q (p = b/c).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike

from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import check_metric, scaled_factor, symmetrise
from ..numerics.rounding import at_least
from .feasible_steps import largest_eigenvalue, step_towards_one, stretch_of_regulariser
from .pair_bounds import PairBounds, bound_pairs
from .pinned import pinned_bounds

if TYPE_CHECKING:
    from .proof import Proof

NEAR = 1e-6
"""Relative gap up to which bounds from pairs within the span of similar ones are not tried."""


@dataclass(frozen=True)
class Certificate:
    """Bounds on the optimum of an M-step: it lies in [dual_value, primal_value].

    Attributes
    ----------
    primal_value : float
        Not below f(LL'), L = `factor`.
    dual_value : float
        Not above D at a dual point that is proven feasible: no PSD matrix has a smaller f.
    dual_point : str
        Which one: "gradient" (r = sigma(-s), no move was needed), "towards p = 1",
        "towards p = b/c" or "p = b/c"; empty where nothing could be proven.
    factor : (m, rho) array
        L, taken as the doubles they are: LL' is PSD, and as near to A as rounding allows.
    """

    primal_value: float
    dual_value: float
    dual_point: str
    factor: FloatArray = field(default_factory=lambda: np.zeros((0, 0)), repr=False, compare=False)

    @property
    def metric(self) -> FloatArray:
        """The metric LL', as computed."""
        return symmetrise(self.factor @ self.factor.T)

    @property
    def duality_gap(self) -> float:
        """How far f(LL') may be from inf f: primal_value - dual_value, rounded up."""
        gap = self.primal_value - self.dual_value
        return gap if gap in (0.0, math.inf) else math.nextafter(gap, math.inf)

    @property
    def relative_gap(self) -> float:
        """The duality gap relative to the value: duality_gap / max(1, |primal_value|)."""
        if math.isinf(self.duality_gap):
            return math.inf
        return self.duality_gap / max(1.0, abs(self.primal_value))

    def _repr_html_(self) -> str:
        from ..display.cards import certificate_card

        return certificate_card(self)


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
    """Bound the optimum of an M-step from both sides, whoever found the metric A.

    D(r) <= inf f <= f(LL'), LL' = A to rounding: the duality gap of the M-step (11). Both bounds
    hold for the doubles that `objective` was given, with every rounding error of their
    computation allowed for; how, is in `examples/guide/certificate.md`.

    Parameters
    ----------
    objective : MStepObjective
        Any trace weight >= 0, attained or not.
    A : (m, m) array_like
        Any PSD matrix, however far from the optimum.
    enough : float
        Look no further for a better bound once the relative gap is so small.
    rigorous : bool
        Compute the bounds in ball arithmetic instead, an independent check of all assumptions
        of the default. Needs python-flint, ``pip install "seraph-cvx[rigorous]"``, and a few
        hundred points at most.

    Returns
    -------
    Certificate
        Where nothing can be proven `dual_value` is minus infinity: only for a manifold term that
        is not PSD. With `rigorous` a :class:`~seraph_cvx.certificate.proof.Proof`, which has the
        same names.

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
    return certify_factor(objective, scaled_factor(metric), enough)


def certify_factor(objective: MStepObjective, L: FloatArray, enough: float = 0.0) -> Certificate:
    """Certify A = LL', given its factor L: an (m, rho) array."""
    L = np.ascontiguousarray(L[:, np.any(L != 0.0, axis=0)])
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        bounds = bound_pairs(objective, L)
        best = Certificate(math.inf if bounds is None else bounds.primal_value, -math.inf, "")
        for found in _lower_bounds(objective, bounds):
            best = found.improve(best)
            if best.relative_gap <= enough:
                break
        if best.relative_gap > max(enough, NEAR):
            for found in _pinned_bounds(objective, L):
                best = found.improve(best)
    if best.dual_value > best.primal_value:
        raise ArithmeticError(
            f"The lower bound {best.dual_value!r} is above the upper bound {best.primal_value!r}. "
            "This is a defect of seraph_cvx: please report it with the data."
        )
    return replace(best, factor=L)


class LowerBound(NamedTuple):
    """A bound on the optimum, and the dual point it is of."""

    value: float
    dual_point: str

    def improve(self, best: Certificate) -> Certificate:
        """The certificate with this bound, if that is better."""
        if not self.value > best.dual_value:
            return best
        return replace(best, dual_value=self.value, dual_point=self.dual_point)


def nominal_gap(objective: MStepObjective, L: FloatArray) -> float:
    """The relative gap at LL' without the allowance for rounding: to steer by, not to be shown."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        bounds = bound_pairs(objective, L)
        coordinates = objective.geometry.dual_coordinates
        if bounds is None or coordinates is None:
            return math.inf
        S, N, R = bounds.pull, bounds.labels.matrix, coordinates.regulariser
        values = [bounds.labels.value]
        largest = largest_eigenvalue(S, R + N)
        if largest is not None and largest > 0.0:
            step = min(1.0, 1.0 / largest)
            values.append(_value_towards_one(bounds, step, objective.threshold))
        stretch = largest_eigenvalue(S - N, R)
        if stretch is not None:
            values.append(_value_towards_labels(bounds, 1.0 / max(1.0, stretch)))
    return (bounds.primal_value - max(values)) / max(1.0, abs(bounds.primal_value))


def _lower_bounds(objective: MStepObjective, bounds: PairBounds | None) -> Iterator[LowerBound]:
    """Lower bounds on the dual value at feasible points, one after the other."""
    is_psd = objective.penalty.is_proven_psd()
    if is_psd:
        yield LowerBound(0.0 if bounds is None else bounds.labels.value, "p = b/c")
    coordinates = objective.geometry.dual_coordinates
    if bounds is None or coordinates is None:  # f(LL') overflows, or R = 0 and nothing spans
        return
    step = step_towards_one(coordinates, bounds)
    if step == 1.0:
        yield LowerBound(bounds.tangent_value, "gradient")
        return
    if step is not None:
        yield LowerBound(_value_towards_one(bounds, step, objective.threshold), "towards p = 1")
    if is_psd and not objective.penalty.is_zero():
        stretch = stretch_of_regulariser(coordinates, bounds)
        if stretch == 1.0:
            yield LowerBound(bounds.tangent_value, "gradient")
        elif stretch is not None:  # q + (r - q)/t is feasible for every larger t too
            share = math.nextafter(1.0 / stretch, 0.0)
            yield LowerBound(_value_towards_labels(bounds, share), "towards p = b/c")


def _pinned_bounds(objective: MStepObjective, L: FloatArray) -> Iterator[LowerBound]:
    if objective.has_soft_labels or not objective.penalty.is_proven_psd():
        return
    for coordinates, pinned in pinned_bounds(objective, L):
        step = step_towards_one(coordinates, pinned)
        if step is not None:
            value = _value_towards_one(pinned, step, objective.threshold)
            yield LowerBound(value, "towards p = 1")


def _value_towards_one(bounds: PairBounds, step: float, eta: float) -> float:
    """A lower bound on D(tau*r) for tau = `step`; D(0) = -eta*kappa."""
    return at_least(
        step * bounds.tangent_value,
        -(1.0 - step) * eta * bounds.labels.total,
        *bounds.towards_one.at(step),
    )


def _value_towards_labels(bounds: PairBounds, share: float) -> float:
    """A lower bound on D(q + share*(r - q))."""
    return at_least(
        share * bounds.tangent_value,
        (1.0 - share) * bounds.labels.value,
        *bounds.towards_labels.at(share),
    )
