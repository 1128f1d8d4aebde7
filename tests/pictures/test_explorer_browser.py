"""Evidence: the explorer in a real browser, by its real server: quick, offline, for its user."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress

import numpy as np
import pytest
from evidence.passes import STARTS, processor_seconds
from explorer_states import after

from seraph_cvx.explorer.scene import DRAWN, SCENES, SIDE
from seraph_cvx.explorer.state import CONTROLS, ExplorerState, link_of
from seraph_cvx.explorer.views import TABS

pytestmark = pytest.mark.slow
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
MOST_IMPORTS = 20
"""Imports of NumPy, at most, that the server may cost until its page can be used: it costs 8."""

STOPWATCH = """() => {
  window.taken = [];
  window.changed = 0;
  let pressed = 0;
  document.addEventListener("keydown", () => { pressed = performance.now(); }, true);
  const seen = new MutationObserver(() => {
    window.changed = performance.now();
    if (pressed) window.taken.push(performance.now() - pressed);
    pressed = 0;
  });
  for (const section of document.querySelectorAll(".panels section")) {
    seen.observe(section, { childList: true, subtree: true });
  }
}"""

SLIDERS = {name: CONTROLS[name] for name in ("weight_factor", "trace_weight", "threshold")}
SETTLED = "n => window.taken.length > n && performance.now() - window.changed > 100"
"""Whether more than n answers have come, and 100 ms ago the last part of them."""


@pytest.fixture(scope="module")
def link(tmp_path_factory):
    """The link of the page, served by the command, which ends well."""
    folder = tmp_path_factory.mktemp("explorer")
    log, home = folder / "log", {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    command = [sys.executable, "-m", "seraph_cvx", "explore", "--no-browser"]
    with log.open("w") as file:
        process = subprocess.Popen(
            command, stdout=file, stderr=file, env=os.environ | home, cwd=folder
        )
    while not (printed := re.search(r"^http\S+\n", log.read_text(encoding="utf-8"), re.M)):
        assert process.poll() is None
        time.sleep(0.02)
    yield printed.group().strip()
    process.terminate()
    assert process.wait(20) == 0
    said = log.read_text(encoding="utf-8")
    assert "The explorer has stopped." in said
    assert "Traceback" not in said


@pytest.fixture(scope="module")
def address(link):
    """Where the page is, without its token."""
    return link.partition("?")[0]


@pytest.fixture(scope="module")
def browser():
    """Chromium, started once."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def open_page(browser):
    """A function that opens the page; what it asked for and complained of is kept."""
    contexts = []

    def opened(link, width=1280, scheme="light"):
        viewport = {"width": width, "height": 1600}
        context = browser.new_context(viewport=viewport, color_scheme=scheme)
        contexts.append(context)
        origin = link.partition("?")[0]
        context.grant_permissions(["clipboard-read", "clipboard-write"], origin=origin)
        page = context.new_page()
        page.complaints, page.asked = [], []
        page.on("console", lambda line: page.complaints.append((line.type, line.text)))
        page.on("pageerror", lambda error: page.complaints.append(("error", str(error))))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(link)
        page.wait_for_selector("[data-value=descent]", timeout=90_000)
        page.scale = page.locator(".plane svg").bounding_box()["width"] / SIDE
        return page

    yield opened
    for context in contexts:
        context.close()


def shown(page, name):
    return page.locator(f"[data-value={name}]").first.inner_text()


def wait_for(page, name, text):
    value = page.locator(f"[data-value={name}]").first
    playwright.expect(value).to_contain_text(text, timeout=30_000)


def wait_for_count(page, selector, count):
    playwright.expect(page.locator(selector)).to_have_count(count, timeout=30_000)


def press_until(page, label, state):
    """Press a button, and wait for the counter of the state that should follow."""
    page.get_by_role("button", name=label, exact=True).click()
    wait_for(page, "position", f"half-step {state.position}: {state.half_step.name}")


def agrees(page, state):
    """The page's numbers are those of the same state in this process."""
    half_step, (before, now) = state.half_step, state.errors
    wait_for(page, "link", link_of(state))
    wait_for(page, "descent", f"{half_step.descent_value:.8g}"[:-1])
    numbers = [float(shown(page, name)) for name in ("descent", "paper", "primal", "gap")]
    certificate = half_step.certificate
    expected = half_step.descent_value, half_step.paper_objective, certificate.primal_value
    assert numbers[:3] == pytest.approx(expected, rel=1e-9)
    assert numbers[3] == pytest.approx(certificate.relative_gap, rel=0.02, abs=1e-9)
    if now is not None:
        assert f"{before} → {now}" in shown(page, "errors")


def click_plane(page, x, y):
    place = {"x": x * page.scale, "y": y * page.scale}
    page.locator(".plane svg").click(position=place)


def nothing_went_wrong(page, address):
    assert [text for kind, text in page.complaints if kind == "error"] == []
    assert [url for url in page.asked if not url.startswith((address, "data:"))] == []
    assert "Traceback" not in page.content()


