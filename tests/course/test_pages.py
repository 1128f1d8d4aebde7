"""Evidence: the chapters keep to their plan, run headless, and become pages that work offline."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from argparse import ArgumentTypeError
from os.path import dirname, normpath
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import pytest
from course import LECTURE as FOLDER

pytest.importorskip("marimo", reason="marimo is not installed: the extra `lecture` brings it")

from export import _chapter

pytestmark = pytest.mark.once

CHAPTERS = sorted(FOLDER.glob("chapter*.py"), key=lambda path: int(path.stem[len("chapter") :]))
INDEX, PLAN = ((FOLDER / name).read_text(encoding="utf-8") for name in ("README.md", "teacher.md"))

each_chapter = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)


# The plan ------------------------------------------------------------------------------------


@each_chapter
def test_chapter_has_a_goal_a_time_questions_and_an_exercise(chapter):
    text, number = chapter.read_text("utf-8"), chapter.stem.removeprefix("chapter")
    assert "**Goal.**" in text
    two, minutes = re.search(r"\*\*Time\.\*\* (Two lessons of )?(\d+) minutes", text).groups()
    assert abs((2 if two else 1) * int(minutes) - minutes_to_read(text)) <= 5
    titles = re.findall(r"^ */// details \| (.+)$", text, re.M)  # a title has one line
    assert [title for title in titles if not title.endswith("?")] == []
    assert sum(title[0].isdigit() for title in titles) == 3
    sections = re.findall(r"^ *## \d+\.\d ", text, re.M)
    assert text.count("/// details | Check: ") == (len(sections) if two else 0)
    assert (FOLDER / re.search(rf"\[Problem set {number}\]\((.+?)\)", text)[1]).is_file()
    places = re.findall(rf"^\| .+\? \| ({number}\.\d) \|$", INDEX, re.M)
    assert len(places) == 5
    assert set(places) <= set(re.findall(r"^ *## (\d+\.\d) ", text, re.M))
    assert f"]({chapter.name})" in INDEX


def minutes_to_read(text):
    """110 words a minute, a minute for each formula and picture, two for each question."""
    prose = "".join(re.findall(r'mo\.md\(\s*f?"""(.*?)"""', text, re.S)).partition("## Exercise")[0]
    formulas = re.findall(r"\{formulas\((.*?)\)\}", prose, re.S)
    words = re.findall(r"[^\W\d_]{2,}", re.sub(r"\{.*?\}|<[^>]+>", "", prose, flags=re.S))
    shown = len(",".join(formulas).split(",")) + text.count(" Moving(")
    return len(words) / 110 + shown + 2 * prose.count("/// details")


def test_teachers_page_names_every_chapter_problem_set_and_exercise():
    named = set(re.findall(r"\]\((?:[\w./]*/)?(\w+\.py)\)", PLAN))
    exercises = FOLDER.parent.glob("exercises/*.py")
    assert {path.name for path in (*CHAPTERS, *exercises)} <= named


# The pages -----------------------------------------------------------------------------------


MAIN_PAGES = (
    *("index", "start/README", "start/data-scientist", "cheat-sheet", "guide/README", "api"),
    *("guide/certificate", "guide/acceleration", "samples", "large/README", "benchmarks"),
    *("guide/certify-any-problem", "api/seraph_cvx.SERAPH", "gallery/index", "lecture/README"),
    *("gallery/plot_1_convexity", "solver-comparison/README", "reproduction/README", "changes"),
)
"""Of the site, besides those of the course."""

MOST_BYTES = 1_000_000
"""For a page with all that it loads."""
MOST_BYTES_OF_THE_COURSE = 15_000_000


def test_every_page_is_in_the_contents_of_the_site():
    """Sphinx says so too, in the slow test."""
    root = FOLDER.parent
    contents = "".join((root / name).read_text("utf-8") for name in ("conf.py", "index.md"))
    written = {path for path in root.rglob("*.md") if "gallery" not in path.parts}
    for path in written - {root / "README.md"}:
        name = f"{path.parent.name}/README" if path.stem == "README" else path.stem
        assert re.search(rf"(?<![\w-]){name}(?![\w-])", contents), path


def test_a_chapter_is_named_by_its_number_or_its_file():
    assert _chapter("7") == CHAPTERS[6] == _chapter(str(CHAPTERS[6]))
    with pytest.raises(ArgumentTypeError, match="'70' is no chapter: give a number, 1 to 10"):
        _chapter("70")


@pytest.mark.first
@pytest.mark.slow
def test_the_site_and_the_course_in_it(tmp_path, request):
    """One build, which runs gallery and chapters, and one browser for all that is asked of them."""
    site, log = tmp_path / "site", tmp_path / "doctrees"
    command = [sys.executable, "-m", "sphinx", FOLDER.parent, site, "-W", "-q", "-d", log]
    done = subprocess.run(
        command,
        cwd=tmp_path, capture_output=True, text=True, timeout=1200, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    ran = re.findall(r"^(chapter\d+) ran in ([\d.]+) s$", (log / "course.txt").read_text(), re.M)
    assert {name for name, _ in ran} == {path.stem for path in CHAPTERS}
    assert [name for name, seconds in ran if float(seconds) >= 60] == []
    weights = [path.stat().st_size for path in (site / "course").iterdir()]
    assert sum(weights) < MOST_BYTES_OF_THE_COURSE
    for path in CHAPTERS:
        check_notebook(site / "course" / f"{path.stem}.ipynb")
        shown = (site / "course" / f"{path.stem}.html").read_text(encoding="utf-8")
        code = len(re.findall(r"^@app\.cell$", path.read_text(encoding="utf-8"), re.M))
        assert shown.count('<div class="highlight-python') == code > 0, path.name
    check_links(site)
    cards = (site / "course" / "failures.html").read_text(encoding="utf-8")
    assert (cards.count("<b>Proved:</b>"), cards.count("<h2>")) == (9, 9)
    assert cards.count("<td>refuted</td>") >= 6
    browser = request.getfixturevalue("browser")
    main = [site / f"{name}.html" for name in MAIN_PAGES]
    course = sorted((site / "course").glob("*.html"))
    context = browser.new_context(offline=True)
    for page in (*main, *course):
        look_at(context, page)
    look_for_barriers(browser, {*main, *course} - {page for page in course if ALIKE(page.stem)})
    search_for_terms(context, site)


def check_links(site):
    """They lead to files and places that are there; pages of the course are all within reach."""
    texts = {str(path): path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    places = {path: set(re.findall(r"""\bid=["']([^"']+)["']""", texts[path])) for path in texts}
    files = {str(path) for path in site.rglob("*")}
    link = re.compile(r"""<a [^>]*?href=["'](?!\w+:)([^"'#?]*)[^"'#]*#?([^"']*)["']""")
    links, broken = {}, set()
    for path, text in texts.items():
        links[path] = {
            (normpath(f"{dirname(path)}/{unquote(target)}") if target else path, unquote(place))
            for target, place in set(link.findall(text))
        }
        broken |= {
            f"{path}: {target}#{place}"
            for target, place in links[path]
            if target not in files or (place and place not in places.get(target, {place}))
        }
    assert broken == set()
    course = f"{site}/course"
    for number in range(1, len(CHAPTERS)):
        targets = {target for target, _ in links[f"{course}/chapter{number}.html"]}
        wanted = {f"{course}/{name}.html" for name in (f"chapter{number + 1}", "paper")}
        assert {*wanted, f"{site}/lecture/README.html"} <= targets
        assert any(target.startswith(f"{course}/set_{number}_") for target in targets)
    reached, waiting = set(), [f"{site}/index.html"]
    while waiting:
        path = waiting.pop()
        reached.add(path)
        waiting += {target for target, _ in links[path]} & (texts.keys() - reached)
    assert {path for path in texts if dirname(path) == course} <= reached


TERMS = ("complementary slackness", "Slater", "Lagrangian", "exponential cone", "ADMM")
TERMS += ("second-order cone", "maximum entropy", "momentum", "posterior", "weakly infeasible")
"""Of the course: the site's search finds each of them in a chapter."""


def search_for_terms(context, site):
    page = context.new_page()
    for term in TERMS:
        page.goto(f"{(site / 'search.html').as_uri()}?q={quote(term)}")
        page.locator("#search-results li a").first.wait_for()
        found = page.eval_on_selector_all("#search-results li a", "all => all.map(a => a.href)")
        assert any("/course/chapter" in address for address in found), term
    page.close()


ALIKE = re.compile("chapter.*-slides|set_[2-9]|set_10|exercise_[2-9]").match
"""Chapters once more, and pages of one pattern, of which one is looked at."""


def look_for_barriers(browser, paths):
    """By axe-core, as a screen reader and a keyboard need pages; colors in both themes."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = browser.new_context(bypass_csp=True).new_page()
    for path in paths:  # a formula has the color of its text, a course's code that of other pages
        parts = {"exclude": ["math", "pre"] if path.parent.name == "course" else ["math"]}
        for theme, options in (("light", None), ("dark", {"runOnly": ["color-contrast"]})):
            page.emulate_media(color_scheme=theme)
            page.goto(path.as_uri())
            page.add_style_tag(content="* { transition: none !important }")  # colors as they end
            assert page.evaluate("getComputedStyle(document.body).colorScheme") == theme
            serious = {
                f"{each['id']}: {each['nodes'][0]['html'][:100]}"
                for each in axe.run(page, parts, options).response["violations"]
                if each["impact"] in ("serious", "critical")
            }
            assert serious == set(), (path.name, theme)


def check_notebook(path):
    """Formulas and folded answers are there, and no cell needs a name that none defines."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    words = "".join(cell["source"] for cell in cells if cell["cell_type"] == "markdown")
    assert words.count("<details>") >= 3
    assert words.count("$$") >= 6
    assert "$$$$" not in words  # a formula of nothing
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
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    pictures = [] if "slides" in path.name else page.locator(".moving").all()
    moving = [each for each in pictures if each.locator("input").count()]
    if path.parent.name == "course" and path.name.startswith("chapter"):
        assert page.locator("math").count() >= 3
        assert pictures or "slides" in path.name
        assert moving == pictures  # elsewhere some stand still
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 720})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path.name
        assert all(280 <= seen(each)[1] <= width for each in pictures), path.name
        assert min(page.evaluate(SLIDERS), default=300) > 250, path.name
    before = [seen(each) for each in moving]
    for (picture, _), each in zip(before, moving, strict=True):
        slider = each.locator("input").first
        if slider.get_attribute("type") == "radio":
            slider.check(force=True)
        else:
            slider.press("End" if slider.input_value() == "0" else "Home")
        assert seen(each)[0] != picture, path.name
    assert [words for words in said if not words.startswith("[PST]")] == [], path.name  # theme
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    files = {Path(unquote(urlsplit(url).path)) for url in asked if url.startswith("file:")}
    assert sum(sent(file) for file in files) < MOST_BYTES, path.name
    page.close()


