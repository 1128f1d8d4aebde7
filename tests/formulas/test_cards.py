"""Evidence: what notebooks show is valid, escaped and honest; every card has one sign."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from xml.etree import ElementTree

import numpy as np
import pytest

from seraph_cvx import (
    SERAPH,
    MStepObjective,
    PairSet,
    Status,
    alternate,
    certify,
    explain_convexity,
    solve_m_step,
    state_m_step,
)
from seraph_cvx.display.notebook import Tone, card
from seraph_cvx.display.result_table import ResultTable

pytestmark = pytest.mark.once

POINTS = np.array([[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0], [0.2, 5.0], [1.9, 4.0]])
PAIRS = PairSet.from_labels(POINTS, [0, 0, 1, 1, -1, -1])
OBJECTIVE = MStepObjective(PAIRS)
NASTY = '<script>alert("x")</script> & </div>'
X = np.random.default_rng(0).normal(size=(14, 3)) * [2.0, 1.0, 0.5]
Y = np.array([0, 0, 1, 1, *10 * [-1]])


@cache
def solution():
    return solve_m_step(OBJECTIVE)


@cache
def run():
    return alternate(PairSet.from_labels(X, Y), accelerate=False, tol=1e-3, m_step_tol=1e-6)


@cache
def fitted():
    return SERAPH().fit(X, Y)


def parsed(thing):
    """A card as XML: nothing in it is left open, and nothing runs."""
    root = ElementTree.fromstring(thing if isinstance(thing, str) else thing._repr_html_())
    assert {"script", "style", "link", "img", "iframe"}.isdisjoint(each.tag for each in root.iter())
    assert not [name for each in root.iter() for name in each.attrib if name.startswith("on")]
    return root


def text_of(thing):
    return "".join(parsed(thing).itertext()).strip()


def verdict(thing):
    """The words and the tone of the badge."""
    (badge,) = parsed(thing).iter("span")
    colors = re.search(r"^color:(#\w+);background:(#\w+)", badge.get("style"))
    return badge.text, Tone(colors.groups())


FAR = certify(OBJECTIVE, np.eye(2))
GOOD, CAUTION, BAD = Tone
VERDICTS = [
    (lambda: FAR, f"relative gap {FAR.relative_gap:.1e}", BAD),
    (solution, "certified", GOOD),
    (lambda: replace(solution(), status=Status.INACCURATE), "inaccurate", CAUTION),
    (run, "certified", GOOD),
    (lambda: explain_convexity(state_m_step(OBJECTIVE)), "convex, by the rules of DCP", GOOD),
]


@pytest.mark.parametrize(("make", "words", "tone"), VERDICTS)
def test_every_card_is_valid_and_has_its_verdict(make, words, tone):
    assert verdict(make()) == (words, tone)


def test_a_card_escapes_what_it_is_given():
    strange = replace(solution(), solver=NASTY, solver_status=NASTY, message=NASTY)
    table = ResultTable(NASTY, [{NASTY: NASTY}])
    whole = card(NASTY, NASTY, Tone.BAD, NASTY, notes=[NASTY], facts={NASTY: NASTY}, table=table)
    for thing, count in ((strange, 3), (whole, 8)):
        assert text_of(thing).count(NASTY) == count
