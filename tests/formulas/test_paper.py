"""Evidence: the formulas of `paper.py` hold among themselves; other files compare the package."""

import re

import numpy as np
import pytest
from instances import pair_lists, random_psd
from scipy.optimize import minimize_scalar

from seraph_cvx import PairSet, e_step, paper

MU, LAM, ETA, GAMMA, KAPPA = 0.3, 0.7, 1.2, 0.4, -1.7


@pytest.fixture(params=range(3))
def drawn(request):
    """Pairs and a metric."""
    rng = np.random.default_rng(request.param)
    X = rng.normal(size=(8, 3))
    pairs = PairSet.from_labels(X, [0, 0, 1, 1, 2, -1, -1, -1])
    return pairs, random_psd(rng, 3, size=0.5), rng


def unlabeled_distances(pairs, A):
    return paper.squared_distances(pairs.points, pairs.unlabeled, A)


def labeled_distances(pairs, A):
    rows = np.vstack([pairs.similar, pairs.dissimilar])
    y = np.repeat([1.0, -1.0], [len(pairs.similar), len(pairs.dissimilar)])
    return paper.squared_distances(pairs.points, rows, A), y


def test_the_e_step_of_the_package_is_10_and_minimizes_9(drawn):
    pairs, A, rng = drawn
    d = unlabeled_distances(pairs, A)
    best = paper.e_step(d, mu=MU, eta=ETA)
    np.testing.assert_allclose(
        e_step(pairs, A, unlabeled_weight=MU, threshold=ETA), best, rtol=1e-12
    )
    least = paper.e_step_objective(best, d, mu=MU, eta=ETA)
    for _ in range(20):
        other = paper.e_step_objective(rng.random(len(d)), d, mu=MU, eta=ETA)
        assert np.all(least <= other + 1e-14)


def test_the_maximum_entropy_solution_2_is_the_model_5(drawn):
    pairs, A, _ = drawn
    d, y = labeled_distances(pairs, A)
    np.testing.assert_allclose(
        paper.maximum_entropy_solution(d, y, KAPPA, ETA),
        np.exp(paper.log_model(d, y, KAPPA, ETA)),
        rtol=1e-12,
    )


def test_the_dual_3_is_above_the_primal_1_and_meets_it(drawn):
    """Weak duality at any kappa and p; no gap at the kappa that minimizes (3) for this A."""
    pairs, A, rng = drawn
    d, y = labeled_distances(pairs, A)
    for _ in range(20):
        kappa, p = rng.normal(), rng.random(len(d))
        primal = paper.maximum_entropy(p, d, y, ETA, GAMMA)
        assert primal <= paper.maximum_entropy_dual(d, y, kappa, ETA, GAMMA) + 1e-12
    found = minimize_scalar(
        lambda kappa: paper.maximum_entropy_dual(d, y, kappa, ETA, GAMMA), tol=1e-12
    )
    p = paper.maximum_entropy_solution(d, 1.0, found.x, ETA)
    assert paper.maximum_entropy(p, d, y, ETA, GAMMA) == pytest.approx(found.fun, rel=1e-7)


def test_theorem_2_turns_6_into_7(drawn):
    pairs, A, _ = drawn
    full = paper.full_objective(*pair_lists(pairs), A, KAPPA, mu=MU, lam=LAM, eta=ETA, gamma=GAMMA)
    metric, lam, eta = paper.simplified_parameters(A, KAPPA, lam=LAM, eta=ETA)
    simple = paper.simplified_objective(*pair_lists(pairs), metric, mu=MU, lam=lam, eta=eta)
    assert full == pytest.approx(simple - GAMMA / 2.0 * KAPPA**2, rel=1e-12)
    np.testing.assert_allclose(
        paper.posterior(unlabeled_distances(pairs, metric), 1.0, eta),
        np.exp(paper.log_model(unlabeled_distances(pairs, A), 1.0, KAPPA, ETA)),
        rtol=1e-12,
    )


def test_13_is_6_without_trace_and_14_at_its_own_model(drawn):
    pairs, A, _ = drawn
    letters = {"mu": MU, "eta": ETA, "gamma": GAMMA}
    at_13 = paper.posterior_regularization(*pair_lists(pairs), A, KAPPA, **letters)
    assert at_13 == pytest.approx(
        paper.full_objective(*pair_lists(pairs), A, KAPPA, lam=0.0, **letters), rel=1e-12
    )
    d = unlabeled_distances(pairs, A)
    p = np.exp(paper.log_model(d, 1.0, KAPPA, ETA))
    at_14 = paper.soft_posterior_regularization(*pair_lists(pairs), p, A, KAPPA, **letters)
    assert at_13 == pytest.approx(at_14, rel=1e-12)


def test_the_mixed_norm_15_is_least_at_the_eigenvectors(drawn):
    _, A, rng = drawn
    eigenvalues, vectors = np.linalg.eigh(A)
    assert paper.mixed_norm(np.diag(eigenvalues)) == pytest.approx(np.trace(A), rel=1e-12)
    np.testing.assert_allclose(vectors @ np.diag(eigenvalues) @ vectors.T, A, atol=1e-14)
    for _ in range(20):
        V = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        assert paper.mixed_norm(V @ A @ V.T) >= np.trace(A) * (1.0 - 1e-12)


def test_every_numbered_equation_has_a_function():
    text = " ".join(
        (function.__doc__ or "").split("\n")[0]
        for function in vars(paper).values()
        if callable(function) and getattr(function, "__module__", "") == paper.__name__
    )
    assert set(re.findall(r"\((\d+)\)", text)) >= {str(number) for number in range(1, 16)}
