"""Access to the page: only for browsers of this machine that opened the link with the token.

Any site that the user visits can send requests to 127.0.0.1 through their browser; so can every
program of every user of the machine. Hence two questions, asked of each request: does it know the
token, and does it come from the page itself?
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from email.message import Message
from secrets import compare_digest
from urllib.parse import parse_qs

TOKEN = "token"
"""The part of the link's query that holds the token."""

LOCAL_HOST = re.compile(r"(127\.0\.0\.1|localhost)(:[0-9]+)?")

FOREIGN = "The explorer answers only its own page on this machine."
NO_TOKEN = "The explorer needs its token: open the whole link that seraph-cvx explore printed."


@dataclass(frozen=True)
class Guard:
    """Lets in whoever opened the link; the cookie's name has the port: cookies ignore ports."""

    token: str
    port: int

    def refusal(self, headers: Message, query: str = "") -> str:
        """Say why a request is refused; an empty string lets it in."""
        if not _is_from_the_page(headers):
            return FOREIGN
        knows_token = self.is_link(query) or any(map(self._is_token, self._cookies(headers)))
        return "" if knows_token else NO_TOKEN

    def is_link(self, query: str) -> bool:
        """Whether the query of a request holds the token, as that of the link does."""
        return self._is_token(parse_qs(query, encoding="latin-1").get(TOKEN, [""])[0])

    @property
    def cookie(self) -> str:
        """The cookie that holds the token, for the page alone."""
        return f"{self._cookie_name}={self.token}; HttpOnly; SameSite=Lax; Path=/"

    @property
    def _cookie_name(self) -> str:
        return f"seraph_explorer_{self.port}"

    def _is_token(self, given: str) -> bool:
        return compare_digest(given.encode(), self.token.encode())

    def _cookies(self, headers: Message) -> list[str]:
        """The values of our cookie that a browser sent: another program may have set one, too."""
        lines = ";".join(map(str, headers.get_all("Cookie", []))).split(";")
        parts = (cookie.strip().partition("=") for cookie in lines)
        return [value for name, _, value in parts if name == self._cookie_name]


def _is_from_the_page(headers: Message) -> bool:
    """Whether a request names this machine as its host, and no other page as its origin.

    Browsers send the origin with every request that may change something; a foreign name in Host
    is a site whose own name resolves to this machine.
    """
    hosts = headers.get_all("Host", [])
    if len(hosts) != 1 or not LOCAL_HOST.fullmatch(hosts[0]):
        return False
    return all(origin == f"http://{hosts[0]}" for origin in headers.get_all("Origin", []))
