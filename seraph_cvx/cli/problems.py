"""`seraph-cvx certify` and `check`: bounds on the optimum of a convex problem, and their proof."""

from __future__ import annotations

import runpy
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..processes.whole_file import write_whole
from .files import check_output, require_file
from .main import DEBUG, app, argument, option
from .messages import alert, answers_in_words, say, steps_shown

if TYPE_CHECKING:
    import cvxpy as cp

CERTIFIED = 1e-6
"""The relative gap up to which the exit code is 0."""


PROBLEM = (
    "A CVXPY problem, or a function that returns one, of a Python file, which is run; or a file of "
    "a library, such as .mps, .qps, .dat-s or .cbf."
)


@app.command(
    epilog=f"""\b
Examples:
  seraph-cvx certify portfolio.py:problem
  seraph-cvx certify portfolio.py:problem --solver SCS --json proof.json
  seraph-cvx certify afiro.mps

\b
Exit codes:
  0 certified to {CERTIFIED:g}, or proved infeasible or unbounded
  1 not certified   2 an error"""
)
def certify(
    problem: str = argument(..., PROBLEM, metavar="FILE.py:NAME|FILE"),
    solver: str | None = option(
        None, "Solve it with this solver first, and start from its answer.", metavar="NAME"
    ),
    tolerance: float | None = option(
        None, "Let every constraint be violated by so much.", min=0.0, metavar="NUMBER"
    ),
    json: Path | None = option(None, "Write the certificate to a file.", metavar="FILE"),
    debug: bool = DEBUG,
) -> None:
    """Bound the optimum of any convex CVXPY problem from both sides, trusting no solver."""
    with answers_in_words():
        import cvxpy as cp

        from ..proof import certify_problem

        if json is not None:
            check_output(json, (".json",))
        found = read_problem(problem)
        if solver is not None:
            try:
                found.solve(solver=solver)
            except cp.error.SolverError as error:
                alert(f"{solver}: {error}")
            else:
                say(f"{solver} says: {found.status}, {float(found.value)!r}\n")
        with steps_shown() as progress:
            certificate = certify_problem(found, tolerance=tolerance, progress=progress)
            words = str(certificate)
        say(words)
        if json is not None:
            write_whole(json, certificate.to_json().encode())
            say(f"\nWritten to {json}; seraph-cvx check {json} checks it.")
        if not certificate.relative_gap <= CERTIFIED:
            raise typer.Exit(1)


@app.command(
    epilog="""\b
Examples:
  seraph-cvx certify portfolio.py:problem --json proof.json
  seraph-cvx fit flowers.csv --label species --proof proof.json
  seraph-cvx check proof.json

\b
Exit codes:
  0 every claim of the file holds   1 the file is rejected   2 an error"""
)
def check(
    file: Path = argument(..., "A file that certify --json or fit --proof wrote.", metavar="FILE"),
    debug: bool = DEBUG,
) -> None:
    """Prove a written certificate again, by code that shares nothing with what wrote it."""
    with answers_in_words():
        from ..proof.checker import check_certificate

        require_file(file)
        with steps_shown("reading the file") as progress:
            verdict = check_certificate(file, progress)
        say(str(verdict))
        if not verdict.valid:
            raise typer.Exit(1)


def read_problem(text: str) -> cp.Problem:
    """The CVXPY problem NAME of FILE.py, given as FILE.py:NAME, which is run; or that of a file."""
    if ".py:" not in text and Path(text).is_file():
        from ..proof.files import read_problem as read_file

        return read_file(text)
    file, _, name = text.rpartition(":")
    path = Path(file)
    if not file or not name.isidentifier() or path.suffix != ".py":
        raise ValueError(f"{text!r} is not FILE.py:NAME, such as portfolio.py:problem.")
    if not path.is_file():
        raise ValueError(f"There is no file {path}.")
    import cvxpy as cp

    sys.path.insert(0, str(path.resolve().parent))  # as Python does for a script
    try:
        names = runpy.run_path(str(path), run_name=path.stem)
        found: Any = names.get(name)
        if callable(found):
            found = found()
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == str(path)]
        where = f", line {lines[-1]}" if lines else ""
        raise ValueError(f"{path}{where}: {type(error).__name__}: {error}") from error
    if not isinstance(found, cp.Problem):
        problems = [key for key, value in names.items() if isinstance(value, cp.Problem)]
        what = f"{type(found).__name__}, no CVXPY problem" if name in names else "not defined"
        there = f" It has: {', '.join(problems)}." if problems else ""
        raise ValueError(f"{name} of {path} is {what}.{there}")
    return found
