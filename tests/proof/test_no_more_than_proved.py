"""Evidence: what canonicalization hides, wrong translations, threads, and words for bad input."""

from __future__ import annotations

import json
import threading
import warnings

import cvxpy as cp
import flint
import numpy as np
import pytest
from cvxpy.reductions.dcp2cone.canonicalizers import CANON_METHODS
from cvxpy.transforms.indicator import indicator
from cvxpy.transforms.partial_optimize import partial_optimize

from seraph_cvx import certify_problem, check_certificate, explain_convexity
from seraph_cvx.proof import checker
from seraph_cvx.proof.cones import ConeProduct
from seraph_cvx.proof.exact import is_outside
from seraph_cvx.proof.point import judge_point
from seraph_cvx.proof.program import Cone


def hidden(place, f, z=3.0):
    """A problem whose optimum is f(z), with f where its expression tree does not show it."""
    x, t, s = cp.Variable(name="x"), cp.Variable(), cp.Variable(nonneg=True)
    if place == "perspective":
        return cp.Problem(cp.Minimize(cp.perspective(f(x), s)), [x == z, s == 1])
    if place == "partial_optimize":
        inner = cp.Problem(cp.Minimize(t), [f(x) <= t])
        return cp.Problem(cp.Minimize(partial_optimize(inner, [t], [x])), [x == z])
    return cp.Problem(cp.Minimize(t + indicator([f(x) <= t])), [x == z])


PLACES = ["perspective", "partial_optimize", "indicator"]
APPROXIMATED = [lambda x: cp.power(x, np.pi), cp.loggamma, lambda x: -cp.log_normcdf(x)]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("f", APPROXIMATED)
def test_an_approximation_is_refused_wherever_it_stands(place, f):
    with pytest.raises(ValueError, match=r"CVXPY('s| replaces)"):
        certify_problem(hidden(place, f))


@pytest.mark.parametrize("place", PLACES)
def test_an_exact_function_is_certified_there(place):
    certificate = certify_problem(hidden(place, cp.square))
    assert certificate.lower <= 9.0 <= certificate.upper
    assert certificate.relative_gap < 1e-6


@pytest.mark.parametrize("place", ["partial_optimize", "indicator"])
def test_a_finite_set_is_refused_wherever_it_stands(place):
    x, w = cp.Variable(), cp.Variable()
    finite = cp.constraints.FiniteSet(x, [1, 4])
    problem = cp.Problem(cp.Minimize(x + indicator([finite])), [x >= 3])
    if place == "partial_optimize":
        inner = cp.Problem(cp.Minimize(x), [finite, x >= w])
        problem = cp.Problem(cp.Minimize(partial_optimize(inner, [x], [w])), [w == 3])
    with pytest.raises(ValueError, match="FiniteSet"):
        certify_problem(problem)


def test_constraints_that_are_not_dcp_are_refused_wherever_they_stand():
    x, s = cp.Variable(), cp.Variable(nonneg=True)
    far = indicator([cp.square(x) >= 4]) + x  # CVXPY calls it convex, and compiles it to x
    for objective in (far, cp.perspective(far, s)):
        problem = cp.Problem(cp.Minimize(objective), [x >= 0, s == 1])
        with pytest.raises(ValueError, match="not DCP"):
            certify_problem(problem)
        assert not explain_convexity(problem).holds


def test_functions_that_cvxpy_takes_for_one_another_are_refused():
    x, s, y = cp.Variable(), cp.Variable(nonneg=True), cp.Variable()
    square, exp = cp.perspective(cp.square(x), s), cp.perspective(cp.exp(x), s)
    pinned = [x == 1, s == 2, y == x]
    with pytest.raises(ValueError, match="two perspectives of the same arguments for one"):
        certify_problem(cp.Problem(cp.Minimize(square + exp), pinned))
    both = sum(cp.suppfunc(x, [x <= end])(y) for end in (2, 5))
    with pytest.raises(ValueError, match="two support functions"):
        certify_problem(cp.Problem(cp.Minimize(both), [y == 1]))
    for objective, value in (
        (square + 2 * square, 1.5),
        (square + cp.perspective(cp.exp(y), s), 0.5 + 2.0 * np.exp(0.5)),
    ):
        certificate = certify_problem(cp.Problem(cp.Minimize(objective), pinned))
        assert certificate.lower <= value <= certificate.upper


