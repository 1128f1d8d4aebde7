"""Reads back what the package writes in the Conic Benchmark Format; knows nothing of its writer."""

from __future__ import annotations

import hashlib
import json
import os
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from seraph_cvx.race.conic_program import ConicProgram
from seraph_cvx.race.sparse_entries import SparseEntries


def read_sidecar(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The sidecar of a ``.cbf``, after the file has been found to have the checksum it states."""
    path = Path(path)
    sidecar: dict[str, Any] = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != sidecar["file_sha256"]:
        raise ValueError(f"{path} is not the file its sidecar describes: its checksum is {found}.")
    return sidecar


def read_cbf(path: str | os.PathLike[str]) -> ConicProgram:
    """The program in a ``.cbf`` file written by `write_cbf`.

    Raises
    ------
    ValueError
        Where the file uses what an M-step does not need: integers, other cones, other versions.
    """
    lines = Path(path).read_text(encoding="ascii").splitlines()
    blocks = _blocks(lines)
    if blocks.pop("VER", None) != ["3"]:
        raise ValueError(f"{path} is not in version 3 of the Conic Benchmark Format.")
    sense = blocks.pop("OBJSENSE", ["?"])[0]
    variables = _cones(blocks.pop("VAR", ["0 0"]))
    if any(kind != "F" for kind, _ in variables) or sense not in ("MIN", "MAX"):
        raise ValueError(f"{path}: only free scalar variables and MIN or MAX are supported.")
    cones = _cones(blocks.pop("CON", ["0 0"]))
    if strange := {kind for kind, _ in cones} - {"L+", "L=", "QR", "EXP"}:
        raise ValueError(f"{path}: the cones {sorted(strange)} are not supported.")
    program = ConicProgram(
        sense=sense,
        n_variables=sum(size for _, size in variables),
        matrix_orders=tuple(int(line) for line in blocks.pop("PSDVAR", ["0"])[1:]),
        psd_orders=tuple(int(line) for line in blocks.pop("PSDCON", ["0"])[1:]),
        cones=cones,
        objective_matrix=_coordinates(blocks.pop("OBJFCOORD", []), 3),
        objective_vector=_coordinates(blocks.pop("OBJACOORD", []), 1),
        objective_constant=float(blocks.pop("OBJBCOORD", ["0.0"])[0]),
        rows_matrix=_coordinates(blocks.pop("FCOORD", []), 4),
        rows_vector=_coordinates(blocks.pop("ACOORD", []), 2),
        rows_constant=_coordinates(blocks.pop("BCOORD", []), 1),
        psd_vector=_coordinates(blocks.pop("HCOORD", []), 4),
        psd_constant=_coordinates(blocks.pop("DCOORD", []), 3),
    )
    if blocks:
        raise ValueError(f"{path}: the parts {', '.join(blocks)} are not supported.")
    return program


def _blocks(lines: list[str]) -> dict[str, list[str]]:
    """By keyword: the lines up to the next empty one; comments are left out."""
    kept = [line.strip() for line in lines if not line.startswith("#")]
    groups = (list(group) for full, group in groupby(kept, bool) if full)
    return {keyword: body for keyword, *body in groups}


def _cones(lines: list[str]) -> tuple[tuple[str, int], ...]:
    head, *body = lines
    cones = tuple((kind, int(size)) for kind, size in map(str.split, body))
    total, count = map(int, head.split())
    if len(cones) != count or sum(size for _, size in cones) != total:
        raise ValueError(f"{head!r} announces other cones than follow it.")
    return cones


def _coordinates(lines: list[str], n_indices: int) -> SparseEntries:
    if not lines:
        return SparseEntries.none(n_indices)
    rows = [line.split() for line in lines[1:]]
    if len(rows) != int(lines[0]) or any(len(row) != n_indices + 1 for row in rows):
        raise ValueError(f"{lines[0]} entries of {n_indices} indices and a number were announced.")
    index = np.array([row[:-1] for row in rows], dtype=np.int64)
    return SparseEntries(index, np.array([float(row[-1]) for row in rows]))
