"""Evidence: scikit-learn's own checks; folds and scores against counting by hand; held-out labels
are not seen; the whole workflow on half-labeled wine."""

from __future__ import annotations

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
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_classifiers_classes, parametrize_with_checks

from seraph_cvx import (
    SERAPH,
    SERAPHCV,
    LabeledKFold,
    LabeledOnly,
    NotCertified,
    PairSet,
    known_accuracy,
    pair_auc,
)
from seraph_cvx.datasets import load_sampling
from seraph_cvx.estimators import half_labeled, seraph_cv
from seraph_cvx.estimators.settings import Setting
from seraph_cvx.penalties.manifold import manifold_term

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


@pytest.mark.slow
@parametrize_with_checks(
    [
        LabeledOnly(LinearDiscriminantAnalysis()),
        SERAPHCV(),
        SERAPHCV(**SMALL | {"scoring": "pair_auc", "cv": 3, "trace_weights": (0.01, 0.1)}),
    ],
    expected_failed_checks=excused,
)
def test_scikit_learn_check_of_the_defaults_and_of_another_score(estimator, check, monkeypatch):
    """With two automatic weights of the four: how many there are is nothing to the interface."""
    monkeypatch.setattr(seraph_cv, "AUTO_FACTORS", seraph_cv.AUTO_FACTORS[:2])
    check(estimator)


def test_the_excused_check_passes_under_a_semi_supervised_name():
    check_classifiers_classes("LabelPropagation", LabeledOnly())


# LabeledOnly


def points_and(labels):
    X = np.random.default_rng(0).normal(size=(len(labels), 3))
    return X, labels


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([0, -1, 1, 0, -1, 2, 1], [0, 1, 2]),
        (np.array(["a", np.nan, "b", "a", -1, "b", "b"], dtype=object), ["a", "b"]),
        (np.array([4, None, 7, 4, None, 7, 4], dtype=object), [4, 7]),
        (pd.Series(["a", None, "b", "a", None, "b", "b"]), ["a", "b"]),
    ],
)
def test_labeled_only_is_its_estimator_on_the_known_points(labels, classes):
    X, y = points_and(labels)
    known = [0, 2, 3, 5, 6]
    kept = np.array([y[i] for i in known])
    wrapped = LabeledOnly(KNeighborsClassifier(2)).fit(X, y)
    by_hand = KNeighborsClassifier(2).fit(X[known], kept)
    new = np.random.default_rng(1).normal(size=(50, 3))
    assert wrapped.classes_.tolist() == classes
    assert wrapped.predict(new).tolist() == by_hand.predict(new).tolist()
    assert wrapped.score(X, y) == by_hand.score(X[known], kept) < 1.0


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


@pytest.mark.parametrize("routing", [False, True])
def test_labeled_only_cuts_sample_weights_to_the_known_points(routing):
    X, y = points_and(np.array([0, -1, 1, 0, -1, 1, 1]))
    known = y >= 0
    weights = np.array([1.0, 99.0, 2.0, 3.0, 99.0, 0.5, 4.0])
    with config_context(enable_metadata_routing=routing):
        inner = LogisticRegression()
        if routing:
            inner.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        wrapped = LabeledOnly(inner).fit(X, y, sample_weight=weights)
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


def test_folds_are_the_same_for_strings_and_differ_by_the_seed():
    def tests_of(y, **shuffle):
        return [test.tolist() for _, test in LabeledKFold(2, **shuffle).split(y, y)]

    y = np.array([0, 1, -1, 0, 1, 0, 1, 0, 1, -1])
    names = np.array([None if label < 0 else "ab"[label] for label in y], dtype=object)
    assert tests_of(names) == tests_of(y)
    shuffled = [tests_of(y, shuffle=True, random_state=seed) for seed in (0, 0, 1)]
    assert shuffled[0] == shuffled[1] != shuffled[2]


# known_accuracy and pair_auc


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


def area_by_counting(scores, similar):
    """The share of (similar, dissimilar) couples in the right order, ties counted half."""
    above = scores[similar][:, None] - scores[~similar]
    return float(np.mean((above > 0.0) + 0.5 * (above == 0.0)))


