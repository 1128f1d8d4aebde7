"""Estimates of the memory and time that a fit will take, made before it begins."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np

from ...model.m_step_objective import MStepObjective
from ...numerics.checks import UNKNOWN, IntArray
from ...pairs.pair_set import PairSet
from .files import TableError

PAIR_BYTES = 100
"""The most bytes that a labeled pair takes while pairs are made, rounded up."""

SAMPLE = 1_000
"""Points whose pairs are swept over once to measure this machine's speed."""

SMALL = 300
"""Features whose matrix is decomposed once for the same purpose."""

SWEEPS = 200
"""Sweeps over all pairs in an alternation of average length."""

LONG = 600.0
"""Seconds; a fit that is expected to take longer is announced."""


def free_bytes() -> int:
    """The memory available without swapping or, if that is unknown, all memory of the machine.

    On Windows, Python can tell neither: the answer is then practically infinite.

    Examples
    --------
    >>> free_bytes() > 0
    True
    """
    try:
        for line in Path("/proc/meminfo").read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass  # not Linux
    if hasattr(os, "sysconf"):
        return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return sys.maxsize


def require_memory(needed: int, what: str, cure: str) -> None:
    """Raise an error if something would not fit into memory.

    Examples
    --------
    >>> require_memory(10**18, "The table", "take fewer rows")
    Traceback (most recent call last):
    seraph_cvx.cli.tables.files.TableError: The table needs about 931322575 GiB of memory, and
    ...
    """
    free = free_bytes()
    if needed > free:
        raise TableError(
            f"{what} needs about {needed / 2**30:.0f} GiB of memory, and {free / 2**30:.1f} GiB "
            f"are free: {cure}."
        )


def require_memory_for_pairs(y: IntArray) -> None:
    """Raise an error if the pairs of the labels, k(k - 1)/2 of k, would not fit into memory.

    Examples
    --------
    >>> require_memory_for_pairs(np.zeros(10_000_000, dtype=np.int64))
    Traceback (most recent call last):
    seraph_cvx.cli.tables.files.TableError: 10000000 labels make 49999995000000 labeled pairs,
    which
    needs about ... memory, and ... free: leave the label cells empty for all but about ... points.
    """
    k = int(np.sum(y != UNKNOWN))
    n_pairs = k * (k - 1) // 2
    fitting = int((2 * free_bytes() / PAIR_BYTES) ** 0.5 / 1.5)
    require_memory(
        n_pairs * PAIR_BYTES,
        f"{k} labels make {n_pairs} labeled pairs, which",
        f"leave the label cells empty for all but about {fitting} points",
    )


def expected_seconds(pairs: PairSet, only_labeled: bool = False) -> float:
    """Estimate the seconds of :data:`SWEEPS` sweeps, each with an eigendecomposition.

    Measured by one sweep over fewer points and one decomposition of fewer features; their times
    grow like n^2 and m^3. With `only_labeled` there is no sweep over all pairs.

    Examples
    --------
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> expected_seconds(pairs) < 60.0
    True
    """
    m, k = pairs.n_features, min(pairs.n_features, SMALL)
    trial, clock = np.diag(np.arange(1.0, k + 1.0)), time.perf_counter()
    np.linalg.eigh(trial)
    seconds = (time.perf_counter() - clock) * (m / k) ** 3
    if not only_labeled:
        X = pairs.points[:: -(-pairs.n_points // SAMPLE)]
        few = MStepObjective(PairSet.from_constraints(X, [(0, 1)], []), unlabeled_weight=1.0)
        few.gradient(np.eye(m))  # not the first one: that pays for what is made once
        clock = time.perf_counter()
        few.gradient(np.eye(m))
        seconds += (time.perf_counter() - clock) * (pairs.n_points / len(X)) ** 2
    return SWEEPS * seconds


def in_words(seconds: float) -> str:
    """Write a duration in minutes, hours or days.

    >>> in_words(1200.0), in_words(40_000.0), in_words(1e7)
    ('20 minutes', '11 hours', '116 days')
    """
    for size, unit in ((86_400.0, "days"), (3_600.0, "hours")):
        if seconds >= 2.0 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 60.0:.0f} minutes"
