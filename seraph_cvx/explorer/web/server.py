"""The server of the page: marimo and uvicorn behind the guard."""

from __future__ import annotations

import os
import socket
import sys
import threading
from pathlib import Path

from .assets import Assets
from .guard import Guard

PAGE = Path(__file__).with_name("page.py")

GIVE_WAY = 0.0005
"""Seconds after which a thread lets the others on: some 300 requests come while one computes."""


def serve(listener: socket.socket, token: str) -> None:
    """Serve the page, its code not shown, to anyone who has the token, until Ctrl-C.

    What the page needs is imported and its first scene is solved while the browser still loads.
    """
    import marimo
    import uvicorn

    builder = marimo.create_asgi_app(quiet=True, include_code=False, skew_protection=True)
    app = builder.with_app(path="/", root=str(PAGE)).build()
    assets = Path(marimo.__file__).with_name("_static") / "assets"
    guard = Guard(Assets(app, assets), token, listener.getsockname()[1])
    config = uvicorn.Config(
        guard, log_level="error", timeout_keep_alive=300, timeout_graceful_shutdown=1
    )
    sys.setswitchinterval(GIVE_WAY)
    threading.Thread(target=_prepare, daemon=True).start()
    uvicorn.Server(config).run(sockets=[listener])


def _prepare() -> None:
    from ..views import tabs, whole_page  # noqa: F401
    from . import widget  # noqa: F401

    whole_page.view_of(whole_page.first_state())


def leave() -> None:
    """End the process at once: marimo's threads wait for ever, or are in the midst of a solver."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
