"""Evidence: strange tables, hostile names, closed pipes and Ctrl-C are answered in words."""

from __future__ import annotations

import fcntl
import importlib
import itertools
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
import tracemalloc
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from command_line import assert_answered_in_words, run, words

from seraph_cvx import SERAPH, PairSet
from seraph_cvx.cli import learn, tables
from seraph_cvx.cli.report import say
from seraph_cvx.datasets import load
from seraph_cvx.display.notebook import Tone, card, facts, grid
from seraph_cvx.display.result_table import ResultTable
from seraph_cvx.race.race_table import Race
from seraph_cvx.theory import report as claims

HEADER = "length,width,species"
ROWS = ["1.0,10,a", "1.2,30,a", "3.0,12,b", "3.1,28,b", "1.1,20,", "2.9,22,"]
TABLE = "\n".join([HEADER, *ROWS]) + "\n"
ESCAPES = "\x1b[2Jred\x1b]0;owned\x07\u202e"
SCRIPT = "<script>alert(1)<\\script><img src=x onerror=alert(1)>"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


@pytest.fixture
def table(folder):
    path = folder / "small.csv"
    path.write_text(TABLE)
    return path


# Tables as spreadsheets of the world write them give the same metric

SAME_TABLE = {
    "UTF-16": TABLE.encode("utf-16"),
    "UTF-16, the other order": b"\xfe\xff" + TABLE.encode("utf-16-be"),
    "UTF-32": TABLE.encode("utf-32"),
    "UTF-16 with tabs, as Unicode text": TABLE.replace(",", "\t").encode("utf-16"),
    "carriage returns": TABLE.replace("\n", "\r").encode(),
    "a line sep=;": ("sep=;\n" + TABLE.replace(",", ";")).encode(),
    "blanks and blank lines": ("\n \n" + TABLE.replace(",", " , ") + "\n  \n").encode(),
    "quotes": TABLE.replace("1.0,10,a", '"1.0", "10","a"').encode(),
    "no last line end": TABLE.rstrip("\n").encode(),
}


@pytest.mark.parametrize("case", SAME_TABLE)
def test_a_table_written_otherwise_gives_the_same_metric(table, case):
    other = table.with_name("other.csv")
    other.write_bytes(SAME_TABLE[case])
    plain = tables.read_table(table, "species")
    strange = tables.read_table(other, "species")
    np.testing.assert_array_equal(strange.X, plain.X)
    np.testing.assert_array_equal(strange.y, plain.y)
    assert strange.feature_names == plain.feature_names
    assert run("fit", other, "--label", "species").exit_code == 0


def test_a_quoted_class_name_may_hold_a_line_end_and_is_one_row(folder):
    (folder / "q.csv").write_text('x,"the\nkind"\n1,"a\nb"\n2,c\n3,"d""e"\n')
    table = tables.read_table(folder / "q.csv", "the\nkind")
    assert table.class_names == ("a\nb", "c", 'd"e')
    (folder / "q.csv").write_text('x,"the\nkind"\n1,"a\nb"\nzwei,"c\nd"\n')
    with pytest.raises(tables.TableError, match=r"Row 3 of .*, column 'x': 'zwei'"):
        tables.read_table(folder / "q.csv", "the\nkind")