def sent(file):
    """How many bytes of a file a server sends: it compresses text."""
    content = file.read_bytes()
    return len(gzip.compress(content) if file.suffix in (".html", ".css", ".js") else content)


def seen(moving):
    """The first picture of a position, as it is described, and its width."""
    picture = moving.locator("svg[role=img]").first
    return picture.inner_html(), picture.bounding_box()["width"]


SLIDERS = """[...document.querySelectorAll(".moving input[type=range]")]
  .map((each) => each.offsetWidth).filter((width) => width > 0)"""
"""The widths of those that are seen, in pixels."""

ILLEGIBLE = """here => [...here.querySelectorAll("*")].filter((each) => {
  const words = [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  if (!words || each.closest("script, style") || !each.getClientRects().length) return false;
  const svg = each.ownerSVGElement, box = (svg ?? each).getBoundingClientRect();
  const scale = svg?.viewBox.baseVal
    ? Math.min(box.width / svg.viewBox.baseVal.width, box.height / svg.viewBox.baseVal.height) : 1;
  const low = each.closest("footer") ? innerHeight : here.querySelector("footer").offsetTop;
  return parseFloat(getComputedStyle(each).fontSize) * scale < 20
    || box.bottom > low + 1 || box.right > innerWidth;
}).map((each) => each.outerHTML)"""


