"""What the page knows: scene, sliders and position, its link, undo, results; the next state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

import numpy as np

from ..numerics.checks import UNKNOWN
from ..numerics.psd_cone import numerical_rank
from .alternation import (
    MOST_ITERATIONS,
    HalfStep,
    Settings,
    StepwiseAlternation,
    alternation_of,
)
from .scene import (
    DRAWN,
    FIRST_SCENE,
    MOST_POINTS,
    SCENES,
    NeighborError,
    Scene,
    neighbor_error,
    scene_named,
)

MOST_UNDONE = 50
MOST_RESULTS = 12


class Slider(NamedTuple):
    """A slider of the page: its name, what it does, and the values that it takes."""

    label: str
    note: str
    stops: tuple[float, ...]


def _tenths(first: int, last: int) -> tuple[float, ...]:
    return tuple(k / 10 for k in range(first, last + 1))


TRACE_WEIGHTS = (
    0.0,
    *(round(m * 10.0**k, 4) for k in range(-3, 2) for m in (1, 1.5, 2, 3, 5, 7)),
    100.0,
)
"""Where the slider of lambda stops: at 0, then on a logarithmic scale."""
SEEDS = tuple(range(20))

SLIDERS = {
    "weight_factor": Slider(
        "unlabeled weight μ",
        "In units of #(S ∪ D) / #U: at 1 all unlabeled pairs weigh as much as the labeled ones, "
        "at 0 only the labels count.",
        _tenths(0, 50),
    ),
    "trace_weight": Slider(
        "trace weight λ",
        "The price of tr A. The higher, the smaller the metric and its rank, down to A = 0.",
        TRACE_WEIGHTS,
    ),
    "threshold": Slider(
        "threshold η",
        "The squared distance at which similar and dissimilar are equally likely. "
        "The higher, the larger the metric.",
        _tenths(1, 50),
    ),
    "own_sharpness": Slider(
        "sharpness a",
        "How sure the E-step's soft labels are: the higher a, the nearer q is to 0 or 1.",
        _tenths(5, 50),
    ),
}
"""The sliders, by the name of their value in :class:`Settings`."""


OF_UNLABELED = ("weight_factor", "paper_sharpness", "own_sharpness")
"""The controls that act on unlabeled pairs alone."""


@dataclass(frozen=True)
class Snapshot:
    """A scene, the name and seed it was drawn by, the sliders, and how many half-steps are done.

    Fewer half-steps are done than `position` asks for where `trouble` says why.
    """

    source: str = FIRST_SCENE
    seed: int = 0
    scene: Scene = field(default_factory=lambda: scene_named(FIRST_SCENE))
    settings: Settings = field(default_factory=Settings)
    position: int = 0

    @property
    def alternation(self) -> StepwiseAlternation:
        """The alternation on this scene with these settings."""
        bare = replace(self.scene, chosen=0, classes=())  # neither changes what is learned
        return alternation_of(bare, self.settings)

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
    def error_before(self) -> NeighborError | None:
        """The 1-NN error under the Euclidean metric."""
        return neighbor_error(self.scene, np.eye(2))

    @property
    def error_after(self) -> NeighborError | None:
        """The 1-NN error under the metric of the half-step shown."""
        half_step = self.half_step
        return None if half_step is None else neighbor_error(self.scene, half_step.metric)

    def why_off(self, name: str) -> str:
        """The reason why a control does nothing at the moment; empty where it does something."""
        if name == "seed":
            return "Off: you draw these points yourself." if self.source == DRAWN else ""
        if name not in OF_UNLABELED or self.half_step is None:
            return ""
        if self.half_step.objective.pairs.n_unlabeled == 0:
            return "Off: no pair is unlabeled, so there is nothing to weigh or to guess."
        if name != "weight_factor" and self.settings.weight_factor == 0.0:
            return "Off: at μ = 0 the soft labels do not count."
        if name == "own_sharpness" and self.settings.paper_sharpness:
            return "Off: the sharpness is the paper's, a = 1 + μ."
        return ""


# The link: a snapshot as a line of text, which ends the page's address


LETTERS = {
    "mu": "weight_factor",
    "lambda": "trace_weight",
    "eta": "threshold",
    "a": "own_sharpness",
}
"""What the link calls the sliders."""
PARTS = ("data", "seed", *LETTERS, "sharpness", "step", "point", "removed", "added", "labels")
LABELS = "012."
LARGEST_COORDINATE = 1e4
"""No point of a link is further away than this."""


def link_of(now: Snapshot) -> str:
    """Write a snapshot as text: the data and its seed, what was changed, the sliders, the step."""
    scene, settings = now.scene, now.settings
    base = scene_named(now.source, now.seed)
    kept, added = changes_of(now)
    parts: dict[str, object] = {"data": now.source, "seed": now.seed}
    parts |= {letter: getattr(settings, name) for letter, name in LETTERS.items()}
    parts["sharpness"] = "paper" if settings.paper_sharpness else "own"
    parts |= {"step": now.position, "point": scene.chosen}
    if removed := sorted(set(range(len(base.points))) - set(kept)):
        parts["removed"] = ",".join(map(str, removed))
    if added:
        parts["added"] = ";".join(f"{x!r},{y!r}" for x, y in added)
    if scene.labels != (*(base.labels[k] for k in kept), *(UNKNOWN,) * len(added)):
        parts["labels"] = "".join(LABELS[label] for label in scene.labels)
    return urlencode(parts, safe=",;")


def changes_of(now: Snapshot) -> tuple[list[int], tuple[tuple[float, float], ...]]:
    """The numbers of the points left of the scene as it was drawn, and the points added."""
    points = now.scene.points
    kept: list[int] = []
    for k, point in enumerate(scene_named(now.source, now.seed).points):
        if len(kept) < len(points) and points[len(kept)] == point:
            kept.append(k)
    return kept, points[len(kept) :]


def read_link(text: str) -> Snapshot:
    """Read what :func:`link_of` wrote, also at the end of an address, after its ``#``.

    Raises a ValueError in words where a part is unknown or none that the page can set.
    """
    parts = dict(parse_qsl(text.rpartition("#")[2], keep_blank_values=True))
    if not parts or not set(parts) <= set(PARTS):
        raise ValueError(f"The link has the parts {[*parts]}; it may have {', '.join(PARTS)}.")
    default = Snapshot()
    source = _one_of(SCENES, "data", parts.get("data", default.source))
    seed = _one_of(SEEDS, "seed", parts.get("seed", default.seed))
    sliders = {
        name: _one_of(
            SLIDERS[name].stops, letter, parts.get(letter, getattr(default.settings, name))
        )
        for letter, name in LETTERS.items()
    }
    sharpness = _one_of(("paper", "own"), "sharpness", parts.get("sharpness", "paper"))
    position = _one_of(range(2 * MOST_ITERATIONS), "step", parts.get("step", 0))
    scene = _changed(scene_named(source, seed), parts)
    settings = Settings(**sliders, paper_sharpness=sharpness == "paper")
    return Snapshot(source, seed, scene, settings, position)


def _changed(base: Scene, parts: Mapping[str, str]) -> Scene:
    """The scene with the points of a link removed and added, and its labels."""
    numbers = range(len(base.points))
    listed = {
        name: [text for text in parts.get(name, "").split(mark) if text]
        for name, mark in (("removed", ","), ("added", ";"))
    }
    removed = [_one_of(numbers, "removed", text) for text in listed["removed"]]
    kept = [k for k in numbers if k not in removed]
    added = [_read_point(text) for text in listed["added"]]
    points = (*(base.points[k] for k in kept), *added)
    labels = (*(base.labels[k] for k in kept), *(UNKNOWN,) * len(added))
    signs = parts.get("labels", "." * len(points))
    if len(points) > MOST_POINTS or len(signs) != len(points) or set(signs) - set(LABELS):
        raise ValueError(
            f"The link has {len(points)} points and {len(signs)} labels: it takes up to "
            f"{MOST_POINTS} points, and for each a sign of {LABELS!r}."
        )
    if "labels" in parts:
        labels = tuple(UNKNOWN if sign == "." else int(sign) for sign in signs)
    chosen = _one_of(range(max(1, len(points))), "point", parts.get("point", 0))
    classes = tuple(base.classes[k] for k in kept)
    return replace(base, points=points, labels=labels, classes=classes, chosen=chosen)


def _read_point(text: str) -> tuple[float, float]:
    with suppress(ValueError):
        x, y = map(float, text.split(","))
        if abs(x) <= LARGEST_COORDINATE and abs(y) <= LARGEST_COORDINATE:
            return x, y
    raise ValueError(
        f"The link adds the point {text!r}, not two numbers up to {LARGEST_COORDINATE:g}."
    )


def _one_of(allowed: Sequence[Any], name: str, text: Any) -> Any:
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
    """What a run came to, as the texts of a row, and the snapshot that shows it."""

    snapshot: Snapshot
    cells: dict[str, str]


def result_of(now: Snapshot) -> Result | None:
    """The row of a snapshot; None where no M-step was made."""
    done = now.half_step
    if done is None or done.number == 0:
        return None
    now = replace(now, scene=replace(now.scene, chosen=0))  # it changes pictures only
    kept, added = changes_of(now)
    removed = len(scene_named(now.source, now.seed).points) - len(kept)
    changes = [f"{n} {verb}" for n, verb in ((len(added), "added"), (removed, "removed")) if n]
    data = ", ".join([now.source, f"seed {now.seed}", *changes])
    cells = {
        "data": f"{len(added)} points of your own" if now.source == DRAWN else data,
        "labels": sum(label >= 0 for label in now.scene.labels),
        "μ": f"{done.objective.mu:.3g}",
        "λ": f"{now.settings.trace_weight:g}",
        "η": f"{now.settings.threshold:g}",
        "a": f"{done.objective.soft_labeling.sharpness:.3g}",
        "1-NN error before": now.error_before or "–",
        "after": now.error_after or "–",
        "certified gap": f"{done.certificate.relative_gap:.0e}",
        "rank": numerical_rank(done.metric),
        "J": f"{done.descent_value:.6g}",
        "M-steps": (done.number + 1) // 2,
    }
    return Result(now, {name: str(text) for name, text in cells.items()})


# The whole state


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
        return Snapshot(self.source, self.seed, self.scene, self.settings, self.position)

    def forward(self) -> ExplorerState:
        """Go one half-step forward, if there is one."""
        return replace(self, position=self._standing(ahead=1))

    def back(self) -> ExplorerState:
        """Go one half-step back."""
        return replace(self, position=max(0, self._standing() - 1))

    def reset(self) -> ExplorerState:
        """Go back to the start."""
        return replace(self, position=0)

    def run(self) -> ExplorerState:
        """Go on until J stops falling, or no next half-step exists, and keep the result."""
        done = replace(self, position=self.alternation.end())
        result = result_of(done.snapshot)
        if result is None:
            return done
        others = (row for row in self.results if row != result)
        return replace(done, results=(*others, result)[-MOST_RESULTS:])

    def answer(self, events: Sequence[Mapping[str, Any]]) -> ExplorerState:
        """The state after clicks, keys and controls; those already answered are skipped.

        An event has a count and one of these: a ``move`` of :data:`MOVES`; a control to ``set``,
        and its ``value``; the number of a result to ``show``; a ``link``; or what
        :meth:`Scene.answer` takes.
        """
        state = self
        for event in events:
            if event["count"] > state.heard:
                state = replace(state, message="")._answer_one(event)
                state = replace(state, heard=event["count"])
        return state

    def adjust(self, name: str, value: Any) -> ExplorerState:
        """Set a control: the data by name, the seed and the sliders by the number of the stop.

        What makes no sense changes nothing.
        """
        if name == "source" and value in SCENES:
            return self.choose(value)
        if name == "paper_sharpness" and isinstance(value, bool):
            return self.with_settings(paper_sharpness=value)
        stops = SLIDERS[name].stops if name in SLIDERS else SEEDS if name == "seed" else ()
        if type(value) is not int or not 0 <= value < len(stops):
            return self
        if name == "seed":
            return self.choose(self.source, SEEDS[value])
        return self.with_settings(**{name: stops[value]})

    def choose(self, name: str, seed: int | None = None) -> ExplorerState:
        """Switch to another of :data:`SCENES`, or to another draw of it, at the start."""
        seed = self.seed if seed is None else seed
        new = replace(self, source=name, seed=seed, scene=scene_named(name, seed), position=0)
        return self._remembered_by(new)

    def restore(self) -> ExplorerState:
        """Undo all clicks on the scene, and go back to the start."""
        return self.choose(self.source)

    def forget_labels(self) -> ExplorerState:
        """Forget all labels of the points, and go back to the start."""
        return self._remembered_by(replace(self, scene=self.scene.unlabeled(), position=0))

    def undo(self) -> ExplorerState:
        """Take back the last change of the points or labels; the sliders stay where they are."""
        if not self.past:
            return self
        *past, last = self.past
        return replace(self, source=last.source, seed=last.seed, scene=last.scene, past=tuple(past))

    def show(self, snapshot: Snapshot) -> ExplorerState:
        """Go to another snapshot, for example that of a link or of a result."""
        return self._remembered_by(replace(self, **vars(snapshot)))

    def clear_results(self) -> ExplorerState:
        """Empty the table of results."""
        return replace(self, results=())

    def with_settings(self, **changes: Any) -> ExplorerState:
        """Move the sliders, and stay at the same position."""
        return replace(self, settings=replace(self.settings, **changes))

    def _answer_one(self, event: Mapping[str, Any]) -> ExplorerState:
        if "move" in event:
            return MOVES.get(str(event["move"]), lambda state: state)(self)
        if "set" in event:
            return self.adjust(str(event["set"]), event.get("value"))
        if "show" in event:
            shown = [row for k, row in enumerate(self.results) if str(k) == str(event["show"])]
            return self.show(shown[0].snapshot) if shown else self
        if "link" in event:
            try:
                return self.show(read_link(str(event["link"])))
            except ValueError as error:
                return replace(self, message=str(error))
        return self._remembered_by(replace(self, scene=self.scene.answer(event)))

    def _remembered_by(self, new: ExplorerState) -> ExplorerState:
        """The new state, which can be undone if its points or labels are others."""
        if (self.scene.points, self.scene.labels) == (new.scene.points, new.scene.labels):
            return new
        return replace(new, past=(*self.past, self.snapshot)[-MOST_UNDONE:])

    def _standing(self, ahead: int = 0) -> int:
        """The position shown, or the last one that can be reached up to `ahead` of it."""
        half_step = self.half_step
        if half_step is not None and ahead:
            half_step = self.alternation.at(half_step.number + ahead)
        return 0 if half_step is None else half_step.number


MOVES = {
    "reset": ExplorerState.reset,
    "back": ExplorerState.back,
    "forward": ExplorerState.forward,
    "run": ExplorerState.run,
    "undo": ExplorerState.undo,
    "forget": ExplorerState.forget_labels,
    "restore": ExplorerState.restore,
    "clear": ExplorerState.clear_results,
}
"""What each button does."""
