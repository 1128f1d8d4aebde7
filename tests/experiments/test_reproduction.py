"""Evidence: the machinery of Section 5 keeps the paper's protocol, loses no cell, counts right."""

from __future__ import annotations

import csv
import json
import re
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from command_line import words
from joblib import parallel_config
from pictures import assert_legible
from scipy.stats import ttest_ind, ttest_rel
from typer.testing import CliRunner

import seraph_cvx
from seraph_cvx import MStepObjective, PairSet, alternate, datasets, solve_m_step
from seraph_cvx.cli import app, reproduce
from seraph_cvx.experiments.protocol.printed_table2 import PRINTED
from seraph_cvx.experiments.protocol.protocol_evidence import expected_sizes, scaling_evidence
from seraph_cvx.experiments.protocol.samplings import (
    VARIANTS,
    draw_indices,
    draw_sampling,
    load_task,
    nearest_neighbour_error,
    scale_features,
)
from seraph_cvx.experiments.protocol.tasks import TASKS, UNFILED, find_task, find_tasks
from seraph_cvx.experiments.results import figures
from seraph_cvx.experiments.results.acceptance import duel_table, judge, judgement_table
from seraph_cvx.experiments.results.documents import errors_files, judgement_again
from seraph_cvx.experiments.results.figures import artificial_set, learn_panels
from seraph_cvx.experiments.results.summaries import are_comparable, mark_best, summarise
from seraph_cvx.experiments.results.tables import (
    read_errors,
    table1,
    table2,
    table2_reasons,
    to_csv,
)
from seraph_cvx.experiments.runs import learners, runner
from seraph_cvx.experiments.runs.bookkeeping import Ledger
from seraph_cvx.experiments.runs.cells import EMPTY, Protocol, learn
from seraph_cvx.experiments.runs.early_stopping import stop_early
from seraph_cvx.experiments.runs.methods import METHODS, PAPER_METHODS, find_methods
from seraph_cvx.experiments.runs.runner import run_cells
from seraph_cvx.model.semi_supervised import SemiSupervisedObjective
from seraph_cvx.plots.reproduction import plot_sparsity, plot_times

IMAGES = [name for name, task in TASKS.items() if task.is_stratified]


def run(*arguments):
    assert reproduce.app is app  # importing it is what registers the command
    return CliRunner().invoke(app, ["reproduce", *(str(argument) for argument in arguments)])


@pytest.fixture
def invented_images(monkeypatch):
    """USPS and MNIST of noise, with the true numbers of images."""

    def load(name, data_dir=None, download=False):
        if name not in ("usps", "mnist"):
            return real(name, data_dir)
        digits, each, m = (range(10), 1100, 64) if name == "usps" else ((1, 3, 5, 7, 8), 3000, 196)
        y = np.repeat(list(digits), each)
        return np.random.default_rng(0).integers(0, 256, size=(len(y), m), dtype=np.uint8), y

    real = datasets.load
    monkeypatch.setattr(datasets, "load", load)


# Table 1 and Table 2 as typed


def test_table_1_is_consistent_for_every_task():
    """#S + #D is the number of pairs of labeled points, and #U all other pairs."""
    assert len(TASKS) == 12
    for task in TASKS.values():
        labeled = task.n_labels * (task.n_labels - 1) / 2
        assert task.similar + task.dissimilar == pytest.approx(labeled), task.name
        assert task.unlabeled == task.n_training * (task.n_training - 1) / 2 - labeled, task.name


def test_table_1_of_images_has_the_sizes_of_equally_many_labels_a_class():
    for name in IMAGES:
        task = TASKS[name]
        each = task.n_labels // task.n_classes
        assert task.similar == task.n_classes * each * (each - 1) / 2
        assert len(task.digits) == task.n_classes


def test_table_2_is_typed_as_printed():
    assert len(PRINTED) == 11 * 12 - 5  # GDM has five dashes
    assert PRINTED["EUCLIDEAN", "iris"] == (9.58, 0.73)
    assert PRINTED["NCA", "balance"] == (32.97, 1.31)
    assert PRINTED["MFDA", "diabetes"] == (31.64, 0.62)
    assert PRINTED["LDM", "usps-1-5-20"] == (47.19, 1.51)
    assert PRINTED["SERAPH_post", "mnist-1-7"] == (10.98, 0.79)
    assert PRINTED["SERAPH_hyper", "mnist-3-5-8"] == (35.71, 0.84)
    assert PRINTED["GDM", "usps-1-5-20"] == (37.62, 0.77)
    assert ("GDM", "usps-1-5-40") not in PRINTED


def test_every_row_of_the_paper_has_a_method_and_every_method_a_row():
    rows = {row for row, _ in PRINTED}
    assert [METHODS[name].paper_row for name in PAPER_METHODS] == list(
        dict.fromkeys(row for row, _ in PRINTED)
    )
    assert {method.paper_row for method in METHODS.values()} == rows


# The protocol


@pytest.mark.parametrize("name", UNFILED)
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_sampling_of_uci_has_the_sizes_of_table_1_and_no_test_point_in_training(name, variant):
    task = find_task(name)
    _, y = load_task(task)
    labeled, unlabeled, test = draw_indices(task, y, np.random.default_rng(3), variant)
    assert (len(labeled), len(test)) == (task.n_labels, task.n_test)
    assert len(labeled) + len(unlabeled) == task.n_training
    assert len({*labeled, *unlabeled, *test}) == task.n_training + task.n_test
    if "random" not in variant:
        assert set(y[labeled]) == set(y)


@pytest.mark.parametrize("name", UNFILED)
def test_a_sampling_of_uci_shows_two_classes_or_more_and_hides_the_other_labels(name):
    task = find_task(name)
    X, y = load_task(task)
    for seed in range(20):
        sampling = draw_sampling(task, X, y, seed)
        assert 2 <= len(set(sampling.y[: task.n_labels])) <= len(set(y))
        every = draw_sampling(task, X, y, seed, "every-class")
        assert set(every.y[: task.n_labels]) == set(y)
        assert np.all(sampling.y[task.n_labels :] == -1)


