"""Evidence that the package works where POSIX does not: by processes from which it was removed.

A `sitecustomize.py` on PYTHONPATH takes the names away as Python starts, so that processes that the
package starts lack them too. What they keep of Linux: /proc, file names, signals that kill.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys

import pytest
from test_isolation import ends_soon

from seraph_cvx.processes import isolation, journal
from seraph_cvx.race.race_table import RaceJournal

REMOVE_POSIX = """
import multiprocessing.connection, multiprocessing.synchronize  # they import these names
import os, signal, subprocess, sys

LACKING = {
    os: "fork forkpty register_at_fork killpg setsid getpgid setpgid wait3 wait4 nice getuid "
    "geteuid sysconf sched_getaffinity getloadavg statvfs mkfifo",
    signal: "SIGKILL SIGALRM SIGHUP SIGUSR1 alarm setitimer getitimer pause ITIMER_REAL",
}
for module, names in LACKING.items():
    for name in names.split():
        delattr(module, name)
for name in ("resource", "fcntl", "pwd", "grp", "pty", "termios"):
    sys.modules[name] = None  # to import it is an error
subprocess.Popen.kill = subprocess.Popen.terminate  # as on Windows
"""


COMMANDS = """
from seraph_cvx.cli import app

for command in {commands}:
    try:
        app(command, prog_name="seraph-cvx")
    except SystemExit as end:
        print("exit code", end.code)
"""


def run_without_posix(code, folder, removal=REMOVE_POSIX):
    """Run code in a fresh process without POSIX that works in `folder`; what it printed."""
    site = folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(removal)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=dict(os.environ) | {"PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


LIBRARY = """
import importlib.util, json, math, os, signal, time
from seraph_cvx import SERAPH, MStepObjective, PairSet, certify, compare_solvers, solve_m_step
from seraph_cvx.processes.isolation import ForkServer

X = [[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0], [0.2, 5.0], [1.9, 4.0]]
y = [0, 0, 1, 1, -1, -1]
told = {"lacks fork": not hasattr(os, "fork"), "lacks SIGKILL": not hasattr(signal, "SIGKILL")}
told["fit"] = SERAPH().fit(X, y).certificate_.relative_gap
objective = MStepObjective(PairSet.from_labels(X, y))
solution = solve_m_step(objective, solver="CLARABEL", tol=1e-4)
told["conic"] = [solution.solver, certify(objective, solution.metric).relative_gap]
with ForkServer() as server:
    outcomes = [
        server.run(importlib.util.find_spec, "resource", time_limit=60),
        server.run(math.sqrt, 4.0, time_limit=60),
        server.run(math.sqrt, -1.0, time_limit=60),
        server.run(os._exit, 7, time_limit=60),
        server.run(time.sleep, 60, time_limit=0.3),
        server.run(bytearray, 2**31, time_limit=60, memory_limit=2**28),
    ]
told["isolated"] = [(outcome.status, outcome.result, outcome.detail) for outcome in outcomes]
print(json.dumps(told))
"""


NO_PROC = """
from seraph_cvx.processes import isolation
isolation.resident_bytes = lambda pid="self": 0
"""


@pytest.mark.slow
def test_library_and_commands_work_without_posix_and_a_race_and_verify_without_proc(tmp_path):
    """In one process; the race says what it cannot do, and makes every run all the same."""
    rows = ["width,kind", "0.0,a", "0.1,a", "2.0,b", "2.2,b", "0.3,", "1.8,"]
    (tmp_path / "points.csv").write_text("\n".join(rows))
    fit = ["fit", "points.csv", "--label", "kind", "--out", "metric.npz"]
    race = ["compare", "--suite", "tiny", "--solvers", "newton,CLARABEL/dual", "--tol", "1e-5"]
    first, last = [["--help"], ["demo"], ["explain"], fit], [race, ["verify"]]
    code = COMMANDS.format(commands=first) + NO_PROC + COMMANDS.format(commands=last)
    printed, alerts = run_without_posix(LIBRARY + code, tmp_path)
    told = json.loads(printed.splitlines()[0])
    assert told["lacks fork"]
    assert told["lacks SIGKILL"]
    assert told["fit"] <= 1e-6
    assert told["conic"][0] == "CLARABEL"
    assert told["conic"][1] <= 1e-4
    assert told["isolated"] == [
        ["done", None, ""],
        ["done", 2.0, ""],
        ["error", None, "ValueError: math domain error"],
        ["crashed", None, "the process ended with exit code 7 and without an answer"],
        ["time limit", None, "no answer within 0.3 s"],
        ["memory limit", None, "more than 256 MiB were in use"],
    ]
    assert printed.count("exit code 0") == 6
    assert "Usage: seraph-cvx" in printed
    assert "Certificate of the last M-step" in printed
    assert "So the problem is convex" in printed
    assert (tmp_path / "metric.npz").is_file()
    assert "Memory is not limited" in alerts
    assert "cannot lock race.jsonl" in alerts
    lines = (tmp_path / "race" / "race.jsonl").read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if row["kind"] == "row"]
    assert {row["outcome"] for row in rows} == {"done"}
    assert [row["solver"] for row in rows] == ["newton", "CLARABEL"] * 2
    assert all(row["true_gap"] < 1e-2 for row in rows)


LEAVE_A_CHILD = """
import json, os
from seraph_cvx.processes.isolation import ForkServer

with ForkServer() as server:
    left = server.run(os.system, "sleep 60 & echo $! > left", time_limit=60)
    grabbed = server.run(bytearray, 2**40, time_limit=60, memory_limit=2**28)
print(json.dumps([left.status, left.peak_bytes, grabbed.status]))
"""


def test_a_fresh_process_has_its_limits_and_leaves_nothing_running(tmp_path):
    """As on macOS: there are process groups and `resource`, but work is not done by forks."""
    printed, _ = run_without_posix(LEAVE_A_CHILD, tmp_path, removal="import os; del os.fork")
    word, peak, grabbed = json.loads(printed)
    assert (word, grabbed) == ("done", "memory limit")
    assert peak > 2**20
    assert ends_soon(int((tmp_path / "left").read_text()))


def test_memory_that_cannot_be_watched_is_not_limited_and_that_is_said(monkeypatch):
    monkeypatch.setattr(isolation, "resident_bytes", lambda pid="self": 0)
    with pytest.warns(RuntimeWarning, match="Memory is not limited.*Time is still limited"):
        outcome = isolation.run_isolated(math.sqrt, 4.0, time_limit=60, memory_limit=2**30)
    assert outcome.result == 2.0


def test_a_journal_that_cannot_be_locked_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(journal, "fcntl", None)
    with RaceJournal(tmp_path / "race.jsonl") as unlocked:
        unlocked.add("race", {"time_limit": 5.0})
        assert unlocked.notes == [
            "This system cannot lock race.jsonl: start no other race that writes to it."
        ]
    with RaceJournal(tmp_path / "race.jsonl", resume=True) as resumed:
        assert [race["time_limit"] for race in resumed.races] == [5.0]
