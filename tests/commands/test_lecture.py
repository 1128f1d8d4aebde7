"""Evidence: the chapters keep to their plan, run headless, and become pages that work offline."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from inspect import cleandoc
from pathlib import Path

import pytest

from seraph_cvx.display import formulas

pytestmark = pytest.mark.once

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "lecture"
CHAPTERS = sorted(FOLDER.glob("chapter*.py"))
INDEX, PLAN = ((FOLDER / name).read_text(encoding="utf-8") for name in ("README.md", "plan.md"))
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")

each_chapter = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)


def calls(chapter, name):
    tree = ast.parse(chapter.read_text(encoding="utf-8"))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call for call in found if ast.unparse(call.func) == name]


def prose(chapter):
    """What a chapter hands to mo.md."""
    texts = []
    for call in calls(chapter, "mo.md"):
        parts = getattr(call.args[0], "values", call.args)  # an f-string has several
        words = (part.value if isinstance(part, ast.Constant) else "..." for part in parts)
        texts.append(cleandoc("".join(words)))
    return "\n".join(texts)


# The plan ------------------------------------------------------------------------------------


@each_chapter
def test_chapter_has_a_goal_a_time_questions_an_exercise_formulas_and_pictures_that_move(chapter):
    text, number = prose(chapter), chapter.stem[-1]
    assert "**Goal.**" in text
    assert 15 <= int(re.search(r"\*\*Time\.\*\* (\d+) minutes", text)[1]) <= 25
    assert len(re.findall(r"^/// details \| \d\. .+\?$", text, re.M)) == 3
    assert (FOLDER / re.search(r"\[Exercise \d\]\((.+?)\)", text)[1]).is_file()
    shown = {argument.id for call in calls(chapter, "formulas") for argument in call.args}
    assert len(shown) >= 3
    assert all(isinstance(getattr(formulas, name), formulas.Formula) for name in shown)
    assert len(calls(chapter, "mo.ui.slider")) == len(calls(chapter, "Moving")) >= 2
    places = re.findall(rf"^\| .+\? \| ({number}\.\d) \|$", INDEX, re.M)
    assert len(places) == 5
    assert set(places) <= set(re.findall(r"^## (\d\.\d) ", text, re.M))
    assert f"]({chapter.name})" in INDEX


@each_chapter
def test_chapter_has_no_formula_of_its_own_and_typesets_its_symbols(chapter):
    words = re.sub(r"`[^`]*`|\]\([^)]*\)", "", prose(chapter))
    assert not re.search(r"[Σ∑∏∫√\\$]|\b(ln|log|exp)[ (]|<m(ath|i|row)\b", words)
    assert not re.search(r"\b(lambda|eta|mu|beta|sigma|alpha|nu|tau|rho)\b|\w_\w|\^", words)


def test_plan_names_every_chapter_and_exercise():
    named = set(re.findall(r"\]\((?:[\w./]*/)?(\w+\.py)\)", PLAN))
    exercises = FOLDER.parent.glob("exercises/exercise_*.py")
    assert {path.name for path in (*CHAPTERS, *exercises)} <= named


# The pages -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_chapters_run_headless_within_a_minute_and_their_pages_work_offline(tmp_path):
    """One export and one browser for all of them."""
    options = ["--slides", "--positions", "2", "--out", tmp_path]
    done = subprocess.run(
        [sys.executable, "-W", "error", FOLDER / "export.py", *options],
        cwd=tmp_path, capture_output=True, text=True, timeout=360, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    ran = re.findall(r"^(chapter\d) ran in ([\d.]+) s$", done.stdout, re.M)
    assert [name for name, _ in ran] == [path.stem for path in CHAPTERS]
    assert [name for name, seconds in ran if float(seconds) >= 60] == []
    for path in CHAPTERS:
        check_notebook(tmp_path / f"{path.stem}.ipynb")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    pages = sorted(tmp_path.glob("*.html"))
    assert len(pages) == len(CHAPTERS) + 3
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        context = browser.new_context(offline=True)
        for page in pages:
            look_at(context, page)
        browser.close()


def check_notebook(path):
    """Formulas and folded answers are there, and no cell needs a name that none defines."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    words = "".join(cell["source"] for cell in cells if cell["cell_type"] == "markdown")
    assert words.count("<details>") == 3
    assert words.count("$$") >= 6
    code = "\n".join(cell["source"] for cell in cells if cell["cell_type"] == "code")
    judged = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F821", "-"],
        input=code, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert judged.returncode == 0, f"{path.name}: {judged.stdout}"


def look_at(context, path):
    """On a phone and on a screen, without a network: it fits, moves, says nothing, asks nobody."""
    page = context.new_page()
    said, asked = [], []
    page.on("console", lambda line: said.append(line.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.set_viewport_size({"width": 1280, "height": 720})
    page.goto(path.as_uri())
    if "slides" in path.name:
        turn_over(page)
    assert page.locator("math").count() >= 3
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    moving = page.locator(".moving").all()
    assert len(moving) >= 2
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 720})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path.name
        before = [seen(each) for each in moving]
        assert all(280 <= shown <= width for _, shown in before), path.name
    for (picture, _), each in zip(before, moving, strict=True):
        slider = each.locator("input")
        slider.press("End" if slider.input_value() == "0" else "Home")
        assert seen(each)[0] != picture, path.name
    assert said == [], path.name
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    page.close()


def seen(moving):
    """The picture of a slider's position, and its width."""
    image = moving.locator("img:visible").first
    return image.get_attribute("src"), image.bounding_box()["width"]


def turn_over(page):
    """The arrow keys show one slide after the other, each of them whole."""
    slides = page.locator(".slide")
    assert slides.count() >= 8
    for k in range(slides.count()):
        box = slides.nth(k).bounding_box()
        assert abs(box["y"]) <= 1
        assert box["height"] <= 721, slides.nth(k).inner_text()[:60]
        page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    assert abs(slides.nth(slides.count() - 2).bounding_box()["y"]) <= 1
