"""Points well inside the cones, near the optimum: Newton's method on the dual barrier problem.

A solver's answer lies on the boundary of the cones, nearer than it meets its equations. The point

    minimize  b'y + mu F(y)   subject to  A'y + c = 0,    F a barrier of K*,

lies inside of K*, and its multiplier x has b - Ax inside of K; their values are apart by mu times
the degree of F. Since F is logarithmically homogeneous, its Hessian H has H y = -grad F(y); so with
W = H^-1, a Newton step leads to

    y + dy = 2y - W (b - Ax) / mu   where  A'(y + dy) + c = 0,

that is A'WA x = A'Wb - mu (2A'y + c). In the zero cone y has no barrier, and Ax = b.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .arithmetic import Array
from .cones import ConeProduct, Nonnegative
from .program import ConicProgram
from .start import Start
from .steps import Steps

LAST = 1e-7
"""The gap, relative to the value, at which mu is not lowered: a tenth of what is aimed at."""

FALL = 0.25
"""By how much mu falls from one center to the next: some four steps of Newton's method."""

TRIES = ((1e-12, 12), (1e-6, 25))
"""How far, relatively, the start is moved into the cones, and Newton steps to a center, at most.

The second is beyond the errors of its equations; where rounding decides, there are no more steps.
"""

NEAR_CENTER = 0.5
"""The square of a Newton step's length in the metric: below 1 it ends inside the cones."""

LEAST_STEP = 1e-4
"""Shorter steps lead nowhere: there is no center."""


def centered(program: ConicProgram, start: Start, steps: Steps) -> Iterator[Start]:
    """Points inside the cones from an approximate one, nearer and nearer to the optimum."""
    cones = ConeProduct(program.cones)
    value = program.value(start.x) + program.sign * program.offset
    last = LAST * max(1.0, abs(value)) / cones.degree
    for depth, most in TRIES:
        y, s = (
            cones.pushed(v, depth * max(1.0, float(np.abs(v).max(initial=0.0))), dual)
            for v, dual in ((start.y, True), (start.s, False))
        )
        y[cones.zero], x, count = 0.0, start.x, 0
        mu = max(last, float(y[cones.proper] @ s[cones.proper]) / cones.degree)
        for group in cones.groups:  # where both are small, y grows
            products = np.einsum("ij,ij->i", y[group.rows], s[group.rows])[:, None]
            y[group.rows] *= np.sqrt(np.maximum(1.0, mu * group.degree / products))
        while count < most and not steps.is_over:
            count += 1
            steps.begin(f"centering for a gap of {mu * cones.degree:.1g}")
            step = _newton_step(program, cones, x, y, mu)
            if step is None:
                break
            y, x, s, multipliers, is_near = step
            if is_near:
                whole = y.copy()
                whole[cones.zero] = multipliers / mu
                yield Start(x, s, whole, "centered", start.solver)
                if mu <= last:
                    break
                mu, count = max(FALL * mu, last), 0


@np.errstate(all="ignore")  # of an infeasible problem the points grow until they overflow
def _newton_step(program: ConicProgram, cones: ConeProduct, x: Array, y: Array, mu: float) -> Any:
    """The point y after a step, x, its slack, mu times the rest of y, and whether y was near."""
    A, b, P = program.A, program.b, program.P
    solver = cones.metric(y, dual=True).solver(A, cones.zero, None if P is None else mu * P)
    if solver is None:
        return None
    slope = 2.0 * (A.T @ y) + program.c + (0.0 if P is None else P @ x)
    change, product = solver(-mu * slope, b - A @ x)
    x, multipliers = x + change, product[cones.zero]
    s = b - A @ x
    s[cones.zero] = product[cones.zero] = 0.0
    for group in cones.groups:
        if isinstance(group, Nonnegative):  # where it is small, more accurate than b - Ax
            s[group.rows] = -product[group.rows] / np.square(y[group.rows])
    move = y + product / mu
    decrement = cones.degree - 2.0 * float(y @ s) / mu - float(s @ product) / mu / mu
    step = _largest_step(cones, y, move) if np.isfinite(decrement) else None
    if step is None:
        return None
    return y + step * move, x, s, multipliers, step == 1.0 and decrement < NEAR_CENTER


def _largest_step(cones: ConeProduct, y: Array, move: Array) -> float | None:
    """The whole step, or most of the way to the boundary of K*; None for a step of nothing."""
    step = 1.0
    while not cones.holds(y + step * move, dual=True):
        step *= 0.7
        if step < LEAST_STEP:
            return None
    return step if step == 1.0 else 0.9 * step
