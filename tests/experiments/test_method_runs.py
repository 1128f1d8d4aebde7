"""Evidence: a run of the experiments loses no result, makes none twice, and tells of failures."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
from evidence.protocol.tasks import UNFILED
from evidence.results.summaries import summarize
from evidence.results.tables import (
    table2_reasons,
)
from evidence.runs.bookkeeping import Ledger
from evidence.runs.methods import METHODS
from evidence.runs.runner import run_methods
from evidence.runs.single_run import Protocol, learn
from joblib import parallel_config

# The runner


def test_failures_are_rows_with_their_reason_and_the_others_go_on(planted, tmp_path):
    names = ("boom", "leave", "not_finite", "warn")
    out = tmp_path / "cells.jsonl"
    table = run_methods(["iris"], [*map(planted, names), "euclidean"], 1, out=out)
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
    table = run_methods(["iris"], [planted("sleep")], 4, time_cap=1.7)
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
def test_runs_on_another_backend_are_those_of_one_process(planted):
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
    assert sorted(cheap_runs[2:]) == [
        ("iris", 0, "itml"),
        ("iris", 1, "itml"),
        ("iris", 2, "euclidean"),
        ("iris", 2, "itml"),
    ]
    assert table.rows[2]["error"] == 99.0  # read, not made again
    assert len(table.rows) == 6


def test_a_corrupt_line_is_reported_with_its_number_and_its_cell_made_again(cheap_runs, tmp_path):
    out = tmp_path / "cells.jsonl"
    run_methods(["iris"], ["euclidean"], 3, out=out)
    lines = out.read_text().splitlines()
    lines[2] = lines[2][:40]
    lines[3] = json.dumps({"kind": "cell", "task": "iris", "sampling": 2, "method": "euclidean"})
    out.write_text("\n".join(lines))
    table = run_methods(["iris"], ["euclidean"], 3, out=out, resume=True)
    assert ["Line 3" in note or "Line 4" in note for note in table.notes] == [True, True]
    assert cheap_runs[3:] == [("iris", 1, "euclidean"), ("iris", 2, "euclidean")]
    assert [row["error"] for row in table.rows] == [10.0, 11.0, 12.0]


def test_an_interruption_keeps_what_is_done_and_resume_completes_it(cheap_runs, tmp_path):
    out = tmp_path / "cells.jsonl"

    def interrupt(progress):
        if progress.number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_methods(["iris"], ["euclidean"], 4, out=out, callback=interrupt)
    assert out.read_text().count('"kind":"cell"') == 2
    table = run_methods(["iris"], ["euclidean"], 4, out=out, resume=True)
    assert [row["error"] for row in table.rows] == [10.0, 11.0, 12.0, 13.0]
    assert sorted(set(cheap_runs)) == cheap_runs  # none twice


def test_retry_repeats_failed_runs_and_no_others(cheap_runs, tmp_path):
    out = tmp_path / "cells.jsonl"
    run_methods(["iris"], ["euclidean", "gdm"], 2, out=out)
    run_methods(["iris"], ["euclidean", "gdm"], 2, out=out, resume=True)
    assert len(cheap_runs) == 4
    run_methods(["iris"], ["euclidean", "gdm"], 2, out=out, resume=True, retry=True)
    assert cheap_runs[4:] == [("iris", 0, "gdm"), ("iris", 1, "gdm")]


def test_a_file_is_not_overwritten_nor_mixed_with_another_protocol(cheap_runs, tmp_path):
    out = tmp_path / "cells.jsonl"
    run_methods(["iris"], ["euclidean"], 1, out=out)
    with pytest.raises(FileExistsError, match="--resume"):
        run_methods(["iris"], ["euclidean"], 1, out=out)
    with pytest.raises(ValueError, match="scaling=None, not standard"):
        run_methods(["iris"], ["euclidean"], 1, Protocol("standard"), out=out, resume=True)


def test_progress_counts_up_and_estimates_the_time_left(cheap_runs):
    told = []
    run_methods(["iris"], ["euclidean", "itml"], 2, callback=told.append)
    assert [(p.number, p.total) for p in told] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert [p.seconds_left for p in told] == [0.75, 0.5, 0.25, 0.0]


def test_the_estimate_knows_the_workers_and_the_cap():
    keys = [("iris", s, "gdm") for s in range(4)]
    row = {"task": "iris", "sampling": 0, "method": "gdm", "outcome": "done", "seconds": 3.0}
    for cap, n_jobs, seconds in ((100.0, 1, 9.0), (100.0, 2, 4.5), (5.0, 2, 1.0)):
        ledger = Ledger(keys, {keys[0]: row}, cap, n_jobs)
        assert ledger.estimate() == pytest.approx(seconds)


@pytest.mark.slow
def test_all_methods_on_the_tasks_without_files_within_80_seconds_a_sampling(tmp_path):
    started = time.perf_counter()
    table = run_methods(list(UNFILED), None, 1, out=tmp_path / "cells.jsonl", n_jobs=2)
    assert time.perf_counter() - started < 80.0
    alone = facts_of(run_methods(["wine"], ["seraph-proj"], 1))
    assert [row for row in facts_of(table) if row in alone] == alone
    assert len(table.rows) == 4 * len(METHODS)
    assert {row["outcome"] for row in table.rows} == {"done"}, table2_reasons(
        summarize(table.rows)
    ).to_markdown()
