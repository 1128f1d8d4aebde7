"""Evidence: an M-step with each penalty, by our solver, by conic solvers, and stated from scratch.

The certificate judges all of them. Its lower bound has to be below F at every feasible matrix, and
its interval has to overlap those of the others.
"""

import warnings

import numpy as np
import pytest
from instances import random_pairs
from penalized import BLOCKS, random_feasible, random_penalized

from seraph_cvx import (
    MStepObjective,
    NotCertified,
    PairSet,
    alternate,
    certify,
    solve_m_step,
    state_m_step,
)
from seraph_cvx.penalties import (
    Diagonal,
    LogDet,
    Penalty,
    Ridge,
    Sparse,
    TraceBound,
)

TOLERANCE = 1e-6


def solve_quietly(objective, solver, **settings):
    """Solve by a conic solver, which need not close the gap: that is what certificates are for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return solve_m_step(objective, solver, **settings)


def check_block(name, seed, *solvers):
    objective, _, state = random_penalized(name, seed)
    assert state_m_step(objective).is_dcp(dpp=True)
    ours = solve_m_step(objective, tol=TOLERANCE)
    assert ours.status == "certified", ours
    certificate = ours.certificate
    slack = 1e-12 * max(1.0, abs(certificate.primal_value))
    for solver in solvers:
        other = solve_quietly(objective, solver, tol=1e-7).certificate
        assert other.dual_value <= certificate.primal_value, solver
        assert certificate.dual_value <= other.primal_value < np.inf, solver
    scratch = state().solve(solver="CLARABEL")
    assert scratch == pytest.approx(certificate.primal_value, rel=1e-5)
    rng = np.random.default_rng(seed)
    for _ in range(200):
        A = random_feasible(objective, rng)
        value = objective.value(A)
        assert certificate.dual_value <= value + slack
        assert np.isfinite(value)


@pytest.mark.parametrize("name", BLOCKS)
def test_both_solvers_agree_on_a_block_and_the_certificate_is_below_all_metrics(name):
    check_block(name, 0, "CLARABEL")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 4])
@pytest.mark.parametrize("name", BLOCKS)
def test_all_solvers_agree_on_every_block(name, seed):
    check_block(name, seed, "CLARABEL", "SCS")


@pytest.mark.parametrize("name", BLOCKS)
def test_a_wrong_conjugate_shows(name, monkeypatch):
    """Planted: each conjugate is too small by 1. Some metric is then below the bound."""
    objective, block, _ = random_penalized(name, 0)
    ours = solve_m_step(objective, tol=TOLERANCE)
    true = type(block).multiplier

    def wrong(self, Z):
        found = true(self, Z)
        return found._replace(conjugate=found.conjugate - 1.0)

    monkeypatch.setattr(type(block), "multiplier", wrong)
    with pytest.raises(ArithmeticError, match="lower bound"):
        certify(objective, ours.metric)


@pytest.mark.parametrize(
    "name",
    [
        "Ridge",
        "TraceBound",
        *(pytest.param(x, marks=pytest.mark.slow) for x in ("LogDet", "Sparse")),
    ],
)
def test_the_weight_is_a_parameter(name):
    from seraph_cvx.m_step.conic import ConicMStep

    objective, block, _ = random_penalized(name, 1)
    heavier = objective.with_penalties([block.with_weight(2.0 * block.weight)])
    compiled = ConicMStep(objective, "CLARABEL")
    again = compiled.solve(heavier, tol=1e-7)
    anew = solve_quietly(heavier, "CLARABEL", tol=1e-7)
    assert again.value == pytest.approx(anew.value, rel=1e-6)
    assert again.value != pytest.approx(compiled.solve(objective, tol=1e-7).value, rel=1e-6)


COMBINATIONS = {
    "ridge and sparse": lambda m: [Ridge(0.3, np.eye(m)), Sparse(0.4)],
    "bound and sparse": lambda m: [TraceBound(1.0), Sparse(0.4)],
    "diagonal and bound": lambda m: [Diagonal(), TraceBound(0.5)],
    "diagonal and ridge": lambda m: [Diagonal(), Ridge(0.5, np.eye(m))],
    "diagonal and log det": lambda m: [LogDet(0.2), Diagonal()],
}


@pytest.mark.parametrize("trace_weight", [pytest.param(0.0, marks=pytest.mark.slow), 0.7])
@pytest.mark.parametrize("name", COMBINATIONS)
def test_several_blocks_at_once(name, trace_weight):
    plain, _, _ = random_penalized("Ridge", 3)
    blocks = COMBINATIONS[name](plain.pairs.n_features)
    objective = MStepObjective(plain.pairs, penalties=blocks, trace_weight=trace_weight)
    ours = solve_m_step(objective, tol=1e-7)
    assert ours.status == "certified"
    theirs = solve_quietly(objective, "CLARABEL", tol=1e-8)
    assert ours.value == pytest.approx(theirs.value, rel=1e-6)


def test_a_diagonal_metric_is_diagonal_and_a_sparse_one_has_zeros():
    plain, _, _ = random_penalized("Ridge", 2)
    diagonal = solve_m_step(plain.with_penalties([Diagonal()])).metric
    assert np.array_equal(diagonal, np.diag(np.diag(diagonal)))
    sparse = solve_m_step(plain.with_penalties([Sparse(3.0)])).metric
    assert np.any(sparse == 0.0)
    assert np.any(sparse[~np.eye(len(sparse), dtype=bool)] != 0.0) or np.all(np.diag(sparse) >= 0.0)


def test_an_optimum_that_only_the_block_gives():
    """Without a trace penalty f falls for ever here; a coercive block ends that."""
    pairs = PairSet.from_constraints(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), [], [(0, 1)])
    plain = {"trace_weight": 0.0, "unlabeled_weight": 0.0}
    coercive = Ridge(1.0), TraceBound(1.0), LogDet(1.0)
    for blocks in ([], [Diagonal()], [Sparse(1.0)], *([block] for block in coercive)):
        objective = MStepObjective(pairs, penalties=blocks, **plain)
        assert objective.attains_optimum == any(block in coercive for block in blocks)
        assert not objective.attains_optimum or solve_m_step(objective).status == "certified"


PLAIN = random_penalized("Ridge", 0)[0]


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        (lambda: PLAIN.with_penalties(["ridge"]), "'ridge', which is not a Penalty"),
        (lambda: solve_m_step(PLAIN.with_penalties([Bare()])), "neither smooth"),
        (lambda: state_m_step(PLAIN, "dual"), "dual statement takes no penalties"),
        (lambda: PLAIN.critical_trace_weight, "no closed form with"),
    ],
)
def test_failure_path_what_cannot_be_is_said(attempt, words):
    with pytest.raises((TypeError, ValueError, NotImplementedError), match=words):
        attempt()


class Bare(Penalty):
    """Only what every block must have: weight * |A_11|."""

    def value(self, A):
        return self.weight * abs(A[0, 0])

    def expression(self, A, weight):
        import cvxpy as cp

        return weight * cp.abs(A[0, 0])

    def subgradient(self, A):
        Z = np.zeros_like(A)
        Z[0, 0] = self.weight * np.sign(A[0, 0])
        return Z

    def conjugate(self, Z):
        off = Z.copy()
        off[0, 0] = 0.0
        return 0.0 if abs(Z[0, 0]) <= self.weight and not np.any(off) else np.inf


def test_a_block_of_four_methods_is_solved_by_conic_solvers_and_certified():
    plain, _, _ = random_penalized("Ridge", 1)
    objective = plain.with_penalties([Bare()])
    assert solve_quietly(objective, "CLARABEL", tol=1e-9).relative_gap <= 1e-5


# The alternation

SMOOTH = ("Ridge", "LogDet")


def alternated(name, seed=0, **more):
    objective, block, _ = random_penalized(name, seed)
    return alternate(
        objective.pairs, unlabeled_weight=0.3, sharpness=2.0, penalties=[block], **more
    )


@pytest.mark.parametrize("name", BLOCKS)
def test_j_never_rises_the_end_is_certified_and_the_history_tells_of_acceleration(name):
    found = alternated(name)
    kinds = {iteration.kind for iteration in found.history}
    assert ("descent" in kinds) == (name in SMOOTH)
    values = [iteration.descent_value for iteration in found.history]
    assert found.status == "certified"
    assert np.all(np.diff(values) <= 1e-12 * np.abs(values[:-1]))
    assert found.m_step.relative_gap <= 1e-8
    assert found.objective.value(found.metric) < np.inf
    assert certify(found.objective, found.metric).primal_value == pytest.approx(
        found.m_step.value, rel=1e-9
    )


def test_j_has_the_penalties_in_it():
    pairs = random_pairs(0)
    plain = alternate(pairs, unlabeled_weight=0.3, sharpness=2.0)
    block = Ridge(1e-9)
    nearly = alternate(pairs, unlabeled_weight=0.3, sharpness=2.0, penalties=[block])
    assert nearly.history[-1].descent_value == pytest.approx(
        plain.history[-1].descent_value + block.value(nearly.metric), rel=1e-6
    )
    heavy = Ridge(100.0, prior=np.eye(pairs.n_features))
    held = alternate(pairs, unlabeled_weight=0.3, sharpness=2.0, penalties=[heavy])
    assert np.linalg.norm(held.metric - np.eye(4)) < 0.5 * np.linalg.norm(plain.metric - np.eye(4))


def test_a_conic_solver_alternates_with_penalties_too():
    pairs = random_pairs(1, n=10)
    ours = alternate(pairs, penalties=[Sparse(0.5)], m_step_tol=1e-6)
    theirs = alternate(pairs, penalties=[Sparse(0.5)], m_step_tol=1e-3, solver="CLARABEL")
    assert theirs.history[-1].descent_value == pytest.approx(
        ours.history[-1].descent_value, rel=1e-3
    )


# Limits


TINY = 1e-152 * np.array([[0.0], [1.0], [3.0]])
"""Points whose metric of typical size has a square that overflows."""


@pytest.mark.parametrize("trace_weight", [0.0, 1e-300, 1.0])
@pytest.mark.parametrize(
    "blocks",
    [
        [TraceBound(1.0)],
        [Sparse(1.0), TraceBound(1.0)],
        [Diagonal(), TraceBound(1.0)],
    ],
    ids=str,
)
def test_features_whose_metric_overflows_end_within_the_iterations(blocks, trace_weight):
    for pairs in (
        PairSet.from_constraints(TINY, [(0, 1)], [(0, 2)]),
        PairSet.from_labels(TINY, [0, 0, 1]),
    ):
        objective = MStepObjective(pairs, penalties=blocks, trace_weight=trace_weight)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotCertified)  # any other warning is an error
            solution = solve_m_step(objective, max_iter=200, time_limit=20.0)
        assert solution.iterations <= 200
        assert solution.status == "certified" or "Numbers overflow" in solution.message
        certificate = certify(objective, solution.metric)
        assert solution.certificate.dual_value <= certificate.primal_value


@pytest.mark.parametrize("seed", [0, 2])
def test_max_iter_bounds_the_steps_of_all_minimizations_together(seed):
    """Also those that are tried in vain, and those that make the rank grow."""
    pairs = random_pairs(seed, n=40, m=6)
    objective = MStepObjective(pairs, trace_weight=0.1, penalties=[TraceBound(1.0)])
    for max_iter in (1, 2, 5, 13, 21):
        with pytest.warns(NotCertified, match="'iteration limit'"):
            solution = solve_m_step(objective, max_iter=max_iter)
        assert solution.iterations == max_iter
