"""The data that claims are checked on, and the formulas that several of them share.

What the paper prints is taken from :mod:`seraph_cvx.paper`, pair by pair; nothing is streamed.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import paper
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
    """A data set with the paper's hyper-sparsity setting: mu = #(S u D)/#U, lambda, eta."""

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

    @property
    def points_and_pairs(self) -> tuple[FloatArray, IntArray, IntArray, IntArray]:
        """X, S, D and U, the first arguments of the formulas of the paper."""
        pairs = self.pairs
        return pairs.points, pairs.similar, pairs.dissimilar, pairs.unlabeled

    @property
    def letters(self) -> dict[str, Any]:
        """The paper's mu, lambda and eta, the keywords of its formulas."""
        return {"mu": self.mu, "lam": self.trace_weight, "eta": self.threshold}

    @cached_property
    def labels(self) -> FloatArray:
        """The labels y_ij of the labeled pairs: +1 similar, -1 dissimilar."""
        return np.repeat([1.0, -1.0], [len(self.pairs.similar), len(self.pairs.dissimilar)])

    @cached_property
    def labeled(self) -> FloatArray:
        """The differences x_i - x_j of the labeled pairs."""
        return paper.differences(self.pairs.points, self.pairs.labeled)

    @cached_property
    def unlabeled(self) -> FloatArray:
        """The differences x_i - x_j of the unlabeled pairs."""
        return paper.differences(self.pairs.points, self.pairs.unlabeled)

    @cached_property
    def differences(self) -> FloatArray:
        """The differences of all pairs, the labeled ones first."""
        return np.vstack([self.labeled, self.unlabeled])

    @cached_property
    def weights(self) -> FloatArray:
        """The weight c_k of every pair in (11): 1, or mu where it is unlabeled."""
        counts = [self.pairs.n_labeled, self.pairs.n_unlabeled]
        return np.repeat([1.0, self.mu], counts)

    @cached_property
    def first_m_step(self) -> MStepSolution:
        """The first M-step, in which every unlabeled pair counts as dissimilar."""
        return certified(self.objective(soft_labels=None))

    @cached_property
    def soft_labels(self) -> FloatArray:
        """The soft labels q(+1) of the first E-step."""
        return e_step(self.pairs, metric_of(self.first_m_step), self.mu, self.threshold)

    @cached_property
    def m_step(self) -> MStepObjective:
        """The second M-step, on which claims about (11) are checked."""
        return self.objective(soft_labels=self.soft_labels)

    @cached_property
    def metric(self) -> FloatArray:
        """The certified solution of `m_step`."""
        return metric_of(certified(self.m_step, self.first_m_step.metric))

    @cached_property
    def few(self) -> ClaimData:
        """At most 24 of the points, the labeled ones first: for conic solvers."""
        seen = np.unique(self.pairs.labeled)
        others = np.setdiff1d(np.arange(self.pairs.n_points), seen)
        pairs = restrict(self.pairs, np.concatenate([seen[:12], others])[:24])
        return ClaimData(self.name, pairs, self.trace_weight, self.threshold, self.seed)

    @cached_property
    def unit(self) -> float:
        """The scale of metrics: eta over the mean squared distance."""
        mean = np.mean(np.sum(self.differences**2, axis=1))
        return self.threshold / max(float(mean), 1e-300)

    @cached_property
    def size(self) -> float:
        """The trace of the learned metric, or the scale of metrics where that is larger."""
        return max(float(np.trace(self.metric)), self.unit)

    def objective(self, soft_labels: FloatArray | None) -> MStepObjective:
        """State the M-step (11) with given soft labels."""
        return MStepObjective(
            self.pairs,
            soft_labels=soft_labels,
            trace_weight=self.trace_weight,
            threshold=self.threshold,
        )

    def loss(self, A: FloatArray) -> float:
        """The negative -F(A) of (11), as printed, with the soft labels of the first E-step."""
        return -paper.m_step(*self.points_and_pairs, self.soft_labels, A, **self.letters)

    def gradient(self, A: FloatArray) -> FloatArray:
        """The gradient of F that is printed below (11)."""
        return paper.m_step_gradient(*self.points_and_pairs, self.soft_labels, A, **self.letters)

    def posteriors(self, A: FloatArray, y: float = 1.0) -> FloatArray:
        """The posterior p(y) of (8) of every pair, the labeled ones first."""
        return paper.posterior(distances(self.differences, A), y, self.threshold)

    def random_metrics(self, claim: int, count: int) -> list[FloatArray]:
        """Draw PSD matrices of every rank, of about the size of the learned metric."""
        rng, m = self.random(claim), self.pairs.n_features
        metrics = []
        for _ in range(count):
            F = rng.normal(size=(m, int(rng.integers(1, m + 1))))
            B = F @ F.T
            metrics.append(B * (self.size * 10.0 ** rng.uniform(-1.5, 0.5) / np.trace(B)))
        return metrics


