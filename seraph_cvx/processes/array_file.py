"""Reads arrays from .npz files of whomever: nothing is executed, and memory is bounded."""

from __future__ import annotations

import errno
import io
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def read_regular_file(path: str | os.PathLike[str]) -> bytes:
    """Read a file; devices and pipes, which may never end, are refused."""
    file = Path(path)
    if file.exists() and not file.is_file() and not file.is_dir():
        raise OSError(errno.EINVAL, "It is a device or a pipe, not a file", os.fspath(path))
    return file.read_bytes()


def parse_arrays(content: bytes, kinds: str) -> dict[str, NDArray[Any]]:
    """The arrays of an uncompressed .npz file, by name, if they are of these kinds of numbers.

    It takes no more memory than the file is long: one whose entries declare more is refused.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = archive.infolist()
        declared = sum(max(entry.file_size, entry.compress_size) for entry in entries)
        if declared > len(content):
            raise ValueError(
                f"its entries declare {declared} bytes, more than the {len(content)} of the whole "
                "file: it is compressed, made to exhaust memory, or damaged"
            )
        return {e.filename.removesuffix(".npy"): _array(archive.read(e), kinds) for e in entries}


def _array(entry: bytes, kinds: str) -> NDArray[Any]:
    array = np.lib.format.read_array(io.BytesIO(entry), allow_pickle=False)
    if array.dtype.kind not in kinds:
        raise ValueError(f"it holds an array of {array.dtype}, where only plain numbers are read")
    return np.asarray(array)
