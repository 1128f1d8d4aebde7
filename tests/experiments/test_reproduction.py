"""Evidence: `run.py` runs, resumes, tells of failures; the numbers on its pages are the rows'."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest
from command_line import words
from evidence.methods import METHODS
from evidence.results import judge, judgment_again, read_errors, read_times, summarize
from evidence.runs import run_methods
from evidence.tasks import (
    PRINTED,
    TASKS,
    draw_indices,
    draw_sampling,
    find_task,
    load_task,
    nearest_neighbor_error,
)
from reproduction_programs import invented_table, reproduce
from scipy.stats import ttest_ind, ttest_rel
from sklearn.neighbors import KNeighborsClassifier

pytestmark = pytest.mark.once


def sampling_of(name, seed):
    return draw_sampling(find_task(name), *load_task(find_task(name)), seed=seed)


# Tables as typed, the protocol, the methods


def test_tables_1_and_2_are_typed_consistently():
    """#S + #D is the number of pairs of labeled points, and #U all other pairs."""
    assert len(TASKS) == 12
    for task in TASKS.values():
        labeled = task.n_labels * (task.n_labels - 1) / 2
        assert task.similar + task.dissimilar == pytest.approx(labeled), task.name
        assert task.unlabeled == task.n_training * (task.n_training - 1) / 2 - labeled, task.name
    assert len(PRINTED) == 11 * 12 - 5  # GDM has five dashes
    assert PRINTED["SERAPH_hyper", "mnist-3-5-8"] == (35.71, 0.84)
    rows = list(dict.fromkeys(row for row, _ in PRINTED))
    assert [method.paper_row for method in METHODS.values()][:11] == rows


def test_a_sampling_has_the_sizes_of_table_1_and_is_judged_by_its_nearest_labeled_points():
    task = find_task("wine")
    y = load_task(task)[1]
    labeled, unlabeled, test = draw_indices(task, y, np.random.default_rng(3))
    assert (len(labeled), len(test)) == (task.n_labels, task.n_test)
    assert len({*labeled, *unlabeled, *test}) == task.n_training + task.n_test
    sampling, L = sampling_of("wine", 0), np.random.default_rng(1).normal(size=(5, 13))
    known = sampling.labeled
    nearest = KNeighborsClassifier(1).fit(sampling.X[known] @ L.T, sampling.y[known])
    right = nearest.score(sampling.X_test @ L.T, sampling.y_test)
    assert nearest_neighbor_error(sampling, L) == pytest.approx(100.0 * (1.0 - right))


@pytest.mark.parametrize("name", METHODS)
def test_every_method_learns_a_finite_metric_from_a_sampling_of_iris(name):
    sampling = sampling_of("iris", 1)
    L = METHODS[name].learn(sampling.X, sampling.y, 0)
    assert np.all(np.isfinite(L))
    assert nearest_neighbor_error(sampling, L) < 40.0


# Tables of rows


def test_closed_form_of_the_judgment():
    rows = invented_table(recommended=9.0, euclidean=13.0, itml=8.2)
    (verdict,) = judge(rows)
    own, reference, best = (
        np.array([row["error"] for row in rows if row["method"] == method])
        for method in ("recommended", "euclidean", "itml")
    )
    s, s0 = own.std(ddof=1) / np.sqrt(12), reference.std(ddof=1) / np.sqrt(12)
    assert verdict["at most"] == pytest.approx(5.31 + 2 * np.hypot(s, 0.43))
    squares = s**2 + s0**2 + 0.43**2 + 0.73**2
    assert verdict["at least"] == pytest.approx(9.58 - 5.31 - 2 * np.sqrt(squares))
    r = np.corrcoef(own, reference)[0, 1]
    ours = np.var(reference - own, ddof=1) / 12
    paired = np.sqrt(ours + 0.43**2 + 0.73**2 - 2 * r * 0.43 * 0.73)
    assert verdict["at least, paired"] == pytest.approx(9.58 - 5.31 - 2 * paired)
    assert verdict["best or tied"] == (ttest_ind(own, best).pvalue >= 0.05)
    assert verdict["best or tied, paired test"] == (ttest_rel(own, best).pvalue >= 0.05)
    assert judge(rows[:-1]) == []  # a task that lacks a cell


# Runs and the program


