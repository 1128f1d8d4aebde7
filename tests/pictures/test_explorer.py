"""Evidence: the explorer's notebook runs, reacts, and is read by a screen reader."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import socket
import subprocess
import sys
import time

import pytest
from command_line import run, words

from seraph_cvx.cli.explore import NOTEBOOKS

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


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


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Where the command serves the notebook."""
    pytest.importorskip("marimo", reason="marimo is not installed")
    folder = tmp_path_factory.mktemp("explorer")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_STATE_HOME": str(folder)}
    command = [sys.executable, "-m", "seraph_cvx", "explore", "--no-browser", "--port", str(port)]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, env=os.environ | home, cwd=folder
        )
    for _ in range(600):
        with socket.socket() as there:
            if there.connect_ex(("127.0.0.1", port)) == 0:
                break
        assert process.poll() is None, (folder / "log").read_text()
        time.sleep(0.1)
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait(20)
    assert "Traceback" not in (folder / "log").read_text()


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_browser_a_choice_changes_the_metric_and_every_control_has_a_name(address):
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        page.goto(address)
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
        browser.close()