def test_known_accuracy_ignores_the_unknown_points():
    X, y = points_and(np.array([0, -1, 1, 0, 1, -1]))
    classifier = KNeighborsClassifier(1).fit(X, [0, 1, 1, 1, 1, 0])
    assert known_accuracy(classifier, X, y) == 0.75


def test_pair_auc_is_the_share_of_pairs_in_the_right_order(metric, monkeypatch):
    P, similar = X[KNOWN_PAIRS], np.ptp(Y[KNOWN_PAIRS], axis=1) == 0
    expected = pytest.approx(area_by_counting(metric.pair_score(P), similar), abs=1e-12)
    assert pair_auc(metric, X, Y) == expected
    assert pair_auc(metric, P, np.where(similar, 1, -1)) == expected
    monkeypatch.setattr(half_labeled, "PAIRS_AT_ONCE", 7)
    assert pair_auc(metric, X, Y) == expected


def test_pair_auc_goes_through_a_pipeline():
    raw = X * [1.0, 100.0, 0.1, 10.0] + 5.0
    pipeline = make_pipeline(StandardScaler(), SERAPH()).fit(raw, Y)
    scaled = pipeline[0].transform(raw)
    expected = pair_auc(pipeline[-1], scaled, Y)
    assert pair_auc(pipeline, raw, Y) == expected
    P, y = raw.reshape(20, 2, 4), np.repeat([1, -1], 10)
    expected = pair_auc(pipeline[-1], scaled.reshape(20, 2, 4), y)
    assert pair_auc(pipeline, P, y) == expected != pair_auc(pipeline[-1], P, y)


UNKNOWN = np.full(40, -1)
REFUSED = {
    "None of the 40 labels is known": lambda metric: LabeledOnly().fit(X, UNKNOWN),
    "LinearRegression is a regressor": lambda metric: LabeledOnly(LinearRegression()).fit(X, Y),
    "requires y": lambda metric: LabeledOnly().fit(X, None),
    "score needs at least one point": lambda metric: LabeledOnly().fit(X, Y).score(X, UNKNOWN),
    "decision_function": lambda metric: LabeledOnly().decision_function(X),
    "n_splits=1": lambda metric: LabeledKFold(1),
    "shuffle=True": lambda metric: LabeledKFold(2, random_state=0),
    "needs y": lambda metric: next(LabeledKFold(2).split(X)),
    "SERAPH does not: end a pipeline with LabeledOnly": lambda m: known_accuracy(m, X, Y),
    "KNeighborsClassifier has none": lambda metric: pair_auc(KNeighborsClassifier(), X, Y),
    r"\+1 \(similar\) or -1": lambda metric: pair_auc(metric, X[[[0, 1], [2, 3]]], [0, 1]),
    "compares similar with dis": lambda metric: pair_auc(metric, X[:4], [0, 0, 0, -1]),
    "pairs 0 are similar and 3 dis": lambda metric: pair_auc(metric, X[:4], [0, 1, 2, -1]),
    "of the 0 known pairs": lambda metric: pair_auc(metric, X[:4], [0, -1, -1, -1]),
}


@pytest.mark.parametrize("message", REFUSED)
def test_failure_path_half_labeled(metric, message):
    with pytest.raises((ValueError, TypeError, AttributeError), match=message):
        REFUSED[message](metric)


# SERAPHCV


@pytest.fixture(scope="module")
def search():
    return SERAPHCV([0.1, 1.0, 30.0], (0.0, "ratio"), cv=3, **LOOSE).fit(X, Y)


def test_search_takes_every_parameter_of_seraph():
    defaults, of_search = SERAPH().get_params(), SERAPHCV().get_params()
    shared = defaults.keys() & of_search.keys()
    assert defaults.keys() - shared == {"trace_weight", "unlabeled_weight", "setting"}
    assert all(of_search[name] == defaults[name] for name in shared)


def test_search_with_drawn_pairs_is_certified_over_all_of_them():
    rough = {"unlabeled_pairs": 300, "random_state": 0, "tol": 1e-3, "m_step_tol": 0.5}
    search = SERAPHCV([1.0, 30.0], ["ratio"], cv=2, **rough).fit(X, Y)
    alone = SERAPH(**search.best_estimator_.get_params()).fit(X, Y)
    np.testing.assert_array_equal(alone.metric_, search.metric_)
    assert search.sampling_.certificate == search.certificate_


