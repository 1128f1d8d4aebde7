"""What a solver of a race is, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from ...model.m_step_objective import MStepObjective
from ...numerics.checks import FloatArray


class NotForThisProblem(Exception):
    """What a solver raises that cannot take an M-step, whatever the tolerance; it says why.

    A race shows the run as "not for this problem", which counts neither for nor against it.
    """


@dataclass(frozen=True)
class Attempt:
    """What a solver returns.

    Attributes
    ----------
    matrix : (m, m) array or None
        As the solver left it: neither symmetrized nor projected.
    word : str
        The solver's own status.
    claims : bool
        Whether that status claims that the tolerance was reached.
    iterations : int
    compile_seconds, solve_seconds : float
        Stating and canonicalizing the problem, and inside the solver; where a solver leaves them
        out, all its time counts as solving.
    dimacs : list of six floats, optional
        See `dimacs.py`.
    """

    matrix: FloatArray | None
    word: str
    claims: bool
    iterations: int = 0
    compile_seconds: float = 0.0
    solve_seconds: float | None = None
    dimacs: Sequence[float] | None = None


Solver = Callable[[MStepObjective, float, float], Attempt]
"""The type of a solver's function, solve(objective, tol, time_limit)."""


@dataclass(frozen=True)
class Entrant:
    """A solver, the formulation it is given, and where its function is: ``module:function``.

    Attributes
    ----------
    solver, formulation : str
        As in the tables; the formulation is empty where there is no choice of one.
    function : str
    extra : tuple
        Further arguments of the function, after objective, tol and time limit.
    package : str
        What is to be imported for it, before its time begins to count.
    distribution : str
        What ``pip install`` calls that package.
    options : tuple of pairs
        Options of the solver's own, which win over those that the race gives it.
    """

    solver: str
    formulation: str
    function: str
    extra: tuple[Any, ...] = ()
    package: str = ""
    distribution: str = ""
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def label(self) -> str:
        """The name and formulation, as in ``SCS/dual``, or the name alone."""
        return f"{self.solver}/{self.formulation}" if self.formulation else self.solver

    def load(self) -> Callable[..., Any]:
        """Import the function that solves."""
        module, _, name = self.function.partition(":")
        function: Callable[..., Any] = getattr(import_module(module), name)
        return function

    def solve(self, objective: MStepObjective, tol: float, time_limit: float) -> Attempt:
        """Call the function that solves, with all its arguments."""
        more = {"options": dict(self.options)} if self.options else {}
        answer = self.load()(objective, tol, time_limit, *self.extra, **more)
        if not isinstance(answer, Attempt):
            raise TypeError(f"{self.function} returned {type(answer).__name__}, not an Attempt")
        return answer

    def with_options(self, options: Mapping[str, Any]) -> Entrant:
        """The same solver with its own options, which become part of its name.

        Examples
        --------
        >>> Entrant("SCS", "dual", "module:function").with_options({"alpha": 1.8}).label
        'SCS(alpha=1.8)/dual'
        """
        name = f"{self.solver}({in_words(options)})"
        return replace(self, solver=name, options=tuple(options.items()))


def in_words(options: Mapping[str, Any]) -> str:
    """Options as they are written in a call.

    Examples
    --------
    >>> in_words({"rank": 2, "preset": "ipopt"})
    "rank=2, preset='ipopt'"
    """
    return ", ".join(f"{name}={value!r}" for name, value in options.items())
