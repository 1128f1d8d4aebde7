"""Converts values to JSON and arrays of numbers, and back: all that a model file may hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

import numpy as np

from ...certificate import Certificate
from ...certificate.sampling import SamplingReport
from ...fit.alternation import Iteration
from ...penalties.penalty import Penalty
from ...solvers.solution import Status
from ..evidence import LeaveOneOut
from .blocks import describe_block, make_block
from .number_file import NUMBERS, Arrays, refuse

RESULTS: dict[str, Any] = {
    "certificate": Certificate,
    "iteration": Iteration,
    "leave_one_out": LeaveOneOut,
    "sampling": SamplingReport,
}
"""The result classes of this package that a model keeps."""

FIELD_TYPES: dict[str, Any] = {
    "float": (float, int),
    "int": int,
    "str": str,
    "FloatArray": np.ndarray,
    "Certificate": Certificate,
}


class NotPlain(Exception):
    """A value that JSON and arrays of numbers cannot hold."""


def pack(value: Any, name: str, arrays: Arrays) -> Any:
    """Convert a value to JSON: plain values as they are, all others as {kind: content}.

    Parameters
    ----------
    value : object
    name : str
        Its name; an array becomes an entry of this name.
    arrays : dict
        Takes the arrays of numbers.

    Raises
    ------
    NotPlain
        When the value is of no kind that can be written.

    Examples
    --------
    >>> arrays = {}
    >>> pack({"a": (1, 0.5), "b": np.eye(2)}, "v", arrays)
    {'dict': {'a': {'tuple': [1, 0.5]}, 'b': {'array': 'v.b'}}}
    >>> list(arrays)
    ['v.b']
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Status):
        return {"status": value.value}
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, list | tuple):
        items = [pack(item, f"{name}.{i}", arrays) for i, item in enumerate(value)]
        return items if isinstance(value, list) else {"tuple": items}
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {"dict": {key: pack(v, f"{name}.{key}", arrays) for key, v in value.items()}}
    if isinstance(value, np.ndarray) and value.dtype.kind in NUMBERS:
        arrays[name] = value
        return {"array": name}
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return {"objects": pack(value.tolist(), name, arrays)}
    if isinstance(value, Penalty):
        return {"penalty": [type(value).__name__, _pack_block(value, name, arrays)]}
    for kind, result in RESULTS.items():
        if type(value) is result:
            content = {field.name: getattr(value, field.name) for field in fields(value)}
            return {kind: pack(content, name, arrays)["dict"]}
    raise NotPlain(f"`{name}` is {value!r}")


def _pack_block(block: Penalty, name: str, arrays: Arrays) -> Any:
    arguments = describe_block(block)
    if arguments is None:
        raise NotPlain(
            f"`{name}` is {block!r}, a penalty of a class of your own, which no file without code "
            "can hold; model.set_params(penalties=()) leaves it out and keeps what was learned"
        )
    return pack(arguments, name, arrays)


def unpack(value: Any, arrays: Arrays, may_be_nan: bool = False) -> Any:
    """Restore the value that `pack` was given; raise an error for anything else.

    Parameters
    ----------
    value : object
        Out of JSON.
    arrays : dict
        The arrays that are taken are removed from it.
    may_be_nan : bool
        Whether NaN and infinity may stand in the arrays.

    Examples
    --------
    >>> unpack({"tuple": [1, {"array": "v"}]}, {"v": np.array([1.0])})
    (1, array([1.]))
    """
    match value:
        case list():
            return [unpack(item, arrays, may_be_nan) for item in value]
        case dict() if len(value) != 1:
            pass
        case {"array": str(name)}:
            return _take(name, arrays, may_be_nan)
        case {"tuple": list(items)}:
            return tuple(unpack(items, arrays, may_be_nan))
        case {"objects": list(items)}:
            objects = np.empty(len(items), dtype=object)
            objects[:] = unpack(items, arrays, may_be_nan)
            return objects
        case {"dict": dict(content)}:
            return {key: unpack(item, arrays, may_be_nan) for key, item in content.items()}
        case {"float": ("nan" | "inf" | "-inf") as word}:
            return float(word)
        case {"status": str(word)} if word in list(Status):
            return Status(word)
        case {"penalty": [str(name), dict(content)]}:
            return make_block(name, unpack(content, arrays))
        case dict():
            kind, content = next(iter(value.items()))
            if kind in RESULTS and isinstance(content, dict):
                return _result(RESULTS[kind], unpack({"dict": content}, arrays))
        case _:
            return value
    raise ValueError(f"its header holds {str(value)[:80]}, which is no value of a model")


def _take(name: str, arrays: Arrays, may_be_nan: bool) -> Any:
    if name not in arrays:
        refuse(f"its array {name!r} is missing, or named twice")
    if not may_be_nan and not np.all(np.isfinite(arrays[name])):
        refuse(f"its array {name!r} holds NaN or infinity")
    return arrays.pop(name)


def _result(cls: Any, content: dict[str, Any]) -> Any:
    types = {field.name: FIELD_TYPES[str(field.type)] for field in fields(cls)}
    needed = {
        field.name
        for field in fields(cls)
        if field.default is MISSING and field.default_factory is MISSING
    }  # files of before lack the others
    fits = needed <= content.keys() <= types.keys() and all(
        isinstance(content[key], types[key]) for key in content
    )
    if not fits:
        refuse(f"its header holds {str(content)[:80]}, which is no {cls.__name__}")
    return cls(**content)
