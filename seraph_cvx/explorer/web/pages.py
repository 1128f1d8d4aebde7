"""The states of the pages that are open, each a tab of a browser with a name of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from ..solver_answers import SOLVERS
from ..state import ExplorerState
from ..views.tabs import TABS, sheet
from ..views.whole_page import first_state, view_of

MOST_PAGES = 100


@dataclass(frozen=True)
class Pages:
    """Answers what pages ask, one question at a time, and keeps the state of each page.

    Examples
    --------
    >>> pages = Pages()
    >>> view = pages.answer("/events", {"page": "a", "events": [{"count": 1, "move": "reset"}]})
    >>> view["heard"], pages.states["a"].position
    (1, 0)
    >>> "import" in pages.answer("/sheet", {"page": "a", "tab": "Python"})["sheet"]
    True
    """

    states: dict[str, ExplorerState] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def answer(self, path: str, question: Mapping[str, Any]) -> dict[str, Any]:
        """Answer ``/events`` by the view after them, ``/sheet`` by the content of a tab.

        Raises
        ------
        ValueError
            Where the question makes no sense.
        """
        page, events = str(question.get("page")), question.get("events", [])
        if not isinstance(events, list) or not all(map(_is_event, events)):
            raise ValueError(f"Events are a list of objects with a count, not {events!r}.")
        tab, solver = str(question.get("tab")), question.get("solver")
        if path == "/sheet" and (tab not in TABS or solver not in (None, *SOLVERS)):
            raise ValueError(f"There is no tab {tab!r} with the solver {solver!r}.")
        with self._lock:
            state = self._after(page, events)
            return view_of(state) if path == "/events" else {"sheet": sheet(state, tab, solver)}

    def _after(self, page: str, events: list[dict[str, Any]]) -> ExplorerState:
        """The state of a page after its events; a page that is not known opens as all do."""
        state = (self.states.get(page) or first_state()).answer(events)
        self.states.pop(page, None)
        self.states[page] = state  # the last one in the order of use
        for oldest in list(self.states)[:-MOST_PAGES]:
            del self.states[oldest]
        return state


def _is_event(event: Any) -> bool:
    return isinstance(event, dict) and type(event.get("count")) is int
