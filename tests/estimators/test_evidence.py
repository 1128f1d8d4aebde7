"""Evidence: what a fit says of its labels and features is what counting by hand says."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from seraph_cvx import SERAPH, SERAPHCV, PairSet
from seraph_cvx.datasets import load, load_sampling
from seraph_cvx.estimators import evidence
from seraph_cvx.estimators.evidence import (
    LeaveOneOut,
    Neighborhood,
    doubt_about_labels,
    leave_one_out,
)
from seraph_cvx.estimators.seraph_cv import best_candidate
from seraph_cvx.estimators.settings import RECOMMENDED
from seraph_cvx.numerics.psd_cone import factor
from seraph_cvx.paper import squared_distances

SAMPLING = load_sampling("wine", n_points=60, n_labeled=15, seed=0)
X, Y = SAMPLING.X, SAMPLING.y


def test_leave_one_out_is_counted_by_hand():
    model = SERAPH().fit(X, Y)
    points, y = X[SAMPLING.labeled], Y[SAMPLING.labeled]
    rows, wrong = np.indices((15, 15)).reshape(2, -1).T, []
    for A in (model.metric_, np.eye(X.shape[1])):
        d = squared_distances(points, rows, A).reshape(15, 15) + np.diag([np.inf] * 15)
        wrong.append(1.0 * (y[np.argmin(d, axis=1)] != y))
    found, gain = model.leave_one_out_, wrong[1] - wrong[0]
    expected = LeaveOneOut(15, *np.mean(wrong, axis=1), gain.std() / np.sqrt(15))
    assert vars(found) == pytest.approx(vars(expected))
    assert found.gain == pytest.approx(gain.mean())


def test_exact_twins_are_left_out_with_a_point_and_counted():
    X, y = load("wine")
    points = StandardScaler().fit_transform(X)[::3, :4]
    once = leave_one_out(points, y[::3], np.eye(4))
    twice = leave_one_out(np.tile(points, (2, 1)), np.tile(y[::3], 2), np.eye(4))
    assert 0.0 < once.euclidean_error == twice.euclidean_error == twice.learned_error
    assert (once.n_twins, twice.n_twins, twice.n) == (0, 120, 120)
    assert "twin" not in str(once)
    assert "(120 have exact twins, which are left out)" in str(twice)
    one = leave_one_out(np.r_[points, points[:1]], np.r_[y[::3], y[:1]], np.eye(4))
    assert one.n_twins == 2
    assert leave_one_out(np.eye(2).repeat(3, axis=0), np.arange(6) // 3, np.eye(2)) is None


def test_of_many_labeled_points_some_are_judged_by_all(monkeypatch):
    monkeypatch.setattr(evidence, "MOST_JUDGED", 7)
    X = np.column_stack([np.arange(40.0) % 2, np.random.default_rng(0).normal(size=40)])
    found = leave_one_out(X, np.arange(40) % 2, np.diag([1.0, 0.0]))
    assert (found.n, found.learned_error) == (7, 0.0)


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


def test_the_default_is_kept_unless_another_candidate_leads_by_enough():
    table = {"mean_test_score": np.array([0.7, 0.75, 0.75, 0.75 - 1e-15, np.nan])}
    table |= {"rank_test_score": [4, 1, 1, 1, 5], "param_trace_weight": [1.0, 3.0, 2.0, 1.0, 9.0]}
    assert [best_candidate(table, 0, lead) for lead in (0.0, 0.04, 0.06)] == [1, 1, 0]
    assert best_candidate(table, 3) == 3  # as good but for rounding
    assert best_candidate(table, 4, 0.5) == 1  # the default could not be fitted
    assert best_candidate(table) == 1


def test_the_lead_that_is_asked_for_falls_with_the_number_of_labels():
    def score(model, X, y):
        return 0.012 * (model.identity_share == 0.4)

    n = np.sum(Y >= 0)
    for caution, share in ((0.011 * np.sqrt(n), 0.4), (0.013 * np.sqrt(n), "auto")):
        search = SERAPHCV(cv=2, scoring=score, caution=caution, tol=1e-3, m_step_tol=1e-4)
        assert search.fit(X, Y).best_params_["identity_share"] == share


def test_a_search_without_evidence_ends_with_the_default():
    search = SERAPHCV(cv=2, scoring=lambda model, X, y: 0.5).fit(X, Y)
    default = SERAPH().fit(X, Y)
    assert search.metric_ == pytest.approx(default.metric_, rel=1e-12, abs=1e-12)
    assert search.leave_one_out_ == default.leave_one_out_
    assert search.best_index_ == 0
