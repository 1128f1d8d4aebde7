"""Evidence: the checker accepts hand-made certificates of every cone, and no tampered ones."""

from __future__ import annotations

import ast
import json
import math
import sys
import time
from copy import deepcopy
from fractions import Fraction
from functools import partial
from pathlib import Path

import flint
import numpy as np
import pytest
from conic_stress import instance
from hypothesis import given
from hypothesis import strategies as st

from seraph_cvx.proof import certify_problem, checker, checker_arithmetic
from seraph_cvx.proof.checker import check_certificate

E, ROOT8, QUARTER = math.e, math.sqrt(8.0), 4.0 / 27**0.25


def two_doubles(value):
    return float(value), float(Fraction(value) - Fraction(float(value)))


def certificate(A, b, c, cones, **others):
    """A certificate file's content, from plain numbers; pairs are double and remainder."""

    def pairs(vector):
        return [[part.hex() for part in two_doubles(value)] for value in vector]

    def sparse(matrix):
        entries = [(i, j, v) for i, row in enumerate(matrix) for j, v in enumerate(row) if v]
        row, column, value = map(list, zip(*entries, strict=True)) if entries else ([], [], [])
        return {"row": row, "column": column, "value": [float(v).hex() for v in value]}

    def numbers(vector):
        return [None if value is None else float(value).hex() for value in vector]

    def point(name, letter):
        return {letter: pairs(others[name])} if name in others else None

    dual = point("y", "y")
    if dual is not None:
        dual["h"] = pairs(others["h"]) if "h" in others else None
        dual["zero_rows"] = others.get("zero_rows", [])
    lower, upper, tolerance = numbers(others.get(k) for k in ("lower", "upper", "tolerance"))
    return {
        "format": "seraph_cvx conic certificate",
        "version": 1,
        "program": {
            "variables": len(c),
            "rows": len(b),
            "A": sparse(A),
            "b": numbers(b),
            "c": numbers(c),
            "P": sparse(others["P"]) if "P" in others else None,
            "cones": cones,
            "offset": float(others.get("offset", 0.0)).hex(),
            "maximize": others.get("maximize", False),
            "scale": 1,
        },
        "tolerance": tolerance,
        "claim": {
            "lower": lower,
            "upper": upper,
            "infeasible": others.get("infeasible", False),
            "unbounded": others.get("unbounded", False),
        },
        "dual": dual,
        "primal": point("x", "x"),
        "ray_dual": point("ray_y", "y"),
        "ray_primal": point("ray_x", "x"),
        "variable_bounds": numbers(others["bounds"]) if "bounds" in others else None,
    }


def at(optimum, *program, by=0.0, **points):
    """A certificate that claims this optimum, or bounds a little beside it."""
    margin = by * max(1.0, abs(optimum))
    return certificate(*program, lower=optimum - margin, upper=optimum + margin, **points)


near = partial(at, by=1e-11)
SHRUNK = 1 - 1e-12
PSD = [[-1], [0], [-1]], [-2, -1, -2], [1], [["psd", 2]]

DIAGONAL_45 = [[-(i == j) for j in range(45)] for i in range(45)]

