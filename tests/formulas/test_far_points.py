"""Evidence: values far out are found, told with row and column, and do not spoil a solution."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from seraph_cvx import SERAPH, KernelSERAPH, MStepObjective, PairSet, Status, solve_m_step
from seraph_cvx.datasets import load, load_sampling
from seraph_cvx.pairs.data_warnings import (
    FarValueWarning,
    ScaleWarning,
    clip_far_values,
    describe_far_values,
    describe_scales,
    far_values,
    stray_values,
)


def iris_with(value, how_many=1):
    sampling = load_sampling("iris", seed=0)
    X = np.array(sampling.X)
    rows = np.flatnonzero(np.asarray(sampling.y) == -1)[:how_many]
    X[rows, 0] = value
    return X, sampling.y, rows


@pytest.mark.parametrize("value", [1e3, 1e5, 2e7, 1e8, -1e10, 1e12])
def test_a_sentinel_among_the_points_does_not_spoil_the_m_step(value):
    """Certified, and at the value that the clean data have nearby: 32.40224."""
    X, y, _ = iris_with(value)
    solution = solve_m_step(MStepObjective(PairSet.from_labels(X, y)))
    assert solution.status is Status.CERTIFIED
    assert solution.value == pytest.approx(32.4022, abs=1e-3)


@pytest.mark.parametrize("value", [1e6, 1e8, -1e10])
@pytest.mark.parametrize("seed", range(3))
def test_a_sentinel_of_a_labeled_point_does_not_spoil_the_m_step(value, seed):
    """Its similar pairs have to be short, and so set the scale of a direction."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(3, size=60)
    X = rng.normal(size=(60, 4)) + np.outer(classes, np.eye(4)[0])
    X[0, 1] = value
    pairs = PairSet.from_labels(X, np.where(np.arange(60) < 20, classes, -1))
    solution = solve_m_step(MStepObjective(pairs))
    assert solution.status is Status.CERTIFIED
    assert solution.iterations < 30


@pytest.mark.parametrize("value", [999, 9999, 99999, 1e6, -999])
@pytest.mark.parametrize("how_many", [1, 4, 20])
def test_a_number_for_missing_values_is_found_each_time_and_nothing_else_is(value, how_many):
    X = load("wine")[0][::2].copy()
    rows = np.arange(how_many) * 4 + 1
    X[rows, 4] = value
    np.testing.assert_array_equal(stray_values(X), [(row, 4) for row in rows])
    message = describe_far_values(X)
    assert message.startswith(f"X[1, 4] is {value:.6g}, ")
    assert (f"({how_many - 1} more like it)" in message) == (how_many > 1)


def test_a_fit_warns_of_such_a_number_by_the_name_of_its_column():
    X = load("wine")[0][::2, 3:6].copy()
    X[[1, 5], 1] = 9999
    frame = pd.DataFrame(StandardScaler().fit_transform(X), columns=["alkalinity", "mg", "phenols"])
    with pytest.warns(FarValueWarning, match=r"^X\[1, 'mg'\] is 6.* \(1 more like it\)"):
        SERAPH(tol=1e-3).fit(frame, np.arange(len(X)) % 2)


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "digits", "balance"])
def test_clean_data_have_no_stray_values(name):
    assert len(stray_values(load(name)[0])) == 0


@pytest.mark.parametrize("seed", range(5))
def test_the_gaps_of_a_heavy_tail_are_no_evidence(seed):
    tails = np.exp(2.5 * np.random.default_rng(seed).normal(size=(200, 20)))
    assert len(far_values(tails)) > 50
    assert len(stray_values(tails)) == 0
    tails[17, 3] = 1e9
    assert stray_values(tails).tolist() == [[17, 3]]


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "digits", "balance"])
def test_scales_differ_where_units_do_and_not_where_zeros_are_many(name):
    X = load(name)[0]
    assert bool(describe_scales(X)) == (name in ("wine", "breast_cancer"))
    for scaler in (StandardScaler(), MinMaxScaler(), MaxAbsScaler(), RobustScaler()):
        assert describe_scales(scaler.fit_transform(X)) == ""
    rare = np.random.default_rng(0).integers(50, size=len(X))
    assert describe_scales(np.c_[StandardScaler().fit_transform(X), np.eye(50)[rare]]) == ""
    assert describe_scales(np.c_[X, np.full(len(X), 7.0)]) == describe_scales(X)  # constant


@pytest.mark.parametrize("learner", [SERAPH(tol=1e-3), KernelSERAPH(tol=1e-3)])
def test_a_fit_warns_once_of_scales_that_differ(learner):
    X, y = load("wine")
    frame = pd.DataFrame(X[::4], columns=[f"f{k}" for k in range(13)])
    with pytest.warns(ScaleWarning) as caught:
        learner.fit(frame, y[::4])
    (warning,) = caught
    assert re.search(r"'f12' varies 2,\d{3} times as much as 'f7'", str(warning.message))
    assert "StandardScaler" in str(warning.message)
    assert warning.filename == __file__


def test_a_feature_that_is_mostly_zero_has_no_far_values_by_that():
    """As a pixel at the rim of a digit."""
    X = np.zeros((50, 2))
    X[:, 0] = np.arange(50.0)
    X[7, 1] = 0.3
    assert not len(far_values(X))
    assert clip_far_values(X) is None
    X[8:12, 1] = [0.5, 0.2, 1e9, 0.1]
    np.testing.assert_array_equal(far_values(X), [[10, 1]])


@pytest.mark.parametrize(("n", "m"), [(6, 6), (6, 10), (20, 20), (30, 8)])
@pytest.mark.parametrize("noise", [1e-3, 1e-6, 1e-12])
def test_features_that_are_nearly_zero_but_for_one_point_each_are_learned_from(n, m, noise):
    """Each of those points is far out of its feature; to cut them off would leave nothing."""
    rng = np.random.default_rng(0)
    points = np.eye(n, m) + noise * rng.normal(size=(n, m))
    solution = solve_m_step(MStepObjective(PairSet.from_labels(points, np.arange(n) % 2)))
    assert solution.status is Status.CERTIFIED
