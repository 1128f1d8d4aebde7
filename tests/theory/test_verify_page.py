"""`seraph-cvx verify` and its page: well-formed, offline, honest exit codes."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner

from seraph_cvx import verify_paper
from seraph_cvx.cli import app
from seraph_cvx.cli.report import screen
from seraph_cvx.datasets import load_sampling
from seraph_cvx.display.mathml import FONTS
from seraph_cvx.display.symbols import in_symbols, prose
from seraph_cvx.theory import report as theory_report
from seraph_cvx.theory.algorithm import descent
from seraph_cvx.theory.claim import ClaimUndecided, Verdict
from seraph_cvx.theory.model import soft_label_form
from seraph_cvx.theory.report import CLAIMS, SLOW


@pytest.fixture(scope="module")
def folder(verified_iris):
    return verified_iris.folder


@pytest.fixture(scope="module")
def verified(verified_iris):
    """One run of the command on iris, with both files."""
    return verified_iris.command


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
    verdicts = {claim["number"]: claim["verdict"] for claim in content["claims"]}
    assert badges == [verdicts.get(number, "skipped") for number in sorted(CLAIMS)]
    assert content["skipped"] == [{"number": 13, "name": "The complexity of a step"}]


def number_of(article):
    (inside,) = (part.get("id") for part in article.iter("div") if part.get("id"))
    return int(inside.removeprefix("claim-"))


def said(element):
    """Its words, but for the code in it."""
    if element.tag == "pre":
        return ""
    return (element.text or "") + "".join(said(part) + (part.tail or "") for part in element)


def plain(text):
    """A text of the package as a page has it."""
    return "".join(ElementTree.fromstring(f"<p>{prose(text)}</p>").itertext())


def test_page_is_well_formed_and_has_formulas_figures_and_code(page):
    root = ElementTree.fromstring(page)
    articles = list(root.iter("article"))
    assert list(map(number_of, articles)) == sorted(CLAIMS)
    for article in articles:
        claim = CLAIMS[int(number_of(article))][0]
        (math,) = article.iter("math")
        assert len(list(math.iter())) > 5
        assert plain(claim.statement) in said(article)
        if claim.recomputation is not None:
            assert [code.text for code in article.iter("code")] == [claim.recomputation.code]
    titles = "".join("".join(svg.itertext()) for svg in root.iter("svg"))
    for words in ("J falls; (7) does not", "rank against λ", "entropy against μ"):
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


def test_page_begins_with_what_it_is_what_its_words_mean_and_its_claims(page):
    order = [
        "Niu, Dai, Yamada and Sugiyama",
        "How to read it",
        "<dt>residual</dt>",
        "Symbols</h2>",
        'href="#claim-1"',
        "<article>",
    ]
    assert [page.count(words) for words in order[1:-1]] == [1, 1, 1, 1]
    assert sorted(order, key=page.index) == order
    root = ElementTree.fromstring(page)
    (contents,) = root.iter("nav")
    linked = [anchor.get("href") for anchor in contents.iter("a")]
    assert linked == [f"#claim-{k}" for k in sorted(CLAIMS)]
    terms = [said(term) for term in root.iter("dt")]
    for word in ("residual", "tolerance", *(verdict.value for verdict in Verdict), "skipped"):
        assert word in terms


def test_page_claims_are_folded_and_the_false_ones_say_what_that_changes(page):
    for article in ElementTree.fromstring(page).iter("article"):
        (folded,) = article
        assert folded.tag == "details"
        assert folded.get("open") is None
        claim = CLAIMS[number_of(article)][0]
        assert f"{claim.number}. {plain(claim.name)}" in said(folded[0])
        is_false = claim.expected is not Verdict.HOLDS
        assert ("What this changes for you." in said(article)) == is_false
        assert plain(claim.consequence) in said(article)
        assert bool(re.fullmatch(r"[A-Z][^.]+(\.\d[^.]*)*\.", claim.consequence)) == is_false
        assert ("Skipped, because it is slow" in said(article)) == (claim.number in SLOW)


def test_page_and_command_write_symbols_as_formulas_do(page, verified):
    shown = said(ElementTree.fromstring(page).find("body"))
    for text in (shown, re.sub(r" recomputed .*", "", verified.output)):
        found = re.findall(r"\b(?:kappa|lambda|eta|mu)\b\S*|\w_hat|R\^\d|S u D|[<>]=|sqrt", text)
        assert found == []
        assert "κ*" in text
    assert "η̂" in shown
    assert "ℝ⁴" in shown
    assert in_symbols("#(S u D)") == "#(𝒮 ∪ 𝒟)"


BRACKETS = """
[...document.querySelectorAll('mrow')].flatMap(row => {
    const [first, last] = [row.firstElementChild, row.lastElementChild];
    const inside = [...row.children].slice(1, -1).flatMap(part => [part,
        ...part.querySelectorAll('mfrac')]).filter(part => part.tagName === 'mfrac');
    if (!'([⟨|‖'.includes(first?.textContent) || !inside.length) return [];
    const height = part => part.getBoundingClientRect().height;
    return [[height(first), height(last), Math.max(...inside.map(height))]];
})
"""

HAS_FONT = """
fonts => fonts.split(',').slice(0, -1).some(font => {
    const canvas = document.createElement('canvas').getContext('2d');
    const width = family => {
        canvas.font = `99px ${family}`;
        return canvas.measureText('wide').width;
    };
    return width(`${font}, monospace`) !== width('monospace');
})
"""
"""Without one of the fonts that can stretch brackets a browser draws small ones."""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium")
def test_browser_the_page_folds_links_and_fits_every_width(page, folder):
    """The content policy blocks any request, and Chromium would say so on its console."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for width in (1280, 390):
            shown, complaints = browser.new_page(viewport={"width": width, "height": 900}), []
            shown.on("console", lambda line, told=complaints: told.append(line.text))
            shown.on("pageerror", lambda error, told=complaints: told.append(str(error)))
            shown.goto((folder / "i.html").as_uri())
            assert shown.evaluate("document.documentElement.scrollHeight") < 6000
            assert shown.locator("details[open]").count() == 0
            shown.locator("nav a").nth(3).click()
            assert shown.locator("details[open] #claim-4").is_visible()
            top = shown.locator("details[open] summary").bounding_box()["y"]
            assert 0.0 <= top < 300.0
            shown.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
            assert shown.evaluate("document.documentElement.scrollWidth") <= width
            cut = "[...document.querySelectorAll('td, dd, p, dt')].filter(e => e.scrollWidth > "
            assert shown.evaluate(cut + "e.clientWidth + 1).map(e => e.textContent)") == []
            around = shown.evaluate(BRACKETS)
            assert around
            for left, right, fraction in around if shown.evaluate(HAS_FONT, FONTS) else []:
                assert min(left, right) >= 0.8 * fraction
            assert complaints == []
        browser.close()


