"""`seraph-cvx compare` and `export`: race solvers, and write problems for other programs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from ..display.result_table import ResultTable, visible
from ..processes.whole_file import write_whole
from .files import check_output
from .main import DEBUG, app, argument, option
from .messages import (
    alert,
    alerts,
    answers_in_words,
    needs_matplotlib,
    say,
    show_table,
    written,
)
from .problems import read_problem

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
        "library. No tolerance is asked for by default, and DIR gets the rows alone.",
        metavar="[FILE.py:NAME|FILE]",
    ),
    suite: Suite = option(
        "small",
        "small: 16 instances, minutes. medium: 8 of 100 to 200 points, hours. large: 4 of 400 "
        "points or 256 features, hours. tiny: a trial.",
    ),
    instances: str | None = option(
        None, "Instead of a suite: comma-separated names of instances.", metavar="NAMES"
    ),
    solvers: str | None = option(
        None,
        "Comma-separated names: newton, SCS (both formulations), SCS/dual, UNO, or "
        "name=module:function for one of your own. By default all that are installed.",
    ),
    tol: str | None = option(
        None, "Comma-separated tolerances to ask for; of M-steps by default 1e-3,1e-5,1e-7."
    ),
    time_limit: float | None = option(
        None,
        "Seconds per run. By default 5 (tiny), 10 (small), 60 (medium, and your own) or 300 "
        "(large).",
        min=0.1,
    ),
    repeats: int = option(1, "How often each run is made; each round in a random order.", min=1),
    memory_limit: float = option(4.0, "GiB of memory a run may take.", min=0.2),
    out: Path | None = option(
        None, "Where the rows, tables and picture go; of M-steps by default race.", metavar="DIR"
    ),
    resume: bool = option(False, "Continue the race in DIR.", "--resume"),
    redraw: bool = option(
        False, "Write tables and picture anew from race.jsonl in DIR; run nothing.", "--redraw"
    ),
    debug: bool = DEBUG,
) -> None:
    """Race solvers on M-steps, or on a problem of yours: what each claims, and what is true.

    DIR gets race.jsonl (a line per finished run), race.md (tables) and a picture.
    """
    with answers_in_words() as kept:
        from ..race.compare import compare_solvers, read_race
        from ..race.suite import TIME_LIMITS

        folder = Path("race") if out is None and problem is None else out
        rows = None if folder is None else folder / "race.jsonl"
        if redraw and folder is not None and rows is not None:
            _write_report(folder, read_race(rows))
            return
        if solvers is not None and "=" in solvers:
            sys.path.insert(0, "")  # module:function is looked for in the working directory
        given = _names(instances) or suite if problem is None else read_problem(problem)
        seconds = TIME_LIMITS.get(given, 60.0) if isinstance(given, str) else 60.0
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            kept.append(f"the rows so far are in {rows}; --resume continues from there")
        with progress_bar() as bar:
            race = compare_solvers(
                given,
                _names(solvers),
                tols=None if tol is None else _numbers(tol),
                time_limit=seconds if time_limit is None else time_limit,
                memory_limit=int(memory_limit * 2**30),
                out=rows,
                resume=resume,
                callback=_listener(bar),
                repeats=repeats,
                progress=lambda step: bar.update(bar.task_ids[0], description=visible(step)),
            )
        if folder is None or problem is not None:
            short = race.in_short()
            show_table(short, "verdict")
            say("".join(f"\n{note}" for note in short.notes))
        else:
            _write_report(folder, race)


def _names(text: str | None) -> list[str] | None:
    """Names with commas between them."""
    return None if text is None else [name.strip() for name in text.split(",")]


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(
            f"--tol {text}: write comma-separated numbers, such as 1e-3,1e-6."
        ) from None


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
        from ..race.race_table import NOT_MADE, asked, label_of

        run = f"{row['instance']}: {label_of(row)} at {asked(row)}: {row['outcome']}"
        progress.update(progress.task_ids[0], completed=number, total=total, description=run)
        if row["outcome"] not in ("done", *NOT_MADE):
            alert(f"{run} ({row['detail']})")

    return listen


# What a race leaves in its folder


def _write_report(out: Path, race: Race) -> None:
    """Show notes and summary of a race, and write its tables and its picture."""
    for note in race.notes:
        alert(note)
    show_table(race.summary())
    write_whole(out / "race.md", _document(race).encode())
    picture = ""
    with needs_matplotlib("pictures"):
        from ..plots import ClaimsDisplay
        from ..plots.style import picture_bytes

        figure, picture = ClaimsDisplay.from_result(race).draw(), ", said-against-true.png"
        write_whole(out / "said-against-true.png", picture_bytes(figure, "png"))
    say(f"\nWritten to {out}, beside race.jsonl: race.md{picture}.")


def _document(race: Race) -> str:
    """Write the Markdown report: what raced, the summary, the times, the instances."""
    from ..race.statistics import load_of, time_table

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
    tables = [race.summary()]
    tables += [time_table(race, tol) for tol in dict.fromkeys(row["tol"] for row in race.rows)]
    return (
        written(
            "race",
            races=race.races,
            versions=versions,
            tables=[table.to_markdown() for table in tables if table.rows],
            instances=instances.to_markdown(),
            repeats=max(row["repeat"] for row in race.rows),
            load=load_of(race),
        )
        + "\n\n"
    )


# Problems for other programs


@app.command(
    epilog="""\b
Examples:
  seraph-cvx export portfolio.py:problem --cbf portfolio.cbf
  seraph-cvx export wine-n40-standard-hyper-w1-s0 --cbf wine.cbf"""
)
def export(
    problem: str = argument(
        ...,
        "A problem of CVXPY; or the name of an M-step, as in the table that compare writes.",
        metavar="FILE.py:NAME|FILE|NAME",
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
        is_m_step = ":" not in problem and not Path(problem).is_file()
        given = InstanceSpec.parse(problem) if is_m_step else read_problem(problem)
        sidecar = write_cbf(given, cbf, formulation)
        ends = (sidecar["lower"], sidecar["upper"])
        low, high = ("unknown" if end is None else str(end) for end in ends)
        say(
            f"Written: {problem}{f', {formulation}' * is_m_step}, to {cbf}\n"
            f"Its optimal value lies in [{low}, {high}], proved; that and checksums are in "
            f"{cbf.with_suffix('.json')}"
        )
