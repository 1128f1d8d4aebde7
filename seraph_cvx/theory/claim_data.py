"""The data that claims are checked on, and the formulas that several of them share.

What the paper prints is taken from :mod:`seraph_cvx.paper`, pair by pair; nothing is streamed.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .. import paper
from ..certificate import Certificate
from ..m_step.solve import solve_m_step
from ..model.m_step_objective import MStepObjective
from ..model.posterior import e_step
from ..numerics.checks import FloatArray, IntArray
from ..pairs.pair_set import PairSet
from ..solvers.solution import MStepSolution
from .claim import ClaimUndecided

if TYPE_CHECKING:
    import cvxpy as cp

GAP = 1e-8
"""The certified relative gap to which the M-steps of claims are solved."""

MOST_POINTS = 100
"""As many as the paper's samplings have (Section 5.1)."""

TIGHT = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
"""Settings that make Clarabel as accurate as possible: its answers are compared entry by entry."""


@dataclass(frozen=True, eq=False)
class ClaimData:
    """A data set with hyperparameters: by default the paper's hyper-sparsity setting."""

    name: str
    pairs: PairSet
    trace_weight: float = 1.0  # lambda
    threshold: float = 1.0  # eta
    seed: int = 0
    unlabeled_weight: float | str = "ratio"  # mu = #(S u D) / #U
    sharpness: float | None = None

    def random(self, claim: int) -> np.random.Generator:
        """A random generator with the same numbers at every call, others for every claim."""
        return np.random.default_rng([self.seed, claim])

    @cached_property
    def mu(self) -> float:
        """The weight of the unlabeled pairs."""
        return self.pairs.resolve_unlabeled_weight(self.unlabeled_weight)

    @property
    def exponent(self) -> float:
        """The exponent of the posterior in the E-step (10), by default 1 + mu."""
        return 1.0 + self.mu if self.sharpness is None else self.sharpness

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
        return np.repeat([1.0, self.mu], [len(self.labeled), len(self.unlabeled)])

    @cached_property
    def first_metric(self) -> FloatArray:
        """The metric of the first M-step, in which every unlabeled pair counts as dissimilar."""
        return certified(self.objective()).metric

    @cached_property
    def soft_labels(self) -> FloatArray:
        """The soft labels q(+1) of the first E-step."""
        return e_step(self.pairs, self.first_metric, self.mu, self.threshold)

    @cached_property
    def m_step(self) -> MStepObjective:
        """The second M-step, on which claims about (11) are checked."""
        return self.objective(self.soft_labels)

    @cached_property
    def metric(self) -> FloatArray:
        """The certified solution of `m_step`."""
        return certified(self.m_step, self.first_metric).metric

    @cached_property
    def few(self) -> ClaimData:
        """At most 24 of the points, the labeled ones first: for conic solvers."""
        seen = np.unique(self.pairs.labeled)
        others = np.setdiff1d(np.arange(self.pairs.n_points), seen)
        kept = np.append(seen[:12], others)[:24]
        position = np.full(self.pairs.n_points, -1)
        position[kept] = np.arange(len(kept))
        rows = (position[labeled] for labeled in (self.pairs.similar, self.pairs.dissimilar))
        within = (pairs[np.all(pairs >= 0, axis=1)] for pairs in rows)
        return replace(self, pairs=PairSet.from_constraints(self.pairs.points[kept], *within))

    @cached_property
    def unit(self) -> float:
        """The scale of metrics: eta over the mean squared distance."""
        mean = np.mean(np.sum(self.differences**2, axis=1))
        return self.threshold / max(float(mean), 1e-300)

    @cached_property
    def size(self) -> float:
        """The trace of the learned metric, or the scale of metrics where that is larger."""
        return max(float(np.trace(self.metric)), self.unit)

    def objective(self, soft_labels: FloatArray | None = None) -> MStepObjective:
        """State the M-step (11) with given soft labels; by default the first one."""
        return MStepObjective(
            self.pairs,
            soft_labels=soft_labels,
            sharpness=self.sharpness,
            unlabeled_weight=self.mu,
            trace_weight=self.trace_weight,
            threshold=self.threshold,
        )

    def losses(self, metrics: Iterable[FloatArray]) -> FloatArray:
        """The negative -F(A) of (11), as printed, with the soft labels of the first E-step."""
        q, letters = self.soft_labels, self.letters
        return np.array([-paper.m_step(*self.points_and_pairs, q, A, **letters) for A in metrics])

    def gradient(self, A: FloatArray) -> FloatArray:
        """The gradient of F that is printed below (11)."""
        return paper.m_step_gradient(*self.points_and_pairs, self.soft_labels, A, **self.letters)

    def paper_loss(self, A: FloatArray) -> float:
        """The paper's objective (7) as a minimization, -L(A)."""
        return -paper.simplified_objective(*self.points_and_pairs, A, **self.letters)

    def posteriors(self, A: FloatArray, y: float = 1.0) -> FloatArray:
        """The posterior p(y) of (8) of every pair, the labeled ones first."""
        return paper.posterior(distances(self.differences, A), y, self.threshold)

    def unlabeled_entropies(self, A: FloatArray) -> FloatArray:
        """Shannon's entropy H(p) of the posterior (8) of every unlabeled pair."""
        return paper.entropy(self.posteriors(A)[len(self.labeled) :])

    def random_metrics(self, claim: int, count: int) -> FloatArray:
        """Draw PSD matrices of every rank, of about the size of the learned metric."""
        rng, m = self.random(claim), self.pairs.n_features
        metrics = []
        for _ in range(count):
            F = rng.normal(size=(m, int(rng.integers(1, m + 1))))
            metrics.append(F @ F.T * (10.0 ** rng.uniform(-1.5, 0.5) / np.sum(F**2)))
        return self.size * np.array(metrics)


