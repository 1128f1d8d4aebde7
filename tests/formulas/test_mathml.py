"""Formulas and prose as MathML, HTML and text: brackets, symbols, figures."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from seraph_cvx.display.formulas import DUAL, FORMULAS
from seraph_cvx.display.mathml import parse, to_mathml, to_text
from seraph_cvx.display.page import Chart, Curve, to_svg
from seraph_cvx.display.symbols import in_symbols, prose
from seraph_cvx.theory.verification import CLAIMS

pytestmark = pytest.mark.once

CLAIM_FORMULAS = [claim.formula for claim, _ in CLAIMS.values()]
PARTS = {"mfrac": 2, "msub": 2, "msup": 2, "msubsup": 3, "munder": 2, "mover": 2}


def test_formula_in_ascii_names_its_symbols_and_has_the_same_lines():
    assert DUAL.ascii.splitlines() == [
        "max_{p in [0, 1]^N} D(p) = sum_k c_k H(p_k) - eta (sum_k c_k p_k - beta)",
        "M(p) = sum_k c_k p_k v_k v_k' - G + R PSD,  R = lambda I + nu X'Delta X",
    ]
    for formula in FORMULAS:
        assert formula.ascii.isascii()
        assert len(formula.ascii.splitlines()) == len(formula.latex.splitlines())
    assert {f.equation for f in FORMULAS if f.equation} == {"(7)", "(8)", "(10)", "(11)"}


@pytest.mark.parametrize(
    "latex", [r"\frac{\operatorname{gap}}{\ln x}", *(f.latex for f in FORMULAS), *CLAIM_FORMULAS]
)
def test_formula_mathml_has_the_parts_that_each_element_needs(latex):
    for line in latex.splitlines():
        for element in ElementTree.fromstring(to_mathml(line)).iter():
            assert len(element) == PARTS.get(element.tag, len(element)), element.tag


@pytest.mark.parametrize("latex", CLAIM_FORMULAS)
def test_formula_reads_as_text(latex):
    text = to_text(latex)
    assert "\\" not in text
    assert text.count("(") == text.count(")")


def inside(latex):
    """The MathML of a formula, without its frame."""
    (frame,) = ElementTree.fromstring(to_mathml(latex))
    return "".join(ElementTree.tostring(part, "unicode") for part in frame)


def test_formula_scripts_fractions_and_limits():
    assert to_text(r"\frac{a+b}{2} \geq x_i^2") == "(a + b)/2 ≥ x_i^2"
    assert inside(r"\sum_{k} \hat{p}").startswith("<mrow><munder>")
    assert to_mathml("x", inline=True).startswith('<math display="inline">')
    assert inside("x") == "<mi>x</mi>"
    with pytest.raises(ValueError, match=r"\\unknown"):
        parse(r"\unknown")
    with pytest.raises(ValueError, match="brace"):
        parse(r"x}")


@pytest.mark.parametrize(
    ("latex", "fences", "stretched"),
    [
        (r"f(\frac{a}{2})", 1, 2),
        (r"f((\frac{a}{2})^2 + (b))", 3, 4),  # the outer and the first inner pair
        (r"\|x - y\|_A^2", 1, 0),
        (r"\langle \frac{a}{2}, B \rangle", 1, 2),
        (r"E[q \| p] + x^{\frac{1}{2}}", 1, 0),
        (r"(x^{\frac{1}{2}})", 1, 0),
        (r"p(y | x) = [0,1)", 1, 0),
    ],
)
def test_formula_brackets_belong_together_and_stretch_around_a_fraction(latex, fences, stretched):
    signs = "()[]⟨⟩|‖"
    root = ElementTree.fromstring(to_mathml(latex))
    rows = [row for row in root.iter("mrow") if len(row) > 2 and (row[0].text or "") in signs]
    assert (
        sum(row[0].tag == row[-1].tag == "mo" and row[-1].text in signs for row in rows) == fences
    )
    loose = [sign for sign in root.iter("mo") if sign.text in signs and not sign.attrib]
    assert len(loose) == stretched


def test_formula_a_raised_bracket_is_raised_as_a_whole():
    raised = ElementTree.fromstring(inside(r"(\frac{a}{2})^2"))
    assert (raised.tag, raised[0].tag, raised[1].text) == ("msup", "mrow", "2")
    assert to_text(r"c_k (\frac{a}{2})^2") == "c_k(a/2)^2"
    assert to_text(r"\frac{\xi^2}{2 \gamma} - p \ln p") == "(ξ^2)/(2γ) - p ln p"
    assert to_text(r"\min_{a} -\ln(1 + a)") == "min_a -ln(1 + a)"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("eta_hat and lambda_hat", "η̂ and λ̂"),
        ("the sign of kappa* is that of #D - #S", "the sign of κ* is that of #𝒟 - #𝒮"),
        ("-F falls; D(p) <= f(A)", "-ℱ falls; D(p) ≤ f(A)"),
        ("sum_SD log(1 + e^s), sum_U q", "∑_{𝒮 ∪ 𝒟} log(1 + e^s), ∑_𝒰 q"),
        ("A < 0, B > 1 and <A, B> >= 0", "A < 0, B > 1 and ⟨A, B⟩ ≥ 0"),
        ("beta, theta_k, lambda_max", "β, theta_k, λ_max"),
        ("Dissimilar, Sum, U-turn, mus", "Dissimilar, Sum, U-turn, mus"),
        ("R^13, O(n^2 m), sqrt(m)", "ℝ¹³, O(n^2 m), √m"),
    ],
)
def test_prose_has_the_symbols_of_formulas_and_leaves_words_alone(text, shown):
    assert in_symbols(text).replace("θ", "theta") == shown


def test_prose_is_escaped_and_raises_what_is_raised():
    assert prose("v_k = x_i - x_j < 1") == ("v<sub>k</sub> = x<sub>i</sub> − x<sub>j</sub> &lt; 1")
    assert prose("ask m_step_metric_ of M-step 1e-6") == "ask m_step_metric_ of M-step 1e-6"
    for formula in FORMULAS:
        html = prose(formula.where)
        ElementTree.fromstring(f"<p>{html}</p>")
        for word in ("eta", "mu", "lambda", "sigma", "sum_"):
            assert f" {word} " not in f" {html} "


def test_figure_leaves_out_what_its_axes_cannot_show():
    curve = Curve("<c>", [0.0, 1.0, 10.0, 100.0], [1.0, float("nan"), 3.0, -1.0])
    svg = ElementTree.fromstring(to_svg(Chart("<t>", "x & y", "lambda", [curve], True, True)))
    (line,) = svg.iter("polyline")
    assert len(line.get("points").split()) == 1
    assert "λ" in "".join(svg.itertext())
    for flat in (Curve("c", [1.0, 1.0], [2.0, 2.0]), Curve("c", [], [])):
        ElementTree.fromstring(to_svg(Chart("t", "x", "y", [flat, flat])))
