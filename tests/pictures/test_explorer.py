"""Evidence: the explorer's notebook runs, reacts, and is read by a screen reader."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys

import pytest
from command_line import run, words
from served import served

from seraph_cvx.cli.explore import NOTEBOOKS


def test_without_marimo_the_command_names_the_extra_that_brings_it(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "marimo" else find(name)
    )
    result = run("explore")
    assert result.exit_code == 2
    assert 'pip install "seraph-cvx[lecture]"' in words(result.stderr)


@pytest.mark.slow
@pytest.mark.once
def test_the_notebook_runs_as_a_program():
    pytest.importorskip("marimo", reason="marimo is not installed")
    (notebook,) = filter(os.path.exists, NOTEBOOKS)
    done = subprocess.run([sys.executable, notebook], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.once
def test_browser_a_choice_or_a_moved_point_changes_the_metric_and_controls_have_names(
    browser, tmp_path
):
    pytest.importorskip("marimo", reason="marimo is not installed")
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    with served(tmp_path, "seraph_cvx", "explore", "--no-browser") as address:
        page = browser.new_page(viewport={"width": 390, "height": 844})
        page.goto(f"http://{address}")
        page.get_by_text("iterations: ").wait_for(timeout=120_000)
        page.locator("img").first.wait_for(timeout=60_000)
        for choose in (
            lambda: page.get_by_label("Points").select_option("two moons"),
            lambda: page.get_by_role("slider").nth(5).press("PageUp"),  # a point, by the keyboard
        ):
            first = page.locator("img").first.evaluate("picture => picture.src")
            choose()
            page.wait_for_function("old => (document.images[0]?.src ?? old) !== old", arg=first)
        assert re.search(r"relative gap \d\.\de-\d\d", page.inner_text("body"))
        assert page.get_by_role("slider").count() == 7
        assert all(image.get_attribute("alt") for image in page.locator("img").all())
        found = axe.run(page).response["violations"]
        assert [each for each in found if each["impact"] in ("serious", "critical")] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.close()
