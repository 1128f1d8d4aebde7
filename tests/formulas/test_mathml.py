"""Formulas and prose as MathML, and prose as HTML and text."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from seraph_cvx.display.formulas import FORMULAS
from seraph_cvx.display.mathml import to_mathml
from seraph_cvx.display.symbols import prose
from seraph_cvx.theory.verification import CLAIMS

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    "latex", [f.latex for f in FORMULAS] + [claim.formula for claim, _ in CLAIMS.values()]
)
def test_every_formula_is_mathml_without_an_unknown_command(latex):
    for line in latex.splitlines():
        root = ElementTree.fromstring(to_mathml(line))
        assert root.get("display") == "block"
        assert "\\" not in "".join(root.itertext())


def test_a_formula_within_a_sentence_is_inline():
    assert to_mathml("x", inline=True).startswith('<math display="inline">')


def test_bars_are_brackets_of_one_height_without_spaces():
    markup = to_mathml(r"\lvert X\rvert\lVert P\rVert", inline=True)
    assert markup.count('<mo stretchy="false" lspace="0" rspace="0">') == 4


def test_words_have_one_space_between_them():
    markup = to_mathml(r"x \operatorname{for} \operatorname{all} \theta")
    assert markup.count('<mspace width="0.28em">') == 3


def test_prose_is_escaped_and_raises_what_is_raised():
    assert prose("v_k = x_i - x_j < 1") == "v<sub>k</sub> = x<sub>i</sub> − x<sub>j</sub> &lt; 1"
    assert prose("ask m_step_metric_ of M-step 1e-6") == "ask m_step_metric_ of M-step 1e-6"
