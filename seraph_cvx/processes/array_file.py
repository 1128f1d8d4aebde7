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


def parse_arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of an uncompressed .npz file, by name.

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
        read = np.lib.format.read_array
        return {
            entry.filename.removesuffix(".npy"): read(
                io.BytesIO(archive.read(entry)), allow_pickle=False
            )
            for entry in entries
        }
