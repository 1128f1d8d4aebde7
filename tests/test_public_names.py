"""Evidence: every public name, parameter, command and option of the list is still there.

One name a line. A new name may be added to the list; a name in it may not be removed.
"""

from __future__ import annotations

import inspect
from enum import Enum
from importlib import import_module

import pytest
import typer
from public_api import listed_names, names_in_modules
from sklearn.exceptions import ConvergenceWarning

import seraph_cvx
from seraph_cvx.cli import app


def names_of_parameters():
    """Each parameter of the functions and classes that `import seraph_cvx` offers."""
    for name in seraph_cvx.__all__:
        offered = getattr(seraph_cvx, name)
        if not (isinstance(offered, type) and issubclass(offered, Enum | Warning)):
            for parameter in inspect.signature(offered).parameters:
                yield f"seraph_cvx.{name}({parameter})"


def names_of_commands(command, words="seraph-cvx"):
    """Each command with each of its arguments and options."""
    yield words
    for parameter in command.params:
        for option in parameter.opts + parameter.secondary_opts:
            yield f"{words} {option}"
    for name, inner in getattr(command, "commands", {}).items():
        yield from names_of_commands(inner, f"{words} {name}")


def test_public_names_none_is_lost():
    commands = names_of_commands(typer.main.get_command(app))
    lost = set(listed_names()) - {*names_in_modules(), *names_of_parameters(), *commands}
    assert not lost, sorted(lost)


def test_public_names_a_lost_one_would_be_seen():
    some = {"seraph_cvx.SERAPH", "seraph_cvx.alternate(sharpness)", "seraph-cvx fit --trace-weight"}
    assert some <= set(listed_names())
    assert len(listed_names()) > 100


def test_public_names_each_can_be_imported():
    for name in listed_names():
        module, _, attribute = name.rpartition(".")
        if name.replace(".", "").isidentifier():
            assert hasattr(import_module(module), attribute), name


def test_public_names_solutions_warn_of_what_they_did_not_reach():
    """At the line that asked; whoever filters scikit-learn's warning filters ours."""
    pairs = seraph_cvx.PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    m_step = seraph_cvx.MStepObjective(pairs)
    with pytest.warns(ConvergenceWarning, match="iteration_limit") as caught:
        short = seraph_cvx.solve_m_step(m_step, tol=1e-15, max_iter=1)
    with pytest.warns(seraph_cvx.NotCertified, match="asked for 1e-15") as again:
        short.warn_unless_certified(1e-15)
    for warned in (caught, again):
        assert warned[0].category is seraph_cvx.NotCertified
        assert warned[0].filename == __file__
    seraph_cvx.solve_m_step(m_step, tol=1e-8).warn_unless_certified(1e-8)  # would be an error
