"""Evidence: what notebooks show is valid, escaped, honest, free; every card has one sign."""

from __future__ import annotations

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from sklearn import config_context
from strict_html import Strict, strictly, verdict

from seraph_cvx import (
    SERAPH,
    MStepObjective,
    PairSet,
    Status,
    alternate,
    certify,
    explain_convexity,
    seraph_path,
    solve_m_step,
    state_m_step,
)
from seraph_cvx.datasets import Sampling, load_sampling
from seraph_cvx.display.cards import DUAL_POINTS, estimator_card
from seraph_cvx.display.notebook import Tone, card
from seraph_cvx.display.result_table import ResultTable
from seraph_cvx.numerics.psd_cone import numerical_rank
from seraph_cvx.race.race_table import EMPTY_ROW, Race

POINTS = np.array([[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0], [0.2, 5.0], [1.9, 4.0]])
PAIRS = PairSet.from_labels(POINTS, [0, 0, 1, 1, -1, -1])
FEW = PairSet.from_constraints(POINTS, [(0, 1)], [(0, 2)], [0.5], [2.0])
NASTY = '<script>alert("x")</script> & </div>'


@pytest.fixture(scope="module")
def solution():
    return solve_m_step(MStepObjective(PAIRS))


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(0).normal(size=(14, 3)) * [2.0, 1.0, 0.5]
    return X, np.array([0, 0, 1, 1, *10 * [-1]])


@pytest.fixture(scope="module")
def run(data):
    return alternate(PairSet.from_labels(*data), accelerate=False, tol=1e-3, m_step_tol=1e-6)


@pytest.fixture(scope="module")
def fitted(data):
    return SERAPH().fit(*data)


def race(true_gap):
    row = EMPTY_ROW | {"instance": "i", "solver": NASTY, "formulation": "dual", "tol": 1e-3}
    row |= {"outcome": "done", "claims": True, "true_gap": true_gap, "proved_gap": 1.0}
    row |= {"total_seconds": 0.5}
    return Race("Solvers <raced>", [row], [NASTY], {"i": {}})


def text_of(thing):
    return "".join(strictly(thing).words)


def value_of(thing, name):
    words = strictly(thing).words[::-1]  # formulas come first
    return words[words.index(name) - 1]


