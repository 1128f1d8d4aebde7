"""Evidence: bounds of `certify_problem` hold the known optimum, whatever the start; refusals."""

from __future__ import annotations

import inspect
import json
import math
import pkgutil
from fractions import Fraction
from importlib import import_module
from operator import mul

import cvxpy as cp
import numpy as np
import pytest
import scipy
from cvxpy.transforms.partial_optimize import partial_optimize
from flint import ctx
from high_precision import BITS, exact, is_within

from seraph_cvx.proof import certify_problem, enclosure, point
from seraph_cvx.proof.arithmetic import AccurateMatrix, Enclosure, Pair, dot
from seraph_cvx.proof.cones import ConeProduct
from seraph_cvx.proof.gram import smallest_eigenvalue
from seraph_cvx.proof.lower_bound import DualProver, NotProven, lower_bound
from seraph_cvx.proof.program import Cone, ConicProgram, canonicalize
from seraph_cvx.proof.rounding import UNIT
from seraph_cvx.proof.start import solve
from seraph_cvx.proof.steps import Steps, climb
from seraph_cvx.proof.upper_bound import PrimalProver, upper_bound

PROBLEMS = {
    "quadratic": lambda x, X: (cp.Minimize(cp.sum_squares(x - [3, 4, 0])), [cp.sum(x) == 1], 12.0),
    "semidefinite": lambda x, X: (
        cp.Maximize(cp.trace(np.diag([1.0, 2.0, 5.0]) @ X)), [cp.trace(X) == 1], 5.0
    ),
    "exponential": lambda x, X: (
        cp.Maximize(cp.sum(cp.entr(x))), [cp.sum(x) == 1], math.log(3.0)
    ),
    "power_nd": lambda x, X: (
        cp.Maximize(cp.geo_mean(x, [1, 1, 1], approx=False)), [cp.sum(x) == 3], 1.0
    ),
    "log_det": lambda x, X: (cp.Maximize(cp.log_det(X) - cp.trace(X)), [], -3.0),
}  # fmt: skip
"""More, of every cone, are in the families of the stress."""


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("solver", [None, "CLARABEL", "SCS"])
def test_bounds_hold_a_known_optimum(name, solver):
    X = cp.Variable((3, 3), PSD=True)
    objective, constraints, optimum = PROBLEMS[name](cp.Variable(3), X)
    problem = cp.Problem(objective, constraints)
    if solver:
        problem.solve(solver="CLARABEL" if name == "power_nd" else solver)
    certificate = certify_problem(problem)
    slack = 4.0 * math.ulp(optimum)  # of the optimum's own rounding
    assert certificate.lower <= optimum + slack
    assert certificate.upper >= optimum - slack
    assert certificate.relative_gap <= 1e-6
    assert (certificate.point is None) == (solver is None)
    written = json.loads(certificate.to_json())["claim"]
    assert float.fromhex(written["lower"]) <= certificate.lower
    assert float.fromhex(written["upper"]) >= certificate.upper
    assert "relative gap" in certificate._repr_html_()


def test_bounds_of_a_problem_that_sdpa_answered_hold_the_optimum():
    pytest.importorskip("sdpap", reason="sdpa-python is not installed: the extra `sdpa` brings it")
    test_bounds_hold_a_known_optimum("semidefinite", "SDPA")


def test_infeasible_and_unbounded_are_proven():
    x = cp.Variable(2)
    assert certify_problem(cp.Problem(cp.Minimize(x[0]), [x >= 1, cp.sum(x) <= 1])).infeasible
    assert certify_problem(cp.Problem(cp.Maximize(x[0]), [x >= 1])).unbounded
    contradiction = [x[0] + x[1] == 1, 2 * x[0] + 2 * x[1] == 3]
    assert certify_problem(cp.Problem(cp.Minimize(x[0]), contradiction)).infeasible
    assert certify_problem(cp.Problem(cp.Minimize(cp.square(x[0]) + x[1]))).unbounded


def test_few_rows_that_contradict_each_other_by_a_little_are_infeasible():
    """In rationals: the vertex has more variables at zero than the program has rows."""
    x, rows = cp.Variable(8), np.random.default_rng(0).integers(-3, 4, (2, 8))
    beyond = rows.sum(axis=0) @ x >= 2.0 + 2.0**-40
    assert certify_problem(cp.Problem(cp.Minimize(x[0]), [rows @ x <= 1.0, beyond])).infeasible