def turn_over(page):
    """A slide has a claim, a picture, steps, an address, legible type and a page of the PDF."""
    slides = page.locator(".slide")
    assert slides.count() >= 8
    names = page.eval_on_selector_all("[id]", "all => all.map((each) => each.id)")
    assert len(names) == len({*names})  # a frame of the same name in a hidden slide cuts nothing
    for number in range(1, slides.count() + 1):
        here = page.locator(".slide:visible")
        page.wait_for_function("number => location.hash === `#slide-${number}`", arg=number)
        assert here.locator("h1, h2").count() == 1
        assert here.locator(".moving, .drag, table").count() <= 1
        steps = here.locator(":scope > ul:not(.beside) > li")
        assert number == 1 or 2 <= steps.count() <= 4
        for shown in range(steps.count() + 1):
            assert here.locator("li.later").count() == steps.count() - shown
            page.keyboard.press("ArrowRight")
        assert slides.nth(number - 1).is_visible() == (number == slides.count())
        page.goto(f"{page.url.partition('#')[0]}#slide-{number}")
        slides.nth(number - 1).wait_for(state="visible")
        assert page.locator(".slide:visible").evaluate(ILLEGIBLE) == []
        page.keyboard.press("ArrowRight")
    printed = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == slides.count()
    width, height = re.search(rb"/MediaBox \[0 0 (\d+) (\d+)\]", printed).groups()
    assert int(width) > int(height)
