"""`seraph-cvx explore`: the interactive page, served on this machine only."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from .. import explorer
from .main import Debug, app
from .report import answers_in_words, say

HOST = "127.0.0.1"
NEEDED = ("marimo", "anywidget")


@app.command(epilog="Example:  seraph-cvx explore --port 2719 --no-browser")
def explore(
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="Where to serve; by default the first free from 2718."),
    ] = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Only serve; open no browser.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Open a page to label points, move the weights and step through the alternation.

    It is served by marimo to this machine only and needs no network. Ctrl-C ends it.
    """
    with answers_in_words():
        missing = [name for name in NEEDED if find_spec(name) is None]
        if missing:
            raise ValueError(
                f"The explorer needs {' and '.join(missing)}, which is not installed: "
                'run  pip install "seraph-cvx[explore]"'
            )
        if port is not None:
            _require_free(port)
        say("The explorer is starting; Ctrl-C ends it.")
        code = _serve(_command(port, no_browser))
        if code:
            raise typer.Exit(code)


def _command(port: int | None, no_browser: bool) -> list[str]:
    """How marimo's own server is asked to run the page as an app, its code not shown."""
    page = Path(explorer.__file__).with_name("page.py")
    command = [sys.executable, "-m", "marimo", "run", str(page), "--host", HOST, "--no-token"]
    command += [] if port is None else ["--port", str(port)]
    return [*command, "--headless"] if no_browser else command


def _serve(command: list[str]) -> int:
    """Run the server; Ctrl-C and a plain kill of this process end it, and are no failure."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return subprocess.run(command, check=False).returncode
    except KeyboardInterrupt:
        say("The explorer has ended.")
        return 0
    finally:
        signal.signal(signal.SIGTERM, before)


def _require_free(port: int) -> None:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((HOST, port))
        except OSError as error:
            raise ValueError(
                f"Port {port} cannot be used ({error.strerror}): give another by --port, or none."
            ) from None
