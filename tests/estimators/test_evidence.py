"""Evidence: what a fit says of its labels and features is what counting by hand says."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from seraph_cvx import SERAPH, LabeledKFold, PairSet
from seraph_cvx.datasets import load_sampling
from seraph_cvx.estimators import held_out
from seraph_cvx.estimators.evidence import Neighborhood, doubt_about_labels
from seraph_cvx.estimators.held_out import CLASSIFIERS, judge_by_folds
from seraph_cvx.estimators.settings import RECOMMENDED
from seraph_cvx.numerics.psd_cone import factor

SAMPLING = load_sampling("wine", n_points=60, n_labeled=15, seed=0)
X, Y = SAMPLING.X, SAMPLING.y


def test_errors_on_held_out_labels_are_counted_by_hand():
    model = SERAPH(classifier="auto").fit(X, Y)
    wrong, members = {name: [] for name in CLASSIFIERS}, []
    for seed in (0, 1):
        for train, test in LabeledKFold(10, shuffle=True, random_state=seed).split(X, Y):
            hidden = np.where(np.isin(np.arange(len(Y)), train), Y, -1)
            learned = SERAPH().fit(X, hidden)
            for learned.classifier_ in CLASSIFIERS:
                wrong[learned.classifier_].extend(learned.predict(X[test]) != Y[test])
            members.extend(test)
    found = model.held_out_
    assert np.bincount(members).tolist() == (2 * (Y[: np.max(members) + 1] >= 0)).tolist()
    assert found.errors == pytest.approx({name: np.mean(wrong[name]) for name in found.errors})
    assert (found.n, found.n_fits, found.baseline) == (15, 20, np.mean(wrong["plain-nearest"]))
    gains = [np.mean(wrong[f"plain-{kind}"]) - np.mean(wrong[kind]) for kind in held_out.KINDS]
    assert found.metric_gain == pytest.approx(np.mean(gains))
    assert found.keeps_metric == (found.metric_gain > 0.0) == (not model.abstained_)
    assert model.classifier_ == found.classifier


def test_labels_at_random_are_not_predicted_and_no_metric_is_kept_for_them():
    """A label that judges what it was used for would be predicted by its own point."""
    rng = np.random.default_rng(0)
    noise, y = rng.normal(size=(90, 12)), np.where(np.arange(90) < 40, np.arange(90) % 2, -1)
    model = SERAPH(classifier="auto").fit(noise, y)
    found = model.held_out_
    assert min(found.errors.values()) > 0.3
    assert found.gain - found.margin <= 0.0 <= found.gain + found.margin
    assert "may be chance" in str(found)
    assert model.abstained_
    np.testing.assert_array_equal(model.metric_, np.eye(12))
    assert np.any(model.m_step_metric_ != np.eye(12))  # what the certificate is about
    assert "so the Euclidean one is used" in str(found)


@pytest.mark.parametrize(("n_better", "chosen"), [(1, "vote"), (8, "logistic")])
def test_another_classifier_replaces_the_vote_only_where_it_is_clearly_better(n_better, chosen):
    wrong = {name: np.where(np.arange(50) < 25, 1.0, 0.0) for name in (*CLASSIFIERS, "plain-vote")}
    wrong["logistic"] = np.where(np.arange(50) < 25 - n_better, 1.0, 0.0)
    found = held_out._choice(wrong, 10, 20, 0.0)
    assert found.classifier == chosen
    assert found.gain == pytest.approx(n_better / 50 * (chosen != "vote"), abs=0.02)
    a, b = (n_better * (chosen != "vote") + 1) / 52, 1 / 52  # Bonett and Price (2012)
    expected = 1.96 * np.sqrt((a + b - (a - b) ** 2) / 52 * 10 / 9)
    assert found.margin == pytest.approx(expected)


@pytest.mark.slow
def test_the_interval_covers_the_true_gain_of_the_choice():
    """Over twenty tables of two Gaussians, whose other rows tell the truth: at least 85 %."""
    covered, differences = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        codes = rng.integers(0, 2, 700)
        points = rng.normal(size=(700, 4)) * [1, 1, 1, 3] + np.outer(codes, [1.2, 0, 0, 0])
        y = np.where(np.arange(700) < 40, codes, -1)[:50]
        model = SERAPH(classifier="auto").fit(points[:50], y)
        plain = SERAPH(classifier="plain-nearest").fit(points[:50], y)
        errors = [np.mean(m.predict(points[50:]) != codes[50:]) for m in (plain, model)]
        difference = model.held_out_.gain - (errors[0] - errors[1])
        differences.append(difference)
        covered.append(abs(difference) <= model.held_out_.margin)
    assert np.mean(covered) >= 0.85
    assert abs(np.mean(differences)) < 0.03


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_predictions_are_those_of_the_classifier_that_is_named(name):
    model = SERAPH(classifier=name).fit(X, Y)
    known, codes, Z = X[Y >= 0], Y[Y >= 0], model.transform
    by_hand = {
        "nearest": KNeighborsClassifier(1),
        "neighbors": KNeighborsClassifier(9, weights="distance"),
        "logistic": LogisticRegression(max_iter=1000),
    }
    parts = held_out.MEMBERS if name == "vote" else [name]
    expected = []
    for part in parts:
        kind = part.removeprefix("plain-")
        near, far = (P if kind != part else Z(P) for P in (known, SAMPLING.X_test))
        expected.append(by_hand[kind].fit(near, codes).predict_proba(far))
    found = model.predict_proba(SAMPLING.X_test)
    np.testing.assert_allclose(found, np.mean(expected, axis=0), atol=1e-7)
    assert model.predict(SAMPLING.X_test).tolist() == np.argmax(found, axis=1).tolist()


def test_what_cannot_be_held_out_is_not_judged():
    model = SERAPH(classifier="auto")
    few = np.where(np.arange(len(Y)) == np.flatnonzero(Y == 0)[0], 0, np.where(Y == 1, 1, -1))
    assert model.fit(X, few).held_out_ is None  # one label of a class
    assert model.classifier_ == "vote"
    assert len(model.predict(X)) == len(X)
    judge = judge_by_folds(model.set_params(time_limit=1e-9), PairSet.from_labels(X, Y))
    assert judge is None
    with pytest.raises(
        ValueError, match="classifier='nearets' is not known: use one of auto, vote"
    ):
        SERAPH(classifier="nearets").fit(X, Y)


@pytest.mark.slow
def test_the_folds_are_the_same_unless_a_seed_chooses_others():
    model, pairs = SERAPH(max_iter=1, allow_unattained=True), PairSet.from_labels(X, Y)
    errors = [judge_by_folds(model, pairs, seed).errors for seed in (None, 7, 7)]
    assert errors[0] != errors[1] == errors[2]


def margins_by_hand(points, is_similar, A):
    """Of each point by loops, with its exact twins left out."""
    found = []
    for i, x in enumerate(points):
        near = {True: np.inf, False: np.inf}
        for j, z in enumerate(points):
            if is_similar[i][j] is not None and np.any(x != z):
                kind = bool(is_similar[i][j])
                near[kind] = min(near[kind], np.sqrt((x - z) @ A @ (x - z)))
        a, b = near[True], near[False]
        found.append(-5.0 if a == np.inf else 5.0 if b == np.inf else np.clip(np.log(b / a), -5, 5))
    return np.array(found)


def support_by_hand(points, is_similar, A):
    euclidean = margins_by_hand(points, is_similar, np.eye(len(A)))
    gains = (margins_by_hand(points, is_similar, A) - euclidean)[np.abs(euclidean) < 5.0]
    return np.mean(gains) / (np.std(gains, ddof=1) / np.sqrt(len(gains)))


@pytest.mark.parametrize("seed", range(4))
def test_support_is_counted_by_hand_for_classes_and_for_constraints(seed):
    rng = np.random.default_rng(seed)
    points, codes = rng.normal(size=(14, 3)), rng.integers(0, 3, 14)
    points[9] = points[2]
    root = rng.normal(size=(2, 3))
    similar = [[bool(a == b) for b in codes] for a in codes]
    found = Neighborhood(points, codes).support(root)
    assert found == pytest.approx(support_by_hand(points, similar, root.T @ root))
    listed = np.array([(i, j) for i in range(12) for j in range(i + 1, 12) if rng.random() < 0.5])
    is_near = codes[listed[:, 0]] == codes[listed[:, 1]]
    pairs = PairSet.from_constraints(points, listed[is_near], listed[~is_near])
    known = [[None] * 12 for _ in range(12)]
    for i, j in listed:
        known[i][j] = known[j][i] = bool(codes[i] == codes[j])
    found = Neighborhood.of_pairs(pairs).support(root)
    assert found == pytest.approx(support_by_hand(points[:12], known, root.T @ root))


def test_the_euclidean_share_follows_the_support():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], 30)
    points = rng.normal(size=(60, 4)) + 4.0 * codes[:, None] * np.eye(4)[0]
    judged = Neighborhood(points, codes)
    along, across = np.eye(4)[:1], np.diag([0.01, 1.0, 1.0, 1.0])
    assert judged.support(along) > 2.0
    assert judged.euclidean_share(along) == 0.0
    assert judged.euclidean_share(across) == 1.0  # clearly worse than Euclid: nothing of it stays
    assert judged.euclidean_share(np.eye(4)) == pytest.approx(0.3)  # nothing to choose between them
    single = Neighborhood(np.eye(3), np.arange(3))  # nothing to judge by
    assert (single.support(np.eye(3)), single.euclidean_share(np.eye(3))) == (
        0.0,
        pytest.approx(0.3),
    )


def test_a_metric_that_labels_do_not_support_is_mixed_with_the_euclidean_one():
    """Labels at random, few enough features that they cannot be fitted: the metric is noise."""
    rng = np.random.default_rng(1)
    noise, y = rng.normal(size=(60, 3)), np.where(np.arange(60) < 12, np.arange(60) % 2, -1)
    model = SERAPH().fit(noise, y)
    objective = RECOMMENDED.first_m_step(PairSet.from_labels(noise, y))
    share = doubt_about_labels(objective, model.m_step_metric_)
    mixed = SERAPH(identity_share=share).fit(noise, y).metric_
    judged = Neighborhood(noise[:12], y[:12])
    rest = judged.euclidean_share(factor(mixed))
    assert rest > 0.05
    C = np.cov(noise.T)
    expected = (1 - rest) * mixed + rest * np.vdot(mixed, C) / np.trace(C) * np.eye(3)
    np.testing.assert_allclose(model.metric_, expected, atol=1e-6 * np.max(expected))