def test_an_infeasible_problem_is_not_asked_to_be_solved_first():
    x = cp.Variable(name="x")
    for solver in (None, "CLARABEL", "SCS"):
        problem = cp.Problem(cp.Minimize(x), [x >= 1, x <= 0])
        if solver is not None:
            problem.solve(solver=solver)  # its variables have no values then
        certificate = certify_problem(problem)
        assert certificate.infeasible
        assert "no point is feasible" in certificate.claim
        assert "solve()" not in str(certificate)
    assert "conic program of 1 variable and 2 rows" in str(certificate)


def test_constraints_are_named_as_they_were_written():
    X, t, y = cp.Variable((3, 2), name="X"), cp.Variable(name="t"), cp.Variable(3, name="y")
    constraints = [cp.pnorm(X, 3) <= t, cp.geo_mean(y) >= 1, cp.sum_squares(y) <= 500]
    problem = cp.Problem(cp.Minimize(t + cp.sum(y)), constraints)
    X.value, t.value, y.value = np.ones((3, 2)), 0.5, np.array([30.0, 30.0, -1.0])
    _, first, second, third, _ = str(point.judge_point(problem)).splitlines()
    assert "geo_mean of a number that may be outside of its domain" in first
    assert first.endswith("constraints[1]: 1.0 <= geo_mean(y, (1/3, 1/3, 1/3))")
    assert second.endswith("of  constraints[2]: sum_squares(y) <= 500.0")
    assert third.endswith("of  constraints[0]: pnorm(X, 3) <= t")


@pytest.mark.parametrize(
    ("entries", "off"),
    [
        ((0.0, 1.0, 1.0), 0.0),  # on the boundary
        ((1.0, 2.0, 3.0), 2.0 * math.exp(0.5) - 3.0),
        ((1.0, 2.0, 4.0), 0.0),
        ((-1.0, 0.0, 0.0), 0.0),  # on the face y = 0
        ((0.25, 0.0, 1.0), 0.25),
        ((-1.0, 0.0, -0.5), 0.5),
        ((-1.0, -0.125, 1.0), 0.125),
        ((5.0, 1e-300, 1.0), 5.0),  # exp(x / y) is beyond every number
        ((5.0, 1e-12, 1.0), 5.0),
    ],
)
def test_a_point_is_judged_in_exponential_cones(entries, off):
    x = cp.Variable(3, value=np.array(entries))
    problem = cp.Problem(cp.Minimize(x[0]), [cp.ExpCone(x[0], x[1], x[2])])
    ((_, (low, high)),) = point.judge_point(problem).violations
    assert off - 1e-13 <= low <= high <= off + 1e-13
    assert point.judge_point(problem).is_feasible == (high == 0.0)


@pytest.mark.parametrize(
    ("entries", "off"),
    [
        ((4.0, 1.0, 2.0), 0.0),
        ((4.0, 1.0, -1.75), 0.0),
        ((4.0, 1.0, -3.0), 1.0),
        ((0.0, 1.0, 0.0), 0.0),
        ((0.0, 1.0, 0.5), 0.5),
        ((-0.25, 9.0, 0.125), 0.25),
    ],
)
def test_a_point_is_judged_in_power_cones(entries, off):
    x = cp.Variable(3, value=np.array(entries))
    problem = cp.Problem(cp.Minimize(x[0]), [cp.PowCone3D(x[0], x[1], x[2], 0.5)])
    ((_, (low, high)),) = point.judge_point(problem).violations
    assert low <= off <= high <= off + 1e-14


def test_cones_of_many_entries_are_judged_by_the_worst():
    x = cp.Variable((3, 2), value=np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]]))
    exponential, power = cp.ExpCone(*x), cp.PowCone3D(*x, np.array([0.5, 0.25]))
    report = point.judge_point(cp.Problem(cp.Minimize(0), [exponential, power]))
    worst = [3.0 - 2.0**0.75, 1.0]  # exp(1) - 1 is more than 1, the distance of the face
    assert [high for _, (_, high) in report.violations] == pytest.approx(worst)


