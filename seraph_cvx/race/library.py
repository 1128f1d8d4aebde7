"""A library of instances with proofs: as arrays, as CBF, and with a proven interval of the optimum.

Each instance has four files. ``NAME.npz`` defines it in plain arrays, which NumPy alone can read:
at a matrix A that satisfies its constraints the objective is, with v_k the difference of the points
of pair k, s_k = v_k'Av_k - threshold, c of `weights`, q of `similar` and R of the linear terms,

    sum_k c_k [log(1 + e^{-s_k}) + q_k s_k] + <R, A> + penalties.

``NAME.cbf`` states the same as a cone program, unless that is too large; ``NAME.optimum.npy`` has
a factor L whose LL' is as good as optimal; and ``NAME.json`` has its sizes and the interval,
proved in ball arithmetic for the doubles of the ``.npz``. ``SHA256SUMS`` grows with every instance:
one whose files it confirms is not made again.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..certificate.proof import Proof, prove
from ..display.result_table import ResultTable
from ..estimators.plain_file import block_arguments
from ..model.m_step_objective import MStepObjective
from ..numerics.arrays import one_blas_thread
from ..pairs.pair_set import PairSet
from ..penalties import (
    Diagonal,
    LinearConstraints,
    LogDet,
    Penalty,
    Ridge,
    Sparse,
    TraceBound,
    UpperBound,
)
from ..processes.whole_file import write_whole
from ..solvers.methods import newton_method
from .cbf import ConeProgram
from .formula_solvers import list_pairs
from .instances import LIBRARY
from .suite import InstanceSpec, suite

ENDINGS = (".npz", ".optimum.npy", ".cbf", ".json")
"""The files of an instance; the last one is written last."""

MOST_ENTRIES = 1_000_000
"""Entries of A times pairs, beyond which there is no ``.cbf``: it would have some 25 MB or more."""

CHECKSUMS = "SHA256SUMS"

FAINT = 1e-7
"""Eigenvalues of the optimum below this share of the largest do not count in its rank."""

LARGEST_WIDTH = 1e-9
"""The largest relative width of an interval in the library."""

SUFFICIENT_WIDTH = 1e-10
"""No narrower interval is looked for than this."""

TOLERANCES = (1e-10, 1e-13)
"""What the solver is asked for, one after the other, within `TIME_LIMIT` seconds each."""

TIME_LIMIT = 60.0

PENALTIES: dict[type[Penalty], dict[str, str]] = {
    Ridge: {"ridge": "weight", "prior": "prior"},
    LogDet: {"log_det": "weight"},
    Sparse: {"sparse": "weight"},
    TraceBound: {"trace_bound": "bound"},
    UpperBound: {"upper_bound": "bound"},
    Diagonal: {"diagonal": ""},
    LinearConstraints: {
        "linear_matrices": "matrices",
        "linear_bounds": "upper",
        "linear_tolerance": "tolerance",
    },
}
"""By penalty: its arrays in a file, and which argument each is; the first tells it is there."""

UNIX = 3
"""The system that an archive says it was made on."""

Arrays = dict[str, NDArray[Any]]

Listener = Callable[[dict[str, Any], int, int, bool], None]
"""The type of callback(entry, its number, how many there are, whether it was made just now)."""


def export_library(
    folder: str | os.PathLike[str],
    instances: str | Sequence[InstanceSpec] = "full",
    callback: Listener | None = None,
) -> list[dict[str, Any]]:
    """Write every instance of a suite to a folder, with a proven interval of its optimal value.

    An export that was interrupted goes on where it stopped; ``callback(entry, number, total,
    made)`` hears of each instance. Returns the contents of the ``.json`` files; a ValueError says
    which optimum could not be proved to a relative width of 1e-9.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    specs = suite(instances) if isinstance(instances, str) else list(instances)
    known = _read_checksums(folder)
    sums: dict[str, str] = {}
    entries = []
    for number, spec in enumerate(specs, 1):
        objective = spec.objective()
        arrays = to_bytes(to_arrays(objective))
        endings = [e for e in ENDINGS if e != ".cbf" or _fits_into_cbf(objective)]
        paths = [folder / f"{spec.name}{ending}" for ending in endings]
        files = {path.name: path.read_bytes() for path in paths if path.is_file()}
        made = (
            len(files) < len(endings)
            or files[paths[0].name] != arrays
            or any(known.get(name) != _checksum(content) for name, content in files.items())
        )
        if made:
            contents = _make_instance(spec, arrays)
            files = {path.name: content for path, content in zip(paths, contents, strict=True)}
            for path in paths:
                write_whole(path, files[path.name])
        sums |= {name: _checksum(content) for name, content in files.items()}
        _write_checksums(folder, known | sums)
        entries.append(json.loads(files[paths[-1].name]))
        if callback is not None:
            callback(entries[-1], number, len(specs), made)
    for name, text in (("README.md", readme(entries)), ("library.md", library_table(entries))):
        write_whole(folder / name, text.encode())
        sums[name] = _checksum(text.encode())
    _write_checksums(folder, sums)
    return entries


