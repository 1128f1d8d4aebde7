"""Write an exercise with its answers.

python examples/exercises/solutions/fill_in.py 1 > solved.py
"""

import ast
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def functions(text):
    """The lines of every function, by its name."""
    lines = text.splitlines(keepends=True)
    found = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    return {node.name: "".join(lines[node.lineno - 1 : node.end_lineno]) for node in found}


def fill_in(number, how_many=None):
    """The text of an exercise, its first TODO functions (by default all) replaced by answers."""
    (solution,) = FOLDER.glob(f"solution_{number}_*.py")
    exercise = FOLDER.parent / solution.name.replace("solution", "exercise")
    text, answers = (path.read_text(encoding="utf-8") for path in (exercise, solution))
    for name, answer in list(functions(answers).items())[:how_many]:
        text = text.replace(functions(text)[name], answer)
    return text


if __name__ == "__main__":
    print(fill_in(sys.argv[1]), end="")
