"""Claims of the paper, and how their verdicts follow from measured residuals.

A claim has checks of what the paper prints and, where that is known to fail, checks of what holds
instead:

    printed passes                     -> holds
    printed fails, the other passes    -> holds as corrected, where the correction is a condition on
                                          the printed statement; refuted, where it is another one
    both fail                          -> refuted, and not as expected
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class Verdict(StrEnum):
    """The verdict of the checks on a claim."""

    HOLDS = "holds"
    REFUTED = "refuted"
    CORRECTED = "holds as corrected"
    UNDECIDED = "not decided"


class ClaimUndecided(RuntimeError):
    """A solver that the evidence needs gave no answer; the message says which and where."""


@dataclass(frozen=True)
class Check:
    """A piece of evidence, which passes if residual <= tolerance; NaN never does."""

    name: str
    residual: float
    tolerance: float

    @property
    def passes(self) -> bool:
        """Whether the residual is within the tolerance."""
        return self.residual <= self.tolerance

    @property
    def strain(self) -> float:
        """The ratio residual / tolerance; the check with the largest one is decisive."""
        ratio = self.residual / max(self.tolerance, 1e-300)
        return math.inf if math.isnan(ratio) else ratio


STRAIN = attrgetter("strain")


@dataclass(frozen=True)
class Recomputation:
    """Ten lines of Python that anyone can run, and what they print."""

    code: str
    prints: str


@dataclass(frozen=True)
class Claim:
    """A claim of the paper: what it says, where, and how it is checked."""

    number: int
    name: str
    place: str  # where in the paper
    statement: str
    formula: str  # in LaTeX, for `seraph_cvx.display.mathml`
    evidence: str  # how it is checked
    expected: Verdict = Verdict.HOLDS
    correction: str = ""  # what holds instead
    consequence: str = ""  # what that changes for users of the method
    recomputation: Recomputation | None = None


Residuals = Mapping[str, tuple[ArrayLike, float]]
"""What was measured: by the name of the check, all residuals and their tolerance."""


def judge(measured: Residuals) -> list[Check]:
    """Make a check of the largest residual of each name, but at least 0; NaN is the largest."""
    return [
        Check(name, float(np.max(np.asarray(residuals, float), initial=0.0)), tolerance)
        for name, (residuals, tolerance) in measured.items()
    ]


class Evidence(NamedTuple):
    """The residuals of a claim as printed and as corrected."""

    printed: Residuals
    corrected: Residuals = MappingProxyType({})


@dataclass(frozen=True)
class ClaimResult:
    """A claim, the checks made of it, and what follows.

    Attributes
    ----------
    printed : sequence of Check
        Checks of the statement as the paper prints it.
    corrected : sequence of Check
        Checks of what holds instead; empty where nothing is needed.
    seconds : float
    message : str
        Why nothing could be decided, where it could not.
    """

    claim: Claim
    printed: Sequence[Check]
    corrected: Sequence[Check] = ()
    seconds: float = 0.0
    message: str = ""

    @property
    def verdict(self) -> Verdict:
        """The verdict that follows from the checks; see the top of this module."""
        if self.message or not self.printed:
            return Verdict.UNDECIDED
        if not self._is_mended:
            return Verdict.REFUTED
        if self.violation is None:
            return Verdict.HOLDS
        is_condition = self.corrected and self.claim.expected is not Verdict.REFUTED
        return Verdict.CORRECTED if is_condition else Verdict.REFUTED

    @property
    def as_expected(self) -> bool:
        """Whether the verdict is the known one, and what holds instead does hold."""
        return self._is_mended and self.verdict is self.claim.expected

    @property
    def _is_mended(self) -> bool:
        return all(check.passes for check in self.corrected)

    @property
    def decisive(self) -> Check:
        """The check with the largest residual / tolerance, of the statement that is judged."""
        checks = self.printed if self.claim.expected is Verdict.HOLDS else self.corrected
        return max(checks, key=STRAIN, default=Check("no evidence", math.inf, 0.0))

    @property
    def residual(self) -> float:
        """The residual of the decisive check."""
        return self.decisive.residual

    @property
    def tolerance(self) -> float:
        """The tolerance of the decisive check."""
        return self.decisive.tolerance

    @property
    def violation(self) -> Check | None:
        """The worst check that the printed statement fails, if any."""
        failed = [check for check in self.printed if not check.passes]
        return max(failed, key=STRAIN, default=None)
