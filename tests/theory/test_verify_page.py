"""`seraph-cvx verify` and its page: well-formed, offline, honest exit codes."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from seraph_cvx import paper
from seraph_cvx.cli import app
from seraph_cvx.theory import verification as theory_report
from seraph_cvx.theory.verification import CLAIMS


@pytest.fixture
def root(verified_iris):
    return verified_iris.root


def test_command_and_page_agree(verified_iris, root):
    output = verified_iris.output
    badges = [span.text for span in root.findall(".//article//summary/span")]
    verdicts = {row["claim"]: row["verdict"] for row in verified_iris.report.rows}
    assert badges == [verdicts.get(number, "skipped") for number in sorted(CLAIMS)]
    assert [claim.number for claim in verified_iris.report.skipped] == [13]
    shown = dict(
        re.findall(r"(?m)^ *(\d+) .*? (holds as corrected|holds|refuted|skipped) ", output)
    )
    assert shown == {str(number): verdict for number, verdict in verdicts.items()} | {
        "13": "skipped"
    }
    assert "unexpected" not in output
    assert "False as printed" in output


def test_page_asks_for_nothing(verified_iris, root):
    assert not re.search(
        r"https?:|//[a-z]|url\(|@import|<script|<link|<img|<iframe|src=", verified_iris.html
    )
    policies = [meta.get("content") for meta in root.iter("meta") if meta.get("http-equiv")]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]
    ids = {element.get("id") for element in root.iter() if element.get("id")}
    links = [anchor.get("href") for anchor in root.iter("a")]
    assert links == [f"#claim-{number}" for number in sorted(CLAIMS)]
    assert {link[1:] for link in links} <= ids


def chosen(*numbers):
    return {number: CLAIMS[number] for number in numbers}


def test_command_exits_with_1_where_a_claim_that_should_hold_fails(monkeypatch):
    monkeypatch.setattr(paper, "e_step", lambda d, mu, eta: paper.posterior(d, 1.0, eta))
    monkeypatch.setattr(theory_report, "CLAIMS", chosen(6, 10))
    done = CliRunner().invoke(app, ["verify"])
    assert done.exit_code == 1, done.output
    for words in ("refuted (unexpected)", "claim 6", "Exit code 1"):
        assert words in done.output


@pytest.mark.slow
def test_browser_the_page_folds_links_and_fits_every_width(verified_iris, browser, tmp_path):
    """The content policy blocks any request, and Chromium would say so on its console."""
    page = tmp_path / "iris.html"
    page.write_text(verified_iris.html, encoding="utf-8")
    for width in (1280, 390):
        shown, complaints = browser.new_page(viewport={"width": width, "height": 900}), []
        shown.on("console", lambda line, told=complaints: told.append(line.text))
        shown.on("pageerror", lambda error, told=complaints: told.append(str(error)))
        shown.goto(page.as_uri())
        assert shown.locator("details[open]").count() == 0
        shown.locator("nav a").nth(3).click()
        assert shown.locator("details[open] #claim-4").is_visible()
        shown.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        assert complaints == []
