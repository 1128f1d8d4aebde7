"""The alternation by half-steps, M-step, E-step, M-step, ..., and other solvers for its M-step."""

from __future__ import annotations

import threading
import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np

from ..certificate import Certificate, certify
from ..fit.steps import alternation_steps
from ..m_step.solve import OWN_SOLVERS, MStepSolver
from ..model.m_step_objective import MStepObjective
from ..model.programs import descent_values
from ..numerics.arrays import one_blas_thread
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import numerical_rank
from ..pairs.pair_set import PairSet
from ..solvers.solution import MStepSolution, OptimumNotAttained, require_attained
from .scene import FIRST_SCENE, Scene

TOLERANCE = 1e-8
"""The relative gap to which every M-step is solved."""
STANDSTILL = 1e-6
"""The alternation has converged when an iteration lowers J by less, relative to max(1, |J|)."""
MOST_ITERATIONS = 200
SOLVERS = (*OWN_SOLVERS, "CLARABEL", "SCS")


@dataclass(frozen=True)
class Settings:
    """The values of the page's controls."""

    source: str = FIRST_SCENE  # the scene is drawn by this name and seed
    seed: int = 0
    weight_factor: float = 1.0  # mu is this multiple of #(S u D) / #U
    trace_weight: float = 1.0  # lambda
    threshold: float = 1.0  # eta
    sharpness_rule: str = "paper"  # the soft labels have the sharpness 1 + mu; or "own"
    own_sharpness: float = 2.0  # theirs otherwise

    @property
    def sharpness(self) -> float | None:
        """The sharpness as the library takes it: None stands for 1 + mu."""
        return None if self.sharpness_rule == "paper" else self.own_sharpness


@dataclass(frozen=True, eq=False)
class HalfStep:
    """The state after `number` half-steps; 0: the start, odd: an M-step, even: an E-step."""

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

    @property
    def rank(self) -> int:
        """The rank of A, but for rounding."""
        return numerical_rank(self.metric)

    @property
    def verdict(self) -> str:
        """Whether A solves the current M-step, by its certificate."""
        if self.trouble:
            return "no optimum exists"
        if self.certificate.relative_gap <= TOLERANCE:
            return f"certified to {TOLERANCE:g}"
        return "not certified" if self.number % 2 else "not optimal"

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


def has_converged(before: float, after: float) -> bool:
    """Whether J, before and after an iteration, has stopped falling."""
    return before - after <= STANDSTILL * max(1.0, abs(after))


@dataclass(eq=False)
class StepwiseAlternation:
    """M-steps (11) and E-steps (10), as far as asked for; `trouble` says why there is no next."""

    scene: Scene
    settings: Settings
    half_steps: list[HalfStep] = field(default_factory=list)
    trouble: str = ""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        n, n_labeled = len(self.scene.points), int(np.sum(self.scene.y >= 0))
        if n < 2:
            self.trouble = (
                f"There {'is 1 point' if n else 'is no point'}, so there is no pair to learn from: "
                "click on the plane to add points."
            )
        elif n_labeled < 2:
            self.trouble = (
                f"{'One point has' if n_labeled else 'No point has'} a label, so no pair is "
                "labeled: click on two points or more to label them."
            )
        if self.trouble:
            return
        pairs = PairSet.from_labels(self.scene.X, self.scene.y)
        first = MStepObjective(
            pairs,
            unlabeled_weight=self.settings.weight_factor * pairs.resolve_unlabeled_weight("ratio"),
            trace_weight=self.settings.trace_weight,
            threshold=self.settings.threshold,
            sharpness=self.settings.sharpness,
        )
        self.half_steps.append(HalfStep(0, np.eye(2), first))
        self._steps = alternation_steps(first, MStepSolver(), lambda: TOLERANCE)

    def at(self, number: int) -> HalfStep | None:
        """The state after `number` half-steps, or the last one that could be reached."""
        with self._lock:  # two browser tabs may share it
            while len(self.half_steps) <= number and not self.trouble:
                last = self.half_steps[-1]
                self.trouble = last.trouble if last.number % 2 == 0 else ""
                if not self.trouble:
                    step = next(self._steps)
                    metric = np.asarray(step.metric)
                    self.half_steps.append(HalfStep(last.number + 1, metric, step.objective))
        return self.half_steps[min(number, len(self.half_steps) - 1)] if self.half_steps else None

    def end(self) -> int:
        """The number of the last M-step before J stops falling, or before no next step exists."""
        last = np.inf
        for number in range(2, 2 * MOST_ITERATIONS, 2):
            half_step = self.at(number)
            if half_step is None or half_step.number < number:
                return 0 if half_step is None else half_step.number
            if has_converged(last, half_step.descent_value):
                return number - 1
            last = half_step.descent_value
        return 2 * MOST_ITERATIONS - 1


@lru_cache(maxsize=16)
def alternation_of(scene: Scene, settings: Settings) -> StepwiseAlternation:
    """The alternation on a scene; the same arguments give the same object."""
    return StepwiseAlternation(scene, settings)


def ask_solver(half_step: HalfStep, solver: str, time_limit: float = 20.0) -> MStepSolution:
    """Solve the current M-step (11) from scratch; the message includes the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        chosen = MStepSolver(solver, time_limit=time_limit)
        solution = chosen.solve(half_step.objective, TOLERANCE)
    messages = [solution.message, *(str(warning.message) for warning in caught)]
    return replace(solution, message=" ".join(filter(None, dict.fromkeys(messages))))


def gaps_by_iteration(
    half_step: HalfStep, solver: str, most_steps: int = 1_000
) -> list[tuple[int, float]]:
    """The gaps of a solver of this package stopped after 1, 2, 3, 4, 6, ... steps from A = 0."""
    gaps: list[tuple[int, float]] = []
    steps = 1
    while solver in OWN_SOLVERS and steps <= most_steps:
        answer = MStepSolver(solver, max_iter=steps).solve(half_step.objective, TOLERANCE)
        if answer.relative_gap <= TOLERANCE:
            return [*gaps, (max(1, answer.iterations), answer.relative_gap)]
        gaps.append((steps, answer.relative_gap))
        steps = max(steps + 1, int(1.5 * steps))
    return gaps
