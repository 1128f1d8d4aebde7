"""Evidence that the race goes on whatever a solver does, and that its word is not believed."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from importlib import import_module

import numpy as np
import pytest
from command_line import run
from instances import random_objective, random_psd
from planted_solvers import PLANTED

from seraph_cvx import (
    MStepObjective,
    OptimumNotAttained,
    PairSet,
    certify,
    compare_solvers,
    solve_m_step,
)
from seraph_cvx.penalties import Penalty, Ridge, TraceBound
from seraph_cvx.processes.isolation import Outcome
from seraph_cvx.race import compare
from seraph_cvx.race.compare import read_race
from seraph_cvx.race.grading import MStepInstance
from seraph_cvx.race.race_table import EMPTY_ROW, RaceJournal, key_of
from seraph_cvx.race.solvers import NotForThisProblem, our_solver
from seraph_cvx.race.statistics import time_table
from seraph_cvx.race.suite import InstanceSpec, suite

MIB = 2**20
TINY = "iris-n20-standard-hyper-w1-s0"
shared_server = pytest.mark.usefixtures("one_race_server")


@contextmanager
def named(module, names):
    """Solvers as they are written for a race; little grace at the limit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare, "GRACE", 0.2)
        yield [f"{name}={module}:{name}" for name in names]


@pytest.fixture(scope="module")
def tiny():
    return InstanceSpec.parse(TINY).objective()


WHAT_HAPPENED = {
    "hang": ("time limit", "no answer within"),
    "crash": ("crashed", "SIGSEGV"),
    "leave": ("crashed", "exit code 3"),
    "hoard": ("memory limit", ""),
    "fail": ("error", "RuntimeError: license not found"),
    "not_a_matrix": ("error", "could not convert string"),
    "not_a_number": ("done", "not finite"),
    "wrong_shape": ("done", "not 4 x 4"),
    "nothing": ("done", "no matrix"),
}


@pytest.mark.slow
def test_the_race_completes_says_what_happened_and_exposes_the_liars(tiny):
    """One race of all the planted solvers, and of honest ones after them.

    True gaps are distances to an optimum found apart, and never above what is proved.
    """
    with named("planted_solvers", PLANTED) as solvers:
        race = compare_solvers(
            TINY,
            [*solvers, "newton", "SCS/dual"],
            tols=[1e-6],
            time_limit=4.0,
            memory_limit=600 * MIB,
        )
    planted = {row["solver"]: row for row in race.rows}
    assert list(planted) == [*PLANTED, "newton", "SCS"]
    optimum = solve_m_step(tiny, tol=1e-11).value
    for row in planted.values():
        if row["true_gap"] is not None:
            excess = (row["value"] - optimum) / max(1.0, abs(row["value"]))
            assert row["true_gap"] == pytest.approx(excess, abs=2e-9)
            assert row["true_gap"] <= row["proved_gap"] + 1e-15
    for solver, (outcome, words) in WHAT_HAPPENED.items():
        row = planted[solver]
        assert (row["outcome"], row["true_gap"]) == (outcome, None), solver
        assert words in row["detail"]
        assert row["peak_bytes"] > 50 * MIB
    point = random_psd(np.random.default_rng(0), 4, 50.0)
    for solver in ("lie", "forge", "noisy"):
        row = planted[solver]
        assert (row["outcome"], row["said"], row["claims"]) == ("done", "optimal", True)
        assert row["value"] == pytest.approx(tiny.value(point))
        assert 0.1 < row["true_gap"] <= row["proved_gap"]
        assert row["proved_gap"] == pytest.approx(certify(tiny, point).relative_gap)
    row = planted["indefinite"]
    assert row["violation"] == pytest.approx(0.25)
    assert row["value"] == pytest.approx(tiny.value(np.diag([1.0, 1.0, 1.0, 0.0])))
    assert planted["newton"]["true_gap"] <= 1e-6
    row = planted["SCS"]
    assert row["iterations"] > 10
    assert min(row["solve_seconds"], row["compile_seconds"]) > 0.0
    assert row["solve_seconds"] + row["compile_seconds"] <= row["total_seconds"]
    assert row["violation"] < 1e-3


# What is raced, and how it is said


