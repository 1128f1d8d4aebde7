"""Evidence: scikit-learn's own checks; folds and scores against counting by hand; held-out labels
are not seen; the whole workflow on half-labeled wine."""

from __future__ import annotations

from warnings import catch_warnings, simplefilter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joblib import parallel_config
from sklearn import config_context
from sklearn.base import clone
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
    SERAPHCV,
    KernelSERAPH,
    LabeledKFold,
    LabeledOnly,
    NotCertified,
    PairSet,
    known_accuracy,
)
from seraph_cvx.datasets import load_sampling
from seraph_cvx.estimators.settings import Setting
from seraph_cvx.penalties import manifold_term

SMALL = {"trace_weights": (1.0, 10.0), "unlabeled_weights": (0.0,), "cv": 2}

LOOSE = {"tol": 1e-4, "m_step_tol": 1e-7}


def excused(estimator):
    if not isinstance(estimator, LabeledOnly):
        return {}
    return {
        "check_classifiers_classes": "it takes -1 for a class, which here is an unknown label; "
        "scikit-learn spares its own semi-supervised classifiers the same, by name"
    }


@parametrize_with_checks(
    [LabeledOnly(), SERAPHCV(**SMALL | {"trace_weights": (0.1,)})],
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


def test_labeled_only_has_the_methods_names_and_container_of_its_estimator():
    methods = ["predict", "predict_proba", "predict_log_proba", "decision_function", "transform"]
    for inner in (KNeighborsClassifier(), LinearSVC(), LinearDiscriminantAnalysis(), SERAPH()):
        for method in [*methods, "score", "set_output", "get_feature_names_out"]:
            assert hasattr(LabeledOnly(inner), method) == hasattr(inner, method), method
    X, y = load_wine(return_X_y=True, as_frame=True)
    half = y.where(np.arange(len(y)) % 3 == 0, -1)
    wrapped = LabeledOnly(LinearDiscriminantAnalysis()).fit(X, half)
    by_hand = LinearDiscriminantAnalysis().fit(X[::3], y[::3])
    for method in methods:
        assert np.array_equal(getattr(wrapped, method)(X), getattr(by_hand, method)(X))
    assert np.array_equal(clone(wrapped).fit_transform(X, half), by_hand.transform(X))
    names = wrapped.get_feature_names_out()
    assert names.tolist() == by_hand.get_feature_names_out().tolist()
    assert wrapped.feature_names_in_.tolist() == X.columns.tolist()
    assert wrapped.n_features_in_ == 13
    wrapped.set_output(transform="pandas").fit(X, half)
    assert isinstance(wrapped.transform(X), pd.DataFrame)


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
KNOWN_PAIRS = np.flatnonzero(SAMPLING.labeled)[np.column_stack(np.triu_indices(16, 1))]


def folds_of(X, y):
    """Of two folds the column of scores, the points of known class that are kept and held out, and
    the labels without the latter."""
    for fold, (train, test) in enumerate(LabeledKFold(2).split(X, y)):
        hidden = np.where(np.isin(np.arange(len(y)), test), -1, y)
        yield f"split{fold}_test_score", train[y[train] >= 0], test, hidden


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


# SERAPHCV


@pytest.fixture(scope="module")
def search():
    return SERAPHCV([0.1, 1.0, 30.0], (0.0, "ratio"), cv=3, **LOOSE).fit(X, Y)


def test_a_long_search_says_how_far_it_is(monkeypatch, capsys):
    monkeypatch.setattr("seraph_cvx.display.progress_line.SELDOM", 0.0)
    SERAPHCV([1.0, 2.0], (0.0,), cv=3, verbose=1, **LOOSE).fit(X, Y)
    assert "[SERAPHCV] 6 of 6 fits of the search" in capsys.readouterr().err


def test_search_takes_every_parameter_of_seraph():
    defaults, of_search = SERAPH().get_params(), SERAPHCV().get_params()
    shared = defaults.keys() & of_search.keys()
    own = {"trace_weight", "unlabeled_weight", "setting", "classifier"}
    assert defaults.keys() - shared == own
    assert all(of_search[name] == defaults[name] for name in shared)


def test_search_results_are_read_as_those_of_grid_search_and_end_with_the_best(search):
    results = search.cv_results_
    scores = np.array([results[f"split{i}_test_score"] for i in range(3)])
    assert results["mean_test_score"] == pytest.approx(scores.mean(axis=0))
    assert results["std_test_score"] == pytest.approx(scores.std(axis=0))
    assert len(pd.DataFrame(results)) == 6
    assert search.best_score_ == np.max(results["mean_test_score"])
    assert results["params"][search.best_index_] == search.best_params_
    assert [p["unlabeled_weight"] for p in results["params"]] == [0.0] * 3 + ["ratio"] * 3
    assert not results["n_uncertified"].any()
    chosen = SERAPH(**search.best_params_, **LOOSE).fit(X, Y)
    assert np.array_equal(search.transform(X), chosen.transform(X))
    P = np.stack([X[:10], X[10:20]], axis=1)
    assert np.array_equal(search.predict_pair_proba(P), chosen.predict_pair_proba(P))
    assert search.certificate_ == chosen.certificate_


def test_search_breaks_ties_toward_the_larger_trace_weight():
    tied = SERAPHCV([0.3, 3.0, 1.0], (0.0,), cv=2, scoring=lambda model, X, y: 0.7, **LOOSE)
    assert tied.fit(X, Y).best_params_["trace_weight"] == 3.0
    assert tied.cv_results_["rank_test_score"].tolist() == [1, 1, 1]


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_search_does_not_depend_on_the_number_of_jobs(search, backend):
    with parallel_config(backend):
        parallel = clone(search).set_params(n_jobs=2).fit(X, Y)
    for name in ("mean_test_score", "std_test_score", "rank_test_score"):
        assert np.array_equal(parallel.cv_results_[name], search.cv_results_[name])
    assert np.array_equal(parallel.metric_, search.metric_)


@pytest.mark.parametrize("laplacian_weight", [0.0, 0.1])
def test_auto_weights_are_multiples_of_the_default_one_of_seraph(laplacian_weight):
    """Of all labels in the table, and of those that are kept in a fold."""
    seen = []

    def score(model, X, y):
        seen.append(model.trace_weight)
        return 0.0

    def default(labels):
        term = manifold_term(X, laplacian_weight) if laplacian_weight else None
        pairs = PairSet.from_labels(X, labels)
        return Setting(0.0, "auto").first_m_step(pairs, "em", 2.0, term).trace_weight

    search = SERAPHCV(cv=2, scoring=score, threshold=2.0, refit=False, **LOOSE)
    results = search.set_params(laplacian_weight=laplacian_weight).fit(X, Y).cv_results_
    weights = default(Y) * np.repeat([1.0, 3.0, 10.0], 3)
    assert results["param_trace_weight"] == pytest.approx(weights)
    assert results["param_identity_share"].tolist() == ["auto", 0.4, 0.7] * 3
    assert set(results["param_unlabeled_weight"]) == {"full"}
    for weight, (*_, hidden) in zip(seen[:6:3], folds_of(X, Y), strict=True):
        assert weight == pytest.approx(default(hidden))
        assert weight < 0.5 * weights[0]  # a quarter of the pairs


def closed_form_score(scoring, model, X, y, kept, test):
    """The score of a metric by its distances from each held-out point to the kept ones."""
    scores = []
    for i in test:
        d = model.pair_distance([[X[i], X[j]] for j in kept]) ** 2
        w = (d < 1e-9).astype(float) if d.min() < 1e-9 else np.exp(-d / d.min())
        if scoring == "known_accuracy":
            w = np.arange(len(d)) == np.argmin(d)
        scores.append(w[y[kept] == y[i]].sum() / w.sum())
    return np.mean(scores)


@pytest.mark.parametrize(
    ("scoring", "megabytes"),
    [("soft_accuracy", 1024), ("soft_accuracy", 0.0005), ("known_accuracy", 0.0005)],
)
def test_closed_form_scores_of_the_held_out_points(scoring, megabytes):
    """Their labels are hidden; all at once, or a few at a time; the last metric is zero."""
    X, y = np.random.default_rng(0).normal(size=(28, 2)), np.arange(28) % 3
    X[4] = X[0]  # kept and held out, of two classes
    y[24:] = -1
    search = SERAPHCV([1.0, 1e9], (0.0,), identity_shares=[0.0, 0.3], cv=2, refit=False)
    with config_context(working_memory=megabytes):
        results = search.set_params(scoring=scoring).fit(X, y).cv_results_
    for name, kept, test, hidden in folds_of(X, y):
        for index, candidate in enumerate(results["params"]):
            with catch_warnings(action="ignore"):  # of the metric that is zero
                model = SERAPH(**candidate).fit(X, hidden)  # all points, the held-out ones too
            expected = closed_form_score(scoring, model, X, y, kept, test)
            assert results[name][index] == pytest.approx(expected, rel=1e-9)


def test_search_counts_what_did_not_end_certified_and_says_so():
    cut_short = SERAPHCV([1.0, 1e6], ("ratio",), cv=2, max_iter=1)
    with pytest.warns(NotCertified) as warned:
        cut_short.fit(X, Y)
    counts = cut_short.cv_results_["n_uncertified"].tolist()
    assert counts[0] == 2
    assert len(warned) == 2  # of the final fit, and one for all of the search
    assert f"{sum(counts)} of the 4 fits of the search" in str(warned[-1].message)
    assert cut_short.metric_.shape == (4, 4)
    with pytest.raises(NotCertified, match="of the search"):  # where warnings are errors
        cut_short.set_params(refit=False).fit(X, Y)
    assert not hasattr(cut_short, "metric_")  # that of the first fit is not left behind


def test_search_goes_on_where_a_solver_fails_and_ends_where_all_fail(monkeypatch):
    learn, failing = SERAPH._minimize, {10.0}

    def learn_or_fail(self, pairs):
        if self.trace_weight in failing:
            raise RuntimeError("the solver returned nothing")
        return learn(self, pairs)

    monkeypatch.setattr(SERAPH, "_minimize", learn_or_fail)
    with pytest.warns(NotCertified, match="2 of the 4 fits"):
        found = SERAPHCV(**SMALL).fit(X, Y)
    assert found.best_params_["trace_weight"] == 1.0
    assert found.cv_results_["n_failed"].tolist() == [0, 2]
    assert np.isnan(found.cv_results_["mean_test_score"]).tolist() == [False, True]
    assert found.cv_results_["rank_test_score"].tolist() == [1, 2]
    failing.add(1.0)
    with pytest.raises(RuntimeError, match="the solver returned nothing"):
        SERAPHCV(**SMALL).fit(X, Y)


def test_search_takes_names_of_classes_a_data_frame_and_other_splitters():
    names = np.where(Y < 0, None, np.array([*"abc"], dtype=object)[Y])
    frame, folds = pd.DataFrame(X, columns=list("pqrs")), LabeledKFold(2)
    search = SERAPHCV([1.0], (0.0,), cv=2, **LOOSE).fit(frame, names)
    assert search.best_estimator_.feature_names_in_.tolist() == list("pqrs")
    for cv in (folds, list(folds.split(X, Y))):
        same = SERAPHCV([1.0], (0.0,), cv=cv, refit=False, **LOOSE).fit(X, Y)
        assert same.best_score_ == search.best_score_
        assert not hasattr(same, "metric_")


def test_search_folds_follow_the_smallest_class_and_the_seed():
    n_folds = np.bincount(Y[SAMPLING.labeled]).min()
    scores = []
    for seed in (None, 0, 0, 3):
        search = SERAPHCV([1.0], (0.0,), refit=False, random_state=seed).fit(X, Y)
        assert search.n_splits_ == n_folds < 5
        scores.append(search.best_score_)
    assert scores[1] == scores[2] != scores[3]


WIDE = np.hstack([X, X**2, X**3, X**4])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"trace_weights": "autos"}, "'autos' is not known"),
        ({"trace_weights": []}, "nothing to choose from"),
        ({"unlabeled_weights": "ratio"}, "must be a sequence"),
        ({"identity_shares": "auto"}, "identity_shares='auto' must be a sequence"),
        ({"scoring": "accuracy"}, "scoring='accuracy' is not known"),
        ({"scoring": lambda model, X, y: np.nan}, "scoring returned NaN"),
        ({"cv": 17}, "n_splits=17, but only 16 points"),
        ({"cv": [([0, 1, 20], [3])]}, "leaves . known points of fewer than two classes"),
        ({"cv": [(np.arange(20), np.arange(20, 40))]}, "Fold 0 of cv holds out no point"),
        ({"y": np.concatenate([[0, 1, 2], UNKNOWN[3:]])}, "two classes"),
        ({"y": None}, "requires y"),
    ],
)
def test_failure_path_search(parameters, message):
    y = np.concatenate([Y[[0, 0]], Y[2:]])
    given = SMALL | {"y": y} | parameters
    with pytest.raises(ValueError, match=message):
        SERAPHCV(**{name: given[name] for name in given if name != "y"}).fit(WIDE, given["y"])


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
