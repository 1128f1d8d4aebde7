"""Evidence: the grader accepts solutions, and says what is wrong with everything else."""

from __future__ import annotations

import runpy

import pytest
from command_line import assert_answered_in_words, run
from exercise_table import FOLDER, TABLE, files, table, todos

from seraph_cvx.cli.exercises import exercises, fingerprints

pytestmark = pytest.mark.once

SETS = [name for name in files() if name.startswith("set")]

text_of = runpy.run_path(str(FOLDER / "solutions" / "fill_in.py"))["fill_in"]


def check(folder, name, text, options=""):
    """The command on a file with this text."""
    (folder / "mine.py").write_text(text, encoding="utf-8")
    return run(f"check-exercise {name} {options}", folder / "mine.py")


def test_table_of_the_grader_is_that_of_the_files():
    expected = table()
    assert TABLE.read_text(encoding="utf-8") == expected, (
        f"python tests/helpers/exercise_table.py writes {TABLE.name} again:\n{expected}"
    )
    for name, exercise in exercises().items():
        assert (exercise.file, list(exercise.todos)) == (
            files()[name].name,
            todos(files()[name]),
        )


def test_fingerprint_sees_code_and_not_its_spacing():
    (_, one), (_, spaced) = (*fingerprints("x = 1", ()), *fingerprints("x  =  1  # one", ()))
    assert one == spaced
    assert [one] != [mark for _, mark in fingerprints("x = 2", ())]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["4", "set7"])
def test_solution_is_accepted_with_helpers_and_imports_and_its_start_is_not(name, tmp_path):
    helper = "import math\n\n\ndef square(x):\n    return x * x  # mine\n\n\n"
    todo = f"def {exercises()[name].todos[0]}("
    done = check(tmp_path, name, text_of(name).replace(todo, helper + todo, 1))
    assert done.exit_code == 0, done.output
    title = f"Problem set {name[3:]}" if name in SETS else f"Exercise {name}"
    assert f"{title} is solved: all checks hold." in done.output
    assert name != "4" or "100 random metrics" in done.output  # what the file itself says
    begun = check(tmp_path, name, text_of(name, 0))
    assert_answered_in_words(begun, ["Not yet done", "TODO 1: "], exit_code=1)


CHECK = "assert -1e-9 <= gap <= 1e-6\n"
LOST = "is not exercise 4_weak_duality any more"
WRONG = [
    (
        *("4", "c @ entropy(p)", "c @ (1 + entropy(p))", "a check does not hold."),
        *("assert np.isclose(dual_value(b / c), 0.0)", "Here b = ["),
        "Look at TODO 1, dual_value, first",
    ),
    ("4", CHECK, "", LOST),
    ("4", "<= 1e-6\n", "<= 1e6\n", LOST),
    ("4", CHECK, f"# {CHECK}", LOST),
    ("4", "def dual_matrix(p):", "def matrix(p):", "dual_matrix of TODO 2 is missing"),
    ("4", "def dual_matrix(p):", "def dual_matrix(p)", "is not valid Python"),
    ("4", "import numpy", "raise SystemExit(0)\nimport numpy", "before its end"),
    ("4", "import numpy", "import os\nos._exit(3)\nimport numpy", "exit code 3"),
    ("4", "import numpy", "while True:\n    pass\nimport numpy", "more time with --time-limit"),
]


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_with_a_file_is_said_with_its_place(case, tmp_path):
    number, old, new, *reasons = case
    text = text_of(number)
    assert old in text
    options = "--time-limit 1" if "while" in new else ""
    done = check(tmp_path, number, text.replace(old, new, 1), options)
    assert_answered_in_words(done, reasons, exit_code=1)


def test_no_such_file_and_no_such_exercise():
    assert_answered_in_words(run("check-exercise 4 none.py"), ["There is no file"])
    for name in ("9", "set11", "set", "exercise_4"):
        known = [f"There is no exercise '{name}'", "1 exercise_1_convexity.py"]
        known += [
            "8 exercise_8_own_solver.py",
            "set1 set_1_cone.py",
            "set10 set_10_certificates.py",
        ]
        assert_answered_in_words(run(f"check-exercise {name} x.py"), known)