def test_what_cancels_between_the_parts_of_an_enclosure_is_small():
    first = Enclosure(np.array([1.0 + 2.0**-40]), np.array([-(2.0**-41)]), np.zeros(1))
    difference = first.plus(np.array([-1.0]), np.array([-(2.0**-41)]), np.zeros(1))
    assert difference.size[0] < 1e-27


@pytest.mark.parametrize("order", [50, 2_000])
def test_a_small_eigenvalue_is_bounded_by_its_size(order):
    """One equation is nearly a combination of others: the floor is not far below."""
    A = scipy.sparse.eye_array(order, format="lil")
    A[0, 1:30] = 1.0
    A[0, 0] = 2.0**-11
    floor = smallest_eigenvalue(scipy.sparse.csc_array(A.T))
    smallest = np.linalg.svd(A.toarray()[:30, :30], compute_uv=False)[-1] ** 2
    assert 0.01 * smallest < floor <= smallest * (1.0 + 1e-9) < 1e-7


def test_a_point_is_in_a_long_cone_that_is_nearer_to_it_than_rounded_sums():
    tail = np.random.default_rng(0).normal(size=20_000)
    cones = ConeProduct([Cone("second_order", 20_001)])
    for depth, inside in ((1e-14, True), (-1e-14, False)):
        top = math.sqrt(math.fsum(tail * tail)) * (1.0 + depth)
        assert cones.holds(np.concatenate([[top], tail]), dual=True) == inside


def test_a_proof_that_takes_too_much_memory_is_left_out():
    def too_large():
        raise MemoryError

    steps = Steps()
    assert climb("lower", [("first", too_large)], 0.0, True, steps) is None
    assert steps == ["lower bound: none; first: out of memory"]


def test_the_worst_violations_come_first_by_label_and_the_others_are_counted():
    x = cp.Variable(9, name="x")
    problem = cp.Problem(cp.Minimize(cp.sum(x)), [x[k] <= -k for k in range(9)])
    problem.constraints[7].set_label("budget")
    x.value = np.zeros(9)
    lines = str(point.judge_point(problem)).splitlines()
    assert lines[1].endswith("of  constraints[8]: x[8] <= -8.0")
    assert lines[2].endswith("of  budget")
    assert lines[6:] == ["  and 3 more", "  constraints proven to be met: 1"]


def test_a_tolerance_and_bounds_on_variables_are_refused_where_they_are_negative():
    """What they are worth, the families with them say."""
    x = cp.Variable(2)
    problem = cp.Problem(cp.Minimize(x[0] + cp.exp(x[1])))
    certificate = certify_problem(problem, bounds={x: [2, 3]})
    assert "given bounds" in certificate.claim
    assert certificate.relative_gap <= 1e-6
    for wrong in ({"tolerance": -1.0}, {"bounds": {x: -1.0}}):
        with pytest.raises(ValueError, match=r"tolerance|bounds"):
            certify_problem(problem, **wrong)


def test_parameters_have_their_values():
    x, p = cp.Variable(), cp.Parameter()
    problem = cp.Problem(cp.Minimize(x), [x >= p])
    with pytest.raises(ValueError, match="no value"):
        certify_problem(problem)
    for value in (1.0, 7.0):
        p.value = value
        certificate = certify_problem(problem)
        assert certificate.lower <= value <= certificate.upper
        assert certificate.relative_gap < 1e-6


@pytest.mark.parametrize(
    ("problem", "match"),
    [
        (lambda x: cp.Problem(cp.Minimize(cp.sum(cp.Variable(2, boolean=True)))), "boolean"),
        (
            lambda x: cp.Problem(cp.Minimize(x[0]), [cp.constraints.FiniteSet(x, [1, 2])]),
            "FiniteSet",
        ),
        (lambda x: cp.Problem(cp.Minimize(cp.sqrt(x[0]))), "DCP"),
        (lambda x: cp.Problem(cp.Minimize(x[0] * x[1]), [x >= 1]), "DCP"),
        (lambda x: cp.Problem(cp.Minimize(cp.power(x[0], math.pi))), "exponent"),
        (lambda x: cp.Problem(cp.Minimize(cp.pnorm(x, math.pi))), "pnorm"),
        (lambda x: cp.Problem(cp.Maximize(cp.geo_mean(x, [1, math.pi]))), "geo_mean"),
        (lambda x: cp.Problem(cp.Minimize(cp.sum(cp.loggamma(x)))), "loggamma"),
        (lambda x: cp.Problem(cp.Maximize(cp.sum(cp.log_normcdf(x)))), "log_normcdf"),
        (lambda x: cp.Problem(cp.Minimize(cp.Constant(1.0))), "no variables"),
    ],
)
def test_refusals_are_by_name(problem, match):
    with pytest.raises(ValueError, match=match):
        certify_problem(problem(cp.Variable(2)))


