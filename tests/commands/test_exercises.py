"""Evidence: the exercises can be solved, stop where they say, and notice a wrong answer."""

from __future__ import annotations

import ast
import re
import runpy
import sys
import traceback
from pathlib import Path

import pytest

import seraph_cvx

pytestmark = pytest.mark.once

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "exercises"
EXERCISES = sorted(FOLDER.glob("exercise_*.py"))
NAMES = [path.stem.removeprefix("exercise_") for path in EXERCISES]
SOLUTIONS = runpy.run_path(str(FOLDER / "solutions" / "fill_in.py"))
fill_in = SOLUTIONS["fill_in"]
MAY_IMPORT = {"numpy", "cvxpy", "seraph_cvx"}

WRONG = {
    ("1_convexity", "surprise"): ("label * s", "s - label"),
    ("1_convexity", "m_step_loss"): ("(1.0 - q) @", "q @"),
    ("1_convexity", "counterexample"): ("max(bulge", "min(bulge"),
    ("2_gradient", "scores"): ("- eta", "+ eta"),
    ("2_gradient", "probability_dissimilar"): ("1.0, small)", "small, 1.0)"),
    ("2_gradient", "gradient"): ("- b\n", "- b / c\n"),
    ("3_one_logistic_term", "label_sums"): ("mu * (1.0 - q)", "mu * q"),
    ("3_one_logistic_term", "one_term"): ("- np.sum(G * A)", "+ np.sum(G * A)"),
    ("3_one_logistic_term", "twin"): ("[2][-1]", "[2][0]"),
    ("4_weak_duality", "dual_value"): ("c @ entropy(p)", "np.sum(entropy(p))"),
    ("4_weak_duality", "dual_matrix"): ("(c * p - b)", "(p - b)"),
    ("4_weak_duality", "feasible"): ("1.0 / max(1.0, steepest)", "1.0"),
    ("5_trace_weight", "falling_direction"): ("[2][-1]", "[2][0]"),
    ("5_trace_weight", "critical_trace_weight"): ("np.exp(eta)", "np.exp(-eta)"),
    ("6_e_step", "state_e_step"): ("mu * surprise", "surprise"),
    ("6_e_step", "closed_form"): ("1.0 + mu", "mu"),
    ("6_e_step", "optimal_value"): ("P ** (1.0 + mu)", "P**2"),
    ("7_descent", "objective_7"): ("np.exp(-far) * far", "far"),
    ("7_descent", "descent"): ("/ (1.0 + mu)", "* (1.0 + mu)"),
    ("8_own_solver", "project"): ("np.maximum(eigenvalues, 0.0)", "np.abs(eigenvalues)"),
    ("8_own_solver", "my_solver"): ("range(5000)", "range(3)"),
}
"""For each TODO: a piece of its solution, and a mistake to put in its place."""


def is_todo(node):
    """A function of a starter that does nothing but raise its hint."""
    last = node.body[-1] if isinstance(node, ast.FunctionDef) else None
    called = last.exc if isinstance(last, ast.Raise) else None
    return isinstance(called, ast.Call) and called.func.id == "NotImplementedError"


def todos(name):
    """The names of the functions to fill in, in order."""
    text = (FOLDER / f"exercise_{name}.py").read_text(encoding="utf-8")
    return [node.name for node in ast.parse(text).body if is_todo(node)]


def run(text, label):
    """Execute a file's text as a script would be."""
    exec(compile(text, label, "exec"), {"__name__": "__main__"})


def test_there_are_eight_and_the_index_names_each():
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d) \| \[.*?\]\(exercise_(\w+)\.py\).*\| (\d) \|$", index, re.M)
    expected = [(str(k), name, str(len(todos(name)))) for k, name in enumerate(NAMES, start=1)]
    assert rows == expected
    assert len(rows) == 8


@pytest.mark.parametrize("name", NAMES)
def test_solution_runs_and_its_assertions_hold(name, capsys):
    text = fill_in(name[0])
    checks = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Assert)]
    assert len(checks) > len(todos(name))
    run(text, f"solution_{name}.py")
    assert capsys.readouterr().out.count("\n") >= 1


@pytest.mark.parametrize("name", NAMES)
def test_starter_stops_at_its_todos_one_after_the_other_with_the_hint(name):
    """As it is at TODO 1; with the answers to the first k, at TODO k + 1; in no other place."""
    for k, function in enumerate(todos(name)):
        text, label = fill_in(name[0], k), f"exercise_{name}.py"
        assert f"# %% TODO {k + 1}. " in text
        with pytest.raises(NotImplementedError, match=rf"^TODO {k + 1}: .{{20}}") as caught:
            run(text, label)
        frame = traceback.extract_tb(caught.tb)[-1]
        assert (frame.filename, frame.name) == (label, function)


@pytest.mark.parametrize(("name", "function"), WRONG)
def test_wrong_answer_to_a_todo_is_noticed(name, function):
    text = fill_in(name[0])
    body = SOLUTIONS["functions"](text)[function].rpartition('"""')[2]
    right, wrong = WRONG[name, function]
    assert right in body
    with pytest.raises(AssertionError):
        run(text.replace(body, body.replace(right, wrong, 1)), f"wrong_{name}.py")


def test_wrong_answers_are_tried_for_every_todo():
    assert list(WRONG) == [(name, function) for name in NAMES for function in todos(name)]


@pytest.mark.parametrize("path", EXERCISES, ids=lambda path: path.stem)
def test_only_public_names_are_used(path):
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"seraph_cvx\.(?!paper)[a-z]", text)
    listed = re.findall(r"^from seraph_cvx import \(?([\w\s,]+?)\)?$", text, re.M)
    assert set(re.findall(r"\w+", ",".join(listed))) <= {*seraph_cvx.__all__, "paper"}
    imported = set(re.findall(r"^(?:from|import) (\w+)", text, re.M))
    assert imported <= MAY_IMPORT | sys.stdlib_module_names
