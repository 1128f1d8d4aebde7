"""Evidence: instances of known optimum are what they say, and a false claim would be seen."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from conic_stress import (
    FAMILIES,
    INFINITY,
    PAIRS,
    as_claimed,
    drafted,
    false_claims,
    instance,
    judged,
    judged_answer,
    row_kinds,
)
from flint import ctx, fmpq

from seraph_cvx.proof.checker import Cone


@pytest.mark.parametrize("kind", PAIRS)
def test_pairs_are_complementary_and_in_their_cones(kind):
    for seed in range(40):
        assert_complementary(kind, seed)


def assert_complementary(kind, seed):
    draft = drafted(np.random.default_rng(seed), [kind])
    assert draft.s @ draft.y == 0
    assert set(row_kinds(draft)) == {kind}
    ((_, size, rows),) = draft.cones
    exponents = [fmpq(*a.as_integer_ratio()) for a in (size, 1 - size)] if kind == "power" else ()
    diagonal = dict.fromkeys(range(size), 1) if kind == "psd" else {}
    blocks = [range(rows)] if kind not in ("zero", "nonnegative") else [[i] for i in range(rows)]
    for block in blocks:
        cone = Cone(kind, block, diagonal, exponents)
        s, y = ([fmpq(int(v)) for v in vector] for vector in (draft.s, draft.y))
        assert kind == "zero" or inside(cone, s, dual=False)
        assert inside(cone, y, dual=True)


def inside(cone, point, dual):
    """In the cone; of points on the boundary of a power cone, in a cone that is a little wider."""
    if cone.kind != "power":
        return cone.contains(point, dual)
    with ctx.workprec(200):
        return cone.contains([*point[:-1], point[-1] * (1 - fmpq(1, 10**30))], dual)


LOOSE = ("redundant rows", "at the edges of doubles", "faces")
"""Families whose first instance is hard."""


@pytest.mark.parametrize(
    "seed", [1, 2, *(pytest.param(k, marks=pytest.mark.slow) for k in range(3, 13))]
)
@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_false_is_claimed(family, seed):
    found = judged(family, seed)
    assert not found.get("wrong")
    assert not found.get("tampered")
    assert found.get("checked", True)
    lower, upper, *settled = found.get("claimed", (0.0, 0.0))
    gap = (upper - lower) / max(1.0, abs(lower), abs(upper))
    assert gap <= 1e-6 or any(settled) or seed > 1 or family in LOOSE


@pytest.mark.parametrize("family", FAMILIES)
def test_a_false_claim_would_be_seen(family):
    made = instance(family, 1)
    if abs(made.low) < INFINITY:
        low, high = float(made.low), float(made.high)
        beyond = high + 1e-12 * max(1.0, abs(high)), low - 1e-12 * max(1.0, abs(low))
        assert false_claims(made, beyond[0], math.inf, False, False) == ["lower"]
        assert false_claims(made, -math.inf, beyond[1], False, False) == ["upper"]
        assert made.contradicts or false_claims(made, math.inf, math.inf, True, False)
        assert false_claims(made, -math.inf, -math.inf, False, True)
        assert not false_claims(made, beyond[1], beyond[0], False, False)
    else:
        side = {"lower": (0.0, math.inf), "upper": (-math.inf, 0.0)}
        wrong = "upper" if made.low > 0 else "lower"
        assert false_claims(made, *side[wrong], False, False) == [wrong]


def test_a_claim_of_a_changed_form_is_judged_by_the_optimum_of_that_form():
    """By half of what is added to the diagonal times |x|^2, at most; twice that is allowed."""
    made = instance("larger, sparse, quadratic", 21)
    point = SimpleNamespace(primal=SimpleNamespace(x=[Fraction(3)] * 44))
    plain = SimpleNamespace(claim="the optimal value lies in [1, 2]", evidence=point)
    assert as_claimed(made, plain) is made
    changed = SimpleNamespace(claim="up to 1e-11 added to the diagonal of P", evidence=point)
    judged = as_claimed(made, changed)
    assert judged.high - made.high == made.low - judged.low == Fraction(1e-11 * 44 * 9)
    assert judged_answer(made, np.random.default_rng([21, 3])) == []
