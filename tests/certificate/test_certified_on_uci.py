"""Evidence: the paper's UCI data sets, hyper's first M-step, judged by the certificate alone."""

from __future__ import annotations

import pytest

from seraph_cvx import MStepObjective, NotCertified, PairSet, Status, certify, solve_m_step
from seraph_cvx.datasets import load_sampling

EMBEDDED = ["iris", "wine", "breast_cancer", "balance"]
FILES = {"ionosphere": 20, "diabetes": 10}
SEEDS = [0, 1, pytest.param(2, marks=pytest.mark.slow)]


def first_m_step(name, seed, **sampling):
    drawn = load_sampling(name, seed=seed, **sampling)
    return MStepObjective(PairSet.from_labels(drawn.X, drawn.y))


def assert_certified(objective, solution, tol=1e-8):
    """Not only the status: the certificate is asked again, at the metric that was returned."""
    assert solution.status is Status.CERTIFIED
    again = certify(objective, solution.metric)
    assert again.relative_gap <= 1.01 * tol
    # two upper bounds, of L and of the factor of LL', each with its own allowance for rounding
    assert solution.certificate.dual_value <= again.primal_value
    assert again.dual_value <= solution.value


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", [*EMBEDDED, *FILES])
def test_newton_is_certified(name, seed, request):
    sampling = {}
    if name in FILES:
        folder = request.getfixturevalue("data_folder")
        sampling = {"n_labeled": FILES[name], "data_dir": folder}
    objective = first_m_step(name, seed, **sampling)
    assert_certified(objective, solve_m_step(objective, solver="newton", tol=1e-8))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", EMBEDDED)
def test_newton_is_certified_on_a_later_m_step(name, seed):
    """The second M-step, whose soft labels are streamed from the first metric."""
    first = first_m_step(name, seed)
    metric = solve_m_step(first, tol=1e-4).metric
    second = MStepObjective(first.pairs, previous_metric=metric)
    assert_certified(second, solve_m_step(second, tol=1e-8, start=metric))


def test_failure_path_an_iteration_limit_is_not_silent():
    objective = first_m_step("wine", 0)
    with pytest.warns(NotCertified, match="iteration_limit.*asked for 1e-08"):
        solution = solve_m_step(objective, max_iter=3)
    assert solution.status is Status.ITERATION_LIMIT
    assert solution.certificate.relative_gap > 1e-8
