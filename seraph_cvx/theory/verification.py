"""Checks every claim of the paper on one data set; the results as rows, and as a page."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from ..display.symbols import space_of
from ..numerics.arrays import one_blas_thread
from .claim import Claim, ClaimResult, ClaimUndecided, Evidence, judge
from .claim_data import ClaimData, prepare_pairs
from .claims import CLAIMS as ALL_CLAIMS
from .feature_claims import check_feature_convexity, check_feature_functions
from .m_step_claims import (
    check_attainment,
    check_complexity,
    check_convexity,
    check_duality,
    check_gradient,
    check_lipschitz,
)
from .model_claims import check_elimination, check_kappa_sign, check_maximum_entropy
from .soft_label_claims import check_descent, check_e_step, check_posterior_regularization
from .sparsity_claims import check_mixed_norm, check_sparsity

CheckFunction = Callable[[ClaimData], Evidence]
Progress = Callable[[Claim, ClaimResult | None], object]

CHECKS: tuple[CheckFunction, ...] = (
    check_convexity,
    check_gradient,
    check_maximum_entropy,
    check_kappa_sign,
    check_elimination,
    check_e_step,
    check_lipschitz,
    check_posterior_regularization,
    check_descent,
    check_mixed_norm,
    check_duality,
    check_attainment,
    check_complexity,
    check_sparsity,
    check_feature_convexity,
    check_feature_functions,
)

CLAIMS = {claim.number: (claim, check) for claim, check in zip(ALL_CLAIMS, CHECKS, strict=True)}
"""The claims by number; the last two arose while the others were checked."""

SLOW = frozenset({13})
"""Claims about times, which a busy machine can disturb: only checked on request."""


@dataclass(frozen=True)
class PaperReport:
    """The claims that were checked on one data set.

    Attributes
    ----------
    name : str
        The name of the data.
    description : str
        The data in one line.
    results : sequence of ClaimResult
    seconds : float
    skipped : sequence of Claim
        Those that were not checked because they are slow.
    """

    name: str
    description: str
    results: Sequence[ClaimResult]
    seconds: float
    skipped: Sequence[Claim] = ()

    @property
    def ok(self) -> bool:
        """Whether every claim has the expected verdict."""
        return all(result.as_expected for result in self.results)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The results as rows of a table, one per claim."""
        return [
            {
                "claim": result.claim.number,
                "name": result.claim.name,
                "place": result.claim.place,
                "verdict": result.verdict.value,
                "as expected": result.as_expected,
                "fails by": "" if result.violation is None else result.violation.residual,
                "residual": result.residual,
                "tolerance": result.tolerance,
                "decisive check": result.decisive.name,
                "seconds": result.seconds,
            }
            for result in self.results
        ]

    def __getitem__(self, number: int) -> ClaimResult:
        """The result of claim `number`."""
        for result in self.results:
            if result.claim.number == number:
                return result
        raise KeyError(f"claim {number} was not checked")

    def to_html(self) -> str:
        """Write a page with formulas and verdicts, which needs no network."""
        from .page import to_html

        return to_html(self.name, self.description, self.results, self.skipped)


def verify_paper(
    X: ArrayLike,
    y: ArrayLike,
    *,
    name: str = "the data",
    include_slow: bool = False,
    claims: Collection[int] | None = None,
    trace_weight: float = 1.0,
    threshold: float = 1.0,
    seed: int = 0,
    callback: Progress | None = None,
) -> PaperReport:
    """Check (1) to (15) and Theorems 1 to 4 of the paper on a data set, each with its residual.

    Parameters
    ----------
    X : (n, m) array_like
        The points, at most 100. If there are more, or if every label is known, draw and standardize
        some by :func:`seraph_cvx.datasets.sample`, as Section 5.1 does.
    y : (n,) array_like
        Class labels; -1 is an unknown one, as for ``PairSet.from_labels``.
    name : str
        The name of the data in the report.
    include_slow : bool
        Also check the claims that need measurements (13), which are otherwise listed as skipped.
    claims : collection of int, optional
        Check only the claims with these numbers.
    trace_weight, threshold : float
        lambda > 0 and eta > 0.
    seed : int
        The report is the same for the same seed.
    callback : callable, optional
        Called as ``callback(claim, None)`` before a claim is checked, and with its result after.

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
    chosen = _choose(claims, include_slow)
    clock = time.perf_counter()
    pairs = prepare_pairs(X, y)
    data = ClaimData(name, pairs, trace_weight, threshold, seed)
    if trace_weight <= 0.0:
        raise ValueError(f"trace_weight={trace_weight:g}: the claims are checked with lambda > 0.")
    results, tell = [], callback or (lambda claim, result: None)
    with one_blas_thread():
        for number in chosen:
            tell(CLAIMS[number][0], None)
            results.append(check_claim(number, data))
            tell(CLAIMS[number][0], results[-1])
    description = (
        f"{name}: {pairs.n_points} points in {space_of(pairs.n_features)}, "
        f"{len(pairs.similar)} similar, {len(pairs.dissimilar)} dissimilar, "
        f"{pairs.n_unlabeled} unlabeled pairs"
    )
    skipped = [] if claims is not None else sorted(set(CLAIMS) - set(chosen))
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
        return sorted(CLAIMS if include_slow else set(CLAIMS) - SLOW)
    unknown = sorted(set(claims) - set(CLAIMS))
    if unknown:
        raise ValueError(
            f"There is no claim {unknown[0]}: they are {min(CLAIMS)} to {max(CLAIMS)}."
        )
    return sorted(set(claims))


def check_claim(number: int, data: ClaimData) -> ClaimResult:
    """Check one claim; where a solver gives no answer it is undecided."""
    claim, check = CLAIMS[number]
    clock, message, evidence = time.perf_counter(), "", Evidence({})
    try:
        evidence = check(data)
    except ClaimUndecided as error:
        message = str(error)
    return ClaimResult(
        claim,
        judge(evidence.printed),
        judge(evidence.corrected),
        time.perf_counter() - clock,
        message,
    )
