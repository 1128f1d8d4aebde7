"""What a check of a penalty found, as an object that prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ...numerics.checks import FloatArray
from ..penalty import Penalty

Outcome = Literal["passed", "failed", "not checked", "not defined"]


@dataclass(frozen=True)
class PenaltyCheck:
    """One property of a penalty that was tested.

    Attributes
    ----------
    claim : str
        The property.
    outcome : "passed", "failed", "not checked" or "not defined"
        "not checked": it ought to have been, and could not be; "not defined": an optional method
        that the block does not have.
    details : str
        The counterexample, or why it was not checked.
    """

    claim: str
    outcome: Outcome
    details: str = ""

    def __str__(self) -> str:
        words = {"failed": "FAILED"}.get(self.outcome, self.outcome)
        if "\n" not in self.details:
            return f"{words:<12} {self.claim}" + (f": {self.details}" if self.details else "")
        details = self.details.replace("\n", "\n" + " " * 15)
        return f"{words:<12} {self.claim}\n{' ' * 15}{details}"


@dataclass(frozen=True)
class PenaltyReport:
    """What :func:`check_penalty` found: ``print`` shows a line for each check.

    Attributes
    ----------
    block : Penalty
    n_features : int
    checks : tuple of PenaltyCheck
    """

    block: Penalty
    n_features: int
    checks: tuple[PenaltyCheck, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing failed, and nothing that ought to be checked could not be."""
        return all(check.outcome in ("passed", "not defined") for check in self.checks)

    @property
    def failures(self) -> tuple[PenaltyCheck, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if check.outcome == "failed")

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "does NOT hold" if self.failures else "is not settled"
        is_plain = type(self.block).__repr__ is object.__repr__
        name = self.block.name if is_plain else repr(self.block)
        head = f"{name} {verdict}, at random {self.n_features} x {self.n_features} matrices"
        return "\n".join([head, *map(str, self.checks)])


def counterexample(claim: str, words: str, **matrices: FloatArray) -> PenaltyCheck:
    """A check that failed, with the matrices at which it did."""
    shown = [
        f"{name} = " + np.array2string(M, precision=9, prefix=f"{name} = ")
        for name, M in matrices.items()
    ]
    return PenaltyCheck(claim, "failed", "\n".join([words, *shown]))


def nowhere(claim: str) -> PenaltyCheck:
    """A check for which too few matrices were found."""
    why = "too few matrices with a finite value were found: give some by matrices=[...]"
    return PenaltyCheck(claim, "not checked", why)
