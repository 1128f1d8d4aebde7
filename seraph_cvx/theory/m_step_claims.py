"""Checks of claims on the M-step (11): convexity, gradient, Lipschitz constant, dual, cost."""

from __future__ import annotations

import math
import time

import numpy as np
from scipy.optimize import minimize

from .. import paper
from ..certificate import certify
from ..display.page import Chart, Curve
from ..m_step.explain import explain_convexity
from ..m_step.statement import build_statement, textbook_statement
from ..model.m_step_objective import MStepObjective
from ..numerics.arrays import one_blas_thread
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import project, symmetrize
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

ZERO = 1e-10
"""An eigenvalue of M(1) below this, relative to the sum over all pairs, counts as zero."""

MANY_POINTS = (1000, 1600, 2500, 4000)
MANY_FEATURES = (96, 160, 256, 400)


def hessian_weights(data: ClaimData, A: FloatArray, D: FloatArray) -> FloatArray:
    """The weights c_k p_k(+1) p_k(-1) (v_k'Dv_k) of the Hessian of -F along D, from (11)."""
    p = data.posteriors(A)
    return data.weights * p * (1.0 - p) * distances(data.differences, D)


def check_convexity(data: ClaimData) -> Evidence:
    """Check that -F of (11) is convex: at midpoints, by its curvature and by the rules of DCP."""
    metrics = data.random_metrics(claim=1, count=24)
    values = np.array([data.loss(A) for A in metrics])
    middles = (np.array(metrics) + np.roll(metrics, 1, axis=0)) / 2.0
    excess = [data.loss(A) for A in middles] - (values + np.roll(values, 1)) / 2.0
    step, rng, second, formula = 0.02, data.random(101), [], []
    for A, value in zip(metrics, values, strict=True):
        D = _direction(rng, data.differences, step)
        second.append((data.loss(A + D) + data.loss(A - D) - 2.0 * value) / step**2)
        along = distances(data.differences, D)
        formula.append(hessian_weights(data, A, D) @ along / step**2)
    proof = explain_convexity(textbook_statement(data.few.m_step, soft_labels_as_parameters=False))
    unknown = sum(node.curvature == "UNKNOWN" for node in proof.walk())
    own = [data.m_step.value(A) for A in metrics]
    steepest, least = max(*formula, 1e-300), min(second)
    return Evidence(
        [
            Check("nodes of the proof tree that no DCP rule covers", unknown, 0.0),
            Check("midpoint inequality, excess", max(0.0, *excess) / max(1.0, *values), 1e-12),
            Check("negative second difference", max(0.0, -least) / steepest, 1e-6),
            Check(
                "second difference against formula",
                relative(np.subtract(second, formula), np.array(formula)),
                1e-3,
            ),
            Check("(11) pair by pair against the package", relative(values - own, values), 1e-10),
        ],
        numbers={
            "nodes in the proof tree": sum(1 for _ in proof.walk()),
            "midpoints tried": len(excess),
            "smallest midpoint margin": -max(excess),
            "smallest curvature along a unit move of s": least,
            "note": "F itself is concave; its negative is convex",
        },
    )


def _direction(rng: np.random.Generator, V: FloatArray, step: float) -> FloatArray:
    """Draw a symmetric direction that moves the scores of these pairs by `step`, on average."""
    D = symmetrize(rng.normal(size=(V.shape[1], V.shape[1])))
    return np.asarray(D * (step / np.sqrt(np.mean(distances(V, D) ** 2))))


