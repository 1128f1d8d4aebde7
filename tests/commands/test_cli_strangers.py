"""Evidence: strange tables, hostile names, closed pipes and Ctrl-C are answered in words."""

from __future__ import annotations

import fcntl
import itertools
import os
import pty
import re
import select
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path
from subprocess import PIPE
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from command_line import HEADER, TABLE, assert_answered_in_words, run, words

from seraph_cvx import load_model, verify_paper
from seraph_cvx.cli import tables
from seraph_cvx.datasets import load_sampling
from seraph_cvx.display.notebook import Tone, card
from seraph_cvx.display.result_table import ResultTable
from seraph_cvx.theory import verification as claims

ESCAPES = "\x1b[2Jred\x1b]0;owned\x07\u202e"
SCRIPT = "<script>alert(1)<\\script><img src=x onerror=alert(1)>"
COMMAND = [sys.executable, "-m", "seraph_cvx"]
FIT = "fit small.csv --label species --classifier nearest"


# Tables as spreadsheets of the world write them are the same table

SAME_TABLE = {
    "carriage returns": TABLE.replace("\n", "\r").encode(),
    "blanks and blank lines": ("\n \n" + TABLE.replace(",", " , ") + "\n  \n").encode(),
    "quotes": TABLE.replace("1.0,10,a", '"1.0", "10","a"').encode(),
    "no last line end": TABLE.rstrip("\n").encode(),
    **{
        f"{mark!r}, {end!r}": (start + TABLE.replace(",", mark).replace("\n", end)).encode()
        for mark, start, end in itertools.product(",;\t", ("", "\ufeff"), ("\n", "\r\n"))
    },
    **{
        f"unknown: {word}": re.sub(",$", f",{word}", TABLE, flags=re.M).encode()
        for word in ("-1", "NA", "NaN", "nan", "-1.0", " NA ")
    },
}


@pytest.mark.parametrize("case", SAME_TABLE)
def test_a_table_written_otherwise_is_the_same_table(table, case):
    table.with_name("other.csv").write_bytes(SAME_TABLE[case])
    plain, strange = (tables.read_table(Path(n), "species") for n in ("small.csv", "other.csv"))
    np.testing.assert_array_equal(np.c_[strange.X, strange.y], np.c_[plain.X, plain.y])
    assert strange.feature_names == plain.feature_names
    word = case.partition("unknown: ")[2].strip()
    assert strange.unknown == ({word: 2} if word else {})


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_decimal_commas_and_another_encoding_are_the_same_table(table, encoding):
    other = TABLE.replace(",", ";").replace(".", ",").replace("species", "größe")
    table.with_name("other.csv").write_bytes(other.encode(encoding))
    reading = tables.Reading(decimal=",", encoding=encoding)
    plain = tables.read_table(table, "species")
    strange = tables.read_table(table.with_name("other.csv"), "größe", reading)
    np.testing.assert_array_equal(np.c_[strange.X, strange.y], np.c_[plain.X, plain.y])


def test_cells_may_hold_line_ends_quotes_and_formulas(folder):
    (folder / "q.csv").write_text('x,=1,"the\nkind"\n1,0,"a\nb"\n2,0,=cmd|\'!A0\n3,0,"d""e"\n')
    table = tables.read_table(folder / "q.csv", "the\nkind")
    assert table.class_names == ("=cmd|'!A0", "a\nb", 'd"e')
    assert table.feature_names == ("x", "=1")
    (folder / "q.csv").write_text('x,"the\nkind"\n1,"a\nb"\nzwei,"c\nd"\n')
    with pytest.raises(tables.TableError, match=r"Row 3 of .*, column 'x': 'zwei'"):
        tables.read_table(folder / "q.csv", "the\nkind")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_the_table_may_come_through_a_pipe(folder):
    os.mkfifo(folder / "pipe.csv")
    writer = threading.Thread(target=(folder / "pipe.csv").write_text, args=[TABLE])
    writer.start()
    done = run("fit pipe.csv --label species --out m.npz")
    writer.join()
    assert done.exit_code == 0, done.output
    assert (folder / "m.npz").exists()


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


