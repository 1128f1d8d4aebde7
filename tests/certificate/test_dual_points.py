"""Evidence: each allowance of a dual point decides somewhere, and none is much larger than needed.

Steps, gaps and weights are judged by exact arithmetic on instances that lie on the boundary: there
a claim is false as soon as one of the errors that it allows for is left out or turned around.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import arb, ctx
from high_precision import BITS, exact, is_positive_definite
from instances import random_objective

from seraph_cvx import MStepObjective, PairSet, certify
from seraph_cvx.certificate import Certificate, certificate, certify_factor, nominal_gap
from seraph_cvx.certificate.certificate import (
    LowerBound,
    _proven_step,
    _reduced_m_steps,
    largest_eigenvalue,
    lower_bounds,
    pinned_bounds,
)
from seraph_cvx.certificate.pair_bounds import bound_pairs
from seraph_cvx.proof.rounding import UNIT

# Steps


class Pencil:
    """M and S of few bits, so that M - S is exact, and errors e*D and f*D, D the diagonal of M."""

    def __init__(self, M, S, e, f):
        self.M, self.S, self.e, self.f = M, S, e, f

    @classmethod
    def random(cls, seed):
        rng = np.random.default_rng([seed, 8])
        k = int(rng.integers(1, 5))
        F = np.tril(rng.integers(-3, 4, (k, k)), -1) + np.diag(rng.integers(2, 5, k))
        S = rng.integers(-9, 10, (k, k))
        scale = 2.0 ** rng.integers(-250, 250, k)
        errors = 2.0 ** -rng.integers(4, 40, 2).astype(float)
        return cls(*((B * scale[:, None]) * scale for B in (F @ F.T, S + S.T)), *errors)

    @property
    def step(self):
        of_M = [lambda D: 0.75 * self.e, lambda D: 0.25 * self.e]
        return _proven_step(self.M, of_M, self.S, [lambda D: self.f])

    def is_feasible(self, step, share):
        """Whether M - step*S is positive definite, whatever these shares of the errors are."""
        with ctx.workprec(4 * BITS):
            M, S, D = exact(self.M), exact(self.S), exact(np.diag(np.diag(self.M)))
            off = arb(share) * (arb(self.e) + arb(step) * arb(self.f))
            return is_positive_definite(M - S * arb(step) - D * off)

    def longest(self, with_errors):
        """The longest step, nearly."""
        D = np.diag(np.diag(self.M)) * with_errors
        return 1.0 / largest_eigenvalue(self.S + self.f * D, self.M - self.e * D)


@pytest.mark.parametrize("seed", range(40))
def test_a_step_is_feasible_with_all_errors_and_as_long_as_they_let_it_be(seed):
    pencil = Pencil.random(seed)
    step = pencil.step
    assert 0.0 < step <= 1.0
    assert pencil.is_feasible(step, 1.0 - 2.0**-9)
    longer = step * (1.0 + 1e-9)
    assert step == 1.0 or not pencil.is_feasible(longer, 1.0 + 1e-9)


@pytest.mark.parametrize("lie", [0.0, -1.0, 1e-300, 0.5, 0.99, 2.0, math.inf, math.nan, "no f"])
@pytest.mark.parametrize("seed", range(8))
def test_no_eigenvalue_is_trusted(monkeypatch, seed, lie):
    """It chooses the step, and a proof follows: with too small a one there is no step, or a true.

    "no f" is the eigenvalue of S as computed, its error forgotten.
    """
    pencil = Pencil.random(seed)
    pencil.f = 0.125
    told = (pencil.longest(False) + pencil.longest(True)) / 2.0
    told = 1.0 / told if lie == "no f" else lie / pencil.longest(True)
    monkeypatch.setattr(certificate, "largest_eigenvalue", lambda S, M: told)
    step = pencil.step
    assert step is None or (0.0 < step <= 1.0 and pencil.is_feasible(step, 1.0 - 2.0**-9))
    assert lie != 2.0 or step is not None


# Lower bounds


@pytest.mark.parametrize(("part", "left"), [("R", 0), ("N", 1), ("S", 2)])
def test_the_error_of_each_matrix_counts(part, left):
    """One as large as the matrices leaves shorter steps, or none."""
    objective, L = random_objective(0, "hyper"), 0.2 * np.eye(4)
    coordinates, bounds = objective.geometry.dual_coordinates, bound_pairs(objective, L)
    D = np.diag(coordinates.regularizer + bounds.labels.matrix)
    at_labels, *before = lower_bounds(objective, bounds)
    if part == "R":
        object.__setattr__(coordinates, "regularizer_spread", D)
    elif part == "N":
        error = replace(bounds.labels.error, others=D)
        bounds = replace(bounds, labels=replace(bounds.labels, error=error))
    else:
        bounds = replace(bounds, dual_error=replace(bounds.dual_error, others=D))
    same, *after = lower_bounds(objective, bounds)
    assert same == at_labels
    assert [bound.dual_point for bound in before] == ["toward p = 1", "toward p = b/c"]
    assert len(after) == left
    for bound, known in zip(after[::-1], before[::-1], strict=False):
        assert bound.dual_point == known.dual_point
        assert bound.dual_value < known.dual_value - 0.1


def test_where_f_overflows_zero_is_the_bound():
    """The infimum is less than 1: one dissimilar pair."""
    pairs = PairSet.from_constraints([[0.0], [1e3]], [], [(0, 1)])
    objective = MStepObjective(pairs, trace_weight=1e-3)
    found = certify(objective, [[1e305]])
    assert (found.primal_value, found.dual_value) == (math.inf, 0.0)
    assert certify(objective, [[0.5]]).primal_value < 1.0
    assert nominal_gap(objective, np.array([[1e153]])) == math.inf


def test_without_coordinates_there_is_the_bound_at_the_labels():
    """The trace weight is too small for doubles in the unit of the points."""
    X = np.random.default_rng(0).normal(size=(3, 5)) * 1e6
    pairs = PairSet.from_constraints(X, [(0, 1)], [(1, 2)])
    objective = MStepObjective(pairs, unlabeled_weight=0.0, trace_weight=1e-300)
    assert objective.geometry.dual_coordinates is None
    found = list(lower_bounds(objective, bound_pairs(objective, np.eye(5))))
    assert found == [LowerBound(0.0, "p = b/c", step=0.0)]
    assert nominal_gap(objective, np.eye(5)) == math.inf


@pytest.mark.parametrize("setting", ["none", "proj", "hyper", "other"])
def test_the_nominal_gap_is_that_of_the_certificate_without_its_allowance(setting):
    """Wherever the best dual point is."""
    objective, points = random_objective(2, setting, q="start"), set()
    for size in (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 10.0):
        L = math.sqrt(size) * np.eye(4)
        bounds = bound_pairs(objective, L)
        best = max(lower_bounds(objective, bounds), key=lambda bound: bound.dual_value)
        gap = (bounds.primal_value - best.dual_value) / max(1.0, bounds.primal_value)
        assert nominal_gap(objective, L) == pytest.approx(gap, rel=1e-9, abs=1e-9)
        points.add(best.dual_point)
    assert len(points) == {"none": 2, "proj": 4, "hyper": 4, "other": 3}[setting]


# Pairs within a span


def in_planes(mu, seed=0):
    """Similar pairs that differ in two features of three; other points on planes beside theirs."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(14, 3))
    X[:, 2] = np.repeat([0.0, 1.0, 2.0], [10, 2, 2])
    similar, dissimilar = [(0, 1), (1, 2), (2, 4), (5, 7), (10, 11)], [(0, 5), (0, 2), (3, 2)]
    c = rng.integers(1, 9, 8) / 4.0
    pairs = PairSet.from_constraints(X, similar, dissimilar, c[:5], c[5:])
    return MStepObjective(pairs, unlabeled_weight=mu, trace_weight=0.0)


