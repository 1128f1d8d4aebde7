"""Penalties in a model file: the name of the class, and the arguments that make the block again."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from ...penalties import (
    Diagonal,
    LinearConstraints,
    LogDet,
    Manifold,
    Penalty,
    Ridge,
    Sparse,
    Trace,
    TraceBound,
    UpperBound,
)
from .number_file import refuse

CLASSES: dict[str, type[Penalty]] = {
    block.__name__: block
    for block in (
        Diagonal,
        LinearConstraints,
        LogDet,
        Manifold,
        Ridge,
        Sparse,
        Trace,
        TraceBound,
        UpperBound,
    )
}
"""The blocks of this package, by name."""


def describe_block(block: Penalty) -> dict[str, Any] | None:
    """The arguments that make this block again; None if its class is not one of this package.

    Examples
    --------
    >>> describe_block(TraceBound(3.0))
    {'bound': 3.0}
    >>> describe_block(Ridge(0.1))
    {'weight': 0.1, 'prior': None}
    """
    if CLASSES.get(type(block).__name__) is not type(block):
        return None
    if isinstance(block, TraceBound):
        return {"bound": block.weight}
    if isinstance(block, LinearConstraints):
        kind = "equal" if block.is_equality else "upper"
        return {"matrices": block.matrices, kind: block.bounds, "tolerance": block.tolerance}
    return {name: getattr(block, name) for name in inspect.signature(type(block)).parameters}


def make_block(name: str, arguments: Mapping[str, Any]) -> Penalty:
    """Make a block of this package; a ValueError says what does not fit.

    Examples
    --------
    >>> make_block("TraceBound", {"bound": 3.0})
    TraceBound(3)
    """
    if name not in CLASSES:
        refuse(f"its penalty {name!r} is none of {', '.join(CLASSES)}")
    try:
        return CLASSES[name](**arguments)
    except (TypeError, ValueError) as error:
        refuse(f"its penalty {name} cannot be made: {error}")
