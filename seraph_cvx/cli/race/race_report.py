"""What `seraph-cvx compare` leaves in its folder: the tables of a race, and its pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ...display.result_table import ResultTable
from ...processes.whole_file import write_whole
from ..report import alert

if TYPE_CHECKING:
    from ...race.race_table import Race


def write_report(out: Path, race: Race, svg: bool = False) -> str:
    """Write race.md and the pictures of a race, and say in words what was written."""
    write_whole(out / "race.md", _document(race).encode())
    return f"race.md{_draw(out, race, ('png', 'svg') if svg else ('png',))}"


def _document(race: Race) -> str:
    """Write the Markdown report: what raced, the summary, the instances."""
    starts = race.races
    known = {name: number for start in starts for name, number in start["versions"].items()}
    versions = ", ".join(f"{name} {number}" for name, number in known.items())
    dates = list(dict.fromkeys([starts[0]["date"], starts[-1]["date"]]))
    intervals = [
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
    facts = (
        f"Made on {' to '.join(dates)} by `seraph-cvx compare` on {starts[-1]['machine']}; at most "
        f"{starts[-1]['time_limit']:g} s and {starts[-1]['memory_limit'] / 2**30:g} GiB per run, "
        f"one BLAS thread. Versions: {versions}."
    )
    meaning = (
        "A claim is a run whose solver reports that it reached the tolerance. It is true if the "
        "true gap is within that tolerance, and proved if the answer's own certificate shows it. "
        "The true gap is of the matrix that the solver returned for the M-step, against the best "
        "lower bound proved for the instance. Every run is a line of race.jsonl."
    )
    instances = ResultTable("The instances, and their optimal values as certified", intervals)
    parts = [facts, race.summary().to_markdown(), meaning, instances.to_markdown()]
    return "\n\n".join(parts) + "\n"


def _draw(out: Path, race: Race, endings: tuple[str, ...]) -> str:
    """Write the pictures, or say why there are none."""
    try:
        from ...plots.files import picture_bytes
        from ...plots.race.race import draw_race
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        alert('No pictures: matplotlib is not installed. Run  pip install "seraph-cvx[plot]"')
        return ""
    figures = draw_race(race)
    for name, figure in figures.items():
        for ending in endings:
            write_whole(out / f"{name}.{ending}", picture_bytes(figure, ending))
    return f", and {', '.join(figures)} as " + " and ".join(f".{ending}" for ending in endings)