GROUPS = [{0, 1, 2, 4}, {5, 7}, {10, 11}], [set(range(10)), {10, 11}, {12, 13}]
"""Points that a chain of similar pairs joins, and points on one plane."""


def within(objective, groups):
    """The pairs that stay within the groups, and for how much each of them counts."""
    pairs, rows = objective.pairs, objective.pairs.unlabeled
    c = [*map(Fraction, pairs.labeled_weights), *[Fraction(objective.mu)] * len(rows)]
    weights = zip(map(tuple, np.vstack([pairs.labeled, rows]).tolist()), c, strict=True)
    return {row: c for row, c in weights if c and any(group >= {*row} for group in groups)}


@pytest.mark.parametrize("mu", [0.0, 1.0, 0.3])
def test_a_reduced_m_step_has_the_pairs_that_stay_in_a_span_and_no_others(mu):
    objective = in_planes(mu)
    for made, groups in zip(_reduced_m_steps(objective), GROUPS, strict=True):
        assert made.mu == made.trace_weight == 0.0
        assert made.threshold == objective.threshold
        np.testing.assert_array_equal(made.pairs.similar, objective.pairs.similar)
        expected, rows = within(objective, groups), list(map(tuple, made.pairs.labeled.tolist()))
        assert sorted(rows) == sorted(expected)
        for row, weight in zip(rows, made.pairs.labeled_weights.tolist(), strict=True):
            assert Fraction(weight) == expected[row]


