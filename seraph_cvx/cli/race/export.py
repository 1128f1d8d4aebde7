"""`seraph-cvx export`: writes instances for other programs, with their optimal values."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ..main import Debug, app
from ..report import answers_in_words, say
from ..tables.files import check_output
from .compare import Suite, progress_bar

EXAMPLES = """\b
Examples:
  seraph-cvx export wine-n40-standard-hyper-w1-s0 --cbf wine.cbf
  seraph-cvx export --suite full --out library"""


class Formulation(StrEnum):
    """The formulations that can be exported."""

    PRIMAL = "primal"
    DUAL = "dual"


@app.command(epilog=EXAMPLES)
def export(
    instance: Annotated[
        str | None, typer.Argument(help="Its name, as in the table that compare prints.")
    ] = None,
    cbf: Annotated[
        Path | None,
        typer.Option("--cbf", metavar="FILE", help="The file to write, ending in .cbf."),
    ] = None,
    formulation: Annotated[
        Formulation, typer.Option(help="Which of the two problems; they have the same value.")
    ] = Formulation.PRIMAL,
    suite: Annotated[
        Suite | None,
        typer.Option(
            help="Instead of one instance all of a suite; full is the library of 40 instances."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where a suite goes; one that is there is completed."),
    ] = None,
    debug: Debug = False,
) -> None:
    """Write M-steps with proven optimal values for other programs.

    One instance in the Conic Benchmark Format, with its certified value in a .json file.

    With --suite: every instance as .cbf, .npz and .json, with an interval of its optimal value that
    is proved in ball arithmetic, a README and checksums.
    """
    with answers_in_words() as kept:
        if suite is not None and out is not None and instance is None and cbf is None:
            _export_suite(suite, out, kept)
        elif instance is not None and cbf is not None and suite is None and out is None:
            _export_instance(instance, cbf, formulation)
        else:
            raise ValueError(
                "Give the name of an instance with --cbf FILE, or --suite full with --out DIR."
            )


def _export_instance(instance: str, cbf: Path, formulation: Formulation) -> None:
    from ...race.cbf import write_cbf
    from ...race.suite import InstanceSpec

    check_output(cbf, (".cbf",))
    sidecar = write_cbf(InstanceSpec.parse(instance), cbf, formulation.value)
    say(f"Written: {instance}, {formulation.value}, to {cbf}")
    say(f"Its optimal value lies in [{sidecar['lower']:.12g}, {sidecar['upper']:.12g}], proved")
    say(f"from the data; that, the spec and checksums are in {cbf.with_suffix('.json')}")


def _export_suite(suite: Suite, out: Path, kept: list[str]) -> None:
    from ...race.library.export import export_library

    count = [0, 0]
    with progress_bar() as progress:
        task = progress.add_task("starting", total=None)

        def tell(entry: dict[str, Any], number: int, total: int, made: bool) -> None:
            count[made] += 1
            kept[:] = [f"{number} instances are in {out}; the same command goes on from there"]
            progress.update(task, completed=number, total=total, description=entry["instance"])

        entries = export_library(out, suite.value, tell)
    size = sum(path.stat().st_size for path in out.iterdir() if path.is_file())
    widest = max(entry["relative_width"] for entry in entries)
    say(f"Written to {out}: {count[1]} instances; {count[0]} were there already.")
    say(f"Each optimal value is proved to a relative width of {widest:.1e} or less.")
    say(f"{size / 1e6:.1f} MB; README.md says how to read them, SHA256SUMS has the checksums.")
