"""Evidence: the proven interval holds the optimum, by closed forms and by far higher precision."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

flint = pytest.importorskip("flint")

from high_precision import (  # noqa: E402
    BITS,
    exact,
    gaussian,
    solve_quietly,
    with_points,
)
from instances import random_objective, random_psd  # noqa: E402
from judge import check_proof  # noqa: E402

from seraph_cvx import MStepObjective, PairSet, certify, solve_m_step  # noqa: E402
from seraph_cvx.certificate.proof import Proof, prove  # noqa: E402
from seraph_cvx.datasets import load_sampling  # noqa: E402

arb, ctx = flint.arb, flint.ctx


# Closed forms


@pytest.mark.parametrize(("precision", "gap"), [(53, 1e-13), (64, 1e-15), (256, 1e-15)])
def test_closed_form_with_a_soft_label_of_a_previous_metric(precision, gap):
    """Pairs at distance 1, dissimilar and unlabeled, and a similar one at 0.

    The derivative is zero where (1 + mu)*sigma(-s) = mu*q + lambda.
    """
    pairs = PairSet.from_constraints([[0.0], [1.0], [1.0]], [(1, 2)], [(0, 1)])
    objective = MStepObjective(
        pairs,
        previous_metric=[[0.75]],
        sharpness=2.0,
        unlabeled_weight=0.5,
        trace_weight=0.25,
    )
    with ctx.workprec(BITS):
        q = 1 / (1 + (arb(2) * (arb(0.75) - 1)).exp())
        r = (q / 2 + arb(0.25)) / arb(1.5)
        entropy = -r * r.log() - (1 - r) * (1 - r).log()
        optimum = arb(1.5) * entropy + arb(0.25) + (1 + arb(-1).exp()).log()
        a = float(1 + (1 / r - 1).log())
        proof = prove(objective, [[a]], precision=precision)
        assert optimum >= proof.dual_value
        assert optimum <= proof.primal_value
    assert proof.duality_gap <= gap
    assert proof.precision == precision


@pytest.mark.parametrize(("unlabeled_weight", "trace_weight"), [(0.0, 0.0), (0.5, 0.0), (0.5, 1.0)])
def test_closed_form_where_no_two_points_differ(unlabeled_weight, trace_weight):
    pairs = PairSet.from_constraints(np.full((5, 2), 0.1), [(0, 1)], [(1, 2)])
    objective = MStepObjective(pairs, unlabeled_weight=unlabeled_weight, trace_weight=trace_weight)
    proof = check_proof(objective, np.zeros((2, 2)))
    n_terms = 1.0 + 8.0 * unlabeled_weight
    expected = n_terms * np.log1p(np.e) + np.log1p(1.0 / np.e)
    assert proof.primal_value == pytest.approx(expected, rel=1e-15)
    assert proof.duality_gap <= 1e-14


# Against the certificate, and against any point in far higher precision


@pytest.mark.parametrize("q", ["start", "random", "streamed"])
@pytest.mark.parametrize("setting", ["post", "proj", "hyper", "other"])
def test_proof_agrees_with_the_certificate_near_and_far(setting, q):
    objective = random_objective(0, setting, q=q, n=12, m=3)
    answer = solve_quietly(objective, tol=1e-9, max_iter=2000).metric
    rng = np.random.default_rng(0)
    for A in [answer, *(random_psd(rng, 3, size=10.0**k) for k in (-3, 0, 1, 3))]:
        certificate, proof = certify(objective, A), prove(objective, A)
        slack = 1e-12 * max(1.0, abs(certificate.primal_value))
        assert proof.primal_value == pytest.approx(certificate.primal_value, rel=1e-12)
        assert proof.dual_value <= certificate.primal_value + slack
        assert certificate.dual_value <= proof.primal_value + slack
        assert proof.relative_gap <= 1.02 * certificate.relative_gap + 1e-12


@pytest.mark.parametrize("q", ["start", "random", "streamed"])
@pytest.mark.parametrize("setting", ["none", "post", "proj", "hyper", "other"])
def test_proof_is_true_by_200_digits(setting, q):
    check_proof(random_objective(1, setting, q=q, n=9, m=3))


def test_proof_a_wrong_point_costs_sharpness_never_truth():
    objective = random_objective(2, "hyper", n=9, m=3)
    best = check_proof(objective)
    assert best.relative_gap <= 1e-8
    for A in (-np.eye(3), np.diag([1.0, -2.0, 3.0]), 1e30 * np.eye(3), np.zeros((3, 3))):
        proof = check_proof(objective, A)
        assert proof.dual_value <= best.primal_value
        assert proof.primal_value >= best.dual_value
        assert proof.relative_gap > 1e-3


# Failure paths


def test_failure_path_a_regularizer_that_is_not_psd_as_doubles():
    """Two features without spread, and a term of rank one whose rounded determinant is negative."""
    X = np.column_stack([gaussian(8, 1), np.full((8, 2), 0.1)])
    rng = np.random.default_rng(0)
    for _ in range(200):
        u = np.array([0.0, *rng.normal(size=2)])
        objective = with_points(X, manifold_term=np.outer(u, u), trace_weight=0.0)
        (a, b), (_, c) = exact(objective.manifold_term[1:, 1:]).table()
        with ctx.workprec(BITS):
            if a * c - b * b < 0:
                break
    else:
        pytest.fail("no determinant was rounded below zero")
    with pytest.raises(ArithmeticError, match=r"not PSD.*Raise `trace_weight`"):
        prove(objective, np.eye(3))
    check_proof(objective.with_trace_weight(1e-6), np.eye(3))


@pytest.mark.parametrize(
    ("A", "settings", "message"),
    [
        (np.eye(2), {}, "shape"),
        (np.full((3, 3), np.nan), {}, "NaN"),
        (np.diag([np.inf, 1, 1]), {}, "infinity"),
        (np.eye(3), {"precision": 20}, r"precision=20.*at least 53"),
    ],
)
def test_failure_path_arguments_that_prove_nothing(A, settings, message):
    with pytest.raises(ValueError, match=message):
        prove(random_objective(0, "hyper", n=9, m=3), A, **settings)


def test_failure_path_a_value_that_no_double_holds():
    objective = with_points(1e150 * gaussian(8, 3))
    with pytest.raises(ArithmeticError, match="raise `precision`, or pass a smaller A"):
        prove(objective, 1e10 * np.eye(3))


def test_proof_in_a_notebook_says_that_it_is_proven():
    proof = check_proof(random_objective(0, "hyper", n=9, m=3))
    assert "proven relative gap" in proof._repr_html_()
    assert proof.relative_gap >= (proof.primal_value - proof.dual_value) / max(
        1.0, abs(proof.primal_value)
    )
    assert ctx.prec == 53  # the caller's precision is as it was


# The paper's data sets

UCI = {"iris": 10, "wine": 10, "breast_cancer": 10, "balance": 10, "ionosphere": 20, "diabetes": 10}


@pytest.mark.slow
@pytest.mark.parametrize("name", UCI)
def test_proof_on_uci_first_and_second_m_step(name, request):
    in_a_file = name in ("ionosphere", "diabetes")
    folder = request.getfixturevalue("data_folder") if in_a_file else None
    drawn = load_sampling(name, n_labeled=UCI[name], data_dir=folder)
    first = MStepObjective(PairSet.from_labels(drawn.X, drawn.y))
    metric = solve_m_step(first, tol=1e-9).metric
    second = replace(first, previous_metric=metric)
    later = solve_m_step(second, tol=1e-9, start=metric).metric
    for objective, A in ((first, metric), (second, later)):
        assert prove(objective, A).relative_gap <= 1e-9


def test_certify_proves_when_asked_to():
    objective = random_objective(4, "hyper", q="streamed")
    assert isinstance(certify(objective, np.eye(4), rigorous=True), Proof)


def test_a_sample_of_pairs_is_not_proven():
    objective = random_objective(4, "hyper", q="streamed")
    sampled = replace(objective, pairs=objective.pairs.sampled(5, random_state=0))
    with pytest.raises(ValueError, match=r"prove the M-step of pairs\.whole"):
        certify(sampled, np.eye(4), rigorous=True)


def test_proof_that_is_sharp_enough_looks_no_further():
    """Far from the optimum the second bound tried is the better one."""
    objective = random_objective(0, "hyper", n=9, m=3)
    A = 30.0 * np.eye(3)
    best, quick = prove(objective, A), prove(objective, A, enough=1e6)
    assert quick.relative_gap <= 1e6
    assert quick.dual_value < best.dual_value
    assert quick.primal_value == best.primal_value
