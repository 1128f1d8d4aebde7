"""Evidence: the pictures of chapter 10 show what it claims, at every position of their sliders."""

from __future__ import annotations

import math
from functools import cache
from importlib import import_module

import numpy as np
import pytest
from course import moving_figures
from scipy.optimize import brentq

pytestmark = [pytest.mark.slow, pytest.mark.once]

REPAIR = "Steps of SCS:"
DIGITS = "Problem number:"
FAILURES = "Failure number:"
pytest.importorskip("marimo", reason="marimo is not installed: the extra `lecture` brings it")
live, failures = import_module("live"), import_module("failures")


def entropy_of_a_die(mean):
    """Its largest entropy, by another way: the weights are powers of one number."""
    faces = np.arange(1, 7)

    def weights(slope):
        found = np.exp(slope * (faces - mean))
        return found / found.sum()

    best = weights(brentq(lambda slope: weights(slope) @ faces - mean, -5, 5, xtol=1e-15))
    return float(-best @ np.log(best))


@cache
def solved(code, solver, options=()):
    """The status of a solver, its value, and its worst violation as CVXPY and NumPy measure it."""
    problem = live.read_problem(code)
    try:
        problem.solve(solver=solver, **dict(options))
    except live.SolverError:
        return "no answer", None, None
    if not problem.status.startswith("optimal"):
        return problem.status, None, None
    off = [float(np.max(constraint.violation())) for constraint in problem.constraints]
    for variable in problem.variables():
        if variable.attributes["nonneg"]:
            off.append(float(np.max(-variable.value)))
        if variable.attributes["PSD"]:
            off.append(float(-np.linalg.eigvalsh(variable.value)[0]))
    matrices = [each.args[0].value for each in problem.constraints if type(each) is live.cp.PSD]
    off += [float(-np.linalg.eigvalsh(matrix)[0]) for matrix in matrices]
    return problem.status, float(problem.value), max(off, default=0.0)


def true_digits(value, violation, truth):
    """The digits of an answer, by what is known on paper; rounding ends at twelve."""
    error = max(abs(value - truth) / max(1.0, abs(value)), violation)
    return min(12.0, max(0.0, -math.log10(max(error, 1e-300))))


def bars(figure):
    """By the name of each solver, the ends of its green, gray and orange bar; None if silent."""
    ax = figure.axes[0]
    names = [label.get_text() for label in ax.get_yticklabels()]
    found = {name: [] for name in names}
    for patch in ax.patches:
        row = round(patch.get_y() + patch.get_height() / 2)
        found[names[row]].append((patch.get_x(), patch.get_x() + patch.get_width()))
    return {name: ends or None for name, ends in found.items()}


def check_bars(figure, example, truth):
    """What is green is right, what is orange is wrong, and they leave nothing out."""
    for solver, ends in bars(figure).items():
        status, value, violation = solved(example.code, solver)
        if ends is None:
            assert status == "no answer", (example.name, solver)
            continue
        (start, proved), (gray, refuted), (orange, end) = ends
        assert (start, gray, end) == (0.0, proved, 16.0)
        assert orange == pytest.approx(refuted)
        if value is not None:
            true = true_digits(value, violation, truth)
            assert min(proved, 12.0) <= true + 0.01, (example.name, solver)
            assert refuted >= true - 0.01, (example.name, solver)
        elif (status, truth) in (("infeasible", math.inf), ("unbounded", -math.inf)):
            assert refuted == 16.0
        else:
            assert proved == 0.0


def check_repaired_multipliers_are_feasible_and_never_prove_too_much(figures):
    for steps, (plane, errors) in figures[REPAIR]:
        edge, way, point, kept = plane.axes[0].lines
        assert np.allclose(edge.get_ydata(), 1 - 2 * np.asarray(edge.get_xdata()) ** 2)
        (x, y), (a, b) = ((float(d[0]) for d in line.get_data()) for line in (point, kept))
        assert np.allclose(way.get_xydata(), [[0, 0], [a, b]])
        assert min(1 + b, 1 - b - 2 * a**2) >= -1e-15
        is_feasible = point.get_color() == live.GREEN
        assert min(1 + y, 1 - y - 2 * x**2) >= -1e-15 if is_feasible else 1 - y - 2 * x**2 <= 1e-15
        assert (abs(x - a) + abs(y - b) == 0) == is_feasible
        said, proved, *discs, here = errors.axes[0].lines
        at = list(said.get_xdata()).index(steps)
        assert here.get_ydata()[0] == proved.get_ydata()[at]
        assert np.isclose(1.5 - 2 * a - b, proved.get_ydata()[at], atol=1e-14)
        assert np.isclose(abs(1.5 - 2 * x - y), said.get_ydata()[at], atol=1e-14)
        orange = {float(disc.get_xdata()[0]) for disc in discs}
        if abs(2 * x + y - 1.5) > 1e-14:
            assert (steps in orange) == (2 * x + y > 1.5)
        assert np.all(proved.get_ydata() >= 1e-16)
    assert min(proved.get_ydata()) < 1e-6


def check_digits_are_those_that_a_solver_has(figures):
    tolerances = {
        "SCS": lambda eps: (("eps", eps),),
        "CLARABEL": lambda eps: tuple((f"tol_{k}", eps) for k in ("gap_abs", "gap_rel", "feas")),
    }
    for number, (left, right) in figures[DIGITS]:
        example = failures.WELL_POSED[int(number) - 1]
        truth = entropy_of_a_die(4.5) if example.truth is None else example.truth
        assert left.axes[0].get_title() == example.name
        check_bars(left, example, truth)
        diagonal, *curves = right.axes[0].lines
        assert np.array_equal(diagonal.get_xdata(), diagonal.get_ydata())
        assert [curve.get_label() for curve in curves] == list(tolerances)
        for curve in curves:
            for claimed, proved in curve.get_xydata():
                options = tolerances[curve.get_label()](10.0**-claimed)
                _, value, violation = solved(example.code, curve.get_label(), options)
                assert min(proved, 12.0) <= true_digits(value, violation, truth) + 0.01


def check_failures_are_judged_rightly_and_a_violated_cone_does_not_hold_its_point(figures):
    drawn = 0
    for number, (left, *cones) in figures[FAILURES]:
        example = failures.GALLERY[int(number) - 1]
        assert left.axes[0].get_title() == example.name
        check_bars(left, example, example.truth)
        for cone in cones:
            edge, way, point = cone.axes[0].lines
            title = cone.axes[0].get_title()
            at_zero = float(np.interp(0.0, *edge.get_data()))
            outside = at_zero - float(point.get_ydata()[0])
            assert point.get_xdata()[0] == 0
            assert np.allclose(way.get_ydata(), [at_zero, point.get_ydata()[0]])
            amount = float(title.rpartition(" ")[2].replace("−", "-"))
            seen = abs(outside) if title.startswith("Equation") else outside
            assert amount * 0.99 <= seen <= amount * 1.2, title
            drawn += 1
    assert drawn >= 3


def test_chapter_10_what_is_green_is_right_and_what_is_orange_is_wrong():
    """One test, so that one process runs the chapter."""
    figures = moving_figures("chapter10")
    assert set(figures) == {REPAIR, DIGITS, FAILURES}
    check_repaired_multipliers_are_feasible_and_never_prove_too_much(figures)
    check_digits_are_those_that_a_solver_has(figures)
    check_failures_are_judged_rightly_and_a_violated_cone_does_not_hold_its_point(figures)