@pytest.mark.parametrize("name", IMAGES)
def test_a_sampling_of_images_is_stratified(name, invented_images):
    task = find_task(name)
    X, y = load_task(task)
    assert 0.0 <= X.min() < X.max() <= 1.0
    labeled, unlabeled, test = draw_indices(task, y, np.random.default_rng(0))
    pairs = PairSet.from_labels(X[[*labeled, *unlabeled]], draw_sampling(task, X, y, 5).y)
    sizes = (len(pairs.similar), len(pairs.dissimilar), pairs.n_unlabeled)
    assert sizes == (task.similar, task.dissimilar, task.unlabeled)
    for rows, size in ((labeled, task.n_labels), (test, task.n_test)):
        assert set(np.unique(y[rows], return_counts=True)[1]) == {size // task.n_classes}
    training = y[[*labeled, *unlabeled]]
    each = task.n_training // task.n_classes
    assert set(np.unique(training, return_counts=True)[1]) == {each}
    assert not {*labeled, *unlabeled} & {*test}


def test_data_of_another_width_than_table_1_are_refused(monkeypatch):
    monkeypatch.setattr(datasets, "load", lambda *a: (np.ones((150, 5)), np.repeat([0, 1, 2], 50)))
    with pytest.raises(ValueError, match="iris has 5 features where Table 1 has 4"):
        load_task(find_task("iris"))


def test_a_sampling_depends_on_its_seed_alone():
    task = find_task("wine")
    data = load_task(task)
    one, again, other = (draw_sampling(task, *data, seed) for seed in (4, 4, 5))
    assert np.array_equal(one.X, again.X)
    assert np.array_equal(one.y_test, again.y_test)
    assert not np.array_equal(one.X, other.X)


def test_closed_form_of_the_scalings():
    X = np.random.default_rng(0).normal(3.0, 2.0, size=(50, 3))
    X[:, 2] = 7.0
    unit, standard = scale_features(X, "unit"), scale_features(X, "standard")
    assert unit.min(axis=0).tolist() == [0.0, 0.0, 0.0]
    assert unit.max(axis=0).tolist() == [1.0, 1.0, 0.0]
    assert standard.mean(axis=0) == pytest.approx(np.zeros(3), abs=1e-12)
    assert standard.std(axis=0) == pytest.approx([1.0, 1.0, 0.0], abs=1e-12)
    assert np.array_equal(scale_features(X, "pixels", is_image=True), X / 255.0)
    assert np.max(np.abs(scale_features(X, "pixels"))) == 1.0
    assert np.array_equal(scale_features(X, "none"), X)


def test_closed_form_of_the_expected_sizes():
    """Plain draws: E#S is #pairs times the chance of equal classes; 20 of each are trimmed."""
    for variant, counts in (("random", [49, 288, 288]), ("trimmed-random", [29, 268, 268])):
        n = sum(counts)
        chance = sum(c * (c - 1) for c in counts) / (n * (n - 1))
        sizes = expected_sizes(find_task("balance"), variant, n_draws=1_000)
        error = sizes.error_of_fifty * np.sqrt(50 / 1_000)
        assert abs(sizes.similar - 45 * chance) < 4 * error, variant
        assert sizes.similar + sizes.dissimilar == 45
    assert expected_sizes(find_task("iris"), "balanced", n_draws=3).similar == 6 + 3 + 3


def test_the_error_is_that_of_the_nearest_labeled_point_alone():
    sampling = draw_sampling(find_task("wine"), *load_task(find_task("wine")), seed=0)
    L = np.random.default_rng(1).normal(size=(5, 13))
    wrong = 0
    for x, c in zip(sampling.X_test, sampling.y_test, strict=True):
        labeled = np.flatnonzero(sampling.labeled)
        nearest = min(labeled, key=lambda i, x=x: np.linalg.norm(L @ (sampling.X[i] - x)))
        wrong += sampling.y[nearest] != c
    assert nearest_neighbour_error(sampling, L) == pytest.approx(100 * wrong / 78)


def test_unknown_words_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="iris, wine"):
        find_task("tulips")
    with pytest.raises(ValueError, match="unit, pixels, standard, none"):
        run_cells(["iris"], ["euclidean"], 1, Protocol(scaling="metric"))
    with pytest.raises(ValueError, match="every-class, random"):
        run_cells(["iris"], ["euclidean"], 1, Protocol(variant="lucky"))
    with pytest.raises(ValueError, match="unit, pixels, standard, none"):
        scale_features(np.eye(2), "metric")
    with pytest.raises(ValueError, match="every-class, random"):
        draw_sampling(find_task("iris"), *load_task(find_task("iris")), 0, "lucky")
    with pytest.raises(ValueError, match="those of Figures 1 and 2"):
        artificial_set(3)
    with pytest.raises(ValueError, match="euclidean, gdm"):
        find_methods(["svm"])
    for name in ("mine=module", "mine=:learn", "gdm=module:learn"):
        with pytest.raises(ValueError, match=f"'{name}': write name=module:function, the name not"):
            find_methods([name])
    with pytest.raises(ValueError, match="No module named 'nowhere'"):
        find_methods(["mine=nowhere:learn"])


# The methods


@pytest.mark.parametrize("name", METHODS)
def test_every_method_learns_a_finite_metric_from_a_sampling_of_iris(name):
    task = find_task("iris")
    sampling = draw_sampling(task, *load_task(task), seed=1)
    L = METHODS[name].learn(sampling.X, sampling.y, 0)
    assert L.ndim == 2
    assert L.shape[1] == 4
    assert np.all(np.isfinite(L))
    assert nearest_neighbour_error(sampling, L) < 40.0


def test_the_methods_are_what_their_names_say():
    task = find_task("wine")
    sampling = draw_sampling(task, *load_task(task), seed=2)
    pairs = PairSet.from_labels(sampling.X, sampling.y)
    metric = {
        name: (L := METHODS[name].learn(sampling.X, sampling.y, 0)).T @ L
        for name in ("seraph-hyper", "seraph-proj", "sharp", "three-steps")
    }
    close = {"rel": 1e-5, "abs": 1e-7}
    hyper = alternate(pairs, "ratio", 1.0).metric
    assert metric["seraph-hyper"] == pytest.approx(hyper, **close)
    proj = alternate(pairs, 0.0, 1.0).metric
    assert metric["seraph-proj"] == pytest.approx(proj, **close)
    sharp = alternate(pairs, "ratio", 1.0, sharpness=2.0).metric
    assert metric["sharp"] == pytest.approx(sharp, **close)
    with pytest.warns(UserWarning, match="3 iterations"):
        three = alternate(pairs, "ratio", 1.0, max_iter=3)
    assert metric["three-steps"] == pytest.approx(three.metric, **close)
    assert not np.allclose(metric["three-steps"], metric["seraph-hyper"], rtol=1e-2)


