"""What the `seraph-cvx` command says and draws: the only place of the package that prints."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import numpy as np
import typer
from rich.console import Console

from ..alternation import Alternation, Iteration
from ..certificate import certify
from ..checks import UNKNOWN, FloatArray
from ..direct import DirectSolution
from ..m_step.solution import NotCertified, Status
from ..pairs import PairSet
from ..psd_cone import factor, numerical_rank
from .user_table import UserTable, write_whole

screen = Console(markup=False, emoji=False, highlight=False)
alerts = Console(markup=False, emoji=False, highlight=False, stderr=True)
History = Sequence[Iteration] | Sequence[float]
LOOK_UNKNOWN = {"-1", "?", "na", "n/a", "nan", "none", "null", "unknown"}


def say(text: str, style: str | None = None, console: Console = screen) -> None:
    """Print a result, wrapped at words in a terminal and nowhere in a file or pipe."""
    console.print(text, style=style, soft_wrap=not console.is_terminal)


def alert(text: str, style: str = "yellow") -> None:
    """Print something that is not a result, to stderr."""
    say(text, style, alerts)


class Progress:
    """Prints each iteration as it happens, and remembers the last one."""

    metric: FloatArray | None = None
    number = 0

    def __call__(self, step: Iteration, metric: FloatArray) -> None:
        if self.metric is None:
            titles = ("iter", "J", "objective (7)", "M-step gap", "rank", "trace", "seconds")
            say("{:>4} {:>15} {:>15} {:>11} {:>5} {:>10} {:>8}".format(*titles), style="bold")
        self.metric, self.number = metric, step.number
        say(
            f"{step.number:>4} {step.descent_value:>15.8f} {step.paper_objective:>15.8f} "
            f"{step.relative_gap:>11.1e} {step.rank:>5} {step.trace:>10.4g} {step.seconds:>8.2f}"
        )


def describe(table: UserTable, pairs: PairSet, name: str) -> None:
    """Say what the data are, and how many pairs are similar, dissimilar and unlabeled."""
    n, m = table.X.shape
    counts = [int(np.sum(table.y == k)) for k in range(len(table.class_names))]
    classes = ", ".join(f"{c} ({k})" for c, k in zip(table.class_names[:8], counts, strict=False))
    say(f"Data   {name}")
    say(f"       {n} points, {m} features, {len(counts)} classes, {sum(counts)} labeled")
    say(f"       labels: {classes}{', ...' if len(counts) > 8 else ''}")
    say(
        f"Pairs  {len(pairs.similar)} similar (S), {len(pairs.dissimilar)} dissimilar (D), "
        f"{pairs.n_unlabeled} unlabeled (U)"
    )
    doubtful = [name for name in table.class_names if name.lower() in LOOK_UNKNOWN]
    if doubtful:
        alert(f"Note: {doubtful[0]!r} is taken for a class; an unknown label is an empty cell.")
    if len(counts) == 1:
        alert("Note: only one class is known, so nothing is to be kept apart.")


def report_alternation(run: Alternation) -> None:
    """Say what is certified of the metric that the alternation reached."""
    if run.metric is None:
        say("\nCertificate: none, for the M-step returned no metric.")
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
        alert(
            "Note: the metric is zero, and every distance with it. The trace weight is "
            f"{run.objective.trace_weight:.4g}; below {run.objective.critical_trace_weight:.4g} "
            "the last M-step would not be zero."
        )


def report_direct(solution: DirectSolution, tol: float) -> None:
    """Say how near to a stationary point of (7) the projected gradient ended."""
    say(
        f"Objective (7) fell from {solution.values[0]:.8g} to {solution.value:.8g} in "
        f"{solution.iterations} steps, {solution.seconds:.2f} seconds."
    )
    say(
        f"Certificate: none, for (7) is not convex. The metric is stationary to "
        f"{solution.stationarity:.1e}; a better one may exist."
    )
    if solution.status is not Status.CERTIFIED:
        alert(
            f"Not certified: stationarity {solution.stationarity:.1e} where {tol:.1e} was asked "
            "for. Raise --max-iter or --tol."
        )


def report_metric(
    table: UserTable,
    metric: FloatArray,
    X_test: FloatArray | None = None,
    y_test: FloatArray | None = None,
) -> None:
    """Say the rank, and the 1-NN error: of test points, or of the labeled ones, each left out."""
    m, rank = len(metric), numerical_rank(metric)
    say(f"\nRank {rank} of {m}: the metric measures along {rank} of {m} directions.")
    if not np.any(metric) or len(table.class_names) < 2:
        return
    known = table.y != UNKNOWN
    X, y = table.X[known], table.y[known]
    learned, euclidean = (
        _one_nn_error(X @ L.T, y, None if X_test is None else X_test @ L.T, y_test)
        for L in (factor(metric), np.eye(m))
    )
    if y_test is not None:
        n = len(y_test)
        say(f"1-NN test error on {n} other points, by the nearest of the {len(y)} labeled ones")
    else:
        say(f"1-NN leave-one-out error on the {len(y)} labeled points, whose labels were used")
    say(f"  learned metric      {learned:.1%}")
    say(f"  Euclidean distance  {euclidean:.1%}")


def _one_nn_error(
    X: FloatArray,
    y: FloatArray,
    X_test: FloatArray | None = None,
    y_test: FloatArray | None = None,
) -> float:
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=1).fit(X)
    nearest = search.kneighbors(X_test, return_distance=False)[:, 0]
    return float(np.mean(y[nearest] != (y if y_test is None else y_test)))


def draw(
    path: Path,
    table: UserTable,
    metric: FloatArray,
    history: History,
    title: str,
    kept: list[str],
) -> None:
    """Write the picture of a fit, or say why there is none."""
    try:
        from ..plots import plot_fit
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        alert('No picture: matplotlib is not installed. Run  pip install "seraph-cvx[plot]"')
        return
    names = table.class_names
    figure = plot_fit(table.X, table.y, factor(metric), history, title=title, class_names=names)
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix[1:])
    write_whole(path, content.getvalue())
    kept.append(f"the picture is in {path}")
    say(f"Written: the picture (points before and after, J by iteration), to {path}")


def finish(status: Status, kept: list[str]) -> None:
    """Exit with code 1 unless the result is what was asked for."""
    if status is not Status.CERTIFIED:
        files = " and ".join(kept) or "nothing was written"
        alert(f"The status is {status.value}, not certified; {files}. Exit code 1.", style="red")
        raise typer.Exit(1)


@contextmanager
def answers_in_words(debug: bool = False) -> Iterator[list[str]]:
    """Turn errors, warnings and Ctrl-C into sentences on stderr; yields the list of what is kept.

    The exit code is 2 for input that cannot be served and 130 for Ctrl-C.
    """
    kept: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always", NotCertified)
        warnings.showwarning = _show_warning
        try:
            yield kept
        except KeyboardInterrupt:
            alert(f"Interrupted: {' and '.join(kept) or 'nothing was written'}.")
            raise typer.Exit(130) from None
        except BrokenPipeError:
            raise
        except (ValueError, TypeError, OSError, MemoryError) as error:
            if debug:
                raise
            words = str(error) or type(error).__name__
            if isinstance(error, OSError) and error.filename:
                words = f"{error.strerror}: {error.filename}"
            alert(" ".join([f"Error: {words}", *getattr(error, "__notes__", [])]), style="red")
            raise typer.Exit(2) from None


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    if issubclass(category, NotCertified):
        alert(f"Not certified: {message} (Here: --max-iter, --tol, --solver.)")
    else:
        alert(f"Warning ({category.__name__}): {message}")