def check_gradient(data: ClaimData) -> Evidence:
    """Compare the gradient printed under (11) with derivatives of F along directions D."""
    metrics, step = data.random_metrics(claim=2, count=4), 2e-4
    gradients = [data.gradient(A) for A in metrics]
    rng, slopes, expected = data.random(102), [], []
    for A, gradient in zip(metrics, gradients, strict=True):
        for _ in range(6):
            D = _direction(rng, data.unlabeled, step)
            slopes.append((data.loss(A - D) - data.loss(A + D)) / (2.0 * step))
            expected.append(np.vdot(gradient, D) / step)
    A, gradient = metrics[0], gradients[0]
    apart = automatic_gradient(data, A) - gradient
    off = relative(np.subtract(slopes, expected), np.array(slopes))
    return Evidence(
        [
            Check("central differences", off, 1e-6),
            Check("automatic differences", relative(apart, gradient), 1e-9),
            Check(
                "the package's gradient",
                relative(data.m_step.gradient(A) + gradient, gradient),
                1e-10,
            ),
        ],
        numbers={
            "directions tried": len(slopes),
            "norm of the gradient": norm(gradient),
            "largest entry that differs from CVXPY's": float(np.max(np.abs(apart))),
        },
    )


def automatic_gradient(data: ClaimData, A: FloatArray) -> FloatArray:
    """Differentiate F by CVXPY's own chain rule, through (11) as the paper prints it."""
    problem = textbook_statement(data.m_step, soft_labels_as_parameters=False)
    (variable,) = problem.variables()
    variable.value = A
    entries = problem.objective.args[0].grad[variable]
    if A.size > 1:  # CVXPY gives a number for one entry, a sparse column for more
        entries = entries.toarray()
    full = np.reshape(np.asarray(entries), A.shape, order="F")
    return -symmetrize(full)  # the statement reads the upper triangle alone


def printed_bound(data: ClaimData) -> float:
    """The paper's bound (12): (#S + #D + mu #U) diam^2 + lambda m."""
    return paper.lipschitz_bound(*data.points_and_pairs, mu=data.mu, lam=data.trace_weight)


def tighter_bound(data: ClaimData) -> float:
    """The bound (12) with lambda sqrt(m) = ||lambda I||_F instead of lambda m."""
    m = data.pairs.n_features
    return printed_bound(data) - data.trace_weight * (m - math.sqrt(m))


def check_lipschitz(data: ClaimData) -> Evidence:
    """Compare the largest ||grad F||_F with (12), and with (12) with lambda sqrt(m)."""
    m = data.pairs.n_features
    starts = [1e-6 * data.unit * np.eye(m), data.metric, *data.random_metrics(claim=7, count=3)]
    largest, where = _largest_gradient(data, starts)
    scales = np.geomspace(1e-3, 1e4, 15)
    norms = [norm(data.gradient(t * data.metric)) for t in scales]
    largest = max(largest, *norms)
    metrics = np.array(data.random_metrics(claim=107, count=16))
    values = np.array([data.m_step.value(A) for A in metrics])
    moves = np.linalg.norm(metrics - np.roll(metrics, 1, axis=0), axis=(1, 2))
    quotient = np.max(np.abs(values - np.roll(values, 1)) / moves)
    printed, tighter = printed_bound(data), tighter_bound(data)
    pair = PairSet.from_constraints([[0.0] * 4, [1.0] + [0.0] * 3], [(0, 1)], [])
    corner = ClaimData("two points", pair, trace_weight=100.0)
    reached = norm(corner.gradient(np.eye(4) * 1e4))
    share = reached / tighter_bound(corner)
    own = abs(data.m_step.lipschitz_bound / tighter - 1.0)
    traces = scales * data.size
    return Evidence(
        [
            Check("largest gradient above (12)", max(0.0, largest / printed - 1.0), 0.0),
            Check("largest gradient above the tighter one", max(0.0, largest / tighter - 1.0), 0.0),
            Check("difference quotient above it", max(0.0, quotient / tighter - 1.0), 1e-12),
            Check("tighter above (12)", max(0.0, tighter / printed - 1.0), 0.0),
            Check("the package's constant", own, 1e-9),
            Check("two points: gradient above the tighter one", max(0.0, share - 1.0), 0.0),
            Check("two points: share of it that is not reached", max(0.0, 1.0 - share), 0.05),
        ],
        numbers={
            "largest gradient norm found": largest,
            "found at trace": float(np.trace(where)),
            "(12)": printed,
            "(12) with sqrt(m)": tighter,
            "(12) is loose by a factor of": printed / largest,
            "two points, gradient": reached,
            "two points, (12)": printed_bound(corner),
            "two points, with sqrt(m)": tighter_bound(corner),
        },
        charts=[
            Chart(
                "The gradient stays below (12), whatever the scale of A",
                "tr(A)",
                "norm of the gradient",
                [
                    Curve("gradient", traces, norms),
                    Curve("(12)", traces, [printed] * len(scales)),
                ],
                log_x=True,
                log_y=True,
            )
        ],
    )