BOUNDED = {
    # points that are exact
    "nonnegative": at(1, [[-1]], [-1], [1], [["nonnegative", 1]], y=[1], x=[1]),
    "second_order on its boundary": at(
        3, [[-1, 0], [0, 0], [0, -1]], [0, 3, 0], [1, 0], [["second_order", 2], ["zero", 1]],
        y=[1, -1, 0], x=[3, 0],
    ),
    "psd of rank one": at(3, *PSD, y=[0.5, 1, 0.5], x=[3]),
    "exponential with u = 0": at(
        1, [[0], [0], [-1]], [0, 1, 0], [1], [["exponential", 3]], y=[-1, -1, 1], x=[1]
    ),
    "maximize with an offset": at(
        9, [[1]], [1], [-2], [["nonnegative", 1]], y=[2], x=[1], offset=7.0, maximize=True
    ),
    "quadratic": at(-0.5, [], [], [-1], [], P=[[1]], y=[], h=[1], x=[1]),
    "variable bounds": at(-3, [], [], [1], [], y=[0, 1], x=[-3], bounds=[3.0]),
    "second-order cones on their boundary at a point that is no double": at(
        0,
        [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, -1, 6],
         [0, 0, -1, 0, -1], [0, 0, -1, 0, 1], [0, 0, 0, 0, 0],
         [-1, 0, 0, 0, 0], [-1, 0, 0, 0, 0], [0, 0, 0, -2, 0],
         [0, -1, 0, 0, 0], [0, -1, 0, 0, 0], [0, 0, -2, 0, 0]],
        [4, 9, 0, 0, 0, 2, 1, -1, 0, 1, -1, 0], 5 * [0],
        [["nonnegative", 3], *3 * [["second_order", 3]]],
        y=12 * [0], zero_rows=list(range(12)), x=[4, 9, 3, 2, Fraction(1, 3)],
    ),
    # a tolerance, of each cone
    "tolerance": at(
        0.75, [[-1]], [-1], [1], [["nonnegative", 1]], y=[1], x=[0.75], tolerance=0.25
    ),
    "tolerance of an equality": at(
        0.75, [[1]], [1], [1], [["zero", 1]], y=[-1], x=[0.75], tolerance=0.25
    ),
    "tolerance of a second-order cone": at(
        0.75, [[-1], [0]], [0, 1], [1], [["second_order", 2]], y=[1, -1], x=[0.75], tolerance=0.25
    ),
    "tolerance of a PSD cone": at(2.75, *PSD, y=[0.5, 1, 0.5], x=[2.75], tolerance=0.25),
    "tolerance of an exponential cone": at(
        0.75, [[0], [0], [-1]], [0.25, 0.75, 0], [1], [["exponential", 3]], y=[-1, -1, 1],
        x=[0.75], tolerance=0.25,
    ),
    "tolerance of a power cone": near(
        1.5, [[-1, 0], [0, -1], [0, 0]], [0, 0, 1], [1, 1], [["power", (0.5).hex()]],
        y=[1, 1, -2 * SHRUNK], x=[0.75, 0.75], tolerance=0.25,
    ),
    # points that must be moved, or an optimum that is not a double
    "redundant equalities and a column twice": near(
        1 / 3, [[3, 3, 3], [6, 6, 6], [9, 9, 9], [-1, -1, 0], [0, 0, -1]], [1, 2, 3, 0, 0],
        [1, 1, 2], [["zero", 3], ["nonnegative", 2]],
        y=[-0.1, -0.05, -0.05, 0, 1.0001], zero_rows=[3], x=[0.2, 0.1333, 0],
    ),
    "linear program on a face that is no double": near(
        1 / 3, [[3, 0], [1, -1], [-1, 1], [0, -3]], [1, 0, 0, -1], [1, 0],
        [["zero", 1], ["nonnegative", 3]], y=[-1 / 3, 0, 0, 0], zero_rows=[1, 2, 3],
        x=[Fraction(1, 3)] * 2,
    ),
    "more equations than are solved exactly": near(
        15, [[3 * (i % 45 == j) * (-1) ** (i // 45) for j in range(45)] for i in range(90)],
        45 * [1] + 45 * [-1], 45 * [1], [["zero", 45], ["nonnegative", 45]],
        y=45 * [-1 / 3] + 45 * [0], zero_rows=list(range(45, 90)), x=45 * [Fraction(1, 3)],
    ),
    "many equations, the last one implied by the others": near(
        15, [[3 * (i == j or i == 45) for j in range(45)] for i in range(46)] + DIAGONAL_45,
        45 * [1] + [45] + 45 * [0], 45 * [1], [["zero", 46], ["nonnegative", 45]],
        y=45 * [-0.3] + [-1 / 30] + 45 * [0], zero_rows=list(range(46, 91)),
        x=45 * [1 / 3],
    ),
    "psd of order 45": near(
        45, [[-(i == j)] for j in range(45) for i in range(j, 45)], 1035 * [-1], [1],
        [["psd", 45]],
        y=[(1 if i == j else 2 - 1e-11) / 45 for j in range(45) for i in range(j, 45)],
        x=[45 + 1e-11],
    ),
    "second_order": near(
        5, [[-1], [0], [0]], [0, 3, 4], [1], [["second_order", 3]],
        y=[1, -0.6 * SHRUNK, -0.8 * SHRUNK], x=[5],
    ),
    "psd": near(
        1 / 3, [[-3], [0], [-3]], [-1, 0, 0], [1], [["psd", 2]],
        y=[1 / 3, 0, 1e-20], x=[1 / 3 + 1e-13],
    ),
    "exponential": near(
        E, [[0], [0], [-1]], [1, 1, 0], [1], [["exponential", 3]],
        y=[-E * SHRUNK, 0, 1], x=[E / SHRUNK],
    ),
    "exponential, dual face": near(
        -1 / 3, [[1, 0], [0, 0], [0, -3]], [0, 0, 1], [0, 1], [["exponential", 3]],
        y=[0, 0, 0.3], zero_rows=[0, 1], x=[0, -1 / 3 + 1e-13],
    ),
    "power": near(
        QUARTER, [[-1, 0], [0, -1], [0, 0]], [0, 0, 1], [1, 1], [["power", (0.25).hex()]],
        y=[1, 1, -QUARTER * SHRUNK], x=[QUARTER / 4 / SHRUNK, 3 * QUARTER / 4 / SHRUNK],
    ),
    "power_nd": near(
        ROOT8, [[-1, 0, 0], [0, -1, 0], [0, 0, -1], [0, 0, 0]], [0, 0, 0, 1], [1, 1, 1],
        [["power_nd", [(0.5).hex(), (0.25).hex(), (0.25).hex()]]],
        y=[1, 1, 1, -ROOT8 * SHRUNK], x=[a * ROOT8 / SHRUNK for a in (0.5, 0.25, 0.25)],
    ),
    "quadratic that is singular": near(
        -1 / 3, [], [], [-2, -2], [], P=[[6, 6], [6, 6]], y=[], h=[0.3, 0.0], x=[1 / 3, 0]
    ),
    "quadratic whose exact bound needs exact multipliers": certificate(
        [], [], [-1, -1, -2], [], P=[[3, 0, 0], [0, 3, 0], [0, 0, 3]], y=[],
        h=[1 / 3, 1 / 3, 2 / 3], x=[1 / 3, 1 / 3, 2 / 3], lower=-1, upper=-1 + 1e-11,
    ),
}  # fmt: skip
"""Certificates of each cone and each kind."""

INFEASIBLE = {
    "exponential, with a ray on the face u = 0": certificate(
        [[1, 0], [0, 0], [0, 3], [0, -1]], [0, 0, -1, 0], [0, 0],
        [["exponential", 3], ["nonnegative", 1]], ray_y=[0, 0, 0.3, 0.8], infeasible=True
    ),
    "nonnegative": certificate(
        [[-1], [1]], [-1, 0], [1], [["nonnegative", 2]], ray_y=[1, 1], infeasible=True
    ),
    "inconsistent equalities": certificate(
        [[3, 3], [1, 1]], [1, 1], [0, 0], [["zero", 2]], ray_y=[1 / 3, -1], infeasible=True
    ),
    "second_order": certificate(
        [[0], [-1]], [-1, 0], [0], [["second_order", 2]], ray_y=[1, 0], infeasible=True
    ),
}  # fmt: skip

UNBOUNDED = {
    "nonnegative": certificate(
        [[-1]], [0], [-1], [["nonnegative", 1]], x=[0], ray_x=[1], unbounded=True
    ),
    "equality with thirds": certificate(
        [[3, -1]], [0], [-1, 0], [["zero", 1]], x=[0, 0], ray_x=[1 / 3, 1], unbounded=True
    ),
    "flat direction of P": certificate(
        [], [], [0, -1], [], P=[[1, 0], [0, 0]], x=[1, 0], ray_x=[0, 1], unbounded=True
    ),
}

ALL = (
    BOUNDED
    | {f"infeasible: {k}": v for k, v in INFEASIBLE.items()}
    | {f"unbounded: {k}": v for k, v in UNBOUNDED.items()}
)


@pytest.fixture
def check(tmp_path):
    def check(content):
        path = tmp_path / "certificate.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return check_certificate(path)

    return check


@pytest.mark.parametrize("name", ALL)
def test_a_true_certificate_is_accepted(check, name):
    found, claim = check(ALL[name]), ALL[name]["claim"]
    assert found.reasons == ()
    assert found.valid
    if claim["lower"]:
        assert float.fromhex(claim["lower"]) <= found.lower <= found.upper
        assert found.upper <= float.fromhex(claim["upper"])


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize(("side", "sign"), [("lower", 1), ("upper", -1)])
def test_a_bound_moved_by_a_billionth_is_rejected(check, name, side, sign):
    content = deepcopy(BOUNDED[name])
    value = float.fromhex(content["claim"][side])
    content["claim"][side] = (value + sign * 1e-9 * max(1.0, abs(value))).hex()
    found = check(content)
    assert not found.valid
    assert side in found.reasons[0]


ENDURE = [
    "tolerance of an equality",
    "more equations than are solved exactly",
    "many equations, the last one implied by the others",
    "quadratic whose exact bound needs exact multipliers",
    "second-order cones on their boundary at a point that is no double",
    "linear program on a face that is no double",
    "redundant equalities and a column twice",
    "quadratic",
    "quadratic that is singular",
    "infeasible: inconsistent equalities",
]
"""Their equations alone determine the point: it is moved back to where it was."""


@pytest.mark.parametrize("name", ALL)
def test_a_point_of_the_wrong_sign_is_rejected(check, name):
    content = deepcopy(ALL[name])
    for part, letter in (("dual", "y"), ("ray_dual", "y"), ("ray_primal", "x"), ("dual", "h")):
        if content[part] and content[part].get(letter):
            entries = content[part][letter]
            content[part][letter] = [[(-float.fromhex(hi)).hex(), lo] for hi, lo in entries]
            content[part]["zero_rows"] = []
    if content != ALL[name] and name not in ENDURE:
        assert not check(content).valid


IDENTITY = {"row": [0, 1], "column": [0, 1], "value": 2 * [(1.0).hex()]}
TWICE = {"row": [0, 0], "column": [0, 0], "value": 2 * [(-1.0).hex()]}
FALSE = [
    # another program, or another meaning of its numbers
    ("nonnegative", ("program", "b", 0), (-1 - 1e-9).hex()),
    ("nonnegative", ("program", "c", 0), (1 + 1e-9).hex()),
    ("nonnegative", ("program", "A", "value", 0), (-1.1).hex()),
    ("nonnegative", ("program", "offset"), (0.1).hex()),
    ("nonnegative", ("program", "scale"), 2),
    ("nonnegative", ("version",), 2),
    ("nonnegative", ("format",), "another"),
    ("nonnegative", ("dual", "y"), 2 * [[(1.0).hex(), (0.0).hex()]]),
    ("nonnegative", ("primal", "x"), 2 * [[(1.0).hex(), (0.0).hex()]]),
    ("nonnegative", ("program", "A", "row", 0), -1),
    ("nonnegative", ("program", "A", "column", 0), -1),
    ("nonnegative", ("program", "A"), TWICE),
    ("maximize with an offset", ("program", "maximize"), False),
    ("psd of rank one", ("program", "cones"), [["nonnegative", 3]]),
    # each cone: a bound that is a billionth away, a point outside, another cone
    ("second_order on its boundary", ("program", "b", 1), (3 + 1e-9).hex()),
    ("second_order", ("dual", "y", 1), [(-0.6001).hex(), (0.0).hex()]),
    ("second_order", ("program", "cones", 0, 1), 2),
    ("psd of rank one", ("program", "b", 1), (-1 - 1e-9).hex()),
    ("psd of rank one", ("dual", "y", 1), [(1 + 1e-9).hex(), (0.0).hex()]),
    ("exponential with u = 0", ("program", "b", 0), (1e-9).hex()),
    ("exponential", ("program", "b", 1), (-1.0).hex()),
    ("exponential", ("dual", "y", 0), [(-E - 1e-9).hex(), (0.0).hex()]),
    ("exponential, dual face", ("program", "c", 0), (-1e-9).hex()),
    ("exponential, dual face", ("dual", "zero_rows"), [0, 1, 2]),
    ("power", ("program", "cones", 0, 1), (0.25 + 1e-8).hex()),
    ("power", ("program", "cones", 0, 1), (1.5).hex()),
    ("power", ("program", "b", 2), (1 + 1e-9).hex()),
    ("power", ("primal", "x", 0), [(0.0).hex(), (0.0).hex()]),
    ("power_nd", ("program", "cones", 0, 1, 0), (0.5 + 1e-9).hex()),
    # tolerances and bounds on variables
    ("tolerance", ("tolerance",), None),
    ("tolerance", ("tolerance",), (0.26).hex()),
    ("tolerance of an equality", ("tolerance",), (0.26).hex()),
    ("variable bounds", ("variable_bounds",), None),
    ("variable bounds", ("variable_bounds", 0), (3.1).hex()),
    ("variable bounds", ("variable_bounds", 0), (2.9).hex()),
    # equations and quadratic forms
    ("redundant equalities and a column twice", ("program", "b", 1), (2 + 1e-15).hex()),
    ("redundant equalities and a column twice", ("program", "c", 1), (1 + 1e-15).hex()),
    ("redundant equalities and a column twice", ("dual", "zero_rows"), [4]),
    (
        "many equations, the last one implied by the others",
        ("program", "b", 45),
        (45 + 1e-13).hex(),
    ),
    (
        "many equations, the last one implied by the others",
        ("program", "A", "value", 0),
        (4.0).hex(),
    ),
    ("psd of order 45", ("program", "b", 1), (-1 - 1e-9).hex()),
    ("psd of order 45", ("primal", "x", 0), [(45 - 1e-11).hex(), (0.0).hex()]),
    ("psd of order 45", ("dual", "y", 0), [(1 / 45 - 1e-9).hex(), (0.0).hex()]),
    ("quadratic", ("program", "P", "value", 0), (-1.0).hex()),
    ("quadratic", ("program", "P"), None),
    ("quadratic that is singular", ("program", "c", 1), (-2 + 1e-15).hex()),
    ("quadratic that is singular", ("program", "P", "value", 3), (6 - 1e-15).hex()),
    # rays
    ("infeasible: nonnegative", ("program", "b", 1), (1.0).hex()),
    ("infeasible: nonnegative", ("ray_dual", "y", 0), [(-1.0).hex(), (0.0).hex()]),
    ("infeasible: nonnegative", ("ray_dual",), None),
    ("infeasible: nonnegative", ("tolerance",), (0.5).hex()),
    ("infeasible: inconsistent equalities", ("program", "A", "value", 0), (3 + 1e-15).hex()),
    ("infeasible: second_order", ("program", "b", 0), (0.0).hex()),
    ("unbounded: nonnegative", ("program", "c", 0), (0.0).hex()),
    ("unbounded: nonnegative", ("primal",), None),
    ("unbounded: nonnegative", ("ray_primal",), None),
    ("unbounded: nonnegative", ("program", "b", 0), (-1.0).hex()),
    ("unbounded: equality with thirds", ("program", "cones", 0, 1), 2),
    ("unbounded: flat direction of P", ("program", "P"), IDENTITY),
    ("unbounded: flat direction of P", ("variable_bounds",), [None, (1.0).hex()]),
]


def changed(content, keys, value):
    content = deepcopy(content)
    place = content
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    return content


@pytest.mark.parametrize(("name", "keys", "value"), FALSE)
def test_a_tampered_certificate_is_rejected(check, name, keys, value):
    assert not check(changed(ALL[name], keys, value)).valid


NEVER = {
    "negative tolerance": certificate(
        [[-1]], [-1], [1], [["nonnegative", 1]], y=[1], x=[1.25], tolerance=-0.25,
        lower=1.25, upper=1.25,
    ),
    "negative bound on a variable": certificate([], [], [1], [], y=[0, 1], bounds=[-3.0], lower=3),
    "exponents with a sum above 1": certificate(
        [[-1, 0], [0, -1], [0, 0]], [0, 0, 1], [1, 1],
        [["power_nd", [(0.5).hex(), (0.75).hex()]]], x=[10, 10], upper=20,
    ),
    "exponents that are not normalized": certificate(
        [[0], [0], [-1]], [2.0**1000, 2.0**1000, 0], [-1],
        [["power_nd", [(0.5).hex(), (0.5 + 2.0**-42).hex()]]],
        x=[2.0**1000 * (1 + 1e-11)], upper=-(2.0**1000),
    ),
    "a ray moved off its equality": certificate(
        [[1, -(2.0**-10)]], [0], [0, -1], [["zero", 1]], P=[[1, 0], [0, 0]],
        x=[0, 0], ray_x=[2.0**-10, 1], unbounded=True,
    ),
    "bounds on variables that the primal point refutes": certificate(
        [], [], [1], [], y=[0, 1], x=[-3], bounds=[2.0], lower=-3, upper=-3
    ),
    "unknown cone": certificate([[-1]], [-1], [1], [["nonpositive", 1]], x=[1], upper=1),
    "nothing claimed": certificate([[-1]], [-1], [1], [["nonnegative", 1]], y=[1], x=[1]),
}  # fmt: skip


SHIFTED = at(
    0, [[-1, 0], [0, -1], [1, 1]], [0, 0, 2], [0, 0], [["nonnegative", 3]],
    P=[[1, 1 + 2.0**-30], [1 + 2.0**-30, 1]], y=[0, 0, 0], h=[0, 0], x=[0, 0],
    zero_rows=[0, 1, 2],
) | {
    "diagonal_shift": [(2.0**-30).hex()] * 2,
    "shift_bounds": [
        {"column": j, "rows": rows, "multipliers": len(rows) * [(1.0).hex()]}
        for j, rows in ((0, [0]), (1, [1]), (0, [2, 1]), (1, [2]))
    ],
}  # fmt: skip
SHIFTED["claim"]["lower"] = (-4 * 2.0**-30).hex()
"""P has an eigenvalue of -2^-30; x >= 0 and x_0 + x_1 <= 2 imply |x_j| <= 2."""


def test_an_indefinite_form_is_bounded_by_its_shift(check):
    found = check(SHIFTED)
    assert found.reasons == ()
    assert found.lower == -4 * 2.0**-30


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("diagonal_shift",), None),
        (("diagonal_shift", 0), (2.0**-31).hex()),
        (("diagonal_shift", 0), (2.0**-29).hex()),
        (("diagonal_shift", 0), (-(2.0**-30)).hex()),
        (("claim", "lower"), (-3.9 * 2.0**-30).hex()),
        (("shift_bounds",), []),
        (("shift_bounds", 0, "multipliers", 0), (-1.0).hex()),
        (("shift_bounds", 0, "rows", 0), 1),
        (("shift_bounds", 0, "rows", 0), -3),
        (("shift_bounds", 1, "column"), 0),
        (("shift_bounds", 2, "rows"), [2, 2]),
        (("shift_bounds", 3, "column"), 2),
        (("program", "b", 2), (4.0).hex()),
        (("program", "cones", 0, 1), 2),
    ],
)
def test_a_tampered_shift_is_rejected(check, keys, value):
    assert not check(changed(SHIFTED, keys, value)).valid