@shared_server
def test_an_objective_is_raced_resumed_and_the_table_read(capfd, tmp_path):
    seen, out = [], tmp_path / "race.jsonl"
    arguments = {"solvers": ["newton", "CLARABEL/dual"], "tols": [1e-3, 1e-6], "out": out}
    race = compare_solvers(
        random_objective(0, "hyper"), **arguments, callback=lambda row, *counts: seen.append(counts)
    )
    assert seen == [(number, 4) for number in range(1, 5)]
    assert all(0.0 <= row["true_gap"] < 1e-3 for row in race.rows)
    assert [row["tol"] for row in race.rows] == [1e-3, 1e-6] * 2
    assert [row["runs"] for row in race.summary().rows] == [2, 2]
    ((name, reference),) = race.references.items()
    assert name == "M-step of 20 points in R^4, mu = 0.0674, lambda = 1"
    for row in race.rows:
        excess = (row["value"] - reference["lower"]) / max(1.0, row["value"])
        assert row["true_gap"] == pytest.approx(excess, abs=1e-8)
        assert row["true_gap"] <= row["proved_gap"] + 1e-12
    assert capfd.readouterr() == ("", "")
    again = compare_solvers(random_objective(0, "hyper"), **arguments, resume=True)
    assert again.rows == race.rows
    with pytest.raises(ValueError, match=r"M-step of 20 points.*give another file"):
        compare_solvers(random_objective(1, "hyper"), **arguments, resume=True)


@pytest.mark.slow
def test_after_a_time_limit_the_tighter_tolerances_are_not_run():
    with named("planted_solvers", ["hang"]) as solvers:
        race = compare_solvers(
            TINY, [*solvers, "newton"], [1e-5, 1e-2], time_limit=1.0, memory_limit=600 * MIB
        )
    assert [row["outcome"] for row in race.rows] == ["time limit", "not run", "done", "done"]
    assert race.rows[1]["detail"] == f"it came to its time limit at tol 0.01 on {TINY}"
    assert race.summary().rows[0]["runs"] == 1


UNATTAINED = MStepObjective(
    PairSet.from_constraints([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]], [(0, 1)], [(0, 2)]),
    trace_weight=0.0,
    unlabeled_weight=0.0,
)


@pytest.mark.parametrize(
    ("instances", "arguments", "words"),
    [
        (TINY, {"solvers": ["GUROBY"]}, "no solver 'GUROBY'.*newton"),
        (TINY, {"solvers": ["mine=no_such_module:solve"]}, "module:function"),
        (TINY, {"solvers": ["fista=seraph_cvx.race.solvers:our_solver"]}, "taken"),
        (TINY, {"tols": [0.0]}, "between 0 and 1"),
        ({"mine": 3}, {}, "dict of them by name"),
        (UNATTAINED, {}, "has no optimum"),
    ],
)
def test_a_race_that_cannot_be_is_refused_in_words(instances, arguments, words):
    error = OptimumNotAttained if instances is UNATTAINED else ValueError
    with pytest.raises(error, match=words):
        compare_solvers(instances, **arguments)


# Penalties


class Rough(Ridge):
    """A block of a user that is not smooth, and has no proximal step."""

    is_smooth, prox = False, Penalty.prox


def with_penalty(*blocks):
    return random_objective(0, "hyper").with_penalties(blocks)


@shared_server
def test_a_solver_that_takes_no_penalties_is_shown_as_not_for_this_problem():
    solvers = ["projected-gradient", "fista", "newton", "CLARABEL"]
    race = compare_solvers(with_penalty(Ridge(1.0)), solvers, tols=[1e-4])
    refusal = "not for this problem"
    assert [row["outcome"] for row in race.rows] == [refusal, refusal, "done", "done", refusal]
    assert "fista takes no penalties" in race.rows[1]["detail"]
    assert "dual statement takes no penalties" in race.rows[4]["detail"]
    assert max(row["true_gap"] for row in race.rows[2:4]) < 1e-4
    assert [row["runs"] for row in race.summary().rows] == [0, 0, 1, 1, 0]
    with pytest.raises(NotForThisProblem, match="neither smooth nor has it a proximal step"):
        our_solver(with_penalty(Rough(1.0)), 1e-3, 5.0)