def _largest_gradient(data: ClaimData, starts: list[FloatArray]) -> tuple[float, FloatArray]:
    """Maximize ||grad F(A)||_F over PSD A by L-BFGS over A = LL', from each start."""
    shape = starts[0].shape

    def minus_half_square(entries: FloatArray) -> tuple[float, FloatArray]:
        L = entries.reshape(shape)
        A = L @ L.T
        gradient = data.gradient(A)
        hessian_product = moment(data.differences, hessian_weights(data, A, gradient))
        return -0.5 * float(np.sum(gradient**2)), 2.0 * (hessian_product @ L).ravel()

    runs = [
        minimize(
            minus_half_square,
            factor_of(A).ravel(),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 40},
        )
        for A in starts
    ]
    best = min(runs, key=lambda run: run.fun)
    L = best.x.reshape(shape)
    return float(np.sqrt(-2.0 * best.fun)), L @ L.T


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
    A, few = data.metric, data.few
    value = data.m_step.value(A)
    p = data.posteriors(A, -1.0)
    M, dual = dual_matrix(data, p), dual_value(data, p)
    size = float(np.linalg.norm(dual_matrix(data, np.ones_like(p)), 2))
    least, slackness = float(np.linalg.eigvalsh(M)[0]), float(np.vdot(M, A))
    certificate = certify(data.m_step, A)
    statement = build_statement(few.m_step, "dual")
    solver_status = solve_conic(statement.problem)
    multiplier = symmetrize(np.asarray(statement.metric))
    conic_p = np.concatenate([variable.value for variable in statement.problem.variables()])
    bound, found = certify(few.m_step, few.metric).dual_value, statement.problem.value
    few_value = few.m_step.value(few.metric)
    outside = max(0.0, bound - few_value, bound - found, found - few_value)
    few_p = few.posteriors(few.metric, -1.0)
    return Evidence(
        [
            Check("f(A*) - D(sigma(s))", relative(value - dual, value), 1e-5),
            Check("the certified gap", certificate.relative_gap, 1e-6),
            Check("M(p) not PSD", max(0.0, -least) / size, 1e-5),
            Check("<M(p), A*>", abs(slackness) / max(1.0, abs(value)), 1e-5),
            Check("weak duality at random p, excess", _dual_excess(data, p, value), 1e-9),
            Check(
                "CVXPY's dual optimum outside the certified interval",
                outside / max(1.0, abs(few_value)),
                1e-6,
            ),
            Check("its p against sigma(s)", relative(conic_p - few_p), 1e-3),
            Check(
                "its multiplier against the metric",
                norm(multiplier - few.metric) / max(norm(few.metric), few.unit),
                1e-3,
            ),
        ],
        numbers={
            "f(A*)": value,
            "D(p*)": dual,
            "certified relative gap": certificate.relative_gap,
            "smallest eigenvalue of M(p*)": least,
            "<M(p*), A*> / tr(A*)": slackness / max(float(np.trace(A)), 1e-300),
            "entropy of p*, nats": float(data.weights @ paper.entropy(p)),
            "Clarabel on the dual of some points": solver_status,
        },
    )


