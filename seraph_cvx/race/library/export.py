"""Exports instances with proofs: as CBF, as arrays, and with a proven interval of the optimum.

Each instance has four files. ``NAME.npz`` defines it (`instance_file.py`); ``NAME.cbf`` states the
same as a cone program; ``NAME.optimum.npy`` has a factor L whose LL' is as good as optimal; and
``NAME.json`` has its sizes and the interval, proved in ball arithmetic for the doubles of the
``.npz``. ``SHA256SUMS`` grows with every instance: one whose files it confirms is not made again.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...model.m_step_objective import MStepObjective
from ...numerics.checks import FloatArray
from ...processes.whole_file import write_whole
from ..cbf import to_cbf
from ..conic_program import ConicProgram
from ..instances.listed import LIBRARY
from ..suite import InstanceSpec, suite
from .documents import library_table, readme
from .instance_file import npy_bytes, read_instance, to_arrays, to_bytes
from .proof import prove_optimum, relative_width

ENDINGS = (".npz", ".cbf", ".optimum.npy", ".json")
"""The files of an instance; the last one is written last."""

CHECKSUMS = "SHA256SUMS"

FAINT = 1e-7
"""Eigenvalues of the optimum below this share of the largest do not count in its rank."""

Listener = Callable[[dict[str, Any], int, int, bool], None]
"""The type of callback(entry, its number, how many there are, whether it was made just now)."""


def export_library(
    folder: str | os.PathLike[str],
    instances: str | Sequence[InstanceSpec] = "full",
    callback: Listener | None = None,
) -> list[dict[str, Any]]:
    """Write every instance of a suite to a folder, with a proven interval of its optimal value.

    Parameters
    ----------
    folder : path
        Made where it does not exist. What is in it, with the right checksum, is kept: an export
        that was interrupted continues from there.
    instances : str or sequence of InstanceSpec
        The name of a suite, or specs.
    callback : callable, optional
        Called as ``callback(entry, number, total, made)`` after each instance; `made` is false for
        one that was there.

    Returns
    -------
    list of dict
        The contents of the ``.json`` files.

    Raises
    ------
    ValueError
        Where the optimum of an instance cannot be proved to a relative width of 1e-9.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     spec = InstanceSpec.parse("onehot2-n8-l8-rounded-proj-w0.125-s0")
    ...     (entry,) = export_library(folder, [spec])
    ...     sorted(path.name for path in Path(folder).iterdir())[:2]
    ['README.md', 'SHA256SUMS']
    >>> entry["rank"], entry["relative_width"] <= 1e-9
    (1, True)
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    specs = suite(instances) if isinstance(instances, str) else list(instances)
    known = _read_checksums(folder)
    sums: dict[str, str] = {}
    entries = []
    for number, spec in enumerate(specs, 1):
        arrays = to_bytes(to_arrays(spec.objective()))
        entry = _found(folder, spec.name, arrays, known)
        made = entry is None
        if entry is None:
            entry = _write_instance(folder, spec, arrays)
        sums |= {name: _checksum((folder / name).read_bytes()) for name in _names(spec.name)}
        _write_checksums(folder, known | sums)
        entries.append(entry)
        if callback is not None:
            callback(entry, number, len(specs), made)
    documents = {"README.md": readme(entries), "library.md": library_table(entries)}
    for name, text in documents.items():
        write_whole(folder / name, text.encode())
        sums[name] = _checksum(text.encode())
    _write_checksums(folder, sums)
    return entries


def _write_instance(folder: Path, spec: InstanceSpec, arrays: bytes) -> dict[str, Any]:
    """Make an instance and its proof, and write its files."""
    objective = read_instance(io.BytesIO(arrays))  # what is proved is what the file says
    program = ConicProgram.of(objective, "similar")
    proof = prove_optimum(objective, spec.name)
    why = LIBRARY.get(spec.name, "")
    heading = [f"SERAPH M-step, primal: {spec.name}", *([why] if why else [])]
    heading += [f"A proven interval of the optimal value is in {spec.name}.json"]
    contents = [arrays, to_cbf(program, heading).encode(), npy_bytes(proof.factor)]
    entry = {
        "instance": spec.name,
        "kind": "penalized M-step" if objective.penalties else "M-step",
        "penalty": spec.penalty,
        "why": why,
        **_sizes(objective, program, proof.factor),
        "unlabeled_weight": objective.mu,
        "trace_weight": objective.trace_weight,
        "threshold": objective.threshold,
        "lower": proof.dual_value,
        "upper": proof.primal_value,
        "relative_width": relative_width(proof),
        "proof": {"arithmetic": "balls", "bits": proof.precision, "dual_point": proof.dual_point},
        "npz_sha256": _checksum(arrays),
        "cbf_sha256": _checksum(contents[1]),
    }
    contents.append((json.dumps(entry, indent=1) + "\n").encode())
    for name, content in zip(_names(spec.name), contents, strict=True):
        write_whole(folder / name, content)
    return entry


def _sizes(objective: MStepObjective, program: ConicProgram, L: FloatArray) -> dict[str, Any]:
    """How large an instance is: as an M-step, and as a cone program."""
    pairs = objective.pairs
    rows: Counter[str] = Counter()
    for kind, size in program.cones:
        rows[kind] += size
    sizes = np.square(np.linalg.svd(L, compute_uv=False)) if L.size else np.zeros(1)
    return {
        "n_points": pairs.n_points,
        "n_features": pairs.n_features,
        "n_similar": pairs.n_similar,
        "n_dissimilar": pairs.n_labeled - pairs.n_similar,
        "n_unlabeled": pairs.n_unlabeled if objective.mu > 0.0 else 0,
        "soft_labels": objective.has_soft_labels,
        "rank": int(np.sum(sizes > FAINT * np.max(sizes))),
        "scalar_variables": program.n_variables,
        "psd_variables": list(program.matrix_orders),
        "exponential_cones": rows["EXP"] // 3,
        "rows": dict(rows),
    }


def _found(
    folder: Path, instance: str, arrays: bytes, known: dict[str, str]
) -> dict[str, Any] | None:
    """The entry of an instance that is in the folder, unchanged; None where it has to be made."""
    for name in _names(instance):
        path = folder / name
        if not path.is_file() or known.get(name) != _checksum(path.read_bytes()):
            return None
    if known[f"{instance}.npz"] != _checksum(arrays):
        return None
    entry: dict[str, Any] = json.loads((folder / f"{instance}.json").read_text(encoding="utf-8"))
    return entry


def _names(instance: str) -> list[str]:
    return [f"{instance}{ending}" for ending in ENDINGS]


def _checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read_checksums(folder: Path) -> dict[str, str]:
    path = folder / CHECKSUMS
    if not path.is_file():
        return {}
    lines = (line.split("  ", 1) for line in path.read_text(encoding="utf-8").splitlines())
    return {parts[1]: parts[0] for parts in lines if len(parts) == 2}


def _write_checksums(folder: Path, sums: dict[str, str]) -> None:
    """Write the checksums as ``sha256sum --check`` reads them."""
    text = "".join(f"{value}  {name}\n" for name, value in sorted(sums.items()))
    write_whole(folder / CHECKSUMS, text.encode())
