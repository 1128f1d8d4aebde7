"""Evidence: the explorer's command, guard and server answer the page, for who has the token."""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress
from email.message import Message
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest
from command_line import assert_answered_in_words, run

from seraph_cvx.cli import explore as command
from seraph_cvx.explorer import server
from seraph_cvx.explorer.guard import Guard
from seraph_cvx.explorer.state import ExplorerState, read_link
from seraph_cvx.explorer.views import sheet

# The command


@pytest.fixture
def launched(monkeypatch):
    """The tokens that the command serves with, and whom its sockets hear."""
    launches = []
    monkeypatch.setattr(command, "leave", lambda: None)
    monkeypatch.setattr(
        server, "serve", lambda listener, token: launches.append((token, listener.getsockname()))
    )
    return launches


@pytest.fixture
def taken():
    """A port in use."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_command_serves_the_page_to_this_machine_only_with_a_new_token_each_time(launched):
    for _ in range(2):
        done = run("explore --no-browser")
        assert done.exit_code == 0
        token, (host, port) = launched[-1]
        assert f"\nhttp://127.0.0.1:{port}/?token={token}\n" in done.output
        assert (host, 2718 <= port <= 2818, len(token) >= 22) == ("127.0.0.1", True, True)
    assert launched[0][0] != launched[1][0]


def test_command_opens_a_browser_on_a_private_file_that_leads_to_the_link(launched, monkeypatch):
    """Other users of the machine see a browser's command line, and the link holds the token."""
    opened = queue.Queue()

    def look(address):
        path = Path(url2pathname(urlsplit(address).path))
        opened.put((address, path, stat.S_IMODE(path.stat().st_mode), path.read_text()))

    monkeypatch.setattr(command.webbrowser, "open", look)
    monkeypatch.setattr(server, "serve", lambda *_: time.sleep(0.5))
    done = run("explore")
    address, path, mode, text = opened.get(timeout=10)
    link = re.search(r"^http://\S+", done.output, re.M).group()
    assert link.partition("token=")[2] not in address
    assert f"url={link}" in text
    assert os.name == "nt" or mode == 0o600
    assert not path.exists()  # it goes with the explorer
    run("explore --no-browser")
    assert opened.empty()


def test_command_opens_a_scene_that_makes_sense_and_answers_another_in_words(launched):
    scene = "http://127.0.0.1:2718/#data=rings&lambda=0.5"
    done = run("explore --no-browser --scene", scene)
    found = re.search(r"^http://\S+/\?token=\S+#(\S+)$", done.output, re.M).group(1)
    assert read_link(found) == read_link(scene)
    refused = run("explore --scene data=spirals")
    assert_answered_in_words(refused, ["The link's data is 'spirals'"])
    assert len(launched) == 1


def test_command_takes_the_next_port_where_the_first_is_in_use(launched, taken, monkeypatch):
    refused = run(f"explore --port {taken}")
    assert_answered_in_words(refused, [f"Port {taken} cannot be used"])
    monkeypatch.setattr(command, "FIRST_PORT", taken)
    monkeypatch.setattr(command, "LAST_PORT", taken)
    refused = run("explore --no-browser")
    assert_answered_in_words(refused, [f"No port from {taken} to {taken} is free"])
    monkeypatch.setattr(command, "LAST_PORT", taken + 20)
    run("explore --no-browser")
    assert taken < launched[0][1][1] <= taken + 20


@pytest.mark.usefixtures("launched")
def test_command_ends_well_by_ctrl_c(monkeypatch):
    def interrupted(listener, token):
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(server, "serve", interrupted)
    done = run("explore --no-browser")
    assert done.exit_code == 0
    assert "The explorer has stopped." in done.output
    assert signal.getsignal(signal.SIGTERM) is before


def test_the_server_needs_no_other_server_and_starts_light():
    code = "import sys, seraph_cvx.explorer.server; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"marimo", "starlette", "uvicorn", "cvxpy", "sklearn"}


# The guard of the page


def refusal(query="", host="127.0.0.1:5", **headers):
    """Why the guard of a page on port 5, with the token "right", refuses a request; or nothing."""
    message = Message()
    for name, value in (({"Host": host} if host else {}) | headers).items():
        message[name] = value
    return Guard("right", 5).refusal(message, query)


