"""Evidence: the benchmark of defaults draws, tests and resumes as it says."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from evidence.contest import CONTESTANTS, DataSet, draw_points, run_on_draw
from evidence.ranking import mean_ranks
from reproduction_programs import run_defaults

pytestmark = pytest.mark.once


def blobs(sizes=(60, 60), seed=0):
    """Classes that the first of three features tells apart, less than the others hide it."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    return rng.normal(size=(len(y), 3)) + np.outer(y, [2.0, 0.0, 0.0]), y


def test_a_draw_shows_the_labels_it_says_and_standardizes():
    data = DataSet.of("blobs", *blobs((90, 40, 9)))
    draw = draw_points(data, 10, 3)
    shown = draw.y >= 0
    assert np.bincount(draw.y[shown]).tolist() == [10, 10, 4]
    np.testing.assert_array_equal(draw.y[shown], draw.truth[shown])
    np.testing.assert_allclose([draw.X.mean(axis=0), draw.X.var(axis=0) - 1.0], 0.0, atol=1e-12)
    assert len(draw.X) + len(draw.X_rest) == 139
    np.testing.assert_array_equal(draw_points(data, 10, 3).X, draw.X)


def test_every_known_method_makes_something_of_a_draw():
    draw = draw_points(DataSet.of("blobs", *blobs((15, 15))), 3, 3)
    for contestant in CONTESTANTS.values():
        row = run_on_draw(("blobs", 2, 0, "method"), contestant.make, draw)
        assert row["detail"] == ""
        assert (row["pair_auc"] is not None) == contestant.is_metric
        assert row["error"] <= 50.0


def test_the_program_makes_page_and_table_of_a_folder(tmp_path):
    out, tables = tmp_path / "r", tmp_path / "tables"
    tables.mkdir()
    X, y = blobs()
    frame = pd.DataFrame(X, columns=list("abc")).assign(kind=np.array(["u", "v"])[y])
    frame.to_csv(tables / "south.csv", index=False)
    asked = ("--tables", tables, "--methods", "euclidean,mfda,lda", "--labels", "2,3", "--draws", 3)
    done = run_defaults(*asked, "--out", out)
    assert done.exit_code == 0, done.output
    assert (out / "defaults.md").read_text() in done.stdout
    journal = (out / "runs.jsonl").read_text()
    assert run_defaults(*asked, "--out", out, "--resume").exit_code == 0
    assert (out / "runs.jsonl").read_text() == journal
    runs = pd.read_json(io.StringIO(journal), lines=True).query("kind == 'run'")
    means = pd.read_csv(out / "defaults.csv", index_col=["set", "labels", "measure"])
    errors = runs.query("labels == 3 and method == 'mfda'")["error"]
    assert means.loc[("south", 3, "error"), "mfda"] == pytest.approx(errors.mean(), abs=0.006)


DEMSAR_RANKS = """
4 3 2 1; 1 2 3 4; 4 1 2 3; 4 1 3 2; 4 2 3 1; 1 2.5 4 2.5; 3 2 4 1; 2.5 2.5 4 1; 4 3 2 1
2.5 2.5 2.5 2.5; 4 2.5 1 2.5; 3 2 4 1; 4 1 2 3; 3 1 4 2
"""
"""Demsar (2006), Table 6: the ranks of C4.5, C4.5+m, C4.5+cf and C4.5+m+cf on fourteen sets."""


@pytest.mark.parametrize(("level", "difference"), [(0.05, 1.25), (0.10, 1.12)])
def test_ranks_and_critical_differences_are_those_that_demsar_prints(level, difference):
    ranks = np.array(DEMSAR_RANKS.replace(";", " ").split(), dtype=float).reshape(14, 4)
    found = mean_ranks(["C4.5", "m", "cf", "m+cf"], ranks, level)
    np.testing.assert_allclose(found.ranks, [1.964, 2.000, 2.893, 3.143], atol=5e-4)
    assert found.critical_difference == pytest.approx(difference, abs=6e-3)
