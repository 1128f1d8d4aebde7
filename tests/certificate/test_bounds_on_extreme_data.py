"""Evidence: what GDM, ITML, LMNN and the exponential M-step claim is true of the exact doubles.

Each bound is held against the values of other metrics. These are searched in coordinates that were
made with 800 bits, where a direction of faint spread counts as much as any other, and evaluated in
balls. The data are small and badly scaled: a value of 1e8 among the points, features of sizes 1e-6
to 1e6, collinear ones, exactly or to rounding.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from instances import random_psd
from scipy.optimize import minimize

from seraph_cvx import NotCertified, PairSet, paper
from seraph_cvx.baselines.gdm import GDM, GDMProblem, solve_gdm
from seraph_cvx.baselines.itml import ITMLProblem, solve_itml
from seraph_cvx.baselines.lmnn import LMNN, LMNNProblem, solve_lmnn
from seraph_cvx.baselines.rival import RivalSolution
from seraph_cvx.numerics import proven_sums, psd_cone
from seraph_cvx.solvers.solution import Status
from seraph_cvx.theory import exponential
from seraph_cvx.theory.exponential import ExponentialMStep, certify_exponential, solve_exponential

flint = pytest.importorskip("flint")
from flint import arb  # noqa: E402
from high_precision import (  # noqa: E402
    BITS,
    differences,
    exact,
    forms,
    identity,
    is_positive_definite,
    log_det,
    moment,
    rounded,
    squares,
    total,
    unit_basis,
)

NOTHING = np.empty((0, 2), dtype=int)
MANY_NEIGHBORS = 20


@pytest.fixture(autouse=True)
def _many_bits():
    with flint.ctx.workprec(BITS), np.errstate(all="ignore"):
        yield


def with_a_sentinel(X, rng):
    X[rng.integers(len(X)), rng.integers(X.shape[1])] = 1e8
    return X


def with_a_far_point(X, rng):
    X[rng.integers(len(X))] = 10.0 ** rng.integers(6, 10)
    return X


def in_a_plane(X, rng):
    m = X.shape[1]
    return X @ rng.normal(size=(m, m + int(rng.integers(1, 4)))) + rng.choice([0.0, 7.0])


def nearly_collinear(X, rng):
    noise = 10.0 ** rng.uniform(-12.0, -4.0) * rng.normal(size=len(X))
    return np.column_stack([X, X[:, 0] + noise])


CHANGES = {
    "plain": lambda X, rng: X,
    "sentinel": with_a_sentinel,
    "far point": with_a_far_point,
    "scales": lambda X, rng: X * 10.0 ** rng.uniform(-6.0, 6.0, size=X.shape[1]),
    "shift": lambda X, rng: X + 10.0 ** rng.uniform(3.0, 9.0),
    "plane": in_a_plane,
    "nearly": nearly_collinear,
    "copies": lambda X, rng: np.column_stack([X, X[:, 0], 3.0 * X[:, 0]]),
}


def extreme_points(family, seed):
    """Points of two or three classes and what is wrong with them."""
    rng = np.random.default_rng([seed, 5])
    n, m = int(rng.integers(6, 11)), int(rng.integers(1, 4))
    y = np.arange(n) % int(rng.integers(2, 4))
    X = rng.normal(size=(n, m)) + rng.normal(size=(3, m))[y]
    return CHANGES[family](X, rng), y, rng


def few_and_more(few, many):
    """Every family; the first seeds in every run, the others in the slow one."""
    more = pytest.param(range(few, many), marks=pytest.mark.slow)
    few_or_more = pytest.mark.parametrize("seeds", [range(few), more], ids=["few", "more"])
    return lambda test: few_or_more(pytest.mark.parametrize("family", CHANGES)(test))


def quietly(solve, *arguments, **settings):
    """Some of these instances are not solved, and say so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertified)
        return solve(*arguments, **settings)


def of_all_sizes(rng, shape, scales):
    """Gaussian, times 1e-6 to 1e6."""
    return rng.normal(size=shape) * 10.0 ** rng.uniform(-6.0, 6.0, size=scales)