def test_starting_costs_few_imports_of_numpy():
    """The processor time until the first view: it does not hang on other work."""
    names = "import numpy", "seraph-cvx explore, the first view"
    numpy, view = (min(processor_seconds(STARTS[name]) for _ in range(3)) for name in names)
    assert view < MOST_IMPORTS * numpy


@pytest.mark.skipif(sys.platform != "linux", reason="127.0.0.2 is this machine on Linux alone")
def test_server_hears_no_other_address_of_this_machine(address):
    port = int(address.strip("/").rpartition(":")[2])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port), 5)


SLOW_ANSWERS = """() => {
  const answer = window.fetch;
  const pause = () => new Promise((resolve) => setTimeout(resolve, 500));
  window.fetch = (...request) => pause().then(() => answer(...request));
}"""


def test_browser_two_labels_every_slider_steps_undo_a_restored_scene_and_the_recipe(
    open_page, link, address, tmp_path
):
    page, state = open_page(link), ExplorerState().run()
    agrees(page, state)
    for k in np.flatnonzero(state.scene.y < 0)[[3, 30]]:  # label two points
        x, y = state.scene.to_screen(state.scene.X)[k]
        click_plane(page, x, y)
        state = after(state, {"x": x, "y": y})
        assert state.scene.y[k] == 0
        agrees(page, state)
    own = page.get_by_role("slider", name=CONTROLS["own_sharpness"].label)
    assert own.is_disabled()
    page.get_by_role("checkbox").uncheck()  # the slider of the sharpness is off until then
    state = after(state, {"set": "sharpness_rule", "value": False})
    agrees(page, state)
    assert own.is_enabled()
    for name in (*SLIDERS, "own_sharpness"):  # move each slider
        slider = CONTROLS[name]
        at = slider.options.index(getattr(state.settings, name)) + 1
        page.get_by_role("slider", name=slider.label).press("ArrowRight")
        state = after(state, {"set": name, "value": at})
        agrees(page, state)
    click_plane(page, 15, 385)  # add a point, and undo it
    wait_for_count(page, ".plane .unknown", 87)
    page.get_by_role("button", name="Undo", exact=True).click()
    wait_for_count(page, ".plane .unknown", 86)
    agrees(page, state)
    for label, move in (("Reset", "reset"), *[("Step ▶", "forward")] * 3, ("◀ Back", "back")):
        state = after(state, {"move": move})
        press_until(page, label, state)
        agrees(page, state)
    state = after(state, {"move": "run"})
    press_until(page, "Run to the end", state)
    agrees(page, state)
    wait_for_count(page, "[data-value=results] tr", 3)
    page.get_by_role("button", name="Copy the link").click()  # a link restores the scene
    page.get_by_role("button", name="Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == f"{address}#{link_of(state)}"
    page.locator("select").first.select_option("rings")
    agrees(page, state.adjusted(source="rings"))
    page.wait_for_url(re.compile("#.*rings"))  # the address follows
    page.goto(copied)
    agrees(page, state)
    page.reload()
    agrees(page, state)
    page.evaluate(SLOW_ANSWERS)  # nothing to copy is offered before the recipe is there
    page.get_by_role("tab", name="Python").click()  # the recipe prints the metric
    page.get_by_role("button", name="Copy", exact=True).click()
    page.get_by_role("button", name="Copied").wait_for()
    recipe = tmp_path / "recipe.py"
    recipe.write_text(page.evaluate("navigator.clipboard.readText()"), encoding="utf-8")
    done = subprocess.run([sys.executable, recipe], capture_output=True, text=True, check=True)
    metric = json.loads(re.search(r"^metric (.+)$", done.stdout, re.M).group(1))
    assert metric == state.half_step.metric.tolist()
    (a, b), (_, d) = metric
    assert shown(page, "metric") == f"{a:.3f}, {b:.3f}; {b:.3f}, {d:.3f}"
    assert float(done.stdout.split()[-1]) <= 1e-8
    nothing_went_wrong(page, address)


def test_browser_nonsense_is_answered_in_words_and_a_solver_is_graded(open_page, link, address):
    page = open_page(f"{link}#data=spirals")
    wait_for(page, "words", "The link's data is 'spirals'")
    page.get_by_role("button", name="Forget the labels").click()
    wait_for(page, "words", "No point has a label")
    page.locator("select").first.select_option(DRAWN)
    wait_for(page, "words", "There is no point")
    for x, y in ((50, 200), (60, 215), (300, 210)):
        click_plane(page, x, y)
        click_plane(page, x, y)
    wait_for(page, "words", "Only one class is known")
    click_plane(page, 300, 210)
    wait_for_count(page, ".plane .class1", 1)
    page.get_by_role("slider", name="trace weight").press("Home")
    wait_for(page, "words", "has no optimum")
    page.goto(f"{address}#{link_of(ExplorerState(position=1))}")
    agrees(page, ExplorerState(position=1))
    page.get_by_role("tab", name="Solvers").click()
    page.locator("select").nth(1).select_option("CLARABEL")
    page.get_by_role("button", name="Solve the current M-step").click()
    wait_for(page, "answers", "CLARABEL")
    value = ExplorerState(position=1).half_step.certificate.primal_value
    assert shown(page, "answers").count(f"{value:.10g}"[:8]) == 2
    wait_for_count(page, "[data-value=gaps] svg", 1)
    nothing_went_wrong(page, address)


@pytest.mark.parametrize("width", [1280, 800, 390])
def test_browser_the_plane_stays_in_place_while_points_are_drawn(open_page, link, width):
    page = open_page(link, width)
    assert "100 points" in page.locator("#note-source").inner_text()
    page.locator("select").first.select_option(DRAWN)
    wait_for(page, "words", "There is no point")
    assert "100 points" not in page.locator("#note-source").inner_text()
    place = page.locator(".plane").bounding_box()
    for n, (x, y) in enumerate(((50, 200), (60, 215), (300, 210), (310, 190)), 1):
        click_plane(page, x, y)
        wait_for_count(page, ".plane svg .unknown", 1)
        for _ in range(2 if n > 2 else 1):
            click_plane(page, x, y)
        wait_for_count(page, ".plane svg .unknown", 0)
        now = page.locator(".plane").bounding_box()  # its height changes: the text below
        assert (now["x"], now["y"]) == pytest.approx((place["x"], place["y"]), abs=0.5), n
    wait_for_count(page, ".plane svg .class1", 2)


PICTURES = ("plane", "before", "after", "learned", "pairs")


@pytest.mark.parametrize("width", [1920, 1280, 800])
def test_browser_panels_of_a_row_are_in_line_and_none_stands_alone(open_page, link, width):
    page = open_page(link, width)
    agrees(page, ExplorerState().run())
    panels = page.locator(".panels > section:not(.moves, .results, .link)").all()
    rows = Counter(panel.bounding_box()["y"] for panel in panels)
    assert min(rows.values()) > 1
    tops = {
        (
            page.locator(f".{name}").bounding_box()["y"],
            page.locator(f".{name} svg").bounding_box()["y"],
        )
        for name in PICTURES
    }
    assert len(tops) == len({row for row, _ in tops})  # one height of pictures in each row


OVERLAPS = """() => [...document.querySelectorAll("svg")].filter((svg) => {
  const title = svg.querySelector(".axis[transform]")?.getBoundingClientRect();
  return title && [...svg.querySelectorAll(".tick.end")].some(
    (tick) => tick.getBoundingClientRect().left < title.right);
}).map((svg) => svg.getAttribute("aria-label"))"""


@pytest.mark.parametrize("width", [1280, 390])
def test_browser_axis_titles_are_beside_the_labels_of_ticks(open_page, link, width):
    page = open_page(link, width)
    for source in SCENES[:-1]:
        page.locator("select").first.select_option(source)
        for move in ("Run to the end", "Reset"):
            page.get_by_role("button", name=move).click()
            wait_for(page, "position", "half-step 0" if move == "Reset" else "M-step")
            assert page.evaluate(OVERLAPS) == [], source


def test_browser_nothing_sticks_out_in_any_tab_width_or_scheme(open_page, link, tmp_path):
    image = pytest.importorskip("PIL.Image")
    for width, scheme in ((1280, "light"), (800, "dark"), (390, "light")):
        page = open_page(link, width, scheme)
        for tab in TABS:
            page.get_by_role("tab", name=tab).click()
            page.wait_for_timeout(200)
            if tab == "Statement":
                wait_for(page, "statement", "problem")
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (width, tab)
        for section in page.locator(".panels > *").all():
            box = section.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
        page.screenshot(path=tmp_path / "page.png")
        with image.open(tmp_path / "page.png") as picture:
            pixels = np.asarray(picture.convert("L"), dtype=float)
        assert (np.median(pixels) > 128) == (scheme == "light")
        assert pixels.std() > 10.0


def test_browser_a_slider_is_answered_within_300_ms(open_page, link):
    """The lower quartile: what other processes take of the machine only adds."""
    page = open_page(f"{link}#{link_of(ExplorerState(position=5))}")
    agrees(page, ExplorerState(position=5))
    page.evaluate(STOPWATCH)
    for control in SLIDERS.values():
        slider = page.get_by_role("slider", name=control.label)
        for key in ["ArrowRight", "ArrowRight", "ArrowLeft"] * 3:
            n_answers = page.evaluate("window.taken.length")
            slider.press(key)
            with suppress(playwright.TimeoutError):  # some moves change nothing
                page.wait_for_function(SETTLED, arg=n_answers, timeout=2000)
    taken = page.evaluate("window.taken")
    assert len(taken) >= 20
    assert statistics.quantiles(taken)[0] < 300.0, taken
