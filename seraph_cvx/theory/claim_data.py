"""The data that claims are checked on, and the paper's formulas written pair by pair.

Nothing is streamed or factored: each function is the printed formula over explicit rows of pairs,
so that it can be read along with the paper and used against the package's own, faster forms.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import entr, expit

from ..m_step.solve import solve_m_step
from ..model.e_step import e_step
from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray, IntArray
from ..pairs.pair_set import PairSet
from ..solvers.solution import MStepSolution
from .claim import ClaimUndecided

if TYPE_CHECKING:
    import cvxpy as cp

GAP = 1e-8
"""The certified relative gap to which the M-steps of claims are solved."""

TIGHT = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
"""Settings that make Clarabel as accurate as possible: its answers are compared entry by entry."""


@dataclass(frozen=True, eq=False)
class ClaimData:
    """A data set with the paper's hyper-sparsity setting: mu = #(S u D)/#U, lambda, eta.

    Examples
    --------
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> setting = ClaimData("four points", pairs)
    >>> setting.labels, setting.mu
    (array([ 1., -1., -1.]), 1.0)
    """

    name: str
    pairs: PairSet
    trace_weight: float = 1.0
    threshold: float = 1.0
    seed: int = 0

    def random(self, claim: int) -> np.random.Generator:
        """A random generator with the same numbers at every call, others for every claim."""
        return np.random.default_rng([self.seed, claim])

    @property
    def mu(self) -> float:
        """The paper's weight of the unlabeled pairs, #(S u D) / #U."""
        return self.pairs.resolve_unlabeled_weight("ratio")

    @cached_property
    def labels(self) -> FloatArray:
        """The labels y_ij of the labeled pairs: +1 similar, -1 dissimilar."""
        n_similar, n_dissimilar = len(self.pairs.similar), len(self.pairs.dissimilar)
        return np.concatenate([np.ones(n_similar), -np.ones(n_dissimilar)])

    @cached_property
    def labeled(self) -> FloatArray:
        """The differences x_i - x_j of the labeled pairs."""
        return differences(self.pairs.points, self.pairs.labeled)

    @cached_property
    def unlabeled(self) -> FloatArray:
        """The differences x_i - x_j of the unlabeled pairs."""
        return differences(self.pairs.points, self.pairs.unlabeled)

    @cached_property
    def first_m_step(self) -> MStepSolution:
        """The first M-step, in which every unlabeled pair counts as dissimilar."""
        return certified(self.objective(soft_labels=None))

    @cached_property
    def soft_labels(self) -> FloatArray:
        """The soft labels q(+1) of the first E-step."""
        return e_step(self.pairs, self.metric_of(self.first_m_step), self.mu, self.threshold)

    @cached_property
    def m_step(self) -> MStepObjective:
        """The second M-step, on which claims about (11) are checked."""
        return self.objective(soft_labels=self.soft_labels)

    @cached_property
    def solution(self) -> MStepSolution:
        """The certified solution of `m_step`."""
        return certified(self.m_step, self.first_m_step.metric)

    @cached_property
    def metric(self) -> FloatArray:
        """The metric of `solution`."""
        return self.metric_of(self.solution)

    @cached_property
    def few(self) -> ClaimData:
        """At most 24 of the points, the labeled ones first: for conic solvers."""
        n_points = self.pairs.n_points
        seen = np.unique(self.pairs.labeled)
        others = np.setdiff1d(np.arange(n_points), seen)
        kept = np.concatenate([seen[:12], others])[:24]
        position = np.full(n_points, -1)
        position[kept] = np.arange(len(kept))

        def inside(rows: IntArray) -> IntArray:
            return position[rows[np.all(position[rows] >= 0, axis=1)]]

        pairs = PairSet.from_constraints(
            self.pairs.points[kept], inside(self.pairs.similar), inside(self.pairs.dissimilar)
        )
        return ClaimData(self.name, pairs, self.trace_weight, self.threshold, self.seed)

    @cached_property
    def unit(self) -> float:
        """The scale of metrics: eta over the mean squared distance."""
        V = np.vstack([self.labeled, self.unlabeled])
        return self.threshold / max(float(np.mean(np.sum(V**2, axis=1))), 1e-300)

    def objective(self, soft_labels: FloatArray | None) -> MStepObjective:
        """State the M-step (11) with given soft labels."""
        return MStepObjective(
            self.pairs,
            soft_labels=soft_labels,
            trace_weight=self.trace_weight,
            threshold=self.threshold,
        )

    def random_metrics(self, claim: int, count: int) -> list[FloatArray]:
        """Draw PSD matrices of every rank, of about the size of the learned metric."""
        rng, m = self.random(claim), self.pairs.n_features
        size = max(float(np.trace(self.metric)), self.unit)
        metrics = []
        for _ in range(count):
            F = rng.normal(size=(m, int(rng.integers(1, m + 1))))
            B = F @ F.T
            metrics.append(B * (size * 10.0 ** rng.uniform(-1.5, 0.5) / np.trace(B)))
        return metrics

    @staticmethod
    def metric_of(solution: MStepSolution) -> FloatArray:
        """The metric of a solution; an error if the solver returned none."""
        if solution.metric is None:
            raise ClaimUndecided(f"{solution.solver} returned no metric: {solution.message}")
        return solution.metric


