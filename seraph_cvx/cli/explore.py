"""`seraph-cvx explore`: start the notebook of examples/explorer.py."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import typer

from .main import DEBUG, app, option
from .messages import answers_in_words

PACKAGE = Path(__file__).parents[1]
NOTEBOOKS = (PACKAGE / "explorer.py", PACKAGE.parent / "examples" / "explorer.py")
"""Where the notebook is: in the installed package, and in a clone."""


@app.command(epilog="Example:  seraph-cvx explore --port 2719 --no-browser")
def explore(
    port: int | None = option(
        None, "The port to serve on; by default a free one.", min=1, max=65535
    ),
    no_browser: bool = option(False, "Serve the page without opening a browser.", "--no-browser"),
    debug: bool = DEBUG,
) -> None:
    """Open a page to choose points and weights, and watch the metric and its certificate.

    It is a marimo notebook, served to this machine only. Ctrl-C ends it.
    """
    with answers_in_words():
        if importlib.util.find_spec("marimo") is None:
            raise ValueError(
                'The page needs marimo. Run  pip install "seraph-cvx[lecture]"  and try again.'
            )
        notebook = next(filter(Path.exists, NOTEBOOKS))
        command = [sys.executable, "-m", "marimo", "run", str(notebook)]
        command += ["--headless"] if no_browser else []
        command += [] if port is None else ["--port", str(port)]
        with suppress(KeyboardInterrupt):  # marimo has said that it stops
            raise typer.Exit(subprocess.run(command, check=False).returncode)
