"""One .npz file of numbers with a JSON header: written whole or not at all, read with suspicion.

The entry ``header`` holds the UTF-8 bytes of a JSON object; every other entry is an array of
numbers. Nothing is pickled, nothing compressed, so that a file can neither execute anything nor
unfold into more memory than it has bytes.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import zipfile
from pathlib import Path
from typing import Any, NoReturn
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]
NUMBERS = "biuf"
"""The kinds of array that are written and read: truth values, integers and floats."""

NPY_MAGIC = b"\x93NUMPY\x01\x00"
NPY_HEADER = re.compile(
    rb"\{'descr': '(?P<type>[<>|][biuf][1248])', 'fortran_order': (True|False), "
    rb"'shape': \((?P<shape>[0-9, ]*)\), \}\s*"
)


def refuse(reason: str) -> NoReturn:
    """Raise a ValueError; whoever knows the file's name adds it.

    Examples
    --------
    >>> refuse("it is empty")
    Traceback (most recent call last):
    ValueError: it is empty
    """
    raise ValueError(reason)


def write_number_file(path: str | os.PathLike[str], header: dict[str, Any], arrays: Arrays) -> None:
    """Write header and arrays beside `path`, then put the complete file in its place.

    Where `path` is a link, the file that it leads to is replaced.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_number_file(Path(folder) / "a.npz", {"unit": "m"}, {"length": np.array([1.5])})
    ...     read_number_file(Path(folder) / "a.npz")
    ({'unit': 'm'}, {'length': array([1.5])})
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


def read_number_file(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays]:
    """The header and the arrays of a file that `write_number_file` wrote.

    Raises
    ------
    ValueError, EOFError, RecursionError, NotImplementedError, zipfile.BadZipFile
        When the file is damaged or something else than this.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     np.savez(Path(folder) / "a.npz", length=np.array([1.5]))
    ...     read_number_file(Path(folder) / "a.npz")
    Traceback (most recent call last):
    ValueError: it has no header, so it is no model
    """
    with open(path, "rb") as file:
        content = io.BytesIO(file.read())
    with zipfile.ZipFile(content) as archive:
        entries = archive.infolist()
        names = [entry.filename.removesuffix(".npy") for entry in entries]
        if len(set(names)) < len(names):
            refuse("two of its entries have one name")
        if any(e.compress_type != zipfile.ZIP_STORED or e.flag_bits & 1 for e in entries):
            refuse("its entries are compressed or encrypted, which models are not")
        arrays = {n: _parse(archive.read(e), n) for n, e in zip(names, entries, strict=True)}
    if "header" not in arrays or arrays["header"].dtype != np.uint8:
        refuse("it has no header, so it is no model")
    text = arrays.pop("header").tobytes().decode()
    header = json.loads(text, parse_constant=lambda word: refuse(f"its header holds {word}"))
    if not isinstance(header, dict):
        refuse("its header is no JSON object, so it is no model")
    return header, arrays


def _parse(data: bytes, name: str) -> NDArray[Any]:
    """A .npy entry, if it holds numbers, and as many as it says."""
    length = int.from_bytes(data[8:10], "little")
    said = NPY_HEADER.fullmatch(data[10 : 10 + length])
    if data[:8] != NPY_MAGIC or said is None:
        refuse(f"its entry {name!r} is no array of plain numbers (pickled objects are never read)")
    shape = [int(size) for size in said["shape"].decode().split(",") if size.strip()]
    if math.prod(shape) * np.dtype(said["type"].decode()).itemsize != len(data) - 10 - length:
        refuse(f"its entry {name!r} is not as long as its shape {tuple(shape)} says: it is damaged")
    return np.asarray(np.load(io.BytesIO(data), allow_pickle=False))
