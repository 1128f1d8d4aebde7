"""The chapters of the course, run once, and the pictures that their sliders move."""

from __future__ import annotations

import runpy
import sys
from functools import cache
from pathlib import Path
from typing import Any

LECTURE = Path(__file__).resolve().parents[2] / "examples" / "lecture"
sys.path.insert(0, str(LECTURE))  # as marimo does for a notebook


@cache
def run_chapter(chapter: str) -> list[Any]:
    """What the cells of a chapter show."""
    outputs, _ = runpy.run_path(str(LECTURE / f"{chapter}.py"))["app"].run()
    return list(outputs)


@cache
def moving_figures(chapter: str) -> dict[str, list[tuple[float, tuple[Any, ...]]]]:
    """By the label of each slider: its values, and the figures that are drawn at each."""
    found = [output for output in run_chapter(chapter) if type(output).__name__ == "Moving"]
    return {
        moving.label: [(value, tuple(moving.draw(value))) for value in moving.slider.steps]
        for moving in found
    }
