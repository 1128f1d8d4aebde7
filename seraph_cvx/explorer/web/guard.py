"""Access to the page: only for browsers of this machine that opened the link with the token.

Any site that the user visits can send requests to 127.0.0.1, and open a WebSocket to it, through
their browser; so can every program of every user of the machine. Hence two questions, asked of
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
"""What browsers fetch without cookies; it reveals only that this is a marimo server."""

FOREIGN = "The explorer answers only its own page on this machine."
NO_TOKEN = "The explorer needs its token: open the whole link that seraph-cvx explore printed."


@dataclass(frozen=True)
class Guard:
    """An ASGI application that passes on to `app` only authorised requests.

    The link with the token sets a cookie that holds it and redirects to the page, so that the token
    stays neither in the address bar nor in the history.

    Parameters
    ----------
    app : ASGI application
    token : str
        What a request must carry.
    port : int
        Where the page is served; it is part of the cookie's name, since cookies ignore ports.
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
        """The name of the cookie that holds the token."""
        return f"seraph_explorer_{self.port}"

    def _is_token(self, given: str) -> bool:
        return compare_digest(given.encode(), self.token.encode())

    def _cookie(self, scope: Message) -> str:
        """The token in the cookies that a browser sent, or an empty string."""
        for line in _header(scope, b"cookie"):
            for cookie in line.decode("latin-1").split(";"):
                name, _, value = cookie.strip().partition("=")
                if name == self.cookie_name:
                    return value
        return ""


def _is_from_the_page(scope: Message) -> bool:
    """Whether a request names this machine as its host, and no other page as its origin.

    Browsers send the origin with every WebSocket and with every request that may change something;
    a foreign name in Host is a site whose own name resolves to this machine.
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
