"""Evidence: SERAPH with constraints, PairSERAPH and KernelSERAPH say what the formulas say."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.exceptions import SkipTestWarning
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from seraph_cvx import SERAPH, KernelSERAPH, PairSERAPH, PairSet, paper
from seraph_cvx.datasets import load, load_sampling
from seraph_cvx.estimators.mahalanobis import best_threshold


@pytest.mark.slow
@parametrize_with_checks([KernelSERAPH(), SERAPH(laplacian_weight=0.1)])
def test_scikit_learn_check(estimator, check):
    check(estimator)


def test_scikit_learn_check_of_pairs():
    """PairSERAPH takes three-dimensional input, for which scikit-learn has hardly any check."""
    with pytest.warns(SkipTestWarning, match="three_d_array=True"):
        check_estimator(PairSERAPH())


SAMPLING = load_sampling("iris", n_points=40, seed=2)
X, Y = SAMPLING.X, SAMPLING.y


ROWS = np.stack(np.triu_indices(len(X), 1), axis=1)
EVERY_PAIR = X[ROWS]
PAIRS = PairSet.from_labels(X, Y)
CONSTRAINTS = {"similar": PAIRS.similar, "dissimilar": PAIRS.dissimilar}


# --- SERAPH with constraints


def test_the_constraints_of_the_labels_give_the_metric_of_the_labels():
    by_labels = SERAPH().fit(X, Y)
    by_pairs = SERAPH().fit(X, **CONSTRAINTS)
    assert np.array_equal(by_labels.metric_, by_pairs.metric_)
    both = SERAPH().fit(X, Y, similar=PAIRS.similar[:3])
    assert np.array_equal(both.metric_, by_labels.metric_)


def test_a_confidence_of_one_changes_nothing_and_a_small_one_mutes_a_wrong_pair():
    def metric(n_wrong, weight):
        """Of so many pairs that are called similar and are not."""
        right, wrong = np.ones(PAIRS.n_similar), np.full(n_wrong, weight)
        rows = PAIRS.labeled[: PAIRS.n_similar + n_wrong], PAIRS.dissimilar[n_wrong:]
        return SERAPH().fit(X, None, *rows, np.concatenate([right, wrong])).metric_

    right = SERAPH().fit(X, **CONSTRAINTS).metric_
    assert metric(0, 1.0) == pytest.approx(right, abs=1e-6)
    muted, wronged = (np.linalg.norm(metric(4, c) - right) for c in (1e-3, 1.0))
    assert muted < 0.5 * wronged


def test_constraints_are_routed_through_a_pipeline():
    expected = SERAPH().fit(StandardScaler().fit_transform(X), **CONSTRAINTS)
    with sklearn.config_context(enable_metadata_routing=True):
        metric = SERAPH().set_fit_request(similar=True, dissimilar=True)
        pipeline = Pipeline([("scale", StandardScaler()), ("metric", metric)])
        pipeline.fit(X, **CONSTRAINTS)
    assert np.array_equal(pipeline["metric"].metric_, expected.metric_)


def test_pair_probabilities_are_equation_8():
    model = SERAPH(threshold=1.7, identity_share=0.0).fit(X, Y)
    squares = paper.squared_distances(X, ROWS, model.m_step_metric_)
    expected = paper.posterior(squares, 1.0, 1.7)
    assert model.predict_pair_proba(EVERY_PAIR) == pytest.approx(expected, rel=1e-9)
    assert model.threshold_ == pytest.approx(np.sqrt(1.7))


@pytest.mark.parametrize("n_components", [None, 1])
@pytest.mark.parametrize("kind", [SERAPH, KernelSERAPH])
def test_pairs_are_predicted_similar_where_that_is_more_likely_than_not(kind, n_components):
    """With the default share of the reference, which parted the two before, and a threshold set."""
    model = kind(n_components=n_components).fit(X, Y)
    assert not np.allclose(model.metric_, model.m_step_metric_)
    for change in (1.0, 1.3):
        model.set_threshold(change * model.threshold_)
        likely = model.predict_pair_proba(EVERY_PAIR) >= 0.5
        assert np.array_equal(model.predict_pairs(EVERY_PAIR) == 1, likely)
        assert 0 < np.count_nonzero(likely) < len(likely)


def test_the_threshold_of_a_mixed_metric_calls_as_many_pairs_similar_as_the_learned_one():
    model = SERAPH(threshold=1.7).fit(X, Y)
    squares = paper.squared_distances(X, ROWS, model.m_step_metric_)
    assert np.sum(model.predict_pairs(EVERY_PAIR) == 1) == np.sum(squares <= 1.7)


# --- thresholds


@pytest.mark.parametrize("seed", range(5))
def test_a_calibrated_threshold_is_the_best_there_is(seed):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(40) < 0.5, 1, -1)
    distances = np.round(rng.random(40) + 0.4 * (y == -1), 1)  # with ties
    merits = [
        np.mean(np.where(distances <= threshold, 1, -1) == y)
        for threshold in [best_threshold(distances, y), -1.0, *distances]
    ]
    assert merits[0] == pytest.approx(max(merits))


@pytest.mark.parametrize(
    ("distances", "y", "expected"),
    [
        ([2.0, 3.0, 4.0], [-1, -1, 1], 1.0),
        ([2.0, 3.0, 4.0], [-1, 1, 1], 4.0),
        ([0, 1], [-1, 1], -1.0),
        ([5e-324, 1.0], [-1, 1], -1.0),
        ([1.0, np.nextafter(1.0, 2.0)], [1, -1], 1.0),
        ([np.nextafter(1.0, 2.0), 1.0 + 2.0**-51], [1, -1], np.nextafter(1.0, 2.0)),
        ([1e308, 1.5e308], [1, -1], 1.25e308),
    ],
)
def test_the_best_threshold_is_best_at_the_edge_of_the_numbers(distances, y, expected):
    assert best_threshold(distances, y) == expected


def test_no_pair_is_more_likely_similar_where_the_threshold_calls_none_so():
    """Points that are equal and dissimilar: the threshold is below their distance, which is 0."""
    model = SERAPH().fit(X, Y)
    P = X[[[0, 0], [1, 1], [0, 1]]]
    model.calibrate_threshold(P, [-1, -1, 1])
    assert np.all(model.predict_pairs(P) == -1)
    assert np.all(model.predict_pair_proba(P) < 0.5)


# --- PairSERAPH


TWO_PAIRS = np.arange(8.0).reshape(2, 2, 2)


SNIPPET = """
import numpy as np
from metric_learn import ITML