@pytest.mark.parametrize("name", NEVER)
def test_a_false_or_meaningless_certificate_is_rejected(check, name):
    assert not check(NEVER[name]).valid


HALVES = [flint.fmpq(1, 2), flint.fmpq(1, 2)]
MEMBERS = [
    ("nonnegative", [0], [-1]),
    ("second_order", [5, 3, 4], [5, 3, 5]),
    ("second_order", [0, 0, 0], [-5, 3, 4]),
    ("psd", [1, 2, 4], [1, 2, 3]),
    ("psd", [0, 0, 5], [0, 1, 5]),
    ("psd", [5, 0, 0], [5, 0, -1]),
    ("exponential", [0, 1, 1], [0, 2, 1]),
    ("exponential", [-1, 0, 0], [1, 0, 5]),
    ("exponential", [1, 1, 3], [1, 1, 2]),
    ("exponential", [-1, 1, 1], [1, -1, 5]),
    ("power", [4, 9, 5], [4, 9, 7]),
    ("power", [0, 9, 0], [0, 9, 1]),
    ("power", [1, 1, 0], [-1, 9, 0]),
    ("power", [9, 9, -8], [9, 9, -10]),
]
DUAL_MEMBERS = [
    ("nonnegative", [0], [-1]),
    ("second_order", [5, 3, 4], [5, 3, 5]),
    ("psd", [1, 4, 4], [1, 5, 4]),  # off the diagonal, halves count
    ("exponential", [0, 1, 1], [0, -1, 1]),
    ("exponential", [-3, 0, 2], [-3, 0, 1]),  # 3 <= 2e, but not e
    ("exponential", [-1, -1, 1], [1, -1, 1]),
    ("power", [1, 1, 1.5], [1, 1, 3]),  # below and above 2
]


