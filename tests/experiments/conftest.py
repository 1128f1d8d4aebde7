"""What the tests of the experiments share: runs that cost nothing, and their fork server."""

from __future__ import annotations

import pytest
from evidence import runs
from evidence.runs import EMPTY

from seraph_cvx.processes.isolation import ONE_THREAD, ForkServer


@pytest.fixture(scope="session")
def kept_run_server():
    """A fork server with all that runs import."""
    with ForkServer([runs.__name__], ONE_THREAD) as server:
        yield server


@pytest.fixture
def one_run_server(kept_run_server, monkeypatch):
    """All runs share a fork server, which has imported what they need."""
    monkeypatch.setattr(runs, "fork_server", lambda: kept_run_server)


@pytest.fixture
def cheap_runs(monkeypatch):
    """Runs that take no time: their error is a function of the key. Returns the keys run."""
    keys = []

    def fake(key, method, protocol, time_limit):
        keys.append(key)
        row = dict(zip(("task", "sampling", "method"), key, strict=True)) | EMPTY
        outcome = "failed" if key[2] == "gdm" else "done"
        return row | {"outcome": outcome, "error": 100.0 * key[1] / 38, "seconds": 0.25}

    monkeypatch.setattr(runs, "run_method", fake)
    return keys
