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
    seraph_path,
    solve_m_step,
)
from seraph_cvx.datasets import load_sampling
from seraph_cvx.penalties import (
    Ridge,
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
    assert len(path) == 20
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
    assert repr(path).startswith("SeraphPath(20 trace weights from")
    assert path.metrics.shape == (20, 13, 13)


@pytest.mark.parametrize("index", [1, 7, 19])
def test_a_point_is_the_single_solve(path, pairs, index):
    point = path[index]
    single = solve_m_step(MStepObjective(pairs, trace_weight=point.trace_weight))
    assert point.value == pytest.approx(single.value, rel=2e-6)
    assert np.linalg.norm(point.metric - single.metric) <= 1e-2 * np.linalg.norm(single.metric)


def test_given_weights_are_taken_once_each_from_the_largest_down_with_zero_last():
    path = seraph_path(random_pairs(1, n_labeled=60), [0.5, 3.0, 0.0, 0.5, 1.0, 3.0])
    assert path.trace_weights.tolist() == [3.0, 1.0, 0.5, 0.0]
    assert path[-1].status is Status.CERTIFIED


def test_failure_path_no_dissimilar_pair_leaves_no_path():
    pairs = PairSet.from_constraints(np.random.default_rng(0).normal(size=(6, 2)), [(0, 1)], [])
    with pytest.raises(ValueError, match="zero at every trace weight"):
        seraph_path(pairs, unlabeled_weight=0.0)


def test_failure_path_points_that_are_not_certified_are_told_in_one_warning():
    with pytest.warns(NotCertified, match="2 of the 2 points .* trace_weight=1: ") as caught:
        seraph_path(random_pairs(0), [1.0, 0.5], tol=1e-15)
    assert [warning.filename for warning in caught] == [__file__]


@pytest.fixture(scope="module")
def iris():
    drawn = load_sampling("iris", n_points=40, n_labeled=12, seed=1)
    return PairSet.from_labels(drawn.X, drawn.y)


@pytest.mark.filterwarnings("ignore::seraph_cvx.solvers.not_certified.NotCertified")
def test_a_conic_solver_walks_the_same_path(iris):
    """It is asked for more than is compared, and seldom reaches all that it is asked for."""
    given = {"trace_weights": [30.0, 3.0], "penalties": [Ridge(prior=np.eye(4))]}
    ours = seraph_path(iris, **given)
    theirs = seraph_path(iris, **given, solver="CLARABEL", tol=1e-9)
    for point, other in zip(ours, theirs, strict=True):
        assert point.value == pytest.approx(other.value, rel=1e-6)


@pytest.mark.parametrize("kind", ["manifold_term", "previous_metric"])
def test_what_the_m_step_has_besides_is_carried_along_from_its_critical_weight(iris, kind):
    given = {kind: manifold_term(iris.points, 2.0)}  # PSD as a metric is
    path = seraph_path(iris, n_weights=3, **given)
    critical = MStepObjective(iris, **given).critical_trace_weight
    assert path.critical_trace_weight == pytest.approx(critical)
    assert path[0].trace <= 1e-3 * path[1].trace
    single = solve_m_step(MStepObjective(iris, trace_weight=path[-1].trace_weight, **given))
    assert path[-1].value == pytest.approx(single.value, rel=2e-6)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"trace_weights": []}, "empty"),
        ({"trace_weights": [-1.0]}, "trace_weights=-1"),
        ({"penalties": [Ridge()]}, "With penalties no critical trace weight is known"),
    ],
)
def test_failure_path_arguments(arguments, words):
    with pytest.raises(ValueError, match=words):
        seraph_path(random_pairs(0), **arguments)


def test_failure_path_a_solver_that_breaks_down_is_quoted_with_the_weight():
    with pytest.raises(RuntimeError, match=r"At trace_weight=0\.5: .*license not found"):
        seraph_path(random_pairs(0), [0.5], solver=Raising())
