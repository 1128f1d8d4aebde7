"""Evidence: the grader accepts solutions, and says what is wrong with everything else."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from command_line import assert_answered_in_words, run

from seraph_cvx.cli.exercises import EXERCISES, fingerprints

pytestmark = pytest.mark.once

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "exercises"


text_of = runpy.run_path(str(FOLDER / "solutions" / "fill_in.py"))["fill_in"]


def check(folder, number, text, options=""):
    """The command on a file with this text."""
    (folder / "mine.py").write_text(text, encoding="utf-8")
    return run(f"check-exercise {number} {options}", folder / "mine.py")


@pytest.mark.parametrize("number", EXERCISES)
def test_fingerprints_are_those_of_the_exercises(number):
    text, exercise = text_of(number, 0), EXERCISES[number]
    marks = [mark for _, mark in fingerprints(text, exercise.todos)]
    assert marks == exercise.fingerprints.split()
    assert all(f"def {todo}(" in text for todo in exercise.todos)
    (_, one), (_, spaced) = (*fingerprints("x = 1", ()), *fingerprints("x  =  1  # one", ()))
    assert one == spaced


@pytest.mark.slow
@pytest.mark.parametrize("number", [4, 8])
def test_solution_is_accepted_with_helpers_and_imports_and_its_start_is_not(number, tmp_path):
    helper = "import math\n\n\ndef square(x):\n    return x * x  # mine\n\n\n"
    todo = f"def {EXERCISES[number].todos[0]}("
    done = check(tmp_path, number, text_of(number).replace(todo, helper + todo, 1))
    assert done.exit_code == 0, done.output
    assert f"Exercise {number} is solved" in done.output
    assert number != 4 or "100 random metrics" in done.output  # what the file itself says
    begun = check(tmp_path, number, text_of(number, 0))
    assert_answered_in_words(begun, ["Not yet done", "TODO 1: "], exit_code=1)


CHECK = "assert -1e-9 <= gap <= 1e-6\n"
LOST = "is not exercise 4_weak_duality any more"
WRONG = [
    (
        *(4, "c @ entropy(p)", "c @ (1 + entropy(p))", "a check does not hold."),
        *("assert np.isclose(dual_value(b / c), 0.0)", "Here dual_value(b / c) = "),
        "Look at TODO 1, dual_value, first",
    ),
    (4, CHECK, "", LOST),
    (4, "<= 1e-6\n", "<= 1e6\n", LOST),
    (4, CHECK, f"# {CHECK}", LOST),
    (4, "def dual_matrix(p):", "def matrix(p):", "dual_matrix of TODO 2 is missing"),
    (4, "def dual_matrix(p):", "def dual_matrix(p)", "is not valid Python"),
    (4, "import numpy", "raise SystemExit(0)\nimport numpy", "before its end"),
    (4, "import numpy", "import os\nos._exit(3)\nimport numpy", "exit code 3"),
    (4, "import numpy", "while True:\n    pass\nimport numpy", "more time with --time-limit"),
]
SLOWLY_WRONG = [
    (4, "1.0 / max(1.0, steepest)", "0.5 / max(1.0, steepest)", "Here gap = 5."),
    (5, "[2][-1]", "[2][0]", "Here np.diff(values) = [ 8.7"),
    (4, "return c @ entropy(p)", "return c @ entropie(p)", "NameError", "c @ entropie(p) -"),
]


@pytest.mark.parametrize(
    "case", [*WRONG, *(pytest.param(case, marks=pytest.mark.slow) for case in SLOWLY_WRONG)]
)
def test_what_is_wrong_with_a_file_is_said_with_its_place(case, tmp_path):
    number, old, new, *reasons = case
    text = text_of(number)
    assert old in text
    options = "--time-limit 1" if "while" in new else ""
    done = check(tmp_path, number, text.replace(old, new, 1), options)
    assert_answered_in_words(done, reasons, exit_code=1)


def test_no_such_file_and_no_such_exercise():
    assert_answered_in_words(run("check-exercise 4 none.py"), ["There is no file"])
    assert run("check-exercise 9 x.py").exit_code == 2
