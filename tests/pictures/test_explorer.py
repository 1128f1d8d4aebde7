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
def test_browser_a_choice_changes_the_metric_and_every_control_has_a_name(browser, tmp_path):
    pytest.importorskip("marimo", reason="marimo is not installed")
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    with served(tmp_path, "seraph_cvx", "explore", "--no-browser") as address:
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        page.goto(f"http://{address}")
        metric = page.get_by_text("A has the entries")
        metric.wait_for(timeout=120_000)
        page.locator("img").nth(1).wait_for(timeout=60_000)
        first = metric.inner_text()
        page.get_by_label("Points").select_option("two moons")
        page.wait_for_function("old => !document.body.innerText.includes(old)", arg=first)
        assert re.search(r"relative gap \d\.\de-\d\d", page.inner_text("body"))
        assert page.get_by_role("slider").count() == 5
        assert all(image.get_attribute("alt") for image in page.locator("img").all())
        serious = {
            node["html"]
            for each in axe.run(page).response["violations"]
            if each["impact"] in ("serious", "critical")
            for node in each["nodes"]
        }
        assert all("radix" in html for html in serious), serious  # marimo's own menu
        page.close()
