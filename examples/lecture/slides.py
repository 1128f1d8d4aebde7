"""Slides from `slides.txt`: a claim, what proves it, and steps; one file of HTML a chapter.

They need neither Python nor a network.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import marimo as mo
from drawing import PROGRAM
from pages import POLICY, STYLE, plain, scrollable

from seraph_cvx.display.page import write_page

FOLDER = Path(__file__).resolve().parent
KEYS = (
    "<span class='keys'><kbd>→</kbd> on, <kbd>←</kbd> back, <kbd>Home</kbd> first, "
    "<kbd>F</kbd> full screen, <kbd>Ctrl</kbd> <kbd>P</kbd> PDF</span>"
)


def read_slides(title: str) -> list[tuple[str, str, str]]:
    """Of each slide of a chapter the claim, what it shows, as in "picture 1.2", and the steps."""
    chapters = re.split(r"^# ", (FOLDER / "slides.txt").read_text(encoding="utf-8"), flags=re.M)
    (chapter,) = (part for part in chapters if part.startswith(f"{title}\n"))
    slide = r"^(## .+)\n\n\[(.+)\]\n\n([^#]+)"
    return re.findall(slide, chapter, re.M)


def write_slides(title: str, goal: str, end: str, show: Callable[[str], str]) -> str:
    """The slides of a chapter; `show` makes HTML of what a slide shows."""
    parts = [f"<h1>{title}</h1><p>{goal}</p>{end}"]
    for claim, shown, steps in read_slides(title):
        before, after = (plain(mo.md(words).text) for words in (claim, steps))
        parts.append(before + show(shown) + after)
    body = "".join(
        f'<section class="slide" id="slide-{k}" aria-label="Slide {k}">{part}<footer>{KEYS}'
        f'<a href="#slide-{k}">{k} / {len(parts)}</a></footer></section>'
        for k, part in enumerate(parts, start=1)
    )
    style, script = ((FOLDER / name).read_text("utf-8") for name in ("slides.css", "slides.js"))
    body = f"<main>{scrollable(body)}</main>{PROGRAM}<script>{script}</script>"
    return write_page(title, body, STYLE + style, POLICY)
