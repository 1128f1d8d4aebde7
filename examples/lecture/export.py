"""Write the course as pages for the site, which builds them, and as slides and notebooks.

python examples/lecture/export.py --out course
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
from html import unescape
from multiprocessing import get_context
from pathlib import Path
from textwrap import dedent
from time import perf_counter
from typing import Any

from drag import Drag
from drawing import PROGRAM, Moving, pictures
from failure_cards import failures_page
from lecture import formulas
from pages import (
    ROOT,
    Card,
    code_block,
    listed,
    raw,
    relinked,
    to_html,
    to_rest,
    write_cards,
    write_code,
)
from slides import write_slides

FOLDER = Path(__file__).resolve().parent
EXERCISES, GUIDE = FOLDER.parent / "exercises", FOLDER.parent / "guide"
PAPER = ROOT / "seraph_cvx" / "paper.py"
FILES = "_files/course"
"""Where slides and notebooks lie, below the pages: the site copies them as they are."""


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

    def rest(self, shown: str) -> str:
        """The cell on a page of the site."""
        code = "" if self.is_hidden else code_block(self.computation)
        return code + to_rest(shown)


def read_cells(chapter: Path) -> list[Cell]:
    """Run a chapter: the code of each cell beside its output."""
    outputs, _ = runpy.run_path(str(chapter))["app"].run()
    codes, shown = _codes(chapter.read_text(encoding="utf-8")), [None, *outputs]  # of the imports
    return [Cell(*code, out) for code, out in zip(codes, shown, strict=True)]


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
        r'<div class="formula" data-latex="(.*?)".*?(<b>.*?</b>).*?(<small>.*?</small>)?</div>',
        lambda found: f"\n\n{found[2]}\n\n{unescape(found[1])}\n\n{found[3] or ''}\n\n",
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


def page_names() -> dict[Path, str]:
    """The page of each file that has one, as seen from the course's folder of the site."""
    texts = [*FOLDER.glob("*.md"), EXERCISES / "README.md", *GUIDE.glob("*.md")]
    names = {file: f"{file.stem}.html" for file in (*chapter_files(), *EXERCISES.glob("*.py"))}
    names |= {PAPER: "paper.html"}
    return names | {file: f"../{file.parent.name}/{file.stem}.html" for file in texts}


def write_chapter(chapter: Path) -> tuple[dict[str, str], Card]:
    """The files of a chapter, and what the page of all chapters says of it."""
    clock = perf_counter()
    cells = read_cells(chapter)
    print(f"{chapter.stem} ran in {perf_counter() - clock:.1f} s", flush=True)
    name, number, pages = chapter.stem, _number(chapter), page_names()
    shown = [relinked(to_html(cell.output), chapter, pages) for cell in cells]
    whole = "\n".join(shown)
    problems = [f"{file.stem}.html" for file in EXERCISES.glob(f"set_{number}_*.py")]
    links = [(f"{name}-slides.html", "Slides"), (f"{name}.ipynb", "Notebook")]
    links += [
        *((page, "Problem set") for page in problems),
        ("paper.html", "The paper's equations"),
    ]
    parts = [cell.rest(part) for cell, part in zip(cells, shown, strict=True)]
    first, *others = filter(None, parts)
    title, line, rest = first.partition("=\n\n")
    page = title + line + raw(listed(links)) + rest + "".join(others)
    page += raw(PROGRAM)
    back = [(f"{name}.html", "The chapter"), ("../lecture/README.html", "All chapters")]
    moving = [cell.output for cell in cells if isinstance(cell.output, Moving)]
    goal = re.search(r"<strong>Goal\.</strong>(.*?)</span>", whole, re.DOTALL)
    minutes = re.search(r"<strong>Time\.</strong> ([\w ]+ minutes)", whole)
    if goal is None or minutes is None:
        raise ValueError(f"{chapter.name} lacks a goal or a time.")

    def show(what: str) -> str:
        """What a slide shows: a picture's panel, formulas, a table or the drag."""
        kind, _, which = what.partition(" ")
        if kind == "picture":
            picture, panel = map(int, which.split("."))
            return moving[picture - 1].panel(panel - 1)
        if kind == "formula":
            return formulas(*which.split()).text
        tables = re.findall(r"<table>.*?</table>", whole, re.DOTALL)
        return tables[int(which) - 1] if kind == "table" else Drag().offline_html()

    slides = write_slides(title_of(chapter), goal[1], listed(back), show)
    files = {
        f"{name}.rst": page,
        f"{FILES}/{name}-slides.html": slides,
        f"{FILES}/{name}.ipynb": jupyter_notebook(cells),
    }
    card = pictures("", moving[0].first).body
    return files, Card(title_of(chapter), goal[1].strip(), minutes[1], card)


def exercise_page(source: Path) -> str:
    """The page of a problem set or an exercise, with the command that checks a solution."""
    kind = re.match(r"(set|exercise)_(\d+)", source.stem)
    if kind is None:
        raise ValueError(f"{source.name} is neither a problem set nor an exercise.")
    check = f"{'set' if kind[1] == 'set' else ''}{kind[2]} {source.name}"
    return write_code(
        source,
        f'<p>Take <a href="{source.name}">{source.name}</a>, fill in its TODOs, and run '
        f"<code>seraph-cvx check-exercise {check}</code>.</p>",
    )


def _chapter(given: str) -> Path:
    """The file of a chapter, which is given by its number or its path."""
    path = FOLDER / f"chapter{given}.py" if given.isdigit() else Path(given)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"{given!r} is no chapter: give a number, 1 to 10.")
    return path.resolve()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Write the course's pages, slides and notebooks.")
    parser.add_argument(
        "chapters", nargs="*", type=_chapter, help="numbers or files; by default the whole course"
    )
    parser.add_argument("--out", type=Path, default=Path(), help="the folder to write to")
    chosen = parser.parse_args(arguments)
    (chosen.out / FILES).mkdir(parents=True, exist_ok=True)

    def write(name: str, text: str) -> None:
        (chosen.out / name).write_text(text, encoding="utf-8")
        print(f"Written: {chosen.out / name}", flush=True)

    chapters, cards = chosen.chapters or chapter_files(), {}
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:  # one process for each core
        failures = None if chosen.chapters else pool.submit(failures_page)
        written = pool.map(write_chapter, chapters)
        for chapter, (files, card) in zip(chapters, written, strict=True):
            cards[chapter.stem] = card
            for name, text in files.items():
                write(name, text)
    if failures is None:
        return
    write("failures.rst", failures.result())
    write("cards.html", write_cards(cards))
    write("drag.html", to_html(Drag()))
    write("paper.rst", write_code(PAPER))
    for file in sorted(EXERCISES.glob("*.py")):
        write(f"{file.stem}.rst", exercise_page(file))
        shutil.copy(file, chosen.out / FILES)


if __name__ == "__main__":
    main()
