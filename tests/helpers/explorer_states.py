"""A small scene of the explorer, elaborate settings, and the shortest ways to a state of it."""

from dataclasses import replace
from xml.etree import ElementTree

from seraph_cvx.explorer.alternation import Settings
from seraph_cvx.explorer.scene import DRAWN, Point, Scene
from seraph_cvx.explorer.state import ExplorerState


def scene_of(positions, labels):
    return Scene(tuple(Point(*at, label) for at, label in zip(positions, labels, strict=True)))


POSITIONS = (-1.0, 0.0), (-0.8, 1.5), (1.0, 0.2), (1.1, -1.0), (-0.9, -1.2), (0.9, 1.1), (0.1, 0.3)
FEW = scene_of(POSITIONS, (0, 0, 1, 1, -1, -1, -1))
ELABORATE = Settings(DRAWN, 0, 2.5, 0.3, 1.7, "own", 2.2)


def state_on(scene, settings=None, position=0):
    return ExplorerState(replace(settings or Settings(), source=DRAWN), scene, position)


def after(state, *events):
    """The state after events, numbered as the page numbers them."""
    for event in events:
        state = state.answer([{**event, "count": state.heard + 1}])
    return state


def well_formed(html):
    return ElementTree.fromstring(f"<div>{html.replace('&ensp;', ' ')}</div>")
