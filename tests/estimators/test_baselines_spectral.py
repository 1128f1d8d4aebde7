"""Evidence: the rivals Euclidean, LDM, MFDA and NCA keep what their publications promise.

Bounds that hold, closed forms, independent optimizers, and scikit-learn's own checks.
"""

from __future__ import annotations

import time

import numpy as np
import pytest
from instances import random_pairs
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
from seraph_cvx.paper import differences, squared_distances


def crowd(seed, n=24, m=3, n_known=14):
    """Two overlapping classes, so that LDM's likelihood has a finite maximum."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) < n_known, np.arange(n) % 2, -1)
    X = rng.normal(size=(n, m)) + 0.8 * np.outer(y == 1, np.arange(m) == 0)
    return X, y


def naive_likelihood(metric, pairs):
    """L point by point, from the similar and dissimilar lists alone."""
    near, far = (
        np.bincount(
            rows.ravel(),
            np.repeat(np.exp(-squared_distances(pairs.points, rows, metric)), 2),
            minlength=pairs.n_points,
        )
        for rows in (pairs.similar, pairs.dissimilar)
    )
    has_both = (near > 0.0) & (far > 0.0)
    return np.sum(np.log(near[has_both] / (near + far)[has_both]))


def neighborhoods(pairs):
    directions = principal_directions(pairs.points)
    return Neighborhoods.of(pairs, directions), directions


def test_closed_form_euclidean_distances():
    X, y = crowd(0)
    pairs = np.stack([X[:5], X[5:10]], axis=1)
    expected = np.linalg.norm(X[:5] - X[5:10], axis=1)
    assert Euclidean().fit(X, y).pair_distance(pairs) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(4))
def test_formulas_agree_ldm_likelihood_and_the_sum_over_points_gradient_and_differences(seed):
    pairs = random_pairs(seed, n=15, m=4, n_labeled=30)
    neighbors, directions = neighborhoods(pairs)
    g = 0.2 + np.random.default_rng(seed).exponential(size=4)
    value, a, b = neighbors.likelihood(g)
    assert value == pytest.approx(
        naive_likelihood((directions * g) @ directions.T, pairs), rel=1e-10
    )
    steps = 1e-6 * np.eye(4)
    rises = [neighbors.likelihood(g + d)[0] - neighbors.likelihood(g - d)[0] for d in steps]
    assert b - a == pytest.approx(np.array(rises) / 2e-6, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("seed", range(20))
def test_the_ldm_bound_is_below_the_likelihood_and_touches_it(seed):
    rng = np.random.default_rng(seed)
    neighbors, _ = neighborhoods(random_pairs(seed, n=12, m=3, n_labeled=25))
    c, g = neighbors.distances(np.ones(3)).max(), rng.exponential(size=3)
    value, a, b = neighbors.likelihood(g)
    steps = [np.maximum(size * rng.normal(size=3), -g) for size in (1e-4, 1e-2, 1.0)]
    steps.append(1e-7 * rng.random(3))
    bounds = [np.sum(-a * d + b / c * (1.0 - np.exp(-c * d))) for d in steps]
    rises = [neighbors.likelihood(g + d)[0] - value for d in steps]
    assert np.all(np.array(bounds) <= np.array(rises) + 1e-12 * abs(value))
    assert bounds[-1] == pytest.approx(rises[-1], rel=1e-3, abs=1e-13)


@pytest.mark.parametrize("tol", [1e-3, 1e-6])
@pytest.mark.parametrize("data", [*range(6), "iris", "wine", "breast_cancer"])
def test_the_ldm_likelihood_never_falls_in_an_iteration(data, tol):
    if isinstance(data, str):
        drawn = load_sampling(data, seed=2)
        X, y, tol = drawn.X, drawn.y, 1e-3
    else:
        X, y = crowd(data)
    model = LDM(tol=tol).fit(X, y)
    assert model.n_iter_ == len(model.history_) >= 3
    assert np.all(np.diff(model.history_) >= 0.0)
    assert model.history_[-1] > model.history_[0]
    reached = naive_likelihood(model.metric_, PairSet.from_labels(X, y))
    assert reached == pytest.approx(model.history_[-1], rel=1e-9)


@pytest.mark.parametrize("seed", range(2))
def test_ldm_stops_where_rounding_hides_any_further_rise(seed):
    """A tolerance that no derivative can meet: it ends by itself, far below the limit."""
    with pytest.warns(ConvergenceWarning):
        model = LDM(tol=1e-300, max_iter=5000).fit(*crowd(seed))
    assert model.n_iter_ < 1000
    assert np.all(np.diff(model.history_) >= 0.0)
    assert model.history_[-1] >= LDM(tol=1e-6).fit(*crowd(seed)).history_[-1]


@pytest.mark.parametrize("n_axes", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_ldm_ends_where_no_eigenvalue_can_improve_alone(seed, n_axes):
    """A stationary point, seen by moving each eigenvalue up and down in the naive sum."""
    X, y = crowd(seed)
    pairs = PairSet.from_labels(X, y)
    model = LDM(principal_components=n_axes, tol=1e-9).fit(X, y)
    best = naive_likelihood(model.metric_, pairs)
    for change in [*(1e-2 * np.eye(n_axes)), *(-1e-2 * np.eye(n_axes))]:
        moved = np.maximum(0.0, model.eigenvalues_ + change)
        assert naive_likelihood((model.axes_ * moved) @ model.axes_.T, pairs) <= best + 1e-9


def test_ldm_axes_are_the_principal_components_of_labeled_and_unlabeled_points():
    X, y = crowd(2)
    model = LDM().fit(X, y)
    expected = PCA().fit(X).components_.T
    assert np.abs(model.axes_.T @ expected) == pytest.approx(np.eye(3), abs=1e-9)
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
    assert directions @ (directions.T @ basis) == pytest.approx(basis, abs=1e-10)
    spread = np.var(X @ directions, axis=0)
    assert np.all(np.diff(spread) <= 0.0)
    part = np.cumsum(spread)[1] / np.sum(spread)
    counts = {None: 3, part - 1e-9: 2, part + 1e-9: 3, 2: 2, 7: 3}
    assert {keep: principal_directions(X, keep).shape[1] for keep in counts} == counts


def test_lle_weights_solve_each_points_constrained_least_squares():
    """By the bordered (Lagrange) system of each point, and neighbors by plain sorting."""
    X = np.random.default_rng(1).normal(size=(18, 3))
    M = reconstruction_weights(X, n_neighbors=4)
    for x, row in zip(X, M, strict=True):
        near = np.argsort(np.linalg.norm(X - x, axis=1))[1:5]
        assert set(np.flatnonzero(row)) == set(near)
        system = np.ones((5, 5))
        system[4, 4] = 0.0
        gram = (X[near] - x) @ (X[near] - x).T
        system[:4, :4] = gram + 1e-3 * np.trace(gram) * np.eye(4)
        weights = np.linalg.solve(system, [0.0, 0.0, 0.0, 0.0, 1.0])[:4]
        assert row[near] == pytest.approx(weights, abs=1e-10)


def test_lle_weights_reproduce_points_between_their_neighbors_and_sum_to_one_where_they_coincide():
    X = np.arange(9.0)[:, None] * [[1.0, 2.0]]
    M = reconstruction_weights(X, n_neighbors=2)
    assert (M @ X)[1:-1] == pytest.approx(X[1:-1], abs=1e-9)
    for points in (np.zeros((4, 2)), [[0.0], [0.0], [0.0], [5.0]]):
        assert reconstruction_weights(points, 2).sum(axis=1) == pytest.approx(np.ones(4))


def fisher_matrices(X, y, alpha=1.0, ridge=0.1, k=5):
    """S_D and B of the MFDA docstring, in the features themselves."""
    pairs = PairSet.from_labels(X, y)
    near, far = (differences(X, rows) for rows in (pairs.similar, pairs.dissimilar))
    R = X - reconstruction_weights(X, k) @ X
    B = near.T @ near / len(near) + alpha * R.T @ R / len(X)
    return far.T @ far / len(far), B + ridge * np.trace(B) / len(B) * np.eye(len(B))


@pytest.mark.parametrize("n_directions", [1, 2, 4])
def test_mfda_directions_are_those_of_the_largest_generalized_eigenvalues(n_directions):
    X, y = crowd(n_directions, m=5)
    model = MFDA(4, 0.7, ridge=0.02, n_directions=n_directions).fit(X, y)
    S, B = fisher_matrices(X, y, 0.7, 0.02, 4)
    W, ratios = model.directions_, model.ratios_
    largest = np.sort(np.linalg.eigvals(np.linalg.solve(B, S)).real)[::-1]
    assert ratios == pytest.approx(largest[:n_directions])
    assert np.allclose(S @ W, B @ W * ratios, rtol=0.0, atol=1e-8)
    assert np.allclose(W.T @ B @ W, np.eye(n_directions), rtol=0.0, atol=1e-8)
    assert model.metric_ == pytest.approx(W @ W.T)


def test_closed_form_mfda_of_one_dissimilar_pair():
    """S_D = vv' has rank one: w = B^-1 v / sqrt(v'B^-1 v), ratio v'B^-1 v."""
    X, _ = crowd(5)
    model = MFDA().fit(X, similar=[(0, 1)], dissimilar=[(0, 2)])
    _, B = fisher_matrices(X, [0, 0, 1, *[-1] * 21])
    v = X[0] - X[2]
    solved = np.linalg.solve(B, v)
    assert model.ratios_ == pytest.approx([v @ solved])
    assert model.metric_ == pytest.approx(np.outer(solved, solved) / (v @ solved))
    without = MFDA().fit(X, dissimilar=[(0, 1), (2, 3)])  # similar pairs are not needed
    assert without.ratios_.shape == (np.linalg.matrix_rank(without.metric_),) == (2,)


