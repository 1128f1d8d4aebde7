"""Programs as users have them: redundant, degenerate, on faces, in large blocks."""

from __future__ import annotations

from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
import scipy
from conic_stress import instance

from seraph_cvx.proof import certify_problem, check_certificate, cones, gram, search
from seraph_cvx.proof.cones import ConeProduct
from seraph_cvx.proof.point import judge_point
from seraph_cvx.proof.program import Cone, ConicProgram
from seraph_cvx.proof.quadratic import convexified
from seraph_cvx.proof.search import searched
from seraph_cvx.proof.start import Start, solve
from seraph_cvx.proof.steps import Steps


def portfolio():
    """The least variance of 40 assets on 30 days."""
    returns = np.random.default_rng(0).normal(size=(30, 40))
    x = cp.Variable(40, nonneg=True)
    return cp.Problem(
        cp.Minimize(cp.quad_form(x, cp.psd_wrap(np.cov(returns.T)))), [cp.sum(x) == 1]
    )


def network(n_nodes=50, n_edges=200):
    """The incidence matrix of a random graph with a cycle through all nodes."""
    rng, ring = np.random.default_rng(0), np.arange(n_nodes)
    tails = np.append(ring, rng.integers(0, n_nodes, n_edges - n_nodes))
    heads = np.append(np.roll(ring, -1), rng.integers(0, n_nodes, n_edges - n_nodes))
    edges = np.arange(n_edges)
    A = scipy.sparse.csr_array((np.ones(n_edges), (tails, edges)), shape=(n_nodes, n_edges))
    return A - scipy.sparse.csr_array((np.ones(n_edges), (heads, edges)), shape=A.shape)


def shortest_path():
    """Its equations of conservation are dependent: they sum to zero."""
    supply, flow = np.zeros(50), cp.Variable(200, nonneg=True)
    supply[[0, 25]] = 1.0, -1.0
    costs = np.random.default_rng(1).integers(1, 20, 200)
    return cp.Problem(cp.Minimize(costs @ flow), [network() @ flow == supply])


def smallest_peak():
    """The smallest largest flow of 480 edges."""
    supply, flow = np.random.default_rng(1).integers(-5, 6, 120).astype(float), cp.Variable(480)
    supply[0] -= supply.sum()
    return cp.Problem(cp.Minimize(cp.norm_inf(flow)), [network(120, 480) @ flow == supply])


def transport(n=50, entropy=0.0):
    """From as many places to as many others, by the shares of a random draw."""
    rng = np.random.default_rng(0)
    x, costs = cp.Variable((n, n), nonneg=True), rng.uniform(size=(n, n))
    supply, demand = rng.multinomial(10 * n, np.full(n, 1.0 / n), 2) / (10.0 * n)
    value = cp.sum(cp.multiply(costs, x))
    value -= entropy * cp.sum(cp.entr(x)) if entropy else 0.0
    return cp.Problem(cp.Minimize(value), [cp.sum(x, 1) == supply, cp.sum(x, 0) == demand])


def largest_cut(order=60):
    """The dual of the semidefinite relaxation of the largest cut of a random graph."""
    weights = np.triu(np.random.default_rng(0).random((order, order)) < 0.1, 1).astype(float)
    laplacian = np.diag((weights + weights.T).sum(axis=0)) - weights - weights.T
    y = cp.Variable(order)
    return cp.Problem(cp.Minimize(cp.sum(y)), [cp.diag(y) - laplacian / 4 >> 0])


def bisection(order=12):
    """The same where both parts are equal: all multipliers of its dual are on a face."""
    rng, y, t = np.random.default_rng(0), cp.Variable(order), cp.Variable()
    C = rng.integers(-3, 4, (order, order))
    slack = C + C.T + t * np.ones((order, order)) - cp.diag(y)
    return cp.Problem(cp.Maximize(cp.sum(y)), [slack >> 0])


def smoothing(n=300):
    """The nearest points to rough ones whose fourth differences are not negative: a stiff one."""
    x, t = cp.Variable(n), np.linspace(0.0, 1.0, n)
    data = np.exp(t) + 0.1 * np.random.default_rng(0).normal(size=n)
    form = cp.quad_form(x, scipy.sparse.eye_array(n, format="csc"))
    return cp.Problem(cp.Minimize(form - 2.0 * data @ x), [cp.diff(x, 4) >= 0])


