"""Evidence: the explorer's command and guard let in who has the token and comes from the page."""

from __future__ import annotations

import asyncio
import queue
import re
import signal
import socket
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from seraph_cvx.cli import app
from seraph_cvx.cli import explore as command
from seraph_cvx.explorer.link import read_link
from seraph_cvx.explorer.web import server
from seraph_cvx.explorer.web.assets import Assets
from seraph_cvx.explorer.web.guard import Guard

# The command


def test_command_needs_the_extra_and_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "marimo", None)
    done = CliRunner().invoke(app, ["explore"])
    assert done.exit_code == 2
    assert (
        'needs marimo, which is not installed: run pip install "seraph-cvx[explore]"'
        in " ".join(done.output.split())
    )


def test_command_refuses_a_port_in_use():
    pytest.importorskip("marimo")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = CliRunner().invoke(app, ["explore", "--port", str(port)])
    assert done.exit_code == 2
    assert f"Port {port} cannot be used" in " ".join(done.output.split())


@pytest.fixture
def launched(monkeypatch):
    """The tokens that the command serves with, and whom its sockets hear."""
    pytest.importorskip("marimo")
    launches = []
    monkeypatch.setattr(server, "leave", lambda: None)
    monkeypatch.setattr(
        server, "serve", lambda listener, token: launches.append((token, listener.getsockname()))
    )
    return launches


def test_command_serves_the_page_to_this_machine_only(launched):
    done = CliRunner().invoke(app, ["explore", "--no-browser"])
    assert done.exit_code == 0
    ((token, (host, port)),) = launched
    assert host == "127.0.0.1"
    assert 2718 <= port <= 2818
    assert f"\nhttp://127.0.0.1:{port}/?token={token}\n" in done.output


def test_command_makes_a_new_token_at_each_start(launched):
    for _ in range(2):
        CliRunner().invoke(app, ["explore", "--no-browser"])
    (first, _), (second, _) = launched
    assert first != second
    assert len(first) >= 22


def test_command_opens_the_link_in_a_browser_unless_told_not_to(launched, monkeypatch):
    opened = queue.Queue()
    monkeypatch.setattr(command.webbrowser, "open", opened.put)
    done = CliRunner().invoke(app, ["explore"])
    assert opened.get(timeout=10) in done.output.split()
    CliRunner().invoke(app, ["explore", "--no-browser"])
    assert opened.empty()


def test_command_opens_a_scene_that_makes_sense_and_answers_another_in_words(launched):
    scene = "http://127.0.0.1:2718/#data=rings&lambda=0.5"
    done = CliRunner().invoke(app, ["explore", "--no-browser", "--scene", scene])
    found = re.search(r"^http://\S+/\?token=\S+#(\S+)$", done.output, re.M).group(1)
    assert read_link(found) == read_link(scene)
    done = CliRunner().invoke(app, ["explore", "--scene", "data=spirals"])
    assert done.exit_code == 2
    assert "The link's data is 'spirals'" in " ".join(done.output.split())
    assert len(launched) == 1