# --- GDM -----------------------------------------------------------------------------------------


def gdm_constraint(problem):
    """C, exactly."""
    near = differences(problem.pairs.points, problem.pairs.similar)
    ridge = problem.similar_moment.shape[0]
    return near.transpose() * near + identity(ridge, problem.ridge_entry)


def gdm_value(problem, L):
    """The objective at the multiple of LL' that meets the constraint."""
    far = differences(problem.pairs.points, problem.pairs.dissimilar)
    cost = (L.transpose() * gdm_constraint(problem) * L).trace()
    return total(d.sqrt() for d in squares(far, L)) / cost.sqrt()


def gdm_candidate(problem):
    """The generalized power method in exact coordinates."""
    T = unit_basis(gdm_constraint(problem))
    W = rounded(differences(problem.pairs.points, problem.pairs.dissimilar) * T)
    F = np.eye(W.shape[1])
    for _ in range(300):
        lengths = np.maximum(np.linalg.norm(W @ F, axis=1), 1e-300)
        F = (W / lengths[:, None]).T @ (W @ F)
        F /= np.linalg.norm(F)
    return T * exact(F)


def gdm_instances(family, seeds):
    for seed in seeds:
        X, y, rng = extreme_points(family, seed)
        ridge = float(rng.choice([0.0, 1e-3, 1e-12]))
        problem = GDMProblem(PairSet.from_labels(X, y), ridge)
        try:
            solution = quietly(solve_gdm, problem, max_iter=2000)
        except ValueError as error:
            if "GDM is unbounded" not in str(error):
                raise
        else:
            yield problem, solution, rng


@few_and_more(3, 20)
def test_no_metric_beats_the_bound_of_gdm(family, seeds):
    """And its value at any factor is proven from below."""
    for problem, solution, rng in gdm_instances(family, seeds):
        assert not gdm_value(problem, gdm_candidate(problem)) > solution.bound
        m = problem.pairs.n_features
        L = of_all_sizes(rng, (m, 2), (m, 1))
        assert gdm_value(problem, exact(L)) >= problem.value_from_below(L)


# --- ITML ----------------------------------------------------------------------------------------


def itml_instances(family, seeds):
    for seed in seeds:
        X, y, rng = extreme_points(family, seed)
        gamma = float(10.0 ** rng.uniform(-2.0, 2.0))
        bounds = 10.0 ** rng.uniform([-6.0, 0.0], [1.0, 6.0])
        chosen = None if rng.random() < 0.7 else tuple(bounds.tolist())
        yield ITMLProblem(PairSet.from_labels(X, y), gamma, chosen), rng


def itml_differences(problem):
    return differences(problem.pairs.points, problem.pairs.labeled[problem._distinct])


def itml_dual(problem, multipliers):
    """The dual function, or None outside its domain."""
    signed = problem.signs * multipliers
    m = problem.pairs.n_features
    determinant = log_det(identity(m) + moment(itml_differences(problem), signed))
    if determinant is None:
        return None
    gamma = arb(problem.gamma)
    for s, target in zip(signed.tolist(), problem.targets.tolist(), strict=True):
        if not gamma > arb(s) * target:
            return None
        determinant += gamma * (1 - arb(s) * target / gamma).log()
    return determinant


def itml_value(problem, A):
    """The objective at this very A; None where A is not positive definite."""
    E = exact(A)
    determinant = log_det(E)
    if determinant is None:
        return None
    value = E.trace() - determinant - len(A)
    distances, targets = forms(itml_differences(problem), E), map(arb, problem.targets.tolist())
    for sign, target, d in zip(problem.signs, targets, distances, strict=True):
        ratio = (d.max(target) if sign > 0.0 else d.min(target)) / target
        value += arb(problem.gamma) * (ratio - ratio.log() - 1)
    return value