CASES = {
    "portfolio, OSQP": (portfolio, "OSQP", 1e-6),
    "path, HIGHS": (shortest_path, "HIGHS", 0.0),
    "transport": (transport, "CLARABEL", 1e-15),
    "peak": (smallest_peak, "HIGHS", 1e-15),
    "cut": (largest_cut, "CLARABEL", 1e-6),
    "cut, SCS": (largest_cut, "SCS", 1e-6),
    "smoothing": (smoothing, "CLARABEL", 1e-6),
    "face": (bisection, "CLARABEL", 1e-6),
}
"""Problems, solvers whose answers are the start, and the gaps that are proven."""


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n == "smoothing")) for n in CASES]
)
def test_what_solvers_answer_is_proven(name):
    state, solver, gap = CASES[name]
    problem = state()
    value = problem.solve(solver=solver)
    certificate = certify_problem(problem)
    assert certificate.relative_gap <= gap
    size = 1e-2 * max(1.0, abs(value))
    assert certificate.lower - size <= value <= certificate.upper + size


def test_with_a_tolerance_bounds_are_those_of_the_program_so_relaxed():
    problem = bisection(6)
    (slack,) = (constraint.args[0] for constraint in problem.constraints)
    relaxed = cp.Problem(problem.objective, [slack + 0.01 * np.eye(6) >> 0])
    certificate, exact = certify_problem(problem, tolerance=0.01), certify_problem(relaxed)
    assert certificate.lower <= exact.upper
    assert certificate.upper >= exact.lower
    assert certificate.relative_gap <= 1e-6


def test_a_matrix_that_multipliers_cannot_have_leaves_no_block():
    t, X = cp.Variable(), cp.Variable((3, 3), PSD=True)
    problem = cp.Problem(cp.Minimize(cp.trace(X)), [X + t * np.eye(3) >> np.diag([1.0, 2.0, 3.0])])
    certificate = certify_problem(problem)
    assert certificate.lower <= 0.0 <= certificate.upper <= 1e-6


@pytest.mark.parametrize(("size", "unit"), [(5e-324, 1.0), (1e150, 1e-150)])
def test_faces_beyond_doubles_are_no_faces(size, unit):
    s, t = cp.Variable(2)
    matrix = np.diag([1.0, 2.0]) + t * size * np.ones((2, 2)) + s * unit * np.eye(2)
    certificate = certify_problem(cp.Problem(cp.Minimize(s), [matrix >> 0]))
    assert certificate.lower <= -1.5 / unit


def test_only_contradictions_by_rounding_are_moved():
    """The right sides disagree by 1e-4, next to a number that is 1e14 times as large."""
    x = cp.Variable(3)
    pair = x[0] + x[1]
    problem = cp.Problem(cp.Minimize(x[2]), [pair <= 0, pair >= 1e-4, x[2] == 1e10])
    assert certify_problem(problem).infeasible


@pytest.mark.parametrize("seed", [16, 124])
def test_all_right_sides_that_were_moved_are_in_the_claim(seed, tmp_path):
    """Equations that contradict others are moved, and then rows that contradict those."""
    problem = instance("contradicting by rounding", seed).problem
    certificate = certify_problem(problem)
    assert "moved by at most" in certificate.claim
    path = tmp_path / "moved.json"
    path.write_text(certificate.to_json())
    assert check_certificate(path).valid


@pytest.mark.parametrize("left", [2.8e-17, 1e-9])
def test_what_cancellation_left_of_a_sum_is_moved(left):
    """Nothing in its own row is as large as the numbers that it may be a difference of."""
    x = cp.Variable(3, nonneg=True)
    problem = cp.Problem(cp.Minimize(x[2]), [x[0] + x[1] == -left, cp.sum(x) == 1])
    certificate = certify_problem(problem)
    assert certificate.infeasible == (left == 1e-9)
    if not certificate.infeasible:
        assert 1.0 <= certificate.lower <= certificate.upper <= np.nextafter(1.0, 2.0)
        assert "1 right side moved by at most 2.8" in certificate.claim


def test_a_large_sparse_form_is_judged_sparse():
    """As a dense array it would take 28.8 GB."""
    x = cp.Variable(60_000)
    form = cp.quad_form(x, cp.psd_wrap(scipy.sparse.eye_array(60_000, format="csc")))
    x.value = np.zeros(60_000)
    report = judge_point(cp.Problem(cp.Minimize(form), [x >= 0]))
    assert report.is_feasible
    assert np.allclose(report.objective, 0.0, rtol=0.0, atol=1e-300)


def test_bounds_of_the_users_are_not_moved():
    x = cp.Variable(2)
    problem = cp.Problem(cp.Minimize(x[0]), [cp.sum(x) == 0.1 + 0.2])
    certificate = certify_problem(problem, bounds={x: [0.1, 0.2]})
    assert certificate.lower == -np.inf
    assert certificate.upper == np.inf


