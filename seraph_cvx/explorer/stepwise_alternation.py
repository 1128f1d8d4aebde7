"""The alternation by half-steps: M-step, E-step, M-step, ..., and where it cannot go on."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from ..certificate import Certificate, certify
from ..fit.steps import alternation_steps
from ..m_step.solve import MStepSolver
from ..model.m_step_objective import MStepObjective
from ..model.semi_supervised import descent_values
from ..numerics.arrays import one_blas_thread
from ..numerics.checks import FloatArray
from ..pairs.pair_set import PairSet
from ..solvers.solution import OptimumNotAttained, require_attained
from .scene import Scene

TOLERANCE = 1e-8
"""The relative gap to which every M-step is solved."""

STANDSTILL = 1e-6
"""The alternation has converged when an iteration lowers J by less, relative to max(1, |J|)."""

MOST_ITERATIONS = 200

TRACE_WEIGHTS = (
    0.0,
    *(round(m * 10.0**k, 4) for k in range(-3, 2) for m in (1, 1.5, 2, 3, 5, 7)),
    100.0,
)
"""Where the slider of lambda stops: at 0, then on a logarithmic scale."""


@dataclass(frozen=True)
class Settings:
    """The values of the page's sliders.

    Attributes
    ----------
    weight_factor : float
        mu is this multiple of "ratio", #(S u D) / #U.
    trace_weight, threshold : float
        lambda and eta.
    paper_sharpness : bool
        Whether the soft labels have the paper's sharpness, 1 + mu.
    own_sharpness : float
        Their sharpness otherwise.
    """

    weight_factor: float = 1.0
    trace_weight: float = 1.0
    threshold: float = 1.0
    paper_sharpness: bool = True
    own_sharpness: float = 2.0

    @property
    def sharpness(self) -> float | None:
        """The sharpness as the library takes it: None stands for 1 + mu."""
        return None if self.paper_sharpness else self.own_sharpness


@dataclass(frozen=True, eq=False)
class HalfStep:
    """The state after a half-step: a metric A, and the M-step with the current soft labels q.

    Attributes
    ----------
    number : int
        Half-steps done: 0 is the start (A = I, q(-1) = 1), odd is after an M-step, even after an
        E-step.
    metric : (2, 2) array
    objective : MStepObjective
        f of eq. (11) with the soft labels q. An E-step replaces it.
    """

    number: int
    metric: FloatArray
    objective: MStepObjective

    @property
    def name(self) -> str:
        """The name of the half-step: start, M-step 1, E-step 1, M-step 2, ..."""
        if self.number == 0:
            return "start"
        return f"{'M' if self.number % 2 else 'E'}-step {(self.number + 1) // 2}"

    @cached_property
    def certificate(self) -> Certificate:
        """The proven bound on how far A is from the optimum of the current M-step."""
        with one_blas_thread():
            return certify(self.objective, self.metric)

    @cached_property
    def trouble(self) -> str:
        """Why the current M-step has no optimum, and the remedy; empty where it has one."""
        try:
            require_attained(self.objective)
        except OptimumNotAttained as error:
            (a, b), (i, j) = error.direction, error.pair
            return (
                f"The current M-step has no optimum: along the direction ({a:.2f}, {b:.2f}) no "
                f"similar pair is stretched, but points {i} and {j}, counted as dissimilar, are, "
                "so f falls for ever as the metric grows along it. Move λ above 0, or label more "
                "points of one class."
            )
        return ""

    @cached_property
    def descent_value(self) -> float:
        """The value that no half-step raises: J = f(A; q) - mu sum_U H(q_k) / sharpness."""
        sharpness = self.objective.soft_labeling.sharpness
        with one_blas_thread():
            value = self.objective.value(self.metric)
            return value - self.objective.soft_label_entropy / sharpness

    @cached_property
    def paper_objective(self) -> float:
        """The paper's objective (7) at A, as a minimization; a half-step may raise it."""
        with one_blas_thread():
            return descent_values(self.objective, self.metric)[1]


@dataclass(eq=False)
class StepwiseAlternation:
    """Alternate M-steps (11) and E-steps (10) from q(-1) = 1, only as far as is asked for.

    Attributes
    ----------
    half_steps : list of HalfStep
        Those made so far; empty where the scene has nothing to learn from.
    trouble : str
        The reason why there is no next half-step; empty if there is one.

    Examples
    --------
    >>> from seraph_cvx.explorer.point_sets import scene_named
    >>> alternation = alternation_of(scene_named("two moons"), Settings())
    >>> half_step = alternation.at(3)
    >>> half_step.name, half_step.certificate.relative_gap < 1e-8
    ('M-step 2', True)
    """

    scene: Scene
    settings: Settings
    half_steps: list[HalfStep] = field(default_factory=list)
    trouble: str = ""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        try:
            pairs = _pairs_of(self.scene)
        except ValueError as error:
            self.trouble = str(error)
            return
        first = MStepObjective(
            pairs,
            unlabeled_weight=weight_of(pairs, self.settings),
            trace_weight=self.settings.trace_weight,
            threshold=self.settings.threshold,
            sharpness=self.settings.sharpness,
        )
        self.half_steps.append(HalfStep(0, np.eye(2), first))
        self._steps = alternation_steps(first, MStepSolver("fista"), lambda: TOLERANCE)

    def at(self, number: int) -> HalfStep | None:
        """The state after `number` half-steps, or the last one that could be reached."""
        with self._lock:  # two browser tabs may share it
            while len(self.half_steps) <= number and not self.trouble:
                self._go_on()
        return self.half_steps[min(number, len(self.half_steps) - 1)] if self.half_steps else None

    def end(self) -> int:
        """The number of the last M-step before J stops falling, or before no next step exists."""
        last = np.inf
        for number in range(2, 2 * MOST_ITERATIONS, 2):
            half_step = self.at(number)
            if half_step is None or half_step.number < number:
                return 0 if half_step is None else half_step.number
            value = half_step.descent_value
            if last - value <= STANDSTILL * max(1.0, abs(value)):
                return number - 1
            last = value
        return 2 * MOST_ITERATIONS - 1

    def _go_on(self) -> None:
        now = self.half_steps[-1]
        self.trouble = now.trouble if now.number % 2 == 0 else ""
        if not self.trouble:
            step = next(self._steps)
            self.half_steps.append(
                HalfStep(now.number + 1, np.asarray(step.metric), step.objective)
            )


@lru_cache(maxsize=16)
def alternation_of(scene: Scene, settings: Settings) -> StepwiseAlternation:
    """The alternation on a scene; the same arguments give the same object."""
    return StepwiseAlternation(scene, settings)


def weight_of(pairs: PairSet, settings: Settings) -> float:
    """The weight mu of the unlabeled pairs: weight_factor * #(S u D) / #U."""
    return settings.weight_factor * pairs.resolve_unlabeled_weight("ratio")


def _pairs_of(scene: Scene) -> PairSet:
    n, n_labeled = len(scene.points), int(np.sum(scene.y >= 0))
    if n < 2:
        raise ValueError(
            f"There {'is 1 point' if n else 'is no point'}, so there is no pair to learn from: "
            "click on the plane to add points."
        )
    if n_labeled < 2:
        raise ValueError(
            f"{'One point has' if n_labeled else 'No point has'} a label, so no pair is labeled: "
            "click on two points or more to label them."
        )
    return PairSet.from_labels(scene.X, scene.y)
