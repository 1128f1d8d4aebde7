"""`seraph-cvx explain` and `bench`: the convex program explained, and measured."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..datasets import load_sampling
from ..display.formulas import DUAL
from ..display.result_table import ResultTable, show
from ..model.m_step_objective import MStepObjective
from ..pairs.pair_set import PairSet
from ..processes.whole_file import write_whole
from .defaults import DefaultsOptions, bench_and_report
from .main import Debug, app
from .report import alert, alerts, answers_in_words, say
from .tables.files import check_output

if TYPE_CHECKING:
    from ..experiments.bench.report import Report

Measurement = Callable[["Report"], ResultTable]


class Statement(StrEnum):
    """The problems that can be explained."""

    PRIMAL = "primal"
    DUAL = "dual"
    TEXTBOOK = "textbook"


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
    SIZE = "size"
    SAMPLING = "sampling"
    STARTUP = "startup"
    DEFAULTS = "defaults"


class Backend(StrEnum):
    """Where the sums over pairs are computed."""

    CPU = "cpu"
    CUDA = "cuda"
    DASK = "dask"


@app.command(epilog="Example:  seraph-cvx explain --statement dual --data wine")
def explain(
    statement: Annotated[
        Statement,
        typer.Option(help="primal: equation (11); dual: maximum entropy; textbook: as printed."),
    ] = Statement.PRIMAL,
    data: Annotated[
        str, typer.Option(help="iris, wine, breast_cancer, balance or digits.")
    ] = "iris",
    debug: Debug = False,
) -> None:
    """Show why the M-step is convex, rule by rule.

    Prints its expression tree, with the rule at each node.
    """
    with answers_in_words():
        from ..m_step.explain import explain_convexity
        from ..m_step.statement import state_m_step, textbook_statement

        sampling = load_sampling(data, n_points=30)
        objective = MStepObjective(PairSet.from_labels(sampling.X, sampling.y))
        problem = (
            textbook_statement(objective)
            if statement is Statement.TEXTBOOK
            else state_m_step(objective, statement.value)
        )
        say(f"The M-step (11) of {objective.pairs}, {statement.value}:\n")
        say(problem.format_labeled() if statement is not Statement.DUAL else _headline(problem))
        proof = explain_convexity(problem)
        say(f"\n{proof}\n")
        verdict = "is" if proof.holds else "could not be shown to be"
        say(f"So the problem {verdict} convex, by the rules of disciplined convex programming.")


BENCH_EXAMPLES = """\b
Examples:
  seraph-cvx bench m-step --time-limit 60 --markdown m-step.md
  seraph-cvx bench defaults --tables DIR --label species --draws 10"""


@app.command(epilog=BENCH_EXAMPLES)
def bench(
    section: Annotated[
        Section,
        typer.Argument(
            help="compile: stating and compiling (11). answers: what conic solvers claim, and what "
            "is true. overhead: time outside the solver. m-step: own solver against conic ones. "
            "fit: the whole alternation. kernel: one pass against bare products. scaling: passes "
            "against n and m. large: a fit of 5,000 points. path: a regularisation path, in cold "
            "solves. certificate: what a certificate costs. proof: what a proof costs. size: a fit "
            "against n, on this machine, a GPU or a cluster. sampling: the gap over all pairs of a "
            "fit to a few of them. startup: an import and --help, in imports of NumPy. defaults: "
            "the errors of SERAPH, its rivals and classifiers on data outside the paper."
        ),
    ],
    time_limit: Annotated[
        float, typer.Option(min=1.0, help="Seconds after which a conic run is stopped.")
    ] = 600.0,
    place: Annotated[Backend, typer.Option(help="For size: cpu, cuda or dask.")] = Backend.CPU,
    sizes: Annotated[
        str, typer.Option(help="For size: comma-separated numbers of points.")
    ] = "1000,3000,10000",
    unlabeled_pairs: Annotated[
        int | None, typer.Option(min=1, help="For size: the number of pairs drawn for the M-steps.")
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="For size on dask: the scheduler's address. By default two local processes."
        ),
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the tables as Markdown.")
    ] = None,
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the tables as JSON.")
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(help="For defaults: names, such as seraph,euclidean,itml; all by default."),
    ] = None,
    sets: Annotated[
        str | None,
        typer.Option(help="For defaults: names, such as glass,iris; all that are known."),
    ] = None,
    tables: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="For defaults: a folder of CSV tables, a set each."),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(help="For defaults: the label column of these tables; the last by default."),
    ] = None,
    labels: Annotated[str, typer.Option(help="For defaults: labels a class.")] = "2,3,5,10",
    draws: Annotated[int, typer.Option(min=1, help="For defaults: draws of each set.")] = 20,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="For defaults: where the results go.")
    ] = Path("defaults"),
    jobs: Annotated[
        int | None, typer.Option(help="For defaults: number of processes; -1: one per core.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="For defaults: continue from the runs in DIR.")
    ] = False,
    forget: Annotated[
        str | None,
        typer.Option(help="For defaults: methods whose runs in DIR are of an earlier state."),
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="For defaults: the folder of more.npz."),
    ] = None,
    debug: Debug = False,
) -> None:
    """Measure our speed, or how good the defaults are.

    Speed is measured as ratios within one run.

    Absolute times vary by machine. Each row is shown on stderr as soon as it is measured. After
    Ctrl-C the tables hold the rows measured so far, and say that they are incomplete; the runs of
    defaults are in DIR, and --resume goes on.
    """
    with answers_in_words() as kept:
        if section is Section.DEFAULTS:
            if markdown is not None or json is not None:
                raise ValueError("defaults writes its page and table to --out DIR, not elsewhere.")
            options = DefaultsOptions(
                methods=methods,
                sets=sets,
                labels=labels,
                draws=draws,
                tables=tables,
                label=label,
                data_dir=data_dir,
                jobs=jobs,
                resume=resume,
                forget=forget,
            )
            bench_and_report(options, out, kept)
            return
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
    from ..experiments.bench.report import Report

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
    from ..experiments.bench import conic as conic
    from ..experiments.bench import first_m_steps as first_m_steps
    from ..experiments.bench import passes as passes
    from ..experiments.bench import statement as statement
    from ..experiments.bench.path import bench_path
    from ..experiments.bench.proof import bench_certificate, bench_proof
    from ..experiments.bench.size import bench_sizes, bench_subsample
    from ..experiments.bench.startup import bench_startup

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
        Section.SIZE: [lambda report: bench_sizes(report, backend, sizes, 64, drawn, scheduler)],
        Section.SAMPLING: [bench_subsample],
        Section.STARTUP: [bench_startup],
    }
    return sections[section]


def _headline(problem: object) -> str:
    """Print the dual without the numbers of its matrix inequality."""
    text = problem.format_labeled()  # type: ignore[attr-defined]
    goal = str(text).partition("\nsubject to ")[0]
    return f"{goal}\nsubject to {DUAL.ascii.splitlines()[1]}"
