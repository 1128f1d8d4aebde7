"""Checks of claims on soft labels: the E-step (10), (13) against (14), what the scheme descends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

import cvxpy as cp
import numpy as np

from .. import paper
from ..certificate import Certificate
from ..fit.alternation import alternation_steps
from ..m_step.solve import MStepSolver
from ..model.m_step_objective import descent_values
from ..model.posterior import e_step
from ..numerics.checks import FloatArray
from ..pairs.pair_set import PairSet
from .claim import Evidence
from .claim_data import (
    ClaimData,
    certificate_of,
    distances,
    relative,
    renyi_entropy,
    solve_conic,
)


def solve_soft_labels(d: FloatArray, mu: float, eta: float) -> tuple[FloatArray, FloatArray]:
    """Solve (9), stated with the slacks of (14), for each pair by CVXPY: q(+1), and its value."""
    log_p = np.column_stack([paper.log_posterior(d, y, eta) for y in (1.0, -1.0)])
    q, xi = cp.Variable(log_p.shape), cp.Variable(len(d))
    goal = cp.sum(cp.rel_entr(q, np.exp(log_p))) + mu * cp.sum(xi)
    surprise = cp.sum(cp.multiply(q, -log_p), axis=1)
    solve_conic(cp.Problem(cp.Minimize(goal), [surprise <= xi, cp.sum(q, axis=1) == 1]))
    both = np.maximum(q.value, 0.0)
    similar = both[:, 0] / np.sum(both, axis=1)
    return similar, paper.e_step_objective(similar, d, mu=mu, eta=eta)


def draw_distances(data: ClaimData, claim: int, count: int) -> FloatArray:
    """Draw squared distances: of unlabeled pairs, and others with random posteriors."""
    rng, own = data.random(claim), distances(data.unlabeled, data.metric) - data.threshold
    own = rng.choice(own, min(count // 2, len(own)), replace=False)
    own = np.clip(own, -8.0, 8.0)  # conic solvers are not asked about a p of less than 3e-4
    p = rng.uniform(0.02, 0.98, count - len(own))
    return data.threshold + np.append(own, np.log1p(-p) - np.log(p))


def check_e_step(data: ClaimData) -> Evidence:
    """Compare the solution of (9), by CVXPY, with (10)."""
    d, eta, apart, excesses = draw_distances(data, 6, 300), data.threshold, [], []
    for mu in (data.mu, 0.1, 1.0, 4.0):
        q, value = solve_soft_labels(d, mu, eta)
        closed = paper.e_step(d, mu=mu, eta=eta)
        apart.append(relative(q - closed))
        excesses.append(paper.e_step_objective(closed, d, mu=mu, eta=eta) - value)
    package = e_step(data.pairs, data.metric, data.mu, eta)
    by_paper = paper.e_step(distances(data.unlabeled, data.metric), mu=data.mu, eta=eta)
    return Evidence(
        {
            "q against the closed form": (apart, 1e-4),
            "(9) at the closed form above (9) at the solver's q": (excesses, 1e-8),
            "the package's E-step against (10)": (relative(package - by_paper), 1e-9),
        },
    )


def check_posterior_regularization(data: ClaimData) -> Evidence:
    """Check the solution of the inner problem of (14), and its value mu H_{1 + mu}(p)."""
    d, eta, rows = draw_distances(data, 8, 200), data.threshold, []
    p = paper.posterior(d, 1.0, eta)
    variance = p * (1.0 - p) * (d - eta) ** 2  # of ln p(y), whose two values are d - eta apart
    for mu in (0.1, 1.0, 3.0):
        q, value = solve_soft_labels(d, mu, eta)
        shannon, renyi = mu * paper.entropy(p), mu * renyi_entropy(d, 1.0 + mu, eta)
        off_values = relative(value - shannon), relative(value - renyi)
        off_labels = relative(q - p), relative(q - paper.e_step(d, mu=mu, eta=eta))
        beyond = np.max(shannon - renyi - mu**2 / 2.0 * variance)
        rows.append((*off_labels, *off_values, beyond))
    off_p, off_sharpened, off_shannon, off_renyi, beyond = np.transpose(rows)
    return Evidence(
        {
            "q of (14) against p": (off_p, 1e-3),
            "value of (14) against that of (13)": (off_shannon, 1e-6),
        },
        {
            "q of (14) against p^(1 + mu), normalized": (off_sharpened, 1e-4),
            "value of (14) against Renyi's entropy": (off_renyi, 1e-7),
            "beyond mu^2/2 times the variance of ln p": (beyond, 1e-12),
        },
    )


def descent_objective(data: ClaimData, A: FloatArray, q: FloatArray) -> float:
    """What the scheme descends: J(q, A) = labeled loss + w sum_U [E_q(-ln p) - H(q)/a]."""
    loss = -paper.m_step(*data.points_and_pairs, q, A, **data.letters)
    return loss - data.mu / data.exponent * float(np.sum(paper.entropy(q)))


def renyi_form(data: ClaimData, A: FloatArray) -> float:
    """The minimum of J over q, labeled loss + w (a - 1)/a sum_U H_a(p), by Renyi entropies."""
    entropies = renyi_entropy(distances(data.unlabeled, A), data.exponent, data.threshold)
    weight = data.mu * (data.exponent - 1.0) / data.exponent
    return replace(data, unlabeled_weight=0.0).paper_loss(A) + weight * float(np.sum(entropies))


def posterior_regularized(data: ClaimData, A: FloatArray) -> float:
    """The objective (14) less the trace, as a minimization, at its best q: kappa = -1."""
    mu, eta = data.mu, data.threshold
    q = paper.e_step(distances(data.unlabeled, A), mu=mu, eta=eta)
    value = paper.soft_posterior_regularization(
        *data.points_and_pairs, q, A, -1.0, mu=mu, eta=eta, gamma=0.0
    )
    return data.trace_weight * float(np.trace(A)) - value


class Alternation(NamedTuple):
    """The first M-steps of an alternation, and J after each M-step and after each E-step."""

    m_steps: list[Certificate]
    J: list[float]
    forms: list[float]  # J by Renyi entropies, and by the package, against J after the E-steps


def alternate(data: ClaimData, count: int = 8) -> Alternation:
    """Alternate M-steps, with weight w = mu on U, and E-steps q <- sigma(-a s(A))."""
    steps = alternation_steps(data.objective(), MStepSolver(), tolerance=lambda: 1e-6)
    solutions = (step.solution for step in steps if step.solution is not None)
    run = Alternation(list(map(certificate_of, islice(solutions, count))), [], [])
    q = np.zeros(data.pairs.n_unlabeled)
    for A in (m_step.metric for m_step in run.m_steps):
        run.J.append(descent_objective(data, A, q))
        q = paper.e_step(distances(data.unlabeled, A), mu=data.exponent - 1.0, eta=data.threshold)
        J = descent_objective(data, A, q)
        run.J.append(J)
        others = (renyi_form(data, A), descent_values(data.objective(), A)[0])
        run.forms.append(relative(np.subtract(others, J), J))
    return run


def check_descent(data: ClaimData) -> Evidence:
    """Check that J falls at every half-step of the alternation of (10) and (11); (7) may not."""
    mu = data.mu
    X = [[0.1], [2.0], [1.8], [-0.8], [-0.4], [-0.8]]
    pairs = PairSet.from_labels(X, [0, 0, 1, -1, -1, -1])
    six_points = ClaimData("six points", pairs, trace_weight=0.1, unlabeled_weight=1.0)
    heavy = replace(data, unlabeled_weight=1.0 + mu, sharpness=1.0 + mu)
    own, six, other = runs = [alternate(case) for case in (data, six_points, heavy)]
    seven = [data.paper_loss(step.metric) for step in own.m_steps]
    seven_of_six = [six_points.paper_loss(step.metric) for step in six.m_steps]
    fourteen = [posterior_regularized(data, step.metric) for step in other.m_steps]
    return Evidence(
        {"largest rise of (7) in a step": ([_rise(seven), _rise(seven_of_six)], 1e-8)},
        {
            "largest rise of J in a half step": ([_rise(run.J) for run in runs], 1e-8),
            "J against its Renyi form": ([run.forms for run in runs], 1e-10),
            "largest rise of (14), weight 1 + mu": (_rise(fourteen), 1e-8),
            "J of weight 1 + mu against (14)": (
                relative(other.J[1] - fourteen[0], other.J[1]),
                1e-10,
            ),
            "largest gap of an M-step": (
                [step.relative_gap for run in runs for step in run.m_steps],
                1e-5,
            ),
        },
    )


def _rise(values: Sequence[float]) -> float:
    """The largest relative rise from one value to the next."""
    return float(np.max(np.diff(values) / np.maximum(1.0, np.abs(values[1:]))))
