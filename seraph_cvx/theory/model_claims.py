"""Checks of claims on the model (1) to (8): maximum entropy, the sign of kappa, Theorem 2."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import cvxpy as cp
import numpy as np
from scipy.optimize import brentq, minimize, minimize_scalar
from scipy.special import expit

from .. import paper
from ..display.page import Chart, Curve
from ..fit.direct import minimize_directly
from ..model.m_step_objective import MStepObjective
from ..model.programs import SemiSupervisedObjective
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import symmetrize
from ..pairs.pair_set import PairSet
from .claim import Check, Evidence
from .claim_data import (
    ClaimData,
    certified,
    distances,
    factor_of,
    metric_of,
    moment,
    norm,
    relative,
    solve_conic,
)

GAMMA = 0.1
LARGEST_DISTANCE = 10.0
"""The largest squared distance of a labeled pair: beyond, p underflows in a conic solver."""

ROUNDS, ESCAPES = 8, 12
PRECISE = {"maxiter": 2000, "ftol": 1e-13, "gtol": 1e-7}


def solve_primal(d: FloatArray, y: FloatArray, eta: float) -> tuple[float, FloatArray, float]:
    """Solve (1) for a fixed metric: its value at a feasible point, p(+1), and its multiplier."""
    p, xi = cp.Variable(len(d)), cp.Variable()
    near, far = paper.feature(d, 1.0, eta), paper.feature(d, -1.0, eta)
    expectation = near @ p + far @ (1 - p) - np.sum(paper.feature(d, y, eta))
    above, below = expectation <= xi, -expectation <= xi
    goal = cp.sum(cp.entr(p) + cp.entr(1 - p)) - cp.square(xi) / (2 * GAMMA)
    solve_conic(cp.Problem(cp.Maximize(goal), [above, below]))
    feasible = np.clip(p.value, 0.0, 1.0)
    kappa = float(below.dual_value) - float(above.dual_value)
    return paper.maximum_entropy(feasible, d, y, eta, GAMMA), feasible, kappa


def solve_dual(d: FloatArray, y: FloatArray, eta: float) -> float:
    """Solve (3) for a fixed metric: kappa*."""
    kappa, s = cp.Variable(), d - eta
    log_partition = cp.sum(cp.logistic(kappa * s) - kappa * s / 2.0)  # ln Z with the paper's f
    observed = np.sum(paper.feature(d, y, eta))
    goal = log_partition - kappa * observed + GAMMA / 2.0 * cp.square(kappa)
    solve_conic(cp.Problem(cp.Minimize(goal)))
    return float(kappa.value)


def check_maximum_entropy(data: ClaimData) -> Evidence:
    """Check, for a fixed metric, that max of (1) = min of (3), and p* = exp(kappa* f) / Z (2)."""
    m, y, eta = data.pairs.n_features, data.labels, data.threshold
    identity = np.eye(m) * np.trace(data.metric) / m
    longest = max(np.max(distances(data.labeled, data.metric)), 1e-300)
    learned = data.metric * min(1.0, LARGEST_DISTANCE / longest)
    gaps, forms, multipliers, likelihoods, values, kappas = [], [], [], [], [], []
    for A in (np.zeros((m, m)), identity, learned):
        d = distances(data.labeled, A)
        primal, p, multiplier = solve_primal(d, y, eta)
        kappa = solve_dual(d, y, eta)
        dual = paper.maximum_entropy_dual(d, y, kappa, eta, GAMMA)
        gaps.append(relative(dual - primal, dual))
        forms.append(relative(p - paper.maximum_entropy_solution(d, 1.0, kappa, eta)))
        multipliers.append(relative(multiplier - kappa, kappa))
        for guess in (-2.0, 0.3, kappa):
            likelihood = np.sum(paper.log_model(d, y, guess, eta)) - GAMMA / 2.0 * guess**2
            other = paper.maximum_entropy_dual(d, y, guess, eta, GAMMA)
            likelihoods.append(relative(likelihood + other, dual))
        values.append(dual)
        kappas.append(kappa)
    one_pair = [_value_of_one_pair(squared_distance) for squared_distance in (1.0, 4.0)]
    return Evidence(
        [
            Check(
                "spread over A of the common value",
                max(np.ptp(values) / len(y), np.ptp(one_pair)),
                1e-6,
            )
        ],
        [
            Check("gap of (1) and (3), A fixed", max(gaps), 1e-6),
            Check("p* against (2)", max(forms), 1e-3),
            Check("multiplier of (1) against kappa*", max(multipliers), 1e-3),
            Check("(3) against the likelihood", max(likelihoods), 1e-12),
        ],
        numbers={
            "value at A = 0": values[0],
            "value at A = I, scaled": values[1],
            "value at the learned metric, scaled": values[2],
            "value, one similar pair at distance 1": one_pair[0],
            "value, one similar pair at distance 2": one_pair[1],
            "kappa* at A = 0": kappas[0],
            "kappa* at the learned metric, scaled": kappas[2],
        },
    )


def _value_of_one_pair(squared_distance: float) -> float:
    """The common value of (1) and (3) for one similar pair, eta = 1."""
    d, y = np.array([squared_distance]), np.ones(1)
    return paper.maximum_entropy_dual(d, y, solve_dual(d, y, 1.0), 1.0, GAMMA)


class ProfilePoint(NamedTuple):
    """The minimum over A of (6) at one kappa: a value, a certified lower bound, and the metric."""

    kappa: float
    value: float
    lower_bound: float
    metric: FloatArray


def counterexample() -> PairSet:
    """Make four points on a line, with one similar and three dissimilar pairs."""
    X = np.array([[0.0], [0.3], [0.1], [0.5]])
    return PairSet.from_constraints(X, [(0, 1)], [(0, 2), (1, 2), (1, 3)])


def slope_at_zero_metric(kappa: float, n_similar: int, n_dissimilar: int) -> float:
    """The derivative of -L(0, kappa) of (6) in kappa, eta = 1."""
    p = float(np.exp(paper.log_model(np.zeros(1), 1.0, kappa, 1.0))[0])
    return n_similar * (1.0 - p) - n_dissimilar * p + GAMMA * kappa


def profile(pairs: PairSet, kappa: float, trace_weight: float) -> ProfilePoint:
    """Minimize -L(A, kappa) of (6) over A, with mu = 0 and eta = 1, in the metric |kappa| A."""
    t = abs(kappa)
    if kappa > 0.0:  # far pairs are the similar ones: S and D are exchanged
        pairs = PairSet.from_constraints(pairs.points, pairs.dissimilar, pairs.similar)
    solution = certified(
        MStepObjective(pairs, unlabeled_weight=0.0, trace_weight=trace_weight / t, threshold=t)
    )
    value = solution.value + GAMMA / 2.0 * kappa**2
    gap = solution.relative_gap * max(1.0, abs(solution.value))
    return ProfilePoint(kappa, value, value - gap, metric_of(solution) / t)


def best_kappa(
    pairs: PairSet, sign: float, trace_weight: float = 1.0
) -> tuple[ProfilePoint, list[ProfilePoint]]:
    """Find the best kappa of one sign, by a grid and a search around its best point."""
    grid = [profile(pairs, sign * t, trace_weight) for t in np.geomspace(0.01, 20.0, 15)]
    best = min(grid, key=lambda point: point.value)
    t = _minimize_scale(
        lambda t: profile(pairs, sign * t, trace_weight).value, abs(best.kappa), 0.5, xatol=1e-6
    )
    refined = profile(pairs, sign * t, trace_weight)
    return min(refined, best, key=lambda point: point.value), grid


def _minimize_scale(
    function: Callable[[float], float], center: float, width: float, **options: float
) -> float:
    """Minimize over t > 0 with |log t - log center| <= width."""
    bounds = (np.log(center) - width, np.log(center) + width)
    search = minimize_scalar(
        lambda log_t: function(float(np.exp(log_t))), bounds=bounds, options=options
    )
    return float(np.exp(search.x))


def check_kappa_sign(data: ClaimData) -> Evidence:
    """Compare the sign of kappa* in (6) with the remark under (5)."""
    pairs = counterexample()
    (up, _), (_, grid_down) = best_kappa(pairs, 1.0), best_kappa(pairs, -1.0)
    counts = [(1, 3), (3, 1), (10, 12), (len(data.pairs.similar), len(data.pairs.dissimilar))]
    roots = [brentq(slope_at_zero_metric, -50.0, 50.0, args=n) for n in counts]
    mismatches = np.sign(np.round(roots, 9)) != [np.sign(n[1] - n[0]) for n in counts]
    lower = min(point.lower_bound for point in grid_down)
    own_up, own_grid_up = best_kappa(data.pairs, 1.0)
    own_down, own_grid_down = best_kappa(data.pairs, -1.0)
    own = min(own_up, own_down, key=lambda point: point.value)
    curve = sorted([*own_grid_up, *own_grid_down])
    return Evidence(
        [Check("kappa* of the four points is not negative", max(0.0, up.kappa), 0.0)],
        [
            Check("A* of the four points", np.abs(up.metric).max(), 1e-6),
            Check("kappa* against the root at A = 0", abs(up.kappa - roots[0]), 1e-3),
            Check("value at kappa* above the bound for kappa < 0", max(0.0, up.value - lower), 0.0),
            Check("sign of kappa* at A = 0 against #D - #S", np.sum(mismatches), 0.0),
            Check("pairs as hoped with kappa >= 0", _hopes_with_positive(data), 0.0),
        ],
        numbers={
            "kappa* of the four points": up.kappa,
            "value at kappa*": up.value,
            "certified bound for kappa < 0, over the grid": lower,
            "kappa* on the data": own.kappa,
            "value on the data, kappa < 0": own_down.value,
            "value on the data, kappa > 0": own_up.value,
            "trace of A* on the data": float(np.trace(own.metric)),
        },
        charts=[
            Chart(
                "The best value of (6) at each kappa",
                "kappa",
                "value, to be minimized",
                [Curve(data.name, [p.kappa for p in curve], [p.value for p in curve])],
            )
        ],
    )


def _hopes_with_positive(data: ClaimData) -> int:
    """Count labeled pairs with p(y) > 1/2 and y s < 0 at random metrics with kappa > 0, eta = 1."""
    rng, count = data.random(4), 0
    for A in data.random_metrics(claim=4, count=10):
        d = distances(data.labeled, A)
        log_p = paper.log_model(d, data.labels, float(rng.uniform(0.1, 5.0)), 1.0)
        count += int(np.sum((np.exp(log_p) > 0.5) & (data.labels * (d - 1.0) < 0.0)))
    return count


def model_loss(data: ClaimData, A: FloatArray, kappa: float) -> tuple[float, FloatArray]:
    """The objective -L(A, kappa) of (6) as printed, and its gradient in A."""
    value = -paper.full_objective(*data.points_and_pairs, A, kappa, gamma=GAMMA, **data.letters)
    s = distances(data.labeled, A) - data.threshold
    u = distances(data.unlabeled, A) - data.threshold
    wrong = expit(-kappa * data.labels * s)  # 1 - p(y), eq. (5)
    uncertain = expit(kappa * u) * expit(-kappa * u)
    gradient = moment(data.labeled, -kappa * data.labels * wrong)
    gradient -= moment(data.unlabeled, data.mu * kappa**2 * u * uncertain)
    return value, symmetrize(gradient + data.trace_weight * np.eye(len(A)))


def solve_at_kappa(data: ClaimData, kappa: float) -> FloatArray:
    """Minimize (6) over A, with mu = 0 and a fixed kappa, stated in CVXPY in A itself."""
    m, V = data.pairs.n_features, data.labeled
    A = cp.Variable((m, m), PSD=True)
    outer = (V[:, :, None] * V[:, None, :]).reshape(len(V), m * m)
    s = outer @ cp.vec(A, order="C") - data.threshold
    loss = cp.sum(cp.logistic(cp.multiply(-kappa * data.labels, s)))
    solve_conic(cp.Problem(cp.Minimize(loss + data.trace_weight * cp.trace(A))))
    return symmetrize(np.asarray(A.value))


def alternate_model(data: ClaimData, A: FloatArray, kappa: float) -> tuple[FloatArray, float, int]:
    """Minimize (6) with mu > 0 over A and over kappa < 0 in turns, A last."""
    last = np.inf
    for rounds in range(1, ROUNDS + 1):
        A, value = minimize_over_metric(data, A, kappa)
        if last - value < 1e-7 * abs(value) or rounds == ROUNDS:
            break
        last = value
        kappa = -_minimize_scale(partial(_loss_at_scale, data, A), -kappa, 1.0)
    return A, kappa, rounds


def _loss_at_scale(data: ClaimData, A: FloatArray, t: float) -> float:
    return model_loss(data, A, -t)[0]


def minimize_over_metric(data: ClaimData, A: FloatArray, kappa: float) -> tuple[FloatArray, float]:
    """Find a stationary point of (6) over the cone, by L-BFGS over A = LL' from a full-rank start.

    A factor may lose rank at a point that is not stationary over the cone: there the gradient has
    a negative eigenvalue, and A is moved along its eigenvector.
    """
    m, step = len(A), 1e-3 * max(float(np.trace(A)), data.unit)
    first = np.linalg.norm(model_loss(data, 0.0 * A, kappa)[1], 2)

    def over_factor(entries: FloatArray) -> tuple[float, FloatArray]:
        factor = entries.reshape(m, m)
        value, gradient = model_loss(data, factor @ factor.T, kappa)
        return value, 2.0 * (gradient @ factor).ravel()

    start = A + step / m * np.eye(m)
    for _ in range(ESCAPES):
        L = factor_of(start).ravel()
        search = minimize(over_factor, L, jac=True, method="L-BFGS-B", options=PRECISE)
        L = search.x.reshape(m, m)
        A = symmetrize(L @ L.T)
        slopes, directions = np.linalg.eigh(model_loss(data, A, kappa)[1])
        if slopes[0] > -1e-6 * first:
            break
        start = A + step * np.outer(directions[:, 0], directions[:, 0])
    return A, float(search.fun)


def check_elimination(data: ClaimData) -> Evidence:
    """Compare (6) at (A*, kappa*) with (7) at (-kappa* A*, -kappa* eta, lambda / -kappa*)."""
    kappa = best_kappa(data.pairs, -1.0, data.trace_weight)[0].kappa
    A = solve_at_kappa(data, kappa)
    mapped, hat_trace_weight, hat_threshold = _mapped(data, A, kappa)
    simplified = _simplified(data, kappa, 0.0)
    solution = certified(simplified)
    A_hat = metric_of(solution)
    apart = np.max(np.abs(_model_posteriors(data, A, kappa) - _posteriors(data, A_hat, kappa)))
    B, kappa_B, rounds = alternate_model(data, A, kappa)
    mapped_B, trace_weight_B, threshold_B = _mapped(data, B, kappa_B)
    direct = minimize_directly(
        data.pairs,
        data.mu,
        trace_weight_B,
        abs(threshold_B),
        start=1.02 * mapped_B + 0.002 * np.trace(mapped_B) / len(B) * np.eye(len(B)),
        tol=1e-8,
    )
    value_B = SemiSupervisedObjective(_simplified(data, kappa_B, data.mu)).value(mapped_B)
    apart_B = np.max(
        np.abs(_model_posteriors(data, B, kappa_B) - _posteriors(data, direct.metric, kappa_B))
    )
    wrong = best_kappa(counterexample(), 1.0)[0].kappa
    wrong_threshold = paper.simplified_parameters(A, wrong, lam=1.0, eta=1.0)[2]
    value = simplified.value(symmetrize(mapped))
    bound = solution.value - solution.relative_gap * max(1.0, abs(solution.value))
    return Evidence(
        [Check("eta_hat is not positive, four points of claim 4", -wrong_threshold, 0.0)],
        [
            Check("objectives (6) and (7) at random points", _identity(data), 1e-11),
            Check("value of the mapped metric in (7)", relative(value - bound, value), 1e-6),
            Check("metric, mu = 0", norm(mapped - A_hat) / max(norm(A_hat), data.unit), 1e-3),
            Check("posteriors of all pairs, mu = 0", apart, 1e-3),
            Check("value, mu > 0", relative(value_B - direct.value, direct.value), 1e-5),
            Check("posteriors of all pairs, mu > 0", apart_B, 1e-2),
        ],
        numbers={
            "kappa*, mu = 0": kappa,
            "eta_hat": hat_threshold,
            "lambda_hat": hat_trace_weight,
            "certified gap of (7)": solution.relative_gap,
            "largest difference of posteriors, mu = 0": apart,
            "kappa*, mu > 0": kappa_B,
            "rounds of the alternation": rounds,
            "stationarity of (7), mu > 0": direct.stationarity,
            "largest difference of posteriors, mu > 0": apart_B,
            "eta_hat of the four points of claim 4": wrong_threshold,
        },
    )


def _mapped(data: ClaimData, A: FloatArray, kappa: float) -> tuple[FloatArray, float, float]:
    """The metric, lambda and eta of (7) that Theorem 2 maps A, lambda and eta of (6) to."""
    return paper.simplified_parameters(A, kappa, lam=data.trace_weight, eta=data.threshold)


def _simplified(data: ClaimData, kappa: float, mu: float) -> MStepObjective:
    """State the labeled part of (7), with the mapped hyperparameters."""
    _, trace_weight, threshold = _mapped(data, np.zeros(0), kappa)
    return MStepObjective(
        data.pairs, unlabeled_weight=mu, trace_weight=abs(trace_weight), threshold=abs(threshold)
    )


def _model_posteriors(data: ClaimData, A: FloatArray, kappa: float) -> FloatArray:
    """The probability p(+1) of every pair, eq. (5)."""
    d = distances(data.differences, A)
    return np.exp(paper.log_model(d, 1.0, kappa, data.threshold))


def _posteriors(data: ClaimData, A: FloatArray, kappa: float) -> FloatArray:
    """The probability p(+1) of every pair, eq. (8) with the mapped threshold."""
    return paper.posterior(distances(data.differences, A), 1.0, _mapped(data, A, kappa)[2])


def _identity(data: ClaimData) -> float:
    """Compare -L(A, kappa) - gamma kappa^2/2 of (6) with -L_hat(-kappa A) of (7), relatively."""
    rng, worst = data.random(5), 0.0
    for A in data.random_metrics(claim=5, count=6):
        kappa = -float(np.exp(rng.uniform(-1.5, 1.5)))
        simplified = SemiSupervisedObjective(_simplified(data, kappa, data.mu))
        other = model_loss(data, A, kappa)[0] - GAMMA / 2.0 * kappa**2
        worst = max(worst, relative(simplified.value(_mapped(data, A, kappa)[0]) - other, other))
    return worst
