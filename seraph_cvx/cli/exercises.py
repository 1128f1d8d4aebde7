"""`seraph-cvx check-exercise`: run a student's file, and say what is wrong with it.

Assertions of the file check the answers; that none of them was lost or changed is seen from
fingerprints of the exercise as it was handed out.
"""

from __future__ import annotations

import ast
import io
from collections.abc import Iterator
from contextlib import redirect_stdout
from hashlib import sha256
from pathlib import Path
from traceback import walk_tb
from typing import NamedTuple

import typer

from ..processes.isolation import run_isolated
from .files import require_file
from .main import DEBUG, app, argument, option
from .report import alert, answers_in_words, say

CHECKED = "checked.py"
MOST_CHARACTERS = 120
"""Of each value in an assertion that failed."""


class Exercise(NamedTuple):
    """The name of an exercise, its functions to fill in, and fingerprints of all else, in order."""

    name: str
    todos: tuple[str, ...]
    fingerprints: str


class Grade(NamedTuple):
    """Whether a file is solved; what it printed then, or else what is wrong and what to do."""

    is_solved: bool
    message: str


@app.command(
    "check-exercise", epilog="Example:  seraph-cvx check-exercise 4 exercise_4_weak_duality.py"
)
def check_exercise(
    number: int = argument(..., "The number of the exercise.", min=1, max=8),
    file: Path = argument(..., "Your file. It is run, as by Python."),
    time_limit: float = option(300.0, "Seconds that the file may take.", min=1.0),
    debug: bool = DEBUG,
) -> None:
    """Check your solution of an exercise, and say what is wrong with it.

    The exercises are in examples/exercises. Exit code 0: solved; 1: not yet; 2: an error.
    """
    with answers_in_words():
        require_file(file)
        graded = grade(number, file, time_limit)
        if not graded.is_solved:
            alert(graded.message)
            raise typer.Exit(1)
        say(f"{graded.message}\n\nExercise {number} is solved: all checks hold.")


def grade(number: int, file: Path, time_limit: float = 300.0) -> Grade:
    """Check a student's file of an exercise, which may take so many seconds."""
    text = file.read_text(encoding="utf-8")
    try:
        wrong = _what_was_lost(EXERCISES[number], text)
    except SyntaxError as error:
        wrong = f"Line {error.lineno} is not valid Python: {error.msg}."
    if wrong:
        return Grade(False, wrong)
    outcome = run_isolated(run_file, number, text, time_limit=time_limit)
    if outcome.status == "done":
        return Grade(*outcome.result)
    if outcome.status == "time limit":
        return Grade(
            False,
            f"The file ran for {time_limit:g} seconds and was stopped: look for a loop that "
            "does not end, or give it more time with --time-limit.",
        )
    return Grade(False, f"The file ended without a result: {outcome.detail}.")


def run_file(number: int, text: str) -> Grade:
    """Run the text of a student's file as a script."""
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            exec(compile(text, CHECKED, "exec", optimize=0), {"__name__": "__main__"})
    except SystemExit:
        return Grade(False, "The file ended without a result: it stops before its end.")
    except Exception as error:
        return Grade(False, _explain(EXERCISES[number], text, error))
    return Grade(True, printed.getvalue().strip())


def fingerprints(text: str, todos: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """The last line and a digest of each statement but for the TODOs, whatever the spacing."""
    tree = ast.parse(text)
    for node in tree.body[1:] if ast.get_docstring(tree) is not None else tree.body:
        if getattr(node, "name", None) not in todos:
            source = "".join((ast.get_source_segment(text, node) or "").split())
            yield node.end_lineno or 0, sha256(source.encode()).hexdigest()[:6]


def _functions(text: str) -> dict[str, int]:
    """The lines on which functions are defined, by name."""
    nodes = ast.parse(text).body
    return {node.name: node.lineno for node in nodes if isinstance(node, ast.FunctionDef)}


def _what_was_lost(exercise: Exercise, text: str) -> str:
    """Name a TODO that has no function, or where the file departs from the exercise."""
    for k, todo in enumerate(exercise.todos, start=1):
        if todo not in _functions(text):
            return (
                f"The function {todo} of TODO {k} is missing: keep its name, and write it at the "
                "left margin."
            )
    remaining, where = fingerprints(text, exercise.todos), "at the top"
    for wanted in exercise.fingerprints.split():
        for line, fingerprint in remaining:
            if fingerprint == wanted:
                where = f"below line {line}"
                break
        else:
            return (
                f"The file is not exercise {exercise.name} any more: {where} something is missing "
                "or changed outside of the TODOs. Copy your answers into a fresh file."
            )
    return ""


def _explain(exercise: Exercise, text: str, error: Exception) -> str:
    """Say in sentences how a file failed."""
    frames = [(f, k) for f, k in walk_tb(error.__traceback__) if f.f_code.co_filename == CHECKED]
    (frame, first), (_, last), lines = frames[0], frames[-1], text.splitlines()
    if isinstance(error, NotImplementedError):
        return f"Not yet done, line {last}. {error}"
    todo, functions = "the lines above", _functions(text)
    for k, name in enumerate(exercise.todos, start=1):
        if functions[name] <= first:
            todo = f"TODO {k}, {name},"
    if not isinstance(error, AssertionError):
        return (
            f"Line {last}: {type(error).__name__}: {error}\n    {lines[last - 1].strip()}\n"
            f"  It happened on the way to line {first}; look at {todo} first."
        )
    values = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assert) and node.lineno == first and node.msg is None:
            for side in map(ast.unparse, _sides(node.test)):
                value = " ".join(str(eval(side, frame.f_globals, frame.f_locals)).split())
                values[side] = value[:MOST_CHARACTERS] + " ..." * (len(value) > MOST_CHARACTERS)
    shown = "".join(f"\n    {side} = {value}" for side, value in values.items())
    return (
        f"Line {first}: a check does not hold.\n    {lines[first - 1].strip()}\n"
        + (f"  Here{shown}\n" if shown else "")
        + f"  Look at {todo} first, then at what it uses."
    )


