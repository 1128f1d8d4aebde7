"""Evidence: the rivals Euclidean, LDM, MFDA and NCA keep what their publications promise.

Bounds that hold, closed forms, independent optimizers, and scikit-learn's own checks.
"""

from __future__ import annotations

import time
from typing import ClassVar

import numpy as np
import pytest
from instances import random_pairs
from scipy.optimize import minimize_scalar
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NeighborhoodComponentsAnalysis

from seraph_cvx import PairSet
from seraph_cvx.baselines import nca
from seraph_cvx.baselines.euclidean import Euclidean
from seraph_cvx.baselines.ldm import LDM, Neighborhoods
from seraph_cvx.baselines.mfda import MFDA, reconstruction_weights
from seraph_cvx.baselines.nca import NCA
from seraph_cvx.baselines.rival import principal_directions
from seraph_cvx.datasets import load_sampling
from seraph_cvx.numerics.arrays import one_blas_thread

RIVALS = [Euclidean(), LDM(), MFDA(), NCA()]


def crowd(seed, n=24, m=3, n_known=14):
    """Two overlapping classes, so that LDM's likelihood has a finite maximum."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) < n_known, np.arange(n) % 2, -1)
    X = rng.normal(size=(n, m)) + 0.8 * np.outer(y == 1, np.arange(m) == 0)
    return X, y


def naive_likelihood(metric, pairs):
    """L point by point, from the similar and dissimilar lists alone."""
    V = pairs.points[:, None] - pairs.points
    f = np.exp(-np.einsum("ijk,kl,ijl->ij", V, metric, V))
    near, far = np.zeros_like(f), np.zeros_like(f)
    for rows, mass in ((pairs.similar, near), (pairs.dissimilar, far)):
        for i, j in rows:
            mass[i, j] = mass[j, i] = f[i, j]
    near, far = near.sum(axis=1), far.sum(axis=1)
    has_both = (near > 0.0) & (far > 0.0)
    return np.sum(np.log(near[has_both] / (near + far)[has_both]))


def neighborhoods(pairs):
    directions = principal_directions(pairs.points)
    return Neighborhoods.of(pairs, directions), directions


def test_closed_form_euclidean_distances():
    X, y = crowd(0)
    model = Euclidean().fit(X, y)
    expected = np.linalg.norm(X[:5] - X[5:10], axis=1)
    assert model.pair_distance(np.stack([X[:5], X[5:10]], axis=1)) == pytest.approx(expected)
    assert np.array_equal(model.metric_, np.eye(3))


@pytest.mark.parametrize("seed", range(4))
def test_formulas_agree_ldm_likelihood_and_the_sum_over_points_gradient_and_differences(seed):
    pairs = random_pairs(seed, n=15, m=4, n_labeled=30)
    neighbors, directions = neighborhoods(pairs)
    g = np.random.default_rng(seed).exponential(size=4)
    expected = naive_likelihood((directions * g) @ directions.T, pairs)
    assert neighbors.likelihood(g)[0] == pytest.approx(expected, rel=1e-10)
    g = 0.2 + np.random.default_rng(seed).random(4)
    _, a, b = neighbors.likelihood(g)
    for k, step in enumerate(1e-6 * np.eye(4)):
        rise = neighbors.likelihood(g + step)[0] - neighbors.likelihood(g - step)[0]
        assert (b - a)[k] == pytest.approx(rise / 2e-6, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("seed", range(20))
def test_the_ldm_bound_is_below_the_likelihood_and_touches_it(seed):
    rng = np.random.default_rng(seed)
    neighbors, _ = neighborhoods(random_pairs(seed, n=12, m=3, n_labeled=25))
    c, g = neighbors.distances(np.ones(3)).max(), rng.exponential(size=3)
    value, a, b = neighbors.likelihood(g)

    def bound_and_rise(d):
        bound = np.sum(-a * d + b / c * (1.0 - np.exp(-c * d)))
        return bound, neighbors.likelihood(g + d)[0] - value

    for size in (1e-4, 1e-2, 1.0):
        bound, rise = bound_and_rise(np.maximum(size * rng.normal(size=3), -g))
        assert bound <= rise + 1e-12 * abs(value)
    bound, rise = bound_and_rise(1e-7 * rng.random(3))
    assert bound == pytest.approx(rise, rel=1e-3, abs=1e-13)


@pytest.mark.parametrize("tol", [1e-3, 1e-6])
@pytest.mark.parametrize("seed", range(6))
def test_the_ldm_likelihood_never_falls_in_an_iteration(seed, tol):
    X, y = crowd(seed)
    model = LDM(tol=tol).fit(X, y)
    assert model.n_iter_ == len(model.history_) >= 3
    assert np.all(np.diff(model.history_) >= 0.0)
    assert model.history_[-1] > model.history_[0]
    reached = naive_likelihood(model.metric_, PairSet.from_labels(X, y))
    assert reached == pytest.approx(model.history_[-1], rel=1e-9)


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 6))]
)
def test_ldm_stops_where_rounding_hides_any_further_rise(seed):
    """A tolerance that no derivative can meet: it ends by itself, far below the limit."""
    with pytest.warns(ConvergenceWarning):
        model = LDM(tol=1e-300, max_iter=5000).fit(*crowd(seed))
    assert model.n_iter_ < 1000
    assert np.all(np.diff(model.history_) >= 0.0)
    assert model.history_[-1] >= LDM(tol=1e-6).fit(*crowd(seed)).history_[-1]


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer"])
def test_the_ldm_likelihood_never_falls_on_real_data(name):
    drawn = load_sampling(name, seed=2)
    assert np.all(np.diff(LDM().fit(drawn.X, drawn.y).history_) >= 0.0)


def local_maxima(function):
    """Every local maximum over g >= 0 that a fine grid shows, refined by scalar search."""
    grid = np.concatenate([[0.0], np.geomspace(1e-3, 1e2, 80)])
    values = np.array([function(g) for g in grid])
    padded = np.concatenate([[-np.inf], values, [-np.inf]])
    peaks = np.flatnonzero((values >= padded[:-2]) & (values > padded[2:]))
    found = []
    for k in peaks:
        ends = (grid[max(0, k - 1)], grid[min(len(grid) - 1, k + 1)])
        options = {"xatol": 1e-10}
        best = minimize_scalar(lambda g: -function(g), bounds=ends, options=options)
        found.append((0.0, values[0]) if k == 0 and -best.fun < values[0] else (best.x, -best.fun))
    return found


@pytest.mark.parametrize(
    "seed", [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 8))]
)
def test_one_eigenvector_is_an_optimum_of_an_independent_scalar_search(seed):
    X, y = crowd(seed)
    pairs = PairSet.from_labels(X, y)
    model = LDM(principal_components=1, tol=1e-9).fit(X, y)
    axis = np.outer(model.axes_[:, 0], model.axes_[:, 0])
    maxima = local_maxima(lambda g: naive_likelihood(g * axis, pairs))
    where, value = min(maxima, key=lambda found: abs(found[0] - model.eigenvalues_[0]))
    assert model.eigenvalues_[0] == pytest.approx(where, rel=1e-4)
    assert model.history_[-1] == pytest.approx(value, abs=1e-9)


def test_ldm_ends_where_no_eigenvalue_can_improve_alone():
    """A stationary point, seen by moving each eigenvalue up and down in the naive sum."""
    X, y = crowd(1)
    pairs = PairSet.from_labels(X, y)
    model = LDM(tol=1e-9).fit(X, y)
    V, g = model.axes_, model.eigenvalues_
    best = naive_likelihood(model.metric_, pairs)
    for k in range(3):
        for change in (-1e-2, 1e-2):
            moved = g.copy()
            moved[k] = max(0.0, moved[k] + change)
            assert naive_likelihood((V * moved) @ V.T, pairs) <= best + 1e-9


def test_ldm_axes_are_the_principal_components_of_labeled_and_unlabeled_points():
    X, y = crowd(2)
    model = LDM().fit(X, y)
    expected = PCA().fit(X).components_.T
    assert np.abs(model.axes_.T @ expected) == pytest.approx(np.eye(3), abs=1e-9)
    covariance = np.cov(X.T)
    assert model.metric_ @ covariance == pytest.approx(covariance @ model.metric_, abs=1e-9)
    fewer = LDM().fit(X[y >= 0], y[y >= 0])
    assert np.linalg.norm(fewer.metric_ - model.metric_) > 1e-3 * np.linalg.norm(model.metric_)


@pytest.mark.parametrize("model", [LDM(), MFDA()], ids=["LDM", "MFDA"])
def test_units_and_origin_do_not_matter(model):
    X, y = crowd(3)
    A = model.fit(X, y).metric_
    assert model.fit(7.0 * X - 3.0, y).metric_ * 49.0 == pytest.approx(A, rel=1e-6, abs=1e-9)


def test_separable_points_drive_the_ldm_likelihood_toward_zero_and_stop():
    X = np.array([[0.0], [0.1], [5.0], [5.2]])
    coarse, fine = (LDM(tol=tol).fit(X, [0, 0, 1, 1]) for tol in (1e-3, 1e-8))
    assert coarse.history_[-1] < fine.history_[-1] < 0.0
    assert fine.history_[-1] > -1e-5


def test_principal_directions_span_what_the_points_span_and_no_more():
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(8, 3)))[0]
    X = rng.normal(size=(20, 3)) @ basis.T + 4.0
    directions = principal_directions(X)
    assert directions.shape == (8, 3)
    assert directions @ (directions.T @ basis) == pytest.approx(basis, abs=1e-10)
    spread = np.sort(np.var(X @ directions, axis=0))[::-1]
    assert np.var(X @ directions, axis=0) == pytest.approx(spread)
    part = np.cumsum(spread)[1] / np.sum(spread)
    assert principal_directions(X, part - 1e-9).shape == (8, 2)
    assert principal_directions(X, part + 1e-9).shape == (8, 3)
    assert principal_directions(X, 2).shape == (8, 2)
    assert principal_directions(X, 7).shape == (8, 3)


def test_lle_weights_solve_each_points_constrained_least_squares():
    """By the bordered (Lagrange) system of each point, and neighbors by plain sorting."""
    X = np.random.default_rng(1).normal(size=(18, 3))
    M = reconstruction_weights(X, n_neighbors=4)
    assert M.sum(axis=1) == pytest.approx(np.ones(18))
    for i in range(18):
        order = np.argsort(np.linalg.norm(X - X[i], axis=1))
        near = order[1:5]
        assert set(np.flatnonzero(M[i])) == set(near)
        D = X[near] - X[i]
        gram = D @ D.T
        gram += 1e-3 * np.trace(gram) * np.eye(4)
        system = np.block([[gram, np.ones((4, 1))], [np.ones((1, 4)), np.zeros((1, 1))]])
        weights = np.linalg.solve(system, [0.0, 0.0, 0.0, 0.0, 1.0])[:4]
        assert M[i, near] == pytest.approx(weights, abs=1e-10)


def test_lle_weights_reproduce_points_that_lie_between_their_neighbors():
    X = np.arange(9.0)[:, None] * [[1.0, 2.0]]
    M = reconstruction_weights(X, n_neighbors=2)
    assert (M @ X)[1:-1] == pytest.approx(X[1:-1], abs=1e-9)


@pytest.mark.parametrize("points", [np.zeros((4, 2)), [[0.0], [0.0], [0.0], [5.0]]])
def test_lle_weights_of_coinciding_points_still_sum_to_one(points):
    assert reconstruction_weights(points, 2).sum(axis=1) == pytest.approx(np.ones(4))


def fisher_matrices(X, y, alpha, ridge, k):
    """S_D and B of the MFDA docstring, over all pairs, in the features themselves."""
    known = y >= 0
    V = X[known][:, None] - X[known]
    outer = np.einsum("ijk,ijl->ijkl", V, V)
    same = y[known][:, None] == y[known]
    near, far = outer[np.triu(same, 1)], outer[np.triu(~same, 1)]
    R = X - reconstruction_weights(X, k) @ X
    B = np.mean(near, axis=0) + alpha * R.T @ R / len(X)
    return np.mean(far, axis=0), B + ridge * np.trace(B) / len(B) * np.eye(len(B))


@pytest.mark.parametrize("seed", range(3))
def test_mfda_directions_satisfy_the_generalized_eigenproblem(seed):
    X, y = crowd(seed, m=5)
    model = MFDA(n_neighbors=4, structure_weight=0.7, ridge=0.02).fit(X, y)
    S, B = fisher_matrices(X, y, 0.7, 0.02, 4)
    W, ratios = model.directions_, model.ratios_
    assert np.allclose(S @ W, B @ W * ratios, rtol=0.0, atol=1e-8)
    assert np.allclose(W.T @ B @ W, np.eye(len(ratios)), rtol=0.0, atol=1e-8)
    assert np.all(np.diff(ratios) <= 0.0)
    assert model.metric_ == pytest.approx(W @ W.T)


@pytest.mark.parametrize("n_directions", [1, 2, 4])
def test_mfda_beats_random_competitors_in_its_own_criterion(n_directions):
    X, y = crowd(4, m=5)
    model = MFDA(n_directions=n_directions).fit(X, y)
    S, B = fisher_matrices(X, y, 1.0, 0.1, 5)

    def ratio_trace(W):
        return np.trace(np.linalg.solve(W.T @ B @ W, W.T @ S @ W))

    best = ratio_trace(model.directions_)
    assert best == pytest.approx(np.sum(model.ratios_))
    rng = np.random.default_rng(0)
    for _ in range(300):
        Q = np.linalg.qr(rng.normal(size=(5, n_directions)))[0]
        nearby = model.directions_ + 0.05 * rng.normal(size=(5, n_directions))
        assert ratio_trace(Q) <= best + 1e-9
        assert ratio_trace(nearby) <= best + 1e-9


def test_closed_form_mfda_of_one_dissimilar_pair():
    """S_D = vv' has rank one: w = B^-1 v / sqrt(v'B^-1 v), ratio v'B^-1 v."""
    X, _ = crowd(5)
    model = MFDA().fit(X, similar=[(0, 1)], dissimilar=[(0, 2)])
    labels = np.full(len(X), -1)
    labels[:3] = 0, 0, 1
    _, B = fisher_matrices(X, labels, 1.0, 0.1, 5)
    v = X[0] - X[2]
    solved = np.linalg.solve(B, v)
    assert model.ratios_ == pytest.approx([v @ solved])
    assert model.metric_ == pytest.approx(np.outer(solved, solved) / (v @ solved))


