"""Evidence: every public name, parameter, command and option of the list is still there."""

from __future__ import annotations

import ast
import inspect
from enum import Enum
from importlib import import_module
from pathlib import Path

import pytest
import typer

import seraph_cvx
from seraph_cvx.cli import app
from seraph_cvx.fit.direct import minimize_directly
from seraph_cvx.m_step.solve import MStepSolver

LIST = Path(__file__).parent / "helpers" / "public_names.txt"
"""One name a line. A new name may be added to it; a name in it may not be removed."""


def names_of_modules():
    """Each name in an `__all__`: of the package, of its folders and of their files."""
    root = Path(seraph_cvx.__file__).parent
    for path in sorted(root.rglob("*.py")):
        names = [
            ast.literal_eval(node.value)
            for node in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
        ]
        parts = path.relative_to(root.parent).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        yield from (f"{module}.{name}" for found in names for name in found)


def names_of_parameters():
    """Each parameter of the functions and classes that `import seraph_cvx` offers."""
    for name in seraph_cvx.__all__:
        offered = getattr(seraph_cvx, name)
        if not (isinstance(offered, type) and issubclass(offered, Enum | Warning)):
            for parameter in inspect.signature(offered).parameters:
                yield f"seraph_cvx.{name}({parameter})"


def names_of_commands(command=None, words="seraph-cvx"):
    """Each command with each of its arguments and options."""
    command = typer.main.get_command(app) if command is None else command
    yield words
    for parameter in command.params:
        for option in parameter.opts + parameter.secondary_opts:
            yield f"{words} {option}"
    for name, inner in sorted(getattr(command, "commands", {}).items()):
        yield from names_of_commands(inner, f"{words} {name}")


def listed():
    return LIST.read_text(encoding="utf-8").split("\n")[:-1]


def test_public_names_none_is_lost():
    lost = set(listed()) - {*names_of_modules(), *names_of_parameters(), *names_of_commands()}
    assert not lost, sorted(lost)


def test_public_names_a_lost_one_would_be_seen():
    assert "seraph_cvx.SERAPH" in listed()
    assert "seraph_cvx.alternate(sharpness)" in listed()
    assert "seraph-cvx fit --trace-weight" in listed()
    assert len(listed()) > 100


@pytest.mark.parametrize(
    "name", [name for name in listed() if name.replace(".", "").isidentifier()]
)
def test_public_names_each_can_be_imported(name):
    module, _, attribute = name.rpartition(".")
    assert hasattr(import_module(module), attribute)


def test_public_names_solutions_warn_of_what_they_did_not_reach():
    pairs = seraph_cvx.PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    m_step = seraph_cvx.MStepObjective(pairs)
    short, unsettled = MStepSolver(max_iter=1).solve(m_step, 1e-15), minimize_directly(pairs, tol=0)
    with pytest.warns(seraph_cvx.NotCertified, match="asked for 1e-15") as caught:
        short.warn_unless_certified(1e-15)
    with pytest.warns(seraph_cvx.NotCertified, match="Stopped after") as also_caught:
        unsettled.warn_unless_stationary()
    assert caught[0].filename == also_caught[0].filename == __file__
    MStepSolver().solve(m_step, 1e-8).warn_unless_certified(1e-8)  # a warning would be an error
    minimize_directly(pairs).warn_unless_stationary()
