"""Writes pictures to files."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from ..processes.whole_file import write_whole
from .report import alert


def write_picture(path: Path, room: str, draw: Callable[[Any], Any]) -> list[str]:
    """Write a picture that a module of plots/ draws, or say why there is none.

    Parameters
    ----------
    path : Path
    room : str
        The name of the module; the ending of the path chooses the format.
    draw : callable
        Given the module, returns the figure.

    Returns
    -------
    list of str
        The name of the file; empty if matplotlib is not installed.
    """
    try:
        plots = import_module(f"seraph_cvx.plots.{room}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        alert('No picture: matplotlib is not installed. Run  pip install "seraph-cvx[plot]"')
        return []
    from ..plots.files import picture_bytes

    write_whole(path, picture_bytes(draw(plots), path.suffix[1:]))
    return [path.name]