def test_mfda_listens_to_unlabeled_points_unless_the_structure_weighs_nothing():
    X, y = crowd(6)
    moved = X.copy()
    moved[-1] += 2.0
    for weight, listens in [(1.0, True), (0.0, False)]:
        model = MFDA(structure_weight=weight)
        change = model.fit(X, y).metric_ - model.fit(moved, y).metric_
        assert bool(np.linalg.norm(change) > 1e-6) == listens


def test_mfda_works_without_similar_pairs():
    X, _ = crowd(7)
    model = MFDA().fit(X, dissimilar=[(0, 1), (2, 3)])
    assert model.ratios_.shape == (2,)
    assert np.linalg.matrix_rank(model.metric_) == 2


class RecordedNCA(NeighborhoodComponentsAnalysis):
    """Scikit-learn's, which keeps a list of its fits: what it was given, and itself."""

    fits: ClassVar[list] = []

    def fit(self, X, y):
        self.fits.append((X, y, self))
        return super().fit(X, y)


def test_nca_is_scikit_learn_on_the_points_of_known_class(monkeypatch):
    """The same points, classes and settings go in and the same matrix comes out, of one run.

    Two runs may differ in the last bit, and then in the number of their iterations.
    """
    monkeypatch.setattr(nca, "NeighborhoodComponentsAnalysis", RecordedNCA)
    monkeypatch.setattr(RecordedNCA, "fits", [])
    drawn = load_sampling("iris", n_labeled=30, seed=1)
    names = np.array(["a", "b", "c"], dtype=object)
    labels = np.array([names[c] if c >= 0 else None for c in drawn.y], dtype=object)
    for y in (drawn.y, labels):
        model = NCA(max_iter=60, tol=1e-6).fit(drawn.X, y)
        X, classes, theirs = RecordedNCA.fits[-1]
        assert np.array_equal(X, drawn.X[drawn.labeled])
        assert np.array_equal(classes, drawn.y[drawn.labeled])
        defaults = NeighborhoodComponentsAnalysis().get_params()
        assert theirs.get_params() == {**defaults, "max_iter": 60, "tol": 1e-6}
        L = theirs.components_
        assert model.metric_ == pytest.approx(L.T @ L, rel=1e-12)
        assert model.n_iter_ == theirs.n_iter_
    assert len(RecordedNCA.fits) == 2


