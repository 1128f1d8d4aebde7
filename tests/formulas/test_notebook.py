"""Evidence: formulas stand in one module; what notebooks show is valid, escaped, honest, free."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from strict_html import Strict, strictly, verdict
from typer.testing import CliRunner

import seraph_cvx
from seraph_cvx import MStepObjective, PairSet, Status, certify, seraph_path, solve_m_step
from seraph_cvx.cli import app
from seraph_cvx.display.formulas import DUAL, FORMULAS
from seraph_cvx.display.mathml import to_mathml
from seraph_cvx.display.notebook import Tone, card, facts, grid
from seraph_cvx.display.result_table import ResultTable
from seraph_cvx.race.race_table import EMPTY_ROW, Race
from seraph_cvx.theory.report import CLAIMS

PACKAGE = Path(seraph_cvx.__file__).parent
CLAIM_FORMULAS = [claim.formula for claim, _ in CLAIMS.values()]

# Formulas ------------------------------------------------------------------------------------

PARTS = {"mfrac": 2, "msub": 2, "msup": 2, "msubsup": 3, "munder": 2, "mover": 2}
IN_ASCII = {
    "α": "alpha", "β": "beta", "η": "eta", "λ": "lambda", "μ": "mu", "ν": "nu", "σ": "sigma",
    "∑": "sum", "∪": "u", "∈": "in", "≤": "<=", "≥": ">=", "⇔": "<=>", "⇒": "=>", "⟨": "<",
    "⟩": ">", "‖": "||", "′": "'", "^⊤": "'", "⪰ 0": "PSD", "𝒮": "S", "𝒟": "D", "𝒰": "U",
    "ℒ": "L", "ℱ": "F", "γ": "gamma", "δ": "delta", "τ": "tau", "θ": "theta", "φ": "phi",
    "Φ": "Phi", "ℓ": "ell", "∇": "nabla", "√": "sqrt", "←": "<-", "∘": "op", "≻ 0": "PD",
}  # fmt: skip


def symbols(text):
    """Nothing but the letters, digits and signs, in order; brackets and scripts fall away."""
    for sign, word in IN_ASCII.items():
        text = text.replace(sign, word)
    return re.sub(r"[\s(){}\[\]_^]", "", text)


@pytest.mark.parametrize("formula", FORMULAS, ids=lambda f: f.name)
def test_formula_both_spellings_have_the_same_symbols(formula):
    assert formula.ascii.isascii()
    assert symbols(formula.text) == symbols(formula.ascii)
    assert len(formula.ascii.splitlines()) == len(formula.latex.splitlines())


@pytest.mark.parametrize("latex", [f.latex for f in FORMULAS] + CLAIM_FORMULAS)
def test_formula_mathml_has_the_parts_that_each_element_needs(latex):
    for line in latex.splitlines():
        for element in ElementTree.fromstring(to_mathml(line)).iter():
            assert len(element) == PARTS.get(element.tag, len(element)), element.tag


def test_formula_a_word_in_a_fraction_is_one_part():
    fraction = ElementTree.fromstring(to_mathml(r"\frac{\operatorname{gap}}{\ln x}")).find(
        ".//mfrac"
    )
    assert [part.tag for part in fraction] == ["mrow", "mrow"]


def test_formula_numbers_are_those_of_the_paper():
    numbered = {f.title: f.equation for f in FORMULAS if f.equation}
    assert numbered == {
        "The probability of a pair's label (8)": "(8)",
        "The objective (7)": "(7)",
        "The paper's objective, minimized (7)": "(7)",
        "The M-step (11)": "(11)",
        "The M-step with one logistic term a pair (11)": "(11)",
        "The E-step (10)": "(10)",
    }


WINDOW = 12
"""So many signs in a row, subscripts not counted, make a formula recognizable."""


def windows(text):
    text = re.sub(r"_\{?(?:k|ij)\}?|[\s_^{}*]", "", text)
    return {text[k : k + WINDOW] for k in range(len(text) - WINDOW + 1)}


def shown_strings(tree):
    """The strings of a module but for docstrings and the claims' own formulas."""
    hidden, nodes = set(), list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            hidden.add(node.value)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Claim":
            hidden |= {keyword.value for keyword in node.keywords if keyword.arg == "formula"}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in hidden:
            yield node.value


WRITTEN_HERE = ("display.formulas.", "display.mathml")


