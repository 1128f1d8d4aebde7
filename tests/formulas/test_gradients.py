"""Evidence: gradients by finite differences, convexity by midpoints, the two bounds by sampling."""

import numpy as np
import pytest
from instances import SETTINGS, pair_lists, random_objective, random_pairs, random_psd

from seraph_cvx import MStepObjective, paper
from seraph_cvx.model.programs import SemiSupervisedObjective

STEP = 1e-5


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("q", ["start", "random", "streamed", "objective (7)"])
@pytest.mark.parametrize("seed", range(3))
def test_gradient_by_finite_differences(setting, q, seed):
    objective = random_objective(seed, setting, q=q)
    objective = SemiSupervisedObjective(objective) if q == "objective (7)" else objective
    rng = np.random.default_rng(seed)
    A = random_psd(rng, 4)
    gradient = objective.value_and_gradient(A)[1]
    assert np.array_equal(gradient, gradient.T)
    for _ in range(5):
        D = rng.normal(size=(4, 4))
        D = (D + D.T) / np.linalg.norm(D + D.T)
        rise = objective.value(A + STEP * D) - objective.value(A - STEP * D)
        assert np.vdot(gradient, D) == pytest.approx(rise / (2.0 * STEP), rel=1e-7, abs=1e-6)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("q", ["start", "random", "streamed"])
def test_convexity_by_midpoints_of_the_m_step(setting, q):
    objective = random_objective(11, setting, q=q)
    rng = np.random.default_rng(11)
    strictly = False
    for _ in range(40):
        A, B = (random_psd(rng, 4, size=10.0 ** rng.uniform(-2, 2)) for _ in range(2))
        chord = (objective.value(A) + objective.value(B)) / 2.0
        middle = objective.value((A + B) / 2.0)
        assert middle <= chord + 1e-12 * max(1.0, abs(chord))
        strictly |= middle < chord - 1e-3
    assert strictly


def test_convexity_is_absent_from_objective_7():
    of_7 = SemiSupervisedObjective(random_objective(0, "hyper", m=1, unlabeled_weight=10.0))
    grid = [of_7.value([[a]]) for a in np.linspace(0.0, 5.0, 60)]
    assert np.min(np.diff(grid, 2)) < -1e-3


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e2])
def test_bounds_on_the_gradient_and_on_its_differences_hold_at_random_points(setting, scale):
    """(12): ||grad f|| <= lipschitz_bound, whatever the scale of A; lambda*sqrt(m) suffices."""
    pairs, rng = random_pairs(12, scale=scale), np.random.default_rng(12)
    objective = MStepObjective(pairs, **SETTINGS[setting])
    bound, letters = objective.lipschitz_bound, {"mu": objective.mu, "lam": objective.trace_weight}
    assert 2.0 * objective.trace_weight <= bound  # the norm of lambda I
    assert bound <= paper.lipschitz_bound(*pair_lists(pairs), **letters) + 1e-9
    steepest = 0.0
    for size in 10.0 ** np.linspace(-4, 4, 17) / scale**2:
        A, B = random_psd(rng, 4, size=size), random_psd(rng, 4, size=size)
        assert np.linalg.norm(objective.gradient(A)) <= bound
        difference = abs(objective.value(A) - objective.value(B))
        assert difference <= bound * np.linalg.norm(A - B)
        A = random_psd(rng, 4, size=1.0 / scale**2)
        rise = np.linalg.norm(objective.gradient(A) - objective.gradient(A + B))
        steepest = max(steepest, rise / np.linalg.norm(B))
    assert steepest <= objective.smoothness_bound * (1.0 + 1e-9)
    assert steepest >= 1e-2 * objective.smoothness_bound  # the bound is of the right size


def test_bound_on_the_gradient_is_attained_by_a_single_pair():
    """One similar pair far apart: the gradient tends to v v', whose norm is the bound itself."""
    pairs = random_pairs(0, n=2, m=3, n_labeled=1)
    pairs = type(pairs).from_constraints(pairs.points, [(0, 1)], [])
    objective = MStepObjective(pairs, trace_weight=0.0)
    assert np.linalg.norm(objective.gradient(1e4 * np.eye(3))) == pytest.approx(
        objective.lipschitz_bound, rel=1e-12
    )


def test_bound_on_gradient_differences_is_attained_where_the_score_is_zero():
    """One pair: the Hessian is sigma(s) sigma(-s) ||v||^4 at most, 1/4 of it where s = 0."""
    pairs = random_pairs(0, n=2, m=1, n_labeled=1)
    objective = MStepObjective(pairs, trace_weight=0.0)
    v2 = float(np.square(pairs.points[0] - pairs.points[1])[0])
    a, h = 1.0 / v2, 1e-5 / v2
    curvature = (objective.gradient([[a + h]]) - objective.gradient([[a - h]]))[0, 0] / (2.0 * h)
    assert curvature == pytest.approx(objective.smoothness_bound, rel=1e-6)