# Tables that cannot be read: the file or a replacement in the table, and what is said

BAD_TABLES = {
    "empty": ("", "bad.csv is empty"),
    "header only": (HEADER + "\n", "bad.csv", "no points"),
    "text": (("12,b", "wide,b"), "Row 4", "'width'", "'wide'"),
    "text below a blank row": (("12,b\n", "12,b\n\n1,wide,b\n"), "Row 6", "'wide'"),
    "decimal comma": ("length;species\n1,5;a\n", "Row 2", "'length'", "'1,5'", "with a point"),
    "missing number": (("3.0,", ","), "Row 4", "'length'", "cell is empty"),
    "no label column": ("a,b\n1,2\n", "no column 'species'", "'a', 'b'"),
    "no header": ("1,2\n3,4\n", "no column 'species'", "'1', '2'", "first row"),
    "one label": (HEADER + "\n1,2,a\n2,3,\n4,5,", "1 of the 3", "'species'"),
    "no labels": (HEADER + "\n1,2,\n2,3,NA\n", "0 of the 2", "'species'", "so does 'NA'"),
    "ragged": (("1.2,30,a", "1.2,30"), "Row 3", "2 cells", "3 columns"),
    "unnamed column": (("length", ""), "Column 1", "no name"),
    "twice named": (("length", "width"), "2 columns named 'width'"),
    "no features": ("species\na\nb\n", "no column besides 'species'"),
    "not UTF-8": (f"{HEADER}\n1,2,".encode() + b"\xe9\n3,4,b\n", "Line 2", "utf-8", "0xe9"),
    "binary": (bytes(range(256)), "bad.csv is not a text file", "CSV UTF-8"),
    "UTF-16": (TABLE.encode("utf-16-le"), "bad.csv is not a text file", "--encoding utf-16"),
    "quote not closed": (("1.2", '"1.2'), "Row 3", "double quote"),
    "quote not doubled": ((",a\n1.2", ',"a"b"\n1.2'), "Row 2", "double quote"),
    "quote closed by a later row": (('10,a\n1.2,30,a', '10,"a\n1.2,30,"a'), "Row 2", "quote"),
    "surplus after blank ones": ("\n\n" + HEADER + "\n1,10,a,a\n", "Row 4", "4 cells"),
    "only separators": (TABLE + ",,\n", "Row 8", "'length'", "the cell is empty"),
    "endless cell": (("1.2", "1" * 140_000), "Row 3", "a cell of more than 131,072 characters"),
    "long cell": (("1.2", "1" * 400), "Row 3", "'length'", "111...'"),
    "underscore": (("1.2", "1_2"), "Row 3", "'1_2'", "remove the row"),
    "thousands": (("30", '"3,000"'), "Row 3", "'3,000'", "thousands"),
    "decimal commas between commas": (("1.2", "1,2"), "Row 3", "4 cells", "point"),
    "NaN": (("1.2", "NaN"), "Row 3", "'NaN'", "remove the row"),
    "too large": (("1.2", "1e200"), "'length'", "too large to be squared"),
    "all the same": ("x,species\n1,a\n1,b\n1,a\n", "the same", "nothing to learn"),
    "bars": ("length|species\n1|a\n", "no column 'species'", "commas, semicolons and tabs"),
    "other letters": (("species", "Species"), "Did you mean 'Species'?"),
    "many columns": (",".join(f"c{k}" for k in range(500)) + "\n1\n", "and 488 more", "--label"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_TABLES)
def test_a_bad_table_is_answered_in_words_and_nothing_is_written(folder, case):
    content, *culprits = BAD_TABLES[case]
    content = TABLE.replace(*content, 1) if isinstance(content, tuple) else content
    (folder / "bad.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    result = run("fit bad.csv --label species")
    assert_answered_in_words(result, culprits)
    assert len(result.stderr) < 600
    assert [path.name for path in folder.iterdir()] == ["bad.csv"]


def test_bad_cells_of_many_kinds_are_counted_by_their_columns(folder):
    header = ",".join([*(f"c{k}" for k in range(8)), "species"])
    rows = [",".join([cell] * 8) + ",a\n" for cell in ("word", "", "8 700")]
    (folder / "bad.csv").write_text(header + "\n" + "".join(rows), encoding="utf-8")
    result = run("fit bad.csv --label species")
    assert_answered_in_words(result, ["There are more such cells, in 5 columns."])


@pytest.mark.parametrize(
    "price", ["12,000.5", "-1,234,567", "1.234,5", "8 700", "8\u202f700", "8'700"]
)
def test_marks_between_thousands_are_named_as_the_cause(folder, price):
    (folder / "prices.csv").write_text(f"price;species\n{price};a\n9;b\n", encoding="utf-8")
    advice = "Write decimals with a point, without marks between thousands."
    assert_answered_in_words(run("fit prices.csv --label species"), ["Row 2", advice])


def test_a_column_without_a_name_can_be_dropped_by_no_name(table):
    frame = pd.read_csv(table)
    frame.to_csv(table)  # with the row numbers of a data frame
    assert_answered_in_words(run(FIT), ["Column 1 of small.csv has no name", '--drop "" leaves'])
    result = run(f'{FIT} --drop ""')
    assert (result.exit_code, result.stderr) == (0, "")
    assert load_model("small.metric.npz").feature_names_in_.tolist() == ["length", "width"]
    table.write_text(table.read_text().replace("\n", ",,\n"))  # and columns of nothing
    assert run(f'{FIT} --drop "" --force').exit_code == 0
    frame.to_csv(table, index=False)
    assert_answered_in_words(run(f'{FIT} --drop "" --force'), ["--drop '': '' is not a column"])


BAD_COMMANDS = {
    "fit 'no such.csv' --label species": ["no such.csv"],
    "fit . --label species": ["Is a directory", "name of a file"],
    "fit small.csv": ["--label"],
    f"{FIT} --out m.txt": ["m.txt", ".npz"],
    f"{FIT} --picture p.jpeg": ["p.jpeg", ".png"],
    f"{FIT} --out no/m.npz": ["folder no"],
    f"{FIT} --out small.csv": ["small.csv must end in .npz"],
    f"{FIT} --out folder.npz": ["folder.npz is a folder: give the name of a file"],
    f"{FIT} --out pipe.npz": ["pipe.npz is a device or a pipe"],
    f"{FIT} --out /proc/m.npz": ["Nothing can be written to the folder /proc"],
    f"{FIT} --unlabeled-weight much": ["'much'", "ratio"],
    f"{FIT} --trace-weight -1": ["trace_weight"],
    f"{FIT} --solver FOO": ["'FOO'", "newton"],
    f"{FIT} --setting best": ["'best'", "none, post, proj, hyper"],
    "fit huge.csv --label species --no-standardize": ["'x'", "too large"],
    "fit few.csv --label species --trace-weight 0": [
        *("no optimum", "--trace-weight", "is the column 'x'"),
    ],
    "demo --seed -1": ["--seed"],
    "demo --out iris": ["iris must end in .png"],
    "demo --out /proc/m.png": ["Nothing can be written to the folder /proc"],
    "verify nosuch": ["'nosuch'", "iris"],
    "explain --data nosuch": ["'nosuch'", "iris"],
    "compare --instances nosuch --out r": ["'nosuch'", "wine-n40"],
    "export nosuch --cbf x.cbf": ["'nosuch'", "wine-n40"],
    "export wine-n40-standard-hyper-w1-s0 --cbf /proc/m.cbf": ["Nothing can be written"],
    "compare --solvers FOO --out r": ["'FOO'", "newton"],
    "compare --out small.csv": ["small.csv", "another name"],
    "reproduce table2": ["No such command", "reproduce"],
    "bench defaults": ["No such command", "bench"],
    "explore --port 0": ["--port"],
    "check-exercise 4 none.py": ["none.py"],
    "learn": ["learn"],
}


@pytest.mark.parametrize("command", BAD_COMMANDS)
def test_every_command_answers_what_it_cannot_serve(table, command):
    folder = table.parent
    (folder / "folder.npz").mkdir()
    os.mkfifo(folder / "pipe.npz")
    (folder / "few.csv").write_text("x,species\n0,a\n1,b\n")
    (folder / "huge.csv").write_text("x,species\n0,a\n1e100,b\n")
    before = sorted(path.name for path in folder.iterdir())
    result = run(command)
    assert_answered_in_words(result, BAD_COMMANDS[command])
    assert table.read_text() == TABLE
    assert {path.name for path in folder.iterdir()} - {*before} <= {"r"}


def test_a_file_that_may_not_be_read_is_named(table, monkeypatch):
    def forbidden(path, *_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", forbidden)
    assert_answered_in_words(run(FIT), ["Permission denied", "small.csv", "its permissions"])


def test_without_pandas_a_table_names_the_extra_that_brings_it(table, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert_answered_in_words(run(FIT), ["pandas", 'pip install "seraph-cvx[cli]"'])


def test_a_link_stays_a_link_and_its_file_gets_the_metric(table):
    link, target = table.with_name("m.npz"), table.parent / "metrics" / "m.npz"
    target.parent.mkdir()
    link.symlink_to(target)
    assert run(FIT, "--out", link).exit_code == 0
    assert link.is_symlink()
    assert target.stat().st_size > 0


def test_a_table_that_does_not_fit_into_memory_is_refused_before_the_work(table, monkeypatch):
    monkeypatch.setattr(tables, "free_bytes", lambda: 100)
    culprits = ["The table", "memory", "random sample of its rows"]
    assert_answered_in_words(run("fit small.csv --label species"), culprits)


# Tracebacks for those who ask


@pytest.mark.parametrize(
    "command",
    [
        "fit --debug small.csv --label kind",
        "--debug fit small.csv --label kind",
        "--debug compare --instances nosuch --out r",
        "--debug compare --out small.csv",
    ],
)
def test_debug_lets_the_error_through_before_and_after_the_command(table, command):
    assert isinstance(run(command).exception, ValueError | OSError)
    assert run(command.replace("--debug", "")).exit_code == 2


# Names that would steer a terminal or run in a page


@pytest.fixture
def one_claim(monkeypatch):
    """`verify` checks the cheapest claim alone: names are written out the same way with all."""
    monkeypatch.setattr(claims, "CLAIMS", {10: claims.CLAIMS[10]})


def test_escape_sequences_of_names_are_written_out(folder):
    name = f"{ESCAPES}.csv"
    (folder / name).write_text(TABLE.replace(",a", f",{ESCAPES}").replace("width", ESCAPES))
    for command, label, exit_code in [
        ("fit", "species", 0),
        ("fit --force", ESCAPES, 2),
        ("fit --force", "nosuch", 2),
    ]:
        result = run(command, name, "--label", label)
        assert result.exit_code == exit_code
        assert not set(result.output) & set("\x1b\x07\u202e"), result.output
        assert r"\x1b[2Jred\x1b]0;owned\x07\u202e" in result.output


def test_a_name_that_is_no_text_is_written_out(folder):
    name = os.fsdecode(b"b\xff.csv")
    try:
        (folder / name).write_text(TABLE)
    except OSError:
        pytest.skip("the file system takes only UTF-8 names")
    done = run("fit --label species", name)
    assert done.exit_code == 0, done.output
    assert r"b\udcff.csv" in done.stdout


DANGER = re.compile(r"<(script|img|iframe|object)\b|<[^>]*\son\w+=")
"""An element or an attribute by which a page could run something."""


@pytest.mark.usefixtures("one_claim")
def test_pages_and_notebooks_escape_the_names_that_they_are_given(folder):
    assert DANGER.search(SCRIPT)
    name = "<img src=x onerror=alert(1)>.csv"
    drawn = load_sampling("iris")
    page = verify_paper(drawn.X, drawn.y, name=name).to_html()
    table = ResultTable(SCRIPT, [{SCRIPT: SCRIPT, "gap": 1.0}], [SCRIPT])
    notebook = card(*[SCRIPT] * 2, Tone.GOOD, SCRIPT, facts={SCRIPT: SCRIPT}, table=table)
    for shown in (page, notebook):
        assert not DANGER.search(shown)
    assert "&lt;img src=x onerror" in page
    assert notebook.count("&lt;script&gt;") == 7


def test_a_picture_takes_any_name_for_text(folder):
    """Dollar signs would enclose a formula, and angle brackets an element."""
    name = "<b>$x^{$.csv"
    classes = TABLE.replace(",a", r",$\frac{</text><script>").replace(",b", ",$b$")
    (folder / name).write_text(classes)
    result = run("fit --label species --picture p.svg", name)
    assert result.exit_code == 0, result.output
    drawing = ElementTree.parse(folder / "p.svg")
    assert not [e for e in drawing.iter() if e.tag.endswith("script")]


def test_a_markdown_row_stays_one_row():
    lines = ResultTable("t", [{"a": "x|y\nz\x1b[2J"}]).to_markdown().splitlines()
    assert lines[-1] == r"| x\|y\nz\x1b[2J |"


# A real terminal, and real pipes


def in_terminal(*arguments, press_when=None):
    """The exit code and what a terminal shows; Ctrl-C is pressed after `press_when` is shown."""
    ours, theirs = pty.openpty()

    def take_terminal():
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    process = subprocess.Popen([*COMMAND, *arguments], **streams, preexec_fn=take_terminal)
    os.close(theirs)
    shown, deadline = b"", time.monotonic() + 60.0
    try:
        while time.monotonic() < deadline:
            if not select.select([ours], [], [], 0.1)[0]:
                continue
            try:
                shown += os.read(ours, 2**16)
            except OSError:  # the other side is closed
                break
            if press_when is not None and press_when in shown:
                os.write(ours, b"\x03")
                press_when = None
        return process.wait(30), shown
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@pytest.mark.slow
def test_ctrl_c_keeps_what_there_is_and_says_so(flowers, folder):
    """And escape sequences of the table do not reach the terminal."""
    text = (folder / "flowers.csv").read_text().replace("setosa", ESCAPES)
    (folder / "flowers.csv").unlink()
    (folder / "f.csv").write_text(text)
    command = "fit f.csv --label species --tol 1e-15 --solver projected-gradient"
    code, shown = in_terminal(*command.split(), press_when=b"   2 ")
    assert rb"\x1b[2Jred\x1b]0;owned" in shown
    assert b"\x1b[2J" not in shown
    assert b"\x1b]0" not in shown
    said = words(re.sub(rb"\x1b\[[0-9;?]*\w", b"", shown).decode())
    assert code == 130, said
    kept = r"Interrupted: the metric of iteration \d+ is in f.metric.interrupted.npz"
    assert re.search(kept, said), said
    assert "Traceback" not in said
    assert sorted(path.name for path in folder.iterdir()) == ["f.csv", "f.metric.interrupted.npz"]


@pytest.mark.slow
def test_a_closed_pipe_is_no_traceback():
    with subprocess.Popen([*COMMAND, "--help"], stdout=PIPE, stderr=PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) in (0, 1)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this platform has no /dev/full")
def test_a_full_disk_under_the_output_is_said(table):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, *FIT.split()], stdout=full, stderr=PIPE, timeout=120, check=False
        )
    assert done.returncode == 2
    assert done.stderr.startswith(b"Error: No space left on device (free some space")
    assert b"Traceback" not in done.stderr


def test_an_unknown_choice_is_told_which_there_are():
    done = run("explain --statement foo")
    assert done.exit_code == 2
    assert "'--statement': 'foo' is not one of 'primal', 'dual', 'textbook'" in words(done.output)