@few_and_more(3, 6)
def test_bounds_of_itml_are_true(family, seeds):
    """Lower ones not above the dual function, in its domain and outside it; values from above."""
    for problem, rng in itml_instances(family, seeds):
        solution = quietly(solve_itml, problem, max_iter=300)
        found = [problem.multipliers(solution.metric)]
        for _ in range(3):
            z = rng.exponential(size=len(problem.vectors)) * 10.0 ** rng.uniform(-18.0, 2.0)
            found.append(np.where(problem.signs > 0.0, z, z * 10.0 ** rng.uniform(-18.0, 0.0)))
        for multipliers in found:
            bound = problem.lower_bound(multipliers)
            dual = itml_dual(problem, multipliers)
            assert bound == 0.0 or (dual is not None and dual >= bound)
        m = problem.pairs.n_features
        unit = 10.0 ** rng.uniform(-6.0, 6.0, size=m)
        for A in (solution.metric, random_psd(rng, m) * np.outer(unit, unit)):
            claim, value = problem.value_from_above(A), itml_value(problem, A)
            assert claim == np.inf if value is None else value <= claim
        assert solution.proven_value >= solution.bound


@pytest.mark.parametrize("seed", range(20))
def test_value_of_itml_where_a_distance_cancels(seed):
    """v'Av is about 1e-12 of |v|'|A||v|, and the pair is asked to be farther apart."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=3)
    A = np.outer(u, u) + 10.0 ** rng.uniform(-11.0, -8.0) * np.eye(3)
    v = np.cross(u, rng.normal(size=3))
    pairs = PairSet.from_constraints(np.vstack([np.zeros(3), v]), NOTHING, [(0, 1)])
    problem = ITMLProblem(pairs, gamma=1e4, bounds=(1.0, 2.0))
    claim, value = problem.value_from_above(A), itml_value(problem, A)
    assert value <= claim
    assert claim < np.inf


# --- LMNN ----------------------------------------------------------------------------------------


def lmnn_value(problem, L):
    """The objective at LL', from above."""
    mu = arb(problem.push_weight)
    X, i_j, i_l = problem.points, problem.triples[:, :2], problem.triples[:, [0, 2]]
    value = (1 - mu) * total(squares(differences(X, problem.target_pairs), L))
    near, far = squares(differences(X, i_j), L), squares(differences(X, i_l), L)
    for d, e in zip(near, far, strict=True):
        value += mu * (1 + d - e).max(arb(0))
    return value


def lmnn_candidate(problem):
    """The package's own solver, given the points in exact coordinates of all pairs.

    With all points of a class as target neighbors the problem is the same in any coordinates.
    """
    n = len(problem.points)
    V = differences(problem.points, np.column_stack(np.triu_indices(n, 1)))
    T = unit_basis(V.transpose() * V)
    X = rounded(differences(problem.points, [(i, 0) for i in range(n)]) * T)
    turned = LMNNProblem(X, problem.classes, MANY_NEIGHBORS, problem.push_weight)
    eigenvalues, vectors = np.linalg.eigh(quietly(solve_lmnn, turned, max_iter=300).metric)
    return T * exact(vectors * np.sqrt(np.maximum(eigenvalues, 0.0)))


@few_and_more(1, 6)
def test_no_metric_beats_the_bound_of_lmnn(family, seeds):
    """And its value at any factor is proven from above."""
    for seed in seeds:
        X, y, rng = extreme_points(family, seed)
        problem = LMNNProblem.from_labels(X, y, n_neighbors=MANY_NEIGHBORS)
        solution = quietly(solve_lmnn, problem, max_iter=300)
        assert not lmnn_value(problem, lmnn_candidate(problem)) < solution.bound
        few = LMNNProblem.from_labels(X, y)
        L = of_all_sizes(rng, (X.shape[1], 2), (X.shape[1], 1))
        assert lmnn_value(few, exact(L)) <= few.value_from_above(L)


