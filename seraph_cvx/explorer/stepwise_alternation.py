"""The alternation by half-steps: M-step, E-step, M-step, ..., and where it cannot go on."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from ..certificate import Certificate, certify
from ..m_step.solve import MStepSolver
from ..model.m_step_objective import MStepObjective
from ..model.semi_supervised import descent_values
from ..numerics.blas_threads import one_blas_thread
from ..numerics.checks import FloatArray
from ..pairs.pair_set import PairSet
from ..solvers.solution import OptimumNotAttained, require_attained
from .scene import Scene

TOLERANCE = 1e-8
"""The relative gap to which every M-step is solved."""

STANDSTILL = 1e-6
"""The walk is at its end when an iteration lowers J by less than this, relative to max(1, |J|)."""

MOST_ITERATIONS = 200

TRACE_WEIGHTS = (
    0.0,
    *(round(m * 10.0**k, 4) for k in range(-3, 2) for m in (1, 1.5, 2, 3, 5, 7)),
    100.0,
)
"""Where the slider of lambda stops: at 0, then on a logarithmic scale."""


@dataclass(frozen=True)
class Settings:
    """The sliders.

    Attributes
    ----------
    weight_factor : float
        mu is this multiple of "ratio", #(S u D) / #U.
    trace_weight, threshold : float
        lambda and eta.
    paper_sharpness : bool
        Whether the soft labels have the paper's sharpness, 1 + mu.
    own_sharpness : float
        Theirs otherwise.
    """

    weight_factor: float = 1.0
    trace_weight: float = 1.0
    threshold: float = 1.0
    paper_sharpness: bool = True
    own_sharpness: float = 2.0

    @property
    def sharpness(self) -> float | None:
        """As the library takes it: None is 1 + mu."""
        return None if self.paper_sharpness else self.own_sharpness


@dataclass(frozen=True, eq=False)
class HalfStep:
    """A metric A, the soft labels q, and with them the M-step that is at hand.

    Attributes
    ----------
    number : int
        Half-steps done: 0 is the start (A = I, q(-1) = 1), odd is after an M-step, even after an
        E-step.
    metric : (2, 2) array
    objective : MStepObjective
        f of eq. (11) with the soft labels q. An E-step puts another f in its place.
    """

    number: int
    metric: FloatArray
    objective: MStepObjective

    @property
    def name(self) -> str:
        """start, M-step 1, E-step 1, M-step 2, ..."""
        if self.number == 0:
            return "start"
        return f"{'M' if self.number % 2 else 'E'}-step {(self.number + 1) // 2}"

    @cached_property
    def certificate(self) -> Certificate:
        """How far A is from the optimum of the M-step at hand, proved."""
        with one_blas_thread():
            return certify(self.objective, self.metric)

    @cached_property
    def trouble(self) -> str:
        """Why the M-step at hand has no optimum, and the cure; empty where it has one."""
        try:
            require_attained(self.objective)
        except OptimumNotAttained as error:
            (a, b), (i, j) = error.direction, error.pair
            return (
                f"The M-step at hand has no optimum: along the direction ({a:.2f}, {b:.2f}) no "
                f"similar pair is stretched, but points {i} and {j}, counted as dissimilar, are, "
                "so f falls for ever as the metric grows there. Move λ above 0, or label more "
                "points of one class."
            )
        return ""

    @cached_property
    def descent_value(self) -> float:
        """J(q, A) = f(A; q) - mu sum_U H(q_k) / sharpness; no half-step raises it."""
        sharpness = self.objective.soft_labeling.sharpness
        with one_blas_thread():
            value = self.objective.value(self.metric)
            return value - self.objective.soft_label_entropy / sharpness

    @cached_property
    def paper_objective(self) -> float:
        """(7) at A, as a minimisation; a half-step may raise it."""
        with one_blas_thread():
            return descent_values(self.objective, self.metric)[1]


@dataclass(eq=False)
class StepwiseAlternation:
    """q(-1) = 1; A <- argmin f(A; q), eq. (11); q <- q(A), eq. (10); A <- ...: as far as asked for.

    Attributes
    ----------
    moments : list of Moment
        Those made so far; empty where the scene has nothing to learn from.
    trouble : str
        Why there is no further one, in words; empty where there is.

    Examples
    --------
    >>> from seraph_cvx.explorer.scene import scene_named
    >>> walk = walk_of(scene_named("two moons"), Settings())
    >>> moment = walk.at(3)
    >>> moment.name, moment.certificate.relative_gap < 1e-8
    ('M-step 2', True)
    """

    scene: Scene
    settings: Settings
    moments: list[HalfStep] = field(default_factory=list)
    trouble: str = ""

    def __post_init__(self) -> None:
        self._solver = MStepSolver("fista")
        self._lock = threading.Lock()
        try:
            self._pairs = _pairs_of(self.scene)
            self.moments.append(HalfStep(0, np.eye(2), self._program(None)))
        except ValueError as error:
            self.trouble = str(error)

    def at(self, number: int) -> HalfStep | None:
        """The moment after `number` half-steps, or the last one before trouble."""
        with self._lock:  # two browser tabs may ask for the same walk at once
            while len(self.moments) <= number and not self.trouble:
                self._go_on()
        return self.moments[min(number, len(self.moments) - 1)] if self.moments else None

    def end(self) -> int:
        """The number of the M-step after which J stands still (or trouble, or the last allowed)."""
        last = np.inf
        for number in range(2, 2 * MOST_ITERATIONS, 2):
            moment = self.at(number)
            if moment is None or moment.number < number:
                return 0 if moment is None else moment.number
            value = moment.descent_value
            if last - value <= STANDSTILL * max(1.0, abs(value)):
                return number - 1
            last = value
        return 2 * MOST_ITERATIONS - 1

    def _go_on(self) -> None:
        now = self.moments[-1]
        number = now.number + 1
        if number % 2 == 0:
            self.moments.append(HalfStep(number, now.metric, self._program(now.metric)))
            return
        self.trouble = now.trouble
        if self.trouble:
            return
        start = now.metric if now.number else None
        solution = self._solver.solve(now.objective, TOLERANCE, start)
        self.moments.append(HalfStep(number, np.asarray(solution.metric), now.objective))

    def _program(self, metric: FloatArray | None) -> MStepObjective:
        """The M-step whose soft labels are those of `metric`; q(-1) = 1 for None."""
        return MStepObjective(
            self._pairs,
            previous_metric=metric,
            unlabeled_weight=weight_of(self._pairs, self.settings),
            trace_weight=self.settings.trace_weight,
            threshold=self.settings.threshold,
            sharpness=self.settings.sharpness,
        )


@lru_cache(maxsize=16)
def walk_of(scene: Scene, settings: Settings) -> StepwiseAlternation:
    """The walk of a scene, the same object whenever the same is asked for."""
    return StepwiseAlternation(scene, settings)


def weight_of(pairs: PairSet, settings: Settings) -> float:
    """mu = weight_factor * #(S u D) / #U."""
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
