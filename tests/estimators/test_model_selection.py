"""Evidence: scikit-learn's own checks; folds and scores against counting by hand; the whole
workflow on half-labeled wine."""

from __future__ import annotations

from warnings import catch_warnings, simplefilter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_classifiers_classes, parametrize_with_checks

from seraph_cvx import (
    SERAPH,
    KernelSERAPH,
    LabeledKFold,
    LabeledOnly,
    known_accuracy,
)
from seraph_cvx.datasets import load_sampling


def excused(estimator):
    if not isinstance(estimator, LabeledOnly):
        return {}
    return {
        "check_classifiers_classes": "it takes -1 for a class, which here is an unknown label; "
        "scikit-learn spares its own semi-supervised classifiers the same, by name"
    }


@parametrize_with_checks(
    [LabeledOnly()],
    expected_failed_checks=excused,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


def test_the_excused_check_passes_under_a_semi_supervised_name():
    check_classifiers_classes("LabelPropagation", LabeledOnly())


# LabeledOnly


def points_and(labels):
    X = np.random.default_rng(0).normal(size=(len(labels), 3))
    return X, labels


@pytest.mark.parametrize(
    "labels",
    [
        [0, -1, 1, 0, -1, 2, 1],
        np.array([4, None, 7, 4, None, 7, 4], dtype=object),
        pd.Series(["a", None, "b", "a", np.nan, "b", "b"]),
    ],
)
def test_labeled_only_is_its_estimator_on_the_known_points(labels):
    X, y = points_and(labels)
    known = [0, 2, 3, 5, 6]
    kept = np.array([y[i] for i in known])
    wrapped = LabeledOnly(KNeighborsClassifier(2)).fit(X, y)
    by_hand = KNeighborsClassifier(2).fit(X[known], kept)
    new = np.random.default_rng(1).normal(size=(50, 3))
    assert wrapped.predict(new).tolist() == by_hand.predict(new).tolist()
    assert wrapped.score(X, y) == by_hand.score(X[known], kept) < 1.0
    assert wrapped.score(X, y) == known_accuracy(by_hand, X, y)


def test_labeled_only_has_the_methods_of_its_classifier():
    methods = ["predict", "predict_proba", "predict_log_proba", "decision_function"]
    for inner in (KNeighborsClassifier(), LinearSVC(), LinearDiscriminantAnalysis()):
        for method in [*methods, "score"]:
            assert hasattr(LabeledOnly(inner), method) == hasattr(inner, method), method
    X, y = load_wine(return_X_y=True, as_frame=True)
    half = y.where(np.arange(len(y)) % 3 == 0, -1)
    wrapped = LabeledOnly(LinearDiscriminantAnalysis()).fit(X, half)
    by_hand = LinearDiscriminantAnalysis().fit(X[::3], y[::3])
    for method in methods:
        assert np.array_equal(getattr(wrapped, method)(X), getattr(by_hand, method)(X))
    assert wrapped.feature_names_in_.tolist() == X.columns.tolist()
    assert wrapped.n_features_in_ == 13


def test_labeled_only_cuts_sample_weights_to_the_known_points():
    X, y = points_and(np.array([0, -1, 1, 0, -1, 1, 1]))
    known = y >= 0
    weights = np.array([1.0, 99.0, 2.0, 3.0, 99.0, 0.5, 4.0])
    wrapped = LabeledOnly(LogisticRegression()).fit(X, y, sample_weight=weights)
    score = wrapped.score(X, y, sample_weight=list(weights))
    by_hand = LogisticRegression().fit(X[known], y[known], sample_weight=weights[known])
    assert np.array_equal(wrapped.estimator_.coef_, by_hand.coef_)
    assert score == by_hand.score(X[known], y[known], sample_weight=weights[known])


# LabeledKFold


@given(
    labels=st.lists(st.integers(-1, 3), min_size=6, max_size=40),
    n_splits=st.integers(2, 6),
    seed=st.none() | st.integers(0, 5),
)
def test_property_folds_part_the_known_points_and_share_out_every_class(labels, n_splits, seed):
    y = np.array(labels)
    folds = LabeledKFold(n_splits, shuffle=seed is not None, random_state=seed)
    known = np.flatnonzero(y >= 0)
    if len(known) < n_splits:
        with pytest.raises(ValueError, match=f"only {len(known)} points are of known class"):
            list(folds.split(y, y))
        return
    trains, tests = zip(*folds.split(y, y), strict=True)
    assert len(tests) == folds.get_n_splits() == n_splits
    assert np.array_equal(np.sort(np.concatenate(tests)), known)
    for train, test in zip(trains, tests, strict=True):
        assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(len(y)))
    for classes in ([0, 1, 2, 3], [0], [1], [2], [3]):
        assert np.ptp([np.isin(y[test], classes).sum() for test in tests]) <= 1
    names = np.where(y < 0, None, np.array([*"abcd"], dtype=object)[y])
    for test, (_, again) in zip(tests, folds.split(names, names), strict=True):
        assert np.array_equal(test, again)