def test_lmnn_is_certified_where_features_are_exact_combinations_of_others():
    """One-hot columns, a copy and a constant."""
    rng = np.random.default_rng(0)
    y = np.arange(24) % 2
    one_hot = np.eye(3)[rng.integers(3, size=24)]
    values = rng.normal(size=(24, 2)) + y[:, None]
    X = np.column_stack([values, one_hot, values[:, 0], np.ones(24)])
    assert solve_lmnn(LMNNProblem.from_labels(X, y)).relative_gap <= 1e-5
    assert solve_gdm(GDMProblem(PairSet.from_labels(X, y), ridge=0.0)).relative_gap <= 1e-6
    leaning = np.column_stack([X, 3.0 * values[:, 1]])  # rounded: no combination any more
    for estimator in (LMNN(), GDM(ridge=0.0)):
        with pytest.warns(NotCertified, match="leave out those that follow from others"):
            estimator.fit(leaning, y)


def test_lmnn_triples_that_another_feature_meets_for_nothing_do_not_count():
    """Classes apart in a feature in which no targets differ: the least value is 0 at any mu."""
    problem = LMNNProblem.from_labels(
        [[0.0, 0.0], [1.0, 0.0], [0.5, 2.0], [1.5, 2.0]], [0, 0, 1, 1]
    )
    assert problem.lower_bound(np.full(len(problem.triples), 0.5)) == 0.0
    assert solve_lmnn(problem).proven_value < 1e-12


def test_lmnn_equal_points_of_two_classes_cost_their_weight_whatever_the_metric():
    """The impostor is at the place of the point or of its target, in all 8 triples."""
    X = np.repeat(np.random.default_rng(0).normal(size=(2, 5)), 2, axis=0)
    problem = LMNNProblem.from_labels(X, [0, 1, 0, 1], push_weight=0.25)
    solution = solve_lmnn(problem)
    assert solution.bound == 0.25 * 8
    assert solution.relative_gap <= 1e-12


# --- the exponential M-step ----------------------------------------------------------------------


def exponential_instance(family, seed):
    X, y, rng = extreme_points(family, seed)
    y = np.where(rng.random(len(y)) < 0.5, y, -1)
    y[:3] = 0, 0, 1
    pairs = PairSet.from_labels(X, y)
    return ExponentialMStep(
        pairs,
        rng.random(pairs.n_unlabeled),
        unlabeled_weight=float(rng.choice([0.0, 0.01, 0.3])),
        trace_weight=float(10.0 ** rng.uniform(-6.0, 2.0)),
        offset=float(10.0 ** rng.uniform(-12.0, 1.0)),
    ), rng


def exponential_differences(problem):
    pairs = problem.pairs
    rows = np.vstack([pairs.labeled, pairs.unlabeled])[: len(problem.near)]
    return differences(pairs.points, rows)


def exponential_value(problem, L):
    V = exponential_differences(problem)
    value = arb(problem.trace_weight) * (L.transpose() * L).trace()
    for d, a, b in zip(squares(V, L), problem.near.tolist(), problem.far.tolist(), strict=True):
        u = d + arb(problem.offset)
        value += arb(a) * u - arb(b) * (1 - (-u).exp()).log()
    return value


def exponential_candidate(problem, rng):
    """L-BFGS over A = FF' in exact coordinates."""
    V, m = exponential_differences(problem), problem.pairs.n_features
    T = unit_basis(moment(V, problem.near) + identity(m, problem.trace_weight))
    W, b = rounded(V * T), problem.far

    def value_and_gradient(x):
        F = x.reshape(m, m)
        u = np.sum(np.square(W @ F), axis=1) + problem.offset
        push = (W * (b / np.expm1(np.minimum(u, 600.0)))[:, None]).T @ (W @ F)
        return np.sum(F * F) - b @ np.log(-np.expm1(-u)), 2.0 * (F - push).ravel()

    start = rng.normal(size=m * m) * 10.0 ** rng.uniform(-2.0, 2.0)
    options = {"maxiter": 2000, "ftol": 1e-16, "gtol": 1e-12}
    found = minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", options=options)
    return T * exact(found.x.reshape(m, m))


@few_and_more(1, 3)
def test_certificate_of_the_exponential_m_step_is_true(family, seeds):
    for seed in seeds:
        problem, rng = exponential_instance(family, seed)
        solution = quietly(solve_exponential, problem, max_iter=200)
        candidates = [exponential_candidate(problem, rng) for _ in range(2)]
        least = [exponential_value(problem, L) for L in candidates]
        near = rounded(candidates[0] * candidates[0].transpose())
        for certificate in (solution.certificate, certify_exponential(problem, near)):
            assert not any(value < certificate.dual_value for value in least)
            own = exponential_value(problem, exact(certificate.factor))
            assert own <= certificate.primal_value


