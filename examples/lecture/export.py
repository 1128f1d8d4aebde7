"""Write the course as HTML pages that need neither Python nor a network, and as notebooks.

python examples/lecture/export.py --out pages
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import runpy
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from html import escape, unescape
from multiprocessing import get_context
from pathlib import Path
from textwrap import dedent
from time import perf_counter
from typing import Any

import marimo as mo
from drawing import Moving, pictures
from pages import ROOT, Card, Site, plain, start_page, to_html, write_slides

FOLDER = Path(__file__).resolve().parent
EXERCISES, GUIDE = FOLDER.parent / "exercises", FOLDER.parent / "guide"
PAPER = ROOT / "seraph_cvx" / "paper.py"
TITLE = "Convex optimization on one real problem"
HOME = ("index.html", "Course")


@dataclass(frozen=True)
class Cell:
    """The code of a cell, whether readers see it, and what it shows."""

    code: str
    is_hidden: bool
    output: Any

    @property
    def computation(self) -> str:
        """The code but for the prose that it ends with."""
        return self.code.partition("mo.md(")[0].rstrip()

    def html(self) -> str:
        shown = to_html(self.output)
        if self.is_hidden:
            return shown
        code = f"<pre><code>{escape(self.computation)}</code></pre>"
        return f'<details class="code" open><summary>Python</summary>{code}</details>{shown}'


def read_cells(chapter: Path) -> list[Cell]:
    """Run a chapter, and put the code of each cell beside its output."""
    text = chapter.read_text(encoding="utf-8")
    outputs, _ = runpy.run_path(str(chapter))["app"].run()
    shown = [None, *outputs]  # the imports show nothing
    return [Cell(*code, output) for code, output in zip(_codes(text), shown, strict=True)]


def _codes(text: str) -> Iterator[tuple[str, bool]]:
    """The code of the setup and of every cell, and whether it is hidden."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.With):
            yield _lines(text, node.body), True
        elif isinstance(node, ast.FunctionDef):
            returns = isinstance(node.body[-1], ast.Return)
            hidden = any(isinstance(decorator, ast.Call) for decorator in node.decorator_list)
            yield _lines(text, node.body[:-1] if returns else node.body), hidden


def _lines(text: str, body: Sequence[ast.stmt]) -> str:
    lines, start = text.splitlines(), body[0].lineno - 1
    while lines[start - 1].lstrip().startswith("#"):
        start -= 1
    return dedent("\n".join(lines[start : body[-1].end_lineno]))


def jupyter_notebook(cells: Sequence[Cell]) -> str:
    """The cells in Jupyter's format; a slider stands at its first value there."""
    written: list[dict[str, Any]] = []
    for cell in cells:
        words = _markdown(cell.output)
        if cell.computation:
            shown = "" if words else getattr(cell.output, "text", "")  # a slider's one position
            data = {"output_type": "display_data", "metadata": {}, "data": {"text/html": shown}}
            entry = {"cell_type": "code", "source": cell.computation, "execution_count": None}
            written.append(entry | {"outputs": [data] if shown else []})
        if words:
            written.append({"cell_type": "markdown", "source": words})
    for number, entry in enumerate(written):
        entry |= {"id": f"cell-{number}", "metadata": {}}
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": written, "metadata": {"kernelspec": kernel}}
    return json.dumps(whole | {"nbformat": 4, "nbformat_minor": 5}, indent=1, ensure_ascii=False)


def _markdown(output: Any) -> str:
    """Prose and formulas as Jupyter takes them; empty for anything else."""
    if not hasattr(output, "_repr_markdown_"):
        return ""
    words = re.sub(
        r'<div class="formula" data-latex="(.*?)".*?(<small>.*?</small>)?</div>',
        lambda found: f"\n\n{unescape(found[1])}\n\n{found[2] or ''}\n\n",
        output._repr_markdown_(),
    )
    folded = r"<details><summary>\1</summary>\n"
    words = re.sub(r"^/// details \| (.+)$", folded, words, flags=re.M)
    return re.sub(r"^///$", "\n</details>", words, flags=re.M)


def chapter_files() -> list[Path]:
    """The chapters in their order."""
    return sorted(FOLDER.glob("chapter*.py"), key=_number)


def _number(path: Path) -> int:
    return int(path.stem.removeprefix("chapter"))


def title_of(file: Path) -> str:
    """The first line of a file's docstring."""
    docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or file.name
    return docstring.partition("\n")[0].rstrip(".")


def page_names(site: str | None) -> dict[Path, str]:
    """The page of each file that has one; those of Markdown may be on a site that has them."""
    texts = [FOLDER / "teacher.md", EXERCISES / "README.md", *sorted(GUIDE.glob("*.md"))]
    name = "{}-{}.html" if site is None else f"{site}/{{}}/{{}}.html"
    return {
        FOLDER / "README.md": "index.html",
        **{chapter: f"{chapter.stem}.html" for chapter in chapter_files()},
        **{file: f"{file.stem}.html" for file in sorted(EXERCISES.glob("*.py"))},
        PAPER: "paper.html",
        **{file: name.format(file.parent.name, file.stem) for file in texts},
    }


