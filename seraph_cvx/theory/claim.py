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
from dataclasses import dataclass, field
from enum import StrEnum

from ..display.chart import Chart

Number = float | int | str


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
        return bool(self.residual <= self.tolerance)

    @property
    def strain(self) -> float:
        """The ratio residual / tolerance; the check with the largest one is decisive."""
        if math.isnan(self.residual):
            return math.inf
        return self.residual / max(self.tolerance, 1e-300)


@dataclass(frozen=True)
class Recomputation:
    """Ten lines of Python that anyone can run, and what they print."""

    code: str
    prints: str


@dataclass(frozen=True)
class Claim:
    """A claim of the paper: what it says, where, and how it is checked.

    Attributes
    ----------
    number : int
    name : str
    place : str
        Where in the paper.
    statement : str
        One sentence.
    formula : str
        In LaTeX; :mod:`seraph_cvx.display.mathml` turns it into MathML and into plain text.
    evidence : str
        How it is checked.
    expected : Verdict
        Another verdict is an error: of the package, or of the data's numerics.
    correction : str
        What holds instead, where the paper's own statement does not.
    consequence : str
        What that changes for who uses the method, in one sentence.
    recomputation : Recomputation, optional
        How to recompute the numbers that contradict the paper.
    """

    number: int
    name: str
    place: str
    statement: str
    formula: str
    evidence: str
    expected: Verdict = Verdict.HOLDS
    correction: str = ""
    consequence: str = ""
    recomputation: Recomputation | None = None


@dataclass(frozen=True)
class ClaimResult:
    """A claim, the checks made of it, and what follows.

    Attributes
    ----------
    printed : sequence of Check
        Checks of the statement as the paper prints it.
    corrected : sequence of Check
        Checks of what holds instead; empty where nothing is needed.
    numbers : mapping
        Numbers worth showing.
    charts : sequence of Chart
    seconds : float
    message : str
        Why nothing could be decided, where it could not.
    """

    claim: Claim
    printed: Sequence[Check]
    corrected: Sequence[Check] = ()
    numbers: Mapping[str, Number] = field(default_factory=dict)
    charts: Sequence[Chart] = ()
    seconds: float = 0.0
    message: str = ""

    @property
    def verdict(self) -> Verdict:
        """The verdict that follows from the checks; see the top of this module."""
        if self.message or not self.printed:
            return Verdict.UNDECIDED
        if all(check.passes for check in self.printed) and all(c.passes for c in self.corrected):
            return Verdict.HOLDS
        if self.corrected and all(check.passes for check in self.corrected):
            refuted = self.claim.expected is Verdict.REFUTED
            return Verdict.REFUTED if refuted else Verdict.CORRECTED
        return Verdict.REFUTED

    @property
    def as_expected(self) -> bool:
        """Whether the verdict is the known one, and what holds instead does hold."""
        instead = all(check.passes for check in self.corrected)
        return self.verdict is self.claim.expected and instead

    @property
    def decisive(self) -> Check:
        """The check with the largest residual / tolerance, of the statement that is judged."""
        checks = self.printed if self.claim.expected is Verdict.HOLDS else self.corrected
        if not checks:
            return Check("no evidence", math.inf, 0.0)
        return max(checks, key=lambda check: check.strain)

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
        return max(failed, key=lambda check: check.strain) if failed else None
