"""Evidence: `run.py` writes what it says, and says what it cannot."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest
import run
from command_line import words
from evidence.runs import runner
from reproduction_programs import reproduce

import seraph_cvx

# The command


@pytest.mark.slow
def test_the_command_makes_table_2_and_figure_3_of_the_same_runs(tmp_path):
    asked = ("--tasks", "iris", "--methods", "euclidean,early-hyper", "--samplings", 2)
    done = reproduce("table2", *asked, "--out", tmp_path)
    assert done.exit_code == 0, done.output
    text = (tmp_path / "table2.md").read_text()
    assert "| SERAPH hyper, early |" in text
    assert "<br>9.58 ± 0.73" in text
    header, *lines = (tmp_path / "table2.csv").read_text().splitlines()
    assert header.startswith("task,method,n_done")
    assert len(lines) == 2
    before = (tmp_path / "cells.jsonl").read_text().count('"kind":"cell"')
    again = reproduce("figure3", *asked, "--out", tmp_path, "--resume")
    assert again.exit_code == 0, again.output
    assert (tmp_path / "cells.jsonl").read_text().count('"kind":"cell"') == before == 4
    assert (tmp_path / "figure3.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "figure3.csv").read_text().startswith("method,iris")


@pytest.mark.parametrize(
    "part",
    [
        "table1",
        *(
            pytest.param(part, marks=pytest.mark.slow)
            for part in ("figure1", "figure2", "protocol")
        ),
    ],
)
def test_the_command_writes_the_other_parts(part, tmp_path):
    done = reproduce(part, "--tasks", "iris", "--samplings", 2, "--out", tmp_path)
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
        (("table1", "--out", "file/x"), "not a folder"),
    ],
)
def test_bad_input_is_answered_in_words_with_exit_code_2(arguments, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    monkeypatch.delenv("SERAPH_CVX_DATA", raising=False)
    result = reproduce(*arguments)
    assert result.exit_code == 2
    assert said in words(result.output)
    assert "Traceback" not in result.output


def test_the_command_says_how_to_go_on_after_an_interruption(tmp_path, monkeypatch):
    def interrupted(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run_methods", interrupted)
    result = reproduce("table2", "--tasks", "iris", "--out", tmp_path)
    assert result.exit_code == 130
    assert "--resume continues" in words(result.output)


@pytest.mark.slow
def test_ctrl_c_says_how_to_go_on(tmp_path):
    options = ["table2", "--tasks", "iris", "--methods", "euclidean,gdm"]
    command = [sys.executable, run.__file__, *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, cwd=tmp_path, text=True) as process:
        cells = tmp_path / "reproduction" / "cells.jsonl"
        while not cells.exists() or cells.read_bytes().count(b"\n") < 3:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        said = words(process.communicate(timeout=60)[1])
    assert process.returncode == 130, said
    assert "the finished runs are in reproduction/cells.jsonl" in said
    assert "the same command with --resume continues" in said
    assert "Traceback" not in said


def test_another_missing_package_is_not_taken_for_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "evidence.plots.sparsity", None)
    result = reproduce("figure2", "--out", tmp_path)
    assert result.exit_code == 2
    assert "import of evidence.plots.sparsity halted" in words(result.stderr)
    assert "matplotlib" not in result.stderr


def test_the_command_ends_with_1_where_runs_failed_and_says_so(cheap_runs, tmp_path):
    asked = ("--tasks", "iris", "--methods", "euclidean,gdm", "--samplings", 2)
    result = reproduce("table2", *asked, "--out", tmp_path)
    assert result.exit_code == 1
    assert "Of 4 runs 2 failed and 0 were cut off" in words(result.output)
    assert "What is not done" in (tmp_path / "table2.md").read_text()


def test_without_matplotlib_the_numbers_are_written_and_the_missing_picture_is_told(
    tmp_path, monkeypatch
):
    for name in list(sys.modules):
        if name.startswith(("evidence.plots", "seraph_cvx.plots", "matplotlib.")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delattr(seraph_cvx, "plots")
    result = reproduce("figure2", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "No picture: matplotlib is not installed" in words(result.output)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figure2.csv", "figure2.md"]
