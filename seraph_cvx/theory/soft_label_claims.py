"""Checks of claims on soft labels: the E-step (10), (13) against (14), what the scheme descends."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import cvxpy as cp
import numpy as np

from .. import paper
from ..display.page import Chart, Curve
from ..fit.steps import alternation_steps
from ..m_step.solve import MStepSolver
from ..model.e_step import e_step
from ..model.m_step_objective import MStepObjective
from ..model.programs import descent_values
from ..numerics.checks import FloatArray
from ..pairs.pair_set import PairSet
from .claim import Check, Evidence
from .claim_data import (
    ClaimData,
    distances,
    metric_of,
    relative,
    renyi_entropy,
    shannon_entropy,
    solve_conic,
)

STEPS = 8


def solve_soft_labels(d: FloatArray, mu: float, eta: float) -> tuple[FloatArray, FloatArray]:
    """Solve (9), stated with the slacks of (14), for each pair by CVXPY: q(+1), and its value."""
    log_p = np.column_stack([paper.log_posterior(d, y, eta) for y in (1.0, -1.0)])
    q, xi = cp.Variable(log_p.shape), cp.Variable(len(d))
    goal = cp.sum(cp.rel_entr(q, np.exp(log_p))) + mu * cp.sum(xi)
    surprise = cp.sum(cp.multiply(q, -log_p), axis=1)
    solve_conic(cp.Problem(cp.Minimize(goal), [surprise <= xi, cp.sum(q, axis=1) == 1]))
    both = np.maximum(np.asarray(q.value), 0.0)
    similar = both[:, 0] / np.sum(both, axis=1)
    return similar, paper.e_step_objective(similar, d, mu=mu, eta=eta)


def check_e_step(data: ClaimData) -> Evidence:
    """Compare the solution of (9), by CVXPY, with (10)."""
    rng, count, eta = data.random(6), 300, data.threshold
    drawn = rng.choice(len(data.unlabeled), min(count // 2, len(data.unlabeled)), False)
    own = distances(data.unlabeled[drawn], data.metric)
    p = np.append(paper.posterior(own, 1.0, eta), rng.random(count - len(own)))
    p = np.clip(p, 1e-4, 1.0 - 1e-4)
    d = eta + np.log1p(-p) - np.log(p)
    differences, excesses, numbers = [], [], {}
    for mu in (data.mu, 0.1, 1.0, 4.0):
        q, value = solve_soft_labels(d, mu, eta)
        closed = paper.e_step(d, mu=mu, eta=eta)
        differences.append(relative(q - closed))
        excesses.append(np.max(paper.e_step_objective(closed, d, mu=mu, eta=eta) - value))
        numbers[f"largest difference of q, mu = {mu:.3g}"] = differences[-1]
    package = e_step(data.pairs, data.metric, data.mu, eta)[drawn]
    by_paper = paper.e_step(own, mu=data.mu, eta=eta)
    return Evidence(
        [
            Check("q against the closed form", max(differences), 1e-4),
            Check("(9) at the closed form above (9) at the solver's q", max(excesses), 1e-8),
            Check("the package's E-step against (10)", relative(package - by_paper), 1e-9),
        ],
        numbers={"posteriors": len(p), **numbers},
    )


def inner_value(d: FloatArray, mu: float, eta: float) -> FloatArray:
    """The value mu H_{1 + mu}(p) of the inner problem of (14), derived here."""
    return mu * renyi_entropy(d, 1.0 + mu, eta)


def check_posterior_regularization(data: ClaimData) -> Evidence:
    """Check the solution and the value of the inner problem of (14)."""
    rng, eta, count = data.random(8), data.threshold, 200
    drawn = rng.choice(len(data.unlabeled), min(count - 10, len(data.unlabeled)), False)
    s = np.clip(distances(data.unlabeled[drawn], data.metric) - eta, -8.0, 8.0)
    s = np.append(s, np.linspace(-4.0, 4.0, 10))
    d, off_p, off_sharpened, off_shannon, off_renyi, beyond = s + eta, [], [], [], [], []
    p = paper.posterior(d, 1.0, eta)
    variance = p * (1.0 - p) * s**2  # of ln p(y), whose two values are s apart
    for mu in (0.1, 1.0, 3.0):
        q, value = solve_soft_labels(d, mu, eta)
        shannon, renyi = mu * shannon_entropy(d, eta), inner_value(d, mu, eta)
        off_p.append(relative(q - p))
        off_sharpened.append(relative(q - paper.e_step(d, mu=mu, eta=eta)))
        off_shannon.append(relative(value - shannon))
        off_renyi.append(relative(value - renyi))
        beyond.append(np.max(shannon - renyi - mu**2 / 2.0 * variance))
    u = distances(data.unlabeled, data.metric)
    grid = np.linspace(0.01, 0.99, 99)
    sharpened = [paper.e_step(np.log1p(-grid) - np.log(grid), mu=mu, eta=0.0) for mu in (1.0, 3.0)]
    return Evidence(
        [
            Check("q of (14) against p", max(off_p), 1e-3),
            Check("value of (14) against that of (13)", max(off_shannon), 1e-6),
        ],
        [
            Check("q of (14) against p^(1 + mu), normalized", max(off_sharpened), 1e-4),
            Check("value of (14) against Renyi's entropy", max(off_renyi), 1e-7),
            Check("beyond mu^2/2 times the variance of ln p", max(0.0, *beyond), 1e-12),
        ],
        numbers={
            "largest |q - p|, mu = 1": off_p[1],
            "p = 0.9, mu = 1: q": float(sharpened[0][89]),
            "(13), unlabeled part on the data": data.mu * float(np.sum(shannon_entropy(u, eta))),
            "(14), unlabeled part on the data": float(np.sum(inner_value(u, data.mu, eta))),
        },
        charts=[
            Chart(
                "The inner minimizer of (14) is not p",
                "p(+1)",
                "q(+1)",
                [
                    Curve("q = p, as printed", grid, grid),
                    Curve("mu = 1", grid, sharpened[0]),
                    Curve("mu = 3", grid, sharpened[1]),
                ],
            )
        ],
    )


@dataclass(frozen=True, eq=False)
class Alternation:
    """An alternation of M-steps, with weight w on U, and E-steps q <- sigma(-a s(A))."""

    data: ClaimData
    weight: float
    sharpness: float

    def run(self) -> tuple[list[FloatArray], float]:
        """The metrics of the first M-steps, and their largest certified relative gap."""
        run = alternation_steps(self.objective(), MStepSolver(), tolerance=lambda: 1e-6)
        solutions = (step.solution for step in run if step.solution is not None)
        first = list(islice(solutions, STEPS))
        return list(map(metric_of, first)), max(solution.relative_gap for solution in first)

    def objective(self) -> MStepObjective:
        """State its first M-step."""
        return MStepObjective(
            self.data.pairs,
            sharpness=self.sharpness,
            unlabeled_weight=self.weight,
            trace_weight=self.data.trace_weight,
            threshold=self.data.threshold,
        )


def descent_objective(run: Alternation, A: FloatArray, q: FloatArray) -> float:
    """What the scheme descends: J(q, A) = labeled loss + w sum_U [E_q(-ln p) - H(q)/a]."""
    letters = run.data.letters | {"mu": run.weight}
    loss = -paper.m_step(*run.data.points_and_pairs, q, A, **letters)
    return loss - run.weight / run.sharpness * float(np.sum(paper.entropy(q)))


def renyi_form(run: Alternation, A: FloatArray) -> float:
    """The minimum of J over q, labeled loss + w (a - 1)/a sum_U H_a(p), by Renyi entropies."""
    d, a = distances(run.data.unlabeled, A), run.sharpness
    entropies = np.sum(renyi_entropy(d, a, run.data.threshold))
    return paper_objective(run.data, A, 0.0) + run.weight * (a - 1.0) / a * float(entropies)


def paper_objective(data: ClaimData, A: FloatArray, mu: float) -> float:
    """The paper's objective (7) as a minimization, -L(A)."""
    return -paper.simplified_objective(*data.points_and_pairs, A, **(data.letters | {"mu": mu}))


