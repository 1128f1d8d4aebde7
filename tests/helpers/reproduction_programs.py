"""The programs of examples/reproduction, and invented results."""

from __future__ import annotations

import bench
import defaults
import numpy as np
import run
from evidence.methods import METHODS
from typer.testing import CliRunner


def _invoke(program, arguments):
    return CliRunner().invoke(program.app, [str(argument) for argument in arguments])


def reproduce(*arguments):
    """`python examples/reproduction/run.py` with these arguments, in this process."""
    return _invoke(run, arguments)


def run_bench(*arguments):
    """`python examples/reproduction/bench.py`, likewise."""
    return _invoke(bench, arguments)


def run_defaults(*arguments):
    """`python examples/reproduction/defaults.py`, likewise."""
    return _invoke(defaults, arguments)


def run_row(task, method, sampling, error, outcome="done", seconds=1.0, detail=""):
    key = {"task": task, "method": method, "sampling": sampling}
    return key | {"outcome": outcome, "error": error, "seconds": seconds, "detail": detail}


def invented_table(task="iris", n=12, seed=0, **means):
    """Runs of all methods, some samplings hard for all; `means` are the errors of some methods."""
    rng = np.random.default_rng(seed)
    hard = rng.normal(0.0, 2.0, size=n)
    return [
        run_row(task, method, s, means.get(method, 15.0) + hard[s] + rng.normal(0.0, 0.5))
        for method in METHODS
        for s in range(n)
    ]
