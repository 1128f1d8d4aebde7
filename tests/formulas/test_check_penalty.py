"""Evidence: check_penalty passes every block of ours, and finds mistakes planted in some.

The guide has a block of one's own that passes, with the report as it is printed.
"""

import math

import numpy as np
import pytest

from seraph_cvx.penalties import (
    Diagonal,
    LogDet,
    Penalty,
    Ridge,
    Sparse,
    TraceBound,
    check_penalty,
)
from seraph_cvx.penalties.penalty import Multiplier

RNG = np.random.default_rng(0)
FACTOR = RNG.normal(size=(4, 4))
DEFINITE = FACTOR @ FACTOR.T + np.eye(4)

BLOCKS = [
    Ridge(2.0),
    Ridge(0.5, prior=DEFINITE),
    LogDet(0.5),
    LogDet(2.0, prior=DEFINITE),
    TraceBound(2.0),
    TraceBound(1e-2),
    Diagonal(),
    Sparse(0.3),
]

FEW = 2
"""Matrices of each kind."""


@pytest.mark.parametrize("block", BLOCKS, ids=repr)
def test_every_block_of_ours_passes(block):
    report = check_penalty(block, n_matrices=FEW)
    assert report.holds, report
    assert "failed" not in str(report).lower()


def planted(kind, **methods):
    """A block of the kind, of weight 0.3, with some of its methods exchanged."""
    return type(kind.__name__, (kind,), methods)(0.3)


def claims_that_failed(report):
    return {claim.partition(":")[0] for claim in report.failures}


MISTAKES = [
    ("subgradient", planted(Ridge, value=lambda self, A: -Ridge.value(self, A))),
    ("subgradient", planted(Ridge, value=lambda self, A: np.sqrt(np.linalg.norm(A)))),
    ("subgradient", planted(Ridge, subgradient=lambda self, A: 0.5 * self.weight * A)),
    ("conjugate", planted(Ridge, conjugate=lambda self, Z: 0.5 * Ridge.conjugate(self, Z))),
    ("conjugate", planted(Ridge, multiplier=lambda self, Z: Multiplier(Z, 0.0))),
    ("conjugate", planted(Sparse, conjugate=lambda self, Z: 0.0)),  # nowhere infinite
    ("prox", planted(Ridge, prox=lambda self, Y, step: Ridge.prox(self, Y, 2.0 * step))),
    ("value", planted(Ridge, value=lambda self, A: math.nan)),
]
"""The check that fails, and the block that is wrong."""


@pytest.mark.once
@pytest.mark.parametrize(("claim", "block"), MISTAKES)
def test_a_planted_mistake_is_found_at_few_matrices(claim, block):
    report = check_penalty(block, n_matrices=FEW)
    assert not report.holds
    assert claim in claims_that_failed(report), report
    assert "does NOT hold" in str(report)
    shown = [example for claim, example in report.failures.items() if claim.startswith("subg")]
    assert all(
        "A = [[" in example and "B = [[" in example for example in shown if "where" in example
    )


@pytest.mark.parametrize(
    ("claim", "block"),
    [
        ("prox", planted(Sparse, prox=lambda self, Y, step: Sparse.prox(self, Y, 0.9 * step))),
    ],
)
def test_only_the_claim_that_is_wrong_fails(claim, block):
    report = check_penalty(block, n_matrices=4)
    assert claims_that_failed(report) == {claim}, report


def test_what_cannot_be_checked_is_said_and_does_not_hold():
    only = np.full((3, 3), 0.123)
    lonely = planted(
        Ridge,
        value=lambda self, A: 0.0 if np.array_equal(A, only) else math.inf,
        prox=Penalty.prox,
    )
    report = check_penalty(lonely)
    assert not report.holds
    assert "no PSD matrix with a finite value" in str(report)


def test_the_number_of_features_can_be_given():
    assert check_penalty(Sparse(1.0), n_features=2, n_matrices=FEW).n_features == 2
    with pytest.raises(ValueError, match="prior is 4 x 4, but the points have 3 features"):
        check_penalty(Ridge(1.0, prior=DEFINITE), n_features=3)
