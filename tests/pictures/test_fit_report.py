"""Evidence: the report of a fit says what was fitted, escapes what it is given, works offline."""

from __future__ import annotations

import io
import re
import shutil
from xml.etree import ElementTree

import numpy as np
import pytest
from command_line import run, words
from PIL import Image
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from seraph_cvx import SERAPH, load_model
from seraph_cvx.plots import fit_report

pandas = pytest.importorskip("pandas")

HOSTILE = ['<script>alert("x")</script>', "</td>&amp;'\"", "$\\frac{x}$", "x" * 300, "red\x1b[31m"]
"""Names of features that would be markup, a formula, too long, or a terminal's command."""


def points_and_labels():
    """45 points in five features, three classes, every third one labeled; one class is hostile."""
    truth = np.arange(45) % 3
    centers = np.outer(truth, [2.5, -2.5, 1.25, 0.0, 0.0])
    classes = np.array(["setosa", "<b>bold</b>", "a & b"], dtype=object)
    y = np.where(np.arange(45) // 3 % 3 == 0, classes[truth], None)
    X = 1000.0 * (centers + np.random.default_rng(0).normal(size=centers.shape))
    return pandas.DataFrame(X, columns=HOSTILE), y


@pytest.fixture(scope="module")
def fitted():
    X, y = points_and_labels()
    return make_pipeline(StandardScaler(), SERAPH()).fit(X, y), X, y


@pytest.fixture(scope="module")
def page(fitted):
    return fit_report(
        *fitted, name="<i>my</i>.csv", notes=["a > b"], command="seraph-cvx fit 'a&b'"
    )


def text_of(page):
    return words("".join(ElementTree.fromstring(page).itertext()))


@pytest.fixture(scope="module")
def text(page):
    return text_of(page)


def test_the_page_has_every_section_and_figure(page):
    root = ElementTree.fromstring(page)
    assert [title.text for title in root.iter("h2")] == [
        *("The data", "The pairs", "Before and after", "The certificate", "The spectrum"),
        *("Which features count", "What the iterations did", "The same again"),
    ]
    images = list(root.iter("img"))
    assert len(images) == 5
    for image in images:
        assert image.get("src").startswith("data:image/svg+xml;base64,")
        assert image.get("alt")
    assert len(list(root.iter("math"))) >= 4


def test_the_page_says_the_numbers_of_the_fit(fitted, text):
    model = fitted[0][-1]
    bounds, judged = model.certificate_, model.leave_one_out_
    values = [step.descent_value for step in model.history_]
    for said in (
        *("rows45", "features5", "labeled15", "unlabeled30", "a > b", "setosa (5)"),
        # 3 * C(5, 2), C(15, 2), C(45, 2)
        *("similar (S)30", "dissimilar (D)75", "unlabeled (U)885"),
        f"lower bound D(p){bounds.dual_value:.12g}",
        f"upper bound f(A){bounds.primal_value:.12g}",
        f"relative gap{bounds.relative_gap:.1e}",
        "The certified matrix is A of the last M-step (m_step_metric_). Distances, transform and",
        f"Euclidean distance{judged.euclidean_error:.1%}",
        f"learned metric{judged.learned_error:.1%}",
        f"difference{judged.gain:.1%}",
        judged.verdict,
        f"J fell from {values[0]:.8g} to {values[-1]:.8g} in {len(values)} iterations",
        "seraph-cvx fit 'a&b'",
    ):
        assert said in text, said
    # Wilson's interval: its ends are the shares that are 1.96 standard deviations away
    interval = re.search(r"Euclidean distance[\d.]+%([\d.]+)% to ([\d.]+)%", text).groups()
    for end in np.array(interval, float) / 100.0:
        distance = 1.96 * np.sqrt(end * (1.0 - end) / judged.n)
        assert abs(judged.euclidean_error - end) == pytest.approx(distance, abs=0.001)


def test_the_code_on_the_commands_page_reads_the_table_as_the_command_does(tmp_path, monkeypatch):
    """Semicolons, decimal commas, a column to drop, one of text, a missing number, own words."""
    monkeypatch.chdir(tmp_path)
    numbers = np.random.default_rng(0).normal(size=(24, 2)) + [[0.0, 0.0], [2.0, 0.0]] * 12
    table = pandas.DataFrame(numbers, columns=["a", "b"])
    table["color"] = ["blue", "red", "red"] * 8
    table["kind"] = ["x & y", "<z>"] * 6 + ["", "?", "-1.0"] * 4
    table.loc[20, "b"] = np.nan
    table.to_csv("my table.csv", sep=";", decimal=",", index_label="id")
    given = ["my table.csv", "--label", "kind", "--out", "m.npz", "--html", "r.html"]
    given += ["--drop", "id", "--unknown", "?,-1", "--one-hot", "color", "--impute", "mean"]
    done = run("fit", *given, "--decimal", ",", "--trace-weight", "0.5")
    assert done.exit_code == 0, done.output
    assert "Written: the report of the fit" in done.output
    root = ElementTree.parse(tmp_path / "r.html").getroot()
    code, command = (part.text for part in root.iter("code"))
    assert command.startswith("seraph-cvx fit 'my table.csv' --label kind --out m.npz --html")
    assert "--trace-weight 0.5" in command
    assert "'?' (4 times), '-1.0' (4 times)" in words("".join(root.itertext()))
    scope = {}
    exec("\n".join(code.splitlines()[:-1]), scope)
    again, kept = scope["model"][-1], load_model("m.npz")[-1]
    assert again.trace_weight == 0.5
    np.testing.assert_allclose(again.metric_, kept.metric_, rtol=1e-9)
    again = run("fit", *given, "--decimal", ",")
    assert again.exit_code == 2  # without --force nothing is replaced
    refused = run("fit", *given[:3], "--html", "r.txt")
    assert "must end in .html" in words(refused.output)


def test_class_names_in_other_scripts_are_drawn_without_a_warning(tmp_path, monkeypatch):
    """A letter that no font had would be a box, and a warning of matplotlib."""
    monkeypatch.chdir(tmp_path)
    numbers = np.random.default_rng(0).normal(size=(24, 2)) + [[0.0, 0.0], [2.0, 0.0]] * 12
    table = pandas.DataFrame(numbers, columns=["a", "b"]).assign(kind=["犬", "𝒜"] * 12)
    table.to_csv("t.csv", index=False)
    done = run("fit t.csv --label kind --out m.npz --picture p.svg --html r.html")
    assert (done.exit_code, done.stderr) == (0, "")


def test_the_page_escapes_what_it_is_given(page, text):
    assert "<script" not in page
    assert "<b>bold" not in page
    assert "<i>my" not in page
    for name in (*HOSTILE[:4], r"red\x1b[31m", "<b>bold</b>", "<i>my</i>.csv"):
        assert words(name) in text, name


def test_the_page_asks_for_nothing(page):
    bare = re.sub(r'src="data:image/svg\+xml;base64,[A-Za-z0-9+/=]+"', "", page)
    assert not re.search(r"https?:|//[a-z]|url\(|@import|<script|<link|<iframe|src=", bare)
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    assert f'content="{policy}"' in page


@pytest.mark.parametrize(
    ("model", "kind", "message"),
    [
        (SERAPH(), AttributeError, "not fitted"),
        (StandardScaler().fit([[0.0], [1.0]]), TypeError, "not StandardScaler"),
        (make_pipeline(StandardScaler()), ValueError, "no fitted SERAPH"),
    ],
)
def test_failure_a_model_without_a_certified_metric(model, kind, message):
    with pytest.raises(kind, match=message):
        fit_report(model, [[0.0], [1.0]], [0, 1])


CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_browser_the_page_fits_every_width_in_either_scheme(page, tmp_path):
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    (tmp_path / "report.html").write_text(page, encoding="utf-8")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for width, scheme in ((1280, "light"), (390, "dark"), (390, "light")):
            size = {"width": width, "height": 900}
            context = browser.new_context(viewport=size, color_scheme=scheme, offline=True)
            shown, complaints = context.new_page(), []
            shown.on("console", lambda line, said=complaints: said.append(line.text))
            shown.on("pageerror", lambda error, said=complaints: said.append(str(error)))
            shown.goto((tmp_path / "report.html").as_uri())
            shown.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
            assert shown.evaluate("document.documentElement.scrollWidth") <= width
            sizes = shown.evaluate("[...document.images].map(i => [i.naturalWidth, i.width])")
            assert len(sizes) == 5
            assert all(natural > 100 and 280 <= seen <= width for natural, seen in sizes)
            assert complaints == []  # the policy would tell of whatever it forbids
            picture = Image.open(io.BytesIO(shown.screenshot())).convert("L")
            assert (np.median(picture) > 128) == (scheme == "light")
            assert np.std(picture) > 10.0
        browser.close()
