"""A table of measurements that grows row by row, and keeps its rows if it is interrupted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from seraph_cvx.display.result_table import ResultTable

Row = Mapping[str, Any]


class Report:
    """Collect the rows of a measurement, and report its progress."""

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
        """Begin a table with this title."""
        self._title, self._rows, self._draft, self._notes = title, [], None, None

    def tell(self, text: str) -> None:
        """Report what is being measured."""
        if self._tell is not None:
            self._tell(text)

    def draft(self, row: Row) -> None:
        """Keep what is known of the next row, in case the measurement is interrupted."""
        self._draft = row

    def add(self, row: Row) -> None:
        """Keep a row instead of its draft, and show it."""
        self._rows.append(row)
        self._draft = None
        if self._show is not None:
            self._show(row)

    @property
    def rows(self) -> Sequence[Row]:
        """The rows measured so far."""
        return self._rows

    def finish(self, notes: Sequence[str] = ()) -> ResultTable:
        """Return the complete table."""
        self._notes = list(notes)
        return self.table()

    def table(self) -> ResultTable:
        """The table so far, with a note if it is incomplete."""
        if self._notes is not None:
            return ResultTable(self._title, list(self._rows), self._notes)
        stopped = f"Incomplete: stopped after {len(self._rows)} of its rows."
        begun = [] if self._draft is None else [self._draft]
        return ResultTable(self._title, [*self._rows, *begun], [stopped])
