"""What the `seraph-cvx` command says: no other module of the package prints."""

from __future__ import annotations

import errno
import re
import textwrap
import unicodedata
import warnings
from collections.abc import Sequence
from contextvars import ContextVar
from types import TracebackType
from typing import TextIO

import numpy as np
import typer
from rich.console import Console

from ..certificate import Certificate
from ..display.result_table import visible
from ..numerics.checks import MissingExtra
from ..pairs.label_doubts import WORDS_FOR_UNKNOWN
from ..pairs.pair_set import PairSet
from ..solvers.solution import Status
from .tables.user_table import UserTable

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

CURES_OF_A_GAP = ("--max-iter", "--tol", "--m-step-tol", "--solver")
"""The options that may help where a gap is larger than was asked for."""

UNSERVED = (ValueError, TypeError, OSError, MemoryError, MissingExtra)
"""Errors by which the package rejects its input; any other error is a bug."""


def say(text: str, style: str | None = None, console: Console = screen, hang: int = 0) -> None:
    """Print a result; lines are wrapped in a terminal, but not in a file or pipe.

    A line that goes on is indented as it began, and by `hang` columns more.

    Control characters in the text are escaped, so that no file or name can control the terminal;
    so are characters that its encoding lacks.
    """
    lines = encodable(visible(text, but="\n\t"), console.encoding)
    if console.is_terminal:
        lines = hanging(lines, console.width, hang)
    console.print(lines, style=style, soft_wrap=not console.is_terminal)


def encodable(text: str, encoding: str) -> str:
    r"""Write a text in the characters of an encoding: plain letters for script ones, or escapes.

    Examples
    --------
    >>> encodable("3 similar (𝒮), μ = 1", "ascii")
    '3 similar (S), \\u03bc = 1'
    """
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        plain = unicodedata.normalize("NFKC", text)
        return plain.encode(encoding, "backslashreplace").decode(encoding)
    return text


