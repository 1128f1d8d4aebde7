"""What a search tries: trace weights, unlabeled weights and shares of the reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..settings import RECOMMENDED

AUTO_FACTORS = (1.0, 3.0, 10.0)
"""The trace weights of "auto", as multiples of the default one of SERAPH, which is the first."""

OTHER_SHARES = (0.4, 0.7)
"""The shares of the reference that are tried besides the one given."""


def list_candidates(
    trace_weights: Sequence[float], mus: Sequence[float | str], shares: Sequence[float | str]
) -> list[dict[str, Any]]:
    """List the candidates, one for each combination of weights and share, the share running first.

    Examples
    --------
    >>> [list(one.values()) for one in list_candidates([1.0], ["full"], [0.5, "auto"])]
    [[1.0, 'full', 0.5], [1.0, 'full', 'auto']]
    """
    found = [
        {"trace_weight": trace_weight, "unlabeled_weight": mu, "identity_share": share}
        for mu in mus
        for trace_weight in trace_weights
        for share in shares
    ]
    if not found:
        raise ValueError(
            "There is nothing to choose from: trace_weights, unlabeled_weights or "
            "identity_shares is empty."
        )
    return found


def find_default(candidates: Sequence[dict[str, Any]]) -> int | None:
    """Find SERAPH's default among the candidates, the first trace weight being the automatic one.

    Examples
    --------
    >>> find_default(list_candidates([2.0, 6.0], ["ratio", "full"], [0.5, "auto"]))
    5
    >>> find_default(list_candidates([2.0], ["full"], [0.5])) is None
    True
    """
    wanted = (RECOMMENDED.unlabeled_weight, RECOMMENDED.identity_share)
    others = [(one["unlabeled_weight"], one["identity_share"]) for one in candidates]
    return others.index(wanted) if wanted in others else None


def check_sequence(name: str, given: Any) -> list[Any]:
    """The values to try as a list; an error unless a sequence is given.

    Examples
    --------
    >>> check_sequence("unlabeled_weights", ("full",))
    ['full']
    """
    if isinstance(given, str) or not np.iterable(given):
        raise ValueError(
            f"{name}={given!r} must be a sequence of values to try: write it in a list."
        )
    return list(given)
