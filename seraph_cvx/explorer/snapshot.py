"""A moment of the page: points, sliders, a position in the alternation, and what follows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from .neighbors import NeighborError, neighbor_error
from .point_sets import FIRST_SCENE, scene_named
from .scene import Scene
from .stepwise_alternation import HalfStep, Settings, StepwiseAlternation, alternation_of


@dataclass(frozen=True)
class Snapshot:
    """A scene, the values of the sliders, and how many half-steps were asked for.

    Attributes
    ----------
    source : str
        The name under which the scene was chosen.
    seed : int
        The seed that it was drawn with.
    scene : Scene
    settings : Settings
    position : int
        Half-steps asked for; fewer are made where :attr:`StepwiseAlternation.trouble` says why.

    Examples
    --------
    >>> after = Snapshot(position=3)
    >>> after.half_step.name, after.error_before.share > after.error_after.share
    ('M-step 2', True)
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