# Early stopping


@pytest.mark.parametrize("setting", [(0.0, 0.0), ("ratio", 0.0), (0.0, 1.0), ("ratio", 1.0)])
def test_early_stopping_descends_objective_7_from_a_multiple_of_the_identity(setting):
    task = find_task("balance")
    sampling = draw_sampling(task, *load_task(task), seed=0)
    pairs = PairSet.from_labels(sampling.X, sampling.y)
    result = stop_early(pairs, *setting)
    objective = SemiSupervisedObjective(
        MStepObjective(pairs, unlabeled_weight=setting[0], trace_weight=setting[1])
    )
    assert result.values[0] == pytest.approx(objective.value(0.8 * np.eye(4)))
    assert result.values[-1] == pytest.approx(objective.value(result.metric))
    assert np.all(np.diff(result.values) <= 0.0)
    assert result.values[-1] < result.values[0]
    assert np.linalg.eigvalsh(result.metric)[0] >= -1e-10
    assert 1 <= result.steps <= 200


def test_closed_form_the_first_step_of_early_stopping_is_a_tenth_of_m_along_the_gradient():
    X = np.array([[0.0, 0.0], [1.0, 0.5], [3.0, 0.2], [2.5, 2.0]])
    pairs = PairSet.from_labels(X, [0, 0, 1, 1])
    one = stop_early(pairs, 0.0, 0.0, max_steps=1)
    start = 2.0 / 3.0 * np.eye(2)
    gradient = SemiSupervisedObjective(
        MStepObjective(pairs, unlabeled_weight=0.0, trace_weight=0.0)
    ).value_and_gradient(start)[1]
    step = 0.2 * gradient / np.linalg.norm(gradient)
    assert one.metric == pytest.approx(start - step)
    assert (one.steps, one.stopped_by) == (1, "step limit")


def test_early_stopping_ends_at_a_small_move():
    pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    result = stop_early(pairs, trace_weight=1.0)
    assert result.stopped_by == "small step"
    longer = stop_early(pairs, trace_weight=1.0, smallest_move=1e-9)
    assert longer.steps > result.steps
    assert abs(longer.metric[0, 0] - result.metric[0, 0]) < 2e-2


def test_early_stopping_ends_where_nothing_descends():
    """Points that are all the same have no gradient; at an optimum every step raises (7)."""
    same = stop_early(PairSet.from_labels(np.ones((4, 2)), [0, 0, 1, -1]), 0.0, 0.0)
    assert (same.stopped_by, same.steps) == ("no descent", 0)
    assert np.array_equal(same.metric, 2.0 / 3.0 * np.eye(2))
    pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    best = stop_early(pairs, 0.0, 1.0, smallest_move=0.0, max_steps=500)
    objective = MStepObjective(pairs, unlabeled_weight=0.0, trace_weight=1.0)
    assert best.stopped_by == "no descent"
    assert np.linalg.norm(objective.gradient(best.metric)) < 1e-6


def without_metric(solve):
    """The same solver, whose answer is lost."""

    def lost(*arguments, **settings):
        return replace(solve(*arguments, **settings), metric=None, message="planted trouble")

    return lost


@pytest.mark.parametrize("setting", ["hyper", "none"])
def test_an_em_whose_solver_gives_nothing_is_a_failure_with_its_reason(setting, monkeypatch):
    monkeypatch.setattr(learners, "alternate", without_metric(alternate))
    monkeypatch.setattr(learners, "solve_m_step", without_metric(solve_m_step))
    X, y = np.array([[0.0], [0.2], [2.0], [2.3]]), np.array([0, 0, 1, -1])
    with pytest.raises(RuntimeError, match="planted trouble"):
        learners.learn_by_em(setting, X, y)


def test_an_em_without_a_trace_weight_is_cut_off_after_so_many_m_steps(monkeypatch):
    starts = []

    def counted(objective, start=None, **settings):
        starts.append(start)
        return solve_m_step(objective, start=start, **settings)

    monkeypatch.setattr(learners, "solve_m_step", counted)
    monkeypatch.setattr(learners, "UNATTAINED_TOL", -1.0)  # J never falls too little
    X, y = np.array([[0.0], [0.2], [2.0], [2.3]]), np.array([0, 0, 1, -1])
    L = learners.learn_by_em("post", X, y)
    assert len(starts) == learners.UNATTAINED_M_STEPS == 20
    assert starts[0] is None
    assert L.shape == (1, 1)


# The runner


PLANTED = """
import os, time
import numpy as np

def boom(X, y, seed):
    raise ValueError("planted trouble")

def leave(X, y, seed):
    os._exit(3)

def not_finite(X, y, seed):
    return np.full((1, X.shape[1]), np.nan)

def sleep(X, y, seed):
    time.sleep(1.0)
    return np.eye(X.shape[1])

def warn(X, y, seed):
    import warnings
    warnings.warn("planted doubt")
    return np.eye(X.shape[1])
"""


@pytest.fixture
def planted(tmp_path, monkeypatch):
    (tmp_path / "planted_methods.py").write_text(PLANTED)
    monkeypatch.syspath_prepend(str(tmp_path))
    return lambda name: f"{name}=planted_methods:{name}"


@pytest.fixture
def cheap_cells(monkeypatch):
    """Cells that take no time: their error is a function of the key. Returns the keys run."""
    keys = []

    def fake(key, method, protocol, time_limit):
        keys.append(key)
        row = dict(zip(("task", "sampling", "method"), key, strict=True)) | EMPTY
        outcome = "failed" if key[2] == "gdm" else "done"
        return row | {"outcome": outcome, "error": 10.0 + key[1], "seconds": 0.25}

    monkeypatch.setattr(runner, "run_cell", fake)
    return keys


