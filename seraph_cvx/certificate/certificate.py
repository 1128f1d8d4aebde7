"""What a certificate says, and the lower bounds that it is made of."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray, read_only
from ..numerics.psd_cone import symmetrize
from .feasible_steps import step_toward_one, stretch_of_regularizer
from .pair_bounds import PairBounds


@dataclass(frozen=True)
class Certificate:
    """Bounds on the optimum of an M-step: it lies in [dual_value, primal_value].

    Attributes
    ----------
    primal_value : float
        Not below f(LL'), L = `factor`.
    dual_value : float
        Not above D at a dual point that is proven feasible: no PSD matrix has a smaller f. With
        penalties, read F for f, and D less their conjugates for D.
    dual_point : str
        Which one: "gradient" (r = sigma(-s), no move was needed), "toward p = 1",
        "toward p = b/c" or "p = b/c"; empty where nothing could be proven.
    factor : (m, rho) array
        L, taken as the doubles they are: LL' is PSD, and as near to A as rounding and the
        constraints among the penalties allow.
    """

    primal_value: float
    dual_value: float
    dual_point: str
    factor: FloatArray = field(default_factory=lambda: np.zeros((0, 0)), repr=False, compare=False)

    def __post_init__(self) -> None:
        read_only(self.factor)

    @property
    def metric(self) -> FloatArray:
        """The metric LL', as computed."""
        return symmetrize(self.factor @ self.factor.T)

    @property
    def duality_gap(self) -> float:
        """How far f(LL') may be from inf f: primal_value - dual_value, rounded up."""
        gap = self.primal_value - self.dual_value
        return gap if gap in (0.0, math.inf) else math.nextafter(gap, math.inf)

    @property
    def relative_gap(self) -> float:
        """The gap relative to the value: duality_gap / max(1, |primal_value|), rounded up."""
        gap, size = self.duality_gap, max(1.0, abs(self.primal_value))
        return gap if gap in (0.0, math.inf) else math.nextafter(gap / size, math.inf)

    def with_bound_of(self, other: Certificate) -> Certificate:
        """The certificate with the other's lower bound, of the same M-step, if that is better."""
        return LowerBound(other.dual_value, other.dual_point).improve(self)

    def checked(self) -> Certificate:
        """The certificate itself; an ArithmeticError if its bounds contradict each other."""
        if self.dual_value > self.primal_value:
            raise ArithmeticError(
                f"The lower bound {self.dual_value!r} is above the upper bound "
                f"{self.primal_value!r}. This is a defect of seraph_cvx: please report it with the "
                "data."
            )
        return self

    def _repr_html_(self) -> str:
        from ..display.cards import certificate_card

        return certificate_card(self)


class LowerBound(NamedTuple):
    """A bound on the optimum, and the dual point it is of."""

    value: float
    dual_point: str

    def improve(self, best: Certificate) -> Certificate:
        """The certificate with this bound, if that is better."""
        if not self.value > best.dual_value:
            return best
        return replace(best, dual_value=self.value, dual_point=self.dual_point)


def lower_bounds(objective: MStepObjective, bounds: PairBounds | None) -> Iterator[LowerBound]:
    """Lower bounds on the dual value at feasible points, one after the other."""
    is_psd = objective.linear_penalty.is_proven_psd()
    if is_psd:
        at_labels = 0.0 if bounds is None else bounds.value_at_labels
        yield LowerBound(at_labels, "p = b/c")
    coordinates = objective.geometry.dual_coordinates
    if bounds is None or coordinates is None:  # f(LL') overflows, or R = 0 and nothing spans
        return
    step = step_toward_one(coordinates, bounds)
    if step == 1.0:
        yield LowerBound(bounds.tangent_value, "gradient")
        return
    if step is not None:
        yield LowerBound(bounds.value_toward_one(step, objective.threshold), "toward p = 1")
    if is_psd and not objective.linear_penalty.is_zero():
        stretch = stretch_of_regularizer(coordinates, bounds)
        if stretch == 1.0:
            yield LowerBound(bounds.tangent_value, "gradient")
        elif stretch is not None:  # q + (r - q)/t is feasible for every larger t too
            share = math.nextafter(1.0 / stretch, 0.0)
            yield LowerBound(bounds.value_toward_labels(share), "toward p = b/c")