def hanging(text: str, width: int, hang: int = 0) -> str:
    """Wrap each line of a text, and indent what goes on as the line began, and by `hang` more.

    Examples
    --------
    >>> print(hanging("  a line that is too long for its place", 24))
      a line that is too
      long for its place
    """
    return "\n".join(
        textwrap.fill(
            line,
            width,
            subsequent_indent=" " * (len(line) - len(line.lstrip(" ")) + hang),
            expand_tabs=False,
            replace_whitespace=False,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in text.split("\n")
    )


def alert(text: str, style: str = "yellow") -> None:
    """Print something that is not a result, to stderr."""
    say(text, style, alerts)


class Answers:
    """A context that turns errors, warnings and Ctrl-C into sentences on stderr.

    The exit code is 2 for an error and 130 for Ctrl-C. With --debug errors are raised unchanged.
    """

    def __init__(self, options: Sequence[str]) -> None:
        self.kept: list[str] = []
        self.options = options
        self._warnings = warnings.catch_warnings()

    def __enter__(self) -> list[str]:
        """Enter the context; the list takes what to report as saved if the work is interrupted."""
        from ..solvers.not_certified import NotCertified

        self._warnings.__enter__()
        warnings.simplefilter("always", NotCertified)
        warnings.showwarning = self._show_warning
        return self.kept

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._warnings.__exit__(kind, error, _)
        if isinstance(error, KeyboardInterrupt):
            alert(f"Interrupted: {' and '.join(self.kept) or 'nothing was written'}.")
            raise typer.Exit(130) from None
        passes = isinstance(error, typer.Exit | typer.Abort | BrokenPipeError)
        if not isinstance(error, Exception) or passes or wants_traceback.get():
            return
        alert(f"Error: {in_options(_sentence(error, self.kept), self.options)}", style="red")
        raise typer.Exit(2) from None

    def _show_warning(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        from ..solvers.not_certified import NotCertified

        words = in_options(str(message), self.options)
        if issubclass(category, NotCertified):
            cures = ", ".join(o for o in CURES_OF_A_GAP if o in self.options)
            alert(f"Not certified: {words}" + (f" (Options: {cures}.)" if cures else ""))
        else:
            alert(f"{'Note' if category is UserWarning else category.__name__}: {words}")


def answers_in_words(options: Sequence[str] = ()) -> Answers:
    """Report whatever goes wrong in this context in words; see :class:`Answers`.

    Parameters
    ----------
    options : sequence of str
        The options of the command that stand for parameters of SERAPH: messages name these instead.
    """
    return Answers(options)


def in_options(text: str, options: Sequence[str]) -> str:
    """Write the options of a command where a message names the parameters that they set.

    Examples
    --------
    >>> in_options('Raise max_iter, or use trace_weight="auto".', ["--trace-weight"])
    'Raise max_iter, or use --trace-weight auto.'
    """
    for option in options:
        name = option.removeprefix("--").replace("-", "_")
        text = re.sub(rf'(?<![\w-]){name}="([^"]*)"', rf"{option} \1", text)
        if "_" in name or name in ("tol", "polish"):
            text = re.sub(rf"(?<![\w-]){name}(=True)?(?!\w)", option, text)
    return text


def _sentence(error: Exception, kept: list[str]) -> str:
    words = str(error) or type(error).__name__
    if isinstance(error, OSError) and error.errno is not None:
        file = f": {error.filename}" if error.filename else ""
        words = f"{error.strerror}{file} ({CURES.get(error.errno, 'check that it can be used')})."
    elif isinstance(error, MemoryError):
        words = f"Not enough memory ({words}): use fewer points or fewer features."
    elif not isinstance(error, UNSERVED):
        words = (
            f"This is a bug in seraph-cvx ({type(error).__name__}: {words}). Run the command again "
            "with --debug, and please report what it prints."
        )
    sentences = [words, *getattr(error, "__notes__", [])]
    if kept and not isinstance(error, ValueError | TypeError):
        sentences.append(f"Already done: {' and '.join(kept)}.")
    return " ".join(sentences)


def describe(table: UserTable, pairs: PairSet, name: str) -> None:
    """Describe the data, and how many pairs are similar, dissimilar and unlabeled."""
    n, m = table.X.shape
    counts = [int(np.sum(table.y == k)) for k in range(len(table.class_names))]
    names = [visible(name) for name in table.class_names[:8]]
    classes = ", ".join(f"{c} ({k})" for c, k in zip(names, counts, strict=False))
    say(f"Data   {visible(name)}")
    say(f"       {n} points, {m} features, {len(counts)} classes, {sum(counts)} labeled")
    unknown = ", ".join(f"{word!r} ({k})" for word, k in list(table.unknown.items())[:8])
    say(
        f"       labels: {classes}{', ...' if len(counts) > 8 else ''}"
        + (f"; read as unknown: {visible(unknown)}" if unknown else "")
    )
    say(
        f"Pairs  {pairs.n_similar} similar (𝒮), {pairs.n_labeled - pairs.n_similar} dissimilar "
        f"(𝒟), {pairs.n_unlabeled} unlabeled (𝒰)"
    )
    doubtful = [name for name in table.class_names if name.lower() in WORDS_FOR_UNKNOWN]
    if doubtful:
        alert(
            f"Note: {doubtful[0]!r} is read as a class. If it means that the class is not known, "
            f"say --unknown {doubtful[0]!r}, or leave the cell empty."
        )


def report_certificate(certificate: Certificate, status: Status, tol: float) -> None:
    """Report the certificate of the last M-step, and of which matrix it is."""
    say("\nCertificate of the last M-step, a convex program", style="bold")
    say(f"  primal value  {certificate.primal_value:.12g}")
    say(f"  dual value    {certificate.dual_value:.12g}")
    say(
        f"  duality gap   {certificate.duality_gap:.1e}  "
        f"(relative gap {certificate.relative_gap:.1e})"
    )
    say(
        "  In words: no metric can have an M-step objective below "
        f"{certificate.dual_value:.12g}, and A, the matrix of this M-step, is at most "
        f"{certificate.duality_gap:.1e} above. This is proved from the data, not taken from the "
        "solver. It is about the last M-step: the alternation as a whole is not convex."
    )
    if status is Status.ROUNDING_LIMIT:
        say(
            f"  The gap is above the {tol:.0e} asked for, but at the limit of rounding: in double "
            "precision it cannot be proved to be smaller. That is no failure."
        )


def report_direct(values: Sequence[float], n_steps: int, tol: float, status: Status) -> None:
    """Report how far the descent on (7) went, and what that shows."""
    say(f"Objective (7) fell from {values[0]:.8g} to {values[-1]:.8g} in {n_steps} steps.")
    words = f"stationary to {tol:.0e}" if status is Status.STATIONARY else "not yet stationary"
    say(
        f"Certificate: none, since (7) is not convex. The metric is {words}; a better one may "
        "exist."
    )


def finish(status: Status, kept: list[str]) -> None:
    """Exit with code 1 unless the result is certified, as far as rounding allows, or stationary."""
    if not status.reached_tolerance:
        files = " and ".join(kept) or "nothing was written"
        alert(f"The status is {status.value}, not certified; {files}. Exit code 1.", style="red")
        raise typer.Exit(1)
