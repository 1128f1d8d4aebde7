"""Checks of claims on the M-step (11): convexity, gradient, Lipschitz constant, dual, cost."""

from __future__ import annotations

import math
import time
import timeit

import numpy as np

from .. import paper
from ..certificate import certify
from ..m_step.explain import explain_convexity
from ..m_step.statement import textbook_statement
from ..model.m_step_objective import MStepObjective
from ..numerics.arrays import one_blas_thread
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import project, symmetrize
from ..pairs.pair_set import PairSet
from .claim import Evidence
from .claim_data import (
    ClaimData,
    certified,
    distances,
    moment,
    relative,
)

ZERO = 1e-10
"""An eigenvalue of M(1) below this, relative to the sum over all pairs, counts as zero."""


def _directions(data: ClaimData, claim: int, count: int) -> FloatArray:
    """Draw symmetric directions that move the scores of pairs by 1, on average."""
    m, directions = data.pairs.n_features, []
    for drawn in data.random(claim).normal(size=(count, m, m)):
        D = symmetrize(drawn)
        directions.append(D / np.sqrt(np.mean(distances(data.differences, D) ** 2)))
    return np.array(directions)


def check_convexity(data: ClaimData) -> Evidence:
    """Check that -F of (11) is convex: at midpoints, and by the rules of DCP."""
    metrics = data.random_metrics(claim=1, count=24)
    values, others = data.losses(metrics), np.roll(metrics, 1, axis=0)
    excess = data.losses((metrics + others) / 2.0) - (values + np.roll(values, 1)) / 2.0
    proof = explain_convexity(textbook_statement(data.few.m_step))
    curvatures = [node.curvature for node in proof.walk()]
    own = [data.m_step.value(A) for A in metrics]
    return Evidence(
        {
            "nodes of the proof tree that no DCP rule covers": (curvatures.count("UNKNOWN"), 0.0),
            "midpoint inequality, excess": (excess / np.max(values, initial=1.0), 1e-12),
            "(11) pair by pair against the package": (relative(values - own, values), 1e-10),
        },
    )


def check_gradient(data: ClaimData) -> Evidence:
    """Compare the gradient printed under (11) with derivatives of F along directions D."""
    metrics, step = np.repeat(data.random_metrics(claim=2, count=4), 6, axis=0), 2e-4
    directions = _directions(data, 102, len(metrics))
    ahead, behind = (data.losses(metrics + h * directions) for h in (step, -step))
    slopes = (behind - ahead) / (2.0 * step)
    expected = np.sum(list(map(data.gradient, metrics)) * directions, axis=(1, 2))
    gradient, own = data.gradient(metrics[0]), data.m_step.gradient(metrics[0])
    return Evidence(
        {
            "central differences": (relative(slopes - expected, slopes), 1e-6),
            "the package's gradient": (relative(own + gradient, gradient), 1e-10),
        },
    )


def lipschitz_bounds(data: ClaimData) -> tuple[float, float]:
    """The paper's bound (12), and (12) with lambda sqrt(m) = ||lambda I||_F for lambda m."""
    m, lam = data.pairs.n_features, data.trace_weight
    printed = paper.lipschitz_bound(*data.points_and_pairs, mu=data.mu, lam=lam)
    return printed, printed - lam * (m - math.sqrt(m))


def check_lipschitz(data: ClaimData) -> Evidence:
    """Compare the largest ||grad F||_F with (12), and with (12) with lambda sqrt(m)."""
    metrics = data.random_metrics(claim=107, count=16)
    rays = [t * data.metric for t in (0.0, *np.geomspace(1e-3, 1e4, 15))]
    largest = max(float(np.linalg.norm(data.gradient(A))) for A in (*rays, *metrics))
    values, moves = data.losses(metrics), metrics - np.roll(metrics, 1, axis=0)
    quotients = np.abs(values - np.roll(values, 1)) / np.linalg.norm(moves, axis=(1, 2))
    printed, tighter = lipschitz_bounds(data)
    pair = PairSet.from_constraints([[0.0] * 4, [1.0] + [0.0] * 3], [(0, 1)], [])
    corner = ClaimData("two points", pair, trace_weight=100.0)
    share = float(np.linalg.norm(corner.gradient(np.eye(4) * 1e4))) / lipschitz_bounds(corner)[1]
    return Evidence(
        {
            "largest gradient above (12)": (largest / printed - 1.0, 0.0),
            "largest gradient above the tighter one": (largest / tighter - 1.0, 0.0),
            "difference quotient above it": (quotients / tighter - 1.0, 1e-12),
            "tighter above (12)": (tighter / printed - 1.0, 0.0),
            "the package's constant": (abs(data.m_step.lipschitz_bound / tighter - 1.0), 1e-9),
            "two points: gradient above the tighter one": (share - 1.0, 0.0),
            "two points: share of it that is not reached": (1.0 - share, 0.05),
        },
    )


