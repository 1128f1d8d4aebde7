"""Evidence: the exercises can be solved, stop where they say, and notice a wrong answer."""

from __future__ import annotations

import ast
import re
import runpy
import sys
import traceback

import pytest
from exercise_table import FOLDER, files, todos

import seraph_cvx

pytestmark = pytest.mark.once

FILES = files()
SOLUTIONS = runpy.run_path(str(FOLDER / "solutions" / "fill_in.py"))
fill_in = SOLUTIONS["fill_in"]
MAY_IMPORT = {"numpy", "cvxpy", "seraph_cvx"}

WRONG = {
    ("1", "surprise"): ("label * s", "s - label"),
    ("1", "m_step_loss"): ("(1.0 - q) @", "q @"),
    ("1", "counterexample"): ("max(bulge", "min(bulge"),
    ("2", "scores"): ("- eta", "+ eta"),
    ("2", "probability_dissimilar"): ("1.0, small)", "small, 1.0)"),
    ("2", "gradient"): ("- b\n", "- b / c\n"),
    ("3", "label_sums"): ("mu * (1.0 - q)", "mu * q"),
    ("3", "one_term"): ("- np.sum(G * A)", "+ np.sum(G * A)"),
    ("3", "twin"): ("[2][-1]", "[2][0]"),
    ("4", "dual_value"): ("c @ entropy(p)", "np.sum(entropy(p))"),
    ("4", "dual_matrix"): ("(c * p - b)", "(p - b)"),
    ("4", "feasible"): ("1.0 / max(1.0, steepest)", "1.0"),
    ("5", "falling_direction"): ("[2][-1]", "[2][0]"),
    ("5", "critical_trace_weight"): ("np.exp(eta)", "np.exp(-eta)"),
    ("6", "state_e_step"): ("mu * surprise", "surprise"),
    ("6", "closed_form"): ("1.0 + mu", "mu"),
    ("6", "optimal_value"): ("P ** (1.0 + mu)", "P**2"),
    ("7", "objective_7"): ("np.exp(-far) * far", "far"),
    ("7", "descent"): ("/ (1.0 + mu)", "* (1.0 + mu)"),
    ("8", "project"): ("np.maximum(eigenvalues, 0.0)", "np.abs(eigenvalues)"),
    ("8", "my_solver"): ("range(5000)", "range(3)"),
    ("set1", "nearest_metric"): ("Fraction(8, 5)", "Fraction(16, 10) + 1"),
    ("set1", "state_projection"): ("A >> 0", "A >= 0"),
    ("set1", "counterexample"): ("[[2, 1], [1, 1]]", "[[2, 0], [0, 1]]"),
    ("set2", "curvature"): ("(2.0 * p - 1.0) - 1.0", "(2.0 * p - 1.0)"),
    ("set2", "state_m_step"): ("- cp.sum(cp.multiply(G, A))", "+ cp.sum(cp.multiply(G, A))"),
    ("set2", "counterexample"): ("L, -L", "L, 2.0 * L"),
    ("set3", "conjugate"): (" if p >= 0.0 else np.inf", ""),
    ("set3", "state_dual"): ("cp.entr(p) + cp.entr(1 - p)", "cp.entr(p)"),
    ("set3", "false_bound"): ("np.exp(eta)", "np.exp(-9.0 * eta)"),
    ("set4", "longest_step"): ("Fraction(1, 2)", "Fraction(6, 13)"),
    ("set4", "state_longest_step"): ("anchor >> 0", "anchor >= 0"),
    ("set4", "looks_positive"): (" and not is_psd(matrix)", ""),
    ("set5", "barrier_weight"): ("A * (trace_weight", "(trace_weight"),
    ("set5", "state_central_path"): ("epsilon * cp", "epsilon / 2.0 * cp"),
    ("set5", "looks_done"): ("np.eye(2)", "np.zeros((2, 2))"),
    ("set6", "best_soft_label"): ("np.exp(a * s)", "np.exp(s)"),
    ("set6", "state_e_step"): ("share * len(s)", "share"),
    ("set6", "two_starts"): ("0.0, 10.0", "5.0, 10.0"),
    ("set7", "dual_function"): ("3.0 * lam", "2.0 * lam"),
    ("set7", "state_both"): ("C - cp.diag(lam) >> 0", "cp.diag(lam) - C << np.eye(len(C))"),
    ("set7", "program_with_a_gap"): ("[3, 0, 0]", "[3, 0, 1]"),
    ("set8", "in_dual_cone"): ("np.cumsum(lam)", "np.array(lam)"),
    ("set8", "logistic_constraints"): ("first + second <= 1", "first + second <= 2"),
    ("set8", "nearly_in_the_cone"): ("1e-13", "0.9e-8"),
    ("set9", "curvature_bound"): (" ** 2 / 4.0", " / 4.0"),
    ("set9", "state_step"): ("ell / 2.0", "ell"),
    ("set9", "too_long"): ("100.0 / ell", "3.0 / ell"),
    ("set10", "multipliers"): ("[Fraction(6, 5), Fraction(7, 5), 0, 0]", "[2, 1, 0, 0]"),
    ("set10", "own_problem"): ("cp.norm(x - point)", "cp.sum_squares(x - point)"),
    ("set10", "tampered"): ("0.999 - 0.9e-6", "0.999 - 0.9e-4"),
}
"""For each TODO: a piece of its solution, and a mistake to put in its place."""