def test_failures_are_rows_with_their_reason_and_the_others_go_on(planted, tmp_path):
    names = ("boom", "leave", "not_finite", "warn")
    out = tmp_path / "cells.jsonl"
    table = run_cells(["iris"], [*map(planted, names), "euclidean"], 1, out=out)
    rows = {row["method"]: row for row in table.rows}
    assert list(rows) == [*names, "euclidean"]
    assert {rows[name]["outcome"] for name in names[:3]} == {"failed"}
    assert rows["boom"]["detail"] == "ValueError: planted trouble"
    assert "exit code 3" in rows["leave"]["detail"]
    assert "not finite" in rows["not_finite"]["detail"]
    assert all(rows[name]["error"] is None for name in names[:3])
    assert rows["warn"]["warnings"] == ["UserWarning: planted doubt"]
    assert rows["warn"]["error"] == rows["euclidean"]["error"] is not None
    on_disk = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["kind"] for line in on_disk] == ["run"] + ["cell"] * 5


def test_components_that_are_no_metric_are_refused_with_their_shape(planted):
    with pytest.raises(ValueError, match=r"shape \(1, 2\), or not finite: \(k, 2\) finite"):
        learn(planted("not_finite"), np.eye(2), np.array([0, 1]), 0)


@pytest.mark.slow
def test_the_time_cap_cuts_off_what_is_beyond_it_and_says_so(planted):
    """Each sleeps a second: a busy machine has 0.7 s to spare for the first."""
    table = run_cells(["iris"], [planted("sleep")], 4, time_cap=1.7)
    outcomes = [row["outcome"] for row in table.rows]
    assert outcomes == ["done", "cut off", "cut off", "cut off"]
    assert 1.0 <= table.rows[0]["seconds"] < 1.7
    assert table.rows[0]["cpu_seconds"] < 0.5  # it slept
    assert "time limit" in table.rows[1]["detail"]
    assert table.rows[1]["seconds"] < 1.7
    assert "spent" in table.rows[2]["detail"]
    assert table.rows[2]["seconds"] == 0.0


def facts_of(table):
    """What does not depend on the machine."""
    facts = ("task", "sampling", "method", "outcome", "error", "detail", "rank")
    return [{name: row[name] for name in facts} for row in table.rows]


@pytest.mark.slow
def test_cells_on_another_backend_are_those_of_one_process(planted):
    """Whatever backend joblib is told to use: seeds are the samplings' alone."""
    asked = (["iris"], ["euclidean", "seraph-proj", planted("boom")], 2)
    with parallel_config(backend="threading", n_jobs=2):
        together = run_cells(*asked)
    assert facts_of(together) == facts_of(run_cells(*asked))


def test_resume_runs_only_what_is_not_there(cheap_cells, tmp_path):
    out = tmp_path / "cells.jsonl"
    run_cells(["iris"], ["euclidean"], 2, out=out)
    out.write_text(out.read_text().replace('"error": 11.0', '"error": 99.0'))
    table = run_cells(["iris"], ["euclidean", "itml"], 3, out=out, resume=True)
    assert cheap_cells[:2] == [("iris", 0, "euclidean"), ("iris", 1, "euclidean")]
    assert sorted(cheap_cells[2:]) == [
        ("iris", 0, "itml"),
        ("iris", 1, "itml"),
        ("iris", 2, "euclidean"),
        ("iris", 2, "itml"),
    ]
    assert table.rows[2]["error"] == 99.0  # read, not made again
    assert len(table.rows) == 6


def test_a_corrupt_line_is_reported_with_its_number_and_its_cell_made_again(cheap_cells, tmp_path):
    out = tmp_path / "cells.jsonl"
    run_cells(["iris"], ["euclidean"], 3, out=out)
    lines = out.read_text().splitlines()
    lines[2] = lines[2][:40]
    lines[3] = json.dumps({"kind": "cell", "task": "iris", "sampling": 2, "method": "euclidean"})
    out.write_text("\n".join(lines))
    table = run_cells(["iris"], ["euclidean"], 3, out=out, resume=True)
    assert ["Line 3" in note or "Line 4" in note for note in table.notes] == [True, True]
    assert cheap_cells[3:] == [("iris", 1, "euclidean"), ("iris", 2, "euclidean")]
    assert [row["error"] for row in table.rows] == [10.0, 11.0, 12.0]


def test_an_interruption_keeps_what_is_done_and_resume_completes_it(cheap_cells, tmp_path):
    out = tmp_path / "cells.jsonl"

    def interrupt(progress):
        if progress.number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_cells(["iris"], ["euclidean"], 4, out=out, callback=interrupt)
    assert out.read_text().count('"kind": "cell"') == 2
    table = run_cells(["iris"], ["euclidean"], 4, out=out, resume=True)
    assert [row["error"] for row in table.rows] == [10.0, 11.0, 12.0, 13.0]
    assert sorted(set(cheap_cells)) == cheap_cells  # none twice


def test_retry_runs_failed_cells_again_and_no_others(cheap_cells, tmp_path):
    out = tmp_path / "cells.jsonl"
    run_cells(["iris"], ["euclidean", "gdm"], 2, out=out)
    run_cells(["iris"], ["euclidean", "gdm"], 2, out=out, resume=True)
    assert len(cheap_cells) == 4
    run_cells(["iris"], ["euclidean", "gdm"], 2, out=out, resume=True, retry=True)
    assert cheap_cells[4:] == [("iris", 0, "gdm"), ("iris", 1, "gdm")]


def test_a_file_is_not_overwritten_nor_mixed_with_another_protocol(cheap_cells, tmp_path):
    out = tmp_path / "cells.jsonl"
    run_cells(["iris"], ["euclidean"], 1, out=out)
    with pytest.raises(FileExistsError, match="--resume"):
        run_cells(["iris"], ["euclidean"], 1, out=out)
    with pytest.raises(ValueError, match="scaling=None, not standard"):
        run_cells(["iris"], ["euclidean"], 1, Protocol("standard"), out=out, resume=True)


def test_progress_counts_up_and_estimates_the_time_left(cheap_cells):
    told = []
    run_cells(["iris"], ["euclidean", "itml"], 2, callback=told.append)
    assert [(p.number, p.total) for p in told] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert [p.seconds_left for p in told] == [0.75, 0.5, 0.25, 0.0]


