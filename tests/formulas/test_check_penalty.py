"""Evidence: check_penalty passes every block of ours, and finds mistakes planted in another."""

import math

import cvxpy as cp
import numpy as np
import pytest

from seraph_cvx.penalties import (
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
    check_penalty,
)
from seraph_cvx.penalties.penalty import Multiplier

RNG = np.random.default_rng(0)
FACTOR = RNG.normal(size=(4, 4))
DEFINITE = FACTOR @ FACTOR.T + np.eye(4)
SOME = np.array([DEFINITE, FACTOR + FACTOR.T])

BLOCKS = [
    Trace(0.7),
    Manifold(0.3),
    Ridge(2.0),
    Ridge(0.5, prior=DEFINITE),
    pytest.param(LogDet(0.5), marks=pytest.mark.slow),
    pytest.param(LogDet(2.0, prior=DEFINITE), marks=pytest.mark.slow),
    TraceBound(2.0),
    UpperBound(DEFINITE),
    LinearConstraints(SOME, upper=[3.0, 0.5]),
    LinearConstraints(SOME, equal=np.trace(SOME, axis1=1, axis2=2)),
    LinearConstraints([np.eye(4), -np.eye(4)], upper=[3.0, -1.0]),  # dependent
    TraceBound(1e-2),
    UpperBound(1e3 * DEFINITE),
    Diagonal(),
    Sparse(0.3),
]

FEW = 2
"""Matrices of each kind: each one costs conic problems."""