@pytest.mark.parametrize("offset", [1e-3, 1e-10, 1e-12, 1e-14, 1e-15])
def test_closed_form_of_one_pair_with_a_tiny_offset(offset):
    """w is up to 1e15 and w log w is off by more than all of h(w), if h is made of it."""
    for share in np.arange(0.1, 3.0, 0.15):
        X = np.array([[0.0], [np.sqrt(offset * share)]])
        pairs = PairSet.from_constraints(X, NOTHING, [(0, 1)])
        problem = ExponentialMStep(pairs, unlabeled_weight=0.0, offset=offset)
        price, delta = 1 / arb(float(X[1, 0])) ** 2, arb(offset)
        u = (1 + 1 / price).log().max(delta)
        optimum = (u - delta) * price - (1 - (-u).exp()).log()
        certificate = certify_exponential(problem, [[0.0]])
        assert certificate.dual_value <= optimum
        assert optimum <= certificate.primal_value
        best = certify_exponential(problem, [[float((u - delta) * price)]])
        assert best.dual_value <= optimum
        assert best.relative_gap < 1e-9


@pytest.mark.parametrize(
    ("function", "by_definition", "points"),
    [
        (
            exponential.dissimilar_loss,
            lambda u: -(1 - (-u).exp()).log(),
            (1e-300, 1e-17, 0.3, np.log(2.0), 0.7, 40.0, 700.0),
        ),
        (
            exponential.geometric_entropy,
            lambda w: (1 + w) * (1 + w).log() - w * w.log(),
            (1e-190, 1e-16, 0.3, 1.0, 1e8, 1e16, 1e200),
        ),
    ],
)
def test_loss_and_entropy_are_accurate_at_both_ends(function, by_definition, points):
    with flint.ctx.workprec(4 * BITS):
        for x in points:
            true = by_definition(arb(float(x)))
            assert abs(float(function(np.array(x))) - true) < 1e-15 * abs(true)
    assert exponential.geometric_entropy(np.zeros(1)) == 0.0


def test_failure_a_lower_bound_above_the_upper_one_is_an_error(monkeypatch):
    problem, _ = exponential_instance("plain", 0)
    solution = solve_exponential(problem)
    assert solution.status is Status.CERTIFIED
    wrong = exponential.geometric_entropy
    monkeypatch.setattr(exponential, "geometric_entropy", lambda w: 2.0 * wrong(w))
    with pytest.raises(ArithmeticError, match="is above the upper bound"):
        certify_exponential(problem, solution.metric)
    with pytest.raises(ArithmeticError, match="is beyond the bound"):
        RivalSolution(np.eye(1), 1.0, 1.0, 1.0 + 1e-15, "by hand", 1)
    with pytest.raises(ArithmeticError, match="is beyond the bound"):
        RivalSolution(np.eye(1), 1.0, 1.0, 1.0 - 1e-15, "by hand", 1, is_maximum=True)


def test_failure_values_that_overflow_leave_a_bound_that_is_true():
    pairs = PairSet.from_labels([[0.0], [1e100], [1e150], [2e150]], [0, 0, 1, 1])
    problem = ExponentialMStep(pairs, unlabeled_weight=0.0)
    certificate = certify_exponential(problem, [[1e10]])
    assert certificate.primal_value == np.inf
    assert 0.199 < certificate.dual_value <= certify_exponential(problem, [[0.0]]).primal_value
    gdm, itml = GDMProblem(pairs), ITMLProblem(pairs, bounds=(1.0, 2.0))
    assert gdm.value_from_below(np.array([[1e200]])) == 0.0
    assert itml.value_from_above(np.array([[1e300]])) == np.inf
    assert itml.lower_bound(np.full(len(itml.vectors), 1e308)) == 0.0
    lmnn = LMNNProblem.from_labels(pairs.points, [0, 0, 1, 1])
    assert lmnn.value_from_above(np.array([[1e200]])) == np.inf
    assert lmnn.lower_bound(np.full(len(lmnn.triples), 0.5)) <= lmnn.value_from_above(
        np.zeros((1, 1))
    )