def test_the_estimate_knows_the_workers_and_the_cap():
    keys = [("iris", s, "gdm") for s in range(4)]
    row = {"task": "iris", "sampling": 0, "method": "gdm", "outcome": "done", "seconds": 3.0}
    for cap, n_jobs, seconds in ((100.0, 1, 9.0), (100.0, 2, 4.5), (5.0, 2, 1.0)):
        ledger = Ledger(keys, {keys[0]: row}, cap, n_jobs)
        assert ledger.estimate() == pytest.approx(seconds)


# The tables


def cell(task, method, sampling, error, outcome="done", seconds=1.0, detail=""):
    key = {"task": task, "method": method, "sampling": sampling}
    return key | {"outcome": outcome, "error": error, "seconds": seconds, "detail": detail}


def test_closed_form_of_a_summary():
    rows = [cell("iris", "euclidean", s, e, seconds=e) for s, e in enumerate([8.0, 9.0, 13.0])]
    (summary,) = summarise(rows)
    assert summary.mean == pytest.approx(10.0)
    assert summary.standard_error == pytest.approx(np.sqrt((4 + 1 + 9) / 2 / 3))
    apart = (10.0 - 9.58) / np.sqrt(14 / 6 + 0.73**2)
    assert summary.difference == pytest.approx(apart)
    assert summary.seconds == pytest.approx(10.0)
    assert (summary.printed, summary.printed_error) == (9.58, 0.73)


def test_boldface_agrees_with_the_unpaired_t_test_of_scipy():
    rng = np.random.default_rng(0)
    seen = set()
    for shift in np.linspace(0.0, 3.0, 13):
        best, other = rng.normal(10.0, 2.0, size=20), rng.normal(10.0 + shift, 3.0, size=15)
        if other.mean() < best.mean():
            best, other = other, best
        bold = "other" in mark_best({"best": best, "other": other})
        assert bold == (ttest_ind(best, other).pvalue >= 0.05)
        seen.add(bold)
    assert seen == {True, False}


def test_the_paired_t_test_agrees_with_scipys_and_sees_what_the_unpaired_one_does_not():
    rng = np.random.default_rng(1)
    seen = set()
    for shift in np.linspace(0.0, 3.0, 61):
        hard = rng.normal(10.0, 4.0, size=5)  # some samplings are hard for both
        a, b = hard + rng.normal(size=5), hard + shift + rng.normal(size=5)
        tied = are_comparable(a, b), are_comparable(a, b, paired=True)
        assert tied == (ttest_ind(a, b).pvalue >= 0.05, ttest_rel(a, b).pvalue >= 0.05)
        seen.add(tied)
    assert seen >= {(True, True), (True, False)}


def test_boldface_without_variance_or_with_one_sampling():
    flat = np.full(4, 5.0)
    assert mark_best({"a": flat, "b": flat.copy(), "c": flat + 1.0}) == {"a", "b"}
    assert mark_best({"a": np.array([5.0]), "b": np.array([5.1])}) == {"a"}
    assert mark_best({}) == set()


def test_table_2_shows_means_boldface_the_paper_and_what_is_missing():
    rows = [cell("iris", "euclidean", s, 20.0 + s % 2) for s in range(10)]
    rows += [cell("iris", "itml", s, 5.0 + s % 2) for s in range(10)]
    rows += [cell("iris", "lmnn", s, 5.1 + s % 2) for s in range(9)]
    rows += [cell("iris", "lmnn", 9, None, "failed", detail="planted trouble")]
    rows += [cell("iris", "gdm", s, None, "cut off", detail="spent") for s in range(10)]
    rows += [cell("mnist-1-7", "euclidean", s, 10.0) for s in range(2)]
    summaries = summarise(rows)
    upper = {row[""]: row for row in table2(summaries)[0].rows}
    assert upper["Euclidean"]["iris"].startswith("20.50 ± 0.17<br>9.58 ± 0.73 (+14.6)")
    assert upper["ITML"]["iris"].startswith("**5.50 ± 0.17**<br>5.57 ± 0.53 (-0.1)")
    assert upper["LMNN"]["iris"].startswith("**5.54 ± 0.18** (9 of 10)<br>9.81 ± 0.79")
    assert upper["GDM"]["iris"] == "cut off<br>8.95 ± 0.71"
    assert upper["GDM"]["MNIST 1,7"] == ""
    assert upper["Euclidean"]["MNIST 1,7"] == "**10.00 ± 0.00**<br>10.42 ± 0.67 (-0.6)"
    reasons = {row["method"]: row for row in table2_reasons(summaries).rows}
    assert reasons["LMNN"]["first reason"] == "planted trouble"
    assert (reasons["GDM"]["done"], reasons["GDM"]["cut off"]) == (0, 10)


def test_table_2_shows_a_single_sampling_and_a_method_of_ones_own_without_a_comparison():
    rows = [cell("iris", "euclidean", 0, 9.0), cell("iris", "mine", 0, 8.0)]
    shown = {row[""]: row["iris"] for row in table2(summarise(rows))[0].rows}
    assert shown["Euclidean"] == "9.00<br>9.58 ± 0.73"
    assert shown["mine"] == "**8.00**"


def test_table_2_has_a_block_for_every_six_tasks():
    rows = [cell(task, "euclidean", s, 9.0 + s) for task in TASKS for s in (0, 1)]
    blocks = table2(summarise(rows))
    titles = [task.title for task in TASKS.values()]
    assert [block.columns[1:] for block in blocks] == [titles[:6], titles[6:]]


def test_table_1_prints_ours_beside_the_papers(invented_images):
    rows = {row["task"]: row for row in table1(find_tasks(["iris", "usps-1-10-40"]), 200).rows}
    assert rows["USPS 1-10,40"]["E#S"] == rows["USPS 1-10,40"]["E#S printed"] == "60.00"
    assert rows["USPS 1-10,40"]["#U"] == "79020"
    assert rows["iris"]["E#S printed"] == "15.10"
    assert abs(float(rows["iris"]["E#S"]) - 14.4) < 0.6
    assert to_csv(list(rows.values())).splitlines()[2].startswith('"USPS 1-10,40",10,64,400,2500')


