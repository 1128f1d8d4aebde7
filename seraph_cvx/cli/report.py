"""What the `seraph-cvx` command says: no other module of the package prints."""

from __future__ import annotations

import errno
import warnings
from contextvars import ContextVar
from types import TracebackType
from typing import TextIO

import numpy as np
import typer
from rich.console import Console

from ..certificate import certify
from ..display.result_table import visible
from ..fit.alternation import Alternation
from ..fit.direct import DirectSolution
from ..numerics.checks import MissingExtra
from ..pairs.pair_set import PairSet
from ..solvers.solution import Status
from .tables.user_table import UserTable

LOOK_UNKNOWN = {"-1", "?", "na", "n/a", "nan", "none", "null", "unknown"}
"""Labels that probably stand for an unknown class, whose cell should be empty."""

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

UNSERVED = (ValueError, TypeError, OSError, MemoryError, MissingExtra)
"""Errors by which the package rejects its input; any other error is a bug."""


def say(text: str, style: str | None = None, console: Console = screen) -> None:
    """Print a result; lines are wrapped in a terminal, but not in a file or pipe.

    Control characters in the text are escaped, so that no file or name can control the terminal;
    so are characters that its encoding lacks.
    """
    shown = visible(text, but="\n\t").encode(console.encoding, "backslashreplace")
    console.print(shown.decode(console.encoding), style=style, soft_wrap=not console.is_terminal)


def alert(text: str, style: str = "yellow") -> None:
    """Print something that is not a result, to stderr."""
    say(text, style, alerts)


class Answers:
    """A context that turns errors, warnings and Ctrl-C into sentences on stderr.

    The exit code is 2 for an error and 130 for Ctrl-C. With --debug errors are raised unchanged.
    """

    def __init__(self) -> None:
        self.kept: list[str] = []
        self._warnings = warnings.catch_warnings()

    def __enter__(self) -> list[str]:
        """Enter the context; the list takes what to report as saved if the work is interrupted."""
        from ..solvers.not_certified import NotCertified

        self._warnings.__enter__()
        warnings.simplefilter("always", NotCertified)
        warnings.showwarning = _show_warning
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
        alert(f"Error: {_sentence(error, self.kept)}", style="red")
        raise typer.Exit(2) from None


def answers_in_words() -> Answers:
    """Report whatever goes wrong in this context in words; see :class:`Answers`."""
    return Answers()


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


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    from ..solvers.not_certified import NotCertified

    if issubclass(category, NotCertified):
        alert(f"Not certified: {message} (Options: --max-iter, --tol, --solver.)")
    else:
        alert(f"Warning ({category.__name__}): {message}")


def describe(table: UserTable, pairs: PairSet, name: str) -> None:
    """Describe the data, and how many pairs are similar, dissimilar and unlabeled."""
    n, m = table.X.shape
    counts = [int(np.sum(table.y == k)) for k in range(len(table.class_names))]
    names = [visible(name) for name in table.class_names[:8]]
    classes = ", ".join(f"{c} ({k})" for c, k in zip(names, counts, strict=False))
    say(f"Data   {visible(name)}")
    say(f"       {n} points, {m} features, {len(counts)} classes, {sum(counts)} labeled")
    say(f"       labels: {classes}{', ...' if len(counts) > 8 else ''}")
    say(
        f"Pairs  {len(pairs.similar)} similar (S), {len(pairs.dissimilar)} dissimilar (D), "
        f"{pairs.n_unlabeled} unlabeled (U)"
    )
    doubtful = [name for name in table.class_names if name.lower() in LOOK_UNKNOWN]
    if doubtful:
        alert(f"Note: {doubtful[0]!r} is read as a class; leave the cell empty if it is unknown.")
    if len(counts) == 1:
        alert("Note: only one class is known, so no pair is dissimilar.")


def report_alternation(run: Alternation) -> None:
    """Report the certificate of the metric that the alternation reached."""
    if run.metric is None:
        say("\nCertificate: none, since the M-step returned no metric.")
        return
    certificate = run.m_step.certificate
    if certificate is None or run.m_step.metric is not run.metric:  # the last answer was refused
        certificate = certify(run.objective, run.metric)
    say("\nCertificate of the last M-step, a convex program", style="bold")
    say(f"  primal value  {certificate.primal_value:.12g}")
    say(f"  dual value    {certificate.dual_value:.12g}")
    say(
        f"  duality gap   {certificate.duality_gap:.1e}  "
        f"(relative gap {certificate.relative_gap:.1e})"
    )
    say(
        "  In words: no metric can have an M-step objective below "
        f"{certificate.dual_value:.12g},\n  and this one is at most "
        f"{certificate.duality_gap:.1e} above. This is proved from the data, not taken\n"
        "  from the solver. It is about the last M-step: the alternation as a whole is\n"
        "  not convex."
    )
    if not np.any(run.metric):
        critical = run.objective.critical_trace_weight
        alert(
            "Note: the metric is zero, and every distance with it. The trace weight is "
            f"{run.objective.trace_weight:.4g}; "
            + (
                f"below {critical:.4g} the last M-step would not be zero."
                if critical > 0.0
                else "it would be zero without one, too: no pair is dissimilar."
            )
        )


def report_direct(solution: DirectSolution) -> None:
    """Report how near to a stationary point of (7) the descent ended."""
    say(
        f"Objective (7) fell from {solution.values[0]:.8g} to {solution.value:.8g} in "
        f"{solution.iterations} steps, {solution.seconds:.2f} seconds."
    )
    say(
        f"Certificate: none, since (7) is not convex. The metric is stationary to "
        f"{solution.stationarity:.1e}; a better one may exist."
    )
    if not solution.status.reached_tolerance:
        alert(f"Not certified: {solution.message} (Options: --max-iter, --tol.)")


def finish(status: Status, kept: list[str]) -> None:
    """Exit with code 1 unless the result is certified or stationary."""
    if not status.reached_tolerance:
        files = " and ".join(kept) or "nothing was written"
        alert(f"The status is {status.value}, not certified; {files}. Exit code 1.", style="red")
        raise typer.Exit(1)