def wide_points(n, m, rank, seed=0):
    """n points of R^m that span `rank` directions, three classes, 12 known."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    centers = 2.0 * rng.normal(size=(3, rank))
    X = (rng.normal(size=(n, rank)) + centers[y]) @ np.linalg.qr(rng.normal(size=(m, rank)))[0].T
    return X, np.where(np.arange(n) < 12, y, -1)


@pytest.mark.parametrize("model", RIVALS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize(
    "shape",
    [(300, 196, 196), pytest.param((100, 196, 99), marks=pytest.mark.slow), (150, 30, 6)],
)
def test_many_features_and_points_of_a_subspace(model, shape):
    X, y = wide_points(*shape)
    with one_blas_thread():  # threads of BLAS that wait for each other count as processor time
        start = time.process_time()
        A = model.fit(X, y).metric_
        assert time.process_time() - start < 2.0  # ten times what MFDA takes
    assert np.all(np.isfinite(A))
    assert np.array_equal(A, A.T)
    assert np.linalg.eigvalsh(A)[0] >= -1e-10 * np.linalg.norm(A)
    if isinstance(model, LDM | MFDA):
        directions = principal_directions(X)
        assert directions.shape[1] <= shape[2]
        assert directions @ (directions.T @ A) == pytest.approx(A, abs=1e-9 * np.linalg.norm(A))
