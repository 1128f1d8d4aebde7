"""The server of the page: three files, and answers to what the open pages ask."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import Any

from .alternation import SOLVERS
from .guard import Guard
from .state import ExplorerState
from .views import TABS, sheet, view_of

FILES = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
}
QUESTIONS = ("/events", "/sheet")
MOST_BYTES = 1_000_000
"""The longest question; a link to a full plane has some 10,000 bytes."""

TEXT, JSON = "text/plain; charset=utf-8", "application/json"
SAFEGUARDS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; connect-src 'self'; "
    "style-src 'self' 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
}
"""The page asks only this server, and no other page can hold it in a frame."""
MOST_PAGES = 100
MOST_EVENTS = 1_000
"""The number of events in a question, at most."""
MOST_CONNECTIONS = 60
"""The number of connections at a time; a browser opens six for a page."""
SECONDS_TO_ASK, SECONDS_TO_WAIT = 10, 600
"""How long a connection may be silent: until it has shown the token, and afterwards."""


@dataclass
class Page:
    """The state of a page; its questions are answered one at a time."""

    state: ExplorerState | None = None
    lock: Lock = field(default_factory=Lock)


@dataclass(frozen=True)
class Pages:
    """Answers what pages ask, and keeps the state of each; one does not wait for another."""

    open: dict[str, Page] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def answer(self, path: str, question: Mapping[str, Any]) -> dict[str, Any]:
        """Answer ``/events`` by the view after them, ``/sheet`` by a tab, or by a ValueError."""
        name, events = str(question.get("page"))[:100], question.get("events", [])
        tab, solver = str(question.get("tab")), question.get("solver")
        if not isinstance(events, list) or not all(
            isinstance(event, dict) and type(event.get("count")) is int for event in events
        ):
            raise ValueError(f"Events are a list of objects with a count, not {events!r:.100}.")
        if len(events) > MOST_EVENTS:
            raise ValueError(f"A question has {len(events)} events, more than {MOST_EVENTS}.")
        if path == "/sheet" and (tab not in TABS or solver not in (None, *SOLVERS)):
            raise ValueError(f"There is no tab {tab!r} with the solver {solver!r}.")
        with self._lock:
            page = self.open.pop(name, None) or Page()
            self.open[name] = page  # the last one in the order of use
            while len(self.open) > MOST_PAGES:
                del self.open[next(iter(self.open))]
        with page.lock:
            page.state = state = (page.state or ExplorerState().run()).answer(events)
        return view_of(state) if path == "/events" else {"sheet": sheet(state, tab, solver)}


class Server(ThreadingHTTPServer):
    """Serves the page on a socket that listens already, to whom the guard lets in."""

    def __init__(self, listener: socket.socket, token: str) -> None:
        super().__init__(listener.getsockname(), Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.guard = Guard(token, listener.getsockname()[1])
        self.pages = Pages()
        self._free = BoundedSemaphore(MOST_CONNECTIONS)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a connection in a thread of its own; beyond the limit it is closed at once."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a connection until it is closed."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of connections that break: the link is to stay in view."""


class Handler(BaseHTTPRequestHandler):
    """Answers the requests of one connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or an answer may wait 40 ms for an acknowledgement
    timeout = SECONDS_TO_ASK

    def do_GET(self) -> None:
        """Answer with a file; the link by a cookie, so that no address keeps its token."""
        path, _, query = self.path.partition("?")
        guard = self.server.guard
        words = guard.refusal(self.headers, query)
        if words:
            self._answer(403, f"{words}\n")
        elif guard.is_link(query):
            self._answer(303, "", Location="/", Set_Cookie=guard.cookie)
        elif path in FILES:
            name, kind = FILES[path]
            self._answer(200, Path(__file__).with_name(name).read_text(encoding="utf-8"), kind)
        else:
            self._answer(404, f"The explorer has no page {path}.\n")

    def do_POST(self) -> None:
        """Answer a question of the page, which is an object in JSON, by another one."""
        words = self.server.guard.refusal(self.headers)
        if words:
            self._answer(403, f"{words}\n")
            return
        self.connection.settimeout(SECONDS_TO_WAIT)
        path, length = self.path, self.headers.get("Content-Length", "")
        try:
            if path not in QUESTIONS or not length.isdecimal() or int(length) > MOST_BYTES:
                raise ValueError(f"{path} takes no question of {length or 'unknown'} bytes.")
            question = json.loads(self.rfile.read(int(length)))
            if not isinstance(question, dict):
                raise ValueError("A question is an object in JSON.")
            self._answer(200, json.dumps(self.server.pages.answer(path, question)), JSON)
        except RecursionError:
            self._answer(400, "The question is nested too deeply.\n")
        except ValueError as error:
            self._answer(400, f"{error}\n")

    def _answer(self, status: int, text: str, kind: str = TEXT, **headers: str) -> None:
        body = text.encode()
        self.send_response(status)
        for name, value in {**SAFEGUARDS, **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if status >= 400:  # what was sent along may not have been read
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def version_string(self) -> str:
        """The name of the server, without the versions of what it is built on."""
        return "seraph-cvx"

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing in the terminal: the link is to stay in view."""


def serve(listener: socket.socket, token: str) -> None:
    """Serve the page to whoever has the token, until Ctrl-C; its first scene is solved before."""
    with Server(listener, token) as server:
        server.pages.answer("/events", {"page": "", "events": []})
        server.serve_forever()