def test_scaling_evidence_names_the_scaling_nearest_to_the_paper():
    (row,) = scaling_evidence(find_tasks(["wine"]), 5, ["unit", "none"]).rows
    assert row["nearest"] == "unit"  # unscaled wine errs by a third, the paper prints 12.93
    assert row["printed"] == "12.93 ± 0.83"
    assert "+" in row["none"]


# The judgement


def invented_table(task="iris", n=12, seed=0, **means):
    """Cells of all methods, some samplings hard for all; `means` are the errors of some methods."""
    rng = np.random.default_rng(seed)
    hard = rng.normal(0.0, 2.0, size=n)
    return [
        cell(task, method, s, means.get(method, 15.0) + hard[s] + rng.normal(0.0, 0.5))
        for method in METHODS
        for s in range(n)
    ]


def column(rows, method):
    return np.array([row["error"] for row in rows if row["method"] == method])


def test_closed_form_of_the_judgement():
    rows = invented_table(recommended=9.0, euclidean=13.0, itml=8.2)
    (verdict,) = judge(rows)
    own, reference = column(rows, "recommended"), column(rows, "euclidean")
    s, s0 = own.std(ddof=1) / np.sqrt(12), reference.std(ddof=1) / np.sqrt(12)
    assert verdict.mean == pytest.approx(own.mean())
    assert verdict.largest == pytest.approx(5.31 + 2 * np.sqrt(s**2 + 0.43**2))
    assert verdict.improvement == pytest.approx(reference.mean() - own.mean())
    squares = s**2 + s0**2 + 0.43**2 + 0.73**2
    assert verdict.least == pytest.approx(9.58 - 5.31 - 2 * np.sqrt(squares))
    r = np.corrcoef(own, reference)[0, 1]
    ours = np.var(reference - own, ddof=1) / 12
    paired = np.sqrt(ours + 0.43**2 + 0.73**2 - 2 * r * 0.43 * 0.73)
    assert verdict.least_paired == pytest.approx(9.58 - 5.31 - 2 * paired)
    assert verdict.least < verdict.least_paired  # stricter
    assert verdict.best == "itml"
    assert verdict.is_best == (ttest_ind(own, column(rows, "itml")).pvalue >= 0.05)
    assert verdict.is_best_paired == (ttest_rel(own, column(rows, "itml")).pvalue >= 0.05)


def test_a_column_that_does_not_vary_is_judged_as_uncorrelated():
    rows = invented_table(recommended=9.0, euclidean=13.0)
    rows = [row | {"error": 13.0} if row["method"] == "euclidean" else row for row in rows]
    (verdict,) = judge(rows)
    assert verdict.least_paired == verdict.least
    s = column(rows, "recommended").std(ddof=1) / np.sqrt(12)
    squares = s**2 + 0.43**2 + 0.73**2
    assert verdict.least == pytest.approx(9.58 - 5.31 - 2 * np.sqrt(squares))


@pytest.mark.parametrize(
    ("own", "euclidean", "near", "near_paired"),
    [
        (5.3, 6.0, True, True),  # the error itself
        (20.0, 24.0, True, True),  # the improvement alone
        (20.0, 22.5, True, False),  # only by the wider standard error
        (20.0, 20.0, False, False),
    ],
)
def test_the_error_or_the_improvement_is_enough(own, euclidean, near, near_paired):
    (verdict,) = judge(invented_table(recommended=own, euclidean=euclidean))
    assert (verdict.agrees, verdict.agrees_paired) == (near, near_paired)


def test_the_recommended_one_is_best_tied_or_beaten():
    said = {}
    for error in (5.0, 9.0, 12.0):
        row = judgement_table(judge(invented_table(recommended=error, gdm=8.0))).rows[0]
        said[error] = row["smallest mean"], row["best or tied"], row["best or tied, paired test"]
    assert said == {
        5.0: ("recommended", "yes", "yes"),
        9.0: ("GDM", "yes", "no"),
        12.0: ("GDM", "no", "no"),
    }


def test_verdicts_and_duels_are_counted_over_the_tasks():
    rows = invented_table("iris", recommended=5.0, gdm=8.0)
    rows += invented_table("balance", recommended=40.0, gdm=8.0)
    count = judgement_table(judge(rows)).rows[-1]
    assert count["task"] == "of 2"
    assert (count["near the paper"], count["best or tied"]) == ("1", "1")
    duels = {row["method"]: row for row in duel_table(rows).rows}
    assert duels["GDM"]["better, tied, worse"] == "1, 0, 1"
    assert duels["recommended"]["better, tied, worse, paired"] == "0, 2, 0"
    assert float(duels["GDM"]["mean error"]) == pytest.approx(column(rows, "gdm").mean(), abs=0.01)
    assert duels["GDM"]["printed"] == f"{(8.95 + 22.89) / 2:.2f}"


def test_a_task_that_lacks_a_cell_is_not_judged():
    rows = invented_table()
    assert judge(rows)
    assert judge(rows[:-1]) == []
    assert judge([row for row in rows if row["method"] != "nca"]) == []
    assert judge([row for row in rows if row["sampling"] == 0]) == []
    failed = [row | {"outcome": "failed", "error": None} for row in rows[:1]]
    assert judge(failed + rows[1:]) == []


def test_errors_csv_keeps_every_error_and_every_gap():
    rows = [cell("iris", m, s, 100.0 * (s + k) / 38) for k, m in enumerate("ab") for s in (0, 1)]
    rows += [cell("wine", "a", 0, None, "failed")]
    again = read_errors(errors_files(rows)["errors.csv"])
    found = {(r["task"], r["method"], r["sampling"]): r["error"] for r in again}
    for row in rows:
        assert found[row["task"], row["method"], row["sampling"]] == (
            None if row["error"] is None else pytest.approx(row["error"])
        )
    with pytest.raises(ValueError, match=r"Line 3 is not one of errors\.csv"):
        read_errors("task,sampling,test points,a\niris,0,38,2\niris,1,38,many\n")