def test_the_users_point_is_judged_as_it_is():
    x = cp.Variable(2, nonneg=True)
    problem = cp.Problem(cp.Minimize(cp.norm(x) + cp.exp(x[0])), [x >= 1, x[0] == 2])
    x.value = np.array([2.0, 0.5])
    point = certify_problem(problem).point
    low, high = point.objective
    assert low <= math.sqrt(4.25) + math.exp(2.0) <= high <= low + 1e-12
    (_, first), (_, second), (_, third) = point.violations
    assert first == (0.5, 0.5) or first[0] <= 0.5 <= first[1] <= 0.5 + 1e-12
    assert second[1] <= 1e-14
    assert third == (0.0, 0.0)


@pytest.mark.parametrize("n", [30, 5000])
def test_products_with_pairs_are_enclosed(n):
    """And the value of a sum as long, at the user's point."""
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((n, 3)) * 10.0 ** rng.integers(-9, 9, (n, 3))
    dense[rng.random((n, 3)) < 0.3] = 0.0
    y = Pair.of(rng.standard_normal(n)).plus(1e-17 * rng.standard_normal(n))
    matrix = AccurateMatrix(scipy.sparse.csc_array(dense))
    low, high = dot(dense[:, 0], y)
    with ctx.workprec(BITS):
        product = exact(dense).transpose() * sum(exact(part).transpose() for part in y[:2])
        assert low <= product[0, 0] <= high
        for c in (np.zeros(3), rng.standard_normal(3)):
            found = matrix.transpose_times(y, c if c.any() else None)
            middle = sum(exact(part).transpose() for part in found[:2])
            off = product + exact(c).transpose() - middle
            assert is_within(off, exact(found.error).transpose())
            assert np.all(found.error <= 1e-25 * np.abs(dense).sum(axis=0))
    x = cp.Variable(n)
    x.value = dense[:, 0]
    low, high = point.judge_point(cp.Problem(cp.Minimize(cp.sum(x)))).objective
    assert low <= sum(map(Fraction, x.value.tolist())) <= high
    assert high - low <= 4.0 * n * UNIT * np.abs(x.value).sum()


@pytest.mark.parametrize("n", [5, 40, pytest.param(1500, marks=pytest.mark.slow)])
def test_the_smallest_eigenvalue_is_bounded_from_below(n):
    rng = np.random.default_rng(n)
    density = 0.5 if n < 100 else 2.0 / n
    N = scipy.sparse.random(3 * n, n, density, random_state=rng, format="csc")
    N = scipy.sparse.csc_array(scipy.sparse.vstack([N, 0.1 * scipy.sparse.eye(n)]))
    floor = smallest_eigenvalue(N)
    least = np.linalg.eigvalsh((N.T @ N).toarray())[0]
    assert 0.0 < floor <= least * (1.0 + 1e-9)
    assert smallest_eigenvalue(scipy.sparse.csc_array(np.ones((4, 2)))) == 0.0


CONES = [
    Cone("nonnegative", 2),
    Cone("second_order", 4),
    Cone("psd", 6),
    Cone("exponential", 3),
    Cone("power", 3, (0.3,)),
    Cone("power_nd", 4, (0.2, 0.5, 0.3)),
]


