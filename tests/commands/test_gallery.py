"""Evidence: the gallery's scripts run, assert their point and draw a legible picture."""

from __future__ import annotations

import re
import runpy
import struct
import subprocess
import sys
from importlib import import_module
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from pictures import assert_legible

from seraph_cvx.plots.style import picture_bytes

pytestmark = pytest.mark.once

FOLDER = Path(__file__).resolve().parents[2] / "examples"
SCRIPTS = sorted(FOLDER.glob("plot_*.py"), key=lambda path: int(path.stem.split("_")[1]))
INDEX = (FOLDER / "README.md").read_text(encoding="utf-8")
each_script = pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)

KINDS = ("thumbnails", "pictures")
GRID = (12, 6)
"""A picture is compared by the mean colors of so many fields, across and down."""
SAME = 0.1
"""Pictures nearer than this are the same: matplotlib 3.9 draws them up to 0.063 from 3.11."""
MEASURED = {"plot_3_solvers"}
"""The marks of these are at seconds, which no two runs share: only their sizes are compared."""


def ink(path):
    """The size of a picture, and how far from white each field of a grid is, in each color."""
    image = pytest.importorskip("PIL.Image")
    with image.open(path) as picture:
        fields = picture.convert("RGB").resize(GRID, image.Resampling.BOX)
        return picture.size, 1.0 - np.asarray(fields, dtype=float) / 255.0


def distance(one, other):
    """How much of the ink of two pictures is not where the other has it: from 0 to 1."""
    a, b = ink(one)[1], ink(other)[1]
    return float(np.sum(np.abs(a - b)) / np.sum(a + b))


def assert_small(thumbnail, picture):
    """By the headers of the PNG files, and their sizes."""
    widths = []
    for path, most_bytes in ((thumbnail, 30_000), (picture, 100_000)):
        head = path.read_bytes()[:24]
        assert head.startswith(b"\x89PNG")
        assert path.stat().st_size < most_bytes
        widths.append(struct.unpack(">I", head[16:20])[0])
    assert widths[0] == 400
    assert 800 <= widths[1] <= 1280


def test_there_are_eleven_and_the_index_names_each():
    assert [int(script.stem.split("_")[1]) for script in SCRIPTS] == list(range(1, 12))
    rows = re.findall(
        r"^\| \[!\[(.+)\]\(thumbnails/(\w+)\.png\)\]\(pictures/(\w+)\.png\) "
        r"\| \[(\w+)\.py\]\(\4\.py\)<br>.{20,} \| .{20,} \|$",
        INDEX,
        re.M,
    )
    assert [row[1:] for row in rows] == [(s.stem,) * 3 for s in SCRIPTS]


@pytest.mark.slow
@each_script
def test_script_draws_the_committed_pictures_legibly_where_told(script, folder, monkeypatch):
    """In this process, which has imported what they need; the first figure is that of --out."""
    monkeypatch.syspath_prepend(FOLDER)
    gallery, figures = import_module("gallery"), []
    monkeypatch.setattr(
        gallery, "picture_bytes", lambda *given: figures.append(given[0]) or picture_bytes(*given)
    )
    picture, thumbnail = folder / "picture.png", folder / "thumbnail.png"
    arguments = ["--out", str(picture), "--thumbnail", str(thumbnail)]
    monkeypatch.setattr(sys, "argv", [str(script), *arguments])
    runpy.run_path(str(script), run_name="__main__")
    assert_legible(figures[0])
    assert sorted(folder.iterdir()) == [picture, thumbnail]
    assert_small(thumbnail, picture)
    for drawn, kind in zip((thumbnail, picture), KINDS, strict=True):
        committed = FOLDER / kind / f"{script.stem}.png"
        assert ink(drawn)[0] == ink(committed)[0]
        assert script.stem in MEASURED or distance(drawn, committed) < SAME


@pytest.mark.slow
def test_as_a_command_without_out_the_picture_is_here_under_the_name_of_the_script(tmp_path):
    command = [sys.executable, "-W", "error", SCRIPTS[5]]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == [f"{SCRIPTS[5].stem}.png"]


@each_script
def test_committed_pictures_are_small(script):
    assert_small(*(FOLDER / part / f"{script.stem}.png" for part in KINDS))


@pytest.mark.parametrize("kind", KINDS)
def test_no_committed_picture_could_be_taken_for_another(kind):
    """So the comparison above would be red for any two that were swapped."""
    paths = [FOLDER / kind / f"{script.stem}.png" for script in SCRIPTS]
    assert sorted((FOLDER / kind).iterdir()) == sorted(paths)
    for one, other in combinations(paths, 2):
        assert distance(one, other) > 2.0 * SAME, (one.stem, other.stem)