def test_pinned_bounds_are_for_labels_that_are_zero_and_a_regularizer_that_is_psd():
    objective = in_planes(0.3)
    assert list(pinned_bounds(objective, np.eye(3)))
    q = np.zeros(objective.pairs.n_unlabeled)
    assert not list(pinned_bounds(replace(objective, soft_labels=q), np.eye(3)))
    negative = np.diag([1.0, 1.0, -1e-15])
    assert not list(pinned_bounds(replace(objective, manifold_term=negative), np.eye(3)))


# The numbers of a certificate


def test_a_gap_is_rounded_up_wherever_the_difference_is_not_exact():
    """And is no more than two units too large; zero is zero."""
    tiny = [2.0**-k for k in (53, 54, 60, 200, 1000)]
    bits = [1.0, 1.0 + 2.0**-52, 2.0 - 2.0**-52, 1.5]
    for whole, rest, sign in product(bits, tiny, (1, -1)):
        for primal, dual in ((whole, sign * rest), (sign * rest, -whole), (whole + 3.0, 3 * rest)):
            found, true = Certificate(primal, dual, ""), Fraction(primal) - Fraction(dual)
            size = max(1, abs(Fraction(primal)))
            for gap, expected in ((found.duality_gap, true), (found.relative_gap, true / size)):
                assert expected < Fraction(gap) < expected * (1 + 8 * Fraction(UNIT))
    for value in (0.0, 1.0, -7.0):
        same = Certificate(value, value, "gradient").checked()
        assert same.duality_gap == same.relative_gap == 0.0


def test_a_factor_loses_its_empty_columns_and_no_others():
    """And the best bound is looked for, unless a gap is said to be enough."""
    objective = random_objective(0, "hyper")
    L = np.outer(np.ones(4), [1.0, -1.0, 0.0])
    found = certify_factor(objective, L)
    np.testing.assert_array_equal(found.factor, L[:, :2])
    assert found.primal_value == pytest.approx(objective.value(L @ L.T), rel=1e-12)
    small = 0.2 * np.eye(4)
    quick, best = (certify_factor(objective, small, *enough) for enough in ([10.0], []))
    assert quick.dual_value < best.dual_value == certify(objective, small @ small.T).dual_value
