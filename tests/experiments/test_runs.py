"""Evidence: `run.py` loses no run, makes none twice, writes what it says, and tells of failures."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from functools import partial

import pytest
import run
from command_line import words
from evidence.runs import Protocol, run_methods
from joblib import parallel_config
from reproduction_programs import reproduce

pytestmark = pytest.mark.once

# Runs


def planted(name):
    return f"{name}=planted_methods:{name}"


def test_failures_are_rows_with_their_reason_and_the_others_go_on(tmp_path):
    names = ("boom", "leave", "not_finite", "warn")
    out = tmp_path / "cells.jsonl"
    table = run_methods(["iris"], [*map(planted, names), "euclidean"], 1, out=out)
    rows = {row["method"]: row for row in table.rows}
    assert list(rows) == [*names, "euclidean"]
    reasons = ("ValueError: planted trouble", "exit code 3", "shape (1, 4), or not finite")
    for name, reason in zip(names[:3], reasons, strict=True):
        assert (rows[name]["outcome"], rows[name]["error"]) == ("failed", None)
        assert reason in rows[name]["detail"]
    assert rows["warn"]["warnings"] == ["UserWarning: planted doubt"]
    assert rows["warn"]["error"] == rows["euclidean"]["error"] is not None
    on_disk = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["kind"] for line in on_disk] == ["run"] + ["cell"] * 5


@pytest.mark.slow
def test_the_time_cap_cuts_off_what_is_beyond_it_and_says_so(one_run_server):
    """Each sleeps a second: a busy machine has 0.7 s to spare for the first."""
    first, second, third, _ = run_methods(["iris"], [planted("sleep")], 4, time_cap=1.7).rows
    assert [row["outcome"] for row in (first, second, third)] == ["done", "cut off", "cut off"]
    assert 1.0 <= first["seconds"] < 1.7
    assert first["cpu_seconds"] < 0.5  # it slept
    assert "time limit" in second["detail"]
    assert second["seconds"] < 1.7
    assert "spent" in third["detail"]
    assert third["seconds"] == 0.0


def facts_of(table):
    """What does not depend on the machine."""
    facts = ("task", "sampling", "method", "outcome", "error", "detail", "rank")
    return [{name: row[name] for name in facts} for row in table.rows]


@pytest.mark.slow
def test_runs_on_another_backend_are_those_of_one_process(one_run_server):
    """Whatever backend joblib is told to use: seeds are the samplings' alone."""
    asked = (["iris"], ["euclidean", "seraph-proj", planted("boom")], 2)
    with parallel_config(backend="threading", n_jobs=2):
        together = run_methods(*asked)
    assert facts_of(together) == facts_of(run_methods(*asked))


def test_resume_runs_only_what_is_not_there(cheap_runs, tmp_path):
    out = tmp_path / "cells.jsonl"
    run_methods(["iris"], ["euclidean"], 2, out=out)
    out.write_text(out.read_text().replace('"error":11.0', '"error":99.0'))
    table = run_methods(["iris"], ["euclidean", "itml"], 3, out=out, resume=True)
    assert cheap_runs[:2] == [("iris", 0, "euclidean"), ("iris", 1, "euclidean")]
    new = [("iris", 0, "itml"), ("iris", 1, "itml"), ("iris", 2, "euclidean"), ("iris", 2, "itml")]
    assert cheap_runs[2:] == new
    assert table.rows[2]["error"] == 99.0  # read, not made again
    assert len(table.rows) == 6


def test_retry_repeats_failed_runs_and_no_others(cheap_runs, tmp_path):
    asked = {"out": tmp_path / "cells.jsonl"}
    for settings in (asked, asked | {"resume": True}, asked | {"resume": True, "retry": True}):
        run_methods(["iris"], ["euclidean", "gdm"], 2, **settings)
    assert cheap_runs[4:] == [("iris", 0, "gdm"), ("iris", 1, "gdm")]


def test_a_file_is_not_overwritten_nor_mixed_with_another_protocol(cheap_runs, tmp_path):
    out = tmp_path / "cells.jsonl"
    run_methods(["iris"], ["euclidean"], 1, out=out)
    with pytest.raises(FileExistsError, match="--resume"):
        run_methods(["iris"], ["euclidean"], 1, out=out)
    with pytest.raises(ValueError, match="scaling=None, not standard"):
        run_methods(["iris"], ["euclidean"], 1, Protocol("standard"), out=out, resume=True)


# The program


@pytest.mark.slow
def test_the_program_makes_table_2_and_figure_3_of_the_same_runs(one_run_server, tmp_path):
    asked = ("--tasks", "iris", "--methods", "euclidean,early-hyper", "--samplings", 2)
    for part in (("table2",), ("figure3", "--resume")):
        done = reproduce(*part, *asked, "--out", tmp_path)
        assert done.exit_code == 0, done.output
    text = (tmp_path / "table2.md").read_text()
    assert "| SERAPH hyper, early |" in text
    assert "<br>9.58 ± 0.73" in text
    assert (tmp_path / "table2.csv").read_text().startswith("task,method,n_done")
    assert (tmp_path / "cells.jsonl").read_text().count('"kind":"cell"') == 4
    assert (tmp_path / "figure3.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "figure3.csv").read_text().startswith("method,iris")


@pytest.mark.parametrize(
    ("part", "endings"),
    [
        ("table1", (".md", ".csv")),
        pytest.param("figure1", (".md", ".csv", ".png"), marks=pytest.mark.slow),
        pytest.param("protocol", (".md",), marks=pytest.mark.slow),
    ],
)
def test_the_program_writes_the_other_parts(part, endings, tmp_path, monkeypatch):
    for name in ("table1", "sampling_evidence"):
        monkeypatch.setattr(run, name, partial(getattr(run, name), n_draws=100))
    done = reproduce(part, "--tasks", "iris", "--samplings", 2, "--out", tmp_path)
    assert done.exit_code == 0, done.output
    for ending in endings:
        assert 0 < (tmp_path / (part + ending)).stat().st_size < 300_000


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
        (("table2", "--redraw"), "--redraw is for figure3"),
        (("figure3", "--redraw"), "run run.py figure3 first"),
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
    # where the signal hits a destructor, Python itself says that it is ignored
    assert said.count("Traceback") == said.count("Exception ignored in")


def test_the_program_ends_with_1_where_runs_failed_and_says_so(cheap_runs, tmp_path):
    asked = ("--tasks", "iris", "--methods", "euclidean,gdm", "--samplings", 2)
    result = reproduce("table2", *asked, "--out", tmp_path)
    assert result.exit_code == 1
    assert "Of 4 runs 2 failed and 0 were cut off" in words(result.output)
    assert "What is not done" in (tmp_path / "table2.md").read_text()


def test_without_matplotlib_the_numbers_are_written_and_the_missing_picture_is_told(
    no_matplotlib, tmp_path, monkeypatch
):
    monkeypatch.delitem(sys.modules, "evidence.pictures", raising=False)
    result = reproduce("figure2", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "No picture: matplotlib is not installed" in words(result.output)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figure2.csv", "figure2.md"]
