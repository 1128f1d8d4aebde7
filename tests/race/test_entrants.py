"""Evidence on those who race: answers are judged, refusals have a reason."""

from __future__ import annotations

import os
import re
import signal
import threading

import numpy as np
import pytest
from command_line import run
from instances import random_objective

from seraph_cvx import compare_solvers, solve_m_step
from seraph_cvx.penalties import Ridge
from seraph_cvx.race.attempt import Attempt, NotForThisProblem
from seraph_cvx.race.factor_solvers import on_factor
from seraph_cvx.race.solvers import entrants, kinds_of_entrants
from seraph_cvx.race.suite import InstanceSpec

TINY = "iris-n20-standard-hyper-w1-s0"
OTHERS = {e.solver: e for kind in ("formula", "factor") for e in kinds_of_entrants()[kind]}
FREE = ("UNO", "pymanopt", "L-BFGS-B")


@pytest.fixture
def entrant(solver):
    """The entrant of that name, or the test is skipped."""
    if OTHERS[solver].obstacle:
        pytest.skip(f"{OTHERS[solver].distribution} is not installed")
    return OTHERS[solver]


@pytest.fixture(scope="module")
def tiny():
    return InstanceSpec.parse(TINY).objective()


# Each solves an M-step; only the certificate says so


@pytest.mark.parametrize("solver", FREE)
@pytest.mark.parametrize("setting", ["proj", "other"])
def test_each_entrant_solves_an_m_step_but_none_with_penalties(entrant, setting):
    objective = random_objective(3, setting, n=8, m=3)
    attempt = entrant.solve(objective, 1e-6, 20.0)
    assert attempt.claims
    assert attempt.iterations > 0
    optimum = solve_m_step(objective, tol=1e-10).value
    excess = objective.value(attempt.answer) - optimum
    assert -1e-9 <= excess <= 1e-5 * max(1.0, optimum)
    with pytest.raises(NotForThisProblem, match="no formula for the penalties"):
        entrant.solve(objective.with_penalties([Ridge(0.1)]), 1e-3, 5.0)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of pymanopt, which a race ignores
@pytest.mark.parametrize("solver", ["L-BFGS-B", "pymanopt"])
def test_out_of_time_an_entrant_returns_what_it_has_and_claims_nothing(entrant):
    objective = InstanceSpec.parse("iris-n30-standard-hyper-w1-s0").objective()
    attempt = entrant.solve(objective, 1e-14, 1e-9)
    assert not attempt.claims
    assert np.all(np.isfinite(attempt.answer))


# A function of the user's own: each run is in a process of its own


def told(objective, tol, time_limit, scale=1.0):
    """Lies: it was told the tolerance, and returns the identity."""
    return scale * np.eye(objective.pairs.n_features)


def not_told(objective):
    return np.eye(objective.pairs.n_features)


def crash(objective):
    os.kill(os.getpid(), signal.SIGSEGV)


def returns_none(objective):
    return None


def test_own_functions_race_and_are_judged_like_all_others(tiny):
    def closure(objective):
        return Attempt(not_told(objective), "tried", claims=False)

    race = compare_solvers(
        {"mine": tiny},
        ["newton", told, (told, {"scale": 2.0}), not_told, crash, closure],
        tols=[1e-5],
    )
    rows = {row["solver"]: row for row in race.rows}
    assert {row["instance"] for row in race.rows} == {"mine"}
    newton = rows.pop("newton")
    said = {name: (row["outcome"], row["said"], row["claims"]) for name, row in rows.items()}
    assert said == {
        "told": ("done", "returned", True),
        "told(scale=2.0)": ("done", "returned", True),
        "not_told": ("done", "returned", False),
        "crash": ("crashed", "", False),
        "closure": ("done", "tried", False),
    }
    assert newton["true_gap"] <= 1e-5
    assert rows["told"]["true_gap"] > 0.1
    assert rows["told(scale=2.0)"]["value"] == pytest.approx(tiny.value(2.0 * np.eye(4)))


def unsendable():
    lock = threading.Lock()
    return lambda_named("locked", lambda objective: lock)


def lambda_named(name, function):
    function.__name__ = name
    return function


@pytest.mark.parametrize(
    ("solvers", "words"),
    [
        ([lambda objective: None], "is not a valid one: define it with def"),
        ([told, told, (not_told, {}), 3], "solvers holds 3"),
        ([("newton", {"steps": 3})], "newton takes no options"),
        (["SNOPT"], "no solver"),
        ([unsendable()], "inside the function"),
    ],
)
def test_what_cannot_race_is_refused_in_words(solvers, words):
    with pytest.raises(ValueError, match=words):
        entrants(solvers)


# The guide, and the race of all


@pytest.mark.slow
@pytest.mark.usefixtures("one_race_server")
def test_the_guides_command_and_what_it_says_of_a_local_minimum(repository, folder, tiny):
    """Its code is run by `test_readme.py`."""
    page = (repository / "examples/guide/race-your-own.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"```sh\nseraph-cvx (.*?)\n```", page)
    done = run(*command.split())
    assert done.exit_code == 0, done.output
    assert "L-BFGS-B/factor" in done.stdout
    said = float(re.search(r"at a true gap of ([\d.]+)\.\n", page)[1])
    attempt = on_factor(tiny, 1e-5, 20.0, "L-BFGS-B", rank=1, largest_rank=1)
    optimum, value = solve_m_step(tiny, tol=1e-9).value, tiny.value(attempt.answer)
    assert attempt.claims
    assert (value - optimum) / value == pytest.approx(said, abs=0.005)
    raised = on_factor(tiny, 1e-6, 20.0, "L-BFGS-B", rank=1)  # from the same start
    assert tiny.value(raised.answer) == pytest.approx(optimum, rel=1e-6)
