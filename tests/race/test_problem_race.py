"""Solvers on any convex problem: what they say is judged by what is proven."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from command_line import assert_answered_in_words, run, words
from cvxpy.reductions.solvers.conic_solvers.scs_conif import SCS
from instances import random_objective

from seraph_cvx import certify_problem, compare_solvers
from seraph_cvx.race.compare import read_race
from seraph_cvx.race.verdict import Answer, verdict

X = cp.Variable(3, name="x")
LEAST_SQUARES = cp.Problem(cp.Minimize(cp.sum_squares(X - np.arange(3.0))), [cp.sum(X) == 0])
INFEASIBLE = cp.Problem(cp.Minimize(X[0]), [X >= 1, cp.sum(X) <= 2])
UNBOUNDED = cp.Problem(cp.Maximize(cp.sum(X)), [X >= 0])

FILE = """
import cvxpy as cp
x = cp.Variable(name="x")
problem = cp.Problem(cp.Minimize(cp.square(x - 1) + cp.abs(x)))
integer = cp.Problem(cp.Minimize(cp.Variable(integer=True)))
number = 3
def empty():
    return cp.Problem(cp.Minimize(x), [x >= 1, x <= 0])
def broken():
    return 1 / 0
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "own.py"
    path.write_text(FILE)
    return path


@pytest.mark.usefixtures("one_race_server")
def test_each_answer_is_measured_at_its_own_point():
    X.value = None
    race = compare_solvers(LEAST_SQUARES, ["CLARABEL", ("SCS", {"max_iters": 2})])
    good, bad = race.rows
    assert X.value is None
    (reference,) = race.references.values()
    assert reference["lower"] <= 3.0 <= reference["upper"]
    assert (good["proof"], bad["solver"]) == ("agrees", "SCS(max_iters=2)")
    assert bad["proof"].startswith("contradicts: a constraint is violated by")
    for row in race.rows:
        assert row["said"].startswith("optimal")
        assert abs(row["value"] - 3.0) <= 3.0 * row["true_gap"] + 1e-12
        assert row["compile_seconds"] > 0.0
        assert row["solve_seconds"] > 0.0
    assert good["true_gap"] < 1e-6
    assert good["violation"] < 1e-8
    assert bad["true_gap"] > 1e-4 or bad["violation"] > 1e-4
    assert "proof" in race.to_markdown()
    assert str(race).splitlines()[2].split()[-2:] == ["total_seconds", "verdict"]


@pytest.mark.usefixtures("one_race_server")
@pytest.mark.parametrize(
    ("problem", "said"), [(INFEASIBLE, "infeasible"), (UNBOUNDED, "unbounded")]
)
def test_what_is_infeasible_or_unbounded_is_said_so(problem, said):
    (row,) = compare_solvers(problem, ["CLARABEL"]).rows
    assert (row["said"], row["proof"]) == (said, "agrees")


def test_a_status_that_the_proof_contradicts_is_called_so():
    feasible, infeasible = certify_problem(LEAST_SQUARES), certify_problem(INFEASIBLE)
    for status in ("infeasible", "unbounded_inaccurate", "infeasible_or_unbounded"):
        assert verdict(feasible, Answer(status)) == "contradicts: it has an optimum"
    assert verdict(infeasible, Answer("unbounded")) == "contradicts: it is infeasible"
    assert verdict(infeasible, Answer("infeasible_or_unbounded")) == "agrees"
    assert verdict(feasible, Answer("user_limit")) == ""


class Renamed(SCS):
    """A solver class of one's own, as CVXPY takes it."""

    def name(self):
        return "RENAMED"


@pytest.mark.usefixtures("one_race_server")
@pytest.mark.parametrize("solver", ["CLARABEL", "OSQP", "HIGHS", "MOREAU"])
def test_a_problem_that_was_solved_before_races_with_solvers_of_ones_own(solver):
    """Whatever CVXPY keeps of the solver is not sent, and a CallbackParam is."""
    if solver not in cp.installed_solvers():
        pytest.skip(f"{solver} is not installed")
    weight = cp.Parameter(value=1.0)
    twice = cp.CallbackParam(lambda: 2.0 * weight.value)
    problem = cp.Problem(cp.Minimize(X[0] + twice * X[1]), [X >= 0, cp.sum(X) == 1, X[2] <= 0.25])
    problem.solve(solver=solver)

    def own(given):
        given.solve(solver="CLARABEL")
        assert X.value is not None  # the same variable, also in the process of the run

    def idle(given):
        """Leaves the values as they are: nothing of an earlier solve is to be found there."""

    race = compare_solvers(problem, [Renamed(), own, "CLARABEL", idle])
    assert [row["solver"] for row in race.rows] == ["RENAMED", "own", "CLARABEL", "idle"]
    assert [row["proof"] for row in race.rows] == ["agrees"] * 3 + ["not judged: no point"]
    assert X.value is not None


