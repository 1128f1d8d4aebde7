"""The command as a test runs it, and its words however their lines are broken."""

from __future__ import annotations

from typer.testing import CliRunner

from seraph_cvx import cli


def run(*arguments):
    """`seraph-cvx` with these arguments, in this process."""
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


def words(text):
    """The text as it reads."""
    return " ".join(text.split())
