"""Evidence that work in a process of its own hurts nobody else, and that its end is told."""

from __future__ import annotations

import math
import os
import posix  # its _exit can be pickled also where coverage has put its own into os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from seraph_cvx.processes.isolation import ForkServer, run_isolated

MIB = 2**20


@pytest.fixture(scope="module")
def server():
    with ForkServer(["numpy", "pytest", "seraph_cvx.processes.isolation"]) as server:
        yield server


def hoard():
    """Allocate without end."""
    kept = []
    while True:
        kept.append(np.ones(MIB))


def grab_at_once():
    return np.ones(2**40).sum()


def hang():
    while True:
        time.sleep(0.1)


def hang_deaf():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    hang()


def die_by(number):
    os.kill(os.getpid(), number)


def complain_and_die():
    os.write(2, b"the last words\n")
    os.abort()


def raise_stop():
    raise KeyError("no such thing")


def leave_a_child():
    """A process that outlives its parent unless somebody ends it."""
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]).pid


def test_a_result_comes_back_however_large(server):
    X = np.random.default_rng(0).normal(size=(700, 700))
    outcome = server.run(np.transpose, X, time_limit=30)
    assert outcome.status == "done"
    np.testing.assert_array_equal(outcome.result, X.T)
    assert 0.0 < outcome.seconds < 30.0
    assert outcome.peak_bytes > MIB


def test_run_isolated_needs_no_fork_server():
    assert run_isolated(math.sqrt, 9.0, time_limit=30).result == 3.0


@pytest.mark.parametrize(
    ("work", "status", "detail"),
    [
        ((raise_stop,), "error", "KeyError: 'no such thing'"),
        ((sys.exit, 4), "error", "SystemExit: 4"),
        ((open, os.devnull), "error", ""),  # a file cannot be sent
        ((posix._exit, 7), "crashed", "exit code 7"),
        ((posix._exit, 0), "crashed", "exit code 0"),
        ((die_by, signal.SIGSEGV), "crashed", "SIGSEGV"),
        ((die_by, signal.SIGKILL), "crashed", "SIGKILL"),
        ((complain_and_die,), "crashed", "SIGABRT; it last printed: the last words"),
    ],
)
def test_a_fault_is_told_not_printed_and_does_not_reach_the_next_work(
    server, capfd, work, status, detail
):
    outcome = server.run(*work, time_limit=30)
    assert outcome.status == status
    assert detail in outcome.detail
    assert server.run(math.sqrt, 4.0, time_limit=30).result == 2.0
    assert capfd.readouterr() == ("", "")


def test_what_hangs_is_ended_at_the_time_limit(server):
    outcome = server.run(hang_deaf, time_limit=0.5)
    assert outcome.status == "time limit"
    assert 0.5 <= outcome.seconds < 30.0  # by itself it would never end
    assert "0.5 s" in outcome.detail
    assert outcome.peak_bytes > MIB


@pytest.mark.parametrize("work", [hoard, grab_at_once])
def test_what_eats_memory_is_ended_at_the_memory_limit(server, work):
    outcome = server.run(work, time_limit=30, memory_limit=300 * MIB)
    assert outcome.status == "memory limit"
    assert outcome.peak_bytes < 1500 * MIB


def test_what_stays_within_the_memory_limit_is_left_alone(server):
    outcome = server.run(np.ones, 100 * MIB // 8, time_limit=30, memory_limit=800 * MIB)
    assert outcome.status == "done"
    assert outcome.peak_bytes > 100 * MIB


def test_what_the_work_leaves_running_is_ended(server):
    assert ends_soon(server.run(leave_a_child, time_limit=30).result)


def ends_soon(pid):
    """A process that is killed exists for a moment longer."""
    deadline = time.monotonic() + 20.0
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not is_running(pid)


def is_running(pid):
    status = Path(f"/proc/{pid}/status")
    return status.exists() and "zombie" not in status.read_text()


def test_a_fork_server_that_dies_is_started_anew():
    with ForkServer() as server:
        server.run(math.sqrt, 4.0, time_limit=30)
        server._process.kill()
        server._process.wait()
        assert server.run(math.sqrt, 4.0, time_limit=30).result == 2.0


def test_closing_ends_the_work_that_another_thread_has_in_it(tmp_path):
    path = tmp_path / "pid"
    with ThreadPoolExecutor(1) as pool, ForkServer(["test_isolation"]) as server:
        work = pool.submit(server.run, write_pid_and_hang, str(path), time_limit=30)
        pid, clock = wait_for_pid(path), time.monotonic()
        server.close()
        assert work.result(10).status == "crashed"
    assert time.monotonic() - clock < 10.0
    assert ends_soon(pid)


def test_a_module_that_cannot_be_imported_is_told(capfd):
    with (
        pytest.raises(RuntimeError, match="no_such_module"),
        ForkServer(["no_such_module"]) as nobody,
    ):
        nobody.run(math.sqrt, 4.0, time_limit=30)


def test_a_function_of_the_running_script_is_refused(server, monkeypatch):
    monkeypatch.setattr(hoard, "__module__", "__main__")
    with pytest.raises(ValueError, match="move it to a module"):
        server.run(hoard, time_limit=1)


ORPHAN = """
import sys
sys.path.insert(0, {tests!r})
from seraph_cvx.processes import isolation
from test_isolation import write_pid_and_hang
isolation.ALARM_MARGIN = 0.0
with isolation.ForkServer(["test_isolation"]) as server:
    server.run(write_pid_and_hang, {path!r}, time_limit=1.0)
"""


def wait_for_pid(path):
    while not path.exists() or not path.read_text():
        time.sleep(0.01)
    return int(path.read_text())


def write_pid_and_hang(path):
    Path(path).write_text(str(os.getpid()))
    hang()


@pytest.mark.slow
def test_work_whose_caller_was_killed_ends_by_its_own_alarm(tmp_path):
    path = tmp_path / "pid"
    code = ORPHAN.format(tests=str(Path(__file__).parent), path=str(path))
    caller = subprocess.Popen([sys.executable, "-c", code])
    pid = wait_for_pid(path)
    caller.kill()
    caller.wait()
    assert is_running(pid)
    time.sleep(1.5)
    assert not is_running(pid)


def test_environment_reaches_the_work():
    with ForkServer(environment={"SERAPH_CVX_TEST": "yes"}) as server:
        assert server.run(os.getenv, "SERAPH_CVX_TEST", time_limit=30).result == "yes"


def test_ctrl_c_just_when_the_waiting_begins_leaves_neither_child_nor_traceback(monkeypatch):
    start, failed = threading.Thread.start, []

    def interrupted(thread):
        start(thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading, "excepthook", failed.append)
    clock = time.perf_counter()
    with ForkServer() as server:
        server.run(abs, -1, time_limit=60.0)
        monkeypatch.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            server.run(time.sleep, 20.0, time_limit=30.0)
        monkeypatch.undo()
    assert time.perf_counter() - clock < 15.0
    assert failed == []