@pytest.mark.parametrize(
    ("n_matrices", "seed"), [(FEW, 0), pytest.param(10, 1, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("block", BLOCKS, ids=repr)
def test_every_block_of_ours_passes(block, n_matrices, seed):
    report = check_penalty(block, n_matrices=n_matrices, seed=seed)
    assert report.holds, report


class Distance(Penalty):
    """weight * (v'Av - d)^2 for two points whose difference is v."""

    is_smooth = True

    def __init__(self, v, d, weight=1.0):
        self.V, self.d, self.weight = np.outer(v, v), d, weight

    def excess(self, A):
        return (self.V @ A).trace() - self.d

    def value(self, A):
        return self.weight * self.excess(A) ** 2

    def expression(self, A, weight):
        return weight * cp.square(self.excess(A))

    def subgradient(self, A):
        return 2.0 * self.weight * self.excess(A) * self.V

    def conjugate(self, Z):
        nu = self._coefficient(Z)
        is_multiple = np.allclose(Z, nu * self.V, atol=1e-9 * np.linalg.norm(Z))
        return self.conjugate_along(nu) if is_multiple else math.inf

    def conjugate_along(self, nu):
        return nu * self.d + nu**2 / (4.0 * self.weight)

    def prox(self, Y, step):
        nu = 2.0 * self.weight * self.excess(Y)
        return Y - step * nu / (1.0 + 2.0 * step * self.weight * np.vdot(self.V, self.V)) * self.V

    def multiplier(self, Z):
        nu = self._coefficient(Z)
        return Multiplier(nu * self.V, self.conjugate_along(nu))

    def _coefficient(self, Z):
        return np.vdot(Z, self.V) / np.vdot(self.V, self.V)


def made(kind, **methods):
    """A block of the kind with some of its methods exchanged."""
    return type(kind.__name__, (kind,), methods)(np.array([1.0, -2.0, 0.5]), 2.0, 0.3)


def claims_that_failed(report):
    return {check.claim.partition(":")[0] for check in report.failures}


@pytest.mark.parametrize("n_matrices", [FEW, pytest.param(10, marks=pytest.mark.slow)])
def test_a_block_of_ones_own_passes(n_matrices):
    report = check_penalty(made(Distance), n_matrices=n_matrices)
    assert report.n_features == 3
    assert report.holds, report
    assert "failed" not in str(report).lower()


MISTAKES = {
    "wrong sign": ("convex", "value", lambda self, A: -Distance.value(self, A)),
    "not convex": ("convex", "value", lambda self, A: self.weight * np.sqrt(abs(self.excess(A)))),
    "wrong subgradient": (
        "subgradient", "subgradient", lambda self, A: 0.5 * Distance.subgradient(self, A),
    ),
    "wrong conjugate": (
        "conjugate", "conjugate",
        lambda self, Z: Distance.conjugate(self, Z) - self.d * self._coefficient(Z),
    ),
    "CVXPY off by a factor": (
        "CVXPY", "expression", lambda self, A, w: Distance.expression(self, A, 0.5 * w),
    ),
    "not DCP": (
        "CVXPY", "expression", lambda self, A, w: w * cp.multiply(self.excess(A), self.excess(A)),
    ),
    "not DPP": (
        "CVXPY", "expression",
        lambda self, A, w: cp.square(w) * Distance.expression(self, A, 1.0) / w,
    ),
    "weight ignored": (
        "CVXPY", "expression", lambda self, A, w: Distance.expression(self, A, 0.3),
    ),
    "wrong prox": ("prox", "prox", lambda self, Y, step: Distance.prox(self, Y, 2.0 * step)),
    "wrong multiplier": ("conjugate", "multiplier", lambda self, Z: Multiplier(self.V, 0.0)),
    "value_above below": (
        "value_above", "value_above", lambda self, L: 0.9 * self.value(L @ L.T),
    ),
    "NaN": ("value", "value", lambda self, A: math.nan),
}  # fmt: skip
"""The check that fails, and the method that is wrong."""


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.filterwarnings("ignore:Forming a nonconvex expression")
def test_a_planted_mistake_is_found_at_few_matrices(name):
    where, method, wrong = MISTAKES[name]
    report = check_penalty(made(Distance, **{method: wrong}), n_matrices=FEW)
    assert not report.holds
    assert where in claims_that_failed(report), report
    assert "does NOT hold" in str(report)
    details = [check.details for check in report.failures if check.claim.startswith("convex")]
    assert all("A = [[" in shown and "P(B) =" in shown for shown in details)  # a counterexample


class Hinge(Distance):
    """weight * max(0, v'Av - d): convex, with a kink."""

    def value(self, A):
        return self.weight * max(0.0, self.excess(A))

    def expression(self, A, weight):
        return weight * cp.pos(self.excess(A))

    def subgradient(self, A):
        return self.weight * float(self.excess(A) > 0.0) * self.V

    def conjugate_along(self, nu):
        return nu * self.d if 0.0 <= nu <= self.weight * (1.0 + 1e-12) else math.inf

    def prox(self, Y, step):
        nu = self.excess(Y) / np.vdot(self.V, self.V)
        return Y - np.clip(nu, 0.0, step * self.weight) * self.V

    def multiplier(self, Z):
        nu = np.clip(self._coefficient(Z), 0.0, self.weight)
        return Multiplier(nu * self.V, nu * self.d)


class LooseTrace(TraceBound):
    """A trace bound whose CVXPY constraint has another bound."""

    def constraints(self, A, weight):
        return [cp.trace(A) <= 1.5 * weight]


class WrongDual(Ridge):
    """A ridge whose dual terms are off by a factor."""

    def dual_terms(self, n_features, weight):
        part = super().dual_terms(n_features, weight)
        return part._replace(conjugate=2.0 * part.conjugate)


class LooseDual(Sparse):
    """A sparse penalty whose dual terms forget the bound on Z."""

    def dual_terms(self, n_features, weight):
        part = super().dual_terms(n_features, weight)
        return part._replace(constraints=part.constraints[1:])


@pytest.mark.parametrize(
    ("block", "failures"),
    [
        (made(Hinge), {"is_smooth"}),
        (made(Hinge, is_smooth=False), set()),
        (
            made(Hinge, is_smooth=False, conjugate=lambda self, Z: self.d * self._coefficient(Z)),
            {"conjugate"},
        ),
        (LooseTrace(1.0), {"CVXPY"}),
        (WrongDual(1.0), {"dual_terms"}),
        (LooseDual(1.0), {"dual_terms"}),
    ],
)
def test_only_the_check_of_what_is_wrong_fails(block, failures):
    report = check_penalty(block, matrices=[np.diag([0.5, 0.4, 0.3])], n_matrices=4)
    assert claims_that_failed(report) == failures, report


def test_what_cannot_be_checked_is_said_and_does_not_hold():
    class Lonely(Distance):
        """Finite at one matrix only."""

        def value(self, A):
            return 0.0 if np.array_equal(A, np.full((3, 3), 0.123)) else math.inf

        prox = Penalty.prox

    report = check_penalty(Lonely(np.ones(3), 1.0))
    assert not report.holds
    text = str(report)
    assert "not checked" in text
    assert "give some by matrices=[...]" in text


def test_variables_of_the_blocks_own_are_minimized_over():
    class Epigraph(Distance):
        def expression(self, A, weight):
            self.bound = cp.Variable(name="t")
            return weight * cp.square(self.bound)

        def constraints(self, A, weight):
            return [self.bound == self.excess(A)]

        def for_points(self, points):
            return self

    report = check_penalty(made(Epigraph), n_matrices=2)
    names = {check.claim: check.outcome for check in report.checks}
    assert names["CVXPY: the statement has the value of P"] == "passed", report


def test_the_points_and_the_number_of_features_can_be_given():
    assert check_penalty(Sparse(1.0), n_features=2, n_matrices=FEW).n_features == 2
    points = RNG.normal(size=(12, 5))
    assert check_penalty(Manifold(1.0), X=points, n_matrices=FEW).n_features == 5
    with pytest.raises(ValueError, match="prior is 4 x 4, but the points have 3 features"):
        check_penalty(Ridge(1.0, prior=DEFINITE), n_features=3)
