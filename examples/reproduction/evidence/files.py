"""What the programs share: how they start, and the files that they write."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

from seraph_cvx.cli.report import alert, say
from seraph_cvx.processes.whole_file import write_whole


def program() -> typer.Typer:
    """A program with plain help and plain tracebacks, as the `seraph-cvx` command has them."""
    return typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"max_content_width": 100},
    )


def write_texts(out: Path, texts: dict[str, str]) -> list[str]:
    """Write files by name, and print those in Markdown; return the names."""
    for name, text in texts.items():
        write_whole(out / name, text.encode())
        if name.endswith(".md"):
            say(text.replace("<br>", " / "))
    return list(texts)


def write_picture(path: Path, module: str, draw: Callable[[Any], Any]) -> list[str]:
    """Write the picture that `draw` makes with a module, and return its name; or say why none."""
    try:
        plots = import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        alert('No picture: matplotlib is not installed. Run  pip install "seraph-cvx[plot]"')
        return []
    from seraph_cvx.plots.style import picture_bytes

    write_whole(path, picture_bytes(draw(plots), path.suffix[1:]))
    return [path.name]
