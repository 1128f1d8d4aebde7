"""Evidence: the path is certified at each point, begins at zero, ends where a single fit does."""

from __future__ import annotations

import numpy as np
import pytest
from faulty_solvers import Raising
from instances import random_pairs

from seraph_cvx import (
    MStepObjective,
    NotCertified,
    PairSet,
    Status,
    alternate,
    seraph_path,
    solve_m_step,
)
from seraph_cvx.datasets import load_sampling
from seraph_cvx.penalties.manifold import manifold_term


@pytest.fixture(scope="module")
def pairs():
    drawn = load_sampling("wine", seed=0)
    return PairSet.from_labels(drawn.X, drawn.y)


@pytest.fixture(scope="module")
def path(pairs):
    return seraph_path(pairs)


def test_every_point_is_certified(path):
    assert len(path) == 20
    assert all(point.status is Status.CERTIFIED for point in path)
    assert max(point.certificate.relative_gap for point in path) <= 1e-6


def test_it_begins_at_the_critical_weight_with_zero_and_falls(path, pairs):
    critical = MStepObjective(pairs).critical_trace_weight
    assert path.critical_trace_weight == path.trace_weights[0] == pytest.approx(critical)
    assert path.trace_weights[-1] == pytest.approx(1e-3 * critical)
    assert path[0].trace == pytest.approx(0.0, abs=1e-9)
    assert path.ranks[0] == 0
    assert path.ranks[1] >= 1
    assert np.all(np.diff(path.trace_weights) < 0.0)


def test_trace_rises_and_the_value_falls_along_it(path):
    """tr A(lambda) does not rise with lambda, and f is concave and increasing in lambda."""
    traces = [point.trace for point in path]
    values = [point.value for point in path]
    assert np.all(np.diff(traces) >= -1e-4)
    assert np.all(np.diff(values) <= 1e-4)


@pytest.mark.parametrize("index", [1, 7, 19])
def test_a_point_is_the_single_solve(path, pairs, index):
    point = path[index]
    single = solve_m_step(MStepObjective(pairs, trace_weight=point.trace_weight))
    assert point.value == pytest.approx(single.value, rel=2e-6)
    assert np.linalg.norm(point.metric - single.metric) <= 1e-2 * np.linalg.norm(single.metric)


@pytest.mark.parametrize("seed", range(6))
def test_random_instances_are_certified_all_along(seed):
    pairs = random_pairs(seed, n=25, m=3 + seed)
    path = seraph_path(pairs, unlabeled_weight=[0.0, "ratio", 0.5][seed % 3], n_weights=12)
    assert all(point.certificate.relative_gap <= 1e-6 for point in path)


def test_given_weights_are_taken_from_the_largest_down_with_zero_last():
    path = seraph_path(random_pairs(1, n_labeled=60), [0.5, 3.0, 0.0, 1.0])
    assert path.trace_weights.tolist() == [3.0, 1.0, 0.5, 0.0]
    assert path[-1].status is Status.CERTIFIED


def test_a_weight_given_twice_is_taken_once():
    """Of two equal weights no parabola goes through the points before."""
    weights = [0.5, 1.0, 0.5, 0.25, 1.0]
    path = seraph_path(random_pairs(1, n_labeled=60), weights)
    assert path.trace_weights.tolist() == [1.0, 0.5, 0.25]


def test_the_manifold_term_is_carried_along(pairs):
    term = manifold_term(pairs.points, 2.0)
    path = seraph_path(pairs, manifold_term=term, n_weights=5)
    single = solve_m_step(
        MStepObjective(pairs, trace_weight=path[-1].trace_weight, manifold_term=term)
    )
    assert path[-1].value == pytest.approx(single.value, rel=2e-6)


def test_a_path_of_alternations_says_how_each_point_started_and_ends_as_a_fit(pairs):
    path = seraph_path(pairs, [300.0, 30.0, 3.0, 1.0], algorithm="em")
    assert [point.start for point in path] == ["cold", *["previous point"] * 3]
    assert all(point.status is Status.CERTIFIED for point in path)
    cold = alternate(pairs, trace_weight=1.0)
    assert path[-1].descent_value == pytest.approx(cold.history[-1].descent_value, rel=1e-3)


def test_after_the_metric_zero_an_alternation_starts_cold(pairs):
    path = seraph_path(pairs, algorithm="em", n_weights=3, smallest=0.1)
    assert path[0].trace == pytest.approx(0.0, abs=1e-9)
    assert [point.start for point in path] == ["cold", "cold", "previous point"]
    assert path[-1].rank >= 1


def test_a_path_of_a_later_m_step_takes_its_soft_labels(pairs):
    previous = alternate(pairs).metric
    path = seraph_path(pairs, [1.0], previous_metric=previous)
    single = solve_m_step(MStepObjective(pairs, previous_metric=previous))
    assert path[0].value == pytest.approx(single.value, rel=2e-6)


def test_the_table_has_a_row_a_point(path):
    table = path.to_table()
    assert len(table.rows) == 20
    assert "previous point" in table.to_markdown()
    assert repr(path).startswith("SeraphPath(20 trace weights from")
    assert path.metrics.shape == (20, 13, 13)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"algorithm": "direct"}, "m-step"),
        ({"trace_weights": "automatic"}, "auto"),
        ({"trace_weights": []}, "empty"),
        ({"trace_weights": [-1.0]}, "trace_weights=-1"),
        ({"algorithm": "em", "previous_metric": np.eye(4)}, "the alternation moves it"),
        ({"smallest": 0.0}, "smallest=0"),
    ],
)
def test_failure_path_arguments(arguments, words):
    with pytest.raises(ValueError, match=words):
        seraph_path(random_pairs(0), **arguments)


def test_failure_path_no_dissimilar_pair_leaves_no_path():
    pairs = PairSet.from_constraints(np.random.default_rng(0).normal(size=(6, 2)), [(0, 1)], [])
    with pytest.raises(ValueError, match="zero at every trace weight"):
        seraph_path(pairs, unlabeled_weight=0.0)


@pytest.mark.parametrize("algorithm", ["m-step", "em"])
def test_failure_path_a_solver_that_breaks_down_is_quoted_with_the_trace_weight(algorithm):
    with pytest.raises(RuntimeError, match=r"At trace_weight=0\.5: .*licence not found"):
        seraph_path(random_pairs(0), [0.5], algorithm=algorithm, solver=Raising())


@pytest.mark.parametrize("algorithm", ["m-step", "em"])
def test_failure_path_points_that_are_not_certified_are_told_in_one_warning(algorithm):
    with pytest.warns(NotCertified, match="2 of the 2 points .* trace_weight=1: ") as caught:
        seraph_path(random_pairs(0), [1.0, 0.5], algorithm=algorithm, m_step_tol=1e-15)
    assert [warning.filename for warning in caught] == [__file__]
