"""Checks every claim of the paper on one data set."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from ..display.symbols import space_of
from ..numerics.arrays import one_blas_thread
from ..pairs.pair_set import PairSet
from .algorithm import (
    attainment,
    complexity,
    descent,
    lipschitz,
    m_step_convexity,
    printed_gradient,
    strong_duality,
)
from .claim import Claim, ClaimResult, ClaimUndecided
from .claim_data import ClaimData
from .features import feature_convexity, feature_functions
from .model import (
    elimination,
    kappa_sign,
    maximum_entropy,
    posterior_regularization,
    soft_label_form,
)
from .paper_report import PaperReport
from .sparsity import both_sparsities as sparsity
from .sparsity import mixed_norm

CheckFunction = Callable[[ClaimData], ClaimResult]

CLAIMS: dict[int, tuple[Claim, CheckFunction]] = {
    claim.number: (claim, check)
    for claim, check in [
        (m_step_convexity.CLAIM, m_step_convexity.check_m_step_convexity),
        (printed_gradient.CLAIM, printed_gradient.check_printed_gradient),
        (maximum_entropy.CLAIM, maximum_entropy.check_maximum_entropy),
        (kappa_sign.CLAIM, kappa_sign.check_kappa_sign),
        (elimination.CLAIM, elimination.check_elimination),
        (soft_label_form.CLAIM, soft_label_form.check_soft_label_form),
        (lipschitz.CLAIM, lipschitz.check_lipschitz),
        (posterior_regularization.CLAIM, posterior_regularization.check_posterior_regularization),
        (descent.CLAIM, descent.check_descent),
        (mixed_norm.CLAIM, mixed_norm.check_mixed_norm),
        (strong_duality.CLAIM, strong_duality.check_strong_duality),
        (attainment.CLAIM, attainment.check_attainment),
        (complexity.CLAIM, complexity.check_complexity),
        (sparsity.CLAIM, sparsity.check_sparsity),
        (feature_convexity.CLAIM, feature_convexity.check_feature_convexity),
        (feature_functions.CLAIM, feature_functions.check_feature_functions),
    ]
}
"""The claims by number; the last two arose while the others were checked."""

SLOW = frozenset({complexity.CLAIM.number})
"""Claims about times, which a busy machine can disturb: only checked on request."""

Progress = Callable[[Claim, ClaimResult | None], object]


def verify_paper(
    X: ArrayLike,
    y: ArrayLike,
    *,
    name: str = "the data",
    include_slow: bool = False,
    claims: Collection[int] | None = None,
    trace_weight: float = 1.0,
    threshold: float = 1.0,
    standardize: bool = True,
    max_points: int = 100,
    seed: int = 0,
    callback: Progress | None = None,
) -> PaperReport:
    """Check (1) to (15) and Theorems 1 to 4 of the paper on a data set, each with its residual.

    Parameters
    ----------
    X : (n, m) array_like
        The points.
    y : (n,) array_like
        Class labels; -1 is an unknown one, as for ``PairSet.from_labels``.
    name : str
        The name of the data in the report.
    include_slow : bool
        Also check the claims that need measurements (13), which are else listed as skipped.
    claims : collection of int, optional
        Check only the claims with these numbers.
    trace_weight, threshold : float
        lambda > 0 and eta > 0.
    standardize : bool
        Bring each feature to mean 0 and variance 1 first.
    max_points : int
        A random subset of this size is taken of more points; where every point is labeled, the
        labels of all but ten points are hidden, as in Section 5.1.
    seed : int
        The report is the same for the same seed.
    callback : callable, optional
        Called with each claim and None before it is checked, and with its result after.

    Returns
    -------
    PaperReport
        ``ok`` is False where a claim does not have the expected verdict.

    Examples
    --------
    >>> from seraph_cvx import verify_paper
    >>> from seraph_cvx.datasets import load_sampling
    >>> sampling = load_sampling("iris")
    >>> report = verify_paper(sampling.X, sampling.y, claims=[6, 8])
    >>> [result.verdict.value for result in report.results]
    ['holds', 'refuted']
    """
    wanted = _choose(claims, include_slow)
    clock = time.perf_counter()
    pairs = prepare_pairs(X, y, standardize, max_points, seed)
    setting = ClaimData(name, pairs, trace_weight, threshold, seed)
    if trace_weight <= 0.0:
        raise ValueError(f"trace_weight={trace_weight:g}: the claims are checked with lambda > 0.")
    results = []
    with one_blas_thread():
        for number in wanted:
            claim, check = CLAIMS[number]
            if callback is not None:
                callback(claim, None)
            results.append(_decide(claim, check, setting))
            if callback is not None:
                callback(claim, results[-1])
    description = (
        f"{name}: {pairs.n_points} points in {space_of(pairs.n_features)}, "
        f"{len(pairs.similar)} similar, {len(pairs.dissimilar)} dissimilar, "
        f"{pairs.n_unlabeled} unlabeled pairs"
    )
    skipped = [] if claims is not None else sorted(set(CLAIMS) - set(wanted))
    return PaperReport(
        name,
        description,
        tuple(results),
        time.perf_counter() - clock,
        tuple(CLAIMS[number][0] for number in skipped),
    )


def _choose(claims: Collection[int] | None, include_slow: bool) -> list[int]:
    """Choose the claims to check; an error lists the known ones."""
    if claims is None:
        return [number for number in sorted(CLAIMS) if include_slow or number not in SLOW]
    unknown = sorted(set(claims) - set(CLAIMS))
    if unknown:
        raise ValueError(
            f"There is no claim {unknown[0]}: they are {min(CLAIMS)} to {max(CLAIMS)}."
        )
    return sorted(set(claims))


def _decide(claim: Claim, check: CheckFunction, setting: ClaimData) -> ClaimResult:
    clock = time.perf_counter()
    try:
        result = check(setting)
    except ClaimUndecided as error:
        result = ClaimResult(claim, [], message=str(error))
    return replace(result, seconds=time.perf_counter() - clock)


def prepare_pairs(
    X: ArrayLike, y: ArrayLike, standardize: bool, max_points: int, seed: int
) -> PairSet:
    """Make the pairs that the claims are checked on: similar, dissimilar and unlabeled ones."""
    pairs = PairSet.from_labels(X, y)
    if len(pairs.similar) and len(pairs.dissimilar):
        pairs = _thin(pairs, max_points, np.random.default_rng(seed))
    for kind, rows in (("similar", pairs.similar), ("dissimilar", pairs.dissimilar)):
        if not len(rows):
            raise ValueError(
                f"No pair is {kind}: the claims need labels of at least two classes, and two "
                "points of one of them."
            )
    if not pairs.n_unlabeled:
        raise ValueError("No pair is unlabeled: add points of unknown class (label -1).")
    points = pairs.points
    if standardize:
        varies = np.ptp(points, axis=0) > 0.0
        points = (points - points.mean(axis=0)) / np.where(varies, points.std(axis=0), 1.0)
    if not np.any(np.ptp(points, axis=0) > 0.0):
        raise ValueError("All points are the same: there is nothing to measure.")
    return PairSet.from_constraints(points, pairs.similar, pairs.dissimilar)


def _thin(pairs: PairSet, max_points: int, rng: np.random.Generator) -> PairSet:
    """Keep at most `max_points` points, and only ten labels if most points are labeled."""
    n, labeled = pairs.n_points, np.unique(pairs.labeled)
    if n <= max_points and pairs.n_unlabeled:
        return pairs
    kept_labels = labeled
    if len(labeled) == n or 2 * len(labeled) > max_points:
        one, other = rng.choice(pairs.similar)
        apart = rng.choice(pairs.dissimilar[np.any(pairs.dissimilar == one, axis=1)])
        needed = np.unique([one, other, *apart])  # three points, with a pair of each kind
        more = rng.permutation(np.setdiff1d(labeled, needed))
        kept_labels = np.concatenate([needed, more])[: min(10, max(3, n // 2))]
    others = rng.permutation(np.setdiff1d(np.arange(n), kept_labels))
    kept = np.concatenate([kept_labels, others])[: max(max_points, len(kept_labels) + 1)]
    position = np.full(n, -1)
    position[kept_labels] = np.arange(len(kept_labels))
    near, far = (
        position[rows[(position[rows] >= 0).all(axis=1)]]
        for rows in (pairs.similar, pairs.dissimilar)
    )
    return PairSet.from_constraints(pairs.points[kept], near, far)
