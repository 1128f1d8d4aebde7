"""`seraph-cvx verify`: the paper's claims, checked on a data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..datasets import load_sampling
from ..display.result_table import ResultTable
from ..display.symbols import in_symbols
from ..processes.whole_file import write_whole
from .files import check_output
from .main import DEBUG, app, argument, option
from .messages import alert, answers_in_words, say, screen, show_table, tell

if TYPE_CHECKING:
    from ..theory.claim import Claim, ClaimResult
    from ..theory.verification import PaperReport

EXAMPLES = """\b
Examples:
  seraph-cvx verify
  seraph-cvx verify wine --html wine.html

\b
Exit codes:
  0 every verdict is as expected   1 a claim that should hold fails   2 an error"""


@app.command(epilog=EXAMPLES)
def verify(
    data: str = argument(
        "iris",
        "iris, wine, balance, breast_cancer (100 points, 10 labels each) or digits (30 labels).",
        metavar="iris|wine|...",
    ),
    everything: bool = option(False, "Also the claims about running times.", "--all"),
    code: bool = option(False, "Print the code that contradicts the paper.", "--code"),
    seed: int = option(0, "Seed of the points, labels and directions.", min=0),
    html: Path | None = option(None, "Write a page with formulas; works offline.", metavar="FILE"),
    debug: bool = DEBUG,
) -> None:
    """Check every claim of the paper on data.

    Reports which claims hold, and with what residual.
    """
    with answers_in_words():
        from ..theory.verification import CLAIMS, SLOW, verify_paper

        if html is not None:
            check_output(html, (".html",))
        n_labeled = 30 if data == "digits" else 10  # ten classes: ten labels leave no similar pair
        sampling = load_sampling(data, n_labeled=n_labeled, seed=seed)
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
                *(sampling.X, sampling.y),
                name=data,
                include_slow=everything,
                seed=seed,
                callback=tell,
            )
        _show(report)
        _show_contradictions(report, code)
        _show_end(report)
        if html is not None:
            write_whole(html, report.to_html().encode())
            say(f"Written: {html}")
        if not report.ok:
            alert("A claim does not have the expected verdict. Exit code 1.", style="red")
            raise typer.Exit(1)


def _show(report: PaperReport) -> None:
    """Print the verdict and the decisive numbers of each claim."""
    rows: list[dict[str, Any]] = [
        {"": claim.number, "claim": in_symbols(claim.name), "verdict": "skipped"}
        for claim in report.skipped
    ]
    for row in report.rows:
        name, verdict = row["name"], row["verdict"]
        if not row["as expected"]:
            name, verdict = f"{name}: {row['decisive check']}", f"{verdict} (unexpected)"
        numbers = {key: row[key] for key in ("fails by", "residual", "tolerance")}
        rows.append({"": row["claim"], "claim": in_symbols(name), "verdict": verdict} | numbers)
    rows.sort(key=lambda row: int(row[""]))
    show_table(ResultTable(report.description, rows), wrapped="claim")
    say(
        "Fails by: how far the numbers are from a claim that is false as printed. Residual: how "
        "far they are from the claim, or else from what holds instead of it, which is below; up "
        "to the tolerance it passes."
    )


def _show_contradictions(report: PaperReport, code: bool) -> None:
    """Show what the paper prints, what holds instead, and the numbers that prove it."""
    contradicted = [result for result in report.results if result.claim.correction]
    if contradicted:
        say("\nFalse as printed, and what holds instead", style="bold")
    for result in contradicted:
        claim, violation, recomputed = result.claim, result.violation, result.claim.recomputation
        heading = in_symbols(f"{claim.number}. {claim.name} ({claim.place})")
        say(f"\n{heading}", style="bold", hang=len(f"{claim.number}. "))
        tell("contradiction", hang=12, claim=claim, violation=violation)
        if recomputed is not None:
            if code:
                say(f"\n{recomputed.code}")
            say(f"   recomputed  {recomputed.prints.strip()}", hang=12)


def _show_end(report: PaperReport) -> None:
    """Show what was not decided, what was skipped, and how long it took."""
    for result in report.results:
        if result.message:
            alert(f"Claim {result.claim.number} could not be decided: {result.message}")
    skipped = [f"{claim.number}. {in_symbols(claim.name)}" for claim in report.skipped]
    if skipped:
        say(f"\nSkipped, because slow (--all checks it too): {', '.join(skipped)}")
    say(f"\n{len(report.results)} claims in {report.seconds:.1f} seconds.")
