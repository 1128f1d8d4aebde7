"""Evidence: full disks, kills, damaged files, broken solvers and Ctrl-C leave nothing half done."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from command_line import assert_answered_in_words, run
from cvxpy.reductions.solvers.conic_solvers.clarabel_conif import CLARABEL
from faulty_solvers import Planted, Raising
from instances import random_psd
from interrupts import ctrl_c
from sklearn.base import clone

from seraph_cvx import (
    SERAPH,
    NotCertified,
    PairSet,
    Status,
    alternate,
    compare_solvers,
)
from seraph_cvx.m_step.statement import MStepStatement
from seraph_cvx.race.race_table import EMPTY_ROW, RaceJournal

X = np.array([[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0], [0.2, 5.0], [1.9, 4.0]])
Y = np.array([0, 0, 1, 1, -1, -1])


def full_disk(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


# Files: whole, or what was there before


KILLED = """
import os, signal, sys
from pathlib import Path
os.fsync = lambda number: os.kill(os.getpid(), signal.SIGKILL)
from seraph_cvx.processes.whole_file import write_whole
from seraph_cvx.estimators.plain_file import write_plain_file
if sys.argv[1].endswith(".npz"):
    write_plain_file(sys.argv[1], {"new": True}, {})
write_whole(Path(sys.argv[1]), b"new")
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["metric.csv", "model.npz"])
def test_a_process_killed_while_writing_leaves_the_old_file(tmp_path, name):
    path = tmp_path / name
    path.write_text("old")
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL
    assert path.read_text() == "old"


# Journals


def fill_disk(monkeypatch, start, number, part):
    """The disk takes a part of the line that begins so and has this number, and then no more."""
    write, n_lines = os.write, 0

    def nearly_full(file, content):
        nonlocal n_lines
        n_lines += content.startswith(start)
        if n_lines < number:
            return write(file, content)
        return write(file, content[: int(part * len(content))]) if part else full_disk()

    monkeypatch.setattr(os, "write", nearly_full)


ROW = {"kind": "row", "instance": "i", "solver": "s", "formulation": "", "tol": 0.1, "repeat": 1}
ROW |= EMPTY_ROW
REFERENCE = {"kind": "reference", "instance": "i", "checksum": "0", "lower": 1.0, "upper": 2.0}
DAMAGES = [b"\x00\xff\x1b[2J", b'{"kind": "row", "tol":', b"7", b"[1, 2]", b'"row"', b"null"]
DAMAGES += [b'{"kind": "elephant"}', b'{"kind": "row", "instance": "i"}', b"[" * 100_000]


@pytest.mark.parametrize("damaged", DAMAGES)
def test_a_damaged_line_is_reported_by_its_number_and_the_rest_is_used(tmp_path, damaged):
    first, last = ROW | {"tol": 0.5}, REFERENCE | {"instance": "j"}
    path, lines = tmp_path / "journal.jsonl", [json.dumps(line).encode() for line in (first, last)]
    path.write_bytes(b"\n".join([lines[0], damaged, lines[1], b""]))
    with RaceJournal(path, resume=True) as journal:
        assert list(journal.rows) == [("i", "s", "", 0.5, 1)]
        assert list(journal.references) == ["j"]
        assert [note.partition(" of ")[0] for note in journal.notes] == ["Line 2"]


@pytest.mark.slow
@pytest.mark.parametrize("part", [0.0, 0.5])
@pytest.mark.usefixtures("one_race_server")
def test_a_full_disk_keeps_the_rows_of_a_race_and_names_the_file(tmp_path, monkeypatch, part):
    """An error, or a short write, says so."""
    out, race = tmp_path / "race.jsonl", ("iris-n20-standard-hyper-w1-s0", ["newton"], [1e-2, 1e-4])
    with monkeypatch.context() as patch:
        fill_disk(patch, b'{"kind":"row"', 2, part)
        with pytest.raises(OSError, match="No space left on device") as caught:
            compare_solvers(*race, out=out)
    assert caught.value.filename == str(out)
    first = [line for line in out.read_text().splitlines() if line.endswith("}")]
    again = compare_solvers(*race, out=out, resume=True)
    assert [row["outcome"] for row in again.rows] == ["done", "done"]
    assert out.read_text().splitlines()[: len(first)] == first


# Solvers that break, through the estimator and through the command


