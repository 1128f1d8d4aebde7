"""Each claim of the paper has the verdict it deserves; and breaking its formula makes it fall."""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace

import numpy as np
import pytest

from seraph_cvx import MStepObjective, PairSet, paper, verify_paper
from seraph_cvx.datasets import load_sampling
from seraph_cvx.theory import (
    feature_claims,
    m_step_claims,
    soft_label_claims,
    sparsity_claims,
)
from seraph_cvx.theory.claim import Check, Claim, ClaimResult, ClaimUndecided, Verdict
from seraph_cvx.theory.claim_data import ClaimData
from seraph_cvx.theory.verification import CLAIMS, SLOW, check_claim

CORRECTED = (3, 5, 12, 16)
REFUTED = (4, 8, 9, 15)
EXPECTED = dict.fromkeys(range(1, 17), "holds")
EXPECTED |= dict.fromkeys(CORRECTED, "holds as corrected") | dict.fromkeys(REFUTED, "refuted")
"""Written by hand: the claims must not grade themselves."""

FAST = sorted(set(EXPECTED) - SLOW)


@pytest.fixture(scope="module")
def iris(verified_iris):
    return verified_iris.report


@pytest.fixture(scope="module")
def sampling():
    return load_sampling("iris", n_points=30)


@pytest.mark.parametrize("number", FAST)
def test_claim_has_its_verdict_on_iris(iris, number):
    result = iris[number]
    assert result.verdict.value == EXPECTED[number]
    assert result.as_expected
    assert result.residual <= result.tolerance
    assert (result.violation is None) == (EXPECTED[number] == "holds")


@pytest.mark.parametrize(("name", "n_points"), [("balance", 60), ("breast_cancer", 30)])
@pytest.mark.slow
def test_claim_verdicts_on_other_data(name, n_points):
    """On a grid of integers, and with features that are nearly the same."""
    sampling = load_sampling(name, n_points=n_points)
    result = verify_paper(sampling.X[:, :10], sampling.y, name=name)
    verdicts = {r.claim.number: r.verdict.value for r in result.results}
    assert verdicts == {number: EXPECTED[number] for number in FAST}
    assert result.ok


@pytest.mark.parametrize("number", [*FAST, pytest.param(13, marks=pytest.mark.slow)])
def test_claim_holds_on_the_small_data_that_it_is_broken_on(small, number):
    """Or the tests below would say nothing."""
    assert check_claim(number, small).as_expected


def changed(module, function, change):
    """Replace a function by one that calls it with other arguments, or changes its result."""
    original = getattr(module, function)
    return module, function, lambda *given, **more: change(original, *given, **more)


class WrongCertificate:
    primal_value, dual_value, relative_gap = 1.0, 0.0, 0.5


m_step, soft, features = m_step_claims, soft_label_claims, feature_claims

BREAKS = {
    "1, -F concave": changed(paper, "log_posterior", lambda f, *given: -f(*given)),
    "2, the sign of the unlabeled part": changed(
        paper,
        "m_step_gradient",
        lambda f, X, S, D, U, q, A, **more: f(X, S, D, U, 1 - q, A, **more),
    ),
    "2, the package's gradient": (MStepObjective, "gradient", lambda self, A: np.zeros_like(A)),
    "3, the feature without its half": changed(paper, "feature", lambda f, *given: 2 * f(*given)),
    "4, the posterior upside down": changed(
        paper, "log_model", lambda f, d, y, kappa, eta: f(d, -y, kappa, eta)
    ),
    "5, lambda times kappa": (
        paper,
        "simplified_parameters",
        lambda A, kappa, lam, eta: (-kappa * A, lam * -kappa, -kappa * eta),
    ),
    "6, the package's E-step": (soft, "e_step", lambda pairs, *_: np.zeros(pairs.n_unlabeled)),
    "7, (12) without its data term": (paper, "lipschitz_bound", lambda *_, mu, lam: lam),
    "7, the package's bound": (MStepObjective, "lipschitz_bound", 1.0),
    "8, Shannon for Renyi": (
        soft,
        "renyi_entropy",
        lambda d, order, eta: paper.entropy(paper.posterior(d, 1.0, eta)),
    ),
    "9, J without the sharpness": changed(
        soft, "descent_objective", lambda f, data, A, q: f(replace(data, sharpness=1.0), A, q)
    ),
    "9, the package's J": (soft, "descent_values", lambda objective, A: (0.0, 0.0)),
    "10, the Frobenius norm": (paper, "mixed_norm", lambda W: float(np.linalg.norm(W))),
    "11, the sign of eta": changed(
        m_step,
        "dual_value",
        lambda f, data, p: 2.0 * float(data.weights @ paper.entropy(p)) - f(data, p),
    ),
    "11, the package's certificate": (m_step, "certify", lambda *_: WrongCertificate()),
    "12, no pair is": changed(m_step, "recession_matrix", lambda f, case: 0.0 * f(case)),
    "12, the package's criterion": (MStepObjective, "attains_optimum", True),
    "13, cubic in n": (m_step, "measure", lambda n, m: 1e-9 * n**3),
    "14, the trace term missing": changed(
        sparsity_claims, "supervised", lambda f, data, trace_weight: f(data, 1.0)
    ),
    "15, the sign of the feature": (
        features,
        "loss",
        lambda y, near, far: -np.logaddexp(-near, -far),
    ),
    "16, y changes its sign in one loss": changed(
        features, "second_differences", lambda f, feature, d: f(feature, d)[[0, 0]]
    ),
}
"""Formulas of the paper, and of the package where the claims guard those too."""