def run(text, label):
    """Execute a file's text as a script would be."""
    exec(compile(text, label, "exec"), {"__name__": "__main__"})


def wrong_text(name, function, right, wrong):
    """A solved file with a mistake in one answer."""
    text = fill_in(name)
    body = SOLUTIONS["functions"](text)[function].rpartition('"""')[2]
    assert right in body
    return text.replace(body, body.replace(right, wrong))


@pytest.mark.parametrize("name", FILES)
def test_solution_runs_and_its_assertions_hold(name, capsys):
    text = fill_in(name)
    checks = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Assert)]
    assert len(checks) > len(todos(FILES[name]))
    run(text, f"solution_{name}.py")
    assert capsys.readouterr().out.count("\n") >= 1


@pytest.mark.parametrize("name", FILES)
def test_starter_stops_at_its_todos_one_after_the_other_with_the_hint(name):
    """As it is at TODO 1; with the answers to the first k, at TODO k + 1; in no other place."""
    for k, function in enumerate(todos(FILES[name])):
        text, label = fill_in(name, k), FILES[name].name
        assert f"# %% TODO {k + 1}. " in text
        with pytest.raises(NotImplementedError, match=rf"^TODO {k + 1}: .{{20}}") as caught:
            run(text, label)
        frame = traceback.extract_tb(caught.tb)[-1]
        assert (frame.filename, frame.name) == (label, function)


@pytest.mark.parametrize(
    ("name", "function", "right", "wrong"),
    [(*todo, *mistake) for todo, mistake in WRONG.items()],
)
def test_wrong_answer_to_a_todo_is_noticed(name, function, right, wrong):
    text = wrong_text(name, function, right, wrong)
    with pytest.raises(AssertionError) as caught:
        run(text, f"wrong_{name}.py")
    frames = traceback.extract_tb(caught.tb)
    line = next(frame.lineno for frame in frames if frame.filename == f"wrong_{name}.py")
    begin = text.index(f"def {function}(")
    assert line > text[:begin].count("\n")  # not before its TODO


def test_wrong_answers_are_tried_for_every_todo():
    assert list(WRONG) == [(name, todo) for name in FILES for todo in todos(FILES[name])]


@pytest.mark.parametrize("path", FILES.values(), ids=lambda path: path.stem)
def test_only_public_names_are_used(path):
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"seraph_cvx\.(?!paper)[a-z]", text)
    listed = re.findall(r"^from seraph_cvx import \(?([\w\s,]+?)\)?$", text, re.M)
    assert set(re.findall(r"\w+", ",".join(listed))) <= {*seraph_cvx.__all__, "paper"}
    imported = set(re.findall(r"^(?:from|import) (\w+)", text, re.M))
    assert imported <= MAY_IMPORT | sys.stdlib_module_names
