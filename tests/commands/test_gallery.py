"""The scripts of the gallery are all named; the site runs them (`tests/course/test_pages.py`)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

FOLDER = Path(__file__).resolve().parents[2] / "examples"
SCRIPTS = sorted(FOLDER.glob("plot_*.py"), key=lambda path: int(path.stem.split("_")[1]))


def test_there_are_eleven_and_the_index_names_each():
    assert [int(script.stem.split("_")[1]) for script in SCRIPTS] == list(range(1, 12))
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[(\w+)\.py\]\(\1\.py\) \| .{20,} \| .{20,} \|$", index, re.M)
    assert rows == [script.stem for script in SCRIPTS]
