"""Evidence: the path is certified at each point, begins at zero, ends where a single fit does."""

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
from seraph_cvx.penalties import (
    Diagonal,
    LinearConstraints,
    LogDet,
    Manifold,
    Ridge,
    Sparse,
    Trace,
    TraceBound,
    UpperBound,
    manifold_term,
)


@pytest.fixture(scope="module")
def pairs():
    drawn = load_sampling("wine", seed=0)
    return PairSet.from_labels(drawn.X, drawn.y)


@pytest.fixture(scope="module")
def path(pairs):
    return seraph_path(pairs)


def test_it_begins_at_the_critical_weight_with_zero_and_is_certified_all_along(path, pairs):
    """tr A(lambda) does not rise with lambda, and f is concave and increasing in lambda."""
    assert len(path) == len(path.to_table().rows) == 20
    assert all(point.status is Status.CERTIFIED for point in path)
    assert max(point.certificate.relative_gap for point in path) <= 1e-6
    critical = MStepObjective(pairs).critical_trace_weight
    assert path.critical_trace_weight == path.trace_weights[0] == pytest.approx(critical)
    assert path.trace_weights[-1] == pytest.approx(1e-3 * critical)
    assert path[0].trace == pytest.approx(0.0, abs=1e-9)
    assert path.ranks[0] == 0
    assert path.ranks[1] >= 1
    assert np.all(np.diff(path.trace_weights) < 0.0)
    assert np.all(np.diff([point.trace for point in path]) >= -1e-4)
    assert np.all(np.diff([point.value for point in path]) <= 1e-4)
    assert "previous point" in path.to_table().to_markdown()
    assert repr(path).startswith("SeraphPath(20 trace weights from")
    assert path.metrics.shape == (20, 13, 13)


@pytest.mark.parametrize("index", [1, 7, 19])
def test_a_point_is_the_single_solve(path, pairs, index):
    point = path[index]
    single = solve_m_step(MStepObjective(pairs, trace_weight=point.trace_weight))
    assert point.value == pytest.approx(single.value, rel=2e-6)
    assert np.linalg.norm(point.metric - single.metric) <= 1e-2 * np.linalg.norm(single.metric)


def test_given_weights_are_taken_once_each_from_the_largest_down_with_zero_last():
    """Of two equal weights no parabola goes through the points before."""
    path = seraph_path(random_pairs(1, n_labeled=60), [0.5, 3.0, 0.0, 0.5, 1.0, 3.0])
    assert path.trace_weights.tolist() == [3.0, 1.0, 0.5, 0.0]
    assert path[-1].status is Status.CERTIFIED


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


def test_failure_path_no_dissimilar_pair_leaves_no_path():
    pairs = PairSet.from_constraints(np.random.default_rng(0).normal(size=(6, 2)), [(0, 1)], [])
    with pytest.raises(ValueError, match="zero at every trace weight"):
        seraph_path(pairs, unlabeled_weight=0.0)


@pytest.mark.parametrize("algorithm", ["m-step", "em"])
def test_failure_path_points_that_are_not_certified_are_told_in_one_warning(algorithm):
    with pytest.warns(NotCertified, match="2 of the 2 points .* trace_weight=1: ") as caught:
        seraph_path(random_pairs(0), [1.0, 0.5], algorithm=algorithm, m_step_tol=1e-15)
    assert [warning.filename for warning in caught] == [__file__]


# Paths of the weight of another penalty

VARIED = {
    "Ridge": (Ridge(prior=0.1 * np.eye(4)), [30.0, 3.0, 0.3]),
    "LogDet": (LogDet(prior=0.1 * np.eye(4)), [10.0, 1.0, 0.1]),
    "Sparse": (Sparse(), [30.0, 3.0, 0.3]),
    "TraceBound": (TraceBound(1.0), [0.5, 0.1, 0.02]),
    "Manifold": (Manifold(1.0), [3.0, 1.0, 0.3]),
}


@pytest.fixture(scope="module")
def iris():
    drawn = load_sampling("iris", n_points=40, n_labeled=12, seed=1)
    return PairSet.from_labels(drawn.X, drawn.y)


def penalty_path(pairs, block, weights, **more):
    return seraph_path(pairs, penalties=[block], varied=0, penalty_weights=weights, **more)


@pytest.mark.parametrize("name", VARIED)
def test_a_path_of_a_penalty_is_certified_and_a_point_is_the_single_solve(iris, name):
    block, weights = VARIED[name]
    path = penalty_path(iris, block, weights[::-1], trace_weight=0.5)
    assert path.weights.tolist() == weights
    assert path.trace_weights.tolist() == [0.5] * 3
    assert path[1].penalty_weight == path[1].weight == weights[1]
    assert all(point.certificate.relative_gap <= 1e-6 for point in path)
    assert [point.start for point in path] == ["zero", "previous point", "previous point"]
    for point in path:
        objective = MStepObjective(
            iris, trace_weight=0.5, penalties=[block.with_weight(point.weight)]
        )
        assert point.value == pytest.approx(solve_m_step(objective).value, rel=3e-6)
        assert np.isfinite(objective.value(point.metric))