@pytest.mark.parametrize(("weight", "listens"), [(1.0, True), (0.0, False)])
def test_mfda_listens_to_unlabeled_points_unless_the_structure_weighs_nothing(weight, listens):
    X, y = crowd(6)
    model = MFDA(structure_weight=weight)
    before = model.fit(X, y).metric_
    X[-1] += 2.0
    assert bool(np.linalg.norm(model.fit(X, y).metric_ - before) > 1e-6) == listens


def test_nca_is_scikit_learn_on_the_points_of_known_class(monkeypatch):
    """The same points, classes and settings go in and the same matrix comes out, of one run.

    Two runs may differ in the last bit, and then in the number of their iterations.
    """
    fits = []

    class Recorded(NeighborhoodComponentsAnalysis):
        def fit(self, X, y):
            fits.append((X, y, self))
            return super().fit(X, y)

    monkeypatch.setattr(nca, "NeighborhoodComponentsAnalysis", Recorded)
    drawn = load_sampling("iris", n_labeled=30, seed=1)
    names = np.array(["a", "b", "c", None], dtype=object)
    for y in (drawn.y, names[drawn.y]):
        model = NCA(max_iter=60, tol=1e-6).fit(drawn.X, y)
        X, classes, theirs = fits.pop()
        assert np.array_equal(X, drawn.X[drawn.labeled])
        assert np.array_equal(classes, drawn.y[drawn.labeled])
        defaults = NeighborhoodComponentsAnalysis().get_params()
        assert theirs.get_params() == {**defaults, "max_iter": 60, "tol": 1e-6}
        L = theirs.components_
        assert model.metric_ == pytest.approx(L.T @ L, rel=1e-12)
        assert model.n_iter_ == theirs.n_iter_
    assert not fits


@pytest.mark.parametrize("model", [Euclidean(), LDM(), MFDA(), NCA()])
@pytest.mark.parametrize(
    ("n", "m", "rank"),
    [(300, 196, 196), (150, 30, 6)],
)
def test_many_features_and_points_of_a_subspace(model, n, m, rank):
    """Three classes, twelve labels, in time that is ten times what MFDA takes."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    Z = rng.normal(size=(n, rank)) + 2.0 * rng.normal(size=(3, rank))[y]
    X = Z @ np.linalg.qr(rng.normal(size=(m, rank)))[0].T
    with one_blas_thread():  # threads of BLAS that wait for each other count as processor time
        start = time.process_time()
        A = model.fit(X, np.where(np.arange(n) < 12, y, -1)).metric_
        assert time.process_time() - start < 2.0
    assert np.all(np.isfinite(A))
    assert np.array_equal(A, A.T)
    size = np.linalg.norm(A)
    assert np.linalg.eigvalsh(A)[0] >= -1e-10 * size
    if isinstance(model, LDM | MFDA):
        directions = principal_directions(X)
        assert directions.shape[1] <= rank
        assert directions @ (directions.T @ A) == pytest.approx(A, abs=1e-9 * size)
