"""Evidence: tables, boldface and judgment are counted right, and so are the committed ones."""

from __future__ import annotations

import csv
import re

import numpy as np
import pandas as pd
import pytest
from command_line import words
from evidence import runs
from evidence.methods import METHODS
from evidence.results import (
    by_method,
    comparable_to,
    duel_table,
    errors_csv,
    judge,
    judgment_again,
    judgment_table,
    mark_best,
    read_errors,
    summarize,
    table2,
    table2_reasons,
)
from evidence.runs import EMPTY
from evidence.tasks import TASKS
from reproduction_programs import invented_table, reproduce, run_row
from scipy.stats import ttest_ind, ttest_rel

pytestmark = pytest.mark.once

# Tables


def test_boldface_and_the_paired_test_are_those_of_scipy():
    rng = np.random.default_rng(1)
    seen = set()
    for shift in np.linspace(0.0, 3.0, 61):
        hard = rng.normal(10.0, 4.0, size=5)  # some samplings are hard for both
        a, b = hard + rng.normal(size=5), hard + shift + rng.normal(size=5)
        errors = pd.DataFrame({"a": a, "b": b})
        tied = tuple(comparable_to(errors, "b", paired)["a"] for paired in (False, True))
        assert tied == (ttest_ind(a, b).pvalue >= 0.05, ttest_rel(a, b).pvalue >= 0.05)
        assert (len(mark_best(errors)) == 2) == tied[0]
        seen.add(tied)
    assert seen >= {(True, True), (True, False)}


def test_boldface_without_variance_or_with_one_sampling():
    flat = pd.DataFrame({"a": [5.0] * 4, "b": [5.0] * 4, "c": [6.0] * 4, "d": [np.nan] * 4})
    assert mark_best(flat) == {"a", "b"}
    assert mark_best(pd.DataFrame({"a": [5.0], "b": [5.1]})) == {"a"}
    assert mark_best(pd.DataFrame()) == set()
    rising = 100.0 * np.arange(5) / 38
    shifted = pd.DataFrame({"a": rising + 300 / 38, "b": rising})  # equal up to rounding
    assert not comparable_to(shifted, "b", paired=True)["a"]


def test_table_2_shows_means_boldface_the_paper_and_what_is_missing():
    rows = [run_row("iris", "euclidean", s, 20.0 + s % 2) for s in range(10)]
    rows += [run_row("iris", "itml", s, 5.0 + s % 2) for s in range(10)]
    rows += [run_row("iris", "lmnn", s, 5.1 + s % 2) for s in range(9)]
    rows += [run_row("iris", "lmnn", 9, None, "failed", detail="planted trouble")]
    rows += [run_row("iris", "gdm", s, None, "cut off", detail="spent") for s in range(10)]
    rows += [run_row("iris", "mine", 0, 4.0)]
    rows += [run_row("mnist-1-7", "euclidean", s, 10.0) for s in range(2)]
    rows += [run_row("mnist-1-7", "nca", 0, 11.0)]
    summaries = summarize(rows)
    (table,) = table2(summaries)
    cells = {row[""]: (row["iris"], row["MNIST 1,7"]) for row in table.rows}
    ten = "**10.00 ± 0.00**<br>10.42 ± 0.67 (-0.6)"
    assert cells["Euclidean"] == ("20.50 ± 0.17<br>9.58 ± 0.73 (+14.6)", ten)
    assert cells["ITML"] == ("5.50 ± 0.17<br>5.57 ± 0.53 (-0.1)", "")
    assert cells["LMNN"][0].startswith("5.54 ± 0.18 (9 of 10)<br>9.81 ± 0.79")
    assert cells["GDM"][0] == "cut off<br>8.95 ± 0.71"
    assert cells["mine"][0] == "**4.00**"  # of one sampling, without a row of the paper
    assert cells["NCA"][1] == "11.00<br>10.42 ± 0.67"
    reasons = {row["method"]: row for row in table2_reasons(summaries).rows}
    assert reasons["LMNN"]["first reason"] == "planted trouble"
    assert (reasons["GDM"]["done"], reasons["GDM"]["cut off"]) == (0, 10)


def test_errors_csv_keeps_every_error_and_every_gap():
    rows = [run_row("iris", m, s, 100.0 * (s + k) / 38) for k, m in enumerate("ab") for s in (0, 1)]
    rows += [run_row("wine", "a", 0, None, "failed")]
    again = read_errors(errors_csv(rows))
    key = ["task", "sampling"]
    errors = [by_method(pd.DataFrame(runs), key) for runs in (again, rows)]
    pd.testing.assert_frame_equal(*errors)
    with pytest.raises(ValueError, match=r"Line 3 is not one of errors\.csv"):
        read_errors("task,sampling,test points,a\niris,0,38,2\niris,1,38,many\n")


# The judgment


def column(rows, method):
    return np.array([row["error"] for row in rows if row["method"] == method])


