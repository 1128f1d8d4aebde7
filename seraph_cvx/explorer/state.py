"""What the page knows: controls, scene and position, its link, undo, results; the next state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

import numpy as np

from .alternation import (
    MOST_ITERATIONS,
    HalfStep,
    Settings,
    StepwiseAlternation,
    alternation_of,
    has_converged,
)
from .scene import (
    DRAWN,
    FIRST_SCENE,
    MOST_POINTS,
    SCENES,
    NeighborError,
    Point,
    Scene,
    neighbor_error,
    scene_named,
)

MOST_UNDONE = 50
MOST_RESULTS = 12


class Control(NamedTuple):
    """A control of the page: its part of the link, kind, name and note, and what it can be."""

    part: str
    kind: str
    label: str
    note: str
    options: Sequence[Any]

    @property
    def page_values(self) -> Sequence[Any]:
        """How the page names each option: by its number on a slider, by on or off, or by itself."""
        return {"range": range(len(self.options)), "check": (True, False)}.get(
            self.kind, self.options
        )


def _tenths(first: int, last: int) -> list[float]:
    return [k / 10 for k in range(first, last + 1)]


CONTROLS = {
    "source": Control(
        "data",
        "select",
        "data",
        "100 points, four labels per class; the classes of the others only judge the metric.",
        SCENES,
    ),
    "seed": Control(
        "seed",
        "range",
        "draw (seed)",
        "Another random draw of the same data: does the result depend on it?",
        tuple(range(20)),
    ),
    "weight_factor": Control(
        "mu",
        "range",
        "unlabeled weight μ",
        "In units of #(S ∪ D) / #U: at 1 all unlabeled pairs weigh as much as the labeled ones, "
        "at 0 only the labels count.",
        _tenths(0, 50),
    ),
    "trace_weight": Control(
        "lambda",
        "range",
        "trace weight λ",
        "The price of tr A. The higher, the smaller the metric and its rank, down to A = 0.",
        [0.0, *(round(m * 10.0**k, 4) for k in range(-3, 2) for m in (1, 1.5, 2, 3, 5, 7)), 100.0],
    ),
    "threshold": Control(
        "eta",
        "range",
        "threshold η",
        "The squared distance at which similar and dissimilar are equally likely. "
        "The higher, the larger the metric.",
        _tenths(1, 50),
    ),
    "sharpness_rule": Control(
        "sharpness",
        "check",
        "paper: a = 1 + μ",
        "The sharpness that the paper uses; without it, the slider beside sets a.",
        ("paper", "own"),
    ),
    "own_sharpness": Control(
        "a",
        "range",
        "sharpness a",
        "How sure the E-step's soft labels are: the higher a, the nearer q is to 0 or 1.",
        _tenths(5, 50),
    ),
}
"""The controls, by the name of their value in :class:`Settings`, in the order of the page."""


@dataclass(frozen=True)
class Snapshot:
    """Controls, the scene they drew, as it is now, and the half-steps done, unless in trouble."""

    settings: Settings = field(default_factory=Settings)
    scene: Scene = field(default_factory=lambda: scene_named(FIRST_SCENE))
    position: int = 0

    @property
    def alternation(self) -> StepwiseAlternation:
        """The alternation on this scene with these settings."""
        return alternation_of(replace(self.scene, chosen=0), self.settings)

    @property
    def half_step(self) -> HalfStep | None:
        """The half-step shown; None if there is nothing to learn from."""
        return self.alternation.at(self.position)

    @property
    def history(self) -> list[HalfStep]:
        """All half-steps from the start to the one shown."""
        half_step = self.half_step
        return [] if half_step is None else self.alternation.half_steps[: half_step.number + 1]

    @property
    def trouble(self) -> str:
        """The reason why there is no next half-step; empty if there is one."""
        half_step = self.half_step
        return self.alternation.trouble if half_step is None else half_step.trouble

    @property
    def is_at_rest(self) -> bool:
        """Whether the last M-step lowered J so little that the alternation is at its end."""
        history = self.history
        J = [half_step.descent_value for half_step in history[-2:]]
        return len(history) > 2 and len(history) % 2 == 0 and has_converged(*J)

    @property
    def changes(self) -> tuple[list[int], list[Point]]:
        """The numbers of the points removed since the scene was drawn, and the points added."""
        left = {point.number for point in self.scene.points}
        drawn = scene_named(self.settings.source, self.settings.seed).points
        removed = [point.number for point in drawn if point.number not in left]
        return removed, [point for point in self.scene.points if point.number < 0]

    @property
    def errors(self) -> tuple[NeighborError | None, ...]:
        """The 1-NN errors under the Euclidean metric, and under that of the half-step shown."""
        half_step = self.half_step
        metrics = [np.eye(2), np.zeros((2, 2)) if half_step is None else half_step.metric]
        return tuple(neighbor_error(self.scene, metric) for metric in metrics)

    def why_off(self, name: str) -> str:
        """The reason why a control does nothing at the moment; empty where it does something."""
        settings, half_step = self.settings, self.half_step
        if name == "seed" and settings.source == DRAWN:
            return "Off: you draw these points yourself."
        if name not in ("weight_factor", "sharpness_rule", "own_sharpness") or half_step is None:
            return ""
        if half_step.objective.pairs.n_unlabeled == 0:
            return "Off: no pair is unlabeled, so there is nothing to weigh or to guess."
        if name != "weight_factor" and settings.weight_factor == 0.0:
            return "Off: at μ = 0 the soft labels do not count."
        if name == "own_sharpness" and settings.sharpness is None:
            return "Off: the sharpness is the paper's, a = 1 + μ."
        return ""


# The link: a snapshot as a line of text, which ends the page's address


PARTS = (
    *("data", "seed", "mu", "lambda", "eta", "a", "sharpness", "step", "point"),
    *("removed", "added", "labels"),
)
LABELS = "012."
LONGEST_LINK = 20_000
"""The number of characters of a link, at most; one to a full plane has some 10,000."""
LARGEST_COORDINATE = 1e4
"""No point of a link is further away than this."""


def link_of(now: Snapshot) -> str:
    """Write a snapshot as text: the data and its seed, what was changed, the sliders, the step."""
    removed, added = now.changes
    base, points = scene_named(now.settings.source, now.settings.seed).points, now.scene.points
    parts = {control.part: getattr(now.settings, name) for name, control in CONTROLS.items()}
    parts |= {
        "step": now.position,
        "point": now.scene.chosen,
        "removed": ",".join(map(str, removed)),
        "added": ";".join(f"{point.across!r},{point.up!r}" for point in added),
        "labels": "".join(LABELS[point.label] for point in points),
    }
    drawn_labels = [base[point.number].label if point.number >= 0 else -1 for point in points]
    if drawn_labels == now.scene.y.tolist():
        parts["labels"] = ""
    return urlencode({part: parts[part] for part in PARTS if parts[part] != ""}, safe=",;")


def read_link(text: str) -> Snapshot:
    """Read what `link_of` wrote, also in an address, after its ``#``; or a ValueError."""
    if len(text) > LONGEST_LINK:
        raise ValueError(f"The link has {len(text)} characters, more than {LONGEST_LINK}.")
    given = dict(parse_qsl(text.rpartition("#")[2], keep_blank_values=True))
    if not given or not set(given) <= set(PARTS):
        raise ValueError(f"The link has the parts {[*given]}; it may have {', '.join(PARTS)}.")
    parts = dict.fromkeys(PARTS, "") | dict(parse_qsl(link_of(Snapshot()))) | given
    settings = Settings(
        **{name: _one_of(c.options, c.part, parts[c.part]) for name, c in CONTROLS.items()}
    )
    position = _one_of(range(2 * MOST_ITERATIONS), "step", parts["step"])
    base = scene_named(settings.source, settings.seed)
    numbers = range(len(base.points))
    removed = [_one_of(numbers, "removed", k) for k in parts["removed"].split(",") if k]
    points = [base.points[k] for k in numbers if k not in removed]
    points += [_read_point(point) for point in parts["added"].split(";") if point]
    signs = given.get("labels", "." * len(points))
    if len(points) > MOST_POINTS or len(signs) != len(points) or set(signs) - set(LABELS):
        raise ValueError(
            f"The link has {len(points)} points and {len(signs)} labels: it takes up to "
            f"{MOST_POINTS} points, and for each a sign of {LABELS!r}."
        )
    if "labels" in given:  # a point is at -1
        labels = [LABELS.find(sign, 0, -1) for sign in signs]
        points = [point._replace(label=k) for point, k in zip(points, labels, strict=True)]
    chosen = _one_of(range(max(1, len(points))), "point", parts["point"])
    return Snapshot(settings, replace(base, points=tuple(points), chosen=chosen), position)


