"""A small scene of the explorer, elaborate settings, and the shortest ways to a state of it."""

from xml.etree import ElementTree

from seraph_cvx.explorer.alternation import Settings
from seraph_cvx.explorer.scene import DRAWN, Scene
from seraph_cvx.explorer.state import ExplorerState

FEW = Scene(
    ((-1.0, 0.0), (-0.8, 1.5), (1.0, 0.2), (1.1, -1.0), (-0.9, -1.2), (0.9, 1.1), (0.1, 0.3)),
    (0, 0, 1, 1, -1, -1, -1),
)
ELABORATE = Settings(2.5, 0.3, 1.7, paper_sharpness=False, own_sharpness=2.2)


def state_on(scene, settings=None, position=0):
    return ExplorerState(DRAWN, 0, scene, settings or Settings(), position)


def after(state, *events):
    """The state after events, numbered as the page numbers them."""
    for event in events:
        state = state.answer([{**event, "count": state.heard + 1}])
    return state


def well_formed(html):
    return ElementTree.fromstring(f"<div>{html.replace('&ensp;', ' ')}</div>")