def test_the_command_judges_under_table_2_and_again_from_its_errors(monkeypatch, tmp_path):
    def fake(key, method, protocol, time_limit):
        row = dict(zip(("task", "sampling", "method"), key, strict=True)) | EMPTY
        wrong = key[1] + (1 if key[2] == "recommended" else 4)
        return row | {"outcome": "done", "error": 100.0 * wrong / 38, "seconds": 0.1}

    monkeypatch.setattr(runner, "run_cell", fake)
    done = run("table2", "--tasks", "iris", "--samplings", 3, "--out", tmp_path)
    assert done.exit_code == 0, done.output
    assert "The recommended configuration, judged" in done.output
    first = (tmp_path / "judgement.md").read_text()
    assert "| of 1 |" in first
    (tmp_path / "judgement.md").unlink()
    (tmp_path / "cells.jsonl").unlink()
    again = run("judgement", "--out", tmp_path)
    assert again.exit_code == 0, again.output
    assert (tmp_path / "judgement.md").read_text() == first


def test_the_command_says_what_a_judgement_lacks(cheap_cells, tmp_path):
    nothing = run("judgement", "--out", tmp_path)
    assert nothing.exit_code == 2
    assert "reproduce table2 makes it" in words(nothing.output)
    few = run(
        *("table2", "--tasks", "iris", "--methods", "euclidean,recommended"),
        *("--samplings", 2, "--out", tmp_path),
    )
    assert few.exit_code == 0, few.output
    assert not (tmp_path / "judgement.md").exists()
    result = run("judgement", "--out", tmp_path)
    assert result.exit_code == 2
    assert "no task with every method" in words(result.output)


# The results that are committed


def test_the_committed_judgement_and_means_are_those_of_the_committed_errors(repository):
    folder = repository / "examples" / "reproduction"
    assert judgement_again(folder)["judgement.md"] == (folder / "judgement.md").read_text("utf-8")
    rows = read_errors((folder / "errors.csv").read_text("utf-8"))
    assert len(rows) == 12 * 50 * len(METHODS)
    with (folder / "table2.csv").open(encoding="utf-8") as file:
        printed = {(line["task"], line["method"]): line for line in csv.DictReader(file)}
    for summary in summarise([row | {"seconds": 0.0, "detail": ""} for row in rows]):
        line = printed[summary.task, summary.method]
        assert float(line["mean"]) == pytest.approx(summary.mean)
        assert float(line["standard_error"]) == pytest.approx(summary.standard_error)
        assert line["is_best"] == str(summary.is_best)


def test_the_committed_readmes_say_what_the_judgement_says(repository):
    folder = repository / "examples" / "reproduction"
    rows = read_errors((folder / "errors.csv").read_text("utf-8"))
    count = judgement_table(judge(rows)).rows[-1]
    text = words((folder / "README.md").read_text("utf-8"))
    assert f"near the paper on {count['near the paper']} of 12" in text
    assert f"paired standard error {count['near, paired errors']} of 12" in text
    assert f"best or tied on {count['best or tied']} of 12" in text
    assert f"paired t-test {count['best or tied, paired test']} of 12" in text
    duels = {row["method"]: row for row in duel_table(rows).rows}
    hyper, own = duels["SERAPH hyper"], duels["recommended"]
    better, tied, worse = hyper["better, tied, worse"].split(", ")
    front = words((repository / "README.md").read_text("utf-8"))
    for page in (text, front):
        assert f"{own['mean error']} % against {hyper['mean error']} %" in page
        assert f"better on {better} tasks, tied on {tied}, worse on {worse}" in page


