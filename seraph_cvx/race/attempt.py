"""What a solver of a race is, and what it returns; a solver of the user's own."""

from __future__ import annotations

import inspect
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from joblib import wrap_non_picklable_objects

TUNED_SUFFIX = "-tuned"
"""At the end of the name of a solver that runs with documented options which help it here."""


class NotForThisProblem(Exception):
    """What a solver raises that cannot take an instance, whatever the tolerance; it says why.

    A race shows the run as "not for this problem", which counts neither for nor against it.
    """


@dataclass(frozen=True)
class Attempt:
    """What a solver returns.

    Attributes
    ----------
    answer : (m, m) array, tuple or None
        For an M-step the matrix as the solver left it, neither symmetrized nor projected; for a
        problem its value, the values of its variables and its multipliers.
    word : str
        The solver's own status.
    claims : bool
        Whether that status claims that the instance is solved, to the tolerance if there is one.
    iterations : int
    compile_seconds, solve_seconds, certify_seconds : float
        The time for stating and canonicalizing the problem, or setting it up; the time inside the
        solver, where None means the rest; and the time for certificates by which the solver decides
        whether to continue.
    """

    answer: Any
    word: str
    claims: bool
    iterations: int = 0
    compile_seconds: float = 0.0
    solve_seconds: float | None = None
    certify_seconds: float = 0.0


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
        The package to import before the clock starts.
    distribution : str
        What ``pip install`` calls that package.
    options : tuple of pairs
        The solver's own options: keyword arguments of the function, which override the race's.
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

    @property
    def obstacle(self) -> str:
        """What to install for this solver; "" if its package is there."""
        if not self.package or find_spec(self.package) is not None:
            return ""
        return f"{self.solver} is not installed: pip install {self.distribution}"

    def load(self) -> Callable[..., Attempt]:
        """Import the function that solves: ``module:function``."""
        module, _, name = self.function.partition(":")
        function: Callable[..., Attempt] = getattr(import_module(module), name)
        return function

    def solve(self, instance: Any, tol: float | None, time_limit: float) -> Attempt:
        """Call the function that solves, with all its arguments."""
        return self.load()(instance, tol, time_limit, *self.extra, **dict(self.options))

    def with_options(self, options: Mapping[str, Any]) -> Entrant:
        """The same solver with its own options, which become part of its name.

        Examples
        --------
        >>> Entrant("SCS", "dual", "module:function").with_options({"alpha": 1.8}).label
        'SCS(alpha=1.8)/dual'
        """
        given = ", ".join(f"{name}={value!r}" for name, value in options.items())
        name = f"{self.solver}({given})" if options else self.solver
        return replace(self, solver=name, options=tuple(options.items()))


def pickled(content: Any) -> bytes:
    """Pickle something for another process; what it cannot import is sent by value."""
    return pickle.dumps(wrap_non_picklable_objects(content, keep_wrapper=False))


def own_entrant(name: str, solver: Any, options: Mapping[str, Any], caller: str) -> Entrant:
    """Make an entrant of a solver of the user's own, which the function `caller` calls.

    It may be defined anywhere, also in a script or notebook.
    """
    if not name.isidentifier():
        raise ValueError(
            f"A function in solvers=[...] races under its name, and {name!r} is not a "
            "valid one: define it with def."
        )
    try:
        pickled(solver)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{name} cannot be sent to a separate process ({error}): create what it needs "
            "inside the function."
        ) from error
    module = getattr(solver, "__module__", None) or "__main__"
    preload = module if module != "__main__" and find_spec(module) is not None else ""
    return Entrant(name, "", caller, (solver,), package=preload).with_options(options)


def returned_by(
    function: Callable[..., Any],
    instance: Any,
    tol: float | None,
    time_limit: float,
    options: Mapping[str, Any],
) -> tuple[Any, bool]:
    """What a function of the user's own returns, and whether it was given `tol`.

    It gets `tol` and `time_limit` if it has parameters of these names.
    """
    parameters = inspect.signature(function).parameters
    limits = {"tol": tol, "time_limit": time_limit}
    wanted = [name for name in limits if name in parameters and name not in options]
    returned = function(instance, **options, **{name: limits[name] for name in wanted})
    return returned, "tol" in wanted


def chosen_entrants(
    solvers: Sequence[Any],
    named: Callable[[str], list[Entrant]],
    is_solver: Callable[[Any], bool],
    caller: str,
) -> list[Entrant]:
    """The entrants that were asked for, each once: by name, of a module, or as an object."""
    chosen: list[Entrant] = []
    for given in solvers:
        one, options = given if isinstance(given, tuple) and len(given) == 2 else (given, {})
        if not (isinstance(one, str) or is_solver(one)) or not isinstance(options, dict):
            raise ValueError(
                f"solvers holds {given!r}: give names, functions, or pairs of either and a dict of "
                "options."
            )
        if not isinstance(one, str):
            has_name = callable(getattr(one, "name", None))  # of a class of CVXPY's kind
            name = one.name() if has_name else getattr(one, "__name__", type(one).__name__)
            found = [own_entrant(str(name), one, options, caller)]
        elif "=" in one:
            name, _, where = one.partition("=")
            found = [own_entrant(name, imported(name, where), options, caller)]
        else:
            found = [entrant.with_options(options) for entrant in named(one)]
        chosen += [entrant for entrant in found if entrant not in chosen]
    labels = [entrant.label for entrant in chosen]
    if len(set(labels)) < len(labels):
        twice = max(labels, key=labels.count)
        raise ValueError(f"Two solvers of the race are called {twice!r}: rename one of them.")
    return chosen


def imported(name: str, where: str) -> Callable[..., Any]:
    """A function of the user's own, ``module:function``, that races under a name."""
    if name.isupper():
        raise ValueError(f"{name!r} is not free: names in capitals are those of CVXPY's solvers.")
    module, _, attribute = where.partition(":")
    try:
        function: Callable[..., Any] = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"{name}: {where!r} cannot be imported ({type(error).__name__}: {error}). Write it as "
            f"module:function, with the module on sys.path ({sys.path[0]!r}, ...)."
        ) from error
    return function
