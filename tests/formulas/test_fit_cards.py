"""What notebooks show of fits, samplings and proofs; one sign; the bound "by concavity"."""

from __future__ import annotations

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from sklearn import config_context
from strict_html import strictly, verdict

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
from seraph_cvx.display.cards import DUAL_POINTS
from seraph_cvx.display.fit_cards import estimator_card
from seraph_cvx.display.notebook import Tone
from seraph_cvx.numerics.psd_cone import numerical_rank

POINTS = np.random.default_rng(0).normal(size=(14, 3)) * [2.0, 1.0, 0.5]
LABELS = np.array([0, 0, 1, 1, *10 * [-1]])
PAIRS = PairSet.from_labels(POINTS, LABELS)


@pytest.fixture(scope="module")
def run():
    return alternate(PAIRS, accelerate=False, tol=1e-3, m_step_tol=1e-6)


@pytest.fixture(scope="module")
def fitted():
    return SERAPH().fit(POINTS, LABELS)


def text_of(thing):
    return "".join(strictly(thing).words)


def value_of(thing, name):
    words = strictly(thing).words[::-1]  # formulas come first
    return words[words.index(name) - 1]


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


def test_a_sampling_shows_its_classes_and_the_one_without_a_label():
    assert verdict(load_sampling("iris")) == ("every class has a label", Tone.GOOD)
    assert "100 points in ℝ⁴, 10 of them labeled" in text_of(load_sampling("iris"))
    alone = Sampling("two <b>", POINTS, LABELS, POINTS[:3], np.array([0, 1, 2]))
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
    card = estimator_card(fitted)
    assert verdict(card) == ("certified", Tone.GOOD)
    assert float(value_of(card, "relative gap")) <= 1e-8
    assert value_of(card, "J") == f"{fitted.history_[-1].descent_value:.6f}"
    ranks = [numerical_rank(A) for A in (fitted.m_step_metric_, fitted.metric_)]
    assert ranks[0] < ranks[1]
    shown = [value_of(card, name) for name in ("rank of A (m_step_metric_)", "rank of metric_")]
    assert shown == [f"{rank} of 3" for rank in ranks]
    assert "No certificate is about the mixture" in text_of(card)
    for html in (fitted._repr_html_(), fitted._repr_mimebundle_()["text/html"]):
        assert "sk-" in html.partition(card)[0]
        assert card in html
    assert "fitted</b>" not in SERAPH()._repr_html_()
    with config_context(display="text"):
        assert not hasattr(fitted, "_repr_html_")
        assert list(fitted._repr_mimebundle_()) == ["text/plain"]


def test_a_fit_without_a_certificate_says_so():
    direct = SERAPH(algorithm="direct", identity_share=0.0).fit(POINTS, LABELS)
    card = estimator_card(direct)
    assert "There is no certificate: (7), which was descended, is not convex." in text_of(card)
    assert value_of(card, "(7)") == f"{direct.history_[-1]:.6f}"
    assert "Distances and transform use this A itself." in text_of(card)


def test_every_card_minimizes_and_says_once_that_f_is_the_negative_of_F(run, fitted):
    solution, path = solve_m_step(MStepObjective(PAIRS)), seraph_path(PAIRS, n_weights=2)
    things = [MStepObjective(PAIRS), solution, solution.certificate, path, run]
    for thing in (*things, estimator_card(fitted)):
        assert text_of(thing).count("f = −ℱ") == 1
        assert "ℱ(A)" not in text_of(thing)
    for thing in (run.history[-1], seraph_path(PAIRS, n_weights=2, algorithm="em")):
        assert text_of(thing).count("All is minimized here: J, and (7)") == 1


def test_a_bound_by_concavity_is_explained():
    objective = MStepObjective(PAIRS)
    found = [certify(objective, size * np.eye(3)) for size in (0.3, 100.0)]
    seen = {certificate.dual_point for certificate in found}
    assert len(seen) == 2
    assert seen <= set(DUAL_POINTS)
    for point in DUAL_POINTS:
        said = text_of(replace(found[0], dual_point=point))
        assert ("straight line" in said) == point.startswith("toward")
        assert ('"by concavity"' in said) == point.startswith("toward")
        assert "The dual point: " in said
