"""Evidence: the gallery's scripts run headless, assert their point and draw a legible picture."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples"
SCRIPTS = sorted(FOLDER.glob("plot_*.py"), key=lambda path: int(path.stem.split("_")[1]))
INDEX = (FOLDER / "README.md").read_text(encoding="utf-8")
RUN_AND_READ = """
import runpy, sys
from pictures import assert_legible
sys.argv = sys.argv[1:]
assert_legible(runpy.run_path(sys.argv[0], run_name="__main__")["draw"]())
"""
"""The script as from the command line, once, and then a look at what it draws."""

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


def run(*arguments, folder):
    """A Python process that takes warnings for errors, in `folder`."""
    given = os.environ.get("PYTHONPATH", "")
    paths = os.pathsep.join([str(FOLDER), str(Path(__file__).parents[1] / "helpers"), given])
    return subprocess.run(
        [sys.executable, "-W", "error", *map(str, arguments)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )


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
def test_script_runs_headless_and_draws_the_committed_pictures_legibly_where_told(script, tmp_path):
    picture, thumbnail = tmp_path / "picture.png", tmp_path / "thumbnail.png"
    arguments = (script, "--out", picture, "--thumbnail", thumbnail)
    done = run("-c", RUN_AND_READ, *arguments, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(tmp_path.iterdir()) == [picture, thumbnail]
    assert_small(thumbnail, picture)
    for drawn, kind in zip((thumbnail, picture), KINDS, strict=True):
        committed = FOLDER / kind / f"{script.stem}.png"
        assert ink(drawn)[0] == ink(committed)[0]
        assert script.stem in MEASURED or distance(drawn, committed) < SAME


@pytest.mark.slow
def test_without_out_the_picture_is_in_the_current_folder_under_the_name_of_the_script(tmp_path):
    done = run(SCRIPTS[5], folder=tmp_path)
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
