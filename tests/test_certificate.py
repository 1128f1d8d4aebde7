"""Evidence: the parts of the referee that other tests meet only where nothing depends on them."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace

import naive
import numpy as np
import pytest
from instances import explicit_soft_labels, random_objective, random_psd
from scipy.linalg import eigh

from seraph_cvx import MStepObjective, PairSet, certify, solve_m_step
from seraph_cvx.anchors import Anchors
from seraph_cvx.certificate import (
    Certificate,
    _certify,
    _pinned,
    _rounding,
    is_rounding_all,
)
from seraph_cvx.dual_points import DualTerms, Pinned, TowardsLabels, TowardsOne
from seraph_cvx.psd_cone import check_metric


def with_a_plane(seed, mu):
    """Similar pairs lie in a plane of space, so that M is singular; and the axes of the plane."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(9, 3))
    X[:6, 2] = 0.0
    axes = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    pairs = PairSet.from_constraints(X @ axes, [(0, 1), (1, 2), (3, 4)], [(0, 5), (2, 7)])
    return MStepObjective(pairs, unlabeled_weight=mu, trace_weight=0.0), axes


@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("mu", [0.0, 0.05, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_where_m_is_singular_the_pairs_that_leave_its_range_are_pinned(seed, mu, noise):
    """r_k = 0 on those, and the others shrunk until they are feasible in the plane."""
    objective, axes = with_a_plane(seed, mu)
    plane, normal = axes[:2], axes[2]
    V, c, b = naive.pair_terms(objective.pairs, explicit_soft_labels(objective), mu)
    A = random_psd(np.random.default_rng(seed), 3, size=0.5)
    in_the_plane = np.abs(V @ normal) < 1e-9
    assert 0 < np.sum(in_the_plane) < len(V)
    r = in_the_plane * (1.0 - naive_posterior(V, A, objective.threshold))
    M = plane @ (V.T * (c - b)) @ V @ plane.T
    pull = plane @ (V.T * (c * r)) @ V @ plane.T
    largest = float(eigh(pull, M, eigvals_only=True)[-1])
    whitened = eigh(objective.whitened_program.recession, eigvals_only=True)
    step = 1.0 / max(1.0, largest + noise / whitened[1])
    used = c > 0.0
    expected = naive.dual_value(1.0 - step * r[used], c[used], b[used], objective.threshold)
    anchors = replace(Anchors.of(objective), noise=noise)
    assert anchors.step_from_one(np.eye(3)) is None
    assert _pinned(objective, A, anchors) == pytest.approx(expected, rel=1e-9)
    if noise == 0.0:
        best = max(expected, objective.soft_label_entropy)
        assert certify(objective, A).dual_value == pytest.approx(best, rel=1e-9, abs=1e-12)


def naive_posterior(V, A, eta):
    return np.array([naive.sigmoid(v @ A @ v - eta) for v in V])


def test_the_pinned_instances_are_some_shrunk_and_some_not():
    """Or the test above would not see the step."""
    shrunk = set()
    for seed in range(3):
        for mu in (0.0, 2.0):
            objective, _ = with_a_plane(seed, mu)
            loose = replace(Anchors.of(objective), noise=0.0)
            tight = replace(loose, noise=0.1)
            shrunk.add(_pinned(objective, np.eye(3), loose) > _pinned(objective, np.eye(3), tight))
    assert shrunk == {True, False}


@pytest.mark.parametrize("setting", ["none", "hyper", "other"])
@pytest.mark.parametrize("size", [0.0, 1.0, 1e6])
def test_what_is_allowed_for_rounding_grows_with_every_term(setting, size):
    objective = random_objective(0, setting, threshold=2.5)
    A = random_psd(np.random.default_rng(1), 4, size=size)
    M, X = objective.recession_matrix, objective.sums.points
    value = objective.value(A)
    terms = [
        abs(value),
        sum(abs(M[i, j] * A[i, j]) for i in range(4) for j in range(4)),
        objective.threshold * objective.recession_total,
        objective.pair_total * max(x @ A @ x for x in X),
    ]
    in_units = _rounding(objective, A, value) / np.finfo(np.float64).eps
    assert in_units == pytest.approx(16.0 * sum(terms), rel=1e-9)


def test_the_bound_is_lowered_by_what_is_allowed():
    """Where the anchor p = b/c wins, its value before that is the entropy of the soft labels."""
    objective, _ = with_a_plane(1, mu=2.0)
    A = random_psd(np.random.default_rng(1), 3, size=0.5)
    certificate = certify(objective, A)
    allowed = _rounding(objective, A, certificate.primal_value)
    assert certificate.dual_point == "p = b/c"
    assert certificate.dual_value == objective.soft_label_entropy - allowed


def test_enough_is_enough():
    """With a gap that is asked for the referee stops at the first bound that shows it."""
    objective = random_objective(0, "hyper")
    A = 0.05 * np.eye(4)
    best = certify(objective, A)
    first = certify(objective, A, enough=10.0)
    assert first.relative_gap <= 10.0
    assert first.dual_value < best.dual_value
    assert first.dual_point == "by concavity"
    assert certify(objective, A, enough=first.relative_gap) == first
    assert certify(objective, A, enough=best.relative_gap / 2.0) == best


def test_the_gap_is_relative_to_the_value_from_one_on():
    assert Certificate(10.0, 9.0, "").relative_gap == 0.1
    assert Certificate(0.5, 0.25, "").relative_gap == 0.25
    assert Certificate(-10.0, -12.0, "").relative_gap == 0.2


@pytest.mark.parametrize("seed", range(3))
def test_a_gap_that_is_only_what_rounding_is_allowed_is_told_from_others(seed):
    objective = random_objective(seed, "hyper")
    A = check_metric(solve_m_step(objective, tol=1e-12).metric, 4)
    with_allowance = certify(objective, A).relative_gap
    without = _certify(objective, A, allow_rounding=False, enough=0.0).relative_gap
    assert 0.0 < without < with_allowance
    assert is_rounding_all(objective, A, (without + with_allowance) / 2.0)
    assert is_rounding_all(objective, A, without)
    assert not is_rounding_all(objective, A, without / 2.0)
    assert not is_rounding_all(objective, np.eye(4), 1e-3)


def test_neither_a_certificate_nor_what_it_is_made_of_can_be_changed():
    objective = random_objective(0, "hyper")
    towards_one = TowardsOne(0.5, 1.0)
    for made in [
        certify(objective, np.eye(4)),
        objective,
        Anchors.of(objective),
        towards_one,
        TowardsLabels(0.5, 1.0, objective.soft_labeling, 6),
        Pinned(0.5, 1.0, 0.0),
        DualTerms(towards_one),
    ]:
        with pytest.raises(FrozenInstanceError):
            setattr(made, fields(made)[0].name, None)


def test_how_much_is_enough_is_said_by_name():
    objective = random_objective(0, "hyper")
    with pytest.raises(TypeError, match="positional"):
        certify(objective, np.eye(4), 0.1)


def test_the_gradient_is_named_where_it_is_feasible_as_it_is():
    objective, named = random_objective(0, "proj", threshold=0.1), set()
    for size in np.geomspace(1e-3, 1e3, 25):
        A = size * np.eye(4)
        is_feasible = np.linalg.eigvalsh(objective.gradient(A))[0] > 1e-9
        dual_point = certify(objective, A).dual_point
        named.add(dual_point)
        if dual_point in ("gradient", "towards p = 1"):
            assert (dual_point == "gradient") == is_feasible
    assert {"gradient", "towards p = 1"} <= named, named