# --- the sums themselves -------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_moment_is_off_by_less_than_its_error(seed):
    rng = np.random.default_rng(seed)
    n, m = 8, int(rng.integers(1, 5))
    X = of_all_sizes(rng, (n, m), m) + rng.choice([0.0, 1e8])
    rows = np.column_stack(np.triu_indices(n, 1))
    T, weights = of_all_sizes(rng, (m, m), m), of_all_sizes(rng, len(rows), len(rows))
    V = paper.differences(X, rows)
    matrix, error = proven_sums.moment_along(T, V, weights, ridge=0.3)
    whole = moment(differences(X, rows), weights) + identity(m, 0.3)
    off = exact(T).transpose() * whole * exact(T) - exact(matrix)
    for sign in (1, -1):
        assert is_positive_definite(exact(np.diag(error)) + off * sign)


@pytest.mark.parametrize("seed", range(12))
def test_squared_lengths_are_between_their_bounds(seed):
    """Of differences of all sizes, some of them nearly orthogonal to all columns of L."""
    rng = np.random.default_rng(seed)
    X = of_all_sizes(rng, (8, 3), (8, 1)) + rng.normal(size=3)
    L = np.cross(X[0] - X[1], rng.normal(size=(2, 3))).T * 10.0 ** rng.uniform(-6.0, 6.0, size=2)
    rows = np.column_stack(np.triu_indices(8, 1))
    lower, upper = proven_sums.squared_lengths(L, paper.differences(X, rows))
    true = squares(differences(X, rows), exact(L))
    bounds = zip(lower.tolist(), true, upper.tolist(), strict=True)
    assert all(low <= d <= high for low, d, high in bounds)


def hilbert(m):
    """Singular to rounding: what eigenvalues in floating point say of it is worth nothing."""
    return 1.0 / (1.0 + np.arange(m)[:, None] + np.arange(m)), np.eye(m)


def random_pencil(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 6))
    unit = 10.0 ** rng.uniform(-6.0, 6.0, size=m)
    ranks = m, int(rng.integers(1, m + 1))
    return tuple(random_psd(rng, m, rank=rank) * np.outer(unit, unit) for rank in ranks)


@pytest.mark.parametrize("pencil", [*map(hilbert, range(2, 16)), *map(random_pencil, range(12))])
def test_step_and_determinant_are_proven(pencil):
    """A step along which the exact matrix stays positive definite; a bound below its log det."""
    M, S = pencil
    m, is_random = len(M), not np.array_equal(S, np.eye(len(M)))
    tau = proven_sums.proven_step(M, np.zeros(m), S, np.zeros(m))
    assert tau is not None or not is_random
    assert tau is None or is_positive_definite(exact(M) - exact(S) * arb(tau))
    T = psd_cone.inverse_factor(M)
    if T is None:
        return
    size = np.sum(np.abs(T).T @ np.abs(M) @ np.abs(T), axis=1)
    bound = proven_sums.log_det_from_below(T, T.T @ M @ T, 1e-14 * size)
    assert bound is None or log_det(exact(M)) >= float(bound)
    if is_random:  # and they are sharp
        assert not is_positive_definite(exact(M) - exact(S) * arb(1.001 * tau))
        assert float(bound) > float(log_det(exact(M))) - 1e-7


def test_features_that_are_exact_combinations_are_found():
    X = np.array([[0.1, 0.5, 0.5, 7.0], [0.7, 0.2, 0.2, 7.0], [0.4, 0.9, 0.9, 7.0]])
    found = list(proven_sums.independent_features(X))
    assert len(found) == 2
    assert 0 in found
    X[1, 2] = np.nextafter(X[1, 2], 1.0)
    assert len(proven_sums.independent_features(X)) == 3
    assert len(proven_sums.independent_features(np.ones((3, 2)))) == 0
