"""What the page knows: a scene, the sliders, a position in the alternation; and the next state."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..m_step.solve import MStepSolver
from ..solvers.solution import MStepSolution
from .scene import Scene, scene_named
from .stepwise_alternation import TOLERANCE, HalfStep, Settings, StepwiseAlternation, walk_of

FIRST_SCENE = "two moons"


@dataclass(frozen=True)
class ExplorerState:
    """(scene, settings, position): all that the page shows is a function of these three.

    Attributes
    ----------
    source : str
        The name under which the scene was chosen.
    scene : Scene
    settings : Settings
    position : int
        Half-steps asked for; the walk may end earlier, see :attr:`StepwiseAlternation.trouble`.
    heard : int
        The number of the last click or key that was answered.

    Examples
    --------
    >>> state = ExplorerState().forward().forward().forward()
    >>> state.moment.name, state.back().moment.name
    ('M-step 2', 'E-step 1')
    """

    source: str = FIRST_SCENE
    scene: Scene = field(default_factory=lambda: scene_named(FIRST_SCENE))
    settings: Settings = field(default_factory=Settings)
    position: int = 0
    heard: int = 0

    @property
    def walk(self) -> StepwiseAlternation:
        """The alternation on this scene with these settings."""
        bare = replace(self.scene, chosen=0)  # the chosen point changes pictures only
        return walk_of(bare, self.settings)

    @property
    def moment(self) -> HalfStep | None:
        """Where the page stands; None where there is nothing to learn from."""
        return self.walk.at(self.position)

    @property
    def history(self) -> list[HalfStep]:
        """From the start up to where the page stands."""
        moment = self.moment
        return [] if moment is None else self.walk.moments[: moment.number + 1]

    @property
    def trouble(self) -> str:
        """Why there is no next half-step, in words; empty where there is one."""
        moment = self.moment
        return self.walk.trouble if moment is None else moment.trouble

    def forward(self) -> ExplorerState:
        """One half-step on, where there is one."""
        return replace(self, position=self._standing(ahead=1))

    def back(self) -> ExplorerState:
        """One half-step back."""
        return replace(self, position=max(0, self._standing() - 1))

    def reset(self) -> ExplorerState:
        """Back to the start."""
        return replace(self, position=0)

    def run(self) -> ExplorerState:
        """On to where J stands still, or to the last moment before trouble."""
        return replace(self, position=self.walk.end())

    def answer(self, events: Sequence[Mapping[str, Any]]) -> ExplorerState:
        """The state after clicks and keys; those heard before are left out.

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
        """Another of :data:`seraph_cvx.explorer.scene.SCENES`, from the start."""
        return replace(self, source=name, scene=scene_named(name), position=0)

    def restore(self) -> ExplorerState:
        """The scene as it was before the first click, from the start."""
        return self.choose(self.source)

    def forget_labels(self) -> ExplorerState:
        """The same points, no label known."""
        return replace(self, scene=self.scene.unlabeled(), position=0)

    def with_settings(self, **changes: Any) -> ExplorerState:
        """Other sliders, at the same position."""
        return replace(self, settings=replace(self.settings, **changes))

    def _standing(self, ahead: int = 0) -> int:
        """The position of the moment shown, or the last one that can be reached `ahead` of it."""
        moment = self.moment
        if moment is not None and ahead:
            moment = self.walk.at(moment.number + ahead)
        return 0 if moment is None else moment.number


MOVES = {
    "reset": ExplorerState.reset,
    "back": ExplorerState.back,
    "forward": ExplorerState.forward,
    "run": ExplorerState.run,
    "forget": ExplorerState.forget_labels,
    "restore": ExplorerState.restore,
}
"""What the buttons do."""


def ask_solver(moment: HalfStep, solver: str, time_limit: float = 20.0) -> MStepSolution:
    """min f(A) over A PSD, eq. (11), by `solver`: the M-step at hand, whoever solved it before.

    Parameters
    ----------
    moment : Moment
    solver : str
        As for :func:`seraph_cvx.solve_m_step`.
    time_limit : float
        In seconds.

    Returns
    -------
    MStepSolution
        What was warned of meanwhile is in its message.

    Raises
    ------
    OptimumNotAttained
        Where this M-step has no optimum.

    Examples
    --------
    >>> ask_solver(ExplorerState().forward().moment, "fista").status.value
    'certified'
    """
    chosen = MStepSolver(solver, time_limit=time_limit)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solution = chosen.solve(moment.objective, TOLERANCE)
    words = [solution.message, *(str(warning.message) for warning in caught)]
    return replace(solution, message=" ".join(filter(None, dict.fromkeys(words))))
