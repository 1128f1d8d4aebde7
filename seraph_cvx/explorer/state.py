"""What the page knows: a scene, the sliders, a position in the alternation; and the next state."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..m_step.solve import MStepSolver
from ..solvers.solution import MStepSolution
from .scene import Scene, scene_named
from .stepwise_alternation import TOLERANCE, HalfStep, Settings, StepwiseAlternation, alternation_of

FIRST_SCENE = "two moons"


@dataclass(frozen=True)
class ExplorerState:
    """The state of the page: all it shows follows from scene, settings and position.

    Attributes
    ----------
    source : str
        The name under which the scene was chosen.
    scene : Scene
    settings : Settings
    position : int
        Half-steps asked for; fewer are made where :attr:`StepwiseAlternation.trouble` says why.
    heard : int
        The number of the last click or key that was answered.

    Examples
    --------
    >>> state = ExplorerState().forward().forward().forward()
    >>> state.half_step.name, state.back().half_step.name
    ('M-step 2', 'E-step 1')
    """

    source: str = FIRST_SCENE
    scene: Scene = field(default_factory=lambda: scene_named(FIRST_SCENE))
    settings: Settings = field(default_factory=Settings)
    position: int = 0
    heard: int = 0

    @property
    def alternation(self) -> StepwiseAlternation:
        """The alternation on this scene with these settings."""
        bare = replace(self.scene, chosen=0)  # the chosen point changes pictures only
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
        """Go on until J stops falling, or no next half-step exists."""
        return replace(self, position=self.alternation.end())

    def answer(self, events: Sequence[Mapping[str, Any]]) -> ExplorerState:
        """The state after clicks and keys; those already answered are skipped.

        An event has a count, and a ``move``, one of :data:`MOVES`, or what :meth:`Scene.answer`
        takes.
        """
        state = self
        for event in events:
            if event["count"] > state.heard:
                if "move" in event:
                    move = MOVES.get(event["move"])
                    state = state if move is None else move(state)
                else:
                    state = replace(state, scene=state.scene.answer(event))
                state = replace(state, heard=event["count"])
        return state

    def choose(self, name: str) -> ExplorerState:
        """Switch to another of :data:`seraph_cvx.explorer.scene.SCENES`, at the start."""
        return replace(self, source=name, scene=scene_named(name), position=0)

    def restore(self) -> ExplorerState:
        """Undo all clicks on the scene, and go back to the start."""
        return self.choose(self.source)

    def forget_labels(self) -> ExplorerState:
        """Forget all labels of the points, and go back to the start."""
        return replace(self, scene=self.scene.unlabeled(), position=0)

    def with_settings(self, **changes: Any) -> ExplorerState:
        """Move the sliders, and stay at the same position."""
        return replace(self, settings=replace(self.settings, **changes))

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
    "forget": ExplorerState.forget_labels,
    "restore": ExplorerState.restore,
}
"""What each button does."""


def ask_solver(half_step: HalfStep, solver: str, time_limit: float = 20.0) -> MStepSolution:
    """Solve the current M-step (11) by a solver, from scratch.

    Parameters
    ----------
    half_step : HalfStep
    solver : str
        As for :func:`seraph_cvx.solve_m_step`.
    time_limit : float
        In seconds.

    Returns
    -------
    MStepSolution
        Its message includes the warnings that were issued.

    Raises
    ------
    OptimumNotAttained
        Where this M-step has no optimum.

    Examples
    --------
    >>> ask_solver(ExplorerState().forward().half_step, "fista").status.value
    'certified'
    """
    chosen = MStepSolver(solver, time_limit=time_limit)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solution = chosen.solve(half_step.objective, TOLERANCE)
    words = [solution.message, *(str(warning.message) for warning in caught)]
    return replace(solution, message=" ".join(filter(None, dict.fromkeys(words))))
