"""What the page knows: a snapshot, what can be undone, the results so far; and the next state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .link import read_link
from .point_sets import SCENES, scene_named
from .results import Result, result_of
from .sliders import SEEDS, SLIDERS
from .snapshot import Snapshot

MOST_UNDONE = 50
MOST_RESULTS = 12


@dataclass(frozen=True)
class ExplorerState(Snapshot):
    """The state of the page: all it shows follows from it.

    Attributes
    ----------
    past : tuple of Snapshot
        The snapshots before each change of the points and labels, the last one first to be undone.
    results : tuple of Result
        A row for each run.
    words : str
        What could not be done with the last event, and why.
    heard : int
        The number of the last event that was answered.

    Examples
    --------
    >>> state = ExplorerState().forward().forward().forward()
    >>> state.half_step.name, state.back().half_step.name
    ('M-step 2', 'E-step 1')
    """

    past: tuple[Snapshot, ...] = ()
    results: tuple[Result, ...] = ()
    words: str = ""
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
        others = tuple(row for row in self.results if row != result)
        rows = others if result is None else (*others, result)
        return replace(done, results=rows[-MOST_RESULTS:])

    def answer(self, events: Sequence[Mapping[str, Any]]) -> ExplorerState:
        """The state after clicks, keys and controls; those already answered are skipped.

        An event has a count and one of these: a ``move`` of :data:`MOVES`; a control to ``set``,
        and its ``value``; the number of a result to ``show``; a ``link``; or what
        :meth:`Scene.answer` takes.
        """
        state = self
        for event in events:
            if event["count"] > state.heard:
                state = replace(state, words="")._answer_one(event)
                state = replace(state, heard=event["count"])
        return state

    def adjust(self, name: str, value: Any) -> ExplorerState:
        """Set a control: the data by name, the seed and the sliders by the number of the stop.

        What makes no sense changes nothing.
        """
        if name == "source" and isinstance(value, str) and value in SCENES:
            return self.choose(value)
        if name == "paper_sharpness" and isinstance(value, bool):
            return self.with_settings(paper_sharpness=value)
        stops: Sequence[float] = SEEDS
        if name in SLIDERS:
            stops = SLIDERS[name].stops
        elif name != "seed":
            return self
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < len(stops):
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
        new = replace(
            self,
            source=snapshot.source,
            seed=snapshot.seed,
            scene=snapshot.scene,
            settings=snapshot.settings,
            position=snapshot.position,
        )
        return self._remembered_by(new)

    def clear_results(self) -> ExplorerState:
        """Empty the table of results."""
        return replace(self, results=())

    def with_settings(self, **changes: Any) -> ExplorerState:
        """Move the sliders, and stay at the same position."""
        return replace(self, settings=replace(self.settings, **changes))

    def _answer_one(self, event: Mapping[str, Any]) -> ExplorerState:
        if "move" in event:
            move = MOVES.get(event["move"])
            return self if move is None else move(self)
        if "set" in event:
            return self.adjust(event["set"], event.get("value"))
        if "show" in event:
            rows = {str(k): row for k, row in enumerate(self.results)}
            row = rows.get(str(event["show"]))
            return self if row is None else self.show(row.snapshot)
        if "link" in event:
            try:
                return self.show(read_link(str(event["link"])))
            except ValueError as error:
                return replace(self, words=str(error))
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