def test_formula_texts_stand_in_one_folder():
    formulas = [spelling for f in FORMULAS for spelling in (f.ascii, f.latex, f.text)]
    known = set().union(*(windows(line) for text in formulas for line in text.splitlines()))
    assert windows("subject to M(p) = sum c p vv' - G + lambda I PSD") & known  # it can be red
    holders = set()
    for path in PACKAGE.rglob("*.py"):
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        strings = shown_strings(ast.parse(path.read_text(encoding="utf-8")))
        if any(windows(text) & known for text in strings if len(text) >= WINDOW):
            holders.add(module)
    assert [name for name in holders if not name.startswith(WRITTEN_HERE)] == []


def test_formula_elements_are_made_in_one_module():
    makers = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if re.search(r"<m(ath|row|frac|sub|sup)\b", path.read_text(encoding="utf-8"))
    }
    assert makers - {"display/formulas/formula.py"} == {
        "display/mathml.py"
    }  # the first speaks of it in its docstring


def test_formula_the_command_line_shows_the_dual_from_there():
    done = CliRunner().invoke(app, ["explain", "--statement", "dual"])
    assert done.exit_code == 0, done.output
    assert "subject to " + DUAL.text.splitlines()[1] in done.output


# Valid, safe, readable -----------------------------------------------------------------------

POINTS = np.array([[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0], [0.2, 5.0], [1.9, 4.0]])
PAIRS = PairSet.from_labels(POINTS, [0, 0, 1, 1, -1, -1])
NASTY = '<script>alert("x")</script> & </div>'


@pytest.fixture(scope="module")
def solution():
    return solve_m_step(MStepObjective(PAIRS))


def race(true_gap):
    row = EMPTY_ROW | {"instance": "i", "solver": NASTY, "formulation": "dual", "tol": 1e-3}
    row |= {"outcome": "done", "claims": True, "true_gap": true_gap, "proved_gap": 1.0}
    row |= {"total_seconds": 0.5}
    return Race("Solvers <raced>", [row], [NASTY], {"i": {}})


def test_notebook_every_output_is_valid_and_has_a_formula(solution):
    few = PairSet.from_constraints(POINTS, [(0, 1)], [(0, 2)], [0.5], [2.0])
    things = [
        PAIRS,
        few,
        MStepObjective(PAIRS),
        MStepObjective(PAIRS, previous_metric=np.eye(2), manifold_term=np.eye(2)),
        MStepObjective(PAIRS, soft_labels=np.full(9, 0.5)),
        certify(MStepObjective(PAIRS), np.eye(2)),
        solution,
        race(1e-4),
        seraph_path(PAIRS, n_weights=3),
        seraph_path(PAIRS, n_weights=2, algorithm="em"),
    ]
    for thing in things:
        words = "".join(strictly(thing).words)
        assert "<math" in thing._repr_html_(), thing
        assert type(thing).__name__ in words or words.startswith("Solvers <raced>")
    sizes = {"points": "6", "features": "2", "similar": "1", "dissimilar": "1", "unlabeled": "13"}
    sizes |= {"μ by ratio": "0.154", "confidence": "0.5 to 2"}
    assert strictly(few).words[-14:] == [word for fact in sizes.items() for word in fact]


def test_notebook_the_strict_parser_can_be_red():
    blocks = ("<p>x</p>", "<b><i>x</b></i>", "<br/>", "<tr></tr>", "<!-- x -->", "<b>x")
    styled = ('<b onclick="x()">y</b>', '<b style="color:red">x</b>', '<b style="a:url(x)">x</b>')
    Strict("<div><b>x</b></div>")
    for bad in (*blocks, *styled):
        with pytest.raises((AssertionError, KeyError)):
            Strict(f"<div>{bad}</div>")


def test_notebook_escapes_what_it_is_given(solution):
    strange = replace(solution, solver=NASTY, solver_status=NASTY, message=NASTY)
    table = grid(ResultTable(NASTY, [{NASTY: NASTY}]))
    named = f"<div>{facts({NASTY: NASTY})}</div>"
    for thing in (strange, race(1e-4), card(NASTY, NASTY, Tone.BAD, NASTY, []), table, named):
        assert NASTY in "".join(strictly(thing).words)


def luminance(color):
    channels = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("tone", Tone)
def test_notebook_a_verdict_is_readable_on_its_own_ground(tone):
    """The contrast of WCAG 2, level AAA; all other text has the notebook's color."""
    dark, light = sorted(map(luminance, tone.value))
    assert (light + 0.05) / (dark + 0.05) >= 7.0


# Honest --------------------------------------------------------------------------------------