def _read_point(text: str) -> Point:
    with suppress(ValueError):
        across, up = map(float, text.split(","))
        if abs(across) <= LARGEST_COORDINATE and abs(up) <= LARGEST_COORDINATE:
            return Point(across, up)
    raise ValueError(
        f"The link adds the point {text!r}, not two numbers up to {LARGEST_COORDINATE:g}."
    )


def _one_of(allowed: Sequence[Any], name: str, text: str) -> Any:
    """The one of `allowed`, words or numbers, that a part of the link names."""
    with suppress(ValueError):
        for value in allowed:
            if value == (text if isinstance(value, str) else float(text)):
                return value
    first, last = (allowed[0], allowed[-1]) if allowed else ("nothing", "nothing")
    raise ValueError(f"The link's {name} is {text!r}, which is no stop from {first} to {last}.")


# The results that stay, whatever happens to the scene afterwards


@dataclass(frozen=True)
class Result:
    """The snapshot of a run, and what it came to; the same snapshot is the same result."""

    snapshot: Snapshot
    half_step: HalfStep = field(compare=False)
    errors: tuple[NeighborError | None, ...] = field(compare=False)


# The whole state


MOVES = ("reset", "back", "forward", "run", "undo", "forget", "restore", "clear")
"""What the buttons do: methods of :class:`ExplorerState`."""