def test_command_takes_the_next_port_where_the_first_is_in_use(launched, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setattr(command, "FIRST_PORT", port)
        monkeypatch.setattr(command, "LAST_PORT", port)
        done = CliRunner().invoke(app, ["explore", "--no-browser"])
        assert done.exit_code == 2
        assert f"No port from {port} to {port} is free" in " ".join(done.output.split())
        monkeypatch.setattr(command, "LAST_PORT", port + 20)
        CliRunner().invoke(app, ["explore", "--no-browser"])
    assert port < launched[0][1][1] <= port + 20


def test_command_ends_well_by_ctrl_c(monkeypatch):
    pytest.importorskip("marimo")

    def interrupted(listener, token):
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(server, "serve", interrupted)
    monkeypatch.setattr(server, "leave", lambda: None)
    done = CliRunner().invoke(app, ["explore", "--no-browser"])
    assert done.exit_code == 0
    assert "The explorer has stopped." in done.output
    assert signal.getsignal(signal.SIGTERM) is before


def test_the_logic_needs_no_marimo():
    names = "seraph_cvx.explorer.views.whole_page, seraph_cvx.explorer.web.server"
    code = f"import sys, {names}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"marimo", "anywidget", "cvxpy"}


def test_the_widget_names_no_address():
    widget = pytest.importorskip("seraph_cvx.explorer.web.widget")
    sources = widget.SCRIPT + widget.STYLE + widget.CODE_SCRIPT + widget.CODE_STYLE
    assert not re.search(r"https?:|//[a-z]|url\(|@import|import\(", sources)


# The guard of the page


def guarded(kind="http", query="", path="/", method="GET", host="127.0.0.1:5", **more):
    """What the guard of a page on port 5, with the token "right", sends; or what `app` would."""
    sent = []

    async def receive():
        return {"type": f"{kind}.connect"}

    async def send(message):
        sent.append(message)

    async def page(scope, receive, send):
        sent.append({"type": "served"})

    headers = [(b"host", host.encode())] if host else []
    headers += [(name.encode(), value.encode()) for name, value in more.items()]
    scope = {"type": kind, "path": path, "method": method, "headers": headers}
    scope["query_string"] = query.encode()
    asyncio.run(Guard(page, "right", 5)(scope, receive, send))
    return sent


RIGHT = {"cookie": "a=b; seraph_explorer_5=right"}


@pytest.mark.parametrize(
    "asked",
    [
        RIGHT,
        RIGHT | {"kind": "websocket", "origin": "http://127.0.0.1:5"},
        RIGHT | {"method": "POST", "origin": "http://127.0.0.1:5"},
        RIGHT | {"host": "localhost:9", "origin": "http://localhost:9"},  # by way of ssh -L 9:...
        {"kind": "websocket", "query": "session_id=7&token=right"},
        {"path": "/manifest.json"},
        {"kind": "lifespan"},
    ],
)
def test_guard_lets_through_what_knows_the_token_and_comes_from_the_page(asked):
    assert guarded(**asked) == [{"type": "served"}]


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"query": "token=wrong"},
        {"query": "token="},
        {"query": "token=right%00"},
        {"query": "token=%FF"},
        {"cookie": "seraph_explorer_5=wrong"},
        {"cookie": "seraph_explorer_6=right"},
        {"cookie": "seraph_explorer_5"},
        {"cookie": "\xff=; =; ;"},
        RIGHT | {"origin": "http://evil.example"},
        RIGHT | {"origin": "http://127.0.0.1:6"},
        RIGHT | {"origin": "https://127.0.0.1:5"},
        RIGHT | {"origin": "http://127.0.0.1:5.evil.example"},
        RIGHT | {"origin": "http://localhost:5"},
        RIGHT | {"origin": "null"},
        RIGHT | {"origin": ""},
        RIGHT | {"host": "evil.example:5", "origin": "http://evil.example:5"},
        RIGHT | {"host": "127.0.0.1.evil.example"},
        RIGHT | {"host": ""},
        {"query": "token=right", "origin": "http://evil.example"},
        {"path": "/manifest.json", "origin": "http://evil.example"},
    ],
)
def test_guard_refuses_whoever_lacks_the_token_or_comes_from_elsewhere(kind, asked):
    sent = guarded(kind, **asked)
    assert sent[0].get("status", sent[0].get("code")) in (403, 1008)
    assert b"explorer" in sent[-1].get("body", b"explorer")
    assert {"type": "served"} not in sent


def test_guard_answers_the_link_by_a_cookie_and_leads_on_without_the_token():
    start, _ = guarded(query="token=right", path="//evil.example")
    headers = dict(start["headers"])
    assert (start["status"], headers[b"location"]) == (303, b"/")
    assert headers[b"set-cookie"] == b"seraph_explorer_5=right; HttpOnly; SameSite=Lax; Path=/"
    assert headers[b"cache-control"] == b"no-store"


# The files of the front end


def test_assets_are_those_of_the_folder_and_all_else_is_passed_on(tmp_path):
    folder = tmp_path / "assets"
    folder.mkdir()
    (folder / "a.js").write_text("1", encoding="utf-8")
    (tmp_path / "secret.js").write_text("2", encoding="utf-8")

    def asked(path, method="GET", kind="http", folder=folder):
        sent = []

        async def note(*message):
            sent.append(message[0])

        scope = {"type": kind, "path": path, "method": method}
        asyncio.run(Assets(note, folder)(scope, None, note))
        return sent

    start, body = asked("/assets/a.js")
    assert body["body"] == b"1"
    assert dict(start["headers"])[b"content-type"] in (
        b"text/javascript",
        b"application/javascript",
    )
    for path in ("/assets/b.js", "/assets/../secret.js", "/assets/", "/a.js", "/"):
        assert asked(path) == [{"type": "http", "path": path, "method": "GET"}]
    assert asked("/assets/a.js", "POST")[0]["method"] == "POST"
    assert asked("/assets/a.js", kind="websocket")[0]["type"] == "websocket"
    assert asked("/assets/a.js", folder=tmp_path / "none")[0]["type"] == "http"
