"""Write chapters as HTML pages that need neither Python nor a network, and as Jupyter notebooks.

python examples/lecture/export.py --slides --out pages
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import runpy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape, unescape
from pathlib import Path
from textwrap import dedent
from time import perf_counter
from typing import Any

from pages import to_html, write_chapter, write_slides

FOLDER = Path(__file__).parent
WITH_SLIDES = ("chapter2", "chapter3", "chapter4")


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

    def html(self, positions: int) -> str:
        shown = to_html(self.output, positions)
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
        r'<div class="formula" data-latex="(.*?)".*?</div>',
        lambda found: f"\n\n{unescape(found[1])}\n\n",
        output._repr_markdown_(),
    )
    folded = r"<details><summary>\1</summary>\n"
    words = re.sub(r"^/// details \| (.+)$", folded, words, flags=re.M)
    return re.sub(r"^///$", "\n</details>", words, flags=re.M)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Export chapters to HTML and to Jupyter.")
    parser.add_argument("chapters", nargs="*", type=Path, help="by default all")
    parser.add_argument("--out", type=Path, default=Path(), help="the folder to write to")
    parser.add_argument("--slides", action="store_true", help="slides of chapters 2 to 4 as well")
    parser.add_argument("--positions", type=int, default=20, help="of each slider, at most")
    chosen = parser.parse_args(arguments)
    chosen.out.mkdir(parents=True, exist_ok=True)
    for chapter in chosen.chapters or sorted(FOLDER.glob("chapter*.py")):
        clock = perf_counter()
        cells = read_cells(chapter)
        print(f"{chapter.stem} ran in {perf_counter() - clock:.1f} s", flush=True)
        title = str(ast.get_docstring(ast.parse(chapter.read_text(encoding="utf-8"))))
        parts = [cell.html(chosen.positions) for cell in cells]
        files = {
            f"{chapter.stem}.html": write_chapter(title, parts),
            f"{chapter.stem}.ipynb": jupyter_notebook(cells),
        }
        if chosen.slides and chapter.stem in WITH_SLIDES:
            files[f"{chapter.stem}-slides.html"] = write_slides(title, parts)
        for name, text in files.items():
            (chosen.out / name).write_text(text, encoding="utf-8")
            print(f"Written: {chosen.out / name}")


if __name__ == "__main__":
    main()
