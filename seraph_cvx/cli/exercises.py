"""`seraph-cvx check-exercise`: run a student's file, and say what is wrong with it.

Assertions of the file check the answers; that none of them was lost or changed is seen from
fingerprints of the exercise as it was handed out, in exercises.json.
"""

from __future__ import annotations

import ast
import io
import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from functools import cache
from hashlib import sha256
from inspect import ismodule
from pathlib import Path
from traceback import walk_tb
from typing import NamedTuple

import typer

from ..processes.isolation import run_isolated
from .files import require_file
from .main import DEBUG, app, argument, option
from .messages import alert, answers_in_words, say

CHECKED = "checked.py"


class Exercise(NamedTuple):
    """The file of an exercise, its functions to fill in, and fingerprints of all else, in order."""

    file: str
    todos: tuple[str, ...]
    fingerprints: str

    @property
    def title(self) -> str:
        """What sentences call it: exercise 4_weak_duality, problem set 7_duality."""
        kind, _, name = self.file.removesuffix(".py").partition("_")
        return f"{'problem set' if kind == 'set' else kind} {name}"


class Grade(NamedTuple):
    """Whether a file is solved; what it printed then, or else what is wrong and what to do."""

    is_solved: bool
    message: str


@cache
def exercises() -> dict[str, Exercise]:
    """The exercises by the names that the command knows; a test compares them with the files."""
    table = json.loads(Path(__file__).with_name("exercises.json").read_text(encoding="utf-8"))
    return {
        name: Exercise(row["file"], tuple(row["todos"]), row["rest"]) for name, row in table.items()
    }


def find_exercise(name: str) -> Exercise:
    """The exercise of a name."""
    if name not in exercises():
        known = "".join(f"\n  {name:<7}{exercise.file}" for name, exercise in exercises().items())
        raise ValueError(f"There is no exercise {name!r}. There are:{known}")
    return exercises()[name]


@app.command(
    "check-exercise",
    epilog="""\b
Examples:
  seraph-cvx check-exercise 4 exercise_4_weak_duality.py
  seraph-cvx check-exercise set7 set_7_duality.py""",
)
def check_exercise(
    name: str = argument(..., "1 to 8 for an exercise, set1 to set10 for a problem set."),
    file: Path = argument(..., "Your file. It is run, as by Python."),
    time_limit: float = option(300.0, "Seconds that the file may take.", min=1.0),
    debug: bool = DEBUG,
) -> None:
    """Check your solution of an exercise or of a problem set, and say what is wrong with it.

    Both are in examples/exercises: eight exercises, and a problem set for each chapter of the
    course. Exit code 0: solved; 1: not yet; 2: an error.
    """
    with answers_in_words():
        title = find_exercise(name).title.partition("_")[0]
        require_file(file)
        graded = grade(name, file, time_limit)
        if not graded.is_solved:
            alert(graded.message)
            raise typer.Exit(1)
        say(f"{graded.message}\n\n{title.capitalize()} is solved: all checks hold.")


def grade(name: str, file: Path, time_limit: float = 300.0) -> Grade:
    """Check a student's file of an exercise, which may take so many seconds."""
    exercise, text = find_exercise(name), file.read_text(encoding="utf-8")
    try:
        wrong = _what_was_lost(exercise, text)
    except SyntaxError as error:
        wrong = f"Line {error.lineno} is not valid Python: {error.msg}."
    if wrong:
        return Grade(False, wrong)
    outcome = run_isolated(run_file, exercise, text, time_limit=time_limit)
    if outcome.status == "done":
        return Grade(*outcome.result)
    if outcome.status == "time limit":
        return Grade(
            False,
            f"The file ran for {time_limit:g} seconds and was stopped: look for a loop that "
            "does not end, or give it more time with --time-limit.",
        )
    return Grade(False, f"The file ended without a result: {outcome.detail}.")


def run_file(exercise: Exercise, text: str) -> Grade:
    """Run the text of a student's file as a script."""
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            exec(compile(text, CHECKED, "exec", optimize=0), {"__name__": "__main__"})
    except SystemExit:
        return Grade(False, "The file ended without a result: it stops before its end.")
    except Exception as error:
        return Grade(False, _explain(exercise, text, error))
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
                f"The file is not {exercise.title} any more: {where} something is missing "
                "or changed outside of the TODOs. Copy your answers into a fresh file."
            )
    return ""


def _explain(exercise: Exercise, text: str, error: Exception) -> str:
    """Say in sentences how a file failed."""
    frames = [(f, k) for f, k in walk_tb(error.__traceback__) if f.f_code.co_filename == CHECKED]
    (_, first), (frame, last), lines = frames[0], frames[-1], text.splitlines()
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
    values = {**frame.f_globals, **frame.f_locals}
    names = {
        node.id
        for check in ast.walk(ast.parse(text))
        if isinstance(check, ast.Assert) and check.lineno == last
        for node in ast.walk(check.test)
        if isinstance(node, ast.Name)
    }
    names &= values.keys()  # not those of a generator, and of Python itself
    known = [n for n in sorted(names) if not (callable(values[n]) or ismodule(values[n]))]
    shown = "".join(f"\n    {n} = {' '.join(str(values[n]).split()):.120}" for n in known)
    return (
        f"Line {last}: a check does not hold.\n    {lines[last - 1].strip()}\n"
        + (f"  Here{shown}\n" if shown else "")
        + f"  Look at {todo} first, then at what it uses."
    )