@pytest.mark.usefixtures("one_race_server")
def test_variables_of_another_process_keep_their_numbers():
    """CVXPY numbers variables from 1 in each process: those that compiling adds came twice."""
    x = [cp.Variable() for _ in range(300)][-1]
    problem = cp.Problem(cp.Minimize(cp.exp(x) + cp.exp(-x) + cp.abs(x - 1)), [cp.norm(x) <= 5])
    (row,) = compare_solvers(problem, ["CLARABEL"]).rows
    assert row["proof"] == "agrees", row


@pytest.mark.usefixtures("one_race_server")
def test_a_solver_for_other_cones_is_named_and_one_that_is_missing_refused():
    race = compare_solvers(cp.Problem(cp.Minimize(cp.exp(X[0])), [X[0] >= 0]), time_limit=30.0)
    *_, note = race.in_short().notes
    assert note.startswith("Not for this problem: ")
    assert "OSQP" in note
    assert "OSQP" not in [row["solver"] for row in race.in_short().rows]
    with pytest.raises(ValueError, match="'NOSUCH' is not installed"):
        compare_solvers(LEAST_SQUARES, ["NOSUCH"])


@pytest.mark.usefixtures("one_race_server")
def test_problems_have_the_journal_the_tolerances_and_the_table_of_m_steps(tmp_path):
    smooth = cp.Problem(cp.Minimize(cp.sum(cp.exp(X) - X)), [X[1] - X[2] == 1])
    problems = {"one": smooth, "none": INFEASIBLE}
    given = {"solvers": ["SCS", "CLARABEL"], "tols": [1e-3, 1e-8], "out": tmp_path / "rows.jsonl"}
    race = compare_solvers(problems, **given)
    assert [row["tol"] for row in race.rows] == [1e-3, 1e-8] * 4
    loose, tight = (row["true_gap"] for row in race.rows[:2])
    assert loose > tight  # SCS was told
    assert {row["said"] for row in race.rows[4:]} == {"infeasible"}
    assert [line["true"] for line in race.summary().rows] == [4, 4]
    assert compare_solvers(problems, **given, resume=True).rows == race.rows
    assert read_race(given["out"]).rows == race.rows
    with pytest.raises(ValueError, match="give another file"):
        compare_solvers(problems | {"one": UNBOUNDED}, **given, resume=True)
    with pytest.raises(ValueError, match="all of them of one kind"):
        compare_solvers(problems | {"m-step": random_objective(0, "hyper")})


def test_the_commands_take_a_problem_of_a_file(file, tmp_path):
    proof = tmp_path / "proof.json"
    answer = run(f"certify {file}:problem --solver SCS --json", proof)
    assert answer.exit_code == 0, answer.output
    assert "SCS says: optimal" in answer.output
    assert "the optimal value lies in" in words(answer.output)
    assert run("check", proof).exit_code == 0
    proof.write_text(proof.read_text().replace("0x1.", "0x1.1", 40))
    assert run("check", proof).exit_code == 1
    assert "no point is feasible" in words(run(f"certify {file}:empty").output)
    answer = run(f"compare {file}:problem --solvers CLARABEL")
    assert answer.exit_code == 0, answer.output
    assert "CLARABEL" in answer.output
    assert "So the problem is convex" in run(f"explain {file}:problem").output


@pytest.mark.parametrize(
    ("name", "culprits"),
    [
        ("number", ["number of", "is int, no CVXPY problem", "problem, integer"]),
        ("nothing", ["is not defined", "It has: problem"]),
        ("broken", ["line 10", "ZeroDivisionError"]),
        ("integer", ["Integer or boolean variables"]),
        ("not a name", ["is not FILE.py:NAME"]),
    ],
)
def test_failure_path_a_file_without_a_problem_is_named(file, name, culprits):
    assert_answered_in_words(run("certify", f"{file}:{name}"), culprits)


def test_failure_path_a_file_that_is_not_there_is_named(tmp_path):
    assert_answered_in_words(run("compare", tmp_path / "no.py:problem"), ["There is no file"])