def certified(objective: MStepObjective, start: FloatArray | None = None) -> Certificate:
    """Solve (11): the bounds on its optimum, whose gap the caller checks, and the metric."""
    return certificate_of(solve_m_step(objective, tol=GAP, start=start))


def certificate_of(solution: MStepSolution) -> Certificate:
    """The certificate of a solution; an error if the solver returned no metric."""
    if solution.certificate is None:
        raise ClaimUndecided(f"{solution.solver} returned no metric: {solution.message}")
    return solution.certificate


def prepare_pairs(X: ArrayLike, y: ArrayLike) -> PairSet:
    """Make the pairs that the claims are checked on: similar, dissimilar and unlabeled ones."""
    pairs = PairSet.from_labels(X, y)
    for kind in ("similar", "dissimilar"):
        if not len(getattr(pairs, kind)):
            raise ValueError(
                f"No pair is {kind}: the claims need labels of at least two classes, and two "
                "points of one of them."
            )
    if not pairs.n_unlabeled:
        raise ValueError("No pair is unlabeled: add points of unknown class (label -1).")
    if pairs.n_points > MOST_POINTS:
        raise ValueError(
            f"The claims are checked pair by pair, of at most {MOST_POINTS} points, not "
            f"{pairs.n_points}: draw some by seraph_cvx.datasets.sample."
        )
    if not np.any(pairs.feature_ranges > 0.0):
        raise ValueError("All points are the same: there is nothing to measure.")
    return PairSet.from_constraints(pairs.points, pairs.similar, pairs.dissimilar)


def distances(V: FloatArray, A: FloatArray) -> FloatArray:
    """The squared distance v'Av of each row v."""
    return np.asarray(np.sum((V @ A) * V, axis=1))


def moment(V: FloatArray, weights: FloatArray) -> FloatArray:
    """The weighted second moment sum_k w_k v_k v_k' of the rows of V."""
    return (V.T * weights) @ V


def state_squared_distances(A: cp.Variable, V: FloatArray) -> cp.Expression:
    """State the squared distances v_k'Av_k of the rows of V: linear in the distinct entries."""
    i, j = np.triu_indices(V.shape[1])
    return (V[:, i] * V[:, j] * np.where(i == j, 1.0, 2.0)) @ A[i, j]


def renyi_entropy(d: FloatArray, order: float, eta: float) -> FloatArray:
    """Renyi's entropy H_a(p) = log(sum_y p(y)^a) / (1 - a) of (8); at a = 1 it is Shannon's."""
    powers = [order * paper.log_posterior(d, y, eta) for y in (1.0, -1.0)]
    return np.logaddexp(*powers) / (1.0 - order)


def relative(difference: ArrayLike, size: ArrayLike = 1.0) -> float:
    """The largest |difference|, relative to max(1, max |size|)."""
    return float(np.max(np.abs(difference), initial=0.0) / np.max(np.abs(size), initial=1.0))


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
