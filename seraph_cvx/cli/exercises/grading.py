"""Runs a student's file of an exercise, and says what is wrong with it.

The file is run as it is, in a process of its own. Its assertions check the answers; that none of
them was lost or changed is seen from fingerprints of the exercise as it was handed out.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory

from .fingerprints import EXERCISES, Exercise

MOST_CHARACTERS = 120
"""Of each value in an assertion that failed."""

SKIPS_CHECKS = "PYTHONOPTIMIZE"


@dataclass(frozen=True)
class Grade:
    """What became of a student's file.

    Attributes
    ----------
    is_solved : bool
        Whether it ran to its end, with all its checks in place.
    message : str
        What is wrong, where, and what to do; what the file printed, if it is solved.
    """

    is_solved: bool
    message: str


def grade(number: int, file: Path, time_limit: float = 300.0) -> Grade:
    """Check a student's file of exercise `number`.

    Parameters
    ----------
    number : int
        Of the exercise, 1 to 8.
    file : Path
        The exercise, with its TODOs filled in.
    time_limit : float
        Seconds that it may take.
    """
    exercise, text = EXERCISES[number], file.read_text(encoding="utf-8")
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        return Grade(False, f"Line {error.lineno} is not valid Python: {error.msg}.")
    wrong = _what_was_lost(exercise, text, tree)
    if wrong:
        return Grade(False, wrong)
    with TemporaryDirectory() as folder:
        script = Path(folder, "checked.py")
        end = token_hex(8)  # printed by a file that was run to its end
        script.write_text(f"{_with_values(text, tree)}\nprint({end!r})\n", encoding="utf-8")
        try:
            done = subprocess.run(
                [sys.executable, str(script)],
                capture_output=True,
                text=True,
                encoding="utf-8",
                env={name: value for name, value in os.environ.items() if name != SKIPS_CHECKS},
                check=False,
                timeout=time_limit,
            )
        except subprocess.TimeoutExpired:
            return Grade(
                False,
                f"The file ran for {time_limit:g} seconds and was stopped: look for a loop that "
                "does not end, or give it more time with --time-limit.",
            )
    if done.returncode == 0 and end in done.stdout:
        return Grade(True, done.stdout.partition(end)[0].strip())
    return Grade(False, _explain(exercise, tree, text.splitlines(), done.stderr))


def fingerprints(text: str, todos: tuple[str, ...]) -> list[str]:
    """A short digest of each statement of an exercise but for its TODOs, whatever the spacing.

    Examples
    --------
    >>> fingerprints("x = 1", ()) == fingerprints("x  =  1  # one", ())
    True
    """
    return [mark for _, mark in _marks(text, ast.parse(text), todos)]


def _marks(text: str, tree: ast.Module, todos: tuple[str, ...]) -> Iterator[tuple[ast.stmt, str]]:
    for node in tree.body[1:] if ast.get_docstring(tree) is not None else tree.body:
        if getattr(node, "name", None) not in todos:
            source = "".join((ast.get_source_segment(text, node) or "").split())
            yield node, sha256(source.encode()).hexdigest()[:6]


def _what_was_lost(exercise: Exercise, text: str, tree: ast.Module) -> str:
    """Name a TODO that has no function, or where the file departs from the exercise."""
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for k, todo in enumerate(exercise.todos, start=1):
        if todo not in functions:
            return (
                f"The function {todo} of TODO {k} is missing: keep its name, and write it at the "
                "left margin."
            )
    marks = list(_marks(text, tree, exercise.todos))
    at = 0
    for wanted in exercise.statements:
        later = [k for k in range(at, len(marks)) if marks[k][1] == wanted]
        if not later:
            where = f"below line {marks[at - 1][0].end_lineno}" if at else "at the top"
            return (
                f"The file is not exercise {exercise.name} any more: {where} something is missing "
                "or changed outside of the TODOs. Copy your answers into a fresh file."
            )
        at = later[0] + 1
    return ""


def _with_values(text: str, tree: ast.Module) -> str:
    """The text, in which an assertion that fails shows what it is about; no line moves."""
    lines = text.encode().splitlines(keepends=True)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) and node.msg is None and node.lineno == node.end_lineno:
            sides = [str(ast.get_source_segment(text, side)) for side in _sides(node.test)]
            values = [_in_words(side) for side in dict.fromkeys(sides) if not _is_number(side)]
            if values:
                shown = f", {' + '.join(values)}"
                line, end = lines[node.lineno - 1], node.end_col_offset
                lines[node.lineno - 1] = line[:end] + shown.encode() + line[end:]
    return b"".join(lines).decode()


def _is_number(source: str) -> bool:
    try:
        float(source)
    except ValueError:
        return False
    return True


def _in_words(source: str) -> str:
    """The code of a line that says what an expression is."""
    name = f"\n    {source} = "
    cut = f"words if len(words) <= {MOST_CHARACTERS} else words[:{MOST_CHARACTERS}] + ' ...'"
    return f"{name!r} + (lambda words: {cut})(' '.join(str({source}).split()))"


def _sides(test: ast.expr) -> list[ast.expr]:
    """What a check is about: a <= b <= c, np.isclose(a, b), np.all((a > b) & c), x.is_dcp()."""
    if isinstance(test, ast.Compare):
        return [test.left, *test.comparators]
    if isinstance(test, ast.BinOp):
        return _sides(test.left) + _sides(test.right)
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute):
        if test.func.attr in ("isclose", "allclose"):
            return test.args[:2]
        if test.func.attr in ("is_convex", "is_dcp"):
            return [test.func.value]
        return _sides(test.args[0]) if test.func.attr == "all" else []
    return []


def _explain(exercise: Exercise, tree: ast.Module, lines: list[str], said: str) -> str:
    """Turn the traceback of a file that failed into sentences."""
    places = [int(k) for k in re.findall(r'checked\.py", line (\d+)', said)]
    last = re.findall(r"^(\w[\w.]*)(?:: (.*(?:\n .*)*))?$", said, re.MULTILINE)
    if not places or not last:
        return (
            f"The file ended without a result: {said.strip()[-300:] or 'it stops before its end'}."
        )
    kind, words = last[-1]
    if kind == "NotImplementedError":
        return f"Not yet done, line {places[-1]}. {words}"
    todo = _todo_before(exercise, tree, places[0])
    if kind == "AssertionError":
        check = lines[places[0] - 1].strip()
        return (
            f"Line {places[0]}: a check does not hold.\n    {check}\n"
            + (f"  Here{words}\n" if words else "")
            + f"  Look at {todo} first, then at what it uses."
        )
    return (
        f"Line {places[-1]}: {kind}: {words}\n    {lines[places[-1] - 1].strip()}\n"
        f"  It happened on the way to line {places[0]}; look at {todo} first."
    )


def _todo_before(exercise: Exercise, tree: ast.Module, line: int) -> str:
    """The last TODO that stands above a line."""
    above = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)
             and node.lineno <= line}  # fmt: skip
    found = [(k, name) for k, name in enumerate(exercise.todos, start=1) if name in above]
    return f"TODO {found[-1][0]}, {found[-1][1]}," if found else "the lines above"
