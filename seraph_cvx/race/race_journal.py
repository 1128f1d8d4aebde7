"""The journal of a race: who races with what, the references, and a row for each run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ..processes.journal import Journal, check_kind, check_numbers

Key = tuple[str, str, str, float]
"""What identifies a run: instance, solver, formulation, tolerance."""

EMPTY_ROW: dict[str, Any] = {
    "outcome": "",
    "said": "",
    "claims": False,
    "true_gap": None,
    "proved_gap": None,
    "psd_violation": None,
    "value": None,
    "dimacs": None,
    "compile_seconds": None,
    "solve_seconds": None,
    "total_seconds": None,
    "iterations": None,
    "peak_bytes": None,
    "detail": "",
}
"""The entries of a row before its run, besides its key."""


def key_of(row: Mapping[str, Any]) -> Key:
    """What identifies the run of a row."""
    return row["instance"], row["solver"], row["formulation"], float(row["tol"])


class RaceJournal(Journal):
    """The journal of a race, with lines of the kinds "race" (its settings), "reference" and "row".

    Attributes
    ----------
    rows : dict
        The finished rows by key, in order.
    references : dict
        The certified interval of each instance, by its name.
    races : list
        The settings of each race that wrote to the journal.
    """

    work = "race"

    def __init__(self, path: str | os.PathLike[str] | None = None, resume: bool = False) -> None:
        self.rows: dict[Key, dict[str, Any]] = {}
        self.references: dict[str, dict[str, Any]] = {}
        self.races: list[dict[str, Any]] = []
        super().__init__(path, resume)

    def take(self, kind: str, content: dict[str, Any]) -> None:
        """Check a line and keep it."""
        if kind == "row":
            _check_row(content)
            self.rows[key_of(content)] = content
        elif kind == "reference":
            check_kind(content, ("instance", "checksum"), str)
            check_numbers(*(content[k] for k in ("lower", "upper", "n_points", "n_features")))
            self.references[content["instance"]] = content
        elif kind == "race":
            self.races.append(content)
        else:
            raise ValueError(f"a line of kind {kind!r}")


def _check_row(row: Mapping[str, Any]) -> None:
    """Refuse a line that was damaged, or changed by hand."""
    check_kind(row, ("instance", "solver", "formulation", "outcome", "said", "detail"), str)
    check_kind(row, ("claims",), bool)
    known = [row[name] for name, empty in EMPTY_ROW.items() if empty is None and name != "dimacs"]
    check_numbers(row["tol"], *(number for number in known if number is not None))
    if row["true_gap"] is not None:
        check_numbers(row["proved_gap"], row["total_seconds"])
    if row["dimacs"] is not None:
        check_kind(row, ("dimacs",), list)
        check_numbers(*row["dimacs"])
        if not row["dimacs"]:
            raise ValueError("an empty list of DIMACS errors")
