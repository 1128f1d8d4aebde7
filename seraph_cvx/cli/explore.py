"""`seraph-cvx explore`: serve the interactive page, on this machine and by its link only."""

from __future__ import annotations

import errno
import os
import secrets
import signal
import socket
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from html import escape
from pathlib import Path

from ..explorer.guard import TOKEN
from ..processes.signals import handled
from .main import DEBUG, app, option
from .messages import answers_in_words, say

HOST = "127.0.0.1"
FIRST_PORT, LAST_PORT = 2718, 2818


@app.command(epilog="Example:  seraph-cvx explore --port 2719 --no-browser")
def explore(
    port: int | None = option(
        None, "The port to serve on; by default the first free from 2718.", min=1, max=65535
    ),
    no_browser: bool = option(False, "Serve the page without opening a browser.", "--no-browser"),
    scene: str | None = option(
        None, "The scene to open on, as the page shows it: the end of its address, after #."
    ),
    debug: bool = DEBUG,
) -> None:
    """Open a page to label points and watch the metric change.

    Move the weights, and step through the alternation.

    It is served to this machine only and needs no network. The link that is printed
    holds a token, new at each start, without which nothing is served. The page shows the command
    that opens its scene again. Ctrl-C ends it.
    """
    try:
        _explore(port, not no_browser, scene)
    except (ValueError, OSError):
        with answers_in_words():  # it imports scikit-learn, which takes longer than all before
            raise


def _explore(port: int | None, opens_browser: bool, scene: str | None) -> None:
    """Check what is asked for, print the link, and serve the page until it is stopped."""
    end = "" if scene is None else f"#{_checked(scene)}"
    token = secrets.token_urlsafe(16)
    with _listen(port) as listener:
        link = f"http://{HOST}:{listener.getsockname()[1]}/?{TOKEN}={token}{end}"
        say(f"The explorer is starting; press Ctrl-C to stop it. Your personal link:\n{link}")
        with _redirect(link) if opens_browser else nullcontext("") as page:
            if page:
                threading.Thread(target=webbrowser.open, args=(page,), daemon=True).start()
            with suppress(KeyboardInterrupt), handled(signal.SIGTERM, signal.default_int_handler):
                from ..explorer.server import serve  # slow to import: the link stands there already

                serve(listener, token)
    say("The explorer has stopped.")
    leave()


@contextmanager
def _redirect(link: str) -> Iterator[str]:
    """The address of a file that leads to the link, for this user's eyes only.

    A browser's command line is seen by every user of the machine, and the link holds the token.
    """
    handle, path = tempfile.mkstemp(".html", "seraph-cvx-explore-")  # of mode 0600
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(f'<meta http-equiv="refresh" content="0;url={escape(link)}">\n')
    try:
        yield Path(path).as_uri()
    finally:
        Path(path).unlink(missing_ok=True)


def _checked(scene: str) -> str:
    """The scene as the page writes it, or an error in words."""
    from ..explorer.state import link_of, read_link

    return link_of(read_link(scene))


def _listen(port: int | None) -> socket.socket:
    """Open a socket that listens on this port, or on the first free one, for this machine only."""
    for candidate in range(FIRST_PORT, LAST_PORT + 1) if port is None else [port]:
        try:
            return socket.create_server((HOST, candidate))
        except OSError as error:
            if port is None and error.errno == errno.EADDRINUSE:
                continue
            raise ValueError(
                f"Port {candidate} cannot be used ({os.strerror(error.errno or 0)}): give another "
                "with --port, or none."
            ) from None
    raise ValueError(f"No port from {FIRST_PORT} to {LAST_PORT} is free: give another with --port.")


def leave() -> None:
    """End the process at once: a thread may be in the midst of a solver."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