def test_closed_form_of_the_judgment():
    rows = invented_table(recommended=9.0, euclidean=13.0, itml=8.2)
    (verdict,) = judge(rows)
    own, reference = column(rows, "recommended"), column(rows, "euclidean")
    s, s0 = own.std(ddof=1) / np.sqrt(12), reference.std(ddof=1) / np.sqrt(12)
    assert verdict["at most"] == pytest.approx(5.31 + 2 * np.hypot(s, 0.43))
    squares = s**2 + s0**2 + 0.43**2 + 0.73**2
    assert verdict["at least"] == pytest.approx(9.58 - 5.31 - 2 * np.sqrt(squares))
    r = np.corrcoef(own, reference)[0, 1]
    ours = np.var(reference - own, ddof=1) / 12
    paired = np.sqrt(ours + 0.43**2 + 0.73**2 - 2 * r * 0.43 * 0.73)
    assert verdict["at least, paired"] == pytest.approx(9.58 - 5.31 - 2 * paired)
    assert verdict["at least"] < verdict["at least, paired"]  # stricter
    assert verdict["smallest mean"] == "ITML"
    best = column(rows, "itml")
    assert verdict["best or tied"] == (ttest_ind(own, best).pvalue >= 0.05)
    assert verdict["best or tied, paired test"] == (ttest_rel(own, best).pvalue >= 0.05)
    flat = [row | {"error": 13.0} if row["method"] == "euclidean" else row for row in rows]
    (uncorrelated,) = judge(flat)
    assert uncorrelated["at least, paired"] == uncorrelated["at least"]


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
    assert (verdict["near the paper"], verdict["near, paired errors"]) == (near, near_paired)


def test_verdicts_and_duels_are_counted_over_the_tasks():
    rows = invented_table("iris", recommended=5.0, gdm=8.0)
    rows += invented_table("balance", recommended=40.0, gdm=8.0)
    count = judgment_table(judge(rows)).rows[-1]
    assert count["task"] == "of 2"
    assert (count["near the paper"], count["best or tied"]) == ("1", "1")
    duels = {row["method"]: row for row in duel_table(rows).rows}
    assert duels["GDM"]["better, tied, worse"] == "1, 0, 1"
    assert duels["recommended"]["better, tied, worse, paired"] == "0, 2, 0"
    assert float(duels["GDM"]["mean error"]) == pytest.approx(column(rows, "gdm").mean(), abs=0.01)
    assert duels["GDM"]["printed"] == f"{(8.95 + 22.89) / 2:.2f}"
    tied = judgment_table(judge(invented_table(recommended=9.0, gdm=8.0))).rows[0]
    assert (tied["best or tied"], tied["best or tied, paired test"]) == ("yes", "no")
    blocks = table2(summarize([row for task in TASKS for row in invented_table(task, n=2)]))
    assert [len(block.columns) for block in blocks] == [7, 7]


def test_a_task_that_lacks_a_cell_is_not_judged():
    rows = invented_table()
    assert judge(rows)
    for fewer in (
        rows[:-1],
        [row for row in rows if row["method"] != "nca"],
        [row for row in rows if row["sampling"] == 0],
        [rows[0] | {"outcome": "failed", "error": None}, *rows[1:]],
    ):
        assert judge(fewer) == []


def test_the_program_judges_under_table_2_and_again_from_its_errors(monkeypatch, tmp_path):
    def fake(key, method, protocol, time_limit):
        row = dict(zip(("task", "sampling", "method"), key, strict=True)) | EMPTY
        wrong = key[1] + (1 if key[2] == "recommended" else 4)
        return row | {"outcome": "done", "error": 100.0 * wrong / 38, "seconds": 0.1}

    monkeypatch.setattr(runs, "run_method", fake)
    done = reproduce("table2", "--tasks", "iris", "--samplings", 3, "--out", tmp_path)
    assert done.exit_code == 0, done.output
    assert "The recommended configuration, judged" in done.output
    first = (tmp_path / "judgment.md").read_text()
    assert "| of 1 |" in first
    (tmp_path / "judgment.md").unlink()
    again = reproduce("judgment", "--out", tmp_path)
    assert again.exit_code == 0, again.output
    assert (tmp_path / "judgment.md").read_text() == first


def test_the_program_says_what_a_judgment_lacks(cheap_runs, tmp_path):
    nothing = reproduce("judgment", "--out", tmp_path)
    assert nothing.exit_code == 2
    assert "run run.py table2 first" in words(nothing.output)
    asked = ("--tasks", "iris", "--methods", "euclidean,recommended", "--samplings", 2)
    assert reproduce("table2", *asked, "--out", tmp_path).exit_code == 0
    assert not (tmp_path / "judgment.md").exists()
    result = reproduce("judgment", "--out", tmp_path)
    assert result.exit_code == 2
    assert "no task with every method" in words(result.output)


# The results that are committed


@pytest.fixture
def folder(repository):
    return repository / "examples" / "reproduction"


def test_the_committed_judgment_and_means_are_those_of_the_committed_errors(folder):
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


def test_the_committed_files_are_small_and_name_no_machine(folder):
    for path in folder.glob("*.*"):
        assert path.stat().st_size < 300_000, path.name
        if path.suffix in (".md", ".csv"):
            text = path.read_text("utf-8")
            assert not any(root in text for root in ("/tmp", "/home", "/work", "/root")), path.name
