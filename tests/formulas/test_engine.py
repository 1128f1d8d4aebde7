"""Evidence: one engine sums over pairs, the same whoever makes which part of the sums."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from seraph_cvx import MStepObjective, PairSet
from seraph_cvx.engine import distances
from seraph_cvx.engine.distances import Layout, PairTerms
from seraph_cvx.engine.moments import each_similar
from seraph_cvx.engine.pair_sums import PairSums
from seraph_cvx.model.m_step_objective import descent_program, paper_program
from seraph_cvx.pairs.labeled_pairs import ClassLabels, LabeledPairs

METRIC = np.diag([1.0, 0.5, 2.0])


def decay(batch, d):
    """e^{-d} as a term and as a weight; and d itself, which does not vanish off the pairs."""
    d = batch.pairs_of(d)
    small = np.exp(-d)
    return PairTerms(iter([small, d]), small)


def test_many_labeled_pairs_of_classes_are_summed_as_blocks():
    rng = np.random.default_rng(1)
    points, y = rng.normal(size=(300, 3)), rng.integers(0, 4, 300)
    pairs = PairSet.from_labels(points, y)
    sums = PairSums.of(pairs)
    assert sums.class_layout is not None
    found = sums.over_labeled([METRIC], decay)
    rows = LabeledPairs(sums.labels.similar, sums.labels.dissimilar)
    listed = replace(sums, labels=rows).over_labeled([METRIC], decay)
    np.testing.assert_allclose(found.totals, listed.totals, rtol=1e-12)
    np.testing.assert_allclose(found.matrix, listed.matrix, rtol=1e-11, atol=1e-12)
    assert sums.over_labeled([], each_similar).totals == pytest.approx([len(pairs.similar)])


def labeled_by(kind, n=300, m=4):
    """Points with labels of some of them, anywhere among them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, m))
    if kind == "classes":
        y = np.full(n, -1)
        y[rng.choice(n, 40, replace=False)] = np.arange(40) % 3
        return PairSet.from_labels(X, y)
    chosen = rng.permutation(n)[:60].reshape(2, 15, 2)
    return PairSet.from_constraints(X, *chosen, similar_confidence=np.linspace(0.5, 2.0, 15))


def facts(program, L, D):
    """All that a pass gives."""
    now = program.at(L)
    return (
        now.value,
        now.excess,
        now.factor_gradient,
        now.gradient,
        now.hessian_product(D),
    )


@pytest.fixture
def small_blocks(monkeypatch):
    """Fifteen rows of blocks in seven strips, of 300 points."""
    monkeypatch.setattr(distances, "BLOCK", 20)
    monkeypatch.setattr(distances, "THREADED_POINTS", 160)


@pytest.fixture
def factors():
    return np.random.default_rng(1).normal(size=(2, 4, 2))


@pytest.mark.parametrize("most", [3, 256])
def test_strips_hold_every_pair_once(small_blocks, most, monkeypatch):
    monkeypatch.setattr(distances, "MOST_STRIPS", most)
    labeled = LabeledPairs(np.array([[0, 1], [0, 40]]), np.array([[3, 60]]))
    blocks = Layout(317, labeled)
    assert blocks.n_strips == min(most, 8)
    seen = np.zeros((317, 317), dtype=int)
    for block in blocks.blocks:
        inside = np.ones_like(seen[block.rows, block.columns])
        seen[block.rows, block.columns] += block.laid_out(block.pairs_of(inside)).astype(int)
    expected = np.triu(np.ones_like(seen), 1)
    expected[tuple(labeled.listed.T)] = 0
    np.testing.assert_array_equal(seen, expected)


def assert_close(facts, others):
    for one, other in zip(facts, others, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12 * np.max(np.abs(other)))


@pytest.mark.parametrize("kind", ["classes", "constraints"])
@pytest.mark.parametrize("program", [descent_program, paper_program])
def test_threads_change_no_bit_and_strips_nothing_but_rounding(
    small_blocks, factors, kind, program, monkeypatch
):
    pairs = labeled_by(kind)
    alone, together = (
        facts(program(MStepObjective(pairs, n_jobs=n_jobs)), *factors) for n_jobs in (None, 3)
    )
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)
    monkeypatch.setattr(distances, "MOST_STRIPS", 1)
    assert_close(alone, facts(program(MStepObjective(pairs)), *factors))


def test_no_list_of_blocks_grows_with_the_pairs():
    large = Layout(1_000_000, ClassLabels(np.arange(1_000), np.arange(1_000) % 3))
    tracemalloc.start()
    try:
        assert large.n_blocks == 8334 * 8335 // 2
        assert sum(1 for _ in islice(large.strip(255), 10_000)) == 10_000
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
