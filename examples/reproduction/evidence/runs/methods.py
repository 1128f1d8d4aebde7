"""The methods of Section 5 by name: from points with few labels to the factor L of a metric.

The paper does not say where its iterations stop, so its SERAPH rows are computed in several ways:
at convergence, early-stopped, on objective (7) itself, with sharper soft labels.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from numpy.typing import NDArray

from seraph_cvx.estimators.settings import PAPER_SETTINGS
from seraph_cvx.numerics.checks import FloatArray

from .learners import (
    learn_as_recommended,
    learn_baseline,
    learn_by_early_stopping,
    learn_by_em,
    learn_directly,
)

Learner = Callable[[FloatArray, NDArray[Any], int], FloatArray]
"""A function of X, y (-1: unknown) and a seed that returns the factor L of a metric L'L."""

CHOICES: dict[str, dict[str, Any]] = {"GDM": {"ridge": 1.0}}
"""What was chosen of the rivals' open parameters: GDM's problem is unbounded without a ridge;
of 0.001 to 100 this one did best on samplings 5300 to 5309, which no table uses."""

EARLY_ITERATIONS = 3
"""Iterations of the EM-like scheme where it is stopped early."""


@dataclass(frozen=True)
class Method:
    """A method of Table 2, and where its function is."""

    name: str
    title: str
    learn: Learner
    paper_row: str | None = None
    module: str = __name__


def _baseline(title: str) -> Method:
    name = title.lower()
    module = f"seraph_cvx.baselines.{name}"
    learn = partial(learn_baseline, module, title, **CHOICES.get(title, {}))
    return Method(name, title, learn, title.upper(), module)


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        *map(_baseline, ("Euclidean", "GDM", "NCA", "LMNN", "ITML", "LDM", "MFDA")),
        *(
            Method(f"seraph-{s}", f"SERAPH {s}", partial(learn_by_em, s), f"SERAPH_{s}")
            for s in PAPER_SETTINGS
        ),
        *(
            Method(
                f"early-{s}",
                f"SERAPH {s}, early",
                partial(learn_by_early_stopping, s),
                f"SERAPH_{s}",
            )
            for s in PAPER_SETTINGS
        ),
        Method(
            "three-steps",
            "SERAPH hyper, 3 EM steps",
            partial(learn_by_em, "hyper", max_iter=EARLY_ITERATIONS),
            "SERAPH_hyper",
        ),
        Method("direct", "SERAPH hyper, direct", learn_directly, "SERAPH_hyper"),
        Method(
            "sharp",
            "SERAPH hyper, sharpness 2",
            partial(learn_by_em, "hyper", sharpness=2.0),
            "SERAPH_hyper",
        ),
        Method("recommended", "recommended", learn_as_recommended, "SERAPH_hyper"),
    )
}
"""The methods by name: the rows of Table 2, then other ways to compute them."""

PAPER_METHODS = tuple(METHODS)[:11]
"""The rows of the paper's Table 2."""


def find_methods(names: Sequence[str] | None = None) -> list[Method]:
    """Look up methods by their names; None: all. ``name=module:function`` is one of your own."""
    chosen = [_find(name) for name in (METHODS if names is None else names)]
    return list({method.name: method for method in chosen}.values())


def _find(name: str) -> Method:
    own, _, path = name.partition("=")
    if not path:
        if name not in METHODS:
            raise ValueError(
                f"There is no method {name!r}; the known ones are {', '.join(METHODS)}. Write "
                "name=module:function for one of your own."
            )
        return METHODS[name]
    module, _, function = path.partition(":")
    if not module or not function or own in METHODS:
        raise ValueError(
            f"{name!r}: write name=module:function, the name not one of {', '.join(METHODS)}."
        )
    try:
        learn = getattr(import_module(module), function)
    except (ImportError, AttributeError) as error:
        where = "" if "" in sys.path else " (is its folder on the Python path?)"
        raise ValueError(f"{name!r} cannot be imported: {error}{where}.") from None
    return Method(own, own, learn, None, module)