def test_a_path_of_a_bound_on_the_trace_has_these_traces(iris):
    path = penalty_path(iris, TraceBound(9.0), [0.2, 0.1])
    assert [point.trace for point in path] == pytest.approx([0.2, 0.1], rel=1e-4)
    assert path.axis == "bound of TraceBound"
    assert repr(path).startswith("SeraphPath(2 bounds of TraceBound from 0.2 to 0.1")


def test_the_trace_block_varied_is_the_path_of_the_trace_weight(iris):
    weights = [30.0, 3.0, 0.3]
    one = penalty_path(iris, Trace(1.0), weights, trace_weight=0.0)
    other = seraph_path(iris, weights)
    np.testing.assert_array_equal(one.metrics, other.metrics)
    assert other.weights.tolist() == other.trace_weights.tolist() == weights
    assert other[0].penalty_weight is None


def test_one_block_is_varied_and_the_others_stay(iris):
    blocks = [Diagonal(), Ridge(1.0)]
    path = seraph_path(iris, penalties=blocks, varied=1, penalty_weights=[100.0, 1.0])
    for A in path.metrics:
        assert not np.any(A - np.diag(np.diag(A)))
    assert path[0].trace < path[1].trace
    assert blocks[1].weight == 1.0


@pytest.mark.filterwarnings("ignore::seraph_cvx.solvers.not_certified.NotCertified")
def test_a_conic_solver_walks_the_same_path(iris):
    """It is asked for more than is compared, and seldom reaches all that it is asked for."""
    given = iris, Ridge(prior=np.eye(4)), [90.0, 9.0]
    ours = penalty_path(*given)
    theirs = penalty_path(*given, solver="CLARABEL", m_step_tol=1e-9)
    for point, other in zip(ours, theirs, strict=True):
        assert point.value == pytest.approx(other.value, rel=1e-6)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *(("penalties", [x]) for x in (Diagonal(), TraceBound(5.0), UpperBound(np.eye(4)))),
        *((kind, None) for kind in ("manifold_term", "previous_metric")),
    ],
)
def test_what_the_m_step_has_besides_is_carried_along_from_its_critical_weight(iris, kind, value):
    given = {kind: value or manifold_term(iris.points, 2.0)}  # PSD as a metric is
    path = seraph_path(iris, n_weights=3, **given)
    critical = MStepObjective(iris, **given).critical_trace_weight
    assert path.critical_trace_weight == pytest.approx(critical)
    assert path[0].trace <= 1e-3 * path[1].trace
    single = solve_m_step(MStepObjective(iris, trace_weight=path[-1].trace_weight, **given))
    assert path[-1].value == pytest.approx(single.value, rel=2e-6)


def test_given_trace_weights_need_no_critical_one(iris):
    near = LinearConstraints(np.eye(4), upper=0.2)
    assert np.isnan(seraph_path(iris, [1.0], penalties=[near]).critical_trace_weight)
    assert np.isinf(seraph_path(iris, [1.0], penalties=[LogDet()]).critical_trace_weight)


RIDGE = {"penalties": [Ridge()], "varied": 0}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"algorithm": "direct"}, "m-step"),
        ({"trace_weights": []}, "empty"),
        ({"trace_weights": [-1.0]}, "trace_weights=-1"),
        ({"algorithm": "em", "previous_metric": np.eye(4)}, "the alternation moves it"),
        ({"varied": 0}, "varied=0 is not the number of one of the 0 penalties"),
        (RIDGE, "penalty_weights=None: give numbers"),
        ({**RIDGE, "penalty_weights": [0.0]}, "penalty_weights=0"),
        ({**RIDGE, "trace_weights": [1.0], "penalty_weights": [1.0]}, "points as trace_weight="),
        (
            {"varied": 0, "penalties": [Diagonal()], "penalty_weights": [1.0]},
            r"Diagonal\(\) has no weight",
        ),
        ({"penalties": [LogDet()]}, "zero at no trace weight"),
        ({"penalties": [Sparse()]}, "no closed form with Sparse"),
    ],
)
def test_failure_path_arguments(arguments, words):
    with pytest.raises(ValueError, match=words):
        seraph_path(random_pairs(0), **arguments)


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        ({"trace_weights": [0.5], "algorithm": "em"}, "trace_weight"),
        ({**RIDGE, "penalty_weights": [0.5]}, "weight of Ridge"),
    ],
)
def test_failure_path_a_solver_that_breaks_down_is_quoted_with_the_weight(arguments, where):
    with pytest.raises(RuntimeError, match=rf"At {where}=0\.5: .*license not found"):
        seraph_path(random_pairs(0), solver=Raising(), **arguments)
