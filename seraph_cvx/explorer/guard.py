"""Who may use the page: a browser of this machine that came by the link with the token.

Any site that the user visits can send requests to 127.0.0.1, and open a WebSocket to it, through
his own browser; so can every program of every user of the machine. Hence two questions, asked of
each request and each WebSocket: does it know the token, and does it come from the page itself?
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from secrets import compare_digest
from typing import Any, TypeAlias
from urllib.parse import parse_qs

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]
"""An ASGI application."""

TOKEN = "token"
"""The part of the link's query that holds the token."""

LOCAL_HOST = re.compile(rb"(127\.0\.0\.1|localhost)(:[0-9]+)?")

WITHOUT_TOKEN = "/manifest.json"
"""What browsers fetch without cookies; it says nothing but that marimo serves here."""

FOREIGN = "The explorer answers only its own page on this machine."
NO_TOKEN = "The explorer needs its token: open the whole link that seraph-cvx explore printed."


@dataclass(frozen=True)
class Guard:
    """An ASGI application that lets through to `app` only what may use it.

    The link with the token is answered by a cookie that holds it, and leads on to the page, so that
    the token stays neither in the address bar nor in the history.

    Parameters
    ----------
    app : ASGI application
    token : str
        What a request must know.
    port : int
        Where the page is served; cookies know no ports, so the name of this one does.
    """

    app: App
    token: str
    port: int

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve a request or a WebSocket, or refuse it."""
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if not _is_from_the_page(scope):
            return await _refuse(scope, receive, send, FOREIGN)
        by_link = self._is_token(_query_token(scope))
        if by_link and scope["type"] == "http" and scope["method"] == "GET":
            cookie = f"{self.cookie_name}={self.token}; HttpOnly; SameSite=Lax; Path=/"
            headers = [(b"location", b"/"), (b"set-cookie", cookie.encode())]
            return await _answer(send, 303, headers)
        if by_link or self._is_token(self._cookie(scope)) or scope["path"] == WITHOUT_TOKEN:
            return await self.app(scope, receive, send)
        return await _refuse(scope, receive, send, NO_TOKEN)

    @property
    def cookie_name(self) -> str:
        """Of the cookie that holds the token."""
        return f"seraph_explorer_{self.port}"

    def _is_token(self, given: str) -> bool:
        return compare_digest(given.encode(), self.token.encode())

    def _cookie(self, scope: Message) -> str:
        """The token in the cookies that a browser sent, or nothing."""
        for line in _header(scope, b"cookie"):
            for cookie in line.decode("latin-1").split(";"):
                name, _, value = cookie.strip().partition("=")
                if name == self.cookie_name:
                    return value
        return ""


def _is_from_the_page(scope: Message) -> bool:
    """Whether it asks for this machine by name, and a browser does not say that another page asks.

    A browser tells the origin with every WebSocket and with every request that may change
    something; a foreign name in Host is a site that has its own name lead here.
    """
    hosts = _header(scope, b"host")
    if len(hosts) != 1 or not LOCAL_HOST.fullmatch(hosts[0]):
        return False
    return all(origin == b"http://" + hosts[0] for origin in _header(scope, b"origin"))


def _header(scope: Message, name: bytes) -> list[bytes]:
    return [value for key, value in scope["headers"] if key.lower() == name]


def _query_token(scope: Message) -> str:
    query = str(scope["query_string"], "latin-1")
    return parse_qs(query).get(TOKEN, [""])[0]


async def _refuse(scope: Message, receive: Receive, send: Send, words: str) -> None:
    """Answer 403 in words; a WebSocket is closed before it is open, which is a 403 too."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008, "reason": words})
    else:
        headers = [(b"content-type", b"text/plain; charset=utf-8")]
        await _answer(send, 403, headers, f"{words}\n".encode())


async def _answer(
    send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes = b""
) -> None:
    headers = [
        *headers,
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        (b"referrer-policy", b"no-referrer"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
