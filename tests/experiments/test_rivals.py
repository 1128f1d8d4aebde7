"""Evidence: the rivals of Section 5 keep what their publications promise.

The optima of the convex ones are proved by `certify_problem`; the others have closed forms.
"""

from __future__ import annotations

import numpy as np
import pytest
import rivals
from rivals import GDM, ITML, LDM, LMNN, MFDA, Euclidean, gdm, itml, lmnn
from rivals.mfda import reconstruction_weights
from scipy.spatial.distance import pdist

from seraph_cvx import PairSet, certify_problem
from seraph_cvx.datasets import load_sampling


def crowd(seed, n=24, m=3, n_known=14):
    """Two overlapping classes, some points without one."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) < n_known, np.arange(n) % 2, -1)
    return rng.normal(size=(n, m)) + 0.8 * np.outer(y == 1, np.arange(m) == 0), y


def lmnn_statement(X, y):
    known = y >= 0
    return lmnn.state(X[known], y[known])


@pytest.mark.parametrize(
    ("model", "state", "n_labeled"),
    [
        (GDM(), lambda X, y: gdm.state(PairSet.from_labels(X, y)), 30),
        (ITML(), lambda X, y: itml.state(PairSet.from_labels(X, y)), 15),
        (LMNN(), lmnn_statement, 12),
    ],
)
def test_the_optimum_is_proved(model, state, n_labeled):
    """Of 60 points; the value of our metric is in the interval that is proven of the statement."""
    drawn = load_sampling("iris", n_points=60, n_labeled=n_labeled, seed=1)
    certificate = certify_problem(state(drawn.X, drawn.y))
    assert certificate.relative_gap <= 1e-6
    value = model.fit(drawn.X, drawn.y).objective_
    size = 1e-5 * max(1.0, abs(value))  # LMNN stops at this gap
    assert certificate.lower - size <= value <= certificate.upper + size


def test_closed_form_euclidean_distances():
    X, y = crowd(0)
    assert pdist(Euclidean().fit_transform(X, y)) == pytest.approx(pdist(X))


@pytest.mark.parametrize("seed", range(4))
def test_the_ldm_likelihood_never_falls_and_ends_stationary(seed):
    X, y = crowd(seed)
    model = LDM(tol=1e-8).fit(X, y)
    assert np.all(np.diff(model.history_) >= 0.0)
    assert len(model.history_) == model.n_iter_ >= 3
    assert model.history_[-1] > LDM().fit(X, y).history_[0]


def test_lle_weights_solve_each_points_constrained_least_squares():
    """By the bordered (Lagrange) system of each point, and neighbors by plain sorting."""
    X = np.random.default_rng(1).normal(size=(18, 3))
    M = reconstruction_weights(X, n_neighbors=4)
    for x, row in zip(X, M, strict=True):
        near = np.argsort(np.linalg.norm(X - x, axis=1))[1:5]
        system = np.ones((5, 5))
        system[4, 4] = 0.0
        gram = (X[near] - x) @ (X[near] - x).T
        system[:4, :4] = gram + 1e-3 * np.trace(gram) * np.eye(4)
        weights = np.linalg.solve(system, [0.0, 0.0, 0.0, 0.0, 1.0])[:4]
        assert row[near] == pytest.approx(weights, abs=1e-10)
        assert np.count_nonzero(row) == 4


def test_closed_form_mfda_of_one_dissimilar_pair():
    """S_D = vv' has rank one: w = B^-1 v / sqrt(v'B^-1 v)."""
    X, _ = crowd(5)
    A = MFDA().fit(X, similar=[(0, 1)], dissimilar=[(0, 2)]).metric_
    R, near, v = X - reconstruction_weights(X) @ X, X[0] - X[1], X[0] - X[2]
    B = np.outer(near, near) + R.T @ R / len(X)
    solved = np.linalg.solve(B + 0.1 * np.trace(B) / 3.0 * np.eye(3), v)
    assert pytest.approx(np.outer(solved, solved) / (v @ solved)) == A


@pytest.mark.parametrize("name", rivals.__all__)
def test_points_of_a_plane_and_a_constant_feature_do_no_harm(name):
    X, y = crowd(3, m=2)
    wide = np.column_stack([X, X @ [1.0, -2.0], np.full(len(X), 7.0)])
    A = getattr(rivals, name)().fit(wide, y).metric_
    assert np.array_equal(A, A.T)
    assert np.linalg.eigvalsh(A)[0] >= -1e-10 * np.linalg.norm(A)
