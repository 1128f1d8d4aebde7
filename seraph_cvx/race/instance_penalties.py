"""The penalties of instances, each named by one word, such as ``ridge10`` or ``diagonal``."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from ..numerics.checks import FloatArray
from ..pairs.pair_set import PairSet
from ..penalties import (
    Diagonal,
    LinearConstraints,
    LogDet,
    Manifold,
    Penalty,
    Ridge,
    Sparse,
    Trace,
    TraceBound,
    UpperBound,
)

MOST_BOUNDED = 5
"""The most similar pairs whose distance ``linear`` bounds."""

LINEAR_TOLERANCE = 1e-12
"""The tolerance of ``linear``: far below the width to which an optimal value is proved."""

_WORD = re.compile(r"([a-z]+)([\d.]*)")


def make_penalty(word: str, pairs: PairSet) -> Penalty:
    """Make the penalty that a word names, for these pairs.

    ridge10 is Ridge(10) toward the identity; logdet2 LogDet(2); sparse3 Sparse(3); tracebound1
    bounds the trace by 1; upperbound0.5 bounds the metric by a matrix between 0.5 I and I; linear1
    bounds the squared distance of the first similar pairs by 1; trace2 adds 2 to the trace weight;
    manifold2 is twice the graph of the three nearest neighbors; diagonal has no number.

    Examples
    --------
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0]], [0, 0, 1])
    >>> make_penalty("sparse0.5", pairs), make_penalty("diagonal", pairs)
    (Sparse(0.5), Diagonal())
    """
    name, number = split_word(word)
    return _MAKERS[name](number, pairs)


def split_word(word: str) -> tuple[str, float]:
    """Check the word of a penalty: its name, and its number, 0 where it has none.

    Examples
    --------
    >>> split_word("ridge10"), split_word("diagonal")
    (('ridge', 10.0), ('diagonal', 0.0))
    """
    match = _WORD.fullmatch(word)
    name, number = match.groups() if match else (word, "")
    if name not in _MAKERS:
        raise ValueError(
            f"penalty={word!r} is not known: use one of {', '.join(_MAKERS)}, with a number, such "
            "as ridge10."
        )
    if name == "diagonal" and not number:
        return name, 0.0
    if name == "diagonal" or number.count(".") > 1 or not number.strip(".") or not float(number):
        raise ValueError(f"penalty={word!r}: write diagonal without a number, others with one.")
    return name, float(number)


def _tilted(m: int) -> FloatArray:
    """A matrix between I and 2 I that is no multiple of I: projections onto A <= B need work."""
    return np.asarray(np.eye(m) + np.full((m, m), 1.0 / m))


def _linear(bound: float, pairs: PairSet) -> Penalty:
    rows = pairs.similar[:MOST_BOUNDED]
    V = pairs.points[rows[:, 0]] - pairs.points[rows[:, 1]]
    V = V[np.any(V != 0.0, axis=1)]
    return LinearConstraints(V[:, :, None] * V[:, None, :], upper=bound, tolerance=LINEAR_TOLERANCE)


_MAKERS: dict[str, Callable[[float, PairSet], Penalty]] = {
    "ridge": lambda weight, pairs: Ridge(weight, prior=np.eye(pairs.n_features)),
    "logdet": lambda weight, pairs: LogDet(weight),
    "tracebound": lambda bound, pairs: TraceBound(bound),
    "upperbound": lambda bound, pairs: UpperBound(bound * _tilted(pairs.n_features)),
    "linear": _linear,
    "diagonal": lambda _, pairs: Diagonal(),
    "sparse": lambda weight, pairs: Sparse(weight),
    "trace": lambda weight, pairs: Trace(weight),
    "manifold": lambda weight, pairs: Manifold(weight, n_neighbors=3, kernel="binary"),
}
