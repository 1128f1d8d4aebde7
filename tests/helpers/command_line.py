"""The command as a test runs it, and its words however their lines are broken."""

from __future__ import annotations

import shlex

from typer.testing import CliRunner

from seraph_cvx import cli

HEADER = "length,width,species"
ROWS = ["1.0,10,a", "1.2,30,a", "3.0,12,b", "3.1,28,b", "1.1,20,", "2.9,22,"]
TABLE = "\n".join([HEADER, *ROWS, ""])
"""A table of six points in two classes, two of them without a label."""


def run(command, *more):
    """`seraph-cvx` with the arguments of a line, and more of them, in this process."""
    return CliRunner().invoke(cli.app, [*shlex.split(str(command)), *map(str, more)])


def words(text):
    """The text as it reads."""
    return " ".join(text.split())


def assert_answered_in_words(result, culprits, exit_code=2):
    """Exit code 2, and the culprits are named on stderr."""
    assert result.exit_code == exit_code, result.output
    for culprit in culprits:
        assert culprit in words(result.stderr), result.stderr
    assert "Traceback" not in result.output
    assert isinstance(result.exception, SystemExit)