def test_search_results_are_read_as_those_of_grid_search(search):
    results = search.cv_results_
    scores = np.array([results[f"split{i}_test_score"] for i in range(3)])
    assert results["mean_test_score"] == pytest.approx(scores.mean(axis=0))
    assert results["std_test_score"] == pytest.approx(scores.std(axis=0))
    assert len(pd.DataFrame(results)) == 6
    assert search.best_score_ == np.max(results["mean_test_score"])
    assert results["params"][search.best_index_] == search.best_params_
    assert [p["unlabeled_weight"] for p in results["params"]] == [0.0] * 3 + ["ratio"] * 3
    assert not results["n_uncertified"].any()


def test_search_ends_with_the_seraph_it_chose(search):
    chosen = SERAPH(**search.best_params_, **LOOSE).fit(X, Y)
    P = np.stack([X[:10], X[10:20]], axis=1)
    assert np.array_equal(search.transform(X), chosen.transform(X))
    assert np.array_equal(search.predict_pair_proba(P), chosen.predict_pair_proba(P))
    assert np.array_equal(search.predict_pairs(P), chosen.predict_pairs(P))
    assert search.certificate_ == chosen.certificate_


def test_search_breaks_ties_toward_the_larger_trace_weight():
    tied = SERAPHCV([0.3, 3.0, 1.0], (0.0,), cv=2, scoring=lambda model, X, y: 0.7)
    assert tied.fit(X, Y).best_params_["trace_weight"] == 3.0
    assert tied.cv_results_["rank_test_score"].tolist() == [1, 1, 1]
    favored = SERAPHCV(
        [0.3, 3.0, 1.0], (0.0,), cv=2, scoring=lambda model, X, y: -model.trace_weight
    )
    assert favored.fit(X, Y).best_params_["trace_weight"] == 0.3


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


@pytest.mark.parametrize("megabytes", [1024, 0.0005])
@pytest.mark.parametrize("scoring", ["soft_accuracy", "known_accuracy"])
def test_closed_form_scores_are_the_share_of_the_class_among_the_neighbors(scoring, megabytes):
    """The held-out points, whose labels are hidden, are judged all at once, or a few at a time."""
    X, y = np.random.default_rng(0).normal(size=(28, 2)), np.arange(28) % 3
    X[4] = X[0]  # kept and held out, of two classes
    y[24:] = -1
    with config_context(working_memory=megabytes):
        search = SERAPHCV([1.0, 9.0], cv=2, scoring=scoring, refit=False).fit(X, y)
    for name, kept, test, hidden in folds_of(X, y):
        for index, candidate in enumerate(search.cv_results_["params"]):
            model = SERAPH(**candidate).fit(X, hidden)  # all points, the held-out ones too
            scores = []
            for i in test:
                d = model.pair_distance([[X[i], X[j]] for j in kept]) ** 2
                w = (d < 1e-9).astype(float) if d.min() < 1e-9 else np.exp(-d / d.min())
                if scoring == "known_accuracy":
                    w = d == d.min()
                scores.append(w[y[kept] == y[i]].sum() / w.sum())
            assert search.cv_results_[name][index] == pytest.approx(np.mean(scores), rel=1e-9)


def test_soft_accuracy_of_the_zero_metric_is_the_share_of_the_class_among_the_kept():
    zero = SERAPHCV([1e9], identity_shares=[0.0], cv=2, refit=False).fit(X, Y)
    for name, kept, test, _ in folds_of(X, Y):
        expected = np.mean(Y[kept] == Y[test][:, None])
        assert zero.cv_results_[name][0] == pytest.approx(expected)


def test_pair_auc_of_a_search_judges_the_pairs_with_a_held_out_point():
    found = SERAPHCV(scoring="pair_auc", **SMALL).fit(X, Y)
    for name, _, test, hidden in folds_of(X, Y):
        model = SERAPH(trace_weight=1.0, unlabeled_weight=0.0).fit(X, hidden)
        rows = KNOWN_PAIRS[np.isin(KNOWN_PAIRS, test).any(axis=1)]
        expected = area_by_counting(model.pair_score(X[rows]), np.ptp(Y[rows], axis=1) == 0)
        assert found.cv_results_[name][0] == pytest.approx(expected, abs=1e-12)
    given_as_function = SERAPHCV(scoring=pair_auc, **SMALL).fit(X, Y)
    assert given_as_function.best_score_ == found.best_score_


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