def test_command_exits_with_1_where_a_claim_that_should_hold_fails(monkeypatch, tmp_path):
    monkeypatch.setattr(theory_report, "CLAIMS", {k: CLAIMS[k] for k in (6, 8, 10)})
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
    assert in_symbols(claim.correction) in said
    assert "as printed it fails" not in said
    assert "recomputed" not in said


def test_command_speaks_of_no_contradiction_where_there_is_none(monkeypatch):
    monkeypatch.setattr(theory_report, "CLAIMS", {10: CLAIMS[10]})
    done = CliRunner().invoke(app, ["verify", "iris"])
    assert done.exit_code == 0, done.output
    assert "holds" in done.output
    assert "False as printed" not in done.output


def test_command_names_the_check_under_most_strain_where_there_is_room(monkeypatch, verified_iris):
    monkeypatch.setattr(theory_report, "CLAIMS", {10: CLAIMS[10]})
    check = verified_iris.report[10].decisive.name
    for columns, shown in ((80, False), (150, True)):
        monkeypatch.setattr(screen, "width", columns)
        done = CliRunner().invoke(app, ["verify", "iris"])
        assert ("decisive check" in done.output) == shown
        assert (check in done.output) == shown


@pytest.mark.parametrize(
    "claims", [(1, 3, 10), pytest.param(tuple(CLAIMS), marks=pytest.mark.slow)], ids=["few", "all"]
)
def test_command_reads_a_table(tmp_path, monkeypatch, claims):
    monkeypatch.setattr(theory_report, "CLAIMS", {k: CLAIMS[k] for k in claims})
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
