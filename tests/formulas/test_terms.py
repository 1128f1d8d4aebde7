"""Evidence: every place that sums weighs and sums what terms say about each pair, and only once."""

from __future__ import annotations

from dataclasses import replace

import array_api_strict
import numpy as np
import pytest

import seraph_cvx.engine.device.device_sums
from seraph_cvx import PairSet
from seraph_cvx.engine.blocks import Layout, PairTerms
from seraph_cvx.engine.cluster_sums import ClusterSums
from seraph_cvx.engine.moments import each_labeled, each_similar
from seraph_cvx.engine.pair_sums import PairSums
from seraph_cvx.numerics.arrays import namespace

X = np.random.default_rng(0).normal(size=(40, 3))
SIMILAR, DISSIMILAR = [(0, 1), (2, 30), (5, 6)], [(0, 39), (7, 21)]
CONFIDENCES = [0.1, 2.0, 30.0], [4.0, 0.5]
METRIC = np.diag([1.0, 0.5, 2.0])


def decay(batch, d):
    """e^{-d} as a term and as a weight; and d itself, which does not vanish off the pairs."""
    d = batch.pairs_of(d)
    small = namespace(d).exp(-d)
    return PairTerms(iter([small, d]), [small])


def summed_already(batch, d):
    """The same by terms that sum on their own, for blocks and lists of NumPy."""
    d = batch.pairs_of(d)
    small, c = np.exp(-d), 1.0 if batch.confidence is None else batch.confidence
    return [np.sum(c * small), np.sum(c * d)], [batch.laid_out(c * small)]


def by_hand(pairs, confidence=None):
    V = X[pairs[:, 0]] - X[pairs[:, 1]]
    d = np.einsum("ij,jk,ik->i", V, METRIC, V)
    c = np.ones(len(V)) if confidence is None else confidence
    w = c * np.exp(-d)
    return [np.sum(w), np.sum(c * d)], (V.T * w) @ V


def check(found, expected):
    np.testing.assert_allclose(found.totals, expected[0], rtol=1e-12)
    np.testing.assert_allclose(found.matrix, expected[1], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("terms", [decay, summed_already])
def test_labeled_pairs_are_weighed_by_their_confidence_once(terms):
    pairs = PairSet.from_constraints(X, SIMILAR, DISSIMILAR, *CONFIDENCES)
    sums = PairSums.of(pairs)
    check(sums.over_labeled([METRIC], terms), by_hand(pairs.labeled, pairs.labeled_weights))
    assert sums.over_labeled([], each_labeled).totals == pytest.approx([36.6])
    n = len(pairs.similar)
    similar = sums.over_labeled([], each_similar)
    assert similar.totals == pytest.approx([np.sum(pairs.labeled_weights[:n])])
    V = X[pairs.similar[:, 0]] - X[pairs.similar[:, 1]]
    np.testing.assert_allclose(similar.matrix, (V.T * pairs.labeled_weights[:n]) @ V)


@pytest.mark.parametrize("size", [7, 16, 256])
@pytest.mark.parametrize("terms", [decay, summed_already])
def test_unlabeled_pairs_by_threads(terms, size):
    pairs = PairSet.from_constraints(X, SIMILAR, DISSIMILAR)
    for n_jobs in (None, 2):
        layout = Layout(len(X), pairs.labels, size)
        sums = replace(PairSums.of(pairs, n_jobs).on_host, layout=layout)
        check(sums.over_unlabeled([METRIC], terms), by_hand(pairs.unlabeled))


def test_unlabeled_pairs_on_workers(monkeypatch):
    monkeypatch.setattr(ClusterSums, "is_available", property(lambda self: True))
    pairs = PairSet.from_constraints(X, SIMILAR, DISSIMILAR)
    check(PairSums.of(pairs).over_unlabeled([METRIC], decay), by_hand(pairs.unlabeled))


def test_pairs_on_a_device(monkeypatch):
    monkeypatch.setattr(seraph_cvx.engine.device.device_sums, "DEVICE_BLOCK", 16)
    on_device = array_api_strict.asarray(X)
    pairs = PairSet.from_constraints(on_device, SIMILAR, DISSIMILAR, *CONFIDENCES)
    sums = PairSums.of(pairs)
    assert sums.is_remote
    check(sums.over_unlabeled([METRIC], decay), by_hand(pairs.unlabeled))
    check(sums.over_labeled([METRIC], decay), by_hand(pairs.labeled, pairs.labeled_weights))


def test_drawn_pairs_stand_for_all():
    pairs = PairSet.from_constraints(X, SIMILAR, DISSIMILAR).sampled(200, random_state=0)
    totals, matrix = by_hand(pairs.drawn)
    share = pairs.n_unlabeled / 200
    expected = [share * total for total in totals], share * matrix
    check(PairSums.of(pairs).over_unlabeled([METRIC], decay), expected)


def test_many_labeled_pairs_of_classes_are_summed_as_blocks():
    rng = np.random.default_rng(1)
    points, y = rng.normal(size=(300, 3)), rng.integers(0, 4, 300)
    pairs = PairSet.from_labels(points, y)
    sums = PairSums.of(pairs)
    assert sums.classes is not None
    found = sums.over_labeled([METRIC], decay)
    listed = replace(sums, classes=None).over_labeled([METRIC], decay)
    check(found, (listed.totals, listed.matrix))
    assert sums.over_labeled([], each_similar).totals == pytest.approx([len(pairs.similar)])
