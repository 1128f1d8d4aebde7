"""What the tests of the claims share: one run of `seraph-cvx verify iris`, and small data."""

from __future__ import annotations

from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from seraph_cvx import PairSet
from seraph_cvx.cli import app
from seraph_cvx.datasets import load_sampling
from seraph_cvx.theory import verification as report
from seraph_cvx.theory.claim_data import ClaimData


@pytest.fixture(scope="session")
def verified_iris(tmp_path_factory):
    """What the command says, the report that it made, its page, and the folder of both files."""
    folder, made, verify_paper = tmp_path_factory.mktemp("verify"), [], report.verify_paper

    def verify_and_keep(*given, **options):
        made.append(verify_paper(*given, **options))
        return made[-1]

    files = ["--html", str(folder / "i.html")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "verify_paper", verify_and_keep)
        command = CliRunner().invoke(app, ["verify", "iris", *files])
    assert command.exit_code == 0, command.output
    html = (folder / "i.html").read_text(encoding="utf-8")
    root = ElementTree.fromstring(html)
    return SimpleNamespace(
        output=command.output, report=made[0], folder=folder, html=html, root=root
    )


@pytest.fixture(scope="session")
def small():
    """Iris with 30 points: enough for a formula to fail on."""
    sampling = load_sampling("iris", n_points=30)
    data = ClaimData("small iris", PairSet.from_labels(sampling.X, sampling.y))
    data.metric  # noqa: B018 (made by the package, before anything is broken)
    return data
