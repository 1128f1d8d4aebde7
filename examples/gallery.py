"""What every script of the gallery does at its end: save its picture, large and small."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from PIL import Image

THUMBNAIL_WIDTH = 400
"""In pixels."""


def save(draw: Callable[[], Figure], script: str, arguments: Sequence[str] | None = None) -> Path:
    """Draw once; write to --out, by default NAME.png in the current folder, and to --thumbnail."""
    name = Path(script).stem
    parser = argparse.ArgumentParser(prog=f"{name}.py", description="Check a claim and draw it.")
    parser.add_argument("--out", type=Path, default=Path(f"{name}.png"), help="where to draw")
    parser.add_argument("--thumbnail", type=Path, help=f"also {THUMBNAIL_WIDTH} pixels wide, here")
    chosen = parser.parse_args(arguments)
    figure = draw()
    # A picture says the same whichever version of matplotlib wrote it.
    plain: dict[str, Any] = {"format": "png", "metadata": {"Software": None}}
    figure.savefig(chosen.out, **plain)
    if chosen.thumbnail is not None:
        dots = THUMBNAIL_WIDTH / figure.get_size_inches()[0]
        figure.savefig(chosen.thumbnail, dpi=dots, **plain)
        with Image.open(chosen.thumbnail) as picture:
            few_colours = picture.convert("RGB").quantize(256)
        few_colours.save(chosen.thumbnail, optimize=True)
    return Path(chosen.out)