def test_the_code_of_the_committed_readme_prints_what_stands_below_it(
    repository, monkeypatch, capsys
):
    folder = repository / "examples" / "reproduction"
    monkeypatch.chdir(folder)
    text = (folder / "README.md").read_text("utf-8")
    ((code, output),) = re.findall(r"```python\n(.*?)```\s*```text\n(.*?)```", text, re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out == output


def test_files_the_committed_readme_points_at_exist(repository):
    folder = repository / "examples" / "reproduction"
    linked = re.findall(r"\]\(([^)#:]+)\)", (folder / "README.md").read_text("utf-8"))
    assert len(linked) > 10
    for path in linked:
        assert (folder / path).exists(), path


def test_the_committed_results_are_small_and_name_no_machine(repository):
    files = list((repository / "examples" / "reproduction").iterdir())
    assert {path.suffix for path in files} == {".md", ".csv", ".png"}
    for path in files:
        assert path.stat().st_size < 300_000, path.name
        if path.suffix != ".png":
            text = path.read_text("utf-8")
            assert not any(root in text for root in ("/tmp", "/home", "/work", "/root")), path.name


# Figures 1 and 2


@pytest.mark.parametrize("seed", range(3))
def test_figure_1_gdm_takes_the_vertical_and_posterior_sparsity_the_horizontal_feature(seed):
    sampling = artificial_set(1, seed=seed)
    euclidean, gdm, posterior = learn_panels(1, sampling)
    assert gdm.metric[1, 1] > 1e4 * gdm.metric[0, 0]
    assert gdm.error > 40.0
    assert posterior.metric[0, 0] > 2.0 * posterior.metric[1, 1]
    assert posterior.error <= 1.0 < euclidean.error
    pairs = PairSet.from_labels(sampling.X, sampling.y)
    assert (len(pairs.similar), len(pairs.dissimilar)) == (2, 4)
    without = stop_early(pairs, 0.0, 0.0).metric
    assert without[1, 1] > without[0, 0]  # it is the unlabeled pairs that turn the metric


@pytest.mark.parametrize("seed", range(3))
def test_figure_2_projection_sparsity_leaves_one_nearly_horizontal_direction(seed):
    euclidean, gdm, projection = learn_panels(2, artificial_set(2, seed=seed))
    assert gdm.metric[1, 1] > 1e4 * gdm.metric[0, 0]
    assert gdm.error > 40.0
    eigenvalues, vectors = np.linalg.eigh(projection.metric)
    assert abs(eigenvalues[0]) < 1e-8 * eigenvalues[1]
    assert abs(vectors[0, 1]) > 0.95
    assert projection.error <= 3.0 < euclidean.error


def test_figure_2_without_an_answer_says_what_the_solver_said(monkeypatch):
    monkeypatch.setattr(figures, "solve_m_step", without_metric(solve_m_step))
    with pytest.raises(RuntimeError, match="The M-step of Figure 2 failed: planted trouble"):
        learn_panels(2)


@pytest.mark.slow
def test_figures_1_and_2_are_legible_and_mark_exactly_the_errors(tmp_path):
    for number in (1, 2):
        sampling = artificial_set(number)
        panels = learn_panels(number, sampling)
        path = tmp_path / "figure.png"
        figure = plot_sparsity(number, sampling, panels, path)
        assert_legible(figure)
        assert [ax.get_title()[:3] for ax in figure.axes] == [f"({c})" for c in "abcdef"]
        for ax, panel in zip(figure.axes[1::2], panels, strict=True):
            assert len(ax.lines[0].get_xdata()) == round(panel.error)  # of 100 points
        assert path.stat().st_size < 300_000


@pytest.mark.parametrize("tasks", [["iris"], list(TASKS)])
@pytest.mark.parametrize("methods", [["gdm"], list(METHODS)])
def test_figure_3_is_legible_and_draws_the_mean_seconds(tasks, methods, tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        cell(task, method, s, 9.0, seconds=10.0 ** rng.uniform(-2, 2))
        for task in tasks
        for method in methods
        for s in range(2)
    ]
    figure = plot_times(summarise(rows), tmp_path / "figure.png")
    assert_legible(figure, at_least=4)
    means = sorted(s.seconds for s in summarise(rows))
    lines = [line for line in figure.axes[0].lines if line.get_label() in drawn_titles(methods)]
    assert sorted(y for line in lines for y in line.get_ydata()) == pytest.approx(means)
    assert (tmp_path / "figure.png").stat().st_size < 300_000


def drawn_titles(methods):
    return {METHODS[name].title for name in methods}


# The command


def test_the_command_makes_table_2_and_figure_3_of_the_same_cells(tmp_path):
    asked = ("--tasks", "iris", "--methods", "euclidean,early-hyper", "--samplings", 2)
    done = run("table2", *asked, "--out", tmp_path)
    assert done.exit_code == 0, done.output
    text = (tmp_path / "table2.md").read_text()
    assert "| SERAPH hyper, early |" in text
    assert "<br>9.58 ± 0.73" in text
    header, *lines = (tmp_path / "table2.csv").read_text().splitlines()
    assert header.startswith("task,method,n_done")
    assert len(lines) == 2
    before = (tmp_path / "cells.jsonl").read_text().count('"kind": "cell"')
    again = run("figure3", *asked, "--out", tmp_path, "--resume")
    assert again.exit_code == 0, again.output
    assert (tmp_path / "cells.jsonl").read_text().count('"kind": "cell"') == before == 4
    assert (tmp_path / "figure3.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "figure3.csv").read_text().startswith("method,iris")


@pytest.mark.parametrize("part", ["table1", "figure1", "figure2", "protocol"])
def test_the_command_writes_the_other_parts(part, tmp_path):
    done = run(part, "--tasks", "iris", "--samplings", 2, "--out", tmp_path)
    assert done.exit_code == 0, done.output
    endings = {"table1": (".md", ".csv"), "protocol": (".md",)}.get(part, (".md", ".csv", ".png"))
    for ending in endings:
        path = tmp_path / (part + ending)
        assert 0 < path.stat().st_size < 300_000


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("table3",), "table3"),
        (("table2", "--tasks", "tulips"), "no task 'tulips'"),
        (("table2", "--methods", "svm"), "no method 'svm'"),
        (("table2", "--methods", "own=nowhere:f"), "cannot be imported"),
        (("table2", "--tasks", "iris", "--scaling", "metric"), "unit, pixels"),
        (("table2", "--samplings", "0"), "'--samplings'"),
        (("table2", "--tasks", "iris", "--methods", "euclidean", "--n-jobs", "0"), "n_jobs"),
        (("table2", "--tasks", "usps-1-5-20", "--data-dir", "nowhere"), "usps"),
    ],
)
def test_bad_input_is_answered_in_words_with_exit_code_2(arguments, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SERAPH_CVX_DATA", raising=False)
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in words(result.output)
    assert "Traceback" not in result.output


def test_the_command_says_how_to_go_on_after_an_interruption(tmp_path, monkeypatch):
    def interrupted(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run_cells", interrupted)
    result = run("table2", "--tasks", "iris", "--out", tmp_path)
    assert result.exit_code == 130
    assert "--resume goes on" in words(result.output)


def test_the_command_ends_with_1_where_cells_failed_and_says_so(cheap_cells, tmp_path):
    asked = ("--tasks", "iris", "--methods", "euclidean,gdm", "--samplings", 2)
    result = run("table2", *asked, "--out", tmp_path)
    assert result.exit_code == 1
    assert "Of 4 cells 2 failed and 0 were cut off" in words(result.output)
    assert "What is not done" in (tmp_path / "table2.md").read_text()


def test_without_matplotlib_the_numbers_are_written_and_the_missing_picture_is_told(
    tmp_path, monkeypatch
):
    for name in list(sys.modules):
        if name.startswith(("seraph_cvx.plots", "matplotlib.")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delattr(seraph_cvx, "plots")
    result = run("figure2", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "No picture: matplotlib is not installed" in words(result.output)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figure2.csv", "figure2.md"]


# Evidence that takes minutes


@pytest.mark.slow
def test_all_methods_on_the_tasks_without_files_within_four_minutes(tmp_path):
    started = time.perf_counter()
    table = run_cells(list(UNFILED), None, 3, out=tmp_path / "cells.jsonl", n_jobs=2)
    assert time.perf_counter() - started < 240.0
    alone = facts_of(run_cells(["wine"], ["seraph-proj"], 3))
    assert [row for row in facts_of(table) if row in alone] == alone
    assert len(table.rows) == 4 * len(METHODS) * 3
    assert {row["outcome"] for row in table.rows} == {"done"}, table2_reasons(
        summarise(table.rows)
    ).to_markdown()


@pytest.mark.slow
def test_the_euclidean_row_of_the_images_is_the_papers(data_folder):
    """Pixels in [0, 1], stratified: within three standard errors on all six image tasks."""
    table = scaling_evidence(find_tasks(IMAGES), 50, ["pixels"], data_folder)
    for row in table.rows:
        apart = float(row["pixels"].split("(")[1].split()[0])
        assert abs(apart) < 3.0, row