@pytest.mark.parametrize(
    ("kind", "inside", "outside", "dual"),
    [(*row, False) for row in MEMBERS] + [(*row, True) for row in DUAL_MEMBERS],
)
@pytest.mark.parametrize("number", [flint.fmpq, flint.arb])
def test_membership_of_known_points(kind, inside, outside, dual, number):
    e = {0: 1, 2: 1} if kind == "psd" else {0: 1}
    cone = checker.Cone(kind, range(len(inside)), e, HALVES if kind == "power" else ())
    exact = [[number(*float(v).as_integer_ratio()) if number is flint.fmpq else number(v)
              for v in point] for point in (inside, outside)]  # fmt: skip
    assert cone.contains(exact[0], dual)
    assert not cone.contains(exact[1], dual)


def test_a_ball_on_the_boundary_is_not_proved_inside():
    wide = [flint.arb(v, 1e-30) for v in (1, 2, 4)]
    assert not checker.Cone("psd", range(3), {0: 1, 2: 1}, ()).contains(wide)
    thin = [flint.arb(0), flint.arb(0, 1e-30), flint.arb(5)]
    assert not checker.Cone("psd", range(3), {0: 1, 2: 1}, ()).contains(thin)


@pytest.mark.parametrize("radius", [0.0, 1e-25, 1e-11])
@pytest.mark.parametrize("n", [41, 64])
def test_a_dense_matrix_is_definite_on_one_side_of_singular(n, radius):
    G = np.random.default_rng(n).integers(-3, 4, size=(n, n - 1))
    size = 10.0 ** np.linspace(-9.0, 9.0, n)
    for shift in (1e-12, -1e-12):
        is_definite = shift > radius
        M = size * (G @ G.T + 0.0) * size[:, None]
        rows = [{j: flint.arb(v, radius * abs(v)) for j, v in enumerate(row)} for row in M.tolist()]
        for i, row in enumerate(rows):
            rows[i] = row | {i: row[i] * (1 + flint.arb(shift))}
        assert checker_arithmetic.is_psd(rows) == is_definite
        assert checker_arithmetic._is_dense_definite(dict(enumerate(rows))) == is_definite