def test_every_card_is_valid_and_has_a_formula(solution):
    things = [
        PAIRS,
        FEW,
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
        assert "<math" in thing._repr_html_(), thing
        assert text_of(thing).startswith((type(thing).__name__, "Solvers <raced>"))
    sizes = {"points": "6", "features": "2", "similar": "1", "dissimilar": "1", "unlabeled": "13"}
    sizes |= {"μ by ratio": "0.154", "confidence": "0.5 to 2"}
    assert strictly(FEW).words[-14:] == [word for fact in sizes.items() for word in fact]


def test_the_strict_parser_can_be_red():
    blocks = ("<p>x</p>", "<b><i>x</b></i>", "<br/>", "<tr></tr>", "<!-- x -->", "<b>x")
    styled = ('<b onclick="x()">y</b>', '<b style="color:red">x</b>', '<b style="a:url(x)">x</b>')
    Strict("<div><b>x</b></div>")
    for bad in (*blocks, *styled):
        with pytest.raises((AssertionError, KeyError)):
            Strict(f"<div>{bad}</div>")


def test_a_card_escapes_what_it_is_given(solution):
    strange = replace(solution, solver=NASTY, solver_status=NASTY, message=NASTY)
    table = ResultTable(NASTY, [{NASTY: NASTY}])
    whole = card(NASTY, NASTY, Tone.BAD, NASTY, notes=[NASTY], facts={NASTY: NASTY}, table=table)
    for thing, count in ((strange, 3), (race(1e-4), 2), (whole, 8)):
        assert text_of(thing).count(NASTY) == count


def luminance(color):
    channels = np.array([int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


@pytest.mark.parametrize("tone", Tone)
def test_a_verdict_is_readable_on_its_own_ground(tone):
    """The contrast of WCAG 2, level AAA; all other text has the notebook's color."""
    dark, light = sorted(map(luminance, tone.value))
    assert (light + 0.05) / (dark + 0.05) >= 7.0


def test_verdict_of_pairs():
    assert verdict(PAIRS) == ("similar and dissimilar pairs", Tone.GOOD)
    alone = PairSet.from_labels(POINTS, [0, 0, -1, -1, -1, -1])
    assert verdict(alone) == ("no dissimilar pair", Tone.CAUTION)
    apart = PairSet.from_constraints(POINTS, [], [(0, 2)])
    assert verdict(apart) == ("no similar pair", Tone.CAUTION)
    everything = PairSet.from_labels(POINTS, [0, 0, 1, 1, 0, 1])
    assert "15 of 15 pairs are labeled (100.00%)." in strictly(everything).words


def test_verdict_of_an_objective_is_only_what_is_known():
    assert verdict(MStepObjective(PAIRS)) == ("convex, with an optimum", Tone.GOOD)
    unattained = MStepObjective(FEW, unlabeled_weight=0.0, trace_weight=0.0)
    assert verdict(unattained)[1] is Tone.PLAIN
    assert not unattained.attains_optimum
    assert verdict(unattained) == ("convex, but without an optimum", Tone.BAD)
    assert "critical trace weight" not in strictly(unattained).words
    critical = unattained.critical_trace_weight
    assert float(value_of(unattained, "critical trace weight")) == pytest.approx(critical, 0.01)


def test_verdict_of_a_certificate_is_its_gap(solution):
    near = solution.certificate
    far = certify(MStepObjective(PAIRS), np.eye(2))
    assert verdict(near) == (f"relative gap {near.relative_gap:.1e}", Tone.GOOD)
    assert verdict(far) == (f"relative gap {far.relative_gap:.1e}", Tone.BAD)
    assert f"No metric has f below {far.dual_value:.12g}" in text_of(far)


@pytest.mark.parametrize("status", Status)
def test_verdict_of_a_solution_is_the_referees_not_the_solvers(solution, status):
    judged = replace(solution, status=status, solver_status="optimal", message="Why.")
    tones = {Status.CERTIFIED: Tone.GOOD, Status.FAILED: Tone.BAD}
    assert verdict(judged) == (status.replace("_", " "), tones.get(status, Tone.CAUTION))
    assert "Why." in text_of(judged)


def test_a_solution_without_metric_says_so(solution):
    failed = replace(solution, metric=None, certificate=None, status=Status.FAILED, value=np.nan)
    assert value_of(failed, "metric") == "none"
    assert {"There is no certificate.", "inf"} <= set(strictly(failed).words)


def test_verdict_of_a_race_counts_the_false_claims():
    assert verdict(race(1e-4)) == ("1 of 1 claims of success are true", Tone.GOOD)
    assert verdict(race(1e-2)) == ("0 of 1 claims of success are true", Tone.BAD)
    assert verdict(Race("Nobody", []))[1] is Tone.PLAIN


def test_verdict_of_a_path_counts_the_certified_points():
    path = seraph_path(PAIRS, n_weights=4)
    assert verdict(path) == ("4 of 4 points certified", Tone.GOOD)
    *points, last = path.points
    worse = replace(path, points=(*points, replace(last, status=Status.INACCURATE)))
    assert verdict(worse) == ("3 of 4 points certified", Tone.CAUTION)
    assert worse._repr_html_().count("<tr>") == 1 + 4


def test_an_alternation_shows_its_status_its_gap_and_every_iteration(run):
    assert verdict(run) == ("certified", Tone.GOOD)
    first, last = run.history[0].descent_value, run.history[-1].descent_value
    assert f"J fell from {first:.6g} to {last:.6g}" in text_of(run)
    assert f"below {run.m_step.certificate.dual_value:.12g}" in text_of(run)
    assert run._repr_html_().count("<tr>") == 1 + len(run.history)
    ended = replace(run, status=Status.ITERATION_LIMIT, message="Why.")
    assert verdict(ended) == ("iteration limit", Tone.CAUTION)
    assert "Why." in text_of(ended)


def test_an_iteration_shows_whether_it_is_certified(run):
    last = run.history[-1]
    assert verdict(last)[0] == f"relative gap {last.relative_gap:.1e}"
    assert value_of(last, "J") == f"{last.descent_value:.6f}"
    rough = replace(last, relative_gap=np.inf, kind="descent")
    assert verdict(rough) == ("descent, not certified", Tone.PLAIN)


def test_a_sampling_shows_its_classes_and_the_one_without_a_label(data):
    assert verdict(load_sampling("iris")) == ("every class has a label", Tone.GOOD)
    assert "100 points in ℝ⁴, 10 of them labeled" in text_of(load_sampling("iris"))
    alone = Sampling("two <b>", *data, data[0][:3], np.array([0, 1, 2]))
    assert verdict(alone) == ("no label of class 2", Tone.CAUTION)
    assert strictly(alone).words[-9:] == ["0", "2", "1", "1", "2", "1", "2", "0", "1"]
    assert "Sampling of two <b>" in text_of(alone)


def test_a_proof_of_convexity_shows_its_tree_and_a_failure():
    proof = explain_convexity(state_m_step(MStepObjective(PAIRS)))
    assert verdict(proof) == ("convex, by the rules of DCP", Tone.GOOD)
    assert "logistic is convex and nondecreasing" in text_of(proof)
    assert "λ tr(A)" in text_of(proof)
    bad = explain_convexity(cp.Problem(cp.Minimize(cp.sqrt(cp.Variable()))))
    assert verdict(bad) == ("not shown to be convex", Tone.BAD)


def test_a_fitted_estimator_has_its_card_beside_the_box_of_scikit_learn(fitted):
    shown = estimator_card(fitted)
    assert verdict(shown) == ("certified", Tone.GOOD)
    assert float(value_of(shown, "relative gap")) <= 1e-8
    assert value_of(shown, "J") == f"{fitted.history_[-1].descent_value:.6f}"
    ranks = [numerical_rank(A) for A in (fitted.m_step_metric_, fitted.metric_)]
    assert ranks[0] < ranks[1]
    for name, rank in zip(("A (m_step_metric_)", "metric_"), ranks, strict=True):
        assert value_of(shown, f"rank of {name}") == f"{rank} of 3"
    assert "No certificate is about the mixture" in text_of(shown)
    for html in (fitted._repr_html_(), fitted._repr_mimebundle_()["text/html"]):
        assert "sk-" in html.partition(shown)[0]
        assert shown in html
    assert "fitted</b>" not in SERAPH()._repr_html_()
    with config_context(display="text"):
        assert not hasattr(fitted, "_repr_html_")
        assert list(fitted._repr_mimebundle_()) == ["text/plain"]


def test_a_fit_without_a_certificate_says_so(data):
    direct = SERAPH(algorithm="direct", identity_share=0.0).fit(*data)
    shown = estimator_card(direct)
    assert "There is no certificate: (7), which was descended, is not convex." in text_of(shown)
    assert value_of(shown, "(7)") == f"{direct.history_[-1]:.6f}"
    assert "Distances and transform use this A itself." in text_of(shown)


def test_every_card_minimizes_and_says_once_that_f_is_the_negative_of_F(run, fitted, solution):
    path = seraph_path(PAIRS, n_weights=2)
    things = [MStepObjective(PAIRS), solution, solution.certificate, path, run]
    for thing in (*things, estimator_card(fitted)):
        assert text_of(thing).count("f = −ℱ") == 1
        assert "ℱ(A)" not in text_of(thing)
    for thing in (run.history[-1], seraph_path(PAIRS, n_weights=2, algorithm="em")):
        assert text_of(thing).count("All is minimized here: J, and (7)") == 1


def test_a_bound_by_concavity_is_explained(data):
    objective = MStepObjective(PairSet.from_labels(*data))
    certificates = [certify(objective, size * np.eye(3)) for size in (0.3, 100.0)]
    seen = {certificate.dual_point for certificate in certificates}
    assert len(seen) == 2
    assert seen <= set(DUAL_POINTS)
    for point in DUAL_POINTS:
        words = text_of(replace(certificates[0], dual_point=point))
        assert ('"by concavity"' in words) == point.startswith("toward")
        assert "The dual point: " in words


def test_a_long_table_is_cut_and_says_so():
    table = ResultTable("Long", [{"k": k} for k in range(60)])
    words = strictly(card("", "verdict", Tone.GOOD, table=table)).words
    assert words[1:] == ["k", *map(str, range(12)), "… 36 more …", *map(str, range(48, 60))]


def test_a_card_sums_and_solves_nothing(monkeypatch):
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
