"""Write an exercise or a problem set with its answers.

python examples/exercises/solutions/fill_in.py 1 > solved.py
python examples/exercises/solutions/fill_in.py set7 > solved.py
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


def fill_in(name, how_many=None):
    """The text of an exercise, its first TODO functions (by default all) replaced by answers.

    The name is a number, or "set7" for problem set 7.
    """
    name = f"{name}".replace("set", "set_")
    (solution,) = FOLDER.glob(f"solution_{name}_*.py")
    kind = "" if name.startswith("set") else "exercise_"
    exercise = FOLDER.parent / solution.name.replace("solution_", kind, 1)
    text, answers = (path.read_text(encoding="utf-8") for path in (exercise, solution))
    for function, answer in list(functions(answers).items())[:how_many]:
        text = text.replace(functions(text)[function], answer)
    return text


if __name__ == "__main__":
    print(fill_in(sys.argv[1]), end="")