@pytest.mark.parametrize("cone", CONES, ids=lambda cone: cone.kind)
def test_balls_around_dual_points_have_nonnegative_products_with_the_cone(cone):
    rng = np.random.default_rng(0)
    cones = ConeProduct([cone])
    (group,) = cones.groups
    points = []
    while len(points) < 200:  # points of K, by the test for boxes of no width
        s = rng.standard_normal(cone.rows) + 0.7 * cones.interior()
        if not cones.first_outside(s, np.zeros(cone.rows)):
            points.append(s)
    for _ in range(50):
        y = cones.interior() + rng.uniform(0, 1.5) * rng.standard_normal(cone.rows)
        radii = cones.dual_radii(y, np.zeros(cone.rows))
        if not (radii > 0).all():
            continue
        move = rng.standard_normal(group.rows.shape)
        move *= (1.0 / np.linalg.norm(move, axis=1))[:, None]
        moved = y.copy()
        moved[group.rows] += radii[group.rows] * move
        assert min(moved @ s for s in points) >= -1e-12


def test_a_program_with_data_that_do_not_fit_is_refused():
    A = scipy.sparse.csc_array(np.eye(2))
    with pytest.raises(ValueError, match="fit together"):
        ConicProgram(A, np.zeros(3), np.zeros(2), None, (Cone("zero", 2),))


def test_lower_bounds_on_faces_of_the_dual_cone():
    x = cp.Variable(3)
    unused = cp.Variable(2)  # the multipliers of its rows have to be zero
    constraints = [cp.exp(unused) <= 5, cp.norm(x) <= unused[0] + 9, x[:2] == 1]
    certificate = certify_problem(cp.Problem(cp.Minimize(cp.sum(cp.exp(x))), constraints))
    assert certificate.lower <= 2.0 * math.e + math.exp(-10.5)
    assert certificate.upper >= 2.0 * math.e
    assert certificate.relative_gap <= 1e-6


def test_a_quadratic_form_that_cvxpy_would_change_is_refused():
    x = cp.Variable(2)
    form = cp.quad_form(x, np.diag([1.0, 1e-10]))
    with pytest.raises(ValueError, match="drops its small eigenvalues"):
        certify_problem(cp.Problem(cp.Minimize(cp.sum(x)), [form <= 1]))


def test_a_negative_quadratic_form_is_certified():
    x = cp.Variable(2)
    form = cp.quad_form(x, -np.ones((2, 2)))
    certificate = certify_problem(cp.Problem(cp.Minimize(x[0] + x[1]), [form >= -4]), bounds={x: 9})
    assert certificate.lower <= -2.0 <= certificate.upper
    assert certificate.relative_gap <= 1e-6


def test_a_residual_that_is_not_small_proves_nothing():
    # minimize x subject to x >= 0: y = 1 - 1e-6 leaves a residual, and 1e-6 is no small part of g.
    A = scipy.sparse.csc_array([[-1.0], [-1.0]])
    program = ConicProgram(A, np.zeros(2), np.ones(1), None, (Cone("nonnegative", 2),))
    prover = DualProver(program)
    for y, is_proof in (([1.0, 1e-6], True), ([1.1, 1e-6], False)):
        pair = Pair.of(np.array(y))
        residual = prover.residual(pair, None)
        if is_proof:
            assert prover.prove(pair, None, residual).value <= 0.0
        else:
            with pytest.raises(NotProven):
                prover.prove(pair, None, residual)