def test_a_matrix_that_violates_a_constraint_is_moved_into_it_or_said_to(monkeypatch):
    outcome = Outcome("done", {"answer": np.eye(4), "claims": True}, "", 0.1)
    objective = with_penalty(TraceBound(1.0))
    value = objective.value(np.eye(4) / 4.0)
    row = MStepInstance(objective).grade(0.0, 1e-3, outcome)
    assert row["value"] == pytest.approx(value, rel=1e-8)
    assert row["detail"] == ""
    tilted = np.eye(4) + 0.25 * np.eye(4, k=1)
    one_sided = Outcome("done", {"answer": tilted, "claims": True}, "", 0.1)
    row = MStepInstance(objective).grade(0.0, 1e-3, one_sided)
    assert row["detail"] == "asymmetric by 2.5e-01 of its largest entry: symmetrized"
    monkeypatch.setattr(TraceBound, "feasible_factor", lambda block, L: L)
    row = MStepInstance(objective).grade(0.0, 1e-3, outcome)
    assert row["detail"].startswith("the matrix violates a constraint")
    assert row["true_gap"] is None


# The text that shows how a solver is added


@pytest.mark.slow
def test_the_documented_toy_solver_runs_as_it_is_printed(tmp_path, monkeypatch, repository):
    readme = (repository / "examples/solver-comparison/README.md").read_text(encoding="utf-8")
    toy, use = re.findall(r"```python\n(.*?)```", readme, flags=re.DOTALL)[-2:]
    (tmp_path / "toy.py").write_text(toy)
    monkeypatch.syspath_prepend(tmp_path)
    scope = {}
    exec(compile(use, "the docstring", "exec"), scope)
    own = [row for row in scope["table"].rows if row["solver"] == "toy"]
    assert [row["outcome"] for row in own] == ["done"] * 6
    assert all(row["true_gap"] < 1e-2 for row in own)


# The journal: nothing finished is lost, nothing is made twice

RACE = """
import sys
from seraph_cvx import compare_solvers
sys.path.insert(0, {folder!r})
compare_solvers({name!r}, ["slow=slow_one:solve"], tols={tols}, time_limit=9, out={out!r},
                resume=True)
"""
SLOW = """
import time
from seraph_cvx.race.solvers import Attempt

def solve(objective, tol, time_limit):
    time.sleep(0.05)
    return Attempt([[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], "tried", False)
"""


@pytest.mark.slow
def test_killed_at_random_moments_and_resumed_it_loses_and_repeats_nothing(tmp_path):
    (tmp_path / "slow_one.py").write_text(SLOW)
    out, tols = tmp_path / "race.jsonl", [10.0**-k for k in range(1, 18)]
    code = RACE.format(folder=str(tmp_path), name=TINY, tols=tols, out=str(out))
    rng = random.Random(2)
    finished = {}
    for is_killed in (True, False):
        process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
        while is_killed and process.poll() is None and len(rows_of(out)) <= len(finished):
            time.sleep(0.01)
        if is_killed:
            time.sleep(rng.uniform(0.0, 0.25))
            process.kill()
        assert process.wait(timeout=60) == (-signal.SIGKILL if is_killed else 0)
        rows = rows_of(out)
        assert finished.items() < rows.items()  # the same rows, to the last digit
        finished = rows
    assert len(finished) == len(tols)
    with RaceJournal(out, resume=True) as journal:
        assert len(journal.races) == 2


def test_cut_in_the_middle_of_a_line_the_journal_keeps_every_whole_row(tmp_path):
    """What a kill in the middle of a write can leave; the next row begins a line of its own."""
    out = tmp_path / "race.jsonl"
    row = EMPTY_ROW | {"instance": "i", "solver": "s", "formulation": "", "repeat": 1}
    with RaceJournal(out) as journal:
        for tol in (0.1, 0.01):
            journal.add("row", row | {"tol": tol})
    content = out.read_bytes()
    for cut, whole in ((-len(content), 0), (-40, 1), (-2, 1), (-1, 2)):
        out.write_bytes(content[:cut])
        with RaceJournal(out, resume=True) as journal:
            assert len(journal.rows) == whole
            assert len(journal.notes) == (cut in (-40, -2))
            journal.add("row", row | {"tol": 0.5})
        with RaceJournal(out, resume=True) as journal:
            assert len(journal.rows) == whole + 1