def test_notebook_verdict_of_pairs():
    assert verdict(PAIRS) == ("similar and dissimilar pairs", Tone.GOOD)
    alone = PairSet.from_labels(POINTS, [0, 0, -1, -1, -1, -1])
    assert verdict(alone) == ("no dissimilar pair", Tone.CAUTION)
    apart = PairSet.from_constraints(POINTS, [], [(0, 2)])
    assert verdict(apart) == ("no similar pair", Tone.CAUTION)
    everything = PairSet.from_labels(POINTS, [0, 0, 1, 1, 0, 1])
    assert "15 of 15 pairs are labeled (100.00%)." in strictly(everything).words


def test_notebook_verdict_of_an_objective_is_only_what_is_known():
    assert verdict(MStepObjective(PAIRS)) == ("convex, with an optimum", Tone.GOOD)
    few = PairSet.from_constraints(POINTS, [(0, 1)], [(0, 2)])
    unattained = MStepObjective(few, unlabeled_weight=0.0, trace_weight=0.0)
    assert verdict(unattained)[1] is Tone.PLAIN
    assert not unattained.attains_optimum
    assert verdict(unattained) == ("convex, but without an optimum", Tone.BAD)
    assert "critical trace weight" not in strictly(unattained).words
    critical = unattained.critical_trace_weight
    words = strictly(unattained).words
    assert float(words[words.index("critical trace weight") + 1]) == pytest.approx(critical, 0.01)


def test_notebook_verdict_of_a_certificate_is_its_gap(solution):
    near = solution.certificate
    far = certify(MStepObjective(PAIRS), np.eye(2))
    assert verdict(near) == (f"relative gap {near.relative_gap:.1e}", Tone.GOOD)
    assert verdict(far) == (f"relative gap {far.relative_gap:.1e}", Tone.BAD)
    assert f"No metric has f below {far.dual_value:.12g}" in "".join(strictly(far).words)


@pytest.mark.parametrize("status", Status)
def test_notebook_verdict_of_a_solution_is_the_referees_not_the_solvers(solution, status):
    judged = replace(solution, status=status, solver_status="optimal", message="Why.")
    tones = {Status.CERTIFIED: Tone.GOOD, Status.FAILED: Tone.BAD}
    assert verdict(judged) == (status.replace("_", " "), tones.get(status, Tone.CAUTION))
    assert "Why." in "".join(strictly(judged).words)


def test_notebook_a_solution_without_metric_says_so(solution):
    failed = replace(solution, metric=None, certificate=None, status=Status.FAILED, value=np.nan)
    words = strictly(failed).words
    assert words[words.index("metric") + 1] == "none"
    assert "There is no certificate." in words
    assert "inf" in words


def test_notebook_verdict_of_a_race_counts_the_false_claims():
    assert verdict(race(1e-4)) == ("1 of 1 claims of success are true", Tone.GOOD)
    assert verdict(race(1e-2)) == ("0 of 1 claims of success are true", Tone.BAD)
    assert verdict(Race("Nobody", []))[1] is Tone.PLAIN


def test_notebook_verdict_of_a_path_counts_the_certified_points():
    path = seraph_path(PAIRS, n_weights=4)
    assert verdict(path) == ("4 of 4 points certified", Tone.GOOD)
    *points, last = path.points
    worse = replace(path, points=(*points, replace(last, status=Status.INACCURATE)))
    assert verdict(worse) == ("3 of 4 points certified", Tone.CAUTION)
    assert worse._repr_html_().count("<tr>") == 1 + 4


def test_notebook_a_long_table_is_cut_and_says_so():
    words = strictly(grid(ResultTable("Long", [{"k": k} for k in range(60)]))).words
    assert words == ["k", *map(str, range(12)), "… 36 more …", *map(str, range(48, 60))]


# Free ----------------------------------------------------------------------------------------


def test_notebook_output_sums_and_solves_nothing(monkeypatch):
    """20,000 points have 200 million pairs; nothing is cached by looking, and no sweep is made."""

    def refuse(*_, **__):
        raise AssertionError("a sweep over the pairs")

    X = np.random.default_rng(0).normal(size=(20_000, 3))
    pairs = PairSet.from_constraints(X, [(0, 1)], [(0, 2)])
    for name in ("over_labeled", "over_unlabeled"):
        monkeypatch.setattr(f"seraph_cvx.engine.pair_sums.PairSums.{name}", refuse)
    objectives = [MStepObjective(pairs), MStepObjective(pairs, trace_weight=0.0)]
    for thing in (pairs, *objectives):
        before = set(vars(thing))
        strictly(thing)
        assert set(vars(thing)) <= before | {"falling_direction"}
        assert "unlabeled" not in vars(pairs)
    assert "falling_direction" not in vars(objectives[1])
