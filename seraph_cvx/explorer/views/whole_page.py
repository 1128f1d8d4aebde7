"""The page as a whole: how it opens, its title, and all that the browser is sent."""

from __future__ import annotations

from html import escape
from typing import Any

from ..link import link_of
from ..state import ExplorerState
from .controls import controls_of
from .panels import panels_of
from .statement_sheet import heading

INTRODUCTION = (
    "A metric learned from a few labels and many unlabeled points, half-step by half-step, each "
    "with a proof of how good it is. Everything on this page is minimised: the paper maximises "
    "ℱ of (11) and ℒ of (7), here it is f = -ℱ and -ℒ."
)
"""What the page is, and its one convention of signs."""


def first_state() -> ExplorerState:
    """The state that the page opens on: a run that has come to its end, and halved the error."""
    return ExplorerState().run()


def page_title() -> str:
    """The HTML of the title and of the introduction."""
    return heading("SERAPH, half-step by half-step", 1) + f"<p>{escape(INTRODUCTION)}</p>"


def view_of(state: ExplorerState) -> dict[str, Any]:
    """Everything that follows from the state, in one message to the browser."""
    return {
        "controls": controls_of(state),
        "panels": panels_of(state),
        "link": link_of(state),
        "heard": state.heard,
    }