def rows_of(path):
    """The finished rows of a file, which must not hold any of them twice."""
    found = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        if '"kind":"row"' not in line or not line.endswith("}"):
            continue
        row = json.loads(line)
        assert key_of(row) not in found
        found[key_of(row)] = line
    return found


def test_a_race_does_not_write_over_another_nor_two_to_one_file(tmp_path):
    out = tmp_path / "race.jsonl"
    with RaceJournal(out), pytest.raises(ValueError, match="Another race"):
        RaceJournal(out, resume=True)
    out.write_text("precious\n")
    with pytest.raises(FileExistsError, match="resume=True"):
        compare_solvers(TINY, ["newton"], out=out)
    assert out.read_text() == "precious\n"


# The command


@pytest.fixture
def backwards(repository, tmp_path):
    """Three solvers on two instances of the committed race: rows came backwards, of two starts."""
    lines = (repository / "examples/solver-comparison/small/race.jsonl").read_text().splitlines()
    start, *others = (
        line
        for line in map(json.loads, lines)
        if line.get("instance", "iris-n30-standard-hyper").startswith("iris-n30-standard-hyper")
        and line.get("solver", "SCS") in ("newton", "SCS", "UNO")
    )
    again = start | {"versions": {"scs": "9.9", "uno": "1"}, "date": "2027-01-01"}
    again["time_limit"] += 1
    path = tmp_path / "race.jsonl"
    path.write_text("\n".join(map(json.dumps, [start, *others[::-1], again])) + "\n")
    return start, [line for line in others if line["kind"] == "row"], path


def test_a_race_is_read_back_in_order(backwards):
    start, rows, path = backwards
    race, seconds = read_race(path), start["time_limit"]
    instances, labels = start["instances"], start["entrants"]

    def position(key):
        label = "/".join(filter(None, key[1:3]))
        return instances.index(key[0]), labels.index(label), -key[3], key[4]

    expected = sorted(map(key_of, rows), key=position)
    assert [key_of(row) for row in race.rows] == expected
    assert set(race.references) == {row["instance"] for row in rows}
    assert race.notes == []
    assert race.time_limit == seconds + 1
    before = path.read_bytes()
    assert run("compare", "--redraw", "--out", str(path.parent)).exit_code == 0
    assert path.read_bytes() == before
    assert race.summary().to_markdown() in (path.parent / "race.md").read_text()
    assert (path.parent / "said-against-true.png").exists()


# The committed results


@pytest.mark.once
@pytest.mark.parametrize(("tier", "n_tols"), [("small", 3), ("medium", 2), ("large", 2)])
def test_committed_results_are_whole_and_in_their_tables(repository, tier, n_tols):
    folder = repository / "examples" / "solver-comparison" / tier
    race = read_race(folder / "race.jsonl")
    counts = Counter(row["instance"] for row in race.rows)
    n_runs = len(race.races[-1]["entrants"]) * n_tols * 3
    assert counts == dict.fromkeys([spec.name for spec in suite(tier)], n_runs)
    document = (folder / "race.md").read_text(encoding="utf-8")
    tables = [race.summary(), time_table(race, 1e-6)]
    assert all(table.to_markdown() in document for table in tables)
    own = [row for row in race.rows if row["solver"] == "newton"]
    assert all(row["claims"] and row["proved_gap"] <= row["tol"] for row in own)


@pytest.mark.once
def test_the_page_has_every_number_that_its_command_prints(repository, monkeypatch):
    pytest.importorskip("moreau", reason="moreau, whose race is in the numbers, is missing")
    folder = repository / "examples" / "solver-comparison"
    monkeypatch.syspath_prepend(folder)
    readme = (folder / "README.md").read_text(encoding="utf-8")
    for part in import_module("claims").page(folder).split("\n\n"):
        assert part in readme
    guide = (repository / "examples/guide/solvers.md").read_text(encoding="utf-8")
    quoted = re.findall(r"\d[\d.]+", guide.partition("as a multiple of `newton`'s, is")[2][:900])
    assert quoted
    for number in quoted:
        assert number.rstrip(".") in readme, number