def test_what_a_wrap_promises_of_a_constant_is_proven():
    x, minus = cp.Variable(2), cp.Constant(-np.eye(2))
    for promised, is_true in ((cp.psd_wrap(minus), False), (cp.psd_wrap(-minus), True)):
        problem = cp.Problem(cp.Minimize(cp.trace(promised) * cp.sum_squares(x)), [x == 1])
        assert explain_convexity(problem).holds == is_true
        if is_true:
            assert certify_problem(problem).relative_gap < 1e-6
        else:
            with pytest.raises(ValueError, match="psd_wrap says what is not proven"):
                certify_problem(problem)


def test_a_parameter_whose_sign_is_a_little_wrong_is_refused():
    x, p = cp.Variable(), cp.Parameter(nonneg=True, name="p")
    p.value = -1e-11  # CVXPY takes it for zero
    problem = cp.Problem(cp.Minimize(cp.abs(x)), [p * cp.square(x) <= -1, x >= 0])
    with pytest.raises(ValueError, match="parameter p says what is not proven"):
        certify_problem(problem)
    assert not explain_convexity(problem).holds


@pytest.mark.parametrize(("assets", "is_wrapped"), [(200, False), (30, True)])
def test_a_covariance_of_few_days_may_be_a_parameter_that_is_wrapped(assets, is_wrapped):
    returns, w = np.random.default_rng(0).normal(size=(50, assets)), cp.Variable(assets)
    P = cp.Parameter((assets, assets), PSD=True, value=np.cov(returns[: assets // 4].T))
    form = cp.quad_form(w, cp.psd_wrap(P) if is_wrapped else P)
    problem = cp.Problem(cp.Minimize(form), [cp.sum(w) == 1, w >= 0])
    if is_wrapped:
        assert certify_problem(problem).relative_gap < 1e-6
    else:
        with pytest.raises(ValueError, match=r"write cp.psd_wrap\(P\)"):
            certify_problem(problem)  # CVXPY looks at its value, and is in doubt


@pytest.mark.parametrize("place", PLACES)
def test_a_solved_problem_is_judged_by_cvxpys_value_where_it_is_not_enclosed(place):
    problem = hidden(place, cp.exp, 1.0)
    problem.solve(solver="CLARABEL")
    point = certify_problem(problem).point
    assert point.objective.value == pytest.approx(np.e, rel=1e-6)
    assert "not judged" in str(point)


def test_perspectives_that_cvxpy_may_scramble_are_refused():
    X, s = cp.Variable((2, 2)), cp.Variable(nonneg=True)
    norms = cp.perspective(cp.sum(cp.norm(X, axis=1)), s)
    with pytest.raises(ValueError, match="more than one second-order cone"):
        certify_problem(cp.Problem(cp.Minimize(norms), [X == 1, s == 1]))
    x = cp.Variable(bounds=[1, 2], name="x")  # its bounds would be scaled by s: infeasible
    with pytest.raises(ValueError, match="bounds of x"):
        certify_problem(cp.Problem(cp.Minimize(cp.perspective(cp.square(x), s)), [s <= 0.25]))


def test_support_functions_are_certified_where_duality_holds():
    x, y = cp.Variable(2), cp.Variable(2)
    for constraints, value in (([cp.norm(x) <= 3], 3.0), ([x >= 0, cp.sum(x) == 1], 1.0)):
        support = cp.suppfunc(x, constraints)
        certificate = certify_problem(cp.Problem(cp.Minimize(support(y)), [y == [0, 1]]))
        assert certificate.lower <= value <= certificate.upper
        assert certificate.relative_gap < 1e-6
    flat = cp.suppfunc(x, [cp.norm(x) <= x[0]])  # its value is 0, that of CVXPY's dual infinite
    with pytest.raises(ValueError, match="not proven to have points inside"):
        certify_problem(cp.Problem(cp.Minimize(flat(y)), [y == [0, 1]]))
    cone = cp.suppfunc(x, [cp.exp(x) <= 1])
    with pytest.raises(ValueError, match="exponential cones"):
        certify_problem(cp.Problem(cp.Minimize(cone(y)), [y == [0, 1]]))


def test_a_feasible_point_that_contradicts_the_conic_program_withholds_the_certificate(monkeypatch):
    exp_canon = CANON_METHODS[cp.exp]

    def doubled(expression, args, solver_context=None):
        t, constraints = exp_canon(expression, args, solver_context)
        return 2 * t, constraints

    x = cp.Variable()
    problem = cp.Problem(cp.Minimize(cp.exp(x)), [x >= 1])
    x.value = 2.0
    assert certify_problem(problem).relative_gap < 1e-6
    monkeypatch.setitem(CANON_METHODS, cp.exp, doubled)
    x.value = 1.25
    with pytest.raises(ValueError, match="not the program of this problem"):
        certify_problem(problem)


def test_a_point_that_is_not_feasible_contradicts_nothing():
    x = cp.Variable((2, 2), symmetric=True)
    problem = cp.Problem(cp.Minimize(cp.trace(x)), [x >> np.eye(2)])
    x.value = np.zeros((2, 2))
    assert not judge_point(problem).is_feasible
    assert certify_problem(problem).lower > 1.9


def test_quadratic_forms_in_constraints_have_the_matrix_that_was_given():
    x, z = cp.Variable(2), cp.Variable(3, complex=True)
    form = cp.quad_form(x, np.diag([1.0, 1e-17]))  # in the objective it is taken as it is
    with pytest.raises(ValueError, match="drops its small eigenvalues"):
        certify_problem(cp.Problem(cp.Minimize(form - x[1]), [form <= 1]))
    H = np.array([[2, 1j, 0], [-1j, 2, 0], [0, 0, 1]])
    objective = cp.Minimize(cp.real(z[0]) + cp.imag(z[1]))
    certificate = certify_problem(cp.Problem(objective, [cp.quad_form(z, H) <= 1]))
    assert certificate.lower <= -np.sqrt(2.0) <= certificate.upper
    assert "quadratic forms x'Px to within" in certificate.claim


@pytest.mark.parametrize(
    ("problem", "holds"),
    [
        (lambda x: cp.Problem(cp.Minimize(cp.sum(cp.Variable(2, boolean=True)))), False),
        (lambda x: cp.Problem(cp.Minimize(x[0]), [cp.constraints.FiniteSet(x, [1, 2])]), False),
        (lambda x: cp.Problem(cp.Minimize(cp.quad_form(x, cp.psd_wrap(-np.eye(2))))), False),
        (lambda x: cp.Problem(cp.Minimize(cp.quad_form(x, np.eye(2)))), True),
    ],
)
def test_convexity_is_not_claimed_of_what_is_assumed(problem, holds):
    assert explain_convexity(problem(cp.Variable(2))).holds == holds


@pytest.mark.parametrize("place", PLACES)
def test_convexity_is_explained_wherever_a_function_stands(place):
    assert explain_convexity(hidden(place, cp.square)).holds
    minus = cp.psd_wrap(np.array([[-1.0]]))
    problem = hidden(place, lambda x: cp.quad_form(cp.vec(x, order="F"), minus))
    assert not explain_convexity(problem).holds


def test_no_point_outside_of_the_domain_refutes_convexity():
    x = cp.Variable()
    problem = cp.Problem(cp.Minimize(cp.power(x, 3) - 0.5 * cp.power(x, 3)))
    assert explain_convexity(problem).children[0].refutation is None


@pytest.mark.parametrize(
    ("kind", "inside", "outside"),
    [("exponential", [-1.0, 0.0, 1.0], [2.0**-1200, 0.0, 1.0]), ("power", [1, 0, 0], [1, 0, 1])],
)
def test_a_rational_below_all_doubles_is_no_zero(kind, inside, outside):
    from fractions import Fraction

    exponents = (0.5,) if kind == "power" else ()
    cones = ConeProduct([Cone(kind, 3, exponents)])
    tiny = Fraction(1, 2**1200)
    assert not is_outside(cones, [Fraction(v) for v in inside], dual=False)
    last = [Fraction(1), Fraction(0), tiny] if kind == "power" else [tiny, Fraction(0), Fraction(1)]
    assert is_outside(cones, last, dual=False)


@pytest.mark.parametrize("kind", ["second_order", "psd", "exponential", "power"])
def test_boxes_of_subnormal_numbers_are_proven_only_where_they_are_inside(kind):
    from fractions import Fraction

    rng, cone = np.random.default_rng(0), Cone(kind, 3, (0.3,) if kind == "power" else ())
    cones = ConeProduct([cone])
    for _ in range(300):
        center = np.ldexp(rng.integers(-40, 41, 3).astype(float), -1074)
        if cones.first_outside(center, np.zeros(3)):
            continue
        a, b, c = (Fraction(v) for v in center)
        assert {
            "second_order": a >= 0 and a * a >= b * b + c * c,
            "psd": a >= 0 and c >= 0 and a * c >= b * b,
            "exponential": c >= 0 and b >= 0,
            "power": a >= 0 and b >= 0 and (c == 0 or abs(c) <= max(a, b)),
        }[kind]


def test_threads_share_a_problem_and_check_files(tmp_path):
    """And leave its values, the filters of warnings and the precision of others as they were."""
    x, path = cp.Variable(3, name="x"), tmp_path / "certificate.json"
    problem = cp.Problem(cp.Minimize(cp.sum_largest(x, 1.5)), [x >= 1, x <= 9])
    problem.solve(solver="CLARABEL")
    before, filters, precision = x.value.copy(), list(warnings.filters), flint.ctx.prec
    path.write_text(certify_problem(problem).to_json())
    found, verdicts = [], []

    def certified():
        for _ in range(5):
            found.append(certify_problem(problem))
            verdicts.append(check_certificate(path).valid)

    threads = [threading.Thread(target=certified) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(x.value, before)
    assert len(found) == len(verdicts) == 10
    assert all(c.point is not None and c.relative_gap < 1e-6 for c in found)
    assert all(verdicts)
    assert warnings.filters == filters
    assert flint.ctx.prec == precision
    assert json.loads(path.read_text())["claim"]["lower"] == found[0].lower.hex()


X = cp.Variable(name="x")


@pytest.mark.parametrize(
    ("problem", "bounds", "kind", "words"),
    [
        ("hello", None, TypeError, "must be a cvxpy.Problem"),
        (cp.Problem(cp.Minimize(X), [X >= 1]), {"z": 1}, TypeError, "keys must be variables"),
        (cp.Problem(cp.Minimize(X), [X >= 1]), {X: [1, 2]}, ValueError, "has the shape"),
        (cp.Problem(cp.Minimize(X), [X >= 1]), [X], TypeError, "bounds must be such as"),
        (cp.Problem(cp.Minimize(X + np.inf), [X >= 1]), None, ValueError, "infinity"),
        (cp.Problem(cp.Minimize(X + np.nan), [X >= 1]), None, ValueError, "NaN"),
        (
            cp.Problem(cp.Minimize(1e300 * (1e300 * X)), [X >= 1]),
            None,
            ValueError,
            "largest double",
        ),
    ],
)
def test_bad_input_is_answered_in_words(problem, bounds, kind, words):
    with pytest.raises(kind, match=words):
        certify_problem(problem, bounds=bounds)


def test_what_cvxpy_cannot_compile_is_refused_in_words():
    s, x = cp.Variable(nonneg=True), cp.Variable(2, nonneg=True)
    inner = cp.geo_mean(x, [0.5, 0.5], approx=False)  # CVXPY raises a bare NotImplementedError
    with pytest.raises(ValueError, match="does not compile the problem"):
        certify_problem(cp.Problem(cp.Maximize(cp.perspective(inner, s)), [x <= 1, s == 1]))


def test_a_maximum_is_no_loggamma():
    certificate = certify_problem(cp.Problem(cp.Minimize(cp.maximum(X, 2.18382)), [X >= 1]))
    assert certificate.lower <= 2.18382 <= certificate.upper


def test_a_constant_objective_has_the_constant_as_both_bounds():
    certificate = certify_problem(cp.Problem(cp.Minimize(5), [cp.exp(X) <= 1]))
    assert (certificate.lower, certificate.upper) == (5.0, 5.0)


def test_values_beyond_doubles_are_not_called_enclosed():
    x = cp.Variable()
    x.value = 800.0
    point = judge_point(cp.Problem(cp.Minimize(cp.exp(x)), [x >= 1]))
    assert point.objective.atom == "a number beyond double precision"
    assert point.is_feasible


def test_crossed_bounds_are_no_certificate_within_bounds():
    x = cp.Variable()
    certificate = certify_problem(cp.Problem(cp.Minimize(-cp.log(x))), bounds={x: 2.0})
    assert certificate.lower <= -np.log(2.0) <= certificate.upper
    assert certificate.relative_gap < 1e-6
    content = json.loads(certificate.to_json())
    assert content["variable_bounds"].count(None) == len(content["variable_bounds"]) - 1


@pytest.mark.parametrize("radius", [0, 1e-30, 1e-12, 1.0])
def test_bounds_of_the_checker_are_beyond_all_of_a_ball(radius):
    for middle in (1.0, -1.0 / 3.0, 1e300):
        ball = flint.arb(middle, radius)
        assert flint.arb(checker._beyond(ball, 1)) >= ball
        assert flint.arb(checker._beyond(ball, -1)) <= ball
