"""Evidence: passes over pairs in strips are the same, whoever makes which strip."""

from __future__ import annotations

import pickle
import tracemalloc

import joblib
import numpy as np
import pytest

from seraph_cvx import MStepObjective, PairSet
from seraph_cvx.engine.blocks import Layout
from seraph_cvx.engine.cluster_sums import ClusterSums
from seraph_cvx.engine.face import layout as face_layout
from seraph_cvx.engine.face.layout import FaceLayout
from seraph_cvx.model.semi_supervised import descent_program, paper_program
from seraph_cvx.pairs.labeled_pairs import ClassLabels, LabeledPairs

NO_PAIRS = np.empty((0, 2), dtype=np.int64)


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
    return now.value, now.excess, now.slope, now.gradient, now.bent(D), now.curvature(D)


@pytest.fixture
def small_blocks(monkeypatch):
    """Fifteen rows of blocks in seven strips, of 300 points."""
    monkeypatch.setattr(face_layout, "BLOCK", 20)


@pytest.fixture
def factors():
    return np.random.default_rng(1).normal(size=(2, 4, 2))


@pytest.mark.parametrize("most", [3, 256])
def test_strips_hold_every_pair_once(small_blocks, most, monkeypatch):
    monkeypatch.setattr(face_layout, "MOST_STRIPS", most)
    layout = FaceLayout(317, LabeledPairs(NO_PAIRS, NO_PAIRS))
    assert layout.n_strips == min(most, 8)
    seen = np.zeros((317, 317), dtype=int)
    for number in range(layout.n_strips):
        for rows, columns, _ in layout.strip(number):
            seen[rows, columns] += 1
            if rows != columns:
                seen[columns, rows] += 1
    assert np.all(seen == 1)


def test_the_strips_are_few_and_do_not_depend_on_who_makes_them():
    none = LabeledPairs(NO_PAIRS, NO_PAIRS)
    found = [FaceLayout(n, none).n_strips for n in (0, 1, 700, 5_000, 10_000, 10_000_000)]
    assert found == [1, 1, 1, 21, 42, 256]


@pytest.mark.parametrize("kind", ["classes", "constraints"])
@pytest.mark.parametrize("program", [descent_program, paper_program])
def test_threads_change_no_bit(small_blocks, factors, kind, program):
    pairs = labeled_by(kind)
    alone, together = (
        facts(program(MStepObjective(pairs, n_jobs=n_jobs)), *factors) for n_jobs in (None, 3)
    )
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)


def test_one_strip_or_many_are_the_same_to_rounding(small_blocks, factors, monkeypatch):
    program = descent_program(MStepObjective(labeled_by("classes")))
    in_strips = facts(program, *factors)
    monkeypatch.setattr(face_layout, "MOST_STRIPS", 1)
    whole = facts(descent_program(MStepObjective(labeled_by("classes"))), *factors)
    for one, other in zip(in_strips, whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12 * np.max(np.abs(other)))


@pytest.mark.parametrize(
    ("kind", "whitened"),
    [
        ("classes", True),
        ("constraints", False),
        pytest.param("classes", False, marks=pytest.mark.slow),
        pytest.param("constraints", True, marks=pytest.mark.slow),
    ],
)
def test_workers_find_the_same_in_whatever_shares(
    small_blocks, factors, kind, whitened, monkeypatch
):
    """Workers are threads in this test; in coordinates that turn and shift the points, too."""
    objective = MStepObjective(labeled_by(kind))
    here = facts(descent_program(objective, whitened=whitened), *factors)
    monkeypatch.setattr(ClusterSums, "is_available", property(lambda self: True))
    found = []
    for n_jobs in (1, 2, 5):
        with joblib.parallel_config(backend="threading", n_jobs=n_jobs):
            found.append(facts(descent_program(objective, whitened=whitened), *factors))
    for one, other, third, expected in zip(*found, here, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one, third)
        size = np.max(np.abs(expected))
        np.testing.assert_allclose(one, expected, rtol=1e-12, atol=1e-12 * size)


def test_points_that_were_used_travel_on(factors):
    """A worker may hand them to another one: what it made of them stays."""
    sums = descent_program(MStepObjective(labeled_by("classes")), whitened=True).sums.remote_sums
    sums.shipment.in_order(sums.turn)
    moved = pickle.loads(pickle.dumps(sums.shipment))
    np.testing.assert_array_equal(moved.in_order(sums.turn), sums.shipment.in_order(sums.turn))


def test_a_pass_brings_back_one_small_matrix_a_strip(small_blocks, factors, monkeypatch):
    program = descent_program(MStepObjective(labeled_by("classes")))
    monkeypatch.setattr(ClusterSums, "is_available", property(lambda self: True))
    brought = []
    right = ClusterSums._on_workers

    def noted(self, *asked):
        brought.append(right(self, *asked))
        return brought[-1]

    monkeypatch.setattr(ClusterSums, "_on_workers", noted)
    program.at(factors[0])
    (strips,) = brought
    assert [strip.matrix.shape for strip in strips] == [(4, 2)] * 7


def test_no_list_of_blocks_grows_with_the_pairs():
    layout = Layout(1_000_000, ClassLabels(np.arange(1_000), np.arange(1_000) % 3))
    tracemalloc.start()
    try:
        assert len(layout.blocks) == 3907 * 3908 // 2
        assert layout.blocks[len(layout.blocks) - 1].rows == slice(3906 * 256, 1_000_000)
        for number in range(0, len(layout.blocks), 10_000):
            assert layout.blocks[number].rows.start <= layout.blocks[number].columns.start
        assert len(layout.tiles[len(layout.tiles) - 1].blocks) == 6
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
    with pytest.raises(IndexError, match="none has the number"):
        layout.blocks[len(layout.blocks)]


def test_blocks_count_row_by_row():
    layout = Layout(1_100, LabeledPairs(NO_PAIRS, NO_PAIRS), block_size=100)
    found = [(block.rows.start // 100, block.columns.start // 100) for block in layout.blocks]
    assert found == [(a, b) for a in range(11) for b in range(a, 11)]
