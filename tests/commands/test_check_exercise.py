"""Evidence: the grader accepts solutions, and says what is wrong with everything else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from seraph_cvx.cli import app
from seraph_cvx.cli.exercises import EXERCISES, fingerprints, grade

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "exercises"


def text_of(number, kind="solution"):
    folder = FOLDER / "solutions" if kind == "solution" else FOLDER
    return (folder / f"{kind}_{EXERCISES[number].name}.py").read_text(encoding="utf-8")


@pytest.fixture
def graded(tmp_path):
    """Grade a text, with pieces of it replaced."""

    def of(number, text, *changes, time_limit=60.0):
        for old, new in changes:
            assert text.count(old) >= 1, old
            text = text.replace(old, new, 1)
        file = tmp_path / "mine.py"
        file.write_text(text, encoding="utf-8")
        return grade(number, file, time_limit)

    return of


@pytest.mark.parametrize("number", EXERCISES)
def test_fingerprints_are_those_of_the_exercises(number):
    text = text_of(number, "exercise")
    marks = [mark for _, mark in fingerprints(text, EXERCISES[number].todos)]
    assert marks == EXERCISES[number].fingerprints.split()
    assert all(f"def {todo}(" in text for todo in EXERCISES[number].todos)


@pytest.mark.slow
def test_solution_is_accepted_by_the_command_with_helpers_imports_and_comments(tmp_path):
    helper = "import math\n\n\ndef square(x):\n    return x * x  # mine\n\n\ndef dual_value("
    mine = tmp_path / "mine.py"
    mine.write_text(text_of(4).replace("def dual_value(", helper, 1), encoding="utf-8")
    done = CliRunner().invoke(app, ["check-exercise", "4", str(mine)])
    assert done.exit_code == 0, done.output
    assert "Exercise 4 is solved" in done.output
    assert "100 random metrics" in done.output  # what the file itself says


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 8])
def test_solution_is_accepted_and_its_start_is_not(number, graded):
    assert graded(number, text_of(number)).is_solved
    begun = graded(number, text_of(number, "exercise"))
    assert not begun.is_solved
    assert "Not yet done" in begun.message
    assert "TODO 1: " in begun.message


def test_a_wrong_answer_is_located_with_the_values(graded):
    verdict = graded(4, text_of(4), ("c @ entropy(p)", "c @ (1 + entropy(p))"))
    assert not verdict.is_solved
    line = (
        text_of(4)
        .splitlines()
        .index("assert np.isclose(dual_value(b / c), 0.0)  # p as told: no entropy, nothing off")
    )
    assert f"Line {line + 1}: a check does not hold" in verdict.message
    assert re.search(r"^    dual_value\(b / c\) = \d+\.\d+$", verdict.message, re.M)
    assert "TODO 1, dual_value," in verdict.message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "change", "words"),
    [
        (4, ("1.0 / max(1.0, steepest)", "0.5 / max(1.0, steepest)"), "Here\n    gap = 5."),
        (5, ("[2][-1]", "[2][0]"), "Here\n    np.diff(values) = [ 8.7"),
        (1, ("q @", "-q @"), "Here\n    m_step_loss(A).value = "),
    ],
)
def test_the_values_of_every_kind_of_check_are_shown(number, change, words, graded):
    assert words in graded(number, text_of(number), change).message


@pytest.mark.slow
def test_an_error_in_an_answer_is_located(graded):
    verdict = graded(4, text_of(4), ("return c @ entropy(p)", "return c @ entropie(p)"))
    assert "NameError" in verdict.message
    assert "return c @ entropie(p)" in verdict.message


def test_a_lost_or_weakened_check_is_noticed_before_anything_runs(graded):
    check = "assert -1e-9 <= gap <= 1e-6\n"
    for change in ((check, ""), ("<= 1e-6\n", "<= 1e6\n"), (check, f"# {check}")):
        verdict = graded(4, text_of(4), change)
        assert not verdict.is_solved
        assert "is not exercise 4_weak_duality any more" in verdict.message


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("def dual_matrix(p):", "def matrix(p):"), "dual_matrix of TODO 2 is missing"),
        (("def dual_matrix(p):", "def dual_matrix(p)"), "is not valid Python"),
        (("import numpy", "raise SystemExit(0)\nimport numpy"), "before its end"),
    ],
)
def test_failure_path_of_a_damaged_file(graded, change, words):
    verdict = graded(4, text_of(4), change)
    assert not verdict.is_solved
    assert words in verdict.message


def test_failure_path_a_loop_without_end_is_stopped(graded):
    endless = ("import numpy", "while True:\n    pass\nimport numpy")
    verdict = graded(4, text_of(4), endless, time_limit=1.0)
    assert not verdict.is_solved
    assert "--time-limit" in verdict.message


def test_failure_path_no_such_file_and_no_such_exercise(tmp_path):
    lost = CliRunner().invoke(app, ["check-exercise", "4", str(tmp_path / "none.py")])
    assert lost.exit_code == 2
    assert "There is no file" in lost.output
    assert CliRunner().invoke(app, ["check-exercise", "9", "x.py"]).exit_code == 2
