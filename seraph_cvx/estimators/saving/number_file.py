"""An .npz file of numbers with a JSON header, written atomically and checked when read.

The entry ``header`` holds the UTF-8 bytes of a JSON object; every other entry is an array of
numbers. Nothing is pickled, so a file executes nothing; nothing is compressed and no two entries
share a byte, so its arrays together take no more memory than it has bytes.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import struct
import zipfile
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

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

LOCAL_HEADER = struct.Struct("<26xHH")
"""The header before a zip entry, which ends with the lengths of the name and the extra field."""

LARGEST_SIZE = int(np.iinfo(np.intp).max)
"""The most rows or columns that an array may have."""


def refuse(reason: str) -> NoReturn:
    """Raise a ValueError, to which the caller adds the file's name.

    Examples
    --------
    >>> refuse("it is empty")
    Traceback (most recent call last):
    ValueError: it is empty
    """
    raise ValueError(reason)


def write_number_file(path: str | os.PathLike[str], header: dict[str, Any], arrays: Arrays) -> None:
    """Write header and arrays atomically: to a temporary file, which is then renamed.

    If `path` is a link, the file that it points to is replaced.

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
    """Read the header and the arrays of a file that `write_number_file` wrote.

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
        content = file.read()
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
        _check_layout(entries, content, archive.start_dir)
        arrays = {n: _parse(archive.read(e), n) for n, e in zip(names, entries, strict=True)}
    if "header" not in arrays or arrays["header"].dtype != np.uint8:
        refuse("it has no header, so it is no model")
    text = arrays.pop("header").tobytes().decode()
    header = json.loads(text, parse_constant=lambda word: refuse(f"its header holds {word}"))
    if not isinstance(header, dict):
        refuse("its header is no JSON object, so it is no model")
    return header, arrays


def _check_layout(entries: list[zipfile.ZipInfo], content: bytes, end: int) -> None:
    """Refuse entries that claim more bytes than the file has, or that overlap.

    `end` is where the entries end and the archive's directory begins.
    """
    for entry in entries:
        if entry.file_size != entry.compress_size:
            refuse(
                f"its entry {entry.filename!r} declares {entry.file_size} bytes and stores "
                f"{entry.compress_size}: it is damaged"
            )
    declared = sum(entry.file_size for entry in entries)
    if declared > len(content):
        refuse(
            f"its entries declare {declared} bytes, more than the {len(content)} of the whole "
            "file: it was made to exhaust memory, or is damaged"
        )
    spans = [(*_span(entry, content), entry.filename) for entry in entries]
    for (_, stop, name), (start, _, other) in pairwise([*sorted(spans), (end, end, "")]):
        if stop > start:
            where = f"its entry {other!r}" if other else "the archive's directory"
            refuse(f"its entry {name!r} and {where} overlap: no model is written so")


def _span(entry: zipfile.ZipInfo, content: bytes) -> tuple[int, int]:
    """The bytes of an entry in the file, with its header: where it starts and ends."""
    start, first = entry.header_offset, entry.header_offset + LOCAL_HEADER.size
    if start < 0 or first > len(content):
        refuse(f"its entry {entry.filename!r} starts outside of the file: it is damaged")
    name_length, extra_length = LOCAL_HEADER.unpack_from(content, start)
    return start, first + name_length + extra_length + entry.compress_size


def _parse(data: bytes, name: str) -> NDArray[Any]:
    """Parse an .npy entry, and check that it holds as many numbers as it claims."""
    length = int.from_bytes(data[8:10], "little")
    said = NPY_HEADER.fullmatch(data[10 : 10 + length])
    if data[:8] != NPY_MAGIC or said is None:
        refuse(f"its entry {name!r} is no array of plain numbers: nothing else is read")
    shape = [int(size) for size in said["shape"].decode().split(",") if size.strip()]
    n_bytes = math.prod(shape) * np.dtype(said["type"].decode()).itemsize
    if n_bytes != len(data) - 10 - length or max(shape, default=0) > LARGEST_SIZE:
        refuse(f"its entry {name!r} is not as long as its shape {tuple(shape)} says: it is damaged")
    return np.asarray(np.load(io.BytesIO(data), allow_pickle=False))