def _make_instance(spec: InstanceSpec, arrays: bytes) -> list[bytes]:
    """Make an instance and its proof: the contents of its files."""
    objective = read_instance(io.BytesIO(arrays))  # what is proved is what the file says
    proof = prove_optimum(objective, spec.name)
    why, pairs = LIBRARY.get(spec.name, ""), objective.pairs
    contents, stated = [arrays, npy_bytes(proof.factor)], {}
    if _fits_into_cbf(objective):
        heading = [f"SERAPH M-step, primal: {spec.name}", *([why] if why else [])]
        heading += [f"A proven interval of the optimal value is in {spec.name}.json"]
        program = ConeProgram.of(objective)
        contents.append(program.to_cbf(heading).encode())
        stated = _described(program) | {"cbf_sha256": _checksum(contents[-1])}
    singular = np.linalg.svd(proof.factor, compute_uv=False)
    entry = {
        "instance": spec.name,
        "kind": "penalized M-step" if objective.penalties else "M-step",
        "penalty": spec.penalty,
        "why": why,
        "n_points": pairs.n_points,
        "n_features": pairs.n_features,
        "n_similar": pairs.n_similar,
        "n_dissimilar": pairs.n_labeled - pairs.n_similar,
        "n_unlabeled": pairs.n_unlabeled if objective.mu > 0.0 else 0,
        "soft_labels": objective.has_soft_labels,
        "rank": int(np.sum(singular**2 > FAINT * np.max(singular, initial=0.0) ** 2)),
        "unlabeled_weight": objective.mu,
        "trace_weight": objective.trace_weight,
        "threshold": objective.threshold,
        "lower": proof.dual_value,
        "upper": proof.primal_value,
        "relative_width": relative_width(proof),
        "proof": {"arithmetic": "balls", "bits": proof.precision, "dual_point": proof.dual_point},
        "npz_sha256": _checksum(arrays),
        **stated,
    }
    return [*contents, (json.dumps(entry, indent=1) + "\n").encode()]


def _fits_into_cbf(objective: MStepObjective) -> bool:
    """Whether the cone program of an M-step is small enough to be written as text."""
    m, n_pairs = objective.pairs.n_features, len(list_pairs(objective)[1])
    return m * (m + 1) // 2 * n_pairs <= MOST_ENTRIES


def _described(program: ConeProgram) -> dict[str, Any]:
    """The sizes of a cone program."""
    rows: Counter[str] = Counter()
    for kind, size in program.cones:
        rows[kind] += size
    return {
        "scalar_variables": len(program.cost),
        "psd_constraints": program.psd_orders,
        "exponential_cones": rows["EXP"] // 3,
        "rows": dict(rows),
    }


def _checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read_checksums(folder: Path) -> dict[str, str]:
    path = folder / CHECKSUMS
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return {name: value for value, _, name in (line.partition("  ") for line in lines)}


def _write_checksums(folder: Path, sums: dict[str, str]) -> None:
    """Write the checksums as ``sha256sum --check`` reads them."""
    text = "".join(f"{value}  {name}\n" for name, value in sorted(sums.items()))
    write_whole(folder / CHECKSUMS, text.encode())


# The proof of an optimal value


def prove_optimum(objective: MStepObjective, name: str = "this M-step") -> Proof:
    """Prove an interval of the optimal value whose relative width is at most 1e-9, in balls."""
    proofs: list[Proof] = []
    for tol in TOLERANCES:
        with one_blas_thread():
            certificate = newton_method(objective, tol, time_limit=TIME_LIMIT).certificate
        if certificate is not None:
            proofs.append(prove(objective, certificate.metric))
        if proofs and relative_width(proofs[-1]) <= SUFFICIENT_WIDTH:
            break
    best = min(proofs, key=relative_width, default=None)
    width = float("inf") if best is None else relative_width(best)
    if best is None or width > LARGEST_WIDTH:
        raise ValueError(
            f"The optimal value of {name} could be proved to a relative width of {width:.1e}, not "
            f"to {LARGEST_WIDTH:g}: give it a larger trace weight, or features of like scale."
        )
    return best


def relative_width(proof: Proof) -> float:
    """The width of the interval, relative to the size of the value itself, however small."""
    size = min(abs(proof.primal_value), abs(proof.dual_value))
    return proof.duality_gap / size if size > 0.0 else float("inf")


