"""An M-step as plain arrays in a ``.npz`` file, which NumPy alone can read.

The objective of a file at a matrix A that satisfies its constraints is, with v_k the difference of
the points of pair k, s_k = v_k'Av_k - threshold, and c, q, R of `weights`, `similar` and the
linear terms,

    sum_k c_k [log(1 + e^{-s_k}) + q_k s_k] + <R, A> + penalties.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ...model.m_step_objective import MStepObjective
from ...pairs.pair_set import PairSet
from ...penalties import (
    Diagonal,
    LinearConstraints,
    LogDet,
    Penalty,
    Ridge,
    Sparse,
    TraceBound,
    UpperBound,
)

UNIX = 3
"""The system that an archive says it was made on."""

Arrays = dict[str, NDArray[Any]]


def to_arrays(objective: MStepObjective) -> Arrays:
    """The arrays that define an M-step.

    ``points`` (n, m); ``pairs`` (k, 2), rows of points, similar pairs first, then dissimilar, then
    unlabeled ones where they have a weight; ``n_labeled``, how many are not unlabeled;
    ``weights`` c and ``similar`` q(+1), one for each pair; ``threshold``; ``trace_weight`` and,
    where there is one, ``manifold_term`` (m, m). Penalties, where there are any: ``ridge`` and
    ``prior``, ``log_det``, ``sparse``, ``trace_bound``, ``upper_bound`` (m, m), ``diagonal``,
    ``linear_matrices`` (k, m, m) with ``linear_bounds`` and ``linear_tolerance``.

    Raises
    ------
    ValueError
        For soft labels that are those of a metric, constraints that are equations, a prior of
        LogDet, two penalties of a kind, and penalties of your own: a file has no place for them.

    Examples
    --------
    >>> pairs = PairSet.from_labels([[0.0], [0.25], [2.0], [2.5]], [0, 0, 1, -1])
    >>> to_arrays(MStepObjective(pairs))["similar"]
    array([1., 0., 0., 0., 0., 0.])
    """
    if objective.previous_metric is not None:
        raise ValueError(
            "Give the soft labels as numbers, soft_labels=e_step(...): a file has those."
        )
    pairs, mu = objective.pairs, objective.mu
    n_unlabeled = pairs.n_unlabeled if mu > 0.0 else 0
    soft = np.zeros(n_unlabeled) if objective.soft_labels is None else objective.soft_labels
    rows = np.vstack([pairs.labeled, pairs.unlabeled]) if n_unlabeled else pairs.labeled
    certain = np.arange(pairs.n_labeled) < pairs.n_similar
    arrays: Arrays = {
        "points": pairs.points,
        "pairs": rows.astype(np.int64),
        "n_labeled": np.array(pairs.n_labeled),
        "weights": np.concatenate([pairs.labeled_weights, np.full(n_unlabeled, mu)]),
        "similar": np.concatenate([certain.astype(np.float64), soft[:n_unlabeled]]),
        "threshold": np.array(objective.threshold),
        "trace_weight": np.array(objective.trace_weight),
    }
    if objective.manifold_term is not None:
        arrays["manifold_term"] = objective.manifold_term
    for block in objective.penalties:
        more = _arrays_of(block, pairs.n_features)
        if more.keys() & arrays.keys():
            raise ValueError(f"A file has place for one {block.name} alone.")
        arrays |= more
    return arrays


def to_bytes(arrays: Arrays) -> bytes:
    """The content of an uncompressed ``.npz`` file: the same bytes for the same arrays.

    ``np.savez`` promises no such thing: a file is a zip archive, with dates and attributes.

    Examples
    --------
    >>> np.load(io.BytesIO(to_bytes({"threshold": np.array(1.0)})))["threshold"]
    array(1.)
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
    """Read the M-step of a ``.npz`` file of the library.

    Examples
    --------
    >>> pairs = PairSet.from_labels([[0.0], [0.25], [2.0], [2.5]], [0, 0, 1, -1])
    >>> objective = MStepObjective(pairs, penalties=[Ridge(0.5)])
    >>> read = read_instance(io.BytesIO(to_bytes(to_arrays(objective))))
    >>> read.value([[1.0]]) == objective.value([[1.0]])
    True
    """
    with np.load(file, allow_pickle=False) as found:
        arrays: Arrays = dict(found)
    rows, weights, q = arrays["pairs"], arrays["weights"], arrays["similar"]
    labeled = np.arange(len(rows)) < arrays["n_labeled"]
    near, far, open_ = labeled & (q == 1.0), labeled & (q == 0.0), ~labeled
    pairs = PairSet.from_constraints(
        arrays["points"], rows[near], rows[far], weights[near], weights[far]
    )
    return MStepObjective(
        pairs,
        soft_labels=q[open_] if np.any(q[open_]) else None,
        unlabeled_weight=float(weights[open_][0]) if np.any(open_) else 0.0,
        trace_weight=float(arrays["trace_weight"]),
        threshold=float(arrays["threshold"]),
        manifold_term=arrays.get("manifold_term"),
        penalties=[make(arrays) for key, make in _READERS.items() if key in arrays],
    )


def _arrays_of(block: Penalty, m: int) -> Arrays:
    """The arrays of a penalty."""
    weight = np.array(block.weight)
    if isinstance(block, Ridge):
        return {"ridge": weight, "prior": np.zeros((m, m)) if block.prior is None else block.prior}
    if isinstance(block, LogDet) and block.prior is None:
        return {"log_det": weight}
    if isinstance(block, Sparse):
        return {"sparse": weight}
    if isinstance(block, TraceBound):
        return {"trace_bound": weight}
    if isinstance(block, UpperBound):
        return {"upper_bound": block.bound}
    if isinstance(block, Diagonal):
        return {"diagonal": np.array(True)}
    if isinstance(block, LinearConstraints) and not block.is_equality:
        return {
            "linear_matrices": block.matrices,
            "linear_bounds": block.bounds,
            "linear_tolerance": np.array(block.tolerance),
        }
    raise ValueError(f"{block!r} has no place in the files of the library.")


_READERS: dict[str, Callable[[Arrays], Penalty]] = {
    "ridge": lambda found: Ridge(float(found["ridge"]), found["prior"]),
    "log_det": lambda found: LogDet(float(found["log_det"])),
    "sparse": lambda found: Sparse(float(found["sparse"])),
    "trace_bound": lambda found: TraceBound(float(found["trace_bound"])),
    "upper_bound": lambda found: UpperBound(found["upper_bound"]),
    "diagonal": lambda found: Diagonal(),
    "linear_matrices": lambda found: LinearConstraints(
        found["linear_matrices"],
        upper=found["linear_bounds"],
        tolerance=float(found["linear_tolerance"]),
    ),
}
"""How each penalty is made from the arrays, by the array that tells that it is there."""
