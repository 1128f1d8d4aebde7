"""Evidence: scikit-learn's own checks, none excused, and the estimator's words and matrix agree."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from seraph_cvx import (
    SERAPH,
    LabeledOnly,
    MStepObjective,
    PairSet,
    Status,
    alternate,
    certify,
    load_model,
    paper,
    save_model,
)
from seraph_cvx.datasets import load, load_sampling


@parametrize_with_checks([SERAPH()])
def test_scikit_learn_check(estimator, check):
    check(estimator)


SAMPLING = load_sampling("iris", n_points=50, seed=1)
X, Y, KNOWN = SAMPLING.X, SAMPLING.y, SAMPLING.labeled
PAIRS = PairSet.from_labels(X, Y)


@pytest.fixture(scope="module")
def model():
    return SERAPH(setting="hyper").fit(X, Y)


def test_the_metric_is_certified_and_so_is_what_is_said_of_it(model):
    assert model.status_ is Status.CERTIFIED
    assert model.n_iter_ == len(model.history_) >= 2
    assert model.n_features_in_ == 4
    assert model.certificate_.relative_gap <= 1e-8
    assert np.linalg.eigvalsh(model.metric_)[0] >= -1e-12
    next_m_step = MStepObjective(PAIRS, previous_metric=model.metric_)
    assert certify(next_m_step, model.metric_).relative_gap <= 1e-3


@pytest.mark.parametrize("n_components", [None, 1, 3])
def test_all_distances_agree_and_components_are_the_widest_directions(model, n_components):
    cut = SERAPH(n_components=n_components, setting="hyper").fit(X, Y)
    k = n_components or 4
    assert cut.metric_ == pytest.approx(model.metric_, rel=1e-9)
    assert cut.components_ == pytest.approx(model.components_[:k], rel=1e-9)
    assert np.all(np.diff(np.linalg.norm(model.components_, axis=1)) <= 0.0)
    matrix = cut.get_mahalanobis_matrix()
    assert n_components or matrix == pytest.approx(model.metric_, abs=1e-9)
    P = X[PAIRS.labeled]
    expected = np.sqrt(paper.squared_distances(X, PAIRS.labeled, matrix))
    transformed = paper.differences(cut.transform(X), PAIRS.labeled)
    by_metric = [cut.get_metric()(*ends) for ends in P]
    transformed = np.linalg.norm(transformed, axis=1)
    for found in (transformed, by_metric, cut.pair_distance(P), -cut.pair_score(P)):
        assert found == pytest.approx(expected, rel=1e-9)
    assert cut.get_feature_names_out().tolist() == [f"seraph{i}" for i in range(k)]


@pytest.mark.parametrize(
    ("labels", "n_components"), [([0, 1, 2], None), (["a", "b", "c"], 2), ([0.0, 1.0, 2.0], None)]
)
def test_predict_is_the_nearest_labeled_point_alone_and_at_the_end_of_a_pipeline(
    labels, n_components, tmp_path
):
    iris = load_sampling("iris", seed=0)
    unknown = None if isinstance(labels[0], str) else -1
    y = np.array([*labels, unknown], dtype=object if unknown is None else None)[iris.y.astype(int)]
    for scalers in ([], [StandardScaler()]):
        steps = [*scalers, SERAPH(n_components=n_components)]
        nearest = make_pipeline(*map(clone, steps), LabeledOnly(KNeighborsClassifier(1)))
        expected = nearest.fit(iris.X, y).predict(iris.X_test)
        model = make_pipeline(*steps).fit(iris.X, y)
        assert not is_classifier(model)
        assert model.predict(iris.X_test).tolist() == expected.tolist()
        assert model[-1].classes_.tolist() == labels
        assert clone(model).set_output(transform="pandas").fit(iris.X, y).predict(
            iris.X_test
        ).tolist() == [*expected]
        save_model(model, tmp_path / "model.npz")
        again = load_model(tmp_path / "model.npz")
        assert again.predict(iris.X_test).tolist() == expected.tolist()
    truth = np.array(labels)[iris.y_test.astype(int)]
    assert np.mean(expected == truth) > 0.8


def test_failure_path_nothing_to_predict_by(model):
    X = load_sampling("iris", seed=0).X
    with pytest.raises(NotFittedError):
        SERAPH().predict(X)
    with pytest.raises(ValueError, match="X has 3 features, but SERAPH is expecting 4"):
        model.predict(X[:, :3])
    by_constraints = SERAPH().fit(X, similar=[(0, 2)], dissimilar=[(0, 9)])
    assert not hasattr(by_constraints, "classes_")
    with pytest.raises(ValueError, match="no labeled points to classify by"):
        by_constraints.predict(X)
    model = SERAPH(trace_weight=1e9, identity_share=0.0)
    with pytest.warns(UserWarning, match="metric is zero"):
        model.fit(X, np.arange(100) % 2)
    with pytest.raises(ValueError, match="metric is zero"):
        model.predict(X)


def test_the_identity_share_enters_distances_but_not_what_is_certified(model):
    plain = {"sharpness": None, "reference": "identity", "correlation_weight": 0.0}
    mixed = SERAPH("ratio", 1.0, identity_share=0.3, **plain).fit(X, Y)
    assert np.array_equal(mixed.m_step_metric_, model.metric_)
    assert np.array_equal(model.m_step_metric_, model.metric_)
    assert mixed.certificate_ == model.certificate_
    C = np.cov(X.T)
    scale = np.trace(model.metric_ @ C) / np.trace(C)
    expected = 0.7 * model.metric_ + 0.3 * scale * np.eye(4)
    assert mixed.metric_ == pytest.approx(expected, abs=1e-12)
    assert mixed.get_mahalanobis_matrix() == pytest.approx(expected, abs=1e-9)
    assert model.threshold_ == 1.0


@pytest.mark.parametrize("scale", [1e-9, 1e4])
def test_the_automatic_trace_weight_follows_the_unit_of_the_features(scale):
    plain = SERAPH(trace_weight="auto").fit(X, Y)
    scaled = SERAPH(trace_weight="auto").fit(scale * X, Y)
    assert scale**2 * scaled.metric_ == pytest.approx(plain.metric_, rel=1e-3, abs=1e-4)


def test_the_full_weight_is_that_of_the_unlabeled_part_of_j():
    ratio = PAIRS.resolve_unlabeled_weight("ratio")
    full = SERAPH(unlabeled_weight="full", sharpness=3.0).fit(X, Y)
    by_hand = SERAPH(unlabeled_weight=1.5 * ratio, sharpness=3.0).fit(X, Y)
    assert np.array_equal(full.metric_, by_hand.metric_)
    for sharpness in (None, 1.0, 0.5):
        with pytest.raises(ValueError, match="needs sharpness > 1"):
            SERAPH(unlabeled_weight="full", sharpness=sharpness).fit(X, Y)


@pytest.mark.parametrize(
    ("setting", "mu", "trace_weight"),
    [("none", 0.0, 0.0), ("post", "ratio", 0.0), ("proj", 0.0, 1.0), ("hyper", "ratio", 1.0)],
)
@pytest.mark.filterwarnings("ignore::seraph_cvx.NotCertified")
def test_the_papers_settings_are_one_argument_away(setting, mu, trace_weight):
    X, y = load("balance")
    X, y = X[::13], np.where(np.arange(len(y[::13])) < 30, y[::13], -1)
    rest = {"allow_unattained": True, "max_iter": 3, "tol": 1e-3}
    named = SERAPH(setting=setting, **rest).fit(X, y)
    paper = {"sharpness": None, "identity_share": 0.0, "correlation_weight": 0.0}
    by_hand = SERAPH(mu, trace_weight, **paper, **rest).fit(X, y)
    assert np.array_equal(named.metric_, by_hand.metric_)


def test_the_defaults_are_those_that_the_documentation_gives_reasons_for():
    model = SERAPH().fit(X, Y)
    supervised = MStepObjective(PAIRS, unlabeled_weight=0.0)
    classes = np.bincount(Y[KNOWN]) / np.sum(KNOWN)
    run = alternate(
        PAIRS,
        unlabeled_weight=2.0 * PAIRS.resolve_unlabeled_weight("ratio"),
        trace_weight=0.08 * np.sum(classes**2) * supervised.critical_trace_weight,
        sharpness=2.0,
    )
    A = run.metric
    assert model.m_step_metric_ == pytest.approx(A, abs=1e-9)
    assert model.certificate_.relative_gap <= 1e-8
    doubts = [
        np.mean(paper.posterior(paper.squared_distances(X, pairs, A), y, 1.0))
        for pairs, y in ((PAIRS.similar, -1.0), (PAIRS.dissimilar, 1.0))
    ]
    share, V = sum(doubts), paper.differences(X, PAIRS.similar)
    S, n = V.T @ V, KNOWN.sum() - len(set(Y[KNOWN]))
    B = np.linalg.inv((4.0 * np.eye(4) + n * 4.0 * S / np.trace(S)) / (n + 4.0))
    C = np.cov(X.T)
    B *= np.trace(A @ C) / np.trace(B @ C)
    assert 0.1 < share < 0.9
    assert model.metric_ == pytest.approx((1.0 - share) * A + share * B, abs=1e-8)


def test_get_metric_is_usable_by_scikit_learn_and_outlives_the_model(model):
    by_metric = KNeighborsClassifier(1, metric=model.get_metric(), algorithm="brute")
    by_metric.fit(X[KNOWN], Y[KNOWN])
    by_points = KNeighborsClassifier(1).fit(model.transform(X[KNOWN]), Y[KNOWN])
    assert np.array_equal(
        by_metric.predict(SAMPLING.X_test), by_points.predict(model.transform(SAMPLING.X_test))
    )


def test_single_precision_is_kept():
    rounded = X.astype(np.float32)
    single = SERAPH().fit(rounded, Y)
    assert single.transform(rounded).dtype == np.float32
    assert single.transform(X).dtype == np.float64
    double = SERAPH().fit(rounded.astype(np.float64), Y)
    assert single.transform(rounded) == pytest.approx(double.transform(X), abs=1e-4)


REFUSED = {
    r"identity_share=1\.5": {"identity_share": 1.5},
    "reference='total' is not known": {"reference": "total"},
    r"correlation_weight=1.* is out of range": {"correlation_weight": 1.0},
    "setting='hype' is not known": {"setting": "hype"},
    "algorithm='emm' is not known": {"algorithm": "emm"},
    "n_components=5 must be between 1 and 4": {"n_components": 5},
    "trace_weight='some'": {"trace_weight": "some"},
    'use "raise" or "keep"': {"on_interrupt": "stop"},
    "callback=3 is no function": {"callback": 3},
    "callback is for the M-steps": {"algorithm": "direct", "callback": print},
}


@pytest.mark.parametrize("message", REFUSED)
def test_failure_path_parameters(message):
    with pytest.raises(TypeError if "function" in message else ValueError, match=message):
        SERAPH(**REFUSED[message]).fit(X, Y)


@pytest.mark.parametrize("shape", [(3, 2, 5), (3, 3, 4), (2, 4)])
def test_failure_path_pairs_of_the_wrong_shape(model, shape):
    with pytest.raises(ValueError, match=r"shape \(k, 2, 4\)"):
        model.pair_distance(np.zeros(shape))
