"""A table of measurements while it grows: each row is told as it comes, and none is ever lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...display.result_table import ResultTable

Row = Mapping[str, Any]


class Report:
    """What a measurement has to tell: what it is at, each row, and in the end the table.

    Parameters
    ----------
    tell : callable, optional
        Called with a few words before each part of the work.
    show : callable, optional
        Called with each row as soon as it is measured.

    Examples
    --------
    >>> report = Report(show=lambda row: print(row["ratio"]))
    >>> report.start("Planted")
    >>> report.add({"ratio": 2.0})
    2.0
    >>> report.table().notes
    ['Incomplete: stopped after 1 of its rows.']
    >>> report.finish().notes
    []
    """

    def __init__(
        self,
        tell: Callable[[str], object] | None = None,
        show: Callable[[Row], object] | None = None,
    ) -> None:
        self._tell, self._show = tell, show
        self._title = ""
        self._rows: list[Row] = []
        self._draft: Row | None = None
        self._notes: list[str] | None = None

    def start(self, title: str) -> None:
        """Begin a table of this title."""
        self._title, self._rows, self._draft, self._notes = title, [], None, None

    def tell(self, text: str) -> None:
        """Tell what the measurement is at."""
        if self._tell is not None:
            self._tell(text)

    def draft(self, row: Row) -> None:
        """What is known of the next row so far: all of it that is left if the work is stopped."""
        self._draft = row

    def add(self, row: Row) -> None:
        """Keep a row, in the place of its draft, and show it."""
        self._rows.append(row)
        self._draft = None
        if self._show is not None:
            self._show(row)

    @property
    def rows(self) -> Sequence[Row]:
        """The rows measured so far."""
        return self._rows

    def finish(self, notes: Sequence[str] = ()) -> ResultTable:
        """The table of all rows; nothing is missing."""
        self._notes = list(notes)
        return self.table()

    def table(self) -> ResultTable:
        """The table so far, with a note where it is not finished."""
        if self._notes is not None:
            return ResultTable(self._title, list(self._rows), self._notes)
        stopped = f"Incomplete: stopped after {len(self._rows)} of its rows."
        begun = [] if self._draft is None else [self._draft]
        return ResultTable(self._title, [*self._rows, *begun], [stopped])
