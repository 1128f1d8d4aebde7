"""Evidence: the certificate's parts against their definitions, and what it promises of itself."""

from __future__ import annotations

import math
from fractions import Fraction

import array_api_strict
import numpy as np
import pytest
from flint import arb, ctx
from high_precision import BITS, differences, exact, is_positive_definite, moment
from instances import random_objective

from seraph_cvx import MStepObjective, PairSet, certify
from seraph_cvx.certificate import Certificate, certify_m_step
from seraph_cvx.certificate.certificate import LowerBound
from seraph_cvx.proof.rounding import MatrixError, down, gamma, up


def test_enough_is_enough():
    """With a gap that is asked for the search stops at the first bound that shows it."""
    objective = random_objective(0, "hyper")
    A = 0.05 * np.eye(4)
    best = certify(objective, A)
    first = certify(objective, A, enough=10.0)
    assert first.relative_gap <= 10.0
    assert first.dual_value < best.dual_value
    assert certify(objective, A, enough=best.relative_gap / 2.0) == best


@pytest.mark.parametrize(
    ("primal", "dual", "gap"),
    [(10.0, 9.0, 0.1), (0.5, 0.25, 0.25), (1.0, -np.inf, np.inf), (np.inf, 0.0, np.inf)],
)
def test_the_gap_is_relative_to_the_value_from_one_on(primal, dual, gap):
    assert Certificate(primal, dual, "").relative_gap == pytest.approx(gap, rel=1e-15)


def test_the_gradient_is_named_where_it_is_feasible_as_it_is():
    objective, named = random_objective(0, "proj", threshold=0.1), set()
    for size in np.geomspace(1e-3, 1e3, 25):
        A = size * np.eye(4)
        is_feasible = np.linalg.eigvalsh(objective.gradient(A))[0] > 1e-9
        dual_point = certify(objective, A).dual_point
        named.add(dual_point)
        if dual_point in ("gradient", "toward p = 1"):
            assert (dual_point == "gradient") == is_feasible
    assert {"gradient", "toward p = 1"} <= named, named


def test_a_lower_bound_above_the_upper_one_is_a_defect_and_said_to_be_one(monkeypatch):
    objective = random_objective(0, "hyper")
    monkeypatch.setattr(certify_m_step, "lower_bounds", lambda *_: [LowerBound(1e9, "gradient")])
    with pytest.raises(ArithmeticError, match="defect of seraph_cvx"):
        certify(objective, np.eye(4))


def test_a_manifold_term_that_is_not_psd_leaves_no_bound():
    """f falls without end along its negative direction if no pair stands in the way."""
    pairs = PairSet.from_constraints([[0.0, 0.0], [1.0, 0.0]], [(0, 1)], [])
    objective = MStepObjective(pairs, trace_weight=0.0, manifold_term=np.diag([1.0, -1e-15]))
    certificate = certify(objective, np.eye(2))
    assert certificate.dual_value == -math.inf
    assert certificate.relative_gap == math.inf


TINY = [1e-300, 1e-20, 3e-17, 6e-17, 1e-16, 1.7e-16, 3e-16, 3e-13, 1e-14, 1e-12, 1e-9]


@pytest.mark.parametrize("q", [*TINY, 0.3, 0.5, 0.999, 1.0 - 2.0**-53])
def test_the_entropy_of_a_tiny_soft_label_is_accurate(q):
    """It is a lower bound on the optimum: by 2 % it was too large, from log(1 - q)."""
    pairs = PairSet.from_constraints([[0.0], [1.0], [3.0]], [], [(0, 1)])
    objective = MStepObjective(pairs, soft_labels=[q, 0.0], unlabeled_weight=1.0)
    with ctx.workprec(400):
        true = -arb(q) * arb(q).log() - (1 - arb(q)) * (-arb(q)).log1p()
        value = objective.label_bounds.value
        assert value <= true <= value + 1e-13 * (true + q) + 1e-290


def test_rounding_down_and_up_enclose():
    rng = np.random.default_rng(0)
    for _ in range(200):
        x = Fraction(int(rng.integers(-(10**9), 10**9)), int(rng.integers(1, 10**9)))
        assert Fraction(down(x)) <= x <= Fraction(up(x))
        assert up(x) <= math.nextafter(down(x), math.inf)


def test_gamma_bounds_a_sum_of_that_many_terms():
    for terms in np.random.default_rng(0).random((10, 1000)):
        in_order, true = np.cumsum(terms)[-1], sum(map(Fraction, terms))
        assert abs(Fraction(in_order) - true) <= Fraction(gamma(1000)) * true
    with pytest.raises(ArithmeticError, match="too long"):
        gamma(10**15)


def test_the_error_of_a_matrix_bounds_the_true_one():
    """E >= -t D in exact arithmetic, for coordinates that cancel and weights of any size."""
    rng = np.random.default_rng(0)
    n, m = 7, 3
    upper = np.triu_indices(n, 1)
    for _ in range(20):
        X = rng.normal(size=(n, m)) + 1e4 * rng.normal(size=m)
        T = rng.normal(size=(m, m))
        weights = np.triu(rng.random((n, n)) * 10.0 ** rng.uniform(-6, 3, (n, n)), 1)
        Z, sizes = X @ T, np.abs(X) @ np.abs(T)
        degrees = weights.sum(0) + weights.sum(1)
        cross = Z.T @ (weights @ Z)
        computed = (Z.T * degrees) @ Z - cross - cross.T
        error = MatrixError(degrees @ np.stack([Z**2, sizes**2]), m, 2 * n + 8, 1.0)
        D = 10.0 ** rng.uniform(-3, 3, m)
        t = error.relative_to(D)
        with ctx.workprec(BITS):
            V = differences(X, np.column_stack(upper)) * exact(T)
            E = moment(V, weights[upper]) - exact(computed)
            assert is_positive_definite((E + E.transpose()) / 2 + exact(t * np.diag(D)))
        assert t < 1e-3 * float(np.sum(degrees @ Z**2 / D))


@pytest.mark.parametrize("name", ["CUBLAS_EMULATE_DOUBLE_PRECISION", "CUBLAS_EMULATION_STRATEGY"])
def test_emulated_float64_is_refused_on_a_device(monkeypatch, name):
    """Its rounding errors are not those of float64; on NumPy's arrays the switch does nothing."""
    on_numpy = random_objective(0, "hyper")
    pairs = on_numpy.pairs
    points = array_api_strict.asarray(pairs.points)
    on_device = MStepObjective(PairSet.from_constraints(points, pairs.similar, pairs.dissimilar))
    for value in ("", "0"):
        monkeypatch.setenv(name, value)
        assert certify(on_device, np.eye(4)).dual_value > 0.0
    monkeypatch.setenv(name, "1")
    assert certify(on_numpy, np.eye(4)).dual_value > 0.0
    with pytest.raises(ArithmeticError, match=f"{name} is set"):
        certify(on_device, np.eye(4))
