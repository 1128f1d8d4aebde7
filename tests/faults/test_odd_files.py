"""Evidence: files of whomever, odd names and signals at odd moments are answered in words."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from command_line import TABLE, assert_answered_in_words, run
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from seraph_cvx import SERAPH, KernelSERAPH
from seraph_cvx.cli.tables import read_table
from seraph_cvx.estimators.saving import load_model, save_model
from seraph_cvx.processes import whole_file
from seraph_cvx.processes.whole_file import write_whole

pytestmark = pytest.mark.once

X = np.array([[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0], [0.2, 5.0], [1.9, 4.0]])
Y = np.array([0, 0, 1, 1, -1, -1])
COMMAND = [sys.executable, "-m", "seraph_cvx"]
FIT = "fit small.csv --label species"
PATIENCE = 300
"""Seconds after which a process hangs: on a busy machine it takes a minute to start."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("small.csv").write_text(TABLE)
    return tmp_path


# Tables


def test_a_header_longer_than_a_cell_may_be_is_read(folder):
    names = [f"a feature with a long name {'x' * 60} {k}" for k in range(2_000)]
    rng = np.random.default_rng(0)
    rows = [[*(f"{v:.3f}" for v in rng.normal(size=2_000)), "ab"[k % 2]] for k in range(6)]
    lines = [",".join(cells) for cells in ([*names, "species"], *rows)]
    Path("wide.csv").write_text("\n".join(lines) + "\n")
    assert len(lines[0]) > 131_072
    assert read_table(Path("wide.csv"), "species").X.shape == (6, 2_000)


# Names and disks


@pytest.mark.parametrize("length", [200, 251])
def test_a_name_as_long_as_the_system_allows_is_written_and_a_longer_one_refused_before(
    folder, length
):
    done = run(f"{FIT} --out {'m' * length}.npz")
    assert done.exit_code == 0, done.stderr
    assert load_model("m" * length + ".npz")[-1].metric_.shape == (2, 2)
    refused = run(f"{FIT} --out {'m' * 260}.npz")
    assert_answered_in_words(refused, ["use a shorter name"])
    assert "M-step" not in refused.stdout  # before the work


def test_a_link_to_itself_is_refused_in_words(folder):
    Path("loop.npz").symlink_to("loop.npz")
    assert_answered_in_words(run(f"{FIT} --out loop.npz"), ["a link that leads to itself"])
    assert_answered_in_words(run("apply loop.npz small.csv"), ["loop.npz"])


def test_a_full_disk_is_named_with_the_file_and_nothing_else(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "draft", None, "other")

    monkeypatch.setattr(whole_file.os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as raised:
        write_whole(tmp_path / "m.npz", b"new")
    assert str(raised.value).endswith("m.npz'")
    assert list(tmp_path.iterdir()) == []


def test_drafts_that_a_killed_process_left_are_removed_by_the_next_write(tmp_path):
    path = tmp_path / "m.npz"
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\n"
        "from seraph_cvx.processes.whole_file import write_whole\n"
        "write_whole(Path(sys.argv[1]), b'new')"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=False, timeout=PATIENCE)
    (left,) = tmp_path.iterdir()
    another = tmp_path / ".another.part"
    another.write_text("not ours")
    write_whole(path, b"one")  # the draft is fresh: its process may be alive
    assert left.exists()
    os.utime(left, (0.0, 0.0))
    os.utime(another, (0.0, 0.0))
    write_whole(path, b"two")
    assert sorted(tmp_path.iterdir()) == [another, path]
    assert path.read_bytes() == b"two"


# Journals


# Models and instances


def rewritten(path, change):
    """Change the header of a model file."""
    with np.load(path) as stored:
        arrays = dict(stored)
    header = json.loads(arrays["header"].tobytes().decode())
    change(header)
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    np.savez(path, **arrays)


def test_an_imputer_with_an_endless_number_is_refused(tmp_path):
    path = tmp_path / "m.npz"
    save_model(make_pipeline(SimpleImputer(), SERAPH()).fit(X, Y), path)
    rewritten(path, lambda h: h["steps"][0][1]["parameters"].update(missing_values=10**400))
    with pytest.raises(ValueError, match=r"m\.npz cannot be loaded"):
        load_model(path)


@pytest.mark.parametrize("mean", [{"float": "inf"}, 10**400, "x", None, [1.0], True])
def test_a_kernel_model_whose_mean_is_no_number_is_refused(tmp_path, mean):
    path = tmp_path / "m.npz"
    save_model(KernelSERAPH().fit(X, Y), path)
    rewritten(path, lambda header: header["attributes"].update(_mean=mean))
    with pytest.raises(ValueError, match="the _mean of this KernelSERAPH"):
        load_model(path)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no endless device here")
def test_an_endless_device_is_not_read():
    with pytest.raises(OSError, match="a device or a pipe"):
        load_model("/dev/zero")


# Signals


IGNORING = """
import signal, threading, time, warnings
signal.signal(signal.SIGINT, signal.SIG_IGN)
import numpy as np
from seraph_cvx import SERAPH
def press(*_):
    signal.raise_signal(signal.SIGINT)
rng = np.random.default_rng(0)
X, y = rng.normal(size=(60, 3)), np.where(np.arange(60) < 9, np.arange(60) % 3, -1)
model = SERAPH(on_interrupt="keep", callback=press).fit(X, y)
print(model.status_.value, signal.getsignal(signal.SIGINT) is signal.SIG_IGN)
"""


def test_a_fit_of_a_background_job_does_not_hear_ctrl_c():
    done = subprocess.run(
        [sys.executable, "-c", IGNORING],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stdout.split() == ["certified", "True"]


def test_a_fit_in_another_thread_goes_on_when_ctrl_c_is_pressed():
    """Only the main thread receives signals: there it is raised, and the fit is not ended."""
    rng = np.random.default_rng(0)
    points, y = rng.normal(size=(60, 3)), np.where(np.arange(60) < 9, np.arange(60) % 3, -1)
    begun, pressed, models = threading.Event(), threading.Event(), []

    def wait(*_):
        begun.set()
        pressed.wait(30)

    fit = SERAPH(on_interrupt="keep", callback=wait).fit
    worker = threading.Thread(target=lambda: models.append(fit(points, y)))
    worker.start()
    assert begun.wait(PATIENCE)
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        signal.raise_signal(signal.SIGINT)
        time.sleep(1.0)
    pressed.set()
    worker.join()
    assert models[0].status_.value == "certified"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_race_that_is_terminated_leaves_no_folder_and_no_traceback(tmp_path, number):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    code = [
        *COMMAND,
        *("compare", "--suite", "small", "--solvers", "SCS/primal", "--tol", "1e-8"),
        *("--out", str(tmp_path / "race")),
    ]
    process = subprocess.Popen(
        code, stderr=subprocess.PIPE, text=True, env=os.environ | {"TMPDIR": str(temporary)}
    )
    clock = time.monotonic()
    while not (tmp_path / "race/race.jsonl").exists() or not list(temporary.iterdir()):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() - clock < PATIENCE
        time.sleep(0.05)
    time.sleep(1.0)
    process.send_signal(number)
    said = process.communicate(timeout=PATIENCE)[1]
    assert "Traceback" not in said
    assert "BrokenPipe" not in said
    assert process.returncode == (143 if number == signal.SIGTERM else -number)
    clock = time.monotonic()
    while left := [path for path in temporary.iterdir() if path.name.startswith("seraph")]:
        assert time.monotonic() - clock < PATIENCE, left  # the solver that runs has its time limit
        time.sleep(0.1)