def further(site: Site) -> list[tuple[str, str]]:
    """The pages beside the chapters."""
    texts = {
        EXERCISES / "README.md": "Problem sets and exercises",
        FOLDER / "teacher.md": "For the teacher",
        PAPER: "The paper's equations in Python",
        GUIDE / "README.md": "The guide of the package",
    }
    return [(site.pages[file], text) for file, text in texts.items()]


def chapter_links(site: Site, chapter: Path) -> list[tuple[str, str]]:
    """Where one can go from a chapter: to its neighbors, its slides, its problems, the code."""
    number = _number(chapter)
    near = {_number(other): other for other in chapter_files()}
    links = [HOME]
    for other, arrow in ((number - 1, "← {}"), (number + 1, "{} →")):
        if other in near:
            links.append((f"{near[other].stem}.html", arrow.format(title_of(near[other]))))
    links.append((f"{chapter.stem}-slides.html", "Slides"))
    links += [(f"{file.stem}.html", "Problem set") for file in EXERCISES.glob(f"set_{number}_*.py")]
    return [*links, *further(site)[2:]]


def write_chapter(site: Site, chapter: Path) -> tuple[dict[str, str], Card]:
    """The files of a chapter, and what the start page says of it."""
    clock = perf_counter()
    cells = read_cells(chapter)
    print(f"{chapter.stem} ran in {perf_counter() - clock:.1f} s", flush=True)
    title, links = title_of(chapter), chapter_links(site, chapter)
    parts = [site.relinked(cell.html(), chapter) for cell in cells]
    whole = "\n".join(parts)
    end = "".join(f'<p><a href="{page}">{escape(text)}</a></p>' for page, text in links[:3])
    goal = re.search(r"<strong>Goal\.</strong>(.*?)</span>", whole, re.DOTALL)
    minutes = re.search(r"<strong>Time\.</strong> (\d+) minutes", whole)
    if goal is None or minutes is None:
        raise ValueError(f"{chapter.name} lacks a goal or a time.")
    files = {
        f"{chapter.stem}.html": site.write(title, whole, links),
        f"{chapter.stem}-slides.html": write_slides(title, parts, end),
        f"{chapter.stem}.ipynb": jupyter_notebook(cells),
    }
    picture = next(cell.output for cell in cells if isinstance(cell.output, Moving)).first
    return files, Card(title, goal[1].strip(), minutes[1], pictures(title, picture).body)


def other_pages(site: Site) -> Iterator[tuple[str, str]]:
    """The pages that are no chapters, by their names."""
    links = [HOME, *further(site)]
    for source, name in site.pages.items():
        if source.suffix == ".md" and name != "index.html":
            if "/" not in name:  # else it is on the site
                yield name, site.write_text(source, links)
        elif source == PAPER:
            yield name, site.write_code(source, links)
        elif source.parent == EXERCISES:
            kind = re.match(r"(set|exercise)_(\d+)", source.stem)
            if kind is None:
                raise ValueError(f"{source.name} is neither a problem set nor an exercise.")
            check = f"{'set' if kind[1] == 'set' else ''}{kind[2]} {source.name}"
            above = (
                f'<p>Take <a href="{source.name}">{source.name}</a>, fill in its TODOs, and run '
                f"<code>seraph-cvx check-exercise {check}</code>.</p>"
            )
            yield name, site.write_code(source, links, above)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Export the course to HTML and to Jupyter.")
    parser.add_argument("chapters", nargs="*", type=Path, help="by default the whole course")
    parser.add_argument("--out", type=Path, default=Path(), help="the folder to write to")
    parser.add_argument("--site", help="the address of a site that has guide and plans: no copies")
    chosen = parser.parse_args(arguments)
    chosen.out.mkdir(parents=True, exist_ok=True)
    site, cards = Site(page_names(chosen.site)), {}

    def write(name: str, text: str) -> None:
        (chosen.out / name).write_text(text, encoding="utf-8")
        print(f"Written: {chosen.out / name}", flush=True)

    chapters = [chapter.resolve() for chapter in chosen.chapters] or chapter_files()
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:  # one process for each core
        written = pool.map(partial(write_chapter, site), chapters)
        for chapter, (files, card) in zip(chapters, written, strict=True):
            cards[chapter.stem] = card
            for name, text in files.items():
                write(name, text)
    if chosen.chapters:
        return
    for name, text in other_pages(site):
        write(name, text)
    for file in sorted(EXERCISES.glob("*.py")):
        shutil.copy(file, chosen.out)
    readme = (FOLDER / "README.md").read_text(encoding="utf-8").partition("\n## ")[0]
    intro = site.relinked(plain(mo.md(readme).text), FOLDER / "README.md")
    write("index.html", site.write(TITLE, start_page(intro, cards, further(site)), further(site)))


if __name__ == "__main__":
    main()
