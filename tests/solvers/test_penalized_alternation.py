"""Evidence: the alternation descends J with any penalties, and ends certified."""

import numpy as np
import pytest
from instances import random_pairs
from penalized import BLOCKS, random_penalized

from seraph_cvx import alternate, certify
from seraph_cvx.penalties import Ridge, Sparse

SMOOTH = ("Trace", "Manifold", "Ridge", "LogDet")
SHORT_RUNS = {"at most": 4, "equal": 2}
"""Seeds whose runs take a quarter of a second, where others take one."""


def run(name, seed=0, **more):
    objective, block, _ = random_penalized(name, seed)
    return block, alternate(
        objective.pairs, unlabeled_weight=0.3, sharpness=2.0, penalties=[block], **more
    )


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        *((name, SHORT_RUNS.get(name, 0)) for name in BLOCKS),
        *(pytest.param(name, 0, marks=pytest.mark.slow) for name in SHORT_RUNS),
    ],
)
def test_j_never_rises_the_end_is_certified_and_the_history_tells_of_acceleration(name, seed):
    _, found = run(name, seed)
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


def test_the_paper_s_pace_has_no_descent():
    _, plain = run("Ridge", accelerate=False)
    assert {iteration.kind for iteration in plain.history} == {"M-step"}


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