def dissimilar_weights(data: ClaimData) -> FloatArray:
    """The share b_k of the weight c_k of every pair that counts as dissimilar."""
    return np.concatenate([data.labels < 0.0, data.mu * (1.0 - data.soft_labels)])


def dual_value(data: ClaimData, p: FloatArray) -> float:
    """The dual value D(p) = sum_k c_k H(p_k) - eta (sum_k c_k p_k - beta)."""
    excess = data.weights * p - dissimilar_weights(data)
    return float(data.weights @ paper.entropy(p) - data.threshold * np.sum(excess))


def dual_matrix(data: ClaimData, p: FloatArray) -> FloatArray:
    """The matrix M(p) = sum_k (c_k p_k - b_k) v_k v_k' + lambda I of the dual constraint."""
    matrix = moment(data.differences, data.weights * p - dissimilar_weights(data))
    return symmetrize(matrix + data.trace_weight * np.eye(len(matrix)))


def check_duality(data: ClaimData) -> Evidence:
    """Check strong duality: min -F = max D, at p = sigma(s(A*)), with <M(p), A*> = 0."""
    A, value = data.metric, data.m_step.value(data.metric)
    p = data.posteriors(A, -1.0)
    M, dual = dual_matrix(data, p), dual_value(data, p)
    size = np.linalg.norm(dual_matrix(data, np.ones_like(p)), 2)
    least, slackness = float(np.linalg.eigvalsh(M)[0]), float(np.vdot(M, A))
    return Evidence(
        {
            "f(A*) - D(sigma(s))": (relative(value - dual, value), 1e-5),
            "the certified gap": (certify(data.m_step, A).relative_gap, 1e-6),
            "M(p) not PSD": (-least / size, 1e-5),
            "<M(p), A*>": (relative(slackness, value), 1e-5),
            "weak duality at random p, excess": (_dual_excess(data, p, value), 1e-9),
        },
    )


def _dual_excess(data: ClaimData, optimal: FloatArray, value: float) -> list[float]:
    """D(p) - f(A*), relatively, at random p, each moved toward b/c until M(p) is PSD."""
    rng, excesses, lam = data.random(11), [], data.trace_weight
    anchor = dissimilar_weights(data) / data.weights  # where M(p) is lambda I
    for mix in np.linspace(0.0, 1.0, 8):
        p = mix * optimal + (1.0 - mix) * rng.random(len(anchor))
        least = float(np.linalg.eigvalsh(dual_matrix(data, p))[0])
        p = anchor + lam / max(lam, lam - least) * (p - anchor)
        excesses.append((dual_value(data, p) - value) / max(1.0, abs(value)))
    return excesses


def recession_matrix(case: ClaimData) -> FloatArray:
    """The matrix of the criterion in a first M-step, M(1) = sum_S v v' + lambda I."""
    S = case.labeled[case.labels > 0.0]
    return S.T @ S + case.trace_weight * np.eye(S.shape[1])


def _dissimilar_differences(case: ClaimData) -> FloatArray:
    """The differences of pairs that count as dissimilar in a first M-step."""
    dissimilar = case.labeled[case.labels < 0.0]
    return np.vstack([dissimilar, case.unlabeled]) if case.mu > 0.0 else dissimilar


def has_optimum(case: ClaimData) -> bool:
    """Whether an optimum exists: no pair that counts as dissimilar leaves the range of M(1)."""
    M, V = recession_matrix(case), _dissimilar_differences(case)
    zero = ZERO * (np.sum(V**2) + np.trace(M))
    eigenvalues, vectors = np.linalg.eigh(M)
    leaving = V @ vectors[:, eigenvalues <= zero]
    return bool(np.all(np.sum(leaving**2, axis=1) <= zero))


