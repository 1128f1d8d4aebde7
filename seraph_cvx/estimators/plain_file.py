"""Values as JSON and arrays of numbers in one .npz file, without pickle.

The entry ``header`` holds the UTF-8 bytes of a JSON object; every other entry is an array of
numbers. Reading executes nothing, and takes no more memory than the file is long.
"""

from __future__ import annotations

import inspect
import io
import json
import math
import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..certificate import Certificate
from ..certificate.written import PENALTIES, LowerBound
from ..engine.distances import Factor
from ..fit.alternation import Iteration
from ..model.m_step_objective import MStepObjective
from ..numerics.checks import check_points
from ..pairs.labeled_pairs import ClassLabels, LabeledPairs
from ..pairs.pair_set import PairSet
from ..penalties import Penalty, TraceBound
from ..processes.array_file import parse_arrays
from ..processes.whole_file import write_whole
from ..solvers.solution import Status
from .held_out import HeldOut

Arrays = dict[str, NDArray[Any]]
NUMBERS = "biuf"
"""The kinds of arrays that are written and read: booleans, integers and floats."""

BLOCKS: dict[str, type[Penalty]] = {block.__name__: block for block in PENALTIES}
"""The penalties of this package, by name."""

RESULTS: dict[str, Any] = {
    "certificate": Certificate,
    "class_labels": ClassLabels,
    "factor": Factor,
    "held_out": HeldOut,
    "iteration": Iteration,
    "labeled_pairs": LabeledPairs,
    "lower_bound": LowerBound,
    "m_step": MStepObjective,
    "pairs": PairSet,
}
"""The classes of this package of what a model keeps."""


SHARED = ("family", "device_array")
"""What an M-step shares with others, and an array of another library: no part of a file."""


class NotPlain(Exception):
    """A value that JSON and arrays of numbers cannot hold."""


def refuse(reason: str) -> NoReturn:
    """Raise a ValueError, to which the caller adds the file's name."""
    raise ValueError(reason)


def look_up(name: Any, table: Mapping[str, Any], what: str) -> Any:
    """What a table has by this name; a name that it does not have is refused."""
    if not isinstance(name, str) or name not in table:
        refuse(f"its {what} {name!r} is none of {', '.join(table)}")
    return table[name]


def write_plain_file(path: str | os.PathLike[str], header: dict[str, Any], arrays: Arrays) -> None:
    """Write header and arrays; what was there is replaced only when the new file is complete."""
    text = np.frombuffer(json.dumps(header, allow_nan=False).encode(), dtype=np.uint8)
    content = io.BytesIO()
    np.savez(content, **{"header": text, **arrays})  # type: ignore[arg-type]
    write_whole(Path(path), content.getvalue())


def parse_plain_file(content: bytes) -> tuple[dict[str, Any], Arrays]:
    """The header and the arrays of a file that `write_plain_file` wrote."""
    arrays = parse_arrays(content)
    if "header" not in arrays:
        refuse("it has no header, so it is no model")
    if other := [array.dtype for array in arrays.values() if array.dtype.kind not in NUMBERS]:
        refuse(f"it holds an array of {other[0]}, where only plain numbers are read")
    header = json.loads(arrays.pop("header").tobytes().decode())
    if not isinstance(header, dict):
        refuse("its header is no JSON object, so it is no model")
    return header, arrays


def pack(value: Any, name: str, arrays: Arrays) -> Any:
    """Convert a value to JSON: plain values as they are, all others as {kind: content}.

    Arrays of numbers become entries of `arrays`, by their name. NotPlain is raised for all others.
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
        return {"penalty": [type(value).__name__, pack(block_arguments(value, name), name, arrays)]}
    for kind, result in RESULTS.items():
        if type(value) is result:
            names = [field.name for field in fields(value) if field.init]
            content = {field: getattr(value, field) for field in names if field not in SHARED}
            return {kind: pack(content, name, arrays)["dict"]}
    raise NotPlain(f"`{name}` is {value!r}")


def block_arguments(block: Penalty, name: str) -> dict[str, Any]:
    """The arguments that make this penalty again."""
    if BLOCKS.get(type(block).__name__) is not type(block):
        raise NotPlain(
            f"`{name}` is {block!r}, a penalty of a class of your own, which no file without code "
            "can hold; model.set_params(penalties=()) and model.certificate_ = None leave it out, "
            "and keep the metric"
        )
    if isinstance(block, TraceBound):
        return {"bound": block.weight}
    return {name: getattr(block, name) for name in inspect.signature(type(block)).parameters}


def unpack(value: Any, arrays: Arrays) -> Any:
    """Restore the value that `pack` was given; the arrays that are used are removed."""
    match value:
        case list():
            return [unpack(item, arrays) for item in value]
        case {"array": str(name)} if name in arrays:
            return arrays.pop(name)
        case {"tuple": list(items)}:
            return tuple(unpack(items, arrays))
        case {"objects": list(items)}:
            objects = np.empty(len(items), dtype=object)
            objects[:] = unpack(items, arrays)
            return objects
        case {"dict": dict(content)}:
            return {key: unpack(item, arrays) for key, item in content.items()}
        case {"float": str(word)}:
            return float(word)
        case {"status": str(word)}:
            return Status(word)
        case {"penalty": [name, dict(content)]}:
            return look_up(name, BLOCKS, "penalty")(**unpack(content, arrays))
        case {"pairs": dict(content)}:
            return _checked_pairs(**unpack({"dict": content}, arrays))
        case dict() if len(value) == 1 and (kind := next(iter(value))) in RESULTS:
            return RESULTS[kind](**unpack({"dict": value[kind]}, arrays))
        case dict():
            refuse(f"its header holds {str(value)[:80]}, which is no value of a model")
    return value


def _checked_pairs(points: Any, labels: Any) -> PairSet:
    """Pairs of points, refused unless they are rows (i, j), i < j, of its points."""
    if isinstance(labels, ClassLabels):
        if labels.members.shape != labels.classes.shape:
            refuse("the members of its pairs have not one class each")
        lists = [np.column_stack([labels.members[:-1], labels.members[1:]])]
    else:
        lists = [labels.similar, labels.dissimilar]
    n = len(check_points(points))
    for rows in lists:
        is_list = rows.ndim == 2 and rows.shape[1] == 2 and rows.dtype.kind in "iu"
        if not is_list or np.any((rows < 0) | (rows >= n)) or np.any(rows[:, 0] >= rows[:, 1]):
            refuse("a pair of its M-step does not consist of two of the points, in order")
    return PairSet(points, labels)