def test_search_folds_follow_the_smallest_class_and_the_seed():
    n_folds = np.bincount(Y[SAMPLING.labeled]).min()
    splits = []
    for seed in (None, 0, 0, 3):
        search = SERAPHCV([1.0], (0.0,), refit=False, random_state=seed)
        results = search.fit(X, Y).cv_results_
        assert search.n_splits_ == n_folds < 5
        splits.append([results[f"split{i}_test_score"][0] for i in range(n_folds)])
    assert splits[1] == splits[2] != splits[3]


def test_search_takes_other_splitters():
    folds = StratifiedKFold(3)
    found, same = (
        SERAPHCV([1.0], (0.0,), cv=cv, refit=False).fit(X, Y)
        for cv in (folds, list(folds.split(X, Y)))
    )
    assert found.best_score_ == same.best_score_
    assert not hasattr(found, "metric_")
    with pytest.raises(ValueError, match="not fitted"):
        found.transform(X)


def test_search_with_string_labels_and_a_data_frame(search):
    names = np.array([None if label < 0 else "abc"[label] for label in Y], dtype=object)
    frame = pd.DataFrame(X, columns=list("pqrs"))
    seen = set()
    scoring = {"scoring": lambda model, X, y: float(bool(seen.update(y)))}
    SERAPHCV([1.0], (0.0,), cv=2, **scoring).fit(frame, names)
    assert seen == {"a", "b", "c"}
    again = clone(search).fit(frame, names)
    assert np.array_equal(again.metric_, search.metric_)
    for model in (again, again.best_estimator_):
        assert model.feature_names_in_.tolist() == list("pqrs")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"trace_weights": "autos"}, "'autos' is not known"),
        ({"trace_weights": [-1.0]}, "trace_weights=-1"),
        ({"trace_weights": []}, "nothing to choose from"),
        ({"unlabeled_weights": "ratio"}, "must be a sequence"),
        ({"unlabeled_weights": ["rato"]}, "'rato' is not known"),
        ({"scoring": "accuracy"}, "scoring='accuracy' is not known"),
        ({"scoring": lambda model, X, y: np.nan}, "scoring returned NaN"),
        ({"cv": 17}, "n_splits=17, but only 16 points"),
        ({"cv": [([0, 1, 20], [3])]}, "leaves . known points of fewer than two classes"),
        ({"cv": [(np.arange(20), np.arange(20, 40))]}, "Fold 0 of cv holds out no point"),
        ({"trace_weights": [0.0], "unlabeled_weights": [0.0]}, "trace_weight > 0"),
    ],
)
def test_failure_path_search(parameters, message):
    wide = np.hstack([X, X**2, X**3, X**4])
    y = Y.copy()
    y[:2] = y[0]
    with pytest.raises(ValueError, match=message):
        SERAPHCV(**SMALL | parameters).fit(wide, y)


def test_failure_path_auto_weights_where_the_first_metric_is_always_zero():
    """One class at both ends, the other in the middle: similar pairs are the farther ones."""
    X = np.array([[0.0], [10.0], [0.1], [9.9], [5.0], [5.1], [2.0]])
    y = np.array([0, 0, 0, 0, 1, 1, -1])
    model = SERAPHCV(unlabeled_weights=(0.0,), cv=2, threshold=1e-3)
    with pytest.raises(ValueError, match=r"zero at every trace weight.*trace_weights as numbers"):
        model.fit(X, y)


@pytest.mark.parametrize("known", [[0, 0, 0], [0, 1, 2], [0, 0, 1]])
def test_failure_path_search_with_too_few_labels(known):
    with pytest.raises(ValueError, match="two classes"):
        SERAPHCV(trace_weights=[1.0]).fit(X, np.concatenate([known, UNKNOWN[3:]]))


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
    accuracy = np.mean(search.predict(X_test) == y_test)
    assert search.best_score_ > 0.6  # on 21 points: one of them is 5 %
    assert accuracy > 0.8
    without = pipeline(KNeighborsClassifier()).fit(X, half).predict(X_test)
    assert accuracy > np.mean(without == y_test) + 0.3
