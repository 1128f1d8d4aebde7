"""What a certificate says: bounds on the optimum of an M-step, and the metric that they are of."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np

from ..numerics.checks import FloatArray, read_only
from ..numerics.psd_cone import symmetrize


class LowerBound(NamedTuple):
    """A bound on the optimum, and the dual point it is of."""

    dual_value: float
    dual_point: str


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
    projected_by : float
        Where A was not PSD and ``project=True`` was given: the Frobenius norm of what the
        projection changed. The certificate is about the projection, not about A.

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
    factor: FloatArray = field(default_factory=lambda: np.zeros((0, 0)), repr=False, compare=False)
    projected_by: float = field(default=0.0, kw_only=True)

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

    def with_bound_of(self, other: Certificate | LowerBound) -> Self:
        """The certificate with the other's lower bound, of the same M-step, if that is better."""
        if not other.dual_value > self.dual_value:
            return self
        return replace(self, dual_value=other.dual_value, dual_point=other.dual_point)

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