def _dual_excess(data: ClaimData, optimal: FloatArray, value: float) -> float:
    """The largest D(p) - f(A*) over random p, each moved toward b/c until M(p) is PSD."""
    rng, worst = data.random(11), 0.0
    anchor = dissimilar_weights(data) / data.weights
    for mix in np.linspace(0.0, 1.0, 8):
        p = mix * optimal + (1.0 - mix) * rng.random(len(anchor))
        while np.linalg.eigvalsh(dual_matrix(data, p))[0] < 0.0:
            p = 0.7 * p + 0.3 * anchor
            if relative(p - anchor) < 1e-9:
                p = anchor
                break
        worst = max(worst, (dual_value(data, p) - value) / max(1.0, abs(value)))
    return worst


def recession_matrix(objective: MStepObjective, q: FloatArray) -> FloatArray:
    """The matrix of the criterion, M(1) = sum_S v v' + mu sum_U q(+1) v v' + lambda I."""
    pairs = objective.pairs
    S, U = (paper.differences(pairs.points, rows) for rows in (pairs.similar, pairs.unlabeled))
    identity = np.eye(pairs.n_features)
    return S.T @ S + objective.mu * moment(U, q) + objective.trace_weight * identity


def has_optimum(objective: MStepObjective, q: FloatArray) -> bool:
    """Whether an optimum exists: no pair that counts as dissimilar leaves the range of M(1)."""
    M, V = recession_matrix(objective, q), _dissimilar_differences(objective, q == 0.0)
    total = float(np.sum(V**2)) + float(np.trace(M))
    eigenvalues, vectors = np.linalg.eigh(M)
    null = vectors[:, eigenvalues <= ZERO * total]
    return bool(np.all(np.sum((V @ null) ** 2, axis=1) <= ZERO * total))


def _dissimilar_differences(objective: MStepObjective, unlabeled: FloatArray) -> FloatArray:
    """The differences of dissimilar pairs and, where they count, of these unlabeled ones."""
    pairs = objective.pairs
    counted = pairs.unlabeled[unlabeled if objective.mu > 0.0 else []]
    return paper.differences(pairs.points, np.vstack([pairs.dissimilar, counted]))


def check_attainment(data: ClaimData) -> Evidence:
    """Compare the criterion on M(1) with how -F behaves along rays."""
    first = data.objective(None)
    unattained, other, flat = (  # on each side of the criterion, and on its border
        _supervised(PairSet.from_constraints(points, [(0, 1)], [(0, 2)]))
        for points in (
            [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]],
            [[0.0], [1.0], [2.0]],
            [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]],
        )
    )
    on_data = (first.with_trace_weight(0.0), first, _supervised(data.pairs))
    cases = (unattained, other, flat, *on_data)
    predicted = np.array([has_optimum(o, np.zeros(o.pairs.n_unlabeled)) for o in cases])
    seen = np.array([_stops_falling(objective) for objective in cases])
    package = [objective.attains_optimum for objective in cases]
    ray, times = np.diag([0.0, 1.0]), np.linspace(0.0, 20.0, 41)
    values = [unattained.value(t * ray) for t in times]
    infimum = float(np.log1p(np.exp(-1.0)))
    best = metric_of(certified(other))
    words = np.where(seen, "attained", "not attained").tolist()
    return Evidence(
        [Check("M-steps without an optimum", np.sum(~seen), 0.0)],
        [
            Check("criterion against behavior, cases that differ", np.sum(predicted != seen), 0.0),
            Check("criterion against the package's", np.sum(predicted != package), 0.0),
            Check("infimum approached, not attained", values[-1] - infimum, 1e-7),
            Check("a value at or below the infimum", min(values) <= infimum, 0.0),
            Check("attained: slope at the optimum", np.abs(other.gradient(best)).max(), 1e-4),
        ],
        numbers={
            "not attained: f at t = 1": unattained.value(ray),
            "not attained: f at t = 20": values[-1],
            "not attained: infimum": infimum,
            "attained: A*": float(best[0, 0]),
            "the data, lambda = 0, first M-step": words[3],
            "the data, lambda > 0": words[4],
            "the data, lambda = 0, mu = 0": words[5],
        },
        charts=[
            Chart(
                "Two small M-steps with lambda = 0",
                "t",
                "-F",
                [
                    Curve("not attained", times, values),
                    Curve("attained", times[:13], [other.value([[t]]) for t in times[:13]]),
                ],
            )
        ],
    )