def certified(
    objective: MStepObjective, start: FloatArray | None = None, tol: float = GAP
) -> MStepSolution:
    """Solve (11) by FISTA, with a certificate; the caller checks the gap."""
    return solve_m_step(objective, tol=tol, start=start)


def differences(points: FloatArray, rows: IntArray) -> FloatArray:
    """The differences x_i - x_j of the rows (i, j)."""
    return np.asarray(points[rows[:, 0]] - points[rows[:, 1]])


def scores(V: FloatArray, A: FloatArray, threshold: float) -> FloatArray:
    """The score s = v'Av - eta of each row v."""
    return np.asarray(np.einsum("ij,ij->i", V @ A, V) - threshold)


def posterior(y: FloatArray | float, s: FloatArray) -> FloatArray:
    """The posterior p(y) = 1 / (1 + e^{y s}), eq. (8)."""
    return np.asarray(expit(-y * s))


def log_posterior(y: FloatArray | float, s: FloatArray) -> FloatArray:
    """The logarithm of the posterior, ln p(y) = -log(1 + e^{y s}), eq. (8)."""
    return np.asarray(-np.logaddexp(0.0, y * s))


def shannon_entropy(s: FloatArray) -> FloatArray:
    """Shannon's entropy H(p) = -sum_y p(y) ln p(y) of the posterior (8)."""
    return np.asarray(entr(posterior(1.0, s)) + entr(posterior(-1.0, s)))


def renyi_entropy(s: FloatArray, order: float) -> FloatArray:
    """Renyi's entropy H_a(p) = log(sum_y p(y)^a) / (1 - a); at a = 1 it is Shannon's."""
    powers = np.logaddexp(order * log_posterior(1.0, s), order * log_posterior(-1.0, s))
    return np.asarray(powers / (1.0 - order))


def labeled_loss(setting: ClaimData, A: FloatArray) -> float:
    """The loss that (7), (11) and J share: -sum_{S u D} ln p(y_ij) + lambda tr(A)."""
    s = scores(setting.labeled, A, setting.threshold)
    return float(-np.sum(log_posterior(setting.labels, s)) + setting.trace_weight * np.trace(A))


def relative(difference: float | FloatArray, size: float | FloatArray) -> float:
    """The largest |difference|, relative to max(1, max |size|)."""
    return float(np.max(np.abs(difference), initial=0.0)) / max(1.0, float(np.max(np.abs(size))))


def solve_conic(problem: cp.Problem) -> str:
    """Solve with Clarabel, and return its status, which no verdict relies on.

    Where it breaks down at tight tolerances, it gets a second try with its own.

    Raises
    ------
    ClaimUndecided
        Where it leaves no values behind.
    """
    import cvxpy as cp

    words = ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "may be inaccurate": it is in the status
        for options in (TIGHT, {}):
            try:
                problem.solve(solver="CLARABEL", **options)
            except cp.SolverError as error:
                words = str(error)
                continue
            words = f"its status is {problem.status}"
            if all(variable.value is not None for variable in problem.variables()):
                return str(problem.status)
    raise ClaimUndecided(f"Clarabel gave no answer: {words}.")