def _sides(test: ast.expr) -> list[ast.expr]:
    """What a check is about: a <= b <= c, np.isclose(a, b), np.all((a > b) & c), x.is_dcp()."""
    sides: list[ast.expr] = []
    for node in ast.walk(test):
        if isinstance(node, ast.Compare):
            sides += [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("isclose", "allclose"):
                sides += node.args[:2]
            elif node.func.attr in ("is_convex", "is_dcp"):
                sides.append(node.func.value)
    return [side for side in sides if any(isinstance(part, ast.Name) for part in ast.walk(side))]


EXERCISES = {
    1: Exercise(
        "1_convexity",
        ("surprise", "m_step_loss", "counterexample"),
        "09855d b718c9 87e878 e47762 cb007a 5af671 c07936 29adc2 9aace4 425639 0ecd53 "
        "7f606e 159e20 85b005 d9e649 885038 d9fdd1 e66b63 f53214 906a4b 46543a c1e23a "
        "4cb1cd fccc64 0b029e 6223f7 3bbe2e 3e4934 eb503b",
    ),
    2: Exercise(
        "2_gradient",
        ("scores", "probability_dissimilar", "gradient"),
        "b718c9 87e878 332146 051055 4cb0a9 9aace4 9a19ea dbba9d c74844 c43cec 2a6d5a "
        "3d4059 e66b63 ed2a92 a32218 04f5a6 cddbce 61cc8a e9cca0",
    ),
    3: Exercise(
        "3_one_logistic_term",
        ("label_sums", "one_term", "twin"),
        "b718c9 f8c1b0 2369aa 23e04c a60265 922a10 c07936 29adc2 99a189 5ad798 0548e3 "
        "abcab8 98ac17 c9c19e bc9245 154a76 571af9 6ec7d1 03bca6 828be0 7696ae f3d0c5",
    ),
    4: Exercise(
        "4_weak_duality",
        ("dual_value", "dual_matrix", "feasible"),
        "b718c9 603c04 3249f6 862d75 aa2672 c75ad6 13b4ee dbba9d c74844 c43cec 2a6d5a "
        "282a6d da9cd9 3f2f08 658ea8 d9179c e324a2 41bb18 0e9f23 8724fa b593aa 871f7c "
        "40f834 587681 f322c1 bc2b30 de1943 6a6221 c072b3",
    ),
    5: Exercise(
        "5_trace_weight",
        ("falling_direction", "critical_trace_weight"),
        "b718c9 7dbb2a 608276 a55c22 0dcaa1 0a21ff f9276c f0ba7f ff0872 f7b7b5 31191c "
        "2c537c 4e3521 ac0ca4 11a084 adf0b5 a01a50 605d73 951fd9 e80c3a 401c05 dc4aed "
        "0ea2fc 025c14 e8d13d 1316d1 2f0504 18bf82 71cd46 06e2ac",
    ),
    6: Exercise(
        "6_e_step",
        ("state_e_step", "closed_form", "optimal_value"),
        "09855d b718c9 ba4ca2 39949f 3027fd b98bf6 d7593a 3195fc 4bc966 60c0e0 db605a "
        "906a4b 5ae2f9 106030 185f02 c0d1f7 07cee1 555c53 cea549 257388 370d70 4fd951",
    ),
    7: Exercise(
        "7_descent",
        ("objective_7", "descent"),
        "b718c9 596cdf e12a81 b769a4 86b91c 72849a 5fe4dc 269b05 791242 41fc24 2b48e9 "
        "471a12 a05a13 d3f4bd 329e01 468bbe 51855e 020c5b 71ded5 450be3 32d064 451729",
    ),
    8: Exercise(
        "8_own_solver",
        ("project", "my_solver"),
        "b718c9 7ce160 7742c2 e81118 dae313 96367d a97a2a 841c83 535e48 c6abf3 dd6391 "
        "849a0a 50865f 93d450 e2bf4e 930d13 57cc3d 5dc530 a4ab4d b912b5 85a998 0b4a1f "
        "f23e58 104a77 2d6c26 5d2bb1 0ae9e3",
    ),
}
"""By number; a test compares them with examples/exercises, which the package does not have."""
