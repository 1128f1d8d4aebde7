"""Supervision in all its forms: class labels, constraints, pairs of points, confidences."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..numerics.arrays import to_host
from ..numerics.checks import FloatArray, check_points, is_known, refuse_masked
from .labeled_pairs import Labels, join_labels, pairs_of_constraints, pairs_of_labels
from .pair_set import PairSet, device_array_of, refuse_large_confidences


def supervise(
    X: ArrayLike,
    y: ArrayLike | None = None,
    similar: ArrayLike | None = None,
    dissimilar: ArrayLike | None = None,
    similar_confidence: ArrayLike | None = None,
    dissimilar_confidence: ArrayLike | None = None,
) -> PairSet:
    """Make pairs from class labels, from constraints, or from both.

    Parameters
    ----------
    X : (n, m) array_like
        The points.
    y : (n,) array_like, optional
        Class labels, -1 (or None, among strings) where unknown.
    similar, dissimilar : (k, 2) array_like of int, optional
        Rows (i, j) of point indices.
    similar_confidence, dissimilar_confidence : float or (k,) array_like, optional
        c_k > 0 of each of those rows; by default 1, which is also the confidence of a pair that
        follows only from the class labels.

    Raises
    ------
    ValueError
        Where labels and constraints contradict each other, with the pair and its classes.

    Examples
    --------
    >>> X = [[0.0], [1.0], [5.0], [6.0]]
    >>> supervise(X, [0, 0, -1, -1], dissimilar=[(1, 2)], dissimilar_confidence=0.5)
    PairSet(4 points in R^1: 1 similar, 1 dissimilar, 4 unlabeled pairs; confidence 0.5 to 1)
    """
    nothing = np.empty((0, 2), dtype=np.int64)
    if similar is None and dissimilar is None:
        for name, given in [
            ("similar_confidence", similar_confidence),
            ("dissimilar_confidence", dissimilar_confidence),
        ]:
            if given is not None:
                raise ValueError(
                    f"{name} is given, but neither `similar` nor `dissimilar` is: "
                    "confidences belong to the rows of these."
                )
        if y is None:
            raise ValueError(
                "No supervision: give class labels y (-1 where unknown), or pairs of point "
                "indices `similar` and `dissimilar`, or both."
            )
    points = check_points(to_host(X))
    n = len(points)
    if y is not None and similar is None and dissimilar is None:
        labels: Labels = pairs_of_labels(y, n)
    else:
        labeled = pairs_of_constraints(
            nothing if similar is None else similar,
            nothing if dissimilar is None else dissimilar,
            similar_confidence,
            dissimilar_confidence,
            n,
        )
        labels = labeled if y is None else join_labels(labeled, y, n)
        refuse_large_confidences(points, labels)
    return PairSet(points, labels, device_array_of(X))


def supervise_pairs(
    P: FloatArray, y: ArrayLike, confidence: ArrayLike | None = None, more: FloatArray | None = None
) -> PairSet:
    """Make pairs from labeled pairs of points: similar (+1) or dissimilar (-1).

    A point that occurs in several pairs is one point. A pair of two equal points has v = 0: it
    says nothing about any metric and is left out (with a warning, if it is called dissimilar).

    Parameters
    ----------
    P : (k, 2, m) array
        Pairs of points.
    y : (k,) array_like of +1 and -1
    confidence : (k,) array_like, optional
        c_k > 0 of each pair.
    more : (u, m) array, optional
        Further points, about which nothing is known.

    Examples
    --------
    >>> P = np.array([[[0.0], [1.0]], [[0.0], [5.0]]])
    >>> supervise_pairs(P, [1, -1])
    PairSet(3 points in R^1: 1 similar, 1 dissimilar, 1 unlabeled pairs)
    """
    labels = np.asarray(y)
    if labels.shape != (len(P),):
        raise ValueError(
            f"y has shape {labels.shape}, but there are {len(P)} pairs: one label each."
        )
    strange = np.flatnonzero(~np.isin(labels, (-1, 1)))
    if len(strange):
        raise ValueError(
            f"y[{strange[0]}] is {labels[strange[0]]}: a pair is similar (+1) or dissimilar (-1)."
        )
    flat = P.reshape(-1, P.shape[2])
    points, where = np.unique(
        flat if more is None else np.vstack([flat, more]), axis=0, return_inverse=True
    )
    rows = where.reshape(-1)[: len(flat)].reshape(-1, 2)
    differs = rows[:, 0] != rows[:, 1]
    near, far = differs & (labels == 1), differs & (labels == -1)
    codes = np.sort(rows, axis=1) @ np.array([len(points), 1])
    _refuse_contradictions(codes, near, far)
    c = None if confidence is None else _one_each(confidence, len(P))
    return PairSet.from_constraints(
        points, rows[near], rows[far], *((None, None) if c is None else (c[near], c[far]))
    )


def describe_void_pairs(P: FloatArray, y: ArrayLike) -> str:
    """Describe pairs that are labeled dissimilar although their points are equal; empty if none is.

    Examples
    --------
    >>> describe_void_pairs(np.array([[[0.0], [0.0]], [[0.0], [5.0]]]), [1, -1])
    ''
    """
    void = np.flatnonzero(np.all(P[:, 0] == P[:, 1], axis=1) & (np.asarray(y) == -1))
    if not len(void):
        return ""
    return (
        f"Pair {void[0]} is called dissimilar, but its two points are equal ({len(void)} such "
        "in all): no metric can tell them apart, so it is left out."
    )


def known_labels(y: ArrayLike) -> Any:
    """Which class labels are known: a boolean array; -1, None and NaN are unknown.

    Examples
    --------
    >>> known_labels(["a", None, "b", "-1"])
    array([ True, False,  True, False])
    """
    refuse_masked(y, "y", "mark an unknown label by -1")
    return is_known(np.asarray(y))


def _refuse_contradictions(codes: Any, near: Any, far: Any) -> None:
    """Raise an error if two rows hold the same points with different labels."""
    both = np.intersect1d(codes[near], codes[far])
    if not len(both):
        return
    first, second = (int(np.flatnonzero(kind & (codes == both[0]))[0]) for kind in (near, far))
    raise ValueError(
        f"Pairs {first} and {second} hold the same two points, but one is called similar (+1) and "
        "the other dissimilar (-1)"
        + (f", and so do {len(both) - 1} more" if len(both) > 1 else "")
        + ": remove one of the two."
    )


def _one_each(confidence: ArrayLike, how_many: int) -> FloatArray:
    c = np.asarray(confidence, dtype=np.float64)
    if c.ndim > 1 or (c.ndim == 1 and len(c) != how_many):
        raise ValueError(
            f"confidence has shape {c.shape}, but there are {how_many} pairs: one number each."
        )
    return np.asarray(np.broadcast_to(c, (how_many,)))