RIGHT = {"cookie": "a=b; seraph_explorer_5=right"}
LET_IN = [
    RIGHT,
    RIGHT | {"origin": "http://127.0.0.1:5"},
    RIGHT | {"host": "localhost:9", "origin": "http://localhost:9"},  # by way of ssh -L 9:...
    {"query": "a=7&token=right"},
    {"cookie": "seraph_explorer_5=wrong; seraph_explorer_5=right"},  # one is another program's
]
REFUSED = [
    {},
    *({"query": query} for query in ("token=wrong", "token=", "token=right%00", "token=%FF")),
    *({"cookie": f"seraph_explorer_{rest}"} for rest in ("5=wrong", "6=right", "5")),
    {"cookie": "\xff=; =; ;"},
    *(
        RIGHT | {"origin": origin}
        for origin in (
            *("http://evil.example", "http://127.0.0.1:6", "https://127.0.0.1:5", "null", ""),
            *("http://127.0.0.1:5.evil.example", "http://localhost:5"),
        )
    ),
    RIGHT | {"host": "evil.example:5", "origin": "http://evil.example:5"},
    RIGHT | {"host": "127.0.0.1.evil.example"},
    RIGHT | {"host": ""},
    {"query": "token=right", "origin": "http://evil.example"},
]


@pytest.mark.parametrize("asked", [*LET_IN, *REFUSED])
def test_guard_lets_in_only_who_knows_the_token_and_comes_from_the_page(asked):
    assert refusal(**asked).startswith("The explorer ") == (asked in REFUSED)
    assert asked in REFUSED or refusal(**asked) == ""


# The server


@pytest.fixture(scope="module")
def port():
    """The port of a real server with the token "right"."""
    with socket.create_server(("127.0.0.1", 0)) as listener, server.Server(listener, "right") as s:
        threading.Thread(target=s.serve_forever, daemon=True).start()
        yield listener.getsockname()[1]
        s.shutdown()


def ask(port, method, path, body=None, **headers):
    """The status, headers and text of an answer; the cookie is right unless another is given."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        headers = {"Cookie": f"seraph_explorer_{port}=right"} | headers
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    finally:
        connection.close()


def test_server_answers_the_link_by_a_cookie_and_leads_on_without_the_token(port):
    status, headers, _ = ask(port, "GET", "//evil.example?token=right", Cookie="")
    assert (status, headers["Location"]) == (303, "/")
    assert headers["Set-Cookie"] == f"seraph_explorer_{port}=right; HttpOnly; SameSite=Lax; Path=/"
    assert headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("file", server.FILES)
def test_server_has_the_files_of_the_page_and_lets_them_ask_nobody_else(port, file):
    status, headers, text = ask(port, "GET", file)
    name, kind = server.FILES[file]
    assert (status, headers["Content-Type"]) == (200, kind)
    assert text == Path(server.__file__).with_name(name).read_text(encoding="utf-8")
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["Server"] == "seraph-cvx"


@pytest.mark.parametrize("path", ["/server.py", "/../server.py", "/page.js/", "/favicon.ico"])
def test_server_has_no_other_file(port, path):
    assert ask(port, "GET", path)[0] == 404


def test_each_page_has_a_state_of_its_own(port):
    def told(path, page, **question):
        status, _, text = ask(port, "POST", path, json.dumps({"page": page, **question}))
        assert status == 200
        return json.loads(text)

    first, opened = told("/events", "a"), ExplorerState().run()
    events = [{"count": 1, "set": "source", "value": "rings"}, {"count": 2, "move": "run"}]
    moved = told("/events", "a", events=events)
    assert moved["heard"] == 2
    assert "rings" in moved["link"]
    assert told("/events", "a") == moved
    assert told("/events", "b") == first
    for name, state in (("a", opened.adjusted(source="rings").run()), ("b", opened)):
        assert told("/sheet", name, tab="Python") == {"sheet": sheet(state, "Python")}


def test_pages_of_long_ago_are_forgotten(monkeypatch):
    monkeypatch.setattr(server, "MOST_PAGES", 2)
    open_pages = server.Pages()
    for name in ("a", "b", "a", "c"):
        open_pages.answer("/events", {"page": name})
    assert list(open_pages.open) == ["a", "c"]


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/events", "{", "Expecting property name"),
        ("/events", "[]", "A question is an object"),
        ("/events", '{"events": 3}', "Events are a list"),
        ("/events", '{"events": [{"move": "run"}]}', "Events are a list"),
        ("/sheet", '{"tab": "Secrets"}', "There is no tab 'Secrets'"),
        ("/sheet", '{"tab": "Solvers", "solver": "rm"}', "with the solver 'rm'"),
        ("/elsewhere", "{}", "/elsewhere takes no question"),
    ],
)
def test_server_answers_questions_that_make_no_sense_in_words(port, path, body, words):
    status, headers, text = ask(port, "POST", path, body)
    assert (status, headers["Connection"]) == (400, "close")
    assert words in text


@pytest.mark.parametrize("length", [str(server.MOST_BYTES + 1), "-1", "many", ""])
def test_server_does_not_wait_for_a_question_that_is_too_long_or_of_no_length(port, length):
    headers = {"Content-Length": length}  # and nothing is sent
    status, _, text = ask(port, "POST", "/events", **headers)
    assert (status, f"takes no question of {length or 'unknown'} bytes" in text) == (400, True)


DEEP = '{"events": ' + "[" * 100_000 + "]" * 100_000 + "}"
MANY = json.dumps({"events": [{"count": k, "move": "run"} for k in range(1, 1_002)]})
LONG = json.dumps({"page": "l", "events": [{"count": 1, "link": "added=" + "1,1;" * 9_000}]})


def event(**said):
    return json.dumps({"page": repr(said), "events": [{"count": 1, **said}]})


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (DEEP, 400, "nested too deeply"),
        (MANY, 400, "1001 events, more than 1000"),
        (LONG, 200, "36006 characters, more than 20000"),
        (event(move=[]), 200, '"heard"'),
        (event(set={}), 200, '"heard"'),
        (event(set="seed", value=[{}]), 200, '"heard"'),
        (event(x=10**20, y=1), 200, '"heard"'),
        (event(x=10**400, y=float("nan")), 200, '"heard"'),
        (event(key={"a": []}), 200, '"heard"'),
        (event(show=-1), 200, '"heard"'),
        (event(link=[1]), 200, "The link has the parts"),
        ('{"page": {"a": 1}, "events": []}', 200, '"heard"'),
        ('{"events": "' + "x" * 5_000 + '"}', 400, "Events are a list"),
    ],
)
def test_server_answers_odd_questions(port, body, status, words):
    found, _, text = ask(port, "POST", "/events", body)
    assert (found, words in text) == (status, True), text[:300]
    assert status == 200 or len(text) < 300


def test_a_page_does_not_wait_for_another_one(port, monkeypatch):
    """While one page's run is under way, the others are answered."""
    goes_on, started = threading.Event(), threading.Event()
    run_of = ExplorerState.run

    def slow(state):
        if state.settings.source == "rings":
            started.set()
            assert goes_on.wait(30)
        return run_of(state)

    assert ask(port, "POST", "/events", '{"page": "quick"}')[0] == 200
    monkeypatch.setattr(ExplorerState, "run", slow)
    events = [{"count": 1, "set": "source", "value": "rings"}, {"count": 2, "move": "run"}]
    body = json.dumps({"page": "slow", "events": events})
    worker = threading.Thread(target=ask, args=(port, "POST", "/events", body))
    worker.start()
    assert started.wait(30)
    assert ask(port, "POST", "/events", '{"page": "quick"}')[0] == 200
    goes_on.set()
    worker.join()


