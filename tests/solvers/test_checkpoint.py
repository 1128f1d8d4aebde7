"""Evidence: a fit that was killed goes on from its checkpoint, and ends where it would have."""

from __future__ import annotations

import signal
import subprocess
import sys
import warnings
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from cvxpy.reductions.solvers.conic_solvers.clarabel_conif import CLARABEL
from evidence.measuring import gaussian_classes
from instances import random_pairs

from seraph_cvx import NotCertified, PairSet, Status, alternate
from seraph_cvx.penalties import LinearConstraints, Ridge, TraceBound, UpperBound


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.npz"


def stop_at(number):
    return lambda iteration, _: iteration.number == number


def stopped(pairs, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertified)
        return alternate(pairs, **settings)


def assert_same(run, other):
    timed = dict.fromkeys(("seconds", "solver_seconds"))
    steps = [[{**asdict(step), **timed} for step in r.history] for r in (run, other)]
    assert steps[0] == steps[1]
    np.testing.assert_array_equal(run.metric, other.metric)
    assert run.status is other.status
    assert run.m_step.relative_gap == other.m_step.relative_gap


@pytest.mark.parametrize(
    "settings",
    [{}, {"accelerate": False, "tol": 1e-3}, {"penalties": [Ridge(0.3)]}],
    ids=["accelerated", "plain", "ridge"],
)
def test_a_run_stopped_anywhere_ends_at_the_same_metric_by_the_same_steps(settings, tmp_path):
    """Whoever watches it: a new process has the same function at another address."""
    pairs = random_pairs(2, n=60, m=6)  # its trust region is at work
    whole = alternate(pairs, **settings)
    assert len(whole.history) > 3
    for stop in (1, len(whole.history) // 2, len(whole.history) - 1):
        settings = {**settings, "checkpoint": tmp_path / f"{stop}.npz"}
        stopped(pairs, callback=stop_at(stop), watch=lambda *_: None, **settings)
        seen = []
        resumed = alternate(
            pairs,
            callback=lambda iteration, _, to=seen: to.append(iteration.number),
            watch=lambda *_: False,
            **settings,
        )
        assert min(seen) > min(stop, len(whole.history) - 2)
        assert_same(resumed, whole)
    assert_same(alternate(pairs, **settings), whole)  # a finished run, once more


def test_a_run_out_of_time_goes_on_with_more_of_it(path):
    pairs = random_pairs(3, n=60, m=4)
    with pytest.warns(NotCertified, match="time was up"):
        cut = alternate(pairs, checkpoint=path, time_limit=1e-9)
    resumed = alternate(pairs, checkpoint=path, time_limit=1e6)
    assert resumed.status is Status.CERTIFIED
    assert resumed.history[: len(cut.history)] == cut.history


class OwnSolver(CLARABEL):
    """A solver object, as CVXPY takes it: of another name than its own ones."""

    def name(self):
        return "OWN"


class OwnRidge(Ridge):
    """A block with a function of its own among its attributes."""

    def __init__(self, function, unit):
        super().__init__(0.3)
        self.function, self.unit = function, unit

    def __repr__(self):
        return object.__repr__(self)


@pytest.mark.parametrize("solver", ["newton", OwnSolver], ids=["newton", "a solver object"])
def test_a_run_with_objects_of_ones_own_is_resumed_with_new_ones(solver, path):
    pairs = random_pairs(3, n=12, m=2)

    def run(**settings):
        made = solver if isinstance(solver, str) else solver()
        blocks = [OwnRidge(lambda A: A, [object()])]
        return stopped(pairs, penalties=blocks, solver=made, m_step_tol=1e-5, **settings)

    whole = run()
    run(checkpoint=path, callback=stop_at(2))
    assert_same(run(checkpoint=path), whole)


OTHERS = {
    "trace weight": ({}, {"trace_weight": 2.0}),
    "tol": ({}, {"tol": 1e-5}),
    "a penalty": ({}, {"penalties": [Ridge(0.3)]}),
    "start": ({}, {"start": np.eye(2)}),
    "polish": ({}, {"polish": True}),
    **{
        f"another {type(one).__name__}": ({"penalties": [one]}, {"penalties": [other]})
        for one, other in (
            (TraceBound(1.0), TraceBound(1.0 + 1e-9)),
            (UpperBound(5.0 * np.eye(2)), UpperBound(6.0 * np.eye(2))),
            (LinearConstraints(np.eye(2), upper=5.0), LinearConstraints(np.eye(2), upper=6.0)),
            (OwnRidge(None, [1]), OwnRidge(None, [2])),
        )
    },
}
"""The settings of a run, and those with which it is not resumed."""


@pytest.mark.parametrize("change", OTHERS)
def test_the_checkpoint_of_another_fit_is_refused(change, path):
    """Also where two penalties agree at most metrics."""
    one, other = OTHERS[change]
    stopped(random_pairs(3, n=12, m=2), checkpoint=path, callback=stop_at(2), **one)
    with pytest.raises(ValueError, match="the checkpoint of another fit: its data or its"):
        alternate(random_pairs(3, n=12, m=2), checkpoint=path, **other)
    with pytest.raises(ValueError, match=r"remove the file to start anew\."):
        alternate(random_pairs(4, n=12, m=2), checkpoint=path, **one)


@pytest.mark.parametrize("damage", ["empty", "cut", "text", "another archive", "flipped"])
def test_a_damaged_or_foreign_file_is_refused_and_left_alone(damage, path):
    pairs = random_pairs(3, n=60, m=4)
    alternate(pairs, checkpoint=path)
    content = path.read_bytes()
    if damage == "another archive":
        np.savez(path, a=np.zeros(3))
    else:
        flipped = content[:200] + bytes([content[200] ^ 255]) + content[201:]
        damaged = {"empty": b"", "cut": content[:-60], "text": b"a = 1\n", "flipped": flipped}
        path.write_bytes(damaged[damage])
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"run\.npz is damaged, or no checkpoint of an alternat"):
        alternate(pairs, checkpoint=path)
    assert path.read_bytes() == before


REPRODUCTION = Path(__file__).parents[2] / "examples" / "reproduction"
KILLED = """
import sys
sys.path.append(sys.argv[2])
from seraph_cvx import PairSet, alternate
from evidence.measuring import gaussian_classes
pairs = PairSet.from_labels(*gaussian_classes(900, 8))
def tell(iteration, metric):
    print(iteration.number, flush=True)
alternate(pairs, n_jobs=2, callback=tell, checkpoint=sys.argv[1])
"""


@pytest.mark.slow
def test_a_killed_caller_is_resumed_to_the_same_metric(path):
    caller = subprocess.Popen(
        [sys.executable, "-c", KILLED, path, REPRODUCTION], stdout=subprocess.PIPE
    )
    for _ in range(4):
        caller.stdout.readline()
    caller.send_signal(signal.SIGKILL)
    caller.wait()
    caller.stdout.close()
    pairs, seen = PairSet.from_labels(*gaussian_classes(900, 8)), []
    whole = alternate(pairs, n_jobs=2)
    resumed = alternate(
        pairs, n_jobs=2, callback=lambda it, _: seen.append(it.number), checkpoint=path
    )
    assert seen[0] >= 4
    assert len(whole.history) > seen[0]
    np.testing.assert_allclose(resumed.metric, whole.metric, rtol=0.0, atol=1e-10)
