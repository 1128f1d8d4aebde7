"""Values as JSON and arrays of numbers in one .npz file, written atomically, checked when read.

The entry ``header`` holds the UTF-8 bytes of a JSON object; every other entry is an array of
numbers. Nothing is pickled, so a file executes nothing; nothing is compressed, and the entries
declare no more bytes than the file has, so its arrays take no more memory.
"""

from __future__ import annotations

import inspect
import io
import json
import math
import os
import re
import zipfile
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, NoReturn
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from .. import penalties
from ..certificate import Certificate
from ..certificate.sampling import SamplingReport
from ..fit.alternation import Iteration
from ..penalties.penalty import Penalty
from ..solvers.solution import Status
from .evidence import LeaveOneOut

Arrays = dict[str, NDArray[Any]]
NUMBERS = "biuf"
"""The kinds of arrays that are written and read: booleans, integers and floats."""

NPY_MAGIC = b"\x93NUMPY\x01\x00"
NPY_HEADER = re.compile(
    rb"\{'descr': '(?P<type>[<>|][biuf][1248])', 'fortran_order': (True|False), "
    rb"'shape': \((?P<shape>[0-9, ]*)\), \}\s*"
)

OLD_ENTRIES = {"metric", "components", "feature_names"}
"""What `seraph-cvx fit` wrote before it wrote models."""

LARGEST_SIZE = int(np.iinfo(np.intp).max)
"""The most rows or columns that an array may have."""

BLOCKS: dict[str, type[Penalty]] = {
    name: block
    for name, block in ((name, getattr(penalties, name)) for name in penalties.__all__)
    if isinstance(block, type) and issubclass(block, Penalty) and block is not Penalty
}
"""The penalties of this package, by name."""

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


def refuse(reason: str) -> NoReturn:
    """Raise a ValueError, to which the caller adds the file's name."""
    raise ValueError(reason)


def write_plain_file(path: str | os.PathLike[str], header: dict[str, Any], arrays: Arrays) -> None:
    """Write header and arrays atomically: to a temporary file, which is then renamed.

    If `path` is a link, the file that it points to is replaced.
    """
    target = Path(path).resolve()
    text = np.frombuffer(json.dumps(header, allow_nan=False).encode(), dtype=np.uint8)
    temporary = target.with_name(f".{target.name}.{uuid4().hex}.tmp")
    try:
        with temporary.open("xb") as file:
            np.savez(file, **{"header": text, **arrays})  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except OSError as error:
        if error.errno is not None:
            error.filename, error.filename2 = os.fspath(path), None
        raise
    finally:
        temporary.unlink(missing_ok=True)


def read_plain_file(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays]:
    """Read the header and the arrays of a file that `write_plain_file` wrote."""
    content = Path(path).read_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = archive.infolist()
        names = [entry.filename.removesuffix(".npy") for entry in entries]
        if len(set(names)) < len(names):
            refuse("two of its entries have one name")
        if any(e.compress_type != zipfile.ZIP_STORED or e.flag_bits & 1 for e in entries):
            refuse("its entries are compressed or encrypted, which models are not")
        if set(names) >= OLD_ENTRIES:
            refuse(
                "it is of an earlier `seraph-cvx fit`, which wrote the matrix without a model: run "
                "the command again, or read its arrays by numpy.load"
            )
        declared = sum(max(entry.file_size, entry.compress_size) for entry in entries)
        if declared > len(content):  # entries on the same bytes would take more memory
            refuse(
                f"its entries declare {declared} bytes, more than the {len(content)} of the whole "
                "file: it was made to exhaust memory, or is damaged"
            )
        arrays = {n: _parse(archive.read(e), n) for n, e in zip(names, entries, strict=True)}
    if "header" not in arrays or arrays["header"].dtype != np.uint8:
        refuse("it has no header, so it is no model")
    text = arrays.pop("header").tobytes().decode()
    header = json.loads(text, parse_constant=lambda word: refuse(f"its header holds {word}"))
    if not isinstance(header, dict):
        refuse("its header is no JSON object, so it is no model")
    return header, arrays