def test_a_change_that_leaves_the_claim_true_is_accepted(check):
    keys = ("program", "cones", 0, 0)
    assert check(changed(ALL["nonnegative"], keys, "zero")).valid


@pytest.mark.parametrize("name", ["psd of rank one", "redundant equalities and a column twice"])
def test_dropped_rows_are_rejected(check, name):
    content = deepcopy(ALL[name])
    content["program"]["b"].pop()
    assert not check(content).valid
    content["program"]["rows"] -= 1
    assert not check(content).valid
    content["dual"]["y"].pop()
    assert not check(content).valid


def places(content, keys=()):
    """The way to each value of a file."""
    children = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in children:
        yield (*keys, key)
        if isinstance(value, dict | list):
            yield from places(value, (*keys, key))


HOSTILE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 10**30)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["nan", "inf", "0x1p+2000", "0x1p-1074", "-0x1p+1023", "zero", "psd"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


@given(st.data())
def test_no_hostile_value_raises(check_text, data):
    name = data.draw(st.sampled_from(sorted(ALL)))
    content = ALL[name]
    for _ in range(data.draw(st.integers(1, 3))):
        keys = data.draw(st.sampled_from(list(places(content))))
        content = changed(content, keys, data.draw(HOSTILE))
    check_text(json.dumps(content))


@given(HOSTILE | st.text())
def test_no_other_file_is_valid(check_text, content):
    text = content if isinstance(content, str) else json.dumps(content)
    assert not check_text(text).valid


@given(st.data())
def test_a_claim_stays_true_whatever_number_is_changed(check_text, data):
    """A one-variable program whose optimum is known as a formula: minimize c x with a x >= b."""
    number = st.integers(-4, 4).map(float) | st.floats(-2.0, 2.0)
    a, b, c, y, x, lower, upper = (data.draw(number) for _ in range(7))
    cones = [["nonnegative", 1]]
    content = certificate([[-a]], [-b], [c], cones, y=[y], x=[x], lower=lower, upper=upper)
    if check_text(json.dumps(content)).valid:
        a, b, c = map(Fraction, (a, b, c))
        assert c == 0 or c / a >= 0
        optimum = 0 if c == 0 else c / a * b
        assert lower <= optimum <= upper
        assert a != 0 or b <= 0


@pytest.fixture(scope="module")
def check_text(tmp_path_factory):
    path = tmp_path_factory.mktemp("certificates") / "certificate.json"

    def check_text(text):
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        return check_certificate(path)

    return check_text


@pytest.mark.parametrize("text", ["[" * 100_000, "\udcff", "NaN", '{"format": 1e999}', ""])
def test_malformed_files_are_rejected(check_text, text):
    found = check_text(text)
    assert not found.valid
    assert found.reasons[0]


def test_a_missing_file_is_rejected(tmp_path):
    assert not check_certificate(tmp_path / "none.json").valid


def test_a_huge_size_is_rejected_at_once(check):
    for keys in (("program", "rows"), ("program", "variables"), ("program", "cones", 0, 1)):
        assert not check(changed(ALL["psd of rank one"], keys, 10**15)).valid


def test_a_large_sparse_program_is_checked_in_seconds(check):
    """Chains x_0 = 1, 3 x_{i+1} = x_i: exact multipliers are fractions with large integers."""
    n, cones = 300, [["zero", 300], ["nonnegative", 300]]
    chain = [[3 * (i == j) - (i == j + 1) for j in range(n)] for i in range(n)]
    A = chain + [[-(i == j) for j in range(n)] for i in range(n)]
    b = [3] + (2 * n - 1) * [0]
    x = [Fraction(1, 3**i) for i in range(n)]
    y = [Fraction(1 - 3 ** (n - i), 2 * 3 ** (n - i)) for i in range(n)] + n * [0]
    content = certificate(A, b, n * [1], cones, y=y, x=x, lower=1.5 - 1e-9, upper=1.5)
    started = time.process_time()
    assert check(content).reasons == ()
    assert time.process_time() - started < 20
    for part, letter in (("dual", "y"), ("primal", "x")):
        content[part][letter] = [
            f"{v.numerator:x}/{v.denominator:x}" for v in (x, y)[letter == "y"]
        ]
    assert check(content).reasons == ()


@pytest.mark.parametrize(
    "text", ["1/0", "2/-1", "0x1/2", "1/2/3", "A/1", " 1/2", "1_0/1", "/", "+1/2"]
)
def test_a_fraction_has_one_spelling(check, text):
    content = deepcopy(ALL["nonnegative"])
    content["primal"]["x"] = ["1/1"]
    assert check(content).valid
    content["primal"]["x"] = [text]
    assert not check(content).valid


def test_the_precision_of_others_is_left_as_it_was(check):
    with flint.ctx.workprec(77):
        check(ALL["exponential"])
        assert flint.ctx.prec == 77


def test_the_checker_stands_alone():
    rooms = {"checker", "checker_arithmetic", "checker_cones", "m_step_checker"}
    for room in rooms:
        source = Path(checker.__file__).with_name(f"{room}.py").read_text()
        assert source.count("\n") <= 440
        nodes = list(ast.walk(ast.parse(source)))
        names = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
        names |= {a.name for node in nodes if isinstance(node, ast.Import) for a in node.names}
        assert {name.partition(".")[0] for name in names} <= {*rooms, *sys.stdlib_module_names}


def test_a_nearly_singular_dense_block_is_definite_in_balls():
    """Eliminated one row at a time, its balls grow with each; by halves they do not."""
    roots = np.random.default_rng(0).integers(-3, 4, (40, 20))
    M = roots @ roots.T
    with flint.ctx.workprec(checker.PRECISION):
        depth, radius = flint.arb(2) ** -76, flint.arb(2) ** -104
        rows = [
            {j: flint.arb(int(v), radius) + (depth if i == j else 0) for j, v in enumerate(row)}
            for i, row in enumerate(M.tolist())
        ]
        assert checker_arithmetic.is_psd(rows)


@pytest.mark.slow
def test_a_dense_block_whose_halves_are_ill_conditioned_is_proved(check):
    """With 128 bits in place of 256 the balls of its elimination by halves held zero."""
    certificate = certify_problem(instance("large semidefinite blocks", 111).problem)
    assert check(json.loads(certificate.to_json())).valid
