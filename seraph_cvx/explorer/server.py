"""The server of the page, a separate process: ``python -m seraph_cvx.explorer.server 3 < token``.

It takes over the listening socket of that number from the process that starts it, and reads the
token from standard input: other users of the machine can read the command lines of all processes.
"""

from __future__ import annotations

import socket
import sys
from contextlib import suppress

import marimo
import uvicorn

from . import page
from .guard import Guard


def serve(listener: socket.socket, token: str) -> None:
    """Serve the page, its code not shown, to anyone who has the token, until Ctrl-C."""
    builder = marimo.create_asgi_app(quiet=True, include_code=False, skew_protection=True)
    app = builder.with_app(path="/", root=page.__file__).build()
    guard = Guard(app, token, listener.getsockname()[1])
    config = uvicorn.Config(
        guard, log_level="error", timeout_keep_alive=300, timeout_graceful_shutdown=1
    )
    with suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), sys.stdin.read().strip())