COSTLY = ("9, J without the sharpness", "16, y changes its sign in one loss")
"""These take seconds."""


@pytest.mark.once
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in COSTLY)) for n in BREAKS]
)
def test_claim_falls_when_a_formula_is_broken(small, monkeypatch, name):
    monkeypatch.setattr(*BREAKS[name])
    result = check_claim(int(name.split(",")[0]), small)
    assert not result.as_expected
    assert result.verdict is not Verdict.HOLDS


def test_claim_every_one_is_broken_by_some_test():
    assert {int(name.split(",")[0]) for name in BREAKS} == set(EXPECTED)


def test_claim_13_holds_for_the_printed_complexity(small, monkeypatch):
    monkeypatch.setattr(m_step_claims, "measure", lambda n, m: 1e-9 * (n**2 * m + m**3))
    assert check_claim(13, small).as_expected


@pytest.mark.parametrize("number", CORRECTED + REFUTED)
def test_claim_contradiction_can_be_recomputed_in_ten_lines(number):
    claim = CLAIMS[number][0]
    assert claim.correction
    code = claim.recomputation.code
    assert len(code.splitlines()) <= 10
    assert "seraph_cvx" not in code
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue() == claim.recomputation.prints


CHECKS = {"good": Check("good", 0.0, 1.0), "bad": Check("bad", 2.0, 1.0)}
CHECKS["nan"] = Check("nan", np.nan, 1.0)


def result_of(expected, printed, corrected="", **more):
    """The result of checks with these names."""
    claim = Claim(0, "name", "place", "statement", "x", "evidence", Verdict(expected), **more)
    return ClaimResult(
        claim, *([CHECKS[k] for k in names.split()] for names in (printed, corrected))
    )


@pytest.mark.parametrize(
    ("expected", "printed", "corrected", "verdict", "decisive"),
    [
        ("holds", "good", "", "holds", "good"),
        ("holds", "bad", "", "refuted", "bad"),
        ("holds", "good bad", "", "refuted", "bad"),
        ("holds as corrected", "bad", "good", "holds as corrected", "good"),
        ("holds as corrected", "good", "good", "holds", "good"),
        ("holds as corrected", "bad", "good bad", "refuted", "bad"),
        ("refuted", "bad", "good", "refuted", "good"),
        ("refuted", "bad", "bad", "refuted", "bad"),
        ("holds", "", "", "not decided", "no evidence"),
        ("holds", "bad nan good", "", "refuted", "nan"),
    ],
)
def test_verdict_follows_from_the_checks(expected, printed, corrected, verdict, decisive):
    result = result_of(expected, printed, corrected)
    assert result.verdict == verdict
    assert result.decisive.name == decisive
    assert result.as_expected == (verdict == expected and "bad" not in corrected)


def test_failure_a_solver_without_an_answer_leaves_the_claim_undecided(monkeypatch, sampling):
    def no_answer(problem):
        raise ClaimUndecided("Clarabel gave no answer: a test")

    monkeypatch.setattr(soft_label_claims, "solve_conic", no_answer)
    result = verify_paper(sampling.X, sampling.y, claims=[6, 10])
    assert [r.verdict.value for r in result.results] == ["not decided", "holds"]
    assert not result.ok
    assert "a test" in result[6].message
    assert "a test" in result.to_html()


def test_claim_14_is_undecided_where_the_labels_want_the_zero_metric():
    """One similar pair far apart, one dissimilar pair close together."""
    pairs = PairSet.from_constraints([[0.0], [5.0], [0.1], [2.0]], [(0, 1)], [(0, 2)])
    result = check_claim(14, ClaimData("four points", pairs))
    assert result.verdict is Verdict.UNDECIDED
    assert "zero metric, at any lambda" in result.message


def test_report_is_the_same_for_the_same_seed_and_calls_back_around_each_claim(sampling):
    seen, numbers = [], []
    for seed in (3, 3, 4):
        report = verify_paper(
            sampling.X,
            sampling.y,
            claims=[10, 1],
            seed=seed,
            callback=lambda claim, result: seen.append((claim.number, result is None)),
        )
        numbers.append([result.residual for result in report.results])
    assert numbers[0] == numbers[1] != numbers[2]
    assert seen == 3 * [(1, True), (1, False), (10, True), (10, False)]


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        ([0, 0, 1], {}, r"No pair is unlabeled: add points.*label -1"),
        ([0, 0, 0, -1], {}, "No pair is dissimilar"),
        ([0, 0, 1, -1], {"claims": [99]}, "There is no claim 99"),
        ([0, 0, 1, -1], {"trace_weight": 0.0}, "lambda > 0"),
        ([0, 0, 1, -1], {"X": np.ones((4, 1))}, "All points are the same"),
        ([0, 0, 1, *98 * [-1]], {}, "at most 100 points, not 101: draw some by .*sample"),
    ],
)
def test_failure_data_that_cannot_serve(y, options, message):
    with pytest.raises(ValueError, match=message):
        verify_paper(**{"X": np.arange(len(y))[:, None] ** 2.0, "y": y} | options)
