"""The page as a whole: how it opens, and all that the browser is sent."""

from __future__ import annotations

from typing import Any

from ..link import link_of
from ..solver_answers import SOLVERS
from ..state import ExplorerState
from .controls import controls_of
from .panels import panels_of
from .tabs import TABS


def first_state() -> ExplorerState:
    """The state that the page opens on: a run that has come to its end, and halved the error."""
    return ExplorerState().run()


def view_of(state: ExplorerState) -> dict[str, Any]:
    """Everything that follows from the state, in one message to the browser."""
    return {
        "controls": controls_of(state),
        "panels": panels_of(state),
        "link": link_of(state),
        "heard": state.heard,
        "tabs": TABS,
        "solvers": SOLVERS,
    }
