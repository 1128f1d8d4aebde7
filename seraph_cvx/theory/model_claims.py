"""Checks of claims on the model (1) to (8): maximum entropy, the sign of kappa, Theorem 2."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple

import cvxpy as cp
import numpy as np
from scipy.optimize import brentq, minimize_scalar

from .. import paper
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import symmetrize
from ..pairs.pair_set import PairSet
from .claim import Evidence
from .claim_data import (
    ClaimData,
    certified,
    distances,
    relative,
    solve_conic,
    state_squared_distances,
)

GAMMA = 0.1
"""The weight of kappa^2 in (3) and (6): the claims are for any gamma > 0."""


class FixedMetric(NamedTuple):
    """Theorem 1 for one metric: four residuals, and the value of (3)."""

    gap: float
    solution: float
    multiplier: float
    likelihood: float
    value: float


def solve_both(d: FloatArray, y: FloatArray, eta: float) -> FixedMetric:
    """Solve (1) and (3) for fixed squared distances; values are those at feasible points."""
    near, observed = paper.feature(d, 1.0, eta), float(np.sum(paper.feature(d, y, eta)))
    p, xi, dual_kappa = cp.Variable(len(d)), cp.Variable(), cp.Variable()
    excess = near @ (2 * p - 1) - observed  # f(-1) = -f(+1)
    above, below = excess <= xi, -excess <= xi
    entropy = cp.sum(cp.entr(p) + cp.entr(1 - p))
    solve_conic(
        cp.Problem(cp.Maximize(entropy - cp.square(xi) / (2 * GAMMA)), [above, below]),
    )
    log_partition = cp.sum(cp.logistic(2 * near * dual_kappa) - near * dual_kappa)
    penalty = GAMMA / 2.0 * cp.square(dual_kappa)
    solve_conic(cp.Problem(cp.Minimize(log_partition - observed * dual_kappa + penalty)))
    feasible, kappa = np.clip(p.value, 0.0, 1.0), float(dual_kappa.value)
    guesses = (-2.0, 0.3, kappa)
    duals = [paper.maximum_entropy_dual(d, y, guess, eta, GAMMA) for guess in guesses]
    likelihoods = [
        np.sum(paper.log_model(d, y, guess, eta)) - GAMMA / 2.0 * guess**2 for guess in guesses
    ]
    primal = paper.maximum_entropy(feasible, d, y, eta, GAMMA)
    return FixedMetric(
        relative(duals[-1] - primal, duals[-1]),
        relative(feasible - paper.maximum_entropy_solution(d, 1.0, kappa, eta)),
        relative(below.dual_value - above.dual_value - kappa, kappa),
        relative(np.add(likelihoods, duals), duals[-1]),
        duals[-1],
    )


def check_maximum_entropy(data: ClaimData) -> Evidence:
    """Check, for a fixed metric, that max of (1) = min of (3), and p* = exp(kappa* f) / Z (2)."""
    m, y = data.pairs.n_features, data.labels
    identity = np.eye(m) * np.trace(data.metric) / m
    longest = max(np.max(distances(data.labeled, data.metric)), 1e-300)
    learned = data.metric * min(1.0, 10.0 / longest)  # beyond, p underflows in a conic solver
    metrics = (np.zeros((m, m)), identity, learned)
    solved = [solve_both(distances(data.labeled, A), y, data.threshold) for A in metrics]
    solved += [solve_both(np.array([d]), np.ones(1), 1.0) for d in (1.0, 4.0)]
    gaps, solutions, multipliers, likelihoods, values = np.transpose(solved)
    spread = max(np.ptp(values[:3]) / len(y), np.ptp(values[3:]))
    return Evidence(
        {"spread over A of the common value": (spread, 1e-6)},
        {
            "gap of (1) and (3), A fixed": (gaps, 1e-6),
            "p* against (2)": (solutions, 1e-3),
            "multiplier of (1) against kappa*": (multipliers, 1e-3),
            "(3) against the likelihood": (likelihoods, 1e-12),
        },
    )


class ProfilePoint(NamedTuple):
    """The minimum over A of (6) at one kappa: a value, a certified lower bound, and the metric."""

    kappa: float
    value: float
    lower_bound: float
    metric: FloatArray


def counterexample() -> ClaimData:
    """Make four points on a line, with one similar and three dissimilar pairs."""
    X = [[0.0], [0.3], [0.1], [0.5]]
    pairs = PairSet.from_constraints(X, [(0, 1)], [(0, 2), (1, 2), (1, 3)])
    return ClaimData("four points", pairs)


def slope_at_zero_metric(kappa: float, n_similar: int, n_dissimilar: int) -> float:
    """The derivative of -L(0, kappa) of (6) in kappa, eta = 1."""
    p = float(np.exp(paper.log_model(np.zeros(1), 1.0, kappa, 1.0))[0])
    return n_similar * (1.0 - p) - n_dissimilar * p + GAMMA * kappa


def profile(data: ClaimData, kappa: float) -> ProfilePoint:
    """Minimize -L(A, kappa) of (6) over A, with mu = 0, in the metric |kappa| A."""
    pairs, t, penalty = data.pairs, abs(kappa), GAMMA / 2.0 * kappa**2
    if kappa > 0.0:  # far pairs are the similar ones: S and D are exchanged
        pairs = PairSet.from_constraints(pairs.points, pairs.dissimilar, pairs.similar)
    lam, eta = data.trace_weight / t, t * data.threshold
    best = certified(ClaimData("", pairs, lam, eta, unlabeled_weight=0.0).objective())
    lower_bound = best.dual_value + penalty
    return ProfilePoint(kappa, best.primal_value + penalty, lower_bound, best.metric / t)


def profile_grid(data: ClaimData, sign: float) -> list[ProfilePoint]:
    """Minimize over A at fifteen kappa of one sign."""
    return [profile(data, sign * t) for t in np.geomspace(0.01, 20.0, 15)]


def best_kappa(data: ClaimData, sign: float) -> ProfilePoint:
    """Find the best kappa of one sign, by a grid and a search around its best point."""
    best = min(profile_grid(data, sign), key=attrgetter("value"))

    def near(log_share: float) -> ProfilePoint:
        return profile(data, best.kappa * float(np.exp(log_share)))

    found = minimize_scalar(lambda x: near(x).value, bounds=(-0.5, 0.5), options={"xatol": 1e-6})
    return min(near(found.x), best, key=attrgetter("value"))


def check_kappa_sign(data: ClaimData) -> Evidence:
    """Compare the sign of kappa* in (6) with the remark under (5)."""
    up = best_kappa(counterexample(), 1.0)
    lower = min(point.lower_bound for point in profile_grid(counterexample(), -1.0))
    counts = [(1, 3), (3, 1), (10, 12), (len(data.pairs.similar), len(data.pairs.dissimilar))]
    roots = [brentq(slope_at_zero_metric, -50.0, 50.0, args=n) for n in counts]
    mismatches = np.sign(np.round(roots, 9)) + np.sign(np.subtract(*np.transpose(counts)))
    hoped_for = []
    for A in data.random_metrics(claim=4, count=10):
        d, y = distances(data.labeled, A), data.labels
        for kappa in (0.1, 1.0, 5.0):
            is_likely = np.exp(paper.log_model(d, y, kappa, 1.0)) > 0.5
            hoped_for.append(np.sum(is_likely & (y * (d - 1.0) < 0.0)))
    return Evidence(
        {"kappa* of the four points is not negative": (up.kappa, 0.0)},
        {
            "A* of the four points": (np.abs(up.metric), 1e-6),
            "kappa* against the root at A = 0": (abs(up.kappa - roots[0]), 1e-3),
            "value at kappa* above the bound for kappa < 0": (up.value - lower, 0.0),
            "sign of kappa* at A = 0 against #D - #S": (np.sum(mismatches != 0.0), 0.0),
            "pairs as hoped with kappa >= 0": (sum(hoped_for), 0.0),
        },
    )


def solve_at_kappa(data: ClaimData, kappa: float) -> FloatArray:
    """Minimize (6) over A, with mu = 0 and a fixed kappa, stated in CVXPY in A itself."""
    A = cp.Variable((data.pairs.n_features,) * 2, PSD=True)
    s = state_squared_distances(A, data.labeled) - data.threshold
    loss = cp.sum(cp.logistic(cp.multiply(-kappa * data.labels, s)))
    solve_conic(cp.Problem(cp.Minimize(loss + data.trace_weight * cp.trace(A))))
    return symmetrize(A.value)


def simplified(data: ClaimData, kappa: float, mu: float) -> ClaimData:
    """The data with the hyperparameters of (7) to which Theorem 2 maps those of (6)."""
    _, lam, eta = _mapped(data, np.zeros(0), kappa)
    return replace(data, trace_weight=lam, threshold=eta, unlabeled_weight=mu)


def _mapped(data: ClaimData, A: FloatArray, kappa: float) -> tuple[FloatArray, float, float]:
    return paper.simplified_parameters(A, kappa, lam=data.trace_weight, eta=data.threshold)


def _apart(data: ClaimData, A: FloatArray, kappa: float, other: ClaimData, B: FloatArray) -> float:
    """Compare p(+1) of every pair, by (5) at A and kappa, with that by (8) at B."""
    log_p = paper.log_model(distances(data.differences, A), 1.0, kappa, data.threshold)
    return float(np.max(np.abs(np.exp(log_p) - other.posteriors(B))))


def check_elimination(data: ClaimData) -> Evidence:
    """Compare (6) at (A*, kappa*) with (7) at (-kappa* A*, -kappa* eta, lambda / -kappa*)."""
    kappa = best_kappa(data, -1.0).kappa
    A = solve_at_kappa(data, kappa)
    mapped, supervised = _mapped(data, A, kappa)[0], simplified(data, kappa, 0.0)
    solved = certified(supervised.objective())
    apart = _apart(data, A, kappa, supervised, solved.metric)
    wrong = simplified(counterexample(), best_kappa(counterexample(), 1.0).kappa, 0.0).threshold
    value, off_metric = supervised.paper_loss(mapped), np.linalg.norm(mapped - solved.metric)
    size = max(float(np.linalg.norm(solved.metric)), data.unit)
    return Evidence(
        {"eta_hat is not positive, four points of claim 4": (-wrong, 0.0)},
        {
            "objectives (6) and (7) at random points": (_identity(data), 1e-11),
            "value of the mapped metric in (7)": (relative(value - solved.dual_value, value), 1e-6),
            "metric, mu = 0": (off_metric / size, 1e-3),
            "posteriors of all pairs, mu = 0": (apart, 1e-3),
        },
    )


def _identity(data: ClaimData) -> list[float]:
    """Compare -L(A, kappa) - gamma kappa^2/2 of (6) with -L_hat(-kappa A) of (7), relatively."""
    kappas = -np.exp(data.random(5).uniform(-1.5, 1.5, size=6))
    differences = []
    for A, kappa in zip(data.random_metrics(claim=5, count=6), kappas.tolist(), strict=True):
        value_6 = paper.full_objective(
            *data.points_and_pairs, A, kappa, gamma=GAMMA, **data.letters
        )
        full = -value_6 - GAMMA / 2.0 * kappa**2
        value = simplified(data, kappa, data.mu).paper_loss(_mapped(data, A, kappa)[0])
        differences.append(relative(value - full, full))
    return differences
