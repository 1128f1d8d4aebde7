"""The course as pages of the site, in reStructuredText.

None of them needs Python or a network: every picture is there for each value of its slider.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Mapping
from html import escape, unescape
from itertools import pairwise
from pathlib import Path
from textwrap import indent
from typing import Any, NamedTuple

from drawing import PROGRAM

from seraph_cvx.display.symbols import prose

ROOT = Path(__file__).resolve().parents[2]
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
STYLE = """
body { max-width: 60rem; } .paragraph { display: block; margin: .7em 0; }
h2 { margin: 2.2rem 0 .4rem; } h3 { margin: 1.6rem 0 .3rem; }
nav ul { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; list-style: none; padding: 0; }
summary { cursor: pointer; } details { margin: .6em 0; } img { background: #fff; max-width: 100%; }
details.code { color: var(--soft); font-size: .85em; }
.wide { overflow-x: auto; } .formula math { overflow: visible; }
.chapters { display: grid; grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr));
  gap: 1.2rem; list-style: none; padding: 0; }
.chapters li { background: var(--card); border: 1px solid var(--edge); border-radius: 8px;
  padding: .8rem; } .chapters svg { width: 100%; } .chapters h3 { margin: .4rem 0; }
@media (max-width: 500px) { math { font-size: .9rem; } }
"""

LINK = re.compile(r'<a href="(?!https?:|#)([^"#]+)(#[^"]*)?"[^>]*>(.*?)</a>', re.DOTALL)
HEADING = re.compile(r"<h([123])[^>]*>(.*?)</h\1>", re.DOTALL)


class Card(NamedTuple):
    """What the start page says of a chapter: its title, its goal, its minutes and a picture."""

    title: str
    goal: str
    minutes: str
    picture: str


def relinked(html: str, source: Path, pages: Mapping[Path, str]) -> str:
    """Let links of a file lead to the pages of other files; of one without, the path is named."""

    def link(found: re.Match[str]) -> str:
        target = Path(os.path.normpath(source.parent / found[1]))
        if target in pages:
            return f'<a href="{pages[target]}{found[2] or ""}">{found[3]}</a>'
        path = target.relative_to(ROOT) if target.is_relative_to(ROOT) else Path(found[1])
        return f"{found[3]} (<code>{path.as_posix()}</code>)"

    return LINK.sub(link, html)


def listed(links: Iterable[tuple[str, str]]) -> str:
    """Links, given by page and text, beside each other."""
    items = "".join(f'<li><a href="{page}">{escape(text)}</a></li>' for page, text in links)
    return f'<ul class="beside">{items}</ul>'


def raw(html: str) -> str:
    """HTML in a page of the site."""
    return f".. raw:: html\n\n{indent(scrollable(html), '   ')}\n\n" if html.strip() else ""


def code_block(code: str) -> str:
    """Python in a page of the site."""
    return f".. code-block:: python\n\n{indent(code, '   ')}\n\n"


def heading(html: str, level: int = 1) -> str:
    """The heading of a section of the site."""
    title = re.sub(r"([\\*`_|])", r"\\\1", unescape(re.sub("<[^>]+>", "", html)))
    return f"{title}\n{'=-~'[level - 1] * 2 * len(title)}\n\n"


def to_rest(html: str) -> str:
    """HTML as a page of the site has it: headings are its sections, and code is in its colors."""
    html = html.replace('codehilite"', 'codehilite highlight"')
    written, end = [], 0
    for found in HEADING.finditer(html):
        written += [raw(html[end : found.start()]), heading(found[2], int(found[1]))]
        end = found.end()
    return "".join([*written, raw(html[end:])])


def write_code(source: Path, above: str = "") -> str:
    """The page of a file of Python: what its docstring says, and its text, by functions."""
    text = source.read_text(encoding="utf-8")
    tree = ast.parse(text)
    title, _, more = (ast.get_docstring(tree) or source.name).partition("\n")
    starts = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    words, _, indented = more.strip().partition("\n\n ")
    # What is said in words is not shown again as code.
    cuts = [0 if indented else tree.body[0].end_lineno or 0]
    cuts += [*(node.lineno - 1 for node in starts), len(text.splitlines())]
    paragraphs = "".join(f"<p>{prose(part)}</p>" for part in words.split("\n\n"))
    page = heading(prose(title.rstrip("."))) + raw(paragraphs + above)
    for name, (start, end) in zip(
        ["", *(node.name for node in starts)], pairwise(cuts), strict=True
    ):
        anchor = raw(f'<span id="{name}"></span>') if name else ""
        page += anchor + code_block("\n".join(text.splitlines()[start:end]).strip("\n"))
    return page


def write_cards(cards: Mapping[str, Card]) -> str:
    """A card for each chapter."""
    items = "".join(
        f"<li>{card.picture}<h3><a href='../course/{name}.html'>{escape(card.title)}</a></h3>"
        f"<p>{card.goal}</p><p>{card.minutes} · "
        f"<a href='../course/{name}-slides.html'>slides</a> · "
        f"<a href='../course/{name}.ipynb'>notebook</a></p></li>"
        for name, card in cards.items()
    )
    return f"<ul class='chapters'>{items}</ul>{PROGRAM}"


def scrollable(body: str) -> str:
    """Let code and tables that are too wide scroll by themselves, by keyboard too."""
    body = body.replace("<pre>", '<pre tabindex="0">').replace("</table>", "</table></div>")
    return body.replace("<table>", '<div class="wide" tabindex="0"><table>')


def plain(html: str) -> str:
    """The HTML of prose without the element around it."""
    found = re.fullmatch(r'<span class="markdown[^>]*>(.*)</span>', html.strip(), re.DOTALL)
    return found[1] if found else html


def to_html(output: Any) -> str:
    """What a cell shows, as HTML."""
    if hasattr(output, "offline_html"):
        return str(output.offline_html())
    return "" if output is None else plain(str(output.text))
