"""`seraph-cvx verify`: the paper's claims, checked on a data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..datasets import load_sampling
from ..display.result_table import visible
from ..display.symbols import in_symbols
from ..processes.whole_file import write_whole
from .main import Debug, app
from .report import alert, answers_in_words, say, screen
from .tables.files import TableError, check_output
from .tables.user_table import read_table
from .tables.workload import require_memory_for_pairs

if TYPE_CHECKING:
    from ..theory.claim import Claim, ClaimResult
    from ..theory.paper_report import PaperReport

TABLES = (".csv", ".tsv", ".txt")
EXAMPLES = """\b
Examples:
  seraph-cvx verify
  seraph-cvx verify wine --html wine.html
  seraph-cvx verify flowers.csv --label species --json flowers.json

\b
Exit codes:
  0 every verdict is as expected   1 a claim that should hold fails   2 an error"""


@app.command(epilog=EXAMPLES)
def verify(
    data: Annotated[
        str,
        typer.Argument(
            metavar="iris|wine|FILE.csv",
            help="iris, wine, balance, breast_cancer (100 points, 10 labels each) or digits, or a "
            "table as for fit.",
        ),
    ] = "iris",
    label: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column of class labels, for a table."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also the claims about running times.")
    ] = False,
    code: Annotated[
        bool, typer.Option("--code", help="Print the ten lines that contradict the paper.")
    ] = False,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the points, labels and directions.")
    ] = 0,
    json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write everything as JSON.")
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a page with formulas and figures; works offline."),
    ] = None,
    debug: Debug = False,
) -> None:
    """Check every claim of the paper on data.

    Reports which claims hold, and with what residual.
    """
    with answers_in_words():
        from ..theory.report import CLAIMS, SLOW, verify_paper

        for path, ending in ((json, ".json"), (html, ".html")):
            if path is not None:
                check_output(path, (ending,), Path(data))
        X, y, name = _read(data, label, seed)
        total = len(CLAIMS) - (0 if everything else len(SLOW))
        done: list[ClaimResult] = []
        with screen.status("reading") as status:

            def tell(claim: Claim, result: ClaimResult | None) -> None:
                if result is None:
                    status.update(f"{len(done) + 1} of {total}: {in_symbols(claim.name)}")
                    return
                done.append(result)
                if not result.as_expected:
                    alert(f"Not as expected: claim {claim.number}, {result.verdict.value}.", "red")

            report = verify_paper(
                X, y, name=name, include_slow=everything, seed=seed, callback=tell
            )
        _show(report)
        _show_contradictions(report, code)
        _show_end(report)
        for path, text in ((json, report.to_json), (html, report.to_html)):
            if path is not None:
                write_whole(path, text().encode())
                say(f"Written: {path}")
        if not report.ok:
            alert("A claim does not have the expected verdict. Exit code 1.", style="red")
            raise typer.Exit(1)


def _read(data: str, label: str | None, seed: int) -> tuple[Any, Any, str]:
    """Read X, y and the name of a data set, or of a user's table."""
    path = Path(data)
    if path.suffix not in TABLES and not path.exists():
        if label is not None:
            raise TableError(f"--label needs a table, and {data!r} is not a file.")
        n_labeled = 30 if data == "digits" else 10  # ten classes: ten labels leave no similar pair
        sampling = load_sampling(data, n_labeled=n_labeled, seed=seed)
        return sampling.X, sampling.y, data
    if label is None:
        raise TableError(f"{path} needs --label COLUMN: the name of its column of class labels.")
    table = read_table(path, label)
    require_memory_for_pairs(table.y)
    return table.X, table.y, path.name


def _show(report: PaperReport) -> None:
    from rich.table import Table

    colors = {"holds": "green", "holds as corrected": "yellow", "refuted": "magenta"}
    wide = screen.width >= 120
    table = Table(title=visible(report.description), title_justify="left")
    table.add_column("", justify="right")
    table.add_column("claim")
    table.add_column("verdict", no_wrap=True)
    table.add_column("residual", justify="right", no_wrap=True)
    table.add_column("tolerance", justify="right", no_wrap=True)
    if wide:
        table.add_column("decisive check")
    rows = {c.number: ([in_symbols(c.name), "skipped", "", ""], "dim") for c in report.skipped}
    for row in report.rows:
        color = colors.get(row["verdict"], "red") if row["as expected"] else "red"
        verdict = row["verdict"] if row["as expected"] else f"{row['verdict']} (unexpected)"
        name, check = in_symbols(row["name"]), in_symbols(row["decisive check"])
        cells = [
            name if row["as expected"] else f"{name}: {check}",
            verdict,
            f"{row['residual']:.1e}",
            f"{row['tolerance']:.0e}",
            *([check] if wide else []),
        ]
        rows[row["claim"]] = (cells, color)
    for number, (cells, color) in sorted(rows.items()):
        table.add_row(str(number), *cells, style=color)
    screen.print(table)
    say(
        "Residual: how far the numbers are from the claim, of the check nearest to failing; up to "
        "the tolerance it passes. Where a claim is false as printed, it is that of what holds "
        "instead."
    )


def _show_contradictions(report: PaperReport, code: bool) -> None:
    """Show what the paper prints, what holds instead, and the numbers that prove it."""
    from ..display.mathml import to_text

    contradicted = [result for result in report.results if result.claim.correction]
    if contradicted:
        say("\nFalse as printed, and what holds instead", style="bold")
    for result in contradicted:
        claim, violation = result.claim, result.violation
        heading = in_symbols(f"{claim.number}. {claim.name} ({claim.place})")
        say(f"\n{heading}", style="bold", hang=len(f"{claim.number}. "))
        _say_part("claim", in_symbols(claim.statement))
        _say_part("formula", to_text(claim.formula))
        if violation is not None:
            _say_part("fails", f"{in_symbols(violation.name)}, {violation.residual:.4g}")
        _say_part("holds", in_symbols(claim.correction))
        if claim.consequence:
            _say_part("for you", in_symbols(claim.consequence))
        if claim.recomputation is not None:
            if code:
                say("\n" + claim.recomputation.code)
            _say_part("recomputed", claim.recomputation.prints.strip())


def _say_part(name: str, text: str) -> None:
    """Say a part of a contradiction, its name in a column of its own."""
    say(f"   {name:<11} {text}", hang=12)


def _show_end(report: PaperReport) -> None:
    """Show what was not decided, what was skipped, and how long it took."""
    for result in report.results:
        if result.message:
            alert(f"Claim {result.claim.number} could not be decided: {result.message}")
    skipped = [f"{claim.number}. {in_symbols(claim.name)}" for claim in report.skipped]
    if skipped:
        say(f"\nSkipped, because slow (--all checks it too): {', '.join(skipped)}")
    say(f"\n{len(report.results)} claims in {report.seconds:.1f} seconds.")
