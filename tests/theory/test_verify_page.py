"""`seraph-cvx verify` and its page: well-formed, offline, honest exit codes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner

from seraph_cvx import verify_paper
from seraph_cvx.cli import app
from seraph_cvx.cli.report import screen
from seraph_cvx.datasets import load_sampling
from seraph_cvx.display.chart import Chart, Curve, to_svg
from seraph_cvx.display.mathml import parse, to_mathml, to_text
from seraph_cvx.theory import report as theory_report
from seraph_cvx.theory.algorithm import descent
from seraph_cvx.theory.claim import ClaimUndecided
from seraph_cvx.theory.model import soft_label_form
from seraph_cvx.theory.report import CLAIMS, SLOW


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("verify")


@pytest.fixture(scope="module")
def verified(folder):
    """One run of the command on iris, with both files."""
    arguments = [
        "verify",
        "iris",
        "--json",
        str(folder / "i.json"),
        "--html",
        str(folder / "i.html"),
    ]
    return CliRunner().invoke(app, arguments)


@pytest.fixture(scope="module")
def page(verified, folder):
    assert verified.exit_code == 0, verified.output
    return (folder / "i.html").read_text(encoding="utf-8")


def test_command_says_every_verdict(verified):
    assert verified.exit_code == 0, verified.output
    for number in set(CLAIMS) - SLOW:
        assert re.search(rf"│ +{number} │", verified.output)
    assert verified.output.count("holds as corrected") >= 3
    assert "unexpected" not in verified.output
    assert "False as printed" in verified.output


def test_command_json_and_page_agree(page, folder):
    content = json.loads((folder / "i.json").read_text(encoding="utf-8"))
    root = ElementTree.fromstring(page)
    badges = [
        span.text
        for article in root.iter("article")
        for span in article.iter("span")
        if "badge" in span.get("class", "")
    ]
    assert badges == [claim["verdict"] for claim in content["claims"]]


def test_page_is_well_formed_and_has_formulas_figures_and_code(page):
    root = ElementTree.fromstring(page)
    articles = list(root.iter("article"))
    assert len(articles) == len(set(CLAIMS) - SLOW)
    for article in articles:
        claim = CLAIMS[int(article.get("id").removeprefix("claim-"))][0]
        (math,) = article.iter("math")
        assert len(list(math.iter())) > 5
        assert claim.statement in "".join(article.itertext())
        if claim.recomputation is not None:
            assert [code.text for code in article.iter("code")] == [claim.recomputation.code]
    titles = "".join("".join(svg.itertext()) for svg in root.iter("svg"))
    for words in ("J falls; (7) does not", "rank against lambda", "entropy against mu"):
        assert words in titles


def test_page_asks_for_nothing(page):
    assert not re.search(r"https?:|//[a-z]|url\(|@import|<script|<link|<img|<iframe|src=", page)
    root = ElementTree.fromstring(page)
    policies = [
        meta.get("content")
        for meta in root.iter("meta")
        if meta.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]
    ids = {element.get("id") for element in root.iter() if element.get("id")}
    links = [anchor.get("href") for anchor in root.iter("a")]
    assert links
    assert all(link.startswith("#") and link[1:] in ids for link in links)


def test_page_escapes_what_it_is_given():
    sampling = load_sampling("iris", n_points=30)
    nasty = '<script>alert("x")</script> & more'
    html = verify_paper(sampling.X, sampling.y, name=nasty, claims=[10]).to_html()
    assert "<script" not in html
    text = "".join(ElementTree.fromstring(html).itertext())
    assert nasty in text


@pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium")
@pytest.mark.slow
def test_page_is_drawn_by_chromium_without_a_complaint(page, folder):
    """The content policy blocks any request, and Chromium would say so on its console."""
    done = subprocess.run(
        [
            "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
            f"--user-data-dir={folder / 'profile'}", "--window-size=1000,3000",
            f"--screenshot={folder / 'page.png'}", (folder / "i.html").as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (folder / "page.png").stat().st_size > 50_000
    assert "CONSOLE" not in done.stderr


def test_command_exits_with_1_where_a_claim_that_should_hold_fails(monkeypatch, tmp_path):
    monkeypatch.setattr(soft_label_form, "closed_form", lambda p, mu: p)
    table = tmp_path / "t.csv"
    _write_table(table)
    done = CliRunner().invoke(app, ["verify", str(table), "--label", "kind"])
    assert done.exit_code == 1, done.output
    assert "refuted (unexpected)" in done.output
    assert "claim 6" in done.output
    assert "Exit code 1" in done.output


def undecided(setting):
    raise ClaimUndecided("Clarabel gave no answer")


def test_command_exits_with_1_where_a_claim_could_not_be_decided(monkeypatch):
    """No number contradicts the paper then, and none is shown; what holds instead is said."""
    claim = replace(descent.CLAIM, recomputation=None)
    monkeypatch.setattr(theory_report, "CLAIMS", {9: (claim, undecided)})
    done = CliRunner().invoke(app, ["verify", "iris", "--code"])
    said = " ".join(done.output.split())
    assert done.exit_code == 1
    assert "Not as expected: claim 9, not decided." in said
    assert "Claim 9 could not be decided: Clarabel gave no answer" in said
    assert " ".join(claim.correction.split()) in said
    assert "as printed it fails" not in said
    assert "recomputed" not in said


def test_command_speaks_of_no_contradiction_where_there_is_none(monkeypatch):
    monkeypatch.setattr(theory_report, "CLAIMS", {6: CLAIMS[6]})
    done = CliRunner().invoke(app, ["verify", "iris"])
    assert done.exit_code == 0, done.output
    assert "holds" in done.output
    assert "False as printed" not in done.output


def test_command_names_the_check_under_most_strain_where_there_is_room(monkeypatch):
    monkeypatch.setattr(theory_report, "CLAIMS", {6: CLAIMS[6]})
    sampling = load_sampling("iris")
    check = verify_paper(sampling.X, sampling.y, claims=[6])[6].decisive.name
    for columns, shown in ((80, False), (150, True)):
        monkeypatch.setattr(screen, "width", columns)
        done = CliRunner().invoke(app, ["verify", "iris"])
        assert ("decisive check" in done.output) == shown
        assert (check in done.output) == shown


def test_command_reads_a_table(tmp_path):
    table, target = tmp_path / "t.csv", tmp_path / "t.json"
    _write_table(table)
    arguments = ["verify", str(table), "--label", "kind", "--json", str(target), "--code"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "import numpy as np" in done.output
    assert json.loads(target.read_text(encoding="utf-8"))["data"] == "t.csv"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["irs"], "no data set 'irs'"),
        (["nowhere.csv", "--label", "kind"], "no file nowhere.csv"),
        (["iris", "--label", "kind"], "--label needs a table"),
        (["iris", "--html", "page.txt"], "must end in .html"),
        (["iris", "--json", "no/such/folder/x.json"], "There is no folder"),
    ],
)
def test_failure_the_command_exits_with_2_and_a_sentence(arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["verify", *arguments])
    assert done.exit_code == 2
    assert words in " ".join(done.output.split())


def test_failure_a_table_needs_its_label_column(tmp_path):
    _write_table(tmp_path / "t.csv")
    done = CliRunner().invoke(app, ["verify", str(tmp_path / "t.csv")])
    assert done.exit_code == 2
    assert "--label" in done.output


def _write_table(path):
    """24 points in three classes, half of the labels empty, one feature a thousand times larger."""
    rng = np.random.default_rng(0)
    lines = ["a,b,kind"]
    for k in range(24):
        a, b = rng.normal(size=2)
        lines.append(f"{a + 3.0 * (k % 3)},{1000.0 * b},{'xyz'[k % 3] if k < 12 else ''}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize("claim", [claim for claim, _ in CLAIMS.values()], ids=lambda c: c.name)
def test_formula_reads_as_mathml_and_as_text(claim):
    ElementTree.fromstring(to_mathml(claim.formula))
    assert "\\" not in to_text(claim.formula)
    assert to_text(claim.formula).count("(") == to_text(claim.formula).count(")")


def test_formula_scripts_fractions_and_limits():
    assert to_text(r"\frac{a+b}{2} \geq x_i^2") == "(a + b)/2 ≥ x_i^2"
    assert to_mathml(r"\sum_{k} \hat{p}").startswith('<math display="block"><mrow><munder>')
    with pytest.raises(ValueError, match=r"\\unknown"):
        parse(r"\unknown")
    with pytest.raises(ValueError, match="brace"):
        parse(r"x}")


def test_figure_leaves_out_what_its_axes_cannot_show():
    curve = Curve("<c>", [0.0, 1.0, 10.0, 100.0], [1.0, float("nan"), 3.0, -1.0])
    svg = ElementTree.fromstring(to_svg(Chart("<t>", "x & y", "y", [curve], True, True)))
    (line,) = svg.iter("polyline")
    assert len(line.get("points").split()) == 1
    for flat in (Curve("c", [1.0, 1.0], [2.0, 2.0]), Curve("c", [], [])):
        ElementTree.fromstring(to_svg(Chart("t", "x", "y", [flat, flat])))