def test_a_connection_that_closes_early_is_not_mentioned(port, capfd):
    body = b'{"page": "gone"}'
    request = (
        f"POST /events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: seraph_explorer_{port}=right"
        f"\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()
    reset = struct.pack("ii", 1, 0)  # close at once, without a farewell
    for sent in (request + body, request, b"GET / HT"):
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
            connection.sendall(sent)
    assert ask(port, "POST", "/events", '{"page": "here"}')[0] == 200
    time.sleep(0.2)
    assert capfd.readouterr() == ("", "")


def test_idle_connections_are_limited_and_do_not_stay(monkeypatch):
    monkeypatch.setattr(server.Handler, "timeout", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as listener, server.Server(listener, "right") as s:
        threading.Thread(target=s.serve_forever, daemon=True).start()
        port = listener.getsockname()[1]
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(150)]
        try:
            most = server.MOST_CONNECTIONS
            assert threading.active_count() <= most + 20
            clock = time.monotonic()
            while True:  # until those that never asked are closed
                with suppress(OSError, HTTPException):
                    if ask(port, "GET", "/")[0] == 200:
                        break
                assert time.monotonic() - clock < 20
        finally:
            for connection in idle:
                connection.close()
        s.shutdown()


def test_server_refuses_questions_of_whoever_lacks_the_token_or_comes_from_elsewhere(port):
    own = {"Origin": f"http://127.0.0.1:{port}"}
    assert ask(port, "POST", "/events", "{}", **own)[0] == 200
    link = "/events?token=right"  # a question needs the cookie
    for headers in ({"Origin": "http://evil.example"}, {"Host": "evil.example"}, {"Cookie": ""}):
        assert ask(port, "POST", link, "{}", **headers)[0] == 403
    assert ask(port, "GET", "/?token=right", Origin="null")[0] == 403
    for path in (*server.FILES, "/favicon.ico", "/events", "/?token=wrong"):
        status, _, text = ask(port, "GET", path, Cookie="")
        assert (status, text.partition(":")[0]) == (403, "The explorer needs its token")
