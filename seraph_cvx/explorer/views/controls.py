"""The controls above the pictures as plain data: names, notes, values, and why one is off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from ..point_sets import SCENES
from ..sliders import SEEDS, SLIDERS, why_off
from ..state import ExplorerState

Control: TypeAlias = dict[str, Any]

DATA_NOTE = "100 points, four labels a class; the classes of the others only judge the metric."
SEED_NOTE = "Another random draw of the same data: does the result hang on it?"
PAPER_NOTE = "The sharpness that the paper uses; without it, the slider beside sets a."


def controls_of(state: ExplorerState) -> list[Control]:
    """List the controls in the order of the page.

    Each has a name, kind ("select", "range" or "check"), label, note, value, text, off (the reason
    why it does nothing, or an empty string) and options, the texts that it can show.
    """
    settings, half_step = state.settings, state.half_step
    sliders = {
        name: _range(name, slider.label, slider.note, slider.stops, getattr(settings, name))
        for name, slider in SLIDERS.items()
    }
    if half_step is not None:
        sliders["weight_factor"]["text"] += f" → {half_step.objective.mu:.3g}"
    paper = _control("paper_sharpness", "check", "paper: a = 1 + μ", PAPER_NOTE)
    controls = [
        _control("source", "select", "data", DATA_NOTE) | {"options": list(SCENES)},
        _range("seed", "draw (seed)", SEED_NOTE, SEEDS, state.seed),
        *(sliders[name] for name in ("weight_factor", "trace_weight", "threshold")),
        paper | {"text": "on" if settings.paper_sharpness else "off"},
        sliders["own_sharpness"],
    ]
    values = {"source": state.source, "paper_sharpness": settings.paper_sharpness}
    return [
        {"value": values.get(control["name"]), **control, "off": why_off(state, control["name"])}
        for control in controls
    ]


def _range(name: str, label: str, note: str, stops: Sequence[float], value: float) -> Control:
    options, at = [f"{stop:g}" for stop in stops], stops.index(value)
    given = {"value": at, "text": options[at], "options": options}
    return _control(name, "range", label, note) | given


def _control(name: str, kind: str, label: str, note: str) -> Control:
    return {"name": name, "kind": kind, "label": label, "note": note, "text": "", "options": []}