class Hanging(CLARABEL):
    """Answers only after the patience of everybody."""

    def name(self):
        return "HANGING"

    def solve_via_data(self, *args, **kwargs):
        time.sleep(60.0)


WITHOUT_A_METRIC = {
    "raises": (Raising(), None, "license not found"),
    "leaves nothing": (Planted(), None, "no matrix"),
    "leaves NaN": (Planted(), np.full((2, 2), np.nan), "NaN or infinity"),
    "leaves infinity": (Planted(), np.full((2, 2), np.inf), "NaN or infinity"),
}
WRONG = {
    "a wrong point": random_psd(np.random.default_rng(0), 2, 50.0),
    "off the cone": np.diag([1.0, -0.25]),
    "zero": np.zeros((2, 2)),
}


def plant(monkeypatch, solver, matrix):
    """Let every fit, also the command's, be by a solver that leaves this matrix."""
    if solver.name() == "PLANTED":
        monkeypatch.setattr(MStepStatement, "metric", property(lambda self: matrix))
    inner = SERAPH._minimize

    def learn_by(model, pairs):
        named, model.solver = model.solver, solver
        told = inner(model, pairs)
        model.solver = named
        return told

    monkeypatch.setattr(SERAPH, "_minimize", learn_by)


@pytest.mark.parametrize("case", WITHOUT_A_METRIC)
def test_a_solver_without_an_answer_is_an_error_and_exit_code_1(monkeypatch, table, case):
    solver, matrix, reason = WITHOUT_A_METRIC[case]
    plant(monkeypatch, solver, matrix)
    model = SERAPH(trace_weight=2.0)
    with pytest.raises(RuntimeError, match=f"status failed(.|\\n)*{reason}"):
        model.fit(X, Y)
    assert not hasattr(model, "metric_")
    reasons = [reason, "status is failed; nothing was written"]
    assert_answered_in_words(run("fit small.csv --label species"), reasons, exit_code=1)
    assert [p.name for p in table.parent.iterdir()] == ["small.csv"]


@pytest.mark.parametrize("case", WRONG)
def test_a_solver_that_says_optimal_falsely_is_never_certified(monkeypatch, table, case):
    plant(monkeypatch, Planted(), WRONG[case])
    with pytest.warns(NotCertified):
        model = SERAPH(trace_weight=2.0).fit(X, Y)
    assert model.status_ is not Status.CERTIFIED
    assert model.certificate_.relative_gap > 1e-3
    assert np.linalg.eigvalsh(model.metric_)[0] >= -1e-12
    result = run("fit small.csv --label species")
    assert_answered_in_words(result, ["status is inaccurate"], exit_code=1)
    assert (table.with_name("small.metric.npz").exists()) == (case != "zero")


@pytest.mark.parametrize("solver", ["newton", "CLARABEL"])
def test_a_time_limit_reached_is_never_certified(solver):
    pairs = PairSet.from_labels(X, Y)
    with pytest.warns(NotCertified):
        run = alternate(pairs, solver=solver, time_limit=1e-9, max_iter=2)
    assert run.status is not Status.CERTIFIED


# Ctrl-C in a fit


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["em", "direct"])
def test_ctrl_c_ends_a_fit_and_leaves_no_thread_at_work(algorithm):
    """The threads of n_jobs are made once for all fits; after Ctrl-C they rest."""
    points = np.random.default_rng(0).normal(size=(1_500, 20))
    labels = np.where(np.arange(1_500) < 30, np.arange(1_500) % 3, -1)
    model = SERAPH(algorithm=algorithm, n_jobs=2, tol=1e-14)
    with pytest.warns(NotCertified):
        clone(model).set_params(max_iter=1).fit(points, labels)
    threads = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt), ctrl_c(0.3):
        model.fit(points, labels)
    assert not hasattr(model, "metric_")
    assert set(threading.enumerate()) <= threads
    clock = time.process_time()
    time.sleep(1.0)
    assert time.process_time() - clock < 0.5


def test_ctrl_c_ends_a_solver_that_hangs():
    model = SERAPH(solver=Hanging(), trace_weight=2.0)
    clock = time.perf_counter()
    with pytest.raises(KeyboardInterrupt), ctrl_c(1.0):
        model.fit(X, Y)
    assert time.perf_counter() - clock < 30.0
    assert not hasattr(model, "metric_")