@pytest.mark.slow
def test_the_table_may_come_through_a_pipe(folder):
    command = [sys.executable, "-m", "seraph_cvx", "fit", "/dev/stdin", "--label", "species"]
    done = subprocess.run(
        [*command, "--out", "m.csv"], input=TABLE, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert (folder / "m.csv").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_a_pipe_that_does_not_end_is_refused(folder, monkeypatch):
    monkeypatch.setattr(tables, "LARGEST_PIPE", 1000)
    os.mkfifo(folder / "endless.csv")
    writer = subprocess.Popen(["sh", "-c", "yes 1,a > endless.csv"], cwd=folder)
    try:
        with pytest.raises(tables.TableError, match="save the table to a file first"):
            tables.read_table(folder / "endless.csv", "species")
    finally:
        writer.kill()
        writer.wait()


def test_a_formula_in_a_cell_is_text(folder):
    (folder / "f.csv").write_text(TABLE.replace(",a", ",=cmd|' /C calc'!A0").replace("width", "=1"))
    table = tables.read_table(folder / "f.csv", "species")
    assert table.class_names == ("=cmd|' /C calc'!A0", "b")
    assert table.feature_names == ("length", "=1")


# Tables that cannot be read

BAD_TABLES = {
    "binary": (bytes(range(256)), ["bad.csv is not a text file", "CSV UTF-8"]),
    "archive": (b"PK\x03\x04\x14\x00\x00\x00", ["bad.csv is not a text file"]),
    "UTF-16 without a mark": (TABLE.encode("utf-16-le"), ["bad.csv is not a text file"]),
    "UTF-16 cut off": (TABLE.encode("utf-16")[:-1], ["not utf-16", "CSV UTF-8"]),
    "only a mark": (b"\xef\xbb\xbf", ["bad.csv is empty"]),
    "quote not closed": (TABLE.replace("1.2", '"1.2'), ["Row 3", "double quote"]),
    "quote not doubled": (TABLE.replace(",a\n1.2", ',"a"b"\n1.2'), ["Row 2", "double quote"]),
    "quote closed by a later row": (
        TABLE.replace(",a\n1.2", ',"a\n1.2').replace("12,b", '12,"b"'),
        ["Row 2", "double quote"],
    ),
    "quote in the header not closed": (TABLE.replace("width", '"width'), ["Row 1", "double quote"]),
    "a short first row": ("x,species\n1,2,a\n3,4,b\n", ["Row 2", "3 cells", "2 columns"]),
    "short rows after blank ones": (
        TABLE.replace("1.0", "\n \n1.0").replace("3.1,28,b", "3.1,28"),
        ["Row 7", "2 cells", "3 columns"],
    ),
    "surplus after blank ones": ("\n\n" + TABLE.replace("10,a", "10,a,a"), ["Row 4", "4 cells"]),
    "only separators": (TABLE + ",,\n", ["Row 8", "'length'", "the cell is empty"]),
    "only a hint at the separator": ("sep=;\n", ["bad.csv is empty"]),
    "endless cell": (TABLE.replace("1.2", "1" * 140_000), ["Row 3", "field limit"]),
    "long cell": (TABLE.replace("1.2", "1" * 400), ["Row 3", "'length'", "111...'"]),
    "underscore": (TABLE.replace("1.2", "1_2"), ["Row 3", "'1_2'", "with a point"]),
    "thousands": (TABLE.replace("30", '"3,000"'), ["Row 3", "'3,000'", "thousands"]),
    "decimal commas between commas": (TABLE.replace("1.2", "1,2"), ["Row 3", "4 cells", "point"]),
    "NaN": (TABLE.replace("1.2", "NaN"), ["Row 3", "'NaN'", "remove the row"]),
    "minus infinity": (TABLE.replace("1.2", "-inf"), ["Row 3", "'-inf'", "remove the row"]),
    "too large": (TABLE.replace("1.2", "1e200"), ["'length'", "too large to be squared"]),
    "largest": (TABLE.replace("1.2", "1e308").replace("3.0", "-1e308"), ["'length'", "too large"]),
    "all the same": ("x,species\n1,a\n1,b\n1,a\n", ["the same", "nothing to learn"]),
    "bars": (TABLE.replace(",", "|"), ["no column 'species'", "commas, semicolons and tabs"]),
    "other letters": (TABLE.replace("species", "Species"), ["Did you mean 'Species'?"]),
    "misspelt": (TABLE.replace("species", "specie"), ["Did you mean 'specie'?"]),
    "many columns": (
        ",".join(f"c{k}" for k in range(500)) + "\n" + ",".join("1" * 500) + "\n",
        ["'c0', 'c1'", "and 488 more", "--label"],
    ),
    "two label columns": ("x,species,species\n1,a,b\n", ["2 columns named 'species'"]),
    "JSON": ('{"x": 1}', ["no column 'species'"]),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_a_bad_table_is_answered_in_words_and_nothing_is_written(folder, case):
    content, culprits = BAD_TABLES[case]
    (folder / "bad.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    result = run("fit", "bad.csv", "--label", "species")
    assert_answered_in_words(result, culprits)
    assert len(result.stderr) < 600
    assert [path.name for path in folder.iterdir()] == ["bad.csv"]


def test_numbers_whose_squares_overflow_are_refused_without_standardizing_too(folder):
    (folder / "bad.csv").write_text(TABLE.replace("1.2", "1e100"))
    result = run("fit", "bad.csv", "--label", "species", "--no-standardize")
    assert_answered_in_words(result, ["'length'", "too large"])


def test_without_pandas_a_table_names_the_extra_that_brings_it(table, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    for command in ("fit",):
        result = run(command, table, "--label", "species")
        assert_answered_in_words(result, ["pandas", 'pip install "seraph-cvx[cli]"'])


def test_a_folder_is_no_table_with_and_without_a_name_for_the_output(folder):
    for arguments in (["."], [".", "--out", "m.csv"], [folder]):
        result = run("fit", *arguments, "--label", "species")
        assert_answered_in_words(result, ["Is a directory", "name of a file"])


def test_a_file_that_may_not_be_read_is_named(table, monkeypatch):
    def forbidden(path, *_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", forbidden)
    result = run("fit", table, "--label", "species")
    assert_answered_in_words(result, ["Permission denied", "small.csv", "change its permissions"])


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder nobody can write to")
@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "small.csv", "--label", "species", "--out", "/proc/m.csv"],
        ["fit", "small.csv", "--label", "species", "--picture", "/proc/m.png"],
        ["demo", "--out", "/proc/m.png"],
        ["verify", "iris", "--html", "/proc/m.html"],
        ["export", "wine-n40-standard-hyper-w1-s0", "--cbf", "/proc/m.cbf"],
    ],
)
def test_what_cannot_be_written_is_refused_before_the_work(table, arguments):
    result = run(*arguments)
    assert_answered_in_words(result, ["Nothing can be written to the folder /proc"])
    assert result.stdout == ""


def test_a_pipe_is_no_place_for_a_metric(table):
    os.mkfifo(table.with_name("pipe.csv"))
    result = run("fit", table, "--label", "species", "--out", "pipe.csv")
    assert_answered_in_words(result, ["pipe.csv is a device or a pipe"])


def test_a_link_stays_a_link_and_its_file_gets_the_metric(table):
    (table.parent / "metrics").mkdir()
    link = table.with_name("m.csv")
    link.symlink_to(table.parent / "metrics" / "metric.csv")
    assert run("fit", table, "--label", "species", "--out", link).exit_code == 0
    assert link.is_symlink()
    assert (table.parent / "metrics" / "metric.csv").read_text().startswith("length,width")


BAD_COMMANDS = {
    "verify, no such set": (["verify", "nosuch"], ["'nosuch'", "iris"]),
    "verify, no label": (["verify", "small.csv"], ["--label"]),
    "verify, a bad table": (["verify", "small.csv", "--label", "kind"], ["no column 'kind'"]),
    "explain": (["explain", "--data", "nosuch"], ["'nosuch'", "iris"]),
    "export": (["export", "nosuch", "--cbf", "x.cbf"], ["'nosuch'", "wine-n40"]),
    "compare, solver": (["compare", "--solvers", "FOO", "--out", "r"], ["'FOO'", "fista"]),
    "compare, onto a file": (["compare", "--out", "small.csv"], ["small.csv", "another name"]),
    "explore": (["explore", "--port", 0], ["--port"]),
    "check-exercise": (["check-exercise", 4, "none.py"], ["none.py"]),
    "no such command": (["learn"], ["learn"]),
    "reproduce": (["reproduce", "table2"], ["No such command", "reproduce"]),
    "bench": (["bench", "defaults"], ["No such command", "bench"]),
}


@pytest.mark.parametrize("case", BAD_COMMANDS)
def test_every_command_answers_what_it_cannot_serve(table, case):
    arguments, culprits = BAD_COMMANDS[case]
    assert_answered_in_words(run(*arguments), culprits)


# Large tables: read as a stream, refused or announced before the work


def write_long_table(path, n_rows):
    with path.open("w") as file:
        file.write("x,y,z,species\n")
        for k in range(n_rows):
            file.write(f"{k},{k % 7}.25,{k % 11}.5,{'ab'[k % 2] if k < 40 else ''}\n")


def test_reading_takes_the_memory_of_the_numbers_alone(folder):
    write_long_table(folder / "long.csv", 10_000)
    importlib.import_module("pandas")
    tracemalloc.start()
    try:
        table = tables.read_table(folder / "long.csv", "species")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert table.X.shape == (10_000, 3)
    assert table.X[-1, 0] == 9_999.0
    assert peak < 4 * 8 * 4 * 10_000 + 2**20  # as strings they would take 3.7 MB


@pytest.mark.slow
def test_a_million_rows_are_read_and_announced_within_three_gigabytes(folder):
    """The fit itself would take weeks: it is told so, and Ctrl-C ends it."""
    write_long_table(folder / "long.csv", 1_000_000)
    limit = "import resource as r; r.setrlimit(r.RLIMIT_AS, (6 << 30, 6 << 30)); "
    code = limit + "from seraph_cvx.__main__ import main; main()"
    command = [sys.executable, "-c", code, "fit", "long.csv", "--label", "species"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        try:
            said = b"".join(process.stderr.readline() for _ in range(2)).decode()
            time.sleep(4.0)
            status = Path(f"/proc/{process.pid}/status").read_text()
            process.send_signal(signal.SIGINT)
            code = process.wait(60)
        finally:
            process.kill()
    assert re.search(r"1000000 points with 3 features take about \d+ (days|hours)", said)
    assert code == 130
    assert int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) < 3 * 2**20


def test_long_work_is_announced_before_it_begins(table, monkeypatch):
    monkeypatch.setattr(learn, "LONG", 0.0)
    result = run("fit", table, "--label", "species")
    assert result.exit_code == 0
    assert re.search(r"6 points with 2 features take about \d+ minutes", words(result.stderr))
    assert result.output.index("take about") < result.output.index("EM:")
    again = run("fit", table, "--label", "species", "--unlabeled-weight", 0, "--force")
    assert "take about" in again.stderr
    assert "random sample" not in again.stderr


def test_the_expected_time_grows_with_the_pairs(monkeypatch):
    """By a clock that counts how often it is read: one sweep is as long as another."""
    ticks = itertools.count()
    clock = SimpleNamespace(perf_counter=lambda: float(next(ticks)))
    monkeypatch.setattr(learn, "time", clock)
    X = np.random.default_rng(0).normal(size=(20_000, 3))
    y = np.where(np.arange(20_000) < 4, np.arange(20_000) % 2, -1)
    pairs = [PairSet.from_labels(X[:n], y[:n]) for n in (2_000, 20_000)]
    few, many = (learn.expected_seconds(p) for p in pairs)
    assert few == learn.SWEEPS * (1.0 + (2_000 / learn.SAMPLE) ** 2)
    assert many == learn.SWEEPS * (1.0 + (20_000 / learn.SAMPLE) ** 2)


def test_more_labels_than_pairs_fit_into_memory_are_refused(table, monkeypatch):
    monkeypatch.setattr(tables, "free_bytes", lambda: 500)
    for command in ("fit", "verify"):
        result = run(command, table, "--label", "species")
        assert_answered_in_words(result, ["4 labels make 6 labeled pairs", "label cells empty"])


def test_a_table_larger_than_memory_is_refused_before_it_is_read(table, monkeypatch):
    monkeypatch.setattr(tables, "free_bytes", lambda: 100)
    result = run("fit", table, "--label", "species")
    assert_answered_in_words(result, ["The table", "memory", "random sample of its rows"])


# Errors in words, tracebacks for those who ask


@pytest.mark.parametrize("arguments", [["--debug", "fit"], ["fit", "--debug"]])
def test_debug_lets_the_error_through_before_and_after_the_command(table, arguments):
    result = run(*arguments, table, "--label", "kind")
    assert isinstance(result.exception, tables.TableError)
    assert_answered_in_words(run("fit", table, "--label", "kind"), ["no column"])


@pytest.mark.parametrize(
    "command", ["demo", "fit", "apply", "verify", "explain", "explore", "check-exercise"]
)
def test_every_command_of_this_folder_offers_debug(command):
    assert "--debug" in run(command, "--help").output


@pytest.mark.parametrize(
    "command", [["compare", "--out", "small.csv"], ["export", "nosuch", "--cbf", "x.cbf"]]
)
def test_debug_before_the_command_serves_the_others(table, command):
    assert isinstance(run("--debug", *command).exception, ValueError | OSError)
    assert run(*command).exit_code == 2


@pytest.mark.slow
def test_debug_shows_the_traceback_to_a_stranger(table):
    command = [sys.executable, "-m", "seraph_cvx", "--debug", "fit", "small.csv", "--label", "x"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "Traceback (most recent call last)" in done.stderr
    assert "TableError" in done.stderr


def test_a_fault_of_our_own_is_called_one(table, monkeypatch):
    def broken(*_):
        raise KeyError("soft_labels")

    monkeypatch.setattr(SERAPH, "_learn", broken)
    result = run("fit", table, "--label", "species")
    assert_answered_in_words(result, ["This is a bug", "KeyError: 'soft_labels'", "--debug"])


def test_too_little_memory_is_said(table, monkeypatch):
    def hungry(*_):
        raise MemoryError("Unable to allocate 9 TiB")

    monkeypatch.setattr(SERAPH, "_learn", hungry)
    result = run("fit", table, "--label", "species")
    assert_answered_in_words(result, ["Not enough memory", "9 TiB", "fewer points"])


# Names that would steer a terminal or run in a page


@pytest.fixture
def one_claim(monkeypatch):
    """`verify` checks the cheapest claim alone: names are written out the same way with all."""
    monkeypatch.setattr(claims, "CLAIMS", {10: claims.CLAIMS[10]})


@pytest.mark.usefixtures("one_claim")
def test_escape_sequences_of_names_are_written_out(folder):
    name = f"{ESCAPES}.csv"
    (folder / name).write_text(TABLE.replace(",a", f",{ESCAPES}").replace("width", ESCAPES))
    results = [
        run("fit", name, "--label", "species"),
        run("fit", name, "--label", ESCAPES, "--force"),
        run("fit", name, "--label", "nosuch", "--force"),
        run("verify", name, "--label", "species"),
    ]
    assert [result.exit_code for result in results] == [0, 2, 2, 0]
    for result in results:
        assert not set(result.output) & set("\x1b\x07\u202e"), result.output
    assert r"\x1b[2Jred\x1b]0;owned\x07\u202e" in results[0].stdout


@pytest.mark.slow
def test_a_name_that_is_no_text_and_a_screen_without_its_letters(folder):
    name = os.fsdecode(b"b\xff.csv")
    try:
        (folder / name).write_text(TABLE.replace(",a", ",é"), encoding="utf-8")
    except OSError:
        pytest.skip("the file system takes only UTF-8 names")
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "seraph_cvx", "fit", name, "--label", "species"]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert rb"b\udcff.csv" in done.stdout
    assert rb"\xe9 (2)" in done.stdout


def test_words_in_brackets_are_not_taken_for_markup(capsys):
    say("[bold]x[/bold] :smile: [link=http://x]y")
    assert capsys.readouterr().out == "[bold]x[/bold] :smile: [link=http://x]y\n"


class Dangers(HTMLParser):
    """Collects the elements and attributes by which a page could run something."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        if tag in ("script", "img", "iframe", "object"):
            self.found.append(tag)
        self.found += [name for name, _ in attributes if name.startswith("on")]


def test_the_parser_of_the_tests_below_sees_dangers():
    assert Dangers(SCRIPT).found == ["script"]
    assert Dangers("<p><img src=x onerror=alert(1)></p>").found == ["img", "onerror"]


@pytest.mark.usefixtures("one_claim")
def test_the_verify_page_escapes_the_name_of_the_file(folder):
    name = "<img src=x onerror=alert(1)>.csv"
    (folder / name).write_text(TABLE.replace(",a", ",<script>").replace("width", "<script>"))
    assert run("verify", name, "--label", "species", "--html", "page.html").exit_code == 0
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert "&lt;img src=x onerror" in page
    assert Dangers(page).found == []


def test_notebook_cards_escape_what_they_are_given():
    table = ResultTable(SCRIPT, [{SCRIPT: SCRIPT, "gap": 1.0}], [SCRIPT])
    shown = card(SCRIPT, SCRIPT, Tone.GOOD, SCRIPT, [], facts({SCRIPT: SCRIPT}), grid(table))
    assert Dangers(shown).found == []
    assert shown.count("&lt;script&gt;") == 7


def test_the_card_of_a_race_escapes_the_names_of_solvers():
    row = {"instance": SCRIPT, "solver": SCRIPT, "formulation": "", "tol": 1e-3}
    row |= {"outcome": "not run", "detail": SCRIPT}
    assert Dangers(Race("Race", [row], [SCRIPT])._repr_html_()).found == []


@pytest.mark.parametrize("ending", ["svg", pytest.param("png", marks=pytest.mark.slow)])
def test_a_picture_takes_any_name_for_text(folder, ending):
    """Dollar signs would enclose a formula, and angle brackets an element."""
    name = "<b>$x^{$.csv"
    (folder / name).write_text(
        TABLE.replace(",a", r",$\frac{</text><script>").replace(",b", ",$b$")
    )
    result = run("fit", name, "--label", "species", "--picture", f"p.{ending}")
    assert result.exit_code == 0, result.output
    if ending == "svg":
        drawing = ElementTree.parse(folder / "p.svg")
        assert not [e for e in drawing.iter() if e.tag.endswith("script")]


def test_a_markdown_row_stays_one_row():
    lines = ResultTable("t", [{"a": "x|y\nz\x1b[2J"}]).to_markdown().splitlines()
    assert lines[-1] == r"| x\|y\nz\x1b[2J |"


# A real terminal, and real pipes


def start_in_terminal(*arguments, cwd):
    """The command in a terminal of its own; what is typed is written to the file descriptor."""
    ours, theirs = pty.openpty()

    def take_terminal():
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    command = [sys.executable, "-m", "seraph_cvx", *map(str, arguments)]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd, preexec_fn=take_terminal
    )
    os.close(theirs)
    return process, ours


def read_terminal(terminal, until=None, seconds=60.0):
    shown, deadline = b"", time.monotonic() + seconds
    while time.monotonic() < deadline and (until is None or until not in shown):
        if not select.select([terminal], [], [], 0.1)[0]:
            continue
        try:
            more = os.read(terminal, 2**16)
        except OSError:  # the other side is closed
            break
        shown += more
    return shown


def press_ctrl_c(*arguments, cwd, when):
    process, terminal = start_in_terminal(*arguments, cwd=cwd)
    try:
        before = read_terminal(terminal, until=when)
        assert when in before, before
        os.write(terminal, b"\x03")
        after = read_terminal(terminal)
        return process.wait(30), words(re.sub(rb"\x1b\[[0-9;?]*\w", b"", before + after).decode())
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


@pytest.mark.slow
def test_ctrl_c_in_a_fit_keeps_the_last_iteration(folder):
    X, y = load("iris")
    lines = [",".join(map(str, [*x, y[k] if k % 9 == 0 else ""])) for k, x in enumerate(X.tolist())]
    (folder / "f.csv").write_text("\n".join(["a,b,c,d,kind", *lines]))
    options = ["--label", "kind", "--tol", "1e-15", "--solver", "projected-gradient"]
    code, said = press_ctrl_c("fit", "f.csv", *options, cwd=folder, when=b"   2 ")
    assert code == 130, said
    assert re.search(
        r"Interrupted: the metric of iteration \d+ is in f.metric.interrupted.npz", said
    )
    assert "Traceback" not in said
    assert sorted(p.name for p in folder.iterdir()) == ["f.csv", "f.metric.interrupted.npz"]


@pytest.mark.slow
def test_ctrl_c_in_verify_says_that_nothing_was_written(folder):
    code, said = press_ctrl_c("verify", "--html", "page.html", cwd=folder, when=b"1 of ")
    assert code == 130, said
    assert "Interrupted: nothing was written." in said
    assert "Traceback" not in said
    assert list(folder.iterdir()) == []


@pytest.mark.slow
def test_escape_sequences_do_not_reach_a_terminal(table):
    table.write_text(table.read_text().replace(",a", f",{ESCAPES}"))
    process, terminal = start_in_terminal("fit", table, "--label", "species", cwd=table.parent)
    shown = read_terminal(terminal)
    assert process.wait(30) == 0, shown
    os.close(terminal)
    assert rb"\x1b[2Jred\x1b]0;owned" in shown
    assert b"\x1b[2J" not in shown
    assert b"\x1b]0" not in shown


@pytest.mark.slow
@pytest.mark.parametrize("command", ["fit", "verify"])
def test_a_closed_pipe_is_no_traceback(table, command):
    command = [sys.executable, "-u", "-m", "seraph_cvx", command, "small.csv", "--label", "species"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) in (0, 1)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this platform has no /dev/full")
def test_a_full_disk_under_the_output_is_said(table):
    command = [sys.executable, "-m", "seraph_cvx", "fit", "small.csv", "--label", "species"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False
        )
    assert done.returncode == 2
    assert done.stderr.startswith("Error: No space left on device (free some space")
    assert "Traceback" not in done.stderr
