"""Evidence: the judgment of a reproduction is counted right, and so is the committed one."""

from __future__ import annotations

import csv
import re

import numpy as np
import pytest
from command_line import words
from evidence.results.acceptance import duel_table, judge, judgment_table
from evidence.results.documents import errors_files, judgment_again
from evidence.results.summaries import summarize
from evidence.results.tables import (
    read_errors,
)
from evidence.runs import runner
from evidence.runs.methods import METHODS
from evidence.runs.single_run import EMPTY
from reproduction_programs import invented_table, reproduce, run_row
from scipy.stats import ttest_ind, ttest_rel

# The judgment


def column(rows, method):
    return np.array([row["error"] for row in rows if row["method"] == method])


def test_closed_form_of_the_judgment():
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
        row = judgment_table(judge(invented_table(recommended=error, gdm=8.0))).rows[0]
        said[error] = row["smallest mean"], row["best or tied"], row["best or tied, paired test"]
    assert said == {
        5.0: ("recommended", "yes", "yes"),
        9.0: ("GDM", "yes", "no"),
        12.0: ("GDM", "no", "no"),
    }


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


def test_a_task_that_lacks_a_cell_is_not_judged():
    rows = invented_table()
    assert judge(rows)
    assert judge(rows[:-1]) == []
    assert judge([row for row in rows if row["method"] != "nca"]) == []
    assert judge([row for row in rows if row["sampling"] == 0]) == []
    failed = [row | {"outcome": "failed", "error": None} for row in rows[:1]]
    assert judge(failed + rows[1:]) == []


def test_errors_csv_keeps_every_error_and_every_gap():
    rows = [run_row("iris", m, s, 100.0 * (s + k) / 38) for k, m in enumerate("ab") for s in (0, 1)]
    rows += [run_row("wine", "a", 0, None, "failed")]
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

    monkeypatch.setattr(runner, "run_method", fake)
    done = reproduce("table2", "--tasks", "iris", "--samplings", 3, "--out", tmp_path)
    assert done.exit_code == 0, done.output
    assert "The recommended configuration, judged" in done.output
    first = (tmp_path / "judgment.md").read_text()
    assert "| of 1 |" in first
    (tmp_path / "judgment.md").unlink()
    (tmp_path / "cells.jsonl").unlink()
    again = reproduce("judgment", "--out", tmp_path)
    assert again.exit_code == 0, again.output
    assert (tmp_path / "judgment.md").read_text() == first


def test_the_command_says_what_a_judgment_lacks(cheap_runs, tmp_path):
    nothing = reproduce("judgment", "--out", tmp_path)
    assert nothing.exit_code == 2
    assert "run run.py table2 first" in words(nothing.output)
    few = reproduce(
        *("table2", "--tasks", "iris", "--methods", "euclidean,recommended"),
        *("--samplings", 2, "--out", tmp_path),
    )
    assert few.exit_code == 0, few.output
    assert not (tmp_path / "judgment.md").exists()
    result = reproduce("judgment", "--out", tmp_path)
    assert result.exit_code == 2
    assert "no task with every method" in words(result.output)


# The results that are committed


def test_the_committed_judgment_and_means_are_those_of_the_committed_errors(repository):
    folder = repository / "examples" / "reproduction"
    assert judgment_again(folder)["judgment.md"] == (folder / "judgment.md").read_text("utf-8")
    rows = read_errors((folder / "errors.csv").read_text("utf-8"))
    assert len(rows) == 12 * 50 * len(METHODS)
    with (folder / "table2.csv").open(encoding="utf-8") as file:
        printed = {(line["task"], line["method"]): line for line in csv.DictReader(file)}
    for summary in summarize([row | {"seconds": 0.0, "detail": ""} for row in rows]):
        line = printed[summary.task, summary.method]
        assert float(line["mean"]) == pytest.approx(summary.mean)
        assert float(line["standard_error"]) == pytest.approx(summary.standard_error)
        assert line["is_best"] == str(summary.is_best)


def test_the_committed_readmes_say_what_the_judgment_says(repository):
    folder = repository / "examples" / "reproduction"
    rows = read_errors((folder / "errors.csv").read_text("utf-8"))
    count = judgment_table(judge(rows)).rows[-1]
    text = words((folder / "README.md").read_text("utf-8"))
    assert f"near the paper on {count['near the paper']} of 12" in text
    assert f"paired standard error {count['near, paired errors']} of 12" in text
    assert f"best or tied on {count['best or tied']} of 12" in text
    assert f"paired t-test {count['best or tied, paired test']} of 12" in text
    duels = {row["method"]: row for row in duel_table(rows).rows}
    hyper, own = duels["SERAPH hyper"], duels["recommended"]
    better, tied, worse = hyper["better, tied, worse"].split(", ")
    front = words((repository / "examples/guide/does-it-help.md").read_text("utf-8"))
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
    folder = repository / "examples" / "reproduction"
    files = [path for path in folder.iterdir() if path.suffix in (".md", ".csv", ".png")]
    for path in files:
        assert path.stat().st_size < 300_000, path.name
        if path.suffix != ".png":
            text = path.read_text("utf-8")
            assert not any(root in text for root in ("/tmp", "/home", "/work", "/root")), path.name
