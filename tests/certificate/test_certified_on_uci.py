"""Evidence: the paper's UCI data sets, hyper's first M-step, judged by the certificate alone."""

from __future__ import annotations

import warnings

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


@pytest.mark.parametrize(
    ("name", "tol"), [("iris", 1e-5), pytest.param("balance", 1e-6, marks=pytest.mark.slow)]
)
def test_newton_and_projected_gradient_agree_by_the_certificate(name, tol):
    objective = first_m_step(name, 0, n_points=50)
    paper = solve_m_step(objective, solver="projected-gradient", tol=tol)
    ours = solve_m_step(objective, solver="newton", tol=1e-8)
    assert paper.status is Status.CERTIFIED
    assert ours.certificate.dual_value <= paper.value + 1e-12
    assert paper.certificate.dual_value <= ours.value + 1e-12


def solve_and_record(objective, **settings):
    """The answer of a conic solver, and the NotCertified warnings that came with it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solution = solve_m_step(objective, **settings)
    return solution, [w for w in caught if issubclass(w.category, NotCertified)]


def check_conic_answer(objective, solution, complaints, certified):
    """Not below the certified bound; a status other than certified is said aloud, with a cure."""
    if solution.status is Status.CERTIFIED:
        assert complaints == []
    else:
        assert len(complaints) == 1
        assert solution.message
        assert solution.message in str(complaints[0].message)
    if solution.metric is None:
        assert solution.status is Status.FAILED
        assert solution.certificate is None
        return
    assert solution.value == pytest.approx(objective.value(solution.metric), rel=1e-10)
    slack = 1e-12 * max(1.0, abs(solution.value))
    assert solution.value >= certified.certificate.dual_value - slack
    assert solution.certificate.dual_value <= certified.value + slack


HARDER = [
    pytest.param("CLARABEL", name, seed, 60, marks=pytest.mark.slow)
    for seed, name in enumerate(["iris", "balance", "wine"])
]


@pytest.mark.parametrize("formulation", ["primal", "dual"])
@pytest.mark.parametrize(
    ("solver", "name", "seed", "n_points"),
    [("CLARABEL", "iris", 0, 20), ("SCS", "iris", 0, 20), *HARDER],
)
def test_conic_solvers_never_beat_the_certified_bound(solver, name, seed, n_points, formulation):
    objective = first_m_step(name, seed, n_points=n_points)
    certified = solve_m_step(objective, tol=1e-9)
    answer, complaints = solve_and_record(
        objective, solver=solver, tol=1e-6, time_limit=60, formulation=formulation
    )
    check_conic_answer(objective, answer, complaints, certified)
    if n_points == 20 and answer.metric is not None:
        assert answer.relative_gap < 1e-2


def test_failure_path_an_iteration_limit_is_not_silent():
    objective = first_m_step("wine", 0)
    with pytest.warns(NotCertified, match="iteration_limit.*asked for 1e-08"):
        solution = solve_m_step(objective, max_iter=3)
    assert solution.status is Status.ITERATION_LIMIT
    assert solution.certificate.relative_gap > 1e-8