def _supervised(pairs: PairSet) -> MStepObjective:
    return MStepObjective(pairs, unlabeled_weight=0.0, trace_weight=0.0)


def _stops_falling(objective: MStepObjective) -> bool:
    """Whether -F stops falling along every ray of eigenvectors of M(1), judged by its values."""
    V = _dissimilar_differences(objective, np.ones(objective.pairs.n_unlabeled, dtype=bool))
    visible = 1e-12 * np.max(np.sum(V**2, axis=1), initial=1e-300)
    for u in np.linalg.eigh(objective.recession_matrix)[1].T:
        longest = np.max((V @ u) ** 2, initial=0.0)
        if longest < visible:
            continue  # -F does not depend on this direction: flat
        ray = np.outer(u, u) / longest
        values = [objective.value(t * ray) for t in (5.0, 10.0, 20.0, 1e3, 1e6)]
        is_falling = values[0] > values[1] > values[2]
        if is_falling and values[4] <= values[3] + 1e-7 * max(1.0, abs(values[3])):
            return False
    return True


def measure(n: int, m: int) -> float:
    """Time a gradient of (11) and a projection, for n points in R^m: the best of 7."""
    rng = np.random.default_rng([n, m])
    labels = np.where(np.arange(n) < 10, np.arange(n) % 2, -1)
    objective = MStepObjective(PairSet.from_labels(rng.normal(size=(n, m)), labels))
    A = np.eye(m) / m
    objective.program  # noqa: B018 (what is summed once is not part of a step)
    seconds = []
    with one_blas_thread():
        for _ in range(7):
            clock = time.process_time()
            project(A - 1e-3 * objective.value_and_gradient(A)[1])
            seconds.append(time.process_time() - clock)
    return min(seconds)


def check_complexity(data: ClaimData) -> Evidence:
    """Compare the fitted exponents of n and of m with those of n^2 m + m^3."""
    by_points = [[measure(n, m) for n in MANY_POINTS] for m in (8, 32)]
    by_features = [measure(60, m) for m in MANY_FEATURES]
    exponents_n = [_exponent(MANY_POINTS, seconds) for seconds in by_points]
    exponent_m = float(np.max(np.log(np.divide(by_points[1], by_points[0])) / np.log(32 / 8)))
    exponent_cube = _exponent(MANY_FEATURES, by_features)
    return Evidence(
        [
            Check("exponent of n above 2, m fixed", max(exponents_n) - 2.0, 0.35),
            Check("exponent of m above 1, n large", exponent_m - 1.0, 0.35),
            Check("exponent of m above 3, n small", exponent_cube - 3.0, 0.35),
        ],
        numbers={
            "exponent of n, m = 8": exponents_n[0],
            "exponent of n, m = 32": exponents_n[1],
            "exponent of m, n large": exponent_m,
            "exponent of m, n = 60": exponent_cube,
            f"seconds, n = {MANY_POINTS[-1]}, m = 32": by_points[1][-1],
        },
        charts=[
            Chart(
                "Seconds of a step against n",
                "n",
                "seconds",
                [
                    Curve("m = 8", MANY_POINTS, by_points[0]),
                    Curve("m = 32", MANY_POINTS, by_points[1]),
                ],
                log_x=True,
                log_y=True,
            )
        ],
    )


def _exponent(sizes: tuple[int, ...], seconds: list[float]) -> float:
    """Fit the exponent b of the least-squares line log t = a + b log size."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