def test_the_optimum_of_a_shifted_form_is_not_that_of_the_form():
    """At the center the shifted program is solved exactly, and its optimum is above."""
    M, box = np.diag([1.0, 1.0 - 2.0**-52, 0.0]), np.vstack([np.eye(3), -np.eye(3)])
    M[0, 1] = M[1, 0] = 1.0
    b, z = np.array([4.0, 4.0, 0.0] * 2), np.array([1.0, 0.0, 0.0])

    def stated(c):
        return ConicProgram(box, b, c, scipy.sparse.csc_array(M), (Cone("nonnegative", 6),))

    program = stated(-(convexified(stated(z)).program.P @ z))
    start = Start(z, b - box @ z, np.zeros(6), "optimal", "HIGHS")
    evidence = searched(program, start, 0.0, Steps())
    c, P = ([Fraction(v) for v in part] for part in (program.c.tolist(), M[0].tolist()))
    assert Fraction(evidence.ends(program)[0]) <= c[0] + P[0] / 2
    assert evidence.optimum is None


@pytest.mark.parametrize("cone", ["exponential", "second-order", "psd"])
def test_equations_that_contradict_by_rounding_are_moved_beside_other_cones(cone, tmp_path):
    P = cp.Variable((4, 4))
    term = {
        "exponential": -0.1 * cp.sum(cp.entr(P)),
        "second-order": cp.norm(P, "fro"),
        "psd": cp.lambda_max(P + P.T),
    }[cone]
    cost = np.arange(16.0).reshape(4, 4) % 5
    sums = [cp.sum(P, axis=1) == [0.1, 0.2, 0.3, 0.4], cp.sum(P, axis=0) == np.full(4, 0.25)]
    problem = cp.Problem(cp.Minimize(cp.sum(cp.multiply(cost, P)) + term), [*sums, P >= 0.0])
    certificate = certify_problem(problem)
    assert certificate.relative_gap < 1e-6
    assert "1 right side moved by at most" in certificate.claim
    path = tmp_path / "moved.json"
    path.write_text(certificate.to_json())
    assert check_certificate(path).valid
    # by more than rounding
    far = [sums[0], cp.sum(P, axis=0) == np.full(4, 0.25 + 1e-9)]
    assert certify_problem(cp.Problem(problem.objective, [*far, P >= 0.0])).infeasible


@pytest.mark.parametrize("dual", [True, False])
@pytest.mark.parametrize("with_form", [True, False])
def test_a_large_second_order_cone_has_the_same_metric_as_a_matrix(dual, with_form, monkeypatch):
    rng = np.random.default_rng(0)
    product = ConeProduct((Cone("zero", 2), Cone("nonnegative", 3), Cone("second_order", 40)))
    A = scipy.sparse.csc_array(rng.normal(size=(45, 6)))
    point = np.concatenate([np.zeros(2), rng.uniform(0.5, 2.0, 3), [8.0], rng.normal(size=39)])
    g, f = rng.normal(size=6), rng.normal(size=45)
    Q = scipy.sparse.csc_array(np.eye(6)) if with_form else None
    found = []
    for most in (30, 100):
        monkeypatch.setattr(cones, "MOST_ROWS", most)
        metric = product.metric(point, dual)
        assert metric.Z.shape[1] == (most == 30)
        found.append(np.concatenate(metric.solver(A, product.zero, Q)(g, f)))
    np.testing.assert_allclose(*found, rtol=1e-8)


def test_a_long_norm_in_many_variables_is_proven_in_sparse_equations(monkeypatch):
    """Its metric, a matrix, would make A'WA a dense one of 3,000 rows."""
    n = 3_000
    x, data = cp.Variable(n), np.random.default_rng(0).normal(size=n)
    problem = cp.Problem(cp.Minimize(cp.norm(x - data)), [cp.diff(x) >= 0])
    problem.solve(solver="CLARABEL")
    monkeypatch.setattr(gram, "MOST_DENSE", 1_000)
    certificate = certify_problem(problem)
    assert certificate.relative_gap <= 1e-6


def test_a_quadratic_program_is_solved_once_more_where_the_first_answer_was_of_no_use(monkeypatch):
    """As Clarabel says of PRIMALC2, of Maros and Meszaros, that its objective has no bound."""

    def wrong_of_clarabel(program, solver, seconds):
        found = solve(program, solver, seconds)
        x, s, y = np.zeros(program.A.shape[1]), program.b, np.zeros(len(program.b))
        is_wrong = solver == "CLARABEL"
        return found._replace(status="DualInfeasible", x=x, s=s, y=y) if is_wrong else found

    monkeypatch.setattr(search, "solve", wrong_of_clarabel)
    x, data = cp.Variable(5), np.linspace(0.2, 0.8, 5)
    box = [x >= 0, x <= 1]  # from any point there are bounds, rough ones
    problem = cp.Problem(cp.Minimize(cp.quad_form(x, np.eye(5)) - 2.0 * data @ x), box)
    certificate = certify_problem(problem)
    assert certificate.relative_gap <= 1e-6
