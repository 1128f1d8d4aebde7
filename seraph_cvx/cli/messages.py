"""What the `seraph-cvx` command says: no other module of the package prints."""

from __future__ import annotations

import errno
import signal
import textwrap
import unicodedata
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import typer
from rich.console import Console

from ..display.result_table import ResultTable, show, visible
from ..numerics.checks import MissingExtra, counted
from ..processes.signals import handled

screen = Console(markup=False, emoji=False, highlight=False)
alerts = Console(markup=False, emoji=False, highlight=False, stderr=True)

wants_traceback: ContextVar[bool] = ContextVar("wants_traceback", default=False)
"""Whether --debug was given."""

CURES = {
    errno.EACCES: "change its permissions, or use another path",
    errno.EPERM: "change its permissions, or use another path",
    errno.EROFS: "use a path that can be written to",
    errno.EISDIR: "give the name of a file, not of a folder",
    errno.ENOTDIR: "a part of this path is a file, not a folder",
    errno.EEXIST: "use another name",
    errno.ENOSPC: "free some space, or use another disk",
    errno.EDQUOT: "free some space, or use another disk",
    errno.EFBIG: "use a file system that allows larger files",
    errno.ENAMETOOLONG: "use a shorter name",
}
"""What to do about an error of the operating system."""

REJECTIONS = (ValueError, TypeError, OSError, MemoryError, MissingExtra)
"""Errors by which the package rejects its input; any other error is a bug."""


def say(text: str, style: str | None = None, console: Console = screen, hang: int = 0) -> None:
    """Print a result, wrapped in a terminal; what could control it or it lacks is escaped."""
    lines, encoding = visible(text, but="\n\t"), console.encoding
    try:
        lines.encode(encoding)
    except UnicodeEncodeError:  # plain letters for script ones, or escapes
        plain = unicodedata.normalize("NFKC", lines)
        lines = plain.encode(encoding, "backslashreplace").decode(encoding)
    if console.is_terminal:
        lines = "\n".join(  # continued as it began, and by `hang` more
            textwrap.fill(
                line,
                console.width,
                subsequent_indent=" " * (len(line) - len(line.lstrip(" ")) + hang),
                expand_tabs=False,
                replace_whitespace=False,
                break_long_words=False,
                break_on_hyphens=False,
            )
            for line in lines.split("\n")
        )
    console.print(lines, style=style, soft_wrap=not console.is_terminal)


def tell(macro: str, /, hang: int = 0, **values: Any) -> None:
    """Print what a macro of messages.txt makes of some values."""
    say(written(macro, **values), hang=hang)


def written(macro: str, /, **values: Any) -> str:
    """What a macro of messages.txt makes of some values."""
    return str(getattr(_macros(), macro)(**values)).removesuffix("\n")


@cache
def _macros() -> Any:
    """The macros of messages.txt."""
    from ..display.page import templates

    plain = templates().overlay(autoescape=False, trim_blocks=True, lstrip_blocks=True)
    ours = {"visible": visible, "repr": repr, "counted": counted}
    plain.filters = {**plain.filters, **ours}
    return plain.get_template("cli/messages.txt").module


def show_table(table: ResultTable, wrapped: str = "detail") -> None:
    """Print a table, compact enough for 80 characters; one of its columns is wrapped."""
    from rich.table import Table

    title = visible(table.title)
    drawn = Table(title=title, title_justify="left", box=None, padding=(0, 1, 0, 0))
    for column in table.columns:
        heading = column.replace(" / ", "/").replace(" ", "\n").replace("_", "\n")
        is_text = any(row.get(column) and isinstance(row[column], str) for row in table.rows)
        justify: Any = "left" if is_text else "right"
        drawn.add_column(heading, justify=justify, no_wrap=column != wrapped)
    for row in table.rows:
        drawn.add_row(*[show(row.get(column, "")) for column in table.columns])
    screen.print(drawn)


@contextmanager
def steps_shown(first: str = "compiling the problem") -> Iterator[Callable[[str], None]]:
    """What the work is at, on one line of a terminal, which is gone at the end."""
    with alerts.status(first) as status:
        yield lambda step: status.update(visible(step))


def alert(text: str, style: str = "yellow") -> None:
    """Print something that is not a result, to stderr."""
    say(text, style, alerts)


@contextmanager
def answers_in_words() -> Iterator[list[str]]:
    """Turn errors (exit code 2), warnings, Ctrl-C (130) and SIGTERM (143) into sentences on stderr.

    The list takes what to report as saved if the work is interrupted. --debug raises errors
    unchanged.
    """
    from ..solvers.not_certified import NotCertified

    kept: list[str] = []

    def show(message: Warning | str, category: type[Warning], *_: Any) -> None:
        kinds: dict[type[Warning], str] = {
            UserWarning: "Note",
            NotCertified: "Not certified",
        }
        alert(f"{kinds.get(category, category.__name__)}: {message}")

    with warnings.catch_warnings(), _sigterm_as_ctrl_c() as terminated:
        warnings.simplefilter("always", NotCertified)
        warnings.showwarning = show  # type: ignore[assignment]
        try:
            yield kept
        except KeyboardInterrupt:
            alert(f"Interrupted: {' and '.join(kept) or 'nothing was written'}.")
            raise typer.Exit(143 if terminated else 130) from None
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except Exception as error:
            if wants_traceback.get():
                raise
            alert(f"Error: {_sentence(error, kept)}", style="red")
            raise typer.Exit(2) from None


@contextmanager
def _sigterm_as_ctrl_c() -> Iterator[list[int]]:
    """A context in which SIGTERM, which the list then holds, ends the work as Ctrl-C does."""
    terminated: list[int] = []

    def end(number: int, _: Any) -> None:
        terminated.append(number)
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)

    with handled(signal.SIGTERM, end):
        yield terminated


@contextmanager
def interrupts_deferred() -> Iterator[list[int]]:
    """A context in which the first Ctrl-C is kept in a list, and raised at the end if it is there.

    The second one raises at once.
    """
    pending: list[int] = []

    def keep(number: int, _: Any) -> None:
        if pending:
            raise KeyboardInterrupt
        pending.append(number)

    with handled(signal.SIGINT, keep):
        yield pending
    if pending:
        raise KeyboardInterrupt


def _sentence(error: Exception, kept: list[str]) -> str:
    message = str(error) or type(error).__name__
    if isinstance(error, OSError) and error.errno is not None:
        file = f": {error.filename}" if error.filename else ""
        cure = CURES.get(error.errno, "check that it can be used")
        message = f"{error.strerror}{file} ({cure})."
    elif isinstance(error, MemoryError):
        message = f"Not enough memory ({message}): use fewer points or fewer features."
    elif not isinstance(error, REJECTIONS):
        message = (
            f"This is a bug in seraph-cvx ({type(error).__name__}: {message}). Run the command "
            "again with --debug, and please report what it prints."
        )
    sentences = [message, *getattr(error, "__notes__", [])]
    if kept and not isinstance(error, ValueError | TypeError):
        sentences.append(f"Already done: {' and '.join(kept)}.")
    return " ".join(sentences)


@contextmanager
def needs_matplotlib(what: str) -> Iterator[None]:
    """Say that there is no picture or report where matplotlib is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        alert(f'No {what}: matplotlib is not installed. Run  pip install "seraph-cvx[plot]"')