@dataclass(frozen=True)
class ExplorerState(Snapshot):
    """The state of the page: all it shows follows from it.

    `past` are the snapshots before each change of points and labels, `results` a row for each run,
    `message` what could not be done with the last event, and why, `heard` its number.
    """

    past: tuple[Snapshot, ...] = ()
    results: tuple[Result, ...] = ()
    message: str = ""
    heard: int = 0

    @property
    def snapshot(self) -> Snapshot:
        """The part of the state that a link holds."""
        return Snapshot(self.settings, self.scene, self.position)

    def reset(self) -> ExplorerState:
        """Go back to the start."""
        return replace(self, position=0)

    def back(self) -> ExplorerState:
        """Go one half-step back."""
        return replace(self, position=max(0, len(self.history) - 2))

    def forward(self) -> ExplorerState:
        """Go one half-step forward, if there is one."""
        reached = self.alternation.at(len(self.history))
        return replace(self, position=0 if reached is None else reached.number)

    def run(self) -> ExplorerState:
        """Go on until J stops falling, or no next half-step exists, and keep the result."""
        done = replace(self, position=self.alternation.end())
        half_step = done.half_step
        if half_step is None or half_step.number == 0:
            return done
        scene = replace(self.scene, chosen=0)  # it changes pictures only
        snapshot = Snapshot(done.settings, scene, done.position)
        result = Result(snapshot, half_step, done.errors)
        others = (row for row in self.results if row != result)
        return replace(done, results=(*others, result)[-MOST_RESULTS:])

    def undo(self) -> ExplorerState:
        """Take back the last change of the points or labels; the sliders stay where they are."""
        if not self.past:
            return self
        past, last = self.past[:-1], self.past[-1]
        drawn_by = last.settings
        settings = replace(self.settings, source=drawn_by.source, seed=drawn_by.seed)
        return replace(self, settings=settings, scene=last.scene, past=past)

    def forget(self) -> ExplorerState:
        """Forget all labels of the points, and go back to the start."""
        return self.changed(scene=self.scene.unlabeled(), position=0)

    def restore(self) -> ExplorerState:
        """Undo all clicks on the scene, and go back to the start."""
        return self.adjusted(source=self.settings.source)

    def clear(self) -> ExplorerState:
        """Empty the table of results."""
        return replace(self, results=())

    def adjusted(self, **controls: Any) -> ExplorerState:
        """The state with other controls; a source or seed draws its scene, at the start."""
        settings = replace(self.settings, **controls)
        if not {"source", "seed"} & controls.keys():
            return replace(self, settings=settings)
        scene = scene_named(settings.source, settings.seed)
        return self.changed(settings=settings, scene=scene, position=0)

    def changed(self, **parts: Any) -> ExplorerState:
        """The state with other parts, which can be undone if its points or labels are others."""
        new = replace(self, **parts)
        if [point[:3] for point in new.scene.points] == [p[:3] for p in self.scene.points]:
            return new
        return replace(new, past=(*self.past, self.snapshot)[-MOST_UNDONE:])

    def answer(self, events: Sequence[Mapping[str, Any]]) -> ExplorerState:
        """The state after clicks, keys and controls; those already answered are skipped.

        An event has a count and one of these: a ``move`` of :data:`MOVES`; a control to ``set``,
        and its ``value``; the number of a result to ``show``; a ``link``; or what
        :meth:`Scene.answer` takes. What makes no sense changes nothing.
        """
        state = self
        for event in events:
            if event["count"] > state.heard:
                state = replace(state, message="")._answer_one(event)
                state = replace(state, heard=event["count"])
        return state

    def _answer_one(self, event: Mapping[str, Any]) -> ExplorerState:
        if "move" in event:
            move = str(event["move"])
            moved: ExplorerState = getattr(self, move)() if move in MOVES else self
            return moved
        if "set" in event:
            name, value = str(event["set"]), event.get("value")
            control = CONTROLS.get(name, Control("", "", "", "", ()))
            for option, named in zip(control.options, control.page_values, strict=True):
                if type(named) is type(value) and named == value:
                    return self.adjusted(**{name: option})
            return self
        if "show" in event:
            shown = [row for k, row in enumerate(self.results) if str(k) == str(event["show"])]
            return self.changed(**vars(shown[0].snapshot)) if shown else self
        if "link" in event:
            try:
                return self.changed(**vars(read_link(str(event["link"]))))
            except ValueError as error:
                return replace(self, message=str(error))
        return self.changed(scene=self.scene.answer(event))