def test_failures_are_rows_with_their_reason_and_the_others_go_on(one_run_server, tmp_path):
    names = ("boom", "leave", "not_finite", "warn")
    planted = [f"{name}=planted_methods:{name}" for name in names]
    out = tmp_path / "cells.jsonl"
    rows = {r["method"]: r for r in run_methods(["iris"], [*planted, "euclidean"], 1, out=out).rows}
    reasons = ("ValueError: planted trouble", "exit code 3", "shape (1, 4), or not finite")
    for name, reason in zip(names[:3], reasons, strict=True):
        assert (rows[name]["outcome"], rows[name]["error"]) == ("failed", None)
        assert reason in rows[name]["detail"]
    assert rows["warn"]["warnings"] == ["UserWarning: planted doubt"]
    assert rows["warn"]["error"] == rows["euclidean"]["error"] is not None
    kinds = [json.loads(line)["kind"] for line in out.read_text().splitlines()]
    assert kinds == ["run"] + ["cell"] * 5


def test_the_program_writes_table_2_its_judgment_and_figure_3_of_the_same_runs(
    cheap_runs, tmp_path
):
    asked = ("--tasks", "iris", "--samplings", 2)
    made = reproduce("table2", *asked, "--out", tmp_path)
    assert made.exit_code == 1  # gdm fails
    assert "Of 38 runs 2 failed and 0 were cut off" in words(made.output)
    n_runs = len(cheap_runs)
    done = reproduce("figure3", "--resume", *asked, "--out", tmp_path)
    assert len(cheap_runs) == n_runs, done.output
    assert "<br>9.58 ± 0.73" in (tmp_path / "table2.md").read_text()
    assert (tmp_path / "figure3.png").read_bytes().startswith(b"\x89PNG")
    assert reproduce("judgment", "--out", tmp_path).exit_code == 2  # for gdm's sake


@pytest.mark.slow
@pytest.mark.parametrize(("part", "n_files"), [("table1", 2), ("figure1", 3), ("protocol", 1)])
def test_the_program_writes_the_other_parts(part, n_files, tmp_path):
    done = reproduce(part, "--tasks", "iris", "--samplings", 2, "--out", tmp_path)
    assert done.exit_code == 0, done.output
    assert len(list(tmp_path.iterdir())) == n_files


# The results that are committed


@pytest.fixture
def folder(repository):
    return repository / "examples" / "reproduction"


def test_the_committed_judgment_means_and_times_are_those_of_the_committed_rows(folder):
    assert judgment_again(folder)["judgment.md"] == (folder / "judgment.md").read_text("utf-8")
    rows = read_errors((folder / "errors.csv").read_text("utf-8"))
    assert len(rows) == 12 * 50 * len(METHODS)
    with (folder / "table2.csv").open(encoding="utf-8") as file:
        printed = {(line["task"], line["method"]): line for line in csv.DictReader(file)}
    for summary in summarize(rows).itertuples():
        line = printed[summary.task, summary.method]
        assert float(line["mean"]) == pytest.approx(summary.mean)
        assert float(line["standard_error"]) == pytest.approx(summary.standard_error)
        assert line["is_best"] == str(summary.is_best)
    times = read_times((folder / "figure3.csv").read_text("utf-8"))
    assert (list(times), list(times.index)) == (list(TASKS), list(METHODS))


def test_the_committed_readmes_say_what_the_judgment_says(folder):
    lines = (folder / "judgment.md").read_text("utf-8").splitlines()
    cells = {line.split(" | ")[0][2:]: line[:-2].split(" | ") for line in lines if line[:2] == "| "}
    near, near_paired, best, best_paired = cells["of 12"][-4:]
    text = words((folder / "README.md").read_text("utf-8"))
    assert f"near the paper on {near} of 12" in text
    assert f"paired standard error {near_paired} of 12" in text
    assert f"best or tied on {best} of 12" in text
    assert f"paired t-test {best_paired} of 12" in text
    hyper, own = cells["SERAPH hyper"], cells["recommended"]
    better, tied, worse = hyper[3].split(", ")
    front = words((folder.parent / "guide" / "does-it-help.md").read_text("utf-8"))
    for page in (text, front):
        assert f"{own[1]} % against {hyper[1]} %" in page
        assert f"better on {better} tasks, tied on {tied}, worse on {worse}" in page


def test_the_code_of_the_committed_readme_prints_what_stands_below_it(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    text = (folder / "README.md").read_text("utf-8")
    ((code, output),) = re.findall(r"```python\n(.*?)```\s*```text\n(.*?)```", text, re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out == output
