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


def assert_answered_in_words(result, culprits):
    """Exit code 2, and the culprits are named on stderr."""
    assert result.exit_code == 2, result.output
    for culprit in culprits:
        assert culprit in words(result.stderr)
    assert "Traceback" not in result.output
    assert isinstance(result.exception, SystemExit)
