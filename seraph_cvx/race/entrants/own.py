"""A user's function as an entrant: an objective in, a matrix out."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

from joblib import wrap_non_picklable_objects

from ...model.m_step_objective import MStepObjective
from .attempt import Attempt, Entrant, in_words

TOLD = ("tol", "time_limit")
"""What a function is told about the race, if it has parameters of these names."""


def own_entrant(function: Callable[..., Any], options: Mapping[str, Any] | None = None) -> Entrant:
    """Make an entrant of a function that takes an M-step and returns a matrix.

    Parameters
    ----------
    function : callable
        ``function(objective, **options)``, an (m, m) matrix or an :class:`Attempt`. If it has
        parameters `tol` or `time_limit`, they are passed. It may be defined anywhere, also in
        a script or notebook: it is sent to the process of its run by value.
    options : mapping, optional
        Further arguments, by keyword.

    Examples
    --------
    >>> import numpy as np
    >>> def identity(objective, scale=1.0):
    ...     return scale * np.eye(objective.pairs.n_features)
    >>> own_entrant(identity, {"scale": 2.0}).label
    'identity(scale=2.0)'
    """
    name = getattr(function, "__name__", "") or type(function).__name__
    if not name.isidentifier():
        raise ValueError(
            f"A function in solvers=[...] races under its name, and {name!r} is not a "
            "valid one: define it with def."
        )
    given = dict(options or {})
    taken = inspect.signature(function).parameters
    told = tuple(word for word in TOLD if word in taken and word not in given)
    try:
        by_value = wrap_non_picklable_objects((function, given), keep_wrapper=False)
        content = pickle.dumps((by_value, told))
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{name} cannot be sent to a separate process ({error}): create what it needs "
            "inside the function."
        ) from error
    label = f"{name}({in_words(given)})" if given else name
    module = getattr(function, "__module__", None) or "__main__"
    at_hand = module if module != "__main__" and find_spec(module) is not None else ""
    return Entrant(label, "", f"{__name__}:solve_own", (content,), package=at_hand)


def solve_own(objective: MStepObjective, tol: float, time_limit: float, content: bytes) -> Attempt:
    """Call a function that :func:`own_entrant` packed.

    A bare matrix is a claim to have reached the tolerance if the function was told it.
    """
    (function, given), told = pickle.loads(content)
    words = {"tol": tol, "time_limit": time_limit}
    answer = function(objective, **given, **{name: words[name] for name in told})
    if isinstance(answer, Attempt):
        return answer
    return Attempt(answer, "returned", claims="tol" in told)
