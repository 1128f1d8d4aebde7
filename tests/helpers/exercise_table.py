"""What the grader knows of the exercises and problem sets: `python tests/helpers/exercise_table.py`
writes it again after one of them has changed."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import seraph_cvx

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "exercises"
TABLE = Path(seraph_cvx.__file__).parent / "cli" / "exercises.json"


def files():
    """The exercises and problem sets by the names that the command knows, in order."""
    found = []
    for path in FOLDER.glob("[es]*_*_*.py"):
        kind, number, _ = path.stem.split("_", 2)
        found.append((kind, int(number), path))
    return {f"{'set' * (kind == 'set')}{number}": path for kind, number, path in sorted(found)}


def is_todo(node):
    """A function of a starter that does nothing but raise its hint."""
    last = node.body[-1] if isinstance(node, ast.FunctionDef) else None
    called = last.exc if isinstance(last, ast.Raise) else None
    return isinstance(called, ast.Call) and called.func.id == "NotImplementedError"


def todos(path):
    """The names of the functions to fill in, in order."""
    return [node.name for node in ast.parse(path.read_text("utf-8")).body if is_todo(node)]


def table():
    """The text of exercises.json as it should be."""
    from seraph_cvx.cli.exercises import fingerprints  # needs typer, which the files do not

    rows = {}
    for name, path in files().items():
        marks = fingerprints(path.read_text("utf-8"), tuple(todos(path)))
        rest = " ".join(mark for _, mark in marks)
        rows[name] = {"file": path.name, "todos": todos(path), "rest": rest}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    return f"{{\n{lines}\n}}\n"


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