# The arrays


def to_arrays(objective: MStepObjective) -> Arrays:
    """The arrays that define an M-step, or a ValueError where a file has no place for it.

    ``points`` (n, m); ``pairs`` (k, 2), rows of points, similar pairs first, then dissimilar, then
    unlabeled ones where they have a weight; ``n_labeled``, how many are not unlabeled;
    ``weights`` c and ``similar`` q(+1), one for each pair; ``threshold``; ``trace_weight`` and,
    where there is one, ``manifold_term`` (m, m); and the arrays of `PENALTIES`.
    """
    if objective.previous_metric is not None:
        raise ValueError(
            "Give the soft labels as numbers, soft_labels=e_step(...): a file has those."
        )
    pairs, (rows, weights) = objective.pairs, list_pairs(objective)
    similar = (np.arange(len(rows)) < pairs.n_similar).astype(np.float64)
    if objective.soft_labels is not None:
        similar[pairs.n_labeled :] = objective.soft_labels[: len(rows) - pairs.n_labeled]
    arrays: Arrays = {
        "points": pairs.points,
        "pairs": rows.astype(np.int64),
        "n_labeled": np.array(pairs.n_labeled),
        "weights": weights,
        "similar": similar,
        "threshold": np.array(objective.threshold),
        "trace_weight": np.array(objective.trace_weight),
    }
    if objective.manifold_term is not None:
        arrays["manifold_term"] = objective.manifold_term
    for block in objective.penalties:
        more = _penalty_arrays(block, pairs.n_features)
        if more.keys() & arrays.keys():
            raise ValueError(f"A file has place for one {block.name} alone.")
        arrays |= more
    return arrays


def _penalty_arrays(block: Penalty, m: int) -> Arrays:
    """The arrays of a penalty."""
    names = PENALTIES.get(type(block), {})
    arguments = block_arguments(block, "penalties") if names else {}
    if isinstance(block, Ridge) and block.prior is None:
        arguments["prior"] = np.zeros((m, m))
    given = {name for name, value in arguments.items() if value is not None}
    if not names or not given <= set(names.values()):
        raise ValueError(f"{block!r} has no place in the files of the library.")
    return {name: np.asarray(arguments.get(argument, True)) for name, argument in names.items()}


def to_bytes(arrays: Arrays) -> bytes:
    """The content of an uncompressed ``.npz`` file: the same bytes for the same arrays.

    ``np.savez`` promises no such thing: a file is a zip archive, with dates and attributes.
    """
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
            member.create_system = UNIX
            archive.writestr(member, npy_bytes(array))
    return content.getvalue()


def npy_bytes(array: NDArray[Any]) -> bytes:
    """The content of a ``.npy`` file of an array, little-endian and in the order of C."""
    content = io.BytesIO()
    little = np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
    np.lib.format.write_array(content, little, version=(1, 0), allow_pickle=False)
    return content.getvalue()


def read_instance(file: str | os.PathLike[str] | BinaryIO) -> MStepObjective:
    """Read the M-step of a ``.npz`` file of the library."""
    with np.load(file, allow_pickle=False) as content:
        arrays: Arrays = dict(content)
    rows, weights, q = arrays["pairs"], arrays["weights"], arrays["similar"]
    labeled = np.arange(len(rows)) < arrays["n_labeled"]
    similar, dissimilar = labeled & (q == 1.0), labeled & (q == 0.0)
    pairs = PairSet.from_constraints(
        *(arrays["points"], rows[similar], rows[dissimilar]),
        *(weights[similar], weights[dissimilar]),
    )
    soft, mu = q[~labeled], weights[~labeled]
    return MStepObjective(
        pairs,
        soft_labels=soft if np.any(soft) else None,
        unlabeled_weight=float(mu[0]) if len(mu) else 0.0,
        trace_weight=float(arrays["trace_weight"]),
        threshold=float(arrays["threshold"]),
        manifold_term=arrays.get("manifold_term"),
        penalties=[
            kind(**{names[name]: arrays[name][()] for name in names if names[name]})
            for kind, names in PENALTIES.items()
            if next(iter(names)) in arrays
        ],
    )


# The documents


READER = """\
import numpy as np


def value(file, A):
    p = {"manifold_term": 0, "ridge": 0, "prior": 0, "sparse": 0, "log_det": 0, **np.load(file)}
    v = np.subtract(*p["points"][p["pairs"].T])
    s = np.sum(v @ A * v, axis=1) - p["threshold"]
    f = p["weights"] @ (np.logaddexp(0, -s) + p["similar"] * s)
    f += p["trace_weight"] * np.trace(A) + np.sum(p["manifold_term"] * A)
    f += p["ridge"] / 2 * np.sum((A - p["prior"]) ** 2)
    f += p["sparse"] * (np.sum(np.abs(A)) - np.trace(np.abs(A)))
    return f + (p["log_det"] and p["log_det"] * (np.trace(A) - np.linalg.slogdet(A)[1] - len(A)))
"""
"""The objective of an instance at a matrix, in ten lines that need NumPy alone."""