pairs = np.array([[[1.2, 7.5], [1.3, 1.5]],
                  [[6.4, 2.6], [6.2, 9.7]],
                  [[1.3, 4.5], [3.2, 4.6]],
                  [[6.2, 5.5], [5.4, 5.4]]])
y = np.array([1, 1, -1, -1])
itml = ITML()
itml.fit(pairs, y)
distances = itml.pair_distance(pairs)
matrix = itml.get_mahalanobis_matrix()
metric = itml.get_metric()
itml.calibrate_threshold(pairs, y)
labels = itml.predict(pairs)
scores = itml.pair_score(pairs)
embedded = itml.transform(pairs[:, 0])
auc = itml.score(pairs, y)
"""


def test_code_written_for_itml_runs_with_the_name_changed():
    names = {}
    exec(SNIPPET.replace("metric_learn", "seraph_cvx").replace("ITML", "PairSERAPH"), names)
    points, ends = names["pairs"].reshape(8, 2), np.arange(8).reshape(4, 2)
    expected = np.sqrt(paper.squared_distances(points, ends, names["matrix"]))
    assert names["distances"] == pytest.approx(expected, rel=1e-9)
    assert names["metric"](*names["pairs"][0]) == pytest.approx(expected[0], rel=1e-9)
    assert names["scores"] == pytest.approx(-expected)
    assert names["labels"].tolist() == [1, 1, -1, -1]
    assert names["embedded"].shape == (4, 2)
    assert names["auc"] == 1.0


def test_pairs_of_points_give_the_metric_of_their_indices():
    y = np.where(np.arange(PAIRS.n_labeled) < PAIRS.n_similar, 1, -1)
    model = PairSERAPH().fit(X[PAIRS.labeled], y, unlabeled_points=X)
    _, first = np.unique(X, axis=0, return_index=True)  # iris has a point twice
    expected = SERAPH(identity_share=0.0).fit(X[first], Y[first])
    assert model.metric_ == pytest.approx(expected.metric_, abs=1e-7)
    assert model.classes_.tolist() == [-1, 1]


def test_a_classifier_of_pairs_can_be_searched_and_scored():
    points, classes = load("iris")
    rows = np.random.default_rng(0).permutation(150)[:120].reshape(60, 2)
    P, y = points[rows], np.where(np.ptp(classes[rows], axis=1) == 0, 1, -1)
    search = GridSearchCV(PairSERAPH(), {"trace_weight": [1.0, 30.0]}, cv=3).fit(P, y)
    assert search.best_score_ > 0.9
    model = search.best_estimator_
    assert model.score(P, y) == pytest.approx(roc_auc_score(y, model.decision_function(P)))
    assert cross_val_score(PairSERAPH(), P, y, cv=3, scoring="accuracy").mean() > 0.8
    similar = model.predict_pair_proba(P)
    assert np.array_equal(model.predict_proba(P), np.column_stack([1.0 - similar, similar]))


@pytest.mark.parametrize(
    ("P", "y", "more", "words"),
    [
        (np.zeros((3, 2)), [1, 1, -1], None, r"shape \(k, 2, m\)"),
        (np.zeros((3, 3, 2)), [1, 1, -1], None, "a pair is two points"),
        (TWO_PAIRS, None, None, "requires y"),
        (TWO_PAIRS, [1, -1], np.zeros((3, 7)), "unlabeled_points have 7 features, the pairs"),
    ],
)
def test_failure_path_pairs(P, y, more, words):
    with pytest.raises(ValueError, match=words):
        PairSERAPH().fit(P, y, unlabeled_points=more)


# --- KernelSERAPH


def all_distances(model, X):
    return model.pair_distance(X[np.stack(np.triu_indices(len(X), 1), axis=1)])


WIDE = np.random.default_rng(0).normal(size=(15, 40))


@pytest.mark.parametrize(
    ("X", "y", "new"),
    [
        (X, Y, SAMPLING.X_test[:20]),
        (WIDE, np.where(np.arange(15) < 8, np.arange(15) % 2, -1), WIDE),
    ],
)
def test_with_the_linear_kernel_the_distances_are_those_of_seraph(X, y, new):
    plain, kernel = SERAPH().fit(X, y), KernelSERAPH(kernel="linear").fit(X, y)
    np.testing.assert_allclose(all_distances(kernel, new), all_distances(plain, new), atol=1e-6)


def test_a_polynomial_kernel_is_seraph_on_its_features():
    """(x.z + 1)^2 has the features x_i x_j, sqrt(2) x_i, 1: fit on those directly."""

    def features(X):
        squares = np.einsum("ki,kj->kij", X, X).reshape(len(X), -1)
        return np.hstack([squares, np.sqrt(2.0) * X])

    kernel = KernelSERAPH(kernel="poly", degree=2, gamma=1.0, coef0=1.0).fit(X, Y)
    plain, new = SERAPH().fit(features(X), Y), SAMPLING.X_test[:20]
    expected = all_distances(plain, features(new))
    np.testing.assert_allclose(all_distances(kernel, new), expected, atol=1e-5)


def test_a_kernel_given_as_a_function_and_its_distances_agree():
    def gaussian(x, z, width=1.0):
        return float(np.exp(-np.sum((x - z) ** 2) / width))

    named = KernelSERAPH(gamma=0.5).fit(X, Y)
    given = KernelSERAPH(gaussian, kernel_params={"width": 2.0}).fit(X, Y)
    new = SAMPLING.X_test[:10]
    np.testing.assert_allclose(all_distances(given, new), all_distances(named, new), atol=1e-8)
    Z = named.transform(new)
    assert named.get_metric()(new[0], new[1]) == pytest.approx(np.linalg.norm(Z[0] - Z[1]))


def test_points_that_are_all_one_have_the_metric_zero_or_a_clear_error():
    X = np.ones((4, 2))
    with pytest.warns(UserWarning, match="metric is zero.*all points are equal"):
        model = KernelSERAPH().fit(X, [0, 0, 1, -1])
    assert all_distances(model, X) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("kind", [KernelSERAPH, SERAPH])
def test_failure_path_no_points_at_all_are_refused_and_not_answered(kind):
    fitted = kind().fit(X, Y)
    with pytest.raises(ValueError, match="0 sample"):
        fitted.transform(np.empty((0, 4)))
    with pytest.raises(ValueError, match="0 sample"):
        fitted.pair_distance(np.empty((0, 2, 4)))
