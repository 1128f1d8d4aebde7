"""How fast we are, as ratios within one run.

Example:  python examples/reproduction/bench.py m-step --time-limit 60 --markdown m-step.md
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from evidence.files import program

from seraph_cvx.cli.main import DEBUG
from seraph_cvx.cli.report import alert, alerts, answers_in_words, say
from seraph_cvx.cli.tables import check_output
from seraph_cvx.display.result_table import ResultTable, show
from seraph_cvx.processes.whole_file import write_whole

if TYPE_CHECKING:
    from evidence.bench.report import Report

Measurement = Callable[["Report"], ResultTable]


class Section(StrEnum):
    """The measurements that can be made."""

    COMPILE = "compile"
    ANSWERS = "answers"
    OVERHEAD = "overhead"
    M_STEP = "m-step"
    FIT = "fit"
    KERNEL = "kernel"
    SCALING = "scaling"
    LARGE = "large"
    PATH = "path"
    CERTIFICATE = "certificate"
    PROOF = "proof"
    PASSES = "passes"
    SIZE = "size"
    SAMPLING = "sampling"
    STARTUP = "startup"


class Backend(StrEnum):
    """Where the sums over pairs are computed."""

    CPU = "cpu"
    CUDA = "cuda"
    DASK = "dask"


app = program()


@app.command(epilog=str(__doc__).rpartition("\n\n")[2])
def bench(
    section: Annotated[
        Section,
        typer.Argument(
            help="compile: stating and compiling (11). answers: what conic solvers claim, and what "
            "is true. overhead: time outside the solver. m-step: own solver against conic ones. "
            "fit: the whole alternation. kernel: one pass against bare products. scaling: passes "
            "against n and m. large: a fit of 5,000 points. path: a regularization path, in cold "
            "solves. certificate: what a certificate costs. proof: what a proof costs. passes: "
            "what fits are made of, on this machine or a GPU, and how much of their time that is. "
            "size: a fit against n, on this machine, a GPU or a cluster. sampling: the gap over "
            "all pairs of a fit to a few of them. startup: an import, --help and the explorer, in "
            "imports of NumPy."
        ),
    ],
    time_limit: Annotated[
        float, typer.Option(min=1.0, help="Seconds after which a conic run is stopped.")
    ] = 600.0,
    markdown: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the tables as Markdown."),
    ] = None,
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the tables as JSON.")
    ] = None,
    place: Annotated[
        Backend, typer.Option(help="Of passes and size: cpu, cuda or dask.")
    ] = Backend.CPU,
    sizes: Annotated[
        str,
        typer.Option(help="Of passes and size: numbers of points, with commas between."),
    ] = "1000,3000,10000",
    unlabeled_pairs: Annotated[
        int | None,
        typer.Option(min=1, help="Of size: the number of pairs drawn for the M-steps."),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="Of size with dask: the scheduler's address; by default two local processes.",
        ),
    ] = None,
    debug: bool = DEBUG,
) -> None:
    """Measure our speed, as ratios within one run.

    Absolute times vary by machine. Each row is shown on stderr as soon as it is measured. After
    Ctrl-C the tables hold the rows measured so far, and say that they are incomplete.
    """
    with answers_in_words() as kept:
        for path, ending in ((markdown, ".md"), (json, ".json")):
            if path is not None:
                check_output(path, (ending,))
        measured: list[ResultTable] = []
        try:
            size = (place.value, _numbers(sizes), unlabeled_pairs, scheduler)
            for measure in _measurements(section, time_limit, size):
                _measure(measure, measured)
        finally:
            _write_tables(measured, markdown, json, kept)
        for words in kept:
            alert(words, style="dim")


def _measure(measure: Measurement, tables: list[ResultTable]) -> None:
    """Make a measurement, then print and keep its table, also if it was interrupted."""
    from evidence.bench.report import Report

    with alerts.status("measuring") as status:
        report = Report(
            tell=lambda text: status.update(f"measuring: {text}"),
            show=lambda row: alert(", ".join(f"{k} {show(v)}" for k, v in row.items()), "dim"),
        )
        try:
            measure(report)
        finally:
            status.stop()
            table = report.table()
            if table.rows:
                tables.append(table)
                say("\n" + table.to_markdown())


def _write_tables(
    tables: list[ResultTable], markdown: Path | None, json: Path | None, kept: list[str]
) -> None:
    if not tables:
        return
    if markdown is not None:
        text = "\n\n".join(table.to_markdown() for table in tables) + "\n"
        write_whole(markdown, text.encode())
        kept.append(f"the tables are in {markdown}")
    if json is not None:
        text = "[" + ",\n".join(table.to_json() for table in tables) + "]\n"
        write_whole(json, text.encode())
        kept.append(f"the tables are in {json}")


def _numbers(text: str) -> list[int]:
    try:
        numbers = [int(word) for word in text.split(",")]
    except ValueError:
        raise ValueError(f"--sizes {text!r}: write integers, such as 1000,10000.") from None
    if min(numbers) < 200:
        raise ValueError(f"--sizes {min(numbers)}: ten classes of ten labels need 200 points.")
    return numbers


def _measurements(
    section: Section, limit: float, size: tuple[str, list[int], int | None, str | None]
) -> list[Measurement]:
    from evidence.bench import conic as conic
    from evidence.bench import first_m_steps as first_m_steps
    from evidence.bench import passes as passes
    from evidence.bench import statement as statement
    from evidence.bench.parts import bench_face, bench_shares
    from evidence.bench.path import bench_path
    from evidence.bench.proof import bench_certificate, bench_proof
    from evidence.bench.size import bench_sizes, bench_subsample
    from evidence.bench.startup import bench_startup

    backend, sizes, drawn, scheduler = size
    sections: dict[Section, list[Measurement]] = {
        Section.COMPILE: [lambda report: statement.bench_compilation(report, time_limit=limit)],
        Section.ANSWERS: [lambda report: statement.bench_answers(report, time_limit=limit)],
        Section.OVERHEAD: [statement.bench_overhead],
        Section.M_STEP: [
            lambda report: first_m_steps.bench_first_m_steps(report, time_limit=limit)
        ],
        Section.FIT: [lambda report: conic.bench_whole_fit(report, time_limit=limit)],
        Section.KERNEL: [passes.bench_kernel],
        Section.SCALING: [passes.bench_scaling, passes.bench_dimension],
        Section.LARGE: [passes.bench_large_fit],
        Section.PATH: [bench_path],
        Section.CERTIFICATE: [bench_certificate],
        Section.PROOF: [bench_proof],
        Section.PASSES: [
            lambda report: bench_face(report, backend, sizes),
            lambda report: bench_shares(report, backend, sizes),
        ],
        Section.SIZE: [lambda report: bench_sizes(report, backend, sizes, 64, drawn, scheduler)],
        Section.SAMPLING: [bench_subsample],
        Section.STARTUP: [bench_startup],
    }
    return sections[section]


if __name__ == "__main__":
    app()
