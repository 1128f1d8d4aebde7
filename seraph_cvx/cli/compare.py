"""`seraph-cvx compare` and `export`: race solvers on M-steps, and write these for others."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from ..display.result_table import ResultTable
from ..model.m_step_objective import MStepObjective
from ..pairs.pair_set import PairSet
from ..processes.whole_file import write_whole
from .files import TableError, check_output, files_by_name
from .main import DEBUG, app, argument, option
from .messages import (
    alert,
    alerts,
    answers_in_words,
    needs_matplotlib,
    say,
    show_table,
    steps_shown,
    written,
)
from .problems import read_problem
from .tables import read_table

if TYPE_CHECKING:
    from ..race.race_table import Race

Suite = Literal["tiny", "small", "medium", "large"]
ENDINGS = (".npz", ".csv", ".tsv", ".txt")


@app.command(
    epilog="""\b
Examples:
  seraph-cvx compare --suite small --solvers newton,SCS/dual --out race
  seraph-cvx compare portfolio.py:problem --solvers CLARABEL,SCS"""
)
def compare(
    problem: str | None = argument(
        None,
        "Instead of M-steps any convex problem of CVXPY that a Python file defines, or a file of a "
        "library. Of the options only --solvers, --time-limit and --memory-limit are for it.",
        metavar="[FILE.py:NAME|FILE]",
    ),
    suite: Suite = option(
        "small",
        "small: 16 instances, minutes. medium: 8 of 100 to 200 points, hours. large: 4 of 400 "
        "points or 256 features, hours. tiny: a trial.",
    ),
    instances: str | None = option(
        None,
        "Instead of a suite: comma-separated names of instances, or a folder of your own tables, "
        ".npz files with arrays X and y, or CSV files.",
        metavar="NAMES|FOLDER",
    ),
    label: str = option("y", "The label column of CSV files.", metavar="COLUMN"),
    solvers: str | None = option(
        None,
        "Comma-separated names: newton, SCS (both formulations), SCS/dual, UNO, or "
        "name=module:function for one of your own. By default all that are installed.",
    ),
    tol: str = option("1e-3,1e-5,1e-7", "Comma-separated tolerances to ask for."),
    time_limit: float | None = option(
        None,
        "Seconds per run. By default 5 (tiny), 10 (small), 60 (medium, and your own) or 300 "
        "(large).",
        min=0.1,
    ),
    repeats: int = option(1, "How often each run is made; each round in a random order.", min=1),
    memory_limit: float = option(4.0, "GiB of memory a run may take.", min=0.2),
    out: Path = option("race", "Where the rows, tables and pictures go.", metavar="DIR"),
    resume: bool = option(False, "Continue the race in DIR.", "--resume"),
    redraw: bool = option(
        False, "Write tables and pictures anew from race.jsonl in DIR; run nothing.", "--redraw"
    ),
    svg: bool = option(False, "Write all pictures as SVG, too.", "--svg"),
    debug: bool = DEBUG,
) -> None:
    """Race solvers on M-steps, or on a problem of yours: what each claims, and what is true.

    DIR gets race.jsonl (a line per finished run), race.md (tables) and the pictures.
    """
    with answers_in_words() as kept:
        from ..race.m_step_race import compare_solvers, read_race

        names = None if solvers is None else [name.strip() for name in solvers.split(",")]
        memory = int(memory_limit * 2**30)
        if solvers is not None and "=" in solvers:
            sys.path.insert(0, "")  # module:function is looked for in the working directory
        if problem is not None:
            from ..race.problem_race import compare_on_problem

            found, seconds = read_problem(problem), time_limit or 60.0
            with steps_shown() as progress:
                table = compare_on_problem(found, names, seconds, memory, None, progress)
            show_table(table.in_short(), "verdict")
            say("".join(f"\n{note}" for note in table.notes))
            return
        rows = out / "race.jsonl"
        if redraw:
            _write_report(out, read_race(rows), svg, "")
            return
        given, seconds = _chosen_instances(suite, instances, label)
        out.mkdir(parents=True, exist_ok=True)
        with progress_bar() as progress:
            kept.append(f"the rows so far are in {rows}; --resume continues from there")
            race = compare_solvers(
                given,
                names,
                tols=_numbers(tol),
                time_limit=seconds if time_limit is None else time_limit,
                memory_limit=memory,
                out=rows,
                resume=resume,
                callback=_listener(progress),
                repeats=repeats,
            )
        _write_report(out, race, svg, "race.jsonl, ")


def _chosen_instances(suite: str, instances: str | None, label: str) -> tuple[Any, float]:
    """What is raced on, and the seconds that a run has by default."""
    from ..race.suite import TIME_LIMITS, is_instance_name

    if instances is None:
        return suite, TIME_LIMITS[suite]
    names = [name.strip() for name in instances.split(",")]
    if all(map(is_instance_name, names)):
        return names, TIME_LIMITS["medium"]
    return read_instances(Path(instances), label), TIME_LIMITS["medium"]


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(
            f"--tol {text}: write comma-separated numbers, such as 1e-3,1e-6."
        ) from None


def read_instances(folder: Path, label_column: str = "y") -> dict[str, MStepObjective]:
    """The M-steps of a folder's tables, or .npz files of X, y, weights, by file name."""
    objectives: dict[str, MStepObjective] = {}
    for name, path in files_by_name(folder, "instances", ENDINGS).items():
        if path.suffix == ".npz":
            objectives[name] = _from_arrays(path)
        else:
            table = read_table(path, label_column)
            objectives[name] = MStepObjective(PairSet.from_labels(table.X, table.y))
    return objectives


