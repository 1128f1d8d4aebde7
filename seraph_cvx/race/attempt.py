"""What a solver of a race is, and what it returns; a function of the user's own as a solver."""

from __future__ import annotations

import inspect
import pickle
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from joblib import wrap_non_picklable_objects

from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray

TUNED_SUFFIX = "-tuned"
"""At the end of the name of a solver that runs with documented options which help it here."""


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
    compile_seconds, solve_seconds, certify_seconds : float
        Stating and canonicalizing the problem, or setting it up; inside the solver, where None is
        the rest of its time; and in certificates by which it decides whether to go on.
    """

    matrix: FloatArray | None
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
        What is to be imported for it, before its time begins to count.
    distribution : str
        What ``pip install`` calls that package.
    options : tuple of pairs
        The solver's own options, keyword arguments of the function, which win over the race's.
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
        """Import the function that solves."""
        return load_function(self.function)

    def solve(self, objective: MStepObjective, tol: float, time_limit: float) -> Attempt:
        """Call the function that solves, with all its arguments."""
        return self.load()(objective, tol, time_limit, *self.extra, **dict(self.options))

    def tuned(self, **options: Any) -> Entrant:
        """The same solver with documented options that help it here, called "-tuned"."""
        return replace(self, solver=self.solver + TUNED_SUFFIX, options=tuple(options.items()))

    def with_options(self, options: Mapping[str, Any]) -> Entrant:
        """The same solver with its own options, which become part of its name.

        Examples
        --------
        >>> Entrant("SCS", "dual", "module:function").with_options({"alpha": 1.8}).label
        'SCS(alpha=1.8)/dual'
        """
        name = f"{self.solver}({as_in_a_call(options)})"
        return replace(self, solver=name, options=tuple(options.items()))


def as_in_a_call(options: Mapping[str, Any]) -> str:
    """Options as in a call of a function."""
    return ", ".join(f"{name}={value!r}" for name, value in options.items())


def own_entrant(function: Callable[..., Any], options: Mapping[str, Any] | None = None) -> Entrant:
    """Make an entrant of a function that :func:`call_own` can call.

    It may be defined anywhere, also in a script or notebook: it is sent to the process of its run
    by value.
    """
    name = getattr(function, "__name__", "") or type(function).__name__
    if not name.isidentifier():
        raise ValueError(
            f"A function in solvers=[...] races under its name, and {name!r} is not a "
            "valid one: define it with def."
        )
    given = dict(options or {})
    try:
        content = pickle.dumps(wrap_non_picklable_objects((function, given), keep_wrapper=False))
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{name} cannot be sent to a separate process ({error}): create what it needs "
            "inside the function."
        ) from error
    label = f"{name}({as_in_a_call(given)})" if given else name
    module = getattr(function, "__module__", None) or "__main__"
    preload = module if module != "__main__" and find_spec(module) is not None else ""
    return Entrant(label, "", f"{__name__}:solve_pickled", (content,), package=preload)


def solve_pickled(
    objective: MStepObjective, tol: float, time_limit: float, content: bytes, /, **options: Any
) -> Attempt:
    """Call a function that :func:`own_entrant` packed."""
    function, given = pickle.loads(content)
    return call_own(function, objective, tol, time_limit, given | options)


def call_own(
    function: Callable[..., Any],
    objective: MStepObjective,
    tol: float,
    time_limit: float,
    options: Mapping[str, Any],
) -> Attempt:
    """Call a function of the user's own, which gets `tol` and `time_limit` if it has these names.

    It returns a matrix, (matrix, claims) or an Attempt. A bare matrix is a claim to have reached
    the tolerance if the function was given it.
    """
    parameters = inspect.signature(function).parameters
    limits = {"tol": tol, "time_limit": time_limit}
    wanted = [name for name in limits if name in parameters and name not in options]
    answer = function(objective, **options, **{name: limits[name] for name in wanted})
    if isinstance(answer, Attempt):
        return answer
    if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], bool | np.bool_):
        return Attempt(answer[0], "returned", claims=bool(answer[1]))
    return Attempt(answer, "returned", claims="tol" in wanted)


def load_function(where: str) -> Callable[..., Any]:
    """Import a function: ``module:function``."""
    module, _, name = where.partition(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


def imported(name: str, where: str) -> Callable[..., Any]:
    """A function of the user's own, ``module:function``, that races under a name."""
    module, _, attribute = where.partition(":")
    function: Callable[..., Any] = _find(module, attribute if "." not in attribute else "")
    if not callable(function):
        raise ValueError(
            f"{name}: {where!r} is not a top-level function of an importable module. Write it "
            f"as module:function, with the module on sys.path ({sys.path[0]!r}, ...)."
        )
    if name.isupper() or not name:
        raise ValueError(
            f"{name!r} is taken or not a name: use one word, not in capitals (those are CVXPY's "
            "solvers)."
        )
    return function


def _find(module: str, attribute: str) -> Any:
    """An attribute of a module, None where there is no such module; its own errors are told."""
    try:
        return getattr(import_module(module), attribute, None)
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
            return None
        raise ValueError(
            f"{module} cannot be imported, because of what it imports itself: "
            f"{type(error).__name__}: {error}."
        ) from error
