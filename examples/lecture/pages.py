"""The HTML of a chapter: a page to read and slides to show, in one file each, for any browser.

Neither needs Python or a network: every picture is there for each value of its slider.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from lecture import Moving

from seraph_cvx.display.page import write_page

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
STYLE = """
body { max-width: 60rem; } .paragraph { display: block; margin: .7em 0; }
h2 { margin: 2.2rem 0 .4rem; }
summary { cursor: pointer; } details { margin: .6em 0; } img { background: #fff; }
details.code { color: var(--soft); font-size: .85em; }
.moving { margin: 1rem 0; } .moving label { font-weight: 600; }
.moving input { display: block; width: 100%; max-width: 36rem; margin: .4rem 0; }
@media (max-width: 500px) { math { font-size: .9rem; } }
"""
SCRIPT = """
for (const moving of document.querySelectorAll(".moving")) {
  const slider = moving.querySelector("input"), shown = moving.querySelector("output");
  slider.addEventListener("input", () => moving.querySelectorAll(".frame").forEach((frame, k) => {
    frame.hidden = k !== slider.valueAsNumber;
    if (!frame.hidden) shown.value = frame.dataset.value;
  }));
}
"""
SLIDE_STYLE = """
body { max-width: none; margin: 0; padding: 0; }
.slide { box-sizing: border-box; max-width: 75rem; margin: auto;
  padding: 1.2rem 1.2rem 2.5rem; position: relative; border-bottom: 1px solid var(--line); }
.slide h1 { font-size: 1.6em; } .slide h2, .slide h3 { font-size: 1.3em; margin: 0 0 .4em; }
.slide table { font-size: .95em; } .slide .moving { margin: 0; }
.number { position: absolute; right: 1.2rem; bottom: .8rem; color: var(--soft); font-size: 1rem; }
@media (min-width: 900px) { .slide { min-height: 100vh; max-width: 92vw; }
  .slide math { font-size: 1.1em; }
  .slide .frame img { max-width: 25em !important; } }
@media print { .slide { break-after: page; } }
"""
SLIDE_SCRIPT = """
const slides = [...document.querySelectorAll(".slide")];
const fit = () => slides.forEach((slide) => {
  let size = innerWidth < 900 ? 16 : innerHeight / 32;
  do slide.style.fontSize = `${size--}px`;
  while (innerWidth >= 900 && size >= 15 && slide.offsetHeight > innerHeight + 1);
});
addEventListener("load", fit);
addEventListener("resize", fit);
addEventListener("pointerup", (event) => event.target.matches("input") && event.target.blur());
addEventListener("keydown", (event) => {
  const way = { ArrowRight: 1, PageDown: 1, ArrowLeft: -1, PageUp: -1 }[event.key];
  if (!way || event.target.matches("input")) return;
  const here = slides.findIndex((slide) => slide.getBoundingClientRect().bottom > innerHeight / 2);
  event.preventDefault();
  (slides[here + way] ?? slides[here]).scrollIntoView();
});
"""


LINK = re.compile(r'<a href="\.\./([^"]+)"[^>]*>(.*?)</a>')
"""To a file of this repository, which a page does not have with it."""


def to_html(output: Any, positions: int) -> str:
    """What a cell shows, as HTML; a slider has at most so many positions."""
    if isinstance(output, Moving):
        return output.flip_book(positions)
    text = "" if output is None else str(output.text)
    prose = re.fullmatch(r'<span class="markdown[^>]*>(.*)</span>', text, re.DOTALL)
    return LINK.sub(r"\2 (<code>examples/\1</code>)", prose[1]) if prose else text


def write_chapter(title: str, parts: Sequence[str]) -> str:
    """The page of a chapter, from the HTML of its cells."""
    return write_page(title, "\n".join(parts) + f"<script>{SCRIPT}</script>", STYLE, POLICY)


def write_slides(title: str, parts: Sequence[str]) -> str:
    """Slides from the same HTML; the arrow keys turn over."""
    slides = split(parts)
    body = "".join(
        f'<section class="slide">{slide}<div class="number">{k} / {len(slides)}</div></section>'
        for k, slide in enumerate(slides, start=1)
    ).replace('<details class="code" open>', '<details class="code">')
    script = f"<script>{SCRIPT}{SLIDE_SCRIPT}</script>"
    return write_page(title, body + script, STYLE + SLIDE_STYLE, POLICY)


def split(parts: Sequence[str]) -> list[str]:
    """A slide for each heading, and one for each moving picture, which repeats its heading."""
    slides: list[str] = []
    heading = ""
    for part in parts:
        for piece in re.split(r"(?=<h[123][ >])", part):
            begun = re.match(r"<h[123].*?</h[123]>", piece, re.DOTALL)
            if begun:
                heading = begun[0]
                slides.append(piece)
            elif piece.startswith('<div class="moving">'):
                slides.append(heading + piece)
            elif slides:
                slides[-1] += piece
    return slides
