"""What the tests of the claims share: one run of `seraph-cvx verify iris`."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from seraph_cvx.cli import app
from seraph_cvx.theory import report


@pytest.fixture(scope="session")
def verified_iris(tmp_path_factory):
    """What the command says, the report that it made, and the folder of i.json and i.html."""
    folder, made, verify_paper = tmp_path_factory.mktemp("verify"), [], report.verify_paper

    def verify_and_keep(*given, **options):
        made.append(verify_paper(*given, **options))
        return made[-1]

    files = ["--json", str(folder / "i.json"), "--html", str(folder / "i.html")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "verify_paper", verify_and_keep)
        command = CliRunner().invoke(app, ["verify", "iris", *files])
    assert len(made) == 1, command.output
    return SimpleNamespace(command=command, report=made[0], folder=folder)