def _parse(data: bytes, name: str) -> NDArray[Any]:
    """Parse an .npy entry, and check that it holds as many numbers as it claims."""
    length = int.from_bytes(data[8:10], "little")
    header = NPY_HEADER.fullmatch(data[10 : 10 + length])
    if data[:8] != NPY_MAGIC or header is None:
        refuse(f"its entry {name!r} is no array of plain numbers: nothing else is read")
    shape = [int(size) for size in header["shape"].decode().split(",") if size.strip()]
    n_bytes = math.prod(shape) * np.dtype(header["type"].decode()).itemsize
    if n_bytes != len(data) - 10 - length or max(shape, default=0) > LARGEST_SIZE:
        refuse(f"its entry {name!r} is not as long as its shape {tuple(shape)} says: it is damaged")
    return np.asarray(np.load(io.BytesIO(data), allow_pickle=False))


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
            content = {field.name: getattr(value, field.name) for field in fields(value)}
            return {kind: pack(content, name, arrays)["dict"]}
    raise NotPlain(f"`{name}` is {value!r}")


def block_arguments(block: Penalty, name: str) -> dict[str, Any]:
    """The arguments that make this penalty again."""
    if BLOCKS.get(type(block).__name__) is not type(block):
        raise NotPlain(
            f"`{name}` is {block!r}, a penalty of a class of your own, which no file without code "
            "can hold; model.set_params(penalties=()) leaves it out and keeps what was learned"
        )
    if isinstance(block, penalties.TraceBound):
        return {"bound": block.weight}
    if isinstance(block, penalties.LinearConstraints):
        kind = "equal" if block.is_equality else "upper"
        return {"matrices": block.matrices, kind: block.bounds, "tolerance": block.tolerance}
    return {name: getattr(block, name) for name in inspect.signature(type(block)).parameters}


def unpack(value: Any, arrays: Arrays, may_be_nan: bool = False) -> Any:
    """Restore the value that `pack` was given; raise an error for anything else.

    The arrays that are used are removed; NaN and infinity may be in them only if `may_be_nan`.
    """
    match value:
        case list():
            return [unpack(item, arrays, may_be_nan) for item in value]
        case dict() if len(value) != 1:
            pass
        case {"array": str(name)}:
            return _pop_array(name, arrays, may_be_nan)
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
            return _make_block(name, unpack(content, arrays))
        case dict():
            kind, content = next(iter(value.items()))
            if kind in RESULTS and isinstance(content, dict):
                return _make_result(RESULTS[kind], unpack({"dict": content}, arrays))
        case _:
            return value
    raise ValueError(f"its header holds {str(value)[:80]}, which is no value of a model")


def _pop_array(name: str, arrays: Arrays, may_be_nan: bool) -> NDArray[Any]:
    if name not in arrays:
        refuse(f"its array {name!r} is missing, or named twice")
    if not may_be_nan and not np.all(np.isfinite(arrays[name])):
        refuse(f"its array {name!r} holds NaN or infinity")
    return arrays.pop(name)


def _make_block(name: str, arguments: Any) -> Penalty:
    if name not in BLOCKS:
        refuse(f"its penalty {name!r} is none of {', '.join(BLOCKS)}")
    try:
        return BLOCKS[name](**arguments)
    except (TypeError, ValueError) as error:
        refuse(f"its penalty {name} cannot be made: {error}")


def _make_result(cls: Any, content: dict[str, Any]) -> Any:
    types = {field.name: FIELD_TYPES[str(field.type)] for field in fields(cls)}
    required = {
        field.name
        for field in fields(cls)
        if field.default is MISSING and field.default_factory is MISSING
    }  # older files lack the others
    if not required <= content.keys() <= types.keys() or not all(
        isinstance(item, types[key]) for key, item in content.items()
    ):
        refuse(f"its header holds {str(content)[:80]}, which is no {cls.__name__}")
    return cls(**content)
