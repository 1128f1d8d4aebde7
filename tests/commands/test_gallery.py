"""Evidence: the gallery's scripts run, assert their point and draw a legible picture."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
from pictures import assert_legible

pytestmark = pytest.mark.once

FOLDER = Path(__file__).resolve().parents[2] / "examples"
SCRIPTS = sorted(FOLDER.glob("plot_*.py"), key=lambda path: int(path.stem.split("_")[1]))


def test_there_are_eleven_and_the_index_names_each():
    assert [int(script.stem.split("_")[1]) for script in SCRIPTS] == list(range(1, 12))
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[(\w+)\.py\]\(\1\.py\) \| .{20,} \| .{20,} \|$", index, re.M)
    assert rows == [script.stem for script in SCRIPTS]


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script_holds_and_draws_a_legible_picture(script, folder, monkeypatch):
    """In this process, which has imported what they need; it writes no file."""
    monkeypatch.syspath_prepend(FOLDER)
    figure = runpy.run_path(str(script), run_name="__main__")["figure"]
    assert_legible(figure)
    assert list(folder.iterdir()) == []