def certified(objective: MStepObjective, start: FloatArray | None = None) -> MStepSolution:
    """Solve (11), with a certificate; the caller checks the gap."""
    return solve_m_step(objective, tol=GAP, start=start)


def metric_of(solution: MStepSolution) -> FloatArray:
    """The metric of a solution; an error if the solver returned none."""
    if solution.metric is None:
        raise ClaimUndecided(f"{solution.solver} returned no metric: {solution.message}")
    return solution.metric


def restrict(pairs: PairSet, kept: IntArray, n_labeled: int | None = None) -> PairSet:
    """Keep these points, and the labels of pairs of the first `n_labeled` of them."""
    position = np.full(pairs.n_points, -1)
    position[kept] = np.arange(len(kept))
    position[kept[n_labeled:] if n_labeled is not None else []] = -1
    similar, dissimilar = (
        position[rows[np.all(position[rows] >= 0, axis=1)]]
        for rows in (pairs.similar, pairs.dissimilar)
    )
    return PairSet.from_constraints(pairs.points[kept], similar, dissimilar)


def distances(V: FloatArray, A: FloatArray) -> FloatArray:
    """The squared distance v'Av of each row v."""
    return np.asarray(np.sum((V @ A) * V, axis=1))


def norm(A: FloatArray) -> float:
    """The Frobenius norm."""
    return float(np.linalg.norm(A))


def moment(V: FloatArray, weights: FloatArray) -> FloatArray:
    """The weighted sum of outer products, sum_k w_k v_k v_k'."""
    return np.asarray((V.T * weights) @ V)


def factor_of(A: FloatArray) -> FloatArray:
    """A square factor L with LL' = A, from which L-BFGS over factors starts."""
    eigenvalues, vectors = np.linalg.eigh(A)
    return np.asarray(vectors * np.sqrt(np.maximum(eigenvalues, 0.0)))


def renyi_entropy(d: FloatArray, order: float, eta: float) -> FloatArray:
    """Renyi's entropy H_a(p) = log(sum_y p(y)^a) / (1 - a) of (8); at a = 1 it is Shannon's."""
    powers = [order * paper.log_posterior(d, y, eta) for y in (1.0, -1.0)]
    return np.asarray(np.logaddexp(*powers) / (1.0 - order))


def shannon_entropy(d: FloatArray, eta: float) -> FloatArray:
    """Shannon's entropy H(p) of the posterior (8)."""
    return paper.entropy(paper.posterior(d, 1.0, eta))


def relative(difference: float | FloatArray, size: float | FloatArray = 1.0) -> float:
    """The largest |difference|, relative to max(1, max |size|)."""
    return float(np.max(np.abs(difference), initial=0.0)) / max(1.0, float(np.max(np.abs(size))))


def solve_conic(problem: cp.Problem) -> str:
    """Solve with Clarabel, at a second try with its own tolerances; its status decides nothing."""
    import cvxpy as cp

    reason = ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "may be inaccurate": it is in the status
        for options in (TIGHT, {}):
            try:
                problem.solve(solver="CLARABEL", **options)
            except cp.SolverError as error:
                reason = str(error)
                continue
            reason = f"its status is {problem.status}"
            if all(variable.value is not None for variable in problem.variables()):
                return str(problem.status)
    raise ClaimUndecided(f"Clarabel gave no answer: {reason}.")