# known_accuracy


SAMPLING = load_sampling("iris", n_points=40, n_labeled=16, seed=1)
X, Y = SAMPLING.X, SAMPLING.y


@pytest.fixture(scope="module")
def metric():
    return SERAPH().fit(X, Y)


UNKNOWN = np.full(40, -1)
REFUSED = {
    "None of the 40 labels is known": lambda metric: LabeledOnly().fit(X, UNKNOWN),
    "LinearRegression is a regressor": lambda metric: LabeledOnly(LinearRegression()).fit(X, Y),
    "requires y": lambda metric: LabeledOnly().fit(X, None),
    "needs y": lambda metric: next(LabeledKFold(2).split(X)),
    "SERAPH does not: end a pipeline with LabeledOnly": lambda m: known_accuracy(
        KernelSERAPH(), X, Y
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_failure_path_half_labeled(metric, message):
    with pytest.raises((ValueError, TypeError, AttributeError), match=message):
        REFUSED[message](metric)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda last: make_pipeline(SERAPH(), last), "LogisticRegression"),
        (lambda last: VotingClassifier([("a", make_pipeline(SERAPH(), last))]), "Voting"),
    ],
)
@pytest.mark.filterwarnings("ignore:The learned metric is zero", "ignore:lbfgs failed")
def test_a_classifier_that_would_learn_the_unknown_class_is_named_by_the_fit(make, named):
    with pytest.warns(UserWarning, match=f"^{named}.* learns -1, .* use LabeledOnly"):
        make(LogisticRegression()).fit(X, Y)
    with catch_warnings():
        simplefilter("error")
        make_pipeline(SERAPH(), LabeledOnly(LogisticRegression())).fit(X, Y)
        make_pipeline(SERAPH(), SelfTrainingClassifier(LogisticRegression())).fit(X, Y)


# The whole workflow


def test_workflow_on_wine_with_four_fifths_of_the_labels_unknown():
    X, y = load_wine(return_X_y=True, as_frame=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, random_state=0, stratify=y)
    half = y.mask(np.random.default_rng(0).permutation(len(y)) < 0.8 * len(y), -1)

    def pipeline(last):
        return make_pipeline(StandardScaler(), SERAPH(), last).set_output(transform="pandas")

    search = GridSearchCV(
        pipeline(LabeledOnly(KNeighborsClassifier())),
        {"seraph__trace_weight": [3.0, 10.0]},
        cv=LabeledKFold(2),
        scoring=known_accuracy,
    ).fit(X, half)
    accuracy = known_accuracy(search, X_test, y_test)
    assert search.best_score_ > 0.6  # on 21 points: one of them is 5 %
    assert accuracy > 0.8
    with pytest.warns(UserWarning, match="KNeighborsClassifier learns -1"):
        without = pipeline(KNeighborsClassifier()).fit(X, half)
    assert accuracy > known_accuracy(without, X_test, y_test) + 0.3
