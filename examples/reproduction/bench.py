"""How fast we are, as ratios within one run.

Example:  python examples/reproduction/bench.py m-step --time-limit 60 --markdown m-step.md
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from evidence import m_steps, many_points, passes
from evidence.files import program, split_numbers
from evidence.measuring import MeasuredRows, Report

from seraph_cvx.cli.files import check_output
from seraph_cvx.cli.main import DEBUG
from seraph_cvx.cli.messages import alert, alerts, answers_in_words, say
from seraph_cvx.display.result_table import ResultTable, show
from seraph_cvx.processes.whole_file import write_whole


def _later(module: str, name: str) -> Callable[..., MeasuredRows]:
    """A measurement whose file needs python-flint or pytest, imported when it is asked for."""

    def measurement(report: Report, **options: Any) -> MeasuredRows:
        bench = getattr(import_module(f"evidence.{module}"), name)
        yield from bench(report, **options)

    return measurement


SECTIONS: dict[str, list[Callable[..., MeasuredRows]]] = {
    "m-step": [m_steps.bench_first_m_steps],
    "certificate": [m_steps.bench_certificate],
    "passes": [passes.bench_face],
    "size": [passes.bench_sizes],
    "many-points": [many_points.bench_many_points],
    "cvxpy-suite": [
        _later("cvxpy_suite", "bench_suite_by_cone"),
        _later("cvxpy_suite", "bench_suite_by_reason"),
    ],
}
"""The measurements of each section."""

TIMED = ("m-step", "cvxpy-suite")
"""The sections whose conic runs, or proofs, are stopped."""

Section = StrEnum("Section", list(SECTIONS))
Backend = StrEnum("Backend", ["cpu", "cuda"])

app = program()


@app.command(epilog=str(__doc__).rpartition("\n\n")[2])
def bench(
    section: Section = typer.Argument(
        ...,
        help="m-step: own solver against others. certificate: what a certificate costs. "
        "passes: what fits are made of, on this machine or a GPU. size: a fit against n, on this "
        "machine or a GPU. many-points: what unlabeled pairs are worth on ten "
        "sets of thousands of points. cvxpy-suite: the problems that CVXPY's own tests solve, "
        "certified.",
    ),
    time_limit: float = typer.Option(
        600.0, min=1.0, help="Seconds after which a conic run is stopped."
    ),
    markdown: Path | None = typer.Option(
        None, metavar="FILE", help="Also write the tables as Markdown."
    ),
    place: Backend = typer.Option(Backend.cpu, help="Of passes and size: cpu or cuda."),
    sizes: str = typer.Option(
        "1000,3000,10000",
        help="Of passes and size: numbers of points, with commas between.",
    ),
    debug: bool = DEBUG,
) -> None:
    """Measure our speed, as ratios within one run.

    Absolute times vary by machine. Each row is shown on stderr as soon as it is measured. After
    Ctrl-C the tables hold the rows measured so far, and say that they are incomplete.
    """
    with answers_in_words() as kept:
        if markdown is not None:
            check_output(markdown, (".md",))
        numbers = split_numbers(sizes, "--sizes", "1000,10000")
        if min(numbers) < 200:
            raise ValueError(f"--sizes {min(numbers)}: ten classes of ten labels need 200 points.")
        options: dict[str, Any] = {"time_limit": time_limit} if section in TIMED else {}
        if section in ("passes", "size"):
            options = {"backend": place.value, "sizes": numbers}
        tables: list[ResultTable] = []
        try:
            for measurement in SECTIONS[section]:
                _measure(measurement, options, tables)
        finally:
            if tables and markdown is not None:
                pages = "\n\n".join(table.to_markdown() for table in tables) + "\n"
                write_whole(markdown, pages.encode())
                kept.append(f"the tables are in {markdown}")
        for words in kept:
            alert(words, style="dim")


def _measure(measurement: Callable[..., Any], options: dict[str, Any], tables: list[Any]) -> None:
    """Make a measurement, then print and keep its table, also if it was interrupted."""
    with alerts.status("measuring") as status:
        report = Report(
            tell=lambda text: status.update(f"measuring: {text}"),
            show=lambda row: alert(", ".join(f"{k} {show(v)}" for k, v in row.items()), "dim"),
        )
        try:
            report.measure(measurement, **options)
        finally:
            status.stop()
            table = report.table()
            if table.rows:
                tables.append(table)
                say("\n" + table.to_markdown())


if __name__ == "__main__":
    app()