def check_attainment(data: ClaimData) -> Evidence:
    """Compare the criterion on M(1) with how -F behaves along rays."""
    small = [  # on each side of the criterion, and on its border
        PairSet.from_constraints(points, [(0, 1)], [(0, 2)])
        for points in (
            [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]],
            [[0.0], [1.0], [2.0]],
            [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]],
        )
    ]
    settings = [(0.0, data.mu), (data.trace_weight, data.mu), (0.0, 0.0)]  # lambda, mu
    cases = [
        *(ClaimData("three points", pairs, 0.0, unlabeled_weight=0.0) for pairs in small),
        *(ClaimData(data.name, data.pairs, lam, unlabeled_weight=mu) for lam, mu in settings),
    ]
    objectives = [case.objective() for case in cases]
    unattained, other = objectives[:2]
    predicted = np.array(list(map(has_optimum, cases)))
    seen = np.array(list(map(_stops_falling, cases)))
    package = [objective.attains_optimum for objective in objectives]
    values = [unattained.value(np.diag([0.0, t])) for t in np.linspace(0.0, 20.0, 41)]
    infimum = float(np.log1p(np.exp(-1.0)))
    best = certified(other).metric
    return Evidence(
        {"M-steps without an optimum": (np.sum(~seen), 0.0)},
        {
            "criterion against behavior, cases that differ": (np.sum(predicted != seen), 0.0),
            "criterion against the package's": (np.sum(predicted != package), 0.0),
            "infimum approached, not attained": (values[-1] - infimum, 1e-7),
            "a value at or below the infimum": (min(values) <= infimum, 0.0),
            "attained: slope at the optimum": (np.abs(other.gradient(best)), 1e-4),
        },
    )


def _stops_falling(case: ClaimData) -> bool:
    """Whether -F stops falling along every ray of eigenvectors of M(1), judged by its values."""
    V, objective = _dissimilar_differences(case), case.objective()
    visible = 1e-12 * np.max(np.sum(V**2, axis=1), initial=1e-300)
    for u in np.linalg.eigh(objective.recession_matrix)[1].T:
        ray = np.outer(u, u) / np.max((V @ u) ** 2, initial=visible)
        values = np.array([objective.value(t * ray) for t in (5.0, 10.0, 20.0, 1e3, 1e6)])
        steps = np.diff(values) / max(1.0, abs(values[3]))
        if np.all(steps[:2] < -1e-12) and steps[3] <= 1e-7:
            return False
    return True


def measure(n: int, m: int) -> float:
    """Time a gradient of (11) and a projection, for n points in R^m: the best of 7."""
    rng = np.random.default_rng([n, m])
    labels = np.where(np.arange(n) < 10, np.arange(n) % 2, -1)
    objective = MStepObjective(PairSet.from_labels(rng.normal(size=(n, m)), labels))
    A = np.eye(m) / m
    objective.program  # noqa: B018 (what is summed once is not part of a step)

    def step() -> FloatArray:
        return project(A - 1e-3 * objective.value_and_gradient(A)[1])

    with one_blas_thread():
        return min(timeit.repeat(step, timer=time.process_time, repeat=7, number=1))


def check_complexity(data: ClaimData) -> Evidence:
    """Compare the fitted exponents of n and of m with those of n^2 m + m^3."""
    points, features = (1000, 1600, 2500, 4000), (96, 160, 256, 400)
    by_points = np.array([[measure(n, m) for n in points] for m in (8, 32)])
    by_features = [measure(60, m) for m in features]
    exponents_n = np.polyfit(np.log(points), np.log(by_points.T), 1)[0].tolist()
    exponent_m = float(np.max(np.log(by_points[1] / by_points[0])) / np.log(32 / 8))
    exponent_cube = float(np.polyfit(np.log(features), np.log(by_features), 1)[0])
    return Evidence(
        {
            "exponent of n above 2, m fixed": (max(exponents_n) - 2.0, 0.35),
            "exponent of m above 1, n large": (exponent_m - 1.0, 0.35),
            "exponent of m above 3, n small": (exponent_cube - 3.0, 0.35),
        },
    )