def _from_arrays(path: Path) -> MStepObjective:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
    except (zipfile.BadZipFile, EOFError, OSError, ValueError, TypeError) as error:
        raise TableError(f"{path} is not a file of np.savez(..., X=X, y=y): {error}.") from error
    missing = [name for name in ("X", "y") if name not in arrays]
    if missing:
        raise TableError(
            f"{path} has no array {missing[0]!r}, only {', '.join(sorted(arrays)) or 'nothing'}: "
            "write it with np.savez(path, X=points, y=labels)."
        )
    names = arrays.keys() & {"trace_weight", "unlabeled_weight"}
    weights: dict[str, Any] = {name: arrays[name].tolist() for name in names}
    try:
        return MStepObjective(PairSet.from_labels(arrays["X"], arrays["y"]), **weights)
    except (ValueError, TypeError) as error:
        raise TableError(f"{path}: {error}") from error


def progress_bar() -> Progress:
    """A bar that counts what is done, on stderr; it is gone when all is done."""
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=alerts,
        transient=True,
    )
    bar.add_task("starting", total=None)
    return bar


def _listener(progress: Progress) -> Callable[[dict[str, Any], int, int], None]:
    def listen(row: dict[str, Any], number: int, total: int) -> None:
        from ..race.race_table import NOT_MADE, label_of

        run = f"{row['instance']}: {label_of(row)} at {row['tol']:g}: {row['outcome']}"
        progress.update(progress.task_ids[0], completed=number, total=total, description=run)
        if row["outcome"] not in ("done", *NOT_MADE):
            alert(f"{run} ({row['detail']})")

    return listen


# What a race leaves in its folder


def _write_report(out: Path, race: Race, svg: bool, before: str) -> None:
    """Show notes and summary of a race, and write its tables and pictures."""
    for note in race.notes:
        alert(note)
    show_table(race.summary())
    write_whole(out / "race.md", _document(race).encode())
    pictures = ""
    with needs_matplotlib("pictures"):
        from ..plots import draw_race
        from ..plots.style import picture_bytes

        for name, figure in draw_race(race).items():
            endings = ("svg",) if name == "work-precision-all" else ("png", "svg")[: 1 + svg]
            for ending in endings:
                content = picture_bytes(figure, ending, svg_fonts="none")
                write_whole(out / f"{name}.{ending}", content)
            pictures += "".join(f", {name}.{ending}" for ending in endings)
    say(f"\nWritten to {out}: {before}race.md{pictures}.")


def _document(race: Race) -> str:
    """Write the Markdown report: what raced, the summary, the times, the instances."""
    from ..race.statistics import entrant_table, load_of, ratio_table, time_table, tolerances

    versions = {name: number for start in race.races for name, number in start["versions"].items()}
    rows = [
        {
            "instance": name,
            "n": reference["n_points"],
            "m": reference["n_features"],
            "optimal value, at least": f"{reference['lower']:.12g}",
            "at most": f"{reference['upper']:.12g}",
            "checksum": reference["checksum"][:12],
        }
        for name, reference in race.references.items()
    ]
    instances = ResultTable("The instances, and their optimal values as certified", rows)
    tables = [race.summary(), entrant_table(race)]
    for tol in tolerances(race):
        tables += [time_table(race, tol), time_table(race, tol, merged=True)]
        tables.append(ratio_table(race, tol))
    written_tables = [table.to_markdown() for table in tables if table.rows]
    facts = {"repeats": max(row["repeat"] for row in race.rows), "load": load_of(race)}
    return (
        written(
            "race",
            races=race.races,
            versions=versions,
            tables=written_tables,
            instances=instances.to_markdown(),
            **facts,
        )
        + "\n\n"
    )


# Instances for other programs


@app.command(
    epilog="""\b
Examples:
  seraph-cvx export wine-n40-standard-hyper-w1-s0 --cbf wine.cbf
  seraph-cvx export portfolio.py:problem --cbf portfolio.cbf"""
)
def export(
    instance: str = argument(
        ...,
        "The name of an M-step, as in the table that compare prints; or a problem of CVXPY.",
        metavar="NAME|FILE.py:NAME|FILE",
    ),
    cbf: Path = option(..., "The file to write, ending in .cbf.", "--cbf", metavar="FILE"),
    formulation: Literal["primal", "dual"] = option(
        "primal", "Which of the two problems of an M-step; they have the same value."
    ),
    debug: bool = DEBUG,
) -> None:
    """Write a problem in the Conic Benchmark Format, with its proven value in a .json file."""
    with answers_in_words():
        from ..race.cbf import write_cbf
        from ..race.suite import InstanceSpec

        check_output(cbf, (".cbf",))
        is_ours = ":" not in instance and not Path(instance).is_file()
        given = InstanceSpec.parse(instance) if is_ours else read_problem(instance)
        sidecar = write_cbf(given, cbf, formulation)
        ends = (sidecar["lower"], sidecar["upper"])
        low, high = ("unknown" if end is None else f"{end:.12g}" for end in ends)
        say(
            f"Written: {instance}{f', {formulation}' * is_ours}, to {cbf}\n"
            f"Its optimal value lies in [{low}, {high}], proved; that and checksums are in "
            f"{cbf.with_suffix('.json')}"
        )