def test_a_point_off_its_equations_is_feasible_only_with_slack():
    # x_0 + x_1 = 1 and x >= 0: (1e-6, 1) is 1e-6 off, and may move by less than that.
    A = scipy.sparse.csc_array([[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    cones = (Cone("zero", 1), Cone("nonnegative", 2))
    prover = PrimalProver(ConicProgram(A, np.array([1.0, 0.0, 0.0]), np.ones(2), None, cones))
    assert prover.prove(Pair.of(np.array([1e-6, 1.0 - 1e-6]))).value >= 1.0
    with pytest.raises(NotProven, match="inside K"):
        prover.prove(Pair.of(np.array([1e-9, 1.0 - 1e-6])))
    assert prover.prove(Pair.of(np.array([0.5, 0.5 - 1e-6]))).value >= 1.0


@pytest.mark.parametrize("name", ["x", "s", "y"])
def test_a_start_with_infinite_entries_proves_nothing(name):
    x = cp.Variable(2)
    problem = cp.Problem(cp.Minimize(cp.sum(x)), [x >= 1])
    program = canonicalize(problem).program
    start = solve(program)
    endless = start._replace(**{name: np.full_like(getattr(start, name), np.inf)})
    steps = Steps()
    assert lower_bound(program, endless, steps) is None
    assert upper_bound(program, endless, 0.0, steps) is None
    assert all("NaN or infinity" in step for step in steps)


def test_a_perspective_next_to_a_psd_cone_is_certified_and_a_nested_one_refused():
    """s * lambda_max(X / s) is lambda_max(X), with off-diagonal entries that a scale would move."""
    X, s = cp.Variable((2, 2), symmetric=True), cp.Variable(nonneg=True)
    limits = [s <= 3, X - np.array([[1, 2], [2, -1]]) == 0]
    inner = cp.perspective(cp.lambda_max(X), s)
    certificate = certify_problem(cp.Problem(cp.Minimize(inner), limits))
    assert certificate.relative_gap < 1e-6
    assert certificate.lower <= math.sqrt(5.0) <= certificate.upper
    t = cp.Variable(nonneg=True)
    problem = cp.Problem(cp.Minimize(cp.perspective(inner, t)), [*limits, s >= 1, t == 1])
    with pytest.raises(ValueError, match="inside of another one"):
        certify_problem(problem)


def test_many_redundant_equations_take_no_memory_of_their_square():
    rows = scipy.sparse.csc_array(np.ones((3, 50_000)))
    assert smallest_eigenvalue(rows) == 0.0


def test_every_atom_that_is_enclosed_is_called_as_cvxpy_calls_it():
    """A trace was not enclosed: the class of that atom has a capital letter."""
    atoms = set()
    for module in pkgutil.walk_packages(cp.atoms.__path__, "cvxpy.atoms."):
        found = vars(import_module(module.name))
        atoms |= {name for name, value in found.items() if inspect.isclass(value)}
    assert set(enclosure.RULES) <= atoms
    A = cp.Variable((2, 2), PSD=True)
    problem = cp.Problem(cp.Minimize(cp.trace(A)), [A[0, 1] == 1])
    problem.solve(solver="CLARABEL")
    low, high = point.judge_point(problem).objective
    assert low <= problem.value <= high


@pytest.mark.parametrize("sense", [1.0, -1.0])
def test_a_feasible_point_of_the_users_proves_a_bound(sense):
    x = cp.Variable()
    function = sense * (cp.exp(x) + cp.exp(-x))
    objective = cp.Minimize(function) if sense > 0 else cp.Maximize(function)
    free, fixed = cp.Problem(objective), cp.Problem(objective, [x + 0.1 == 0.1])
    before = certify_problem(free)
    x.value = 0.0
    certificate = certify_problem(free)
    assert "the values of the variables, proven feasible" in certificate.claim
    assert certificate.relative_gap < before.relative_gap
    end = (certificate.upper, certificate.lower)[sense < 0] * sense
    assert 2.0 <= end <= 2.0 + 1e-13
    # No sum of doubles is proven to be an equation: that holds to within a tolerance.
    assert not certify_problem(fixed).point.is_feasible
    assert certify_problem(fixed, tolerance=1e-9).point.is_feasible


def test_attributes_of_the_users_point_hold_exactly_or_prove_nothing():
    X = cp.Variable((2, 2), symmetric=True)
    problem = cp.Problem(cp.Minimize(cp.sum(cp.exp(X))), [X >= 1])
    X._value = np.array([[1.0, 1.0], [1.0 - 1e-10, 1.0]])  # as a solver might leave them
    assert not point.judge_point(problem, 1e-3).is_feasible
    assert "of the variables" not in certify_problem(problem, tolerance=1e-3).claim


def test_variables_with_bounds_on_one_side_or_zeros_are_judged():
    x, S = cp.Variable(2, bounds=[None, 5.0]), cp.Variable((2, 2), sparsity=[(0,), (1,)])
    problem = cp.Problem(cp.Minimize(cp.sum(x) + cp.sum(S)), [x >= 1])
    x.value, S._value = np.array([1.0, 4.0]), np.array([3.0])  # `value` warns of itself
    judged = point.judge_point(problem)
    assert judged.is_feasible
    assert judged.objective[0] <= 8.0 <= judged.objective[1]
    x._value = np.array([1.0, 6.0])
    assert point.judge_point(problem).violation == pytest.approx(1.0)


def test_products_with_sparse_matrices_are_enclosed():
    rng = np.random.default_rng(0)
    A = scipy.sparse.csr_array(np.where(rng.random((40, 30)) < 0.1, rng.random((40, 30)), 0.0))
    x, Y = cp.Variable(30), cp.Variable((2, 40))
    x.value, Y.value = rng.standard_normal(30), rng.standard_normal((2, 40))
    P = scipy.sparse.csc_array(A.T @ A)
    rows = [[Fraction(v) for v in row] for row in A.toarray()]
    product = [sum(map(mul, row, map(Fraction, x.value))) for row in rows]
    by_Y = sum(Fraction(y) * v for values in Y.value for y, v in zip(values, product, strict=True))
    form = [sum(map(mul, map(Fraction, row), map(Fraction, x.value))) for row in P.toarray()]
    for expression, value in (
        (cp.sum(A @ x), sum(product)),
        (cp.sum(Y @ A @ x), by_Y),
        (cp.quad_form(x, P), sum(map(mul, form, map(Fraction, x.value)))),
    ):
        low, high = point.judge_point(cp.Problem(cp.Minimize(expression))).objective
        assert low <= value <= high <= low + 1e-11
    big = scipy.sparse.csr_array([[1e16, 1.0, -1e16]])  # whose sum is 0.0 in doubles
    one = cp.Constant(big) @ cp.Constant(scipy.sparse.csr_array(np.ones((3, 1))))
    Y = cp.Variable((1, 1), value=[[1.0]])
    low, high = point.judge_point(cp.Problem(cp.Minimize(one @ Y))).objective
    assert low <= 1.0 <= high


def test_atoms_that_users_use_are_enclosed():
    """Against closed forms at points of short binary fractions."""
    x, y, P = cp.Variable(2), cp.Variable(2), cp.Variable((2, 2), symmetric=True)
    z = cp.Variable(2, complex=True)
    x.value, y.value, P.value = np.array([1.0, 4.0]), np.array([2.0, 0.5]), np.diag([2.0, 4.0])
    z.value = np.array([3.0 + 4.0j, -1.0j])
    matrix = cp.vstack([x, y])
    logs = np.log(0.5) + 4.0 * np.log(8.0)
    for expression, value in (
        (cp.geo_mean(x), 2.0),
        (cp.harmonic_mean(x), 1.6),
        (cp.sum(cp.huber(x, 2.0)), 13.0),
        (cp.sum(cp.rel_entr(x, y)), logs),
        (cp.sum(cp.kl_div(x, y)), logs - 2.5),
        (cp.matrix_frac(x, P), 4.5),
        (cp.tr_inv(P), 0.75),
        (cp.sum(cp.norm(matrix, 1, axis=0)), 7.5),
        (cp.sum(cp.norm(matrix, 2, axis=1)), np.sqrt(17.0) + np.sqrt(4.25)),
        (cp.sum(cp.real(2j * z)) + cp.imag(z[0]), -2.0),
        (cp.norm1(z), 6.0),
    ):
        sense = cp.Minimize if expression.is_convex() else cp.Maximize
        low, high = point.judge_point(cp.Problem(sense(expression))).objective
        allowed = 1e-14 * abs(value)  # of the closed form in doubles
        assert low - allowed <= value <= high + allowed, expression
        assert high - low <= 1e-12, expression


def test_a_value_that_cvxpy_does_not_know_is_not_judged(monkeypatch):
    x, t = cp.Variable(2), cp.Variable(2)
    inner = cp.Problem(cp.Minimize(cp.sum(t)), [-t <= x, x <= t])
    problem = cp.Problem(cp.Minimize(partial_optimize(inner, [t], [x])))
    problem.solve()
    monkeypatch.setattr(type(problem.objective.expr), "value", None)  # its solver failed
    assert math.isnan(point.judge_point(problem).objective.value)


@pytest.mark.filterwarnings("ignore:Reading from a sparse CVXPY expression")
def test_bounds_of_a_variable_may_be_sparse():
    most = scipy.sparse.coo_array(np.diag([1.0, 2.0]))
    x = cp.Variable((2, 2), sparsity=([0, 1], [0, 1]), bounds=[-most, most])
    x.value_sparse = -most
    certificate = certify_problem(cp.Problem(cp.Minimize(cp.sum(x))))
    assert (certificate.lower, certificate.upper) == (-3.0, -3.0)
    assert certificate.point.is_feasible