def posterior_regularized(data: ClaimData, A: FloatArray, mu: float) -> float:
    """The objective (14) less the trace, as a minimization, at its best q: kappa = -1."""
    q = paper.e_step(distances(data.unlabeled, A), mu=mu, eta=data.threshold)
    value = paper.soft_posterior_regularization(
        *data.points_and_pairs, q, A, -1.0, mu=mu, eta=data.threshold, gamma=0.0
    )
    return data.trace_weight * float(np.trace(A)) - value


def check_descent(data: ClaimData) -> Evidence:
    """Check that J falls at every half-step of the alternation of (10) and (11); (7) may not."""
    mu = data.mu
    X = np.array([[0.1], [2.0], [1.8], [-0.8], [-0.4], [-0.8]])
    six_points = PairSet.from_labels(X, [0, 0, 1, -1, -1, -1])
    runs = [
        Alternation(data, mu, 1.0 + mu),
        Alternation(ClaimData("six points", six_points, trace_weight=0.1), 1.0, 2.0),
        Alternation(data, 1.0 + mu, 1.0 + mu),
    ]
    metrics, gaps = zip(*(run.run() for run in runs), strict=True)
    seven = [
        [paper_objective(run.data, A, run.weight) for A in found]
        for run, found in zip(runs[:2], metrics[:2], strict=True)
    ]
    J = [_half_steps(run, found) for run, found in zip(runs, metrics, strict=True)]
    forms = [
        _forms_apart(run, found, values[1::2])
        for run, found, values in zip(runs, metrics, J, strict=True)
    ]
    fourteen = [posterior_regularized(data, A, mu) for A in metrics[2]]
    steps = np.arange(1, STEPS + 1)
    return Evidence(
        [Check("largest rise of (7) in a step", max(map(_rise, seven)), 1e-8)],
        [
            Check("largest rise of J in a half step", max(map(_rise, J)), 1e-8),
            Check("J against its Renyi form", max(forms), 1e-10),
            Check("largest rise of (14), weight 1 + mu", _rise(fourteen), 1e-8),
            Check(
                "J of weight 1 + mu against (14)", relative(J[2][1] - fourteen[0], J[2][1]), 1e-10
            ),
            Check("largest gap of an M-step", max(gaps), 1e-5),
        ],
        numbers={
            "(7) after the first M-step": seven[0][0],
            f"(7) after {STEPS}": seven[0][-1],
            "largest rise of (7) on the data": np.max(np.diff(seven[0])),
            "largest rise of (7) on the six points": np.max(np.diff(seven[1])),
            "weight of the entropy in (7), mu": mu,
            "its weight in J, mu^2/(1 + mu)": mu**2 / (1.0 + mu),
        },
        charts=[
            Chart(
                "Along the EM run J falls; (7) does not",
                "M-step",
                "to be minimized",
                [Curve("J", steps, J[0][1::2]), Curve("objective (7)", steps, seven[0])],
            ),
            Chart(
                "With (14)'s own M-step, (14) falls",
                "M-step",
                "to be minimized",
                [Curve("objective (14)", steps, fourteen)],
            ),
        ],
    )


def _half_steps(run: Alternation, metrics: list[FloatArray]) -> list[float]:
    """The values of J after each M-step, with the old soft labels and then with the new ones."""
    values, q = [], np.zeros(run.data.pairs.n_unlabeled)
    for A in metrics:
        values.append(descent_objective(run, A, q))
        d = distances(run.data.unlabeled, A)
        q = paper.e_step(d, mu=run.sharpness - 1.0, eta=run.data.threshold)
        values.append(descent_objective(run, A, q))
    return values


def _forms_apart(run: Alternation, metrics: list[FloatArray], values: list[float]) -> float:
    """Compare J at the E-step's q with its Renyi form, and with the package's J."""
    forms = [(renyi_form(run, A), descent_values(run.objective(), A)[0]) for A in metrics]
    return max(relative(np.subtract(pair, J), J) for pair, J in zip(forms, values, strict=True))


def _rise(values: list[float]) -> float:
    """The largest relative rise from one value to the next."""
    rises = np.diff(values) / np.maximum(1.0, np.abs(values[1:]))
    return max(0.0, float(np.max(rises)))