_README = """\
# {count} M-steps with proven optimal values

Each instance is a convex program over a symmetric PSD matrix A, the M-step of SERAPH (metric
learning), as four files:

| file | content |
| --- | --- |
| NAME.npz | the definition: plain arrays of doubles, whose values are exact |
| NAME.cbf | the same as a cone program, Conic Benchmark Format 3; none if it is too large |
| NAME.json | sizes, rank of the optimum, and [lower, upper], which holds the optimal value |
| NAME.optimum.npy | a factor L; upper is above the objective at LL' |

[library.md](library.md) lists them, from easy to nasty. `sha256sum --check SHA256SUMS` checks the
files. The widest interval has a relative width of {widest:.1e}.

## The objective

With v_k the difference of the two points of pair k, s_k = v_k'Av_k - threshold, c_k its weight and
q_k the number in `similar` (1 similar, 0 dissimilar, between them a soft label):

    minimize  sum_k c_k [log(1 + e^(-s_k)) + q_k s_k]
              + trace_weight tr(A) + <manifold_term, A> + penalties

The penalties are of these arrays, where the file has them:

| array | meaning |
| --- | --- |
| ridge, prior | ridge / 2 times the squared Frobenius norm of A - prior |
| sparse | sparse times the sum of abs(A_ij) over i != j |
| log_det | log_det (tr A - log det A - m) |
| trace_bound | tr A <= trace_bound |
| upper_bound | upper_bound - A is PSD |
| diagonal | A is diagonal |
| linear_matrices B, linear_bounds t | <B_i, A> <= t_i + e_i |
| linear_tolerance | e_i / (abs(t_i) + Frobenius norm of B_i) |

In ten lines, for a matrix A that satisfies the constraints:

```python
{reader}```

and the optimum that is in the folder:

```python
L = np.load("{first}.optimum.npy")
print(value("{first}.npz", L @ L.T))
```

## The proof

For numbers r_k in [0, 1] such that R + sum_k c_k (q_k - r_k) v_k v_k' is PSD, R the linear terms,
the sum of c_k [H(r_k) + threshold (r_k - q_k)], H the entropy in nats, is below the objective at
every PSD matrix; a penalty adds a matrix and takes off its conjugate. `lower` is such a sum and
`upper` the objective at LL', both enclosed in ball arithmetic (python-flint, 128 bits), and the PSD
matrix shown to be so by a Cholesky factorization of balls. No solver's word is in it. To prove an
interval again, from the arrays and L:

    from seraph_cvx.certificate.proof import prove
    from seraph_cvx.race.library import read_instance
    prove(read_instance("NAME.npz"), L @ L.T).enclosure

The points of the suite full are short binary fractions, so the cone program has the products of
their differences exactly; the sums of its linear term are rounded to doubles.
"""


def readme(entries: Sequence[dict[str, Any]]) -> str:
    """The README of an exported library, with the reader in ten lines."""
    return _README.format(
        count=len(entries),
        widest=max(entry["relative_width"] for entry in entries),
        first=max(entries[:5], key=lambda entry: int(entry["rank"]))["instance"],
        reader=READER,
    )


def library_table(entries: Sequence[dict[str, Any]]) -> str:
    """The instances as a table in Markdown: sizes, why each is nasty, the proven interval."""
    rows = [
        {
            "instance": entry["instance"],
            "n": entry["n_points"],
            "m": entry["n_features"],
            "pairs": entry["n_similar"] + entry["n_dissimilar"] + entry["n_unlabeled"],
            "rank": entry["rank"],
            "why": entry["why"],
            "optimal value, at least": repr(entry["lower"]),
            "at most": repr(entry["upper"]),
            "SHA-256 of .npz": entry["npz_sha256"][:12],
        }
        for entry in entries
    ]
    cones = sum(
        entry.get("exponential_cones", 2 * row["pairs"])
        for entry, row in zip(entries, rows, strict=True)
    )
    note = (
        "n points, m features; rank of the optimum (eigenvalues above 1e-7 of the largest). A pair "
        f"has three scalar variables and two exponential cones, {cones} cones in all; A is in a "
        "PSD cone of order m. Intervals are proved in ball arithmetic, rounding included."
    )
    title = f"{len(rows)} M-steps, from easy to nasty, with proven optimal values"
    return ResultTable(title, rows, [note]).to_markdown() + "\n"
