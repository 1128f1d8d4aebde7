"""Evidence: GDM, ITML, LMNN against their CVXPY statements, closed forms, duality, invariance."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from itertools import product

import cvxpy as cp
import numpy as np
import pytest
from instances import random_pairs, random_psd
from scipy.spatial.distance import pdist, squareform
from sklearn.base import clone

from seraph_cvx import NotCertified, PairSet
from seraph_cvx.baselines.gdm import GDM, GDMProblem, solve_gdm
from seraph_cvx.baselines.itml import ITML, ITMLProblem, extend_by_identity, solve_itml
from seraph_cvx.baselines.lmnn import LMNN, LMNNProblem, TargetCoordinates, solve_lmnn
from seraph_cvx.baselines.rival import solve_statement
from seraph_cvx.datasets import load_sampling
from seraph_cvx.paper import differences, squared_distances

RIVALS = [GDM, ITML, LMNN]
SOLVERS = {GDMProblem: solve_gdm, ITMLProblem: solve_itml, LMNNProblem: solve_lmnn}
of_rivals = pytest.mark.parametrize("rival", RIVALS)


def random_labels(seed, n, m, n_classes, separation=1.0):
    """Gaussian classes in turn, their centers Gaussian too."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return rng.normal(size=(n, m)) + separation * rng.normal(size=(n_classes, m))[y], y


DRAWN = {"iris": {"n_points": 50, "seed": 3}, "breast_cancer": {"n_labeled": 45, "seed": 1}}


def labeled_instance(name):
    """X, y by a name of DRAWN or the arguments of `random_labels`."""
    if name not in DRAWN:
        return random_labels(*name)
    drawn = load_sampling(name, **DRAWN[name])
    return drawn.X, drawn.y


def problem_of(rival, X, y, **parameters):
    if rival is LMNN:
        return LMNNProblem.from_labels(X, y, **parameters)
    return {GDM: GDMProblem, ITML: ITMLProblem}[rival](PairSet.from_labels(X, y), **parameters)


def solve(problem, *options, **more):
    return SOLVERS[type(problem)](problem, *options, **more)


@of_rivals
def test_an_estimator_keeps_its_metric_objective_and_iterations_and_agrees_with_clarabel(rival):
    X, y = random_labels(4, 12, 3, 3)
    own = rival(n_components=2).fit(X, y)
    learned = {name for name in vars(own) if name.endswith("_")}
    assert learned == {"metric_", "components_", "objective_", "n_iter_", "n_features_in_"}
    assert vars(own).keys() - learned == own.get_params().keys()
    assert own.components_.shape == (2, 3)
    assert np.linalg.eigvalsh(own.metric_)[0] >= -1e-12
    conic = rival(solver="CLARABEL", tol=1e-4).fit(X, y)
    assert conic.objective_ == pytest.approx(own.objective_, rel=1e-4)
    assert conic.metric_ == pytest.approx(own.metric_, rel=0.02, abs=0.02)
    assert min(own.n_iter_, conic.n_iter_) >= 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("rival", "parameters"),
    [(GDM, {}), (ITML, {"gamma": 0.7}), (LMNN, {"n_neighbors": 2, "push_weight": 0.3})],
)
def test_formulas_agree_numpy_and_cvxpy(rival, parameters, seed):
    """With the best slacks, which keep the constraints."""
    A = random_psd(np.random.default_rng(seed), 3, rank=3)
    problem = problem_of(rival, *random_labels(seed, 9, 3, 3), **parameters)
    statement = problem.state()
    assert statement.is_dcp()
    statement.var_dict["A"].value = A
    if rival is not GDM:  # whose constraint a random A need not keep
        slacks = problem.slacks(A) if rival is ITML else np.maximum(problem.margins(A), 0.0)
        statement.var_dict["xi"].value = slacks
        assert max(np.max(c.violation()) for c in statement.constraints) <= 1e-10
    assert problem.value(A) == pytest.approx(float(statement.objective.value), rel=1e-10)


def assert_agrees(problem):
    """Our value is the conic solver's to 1e-4, whatever it says of itself, and proved."""
    solution = solve(problem)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        conic = float(problem.state().solve(solver="CLARABEL"))
    assert solution.value == pytest.approx(conic, rel=1e-4, abs=1e-6)
    assert solution.relative_gap <= (1e-5 if isinstance(problem, LMNNProblem) else 1e-6)
    if isinstance(problem, GDMProblem):
        constraint = np.vdot(problem.similar_moment, solution.metric)
        assert constraint == pytest.approx(1.0, rel=1e-10)


AGREEMENT = {
    GDM: ("ridge", (0.0, 1e-3, 0.1), [(0, 10, 4, 3), (1, 15, 3, 2, 0.3), (2, 18, 6, 3, 2.0)]),
    ITML: ("gamma", (0.1, 1.0, 10.0), [(0, 8, 3, 2), (1, 12, 4, 3, 0.3), (2, 9, 5, 3, 2.0)]),
    LMNN: ("push_weight", (0.2, 0.5, 0.8), [(0, 10, 3, 3), (1, 14, 4, 2, 0.3), (2, 15, 5, 3, 0.7)]),
}
"""Of each: a parameter, its values, and instances."""

CASES = [
    (rival, instance, {parameter: value})
    for rival, (parameter, values, instances) in AGREEMENT.items()
    for instance, value in product([*instances, "iris"], values)
]
FAST = [case for case in CASES if case[0] is not LMNN]
FAST += [case for case in CASES if case[0] is LMNN][:8:4]
SLOW = [case for case in CASES if case not in FAST]
SLOW += [
    (rival, (seed, 24, 7, 3, 0.3 + 0.2 * seed), {}) for rival, seed in product(RIVALS, (0, 4, 8))
]


@pytest.mark.parametrize(
    ("rival", "instance", "parameters"),
    [*FAST, *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)],
)
def test_solver_agreement(rival, instance, parameters):
    assert_agrees(problem_of(rival, *labeled_instance(instance), **parameters))


@pytest.mark.parametrize("seed", range(4))
def test_solver_agreement_gdm_from_constraints(seed):
    assert_agrees(GDMProblem(random_pairs(seed, n=30, m=4, n_labeled=30)))


@pytest.mark.parametrize(
    ("instance", "gamma"), [((0, 8, 3, 2), 0.3), ("iris", 1.0), ((3, 9, 9, 3), 4.0)]
)
def test_solver_agreement_itml_by_the_publications_projections(instance, gamma):
    problem = problem_of(ITML, *labeled_instance(instance), gamma=gamma)
    by_projections = solve(problem, "bregman", tol=1e-6, max_iter=2000)
    by_descent = solve(problem, tol=1e-6)
    assert by_projections.relative_gap <= 1e-6
    assert by_projections.value == pytest.approx(by_descent.value, rel=2e-6)
    assert by_projections.metric == pytest.approx(by_descent.metric, rel=0.01, abs=0.01)


@pytest.mark.slow
@of_rivals
@pytest.mark.parametrize(("n", "m", "n_classes"), [(60, 64, 10), (40, 196, 2), (20, 64, 10)])
def test_the_benchmarks_shapes_are_certified_at_the_defaults(rival, n, m, n_classes):
    """Warnings are errors here: a gap that is not closed would raise one."""
    model = rival().fit(*random_labels(5, n, m, n_classes))
    assert np.all(np.isfinite(model.metric_))


@pytest.mark.slow
@pytest.mark.parametrize(
    "instance", [(0, 40, 36, 2), (1, 40, 20, 5), (0, 40, 14, 3, 0.5), "breast_cancer"]
)
def test_lmnn_is_certified_where_its_margins_are_stiff(instance):
    """Hardly more points than features, or a metric of low rank that the descent must find."""
    problem = problem_of(LMNN, *labeled_instance(instance))
    assert not np.any(TargetCoordinates.of(problem).is_free)
    assert solve(problem).relative_gap <= 1e-5


@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_closed_form_gdm_of_one_dissimilar_pair(ridge):
    """A = C^-1 vv' C^-1 / (v' C^-1 v), objective sqrt(v' C^-1 v)."""
    X = np.random.default_rng(0).normal(size=(8, 3))
    pairs = PairSet.from_constraints(X, [(0, 1), (1, 2), (3, 4), (5, 6)], [(0, 7)])
    V = differences(X, pairs.similar)
    C = V.T @ V
    C += ridge * np.trace(C) / 3.0 * np.eye(3)
    u = np.linalg.solve(C, X[0] - X[7])
    solution = solve(GDMProblem(pairs, ridge), tol=1e-12)
    assert solution.metric == pytest.approx(np.outer(u, u) / (u @ C @ u), rel=1e-5, abs=1e-8)
    assert solution.value == pytest.approx(np.sqrt(u @ C @ u), rel=1e-10)


@pytest.mark.parametrize("gamma", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("solver", ["descent", "bregman"])
@pytest.mark.parametrize("is_similar", [True, False])
def test_closed_form_itml_of_one_violated_pair(gamma, solver, is_similar):
    """A = I + (a - 1) vv'/|v|^2 with a = (1 + gamma) / (1 + gamma |v|^2 / xi0)."""
    X = np.array([[0.0, 0.0, 1.0], [1.0, 2.0, 1.0], [4.0, 0.0, 3.0]])
    bounds = (2.0, 9.0)  # |v|^2 = 5: too long for a similar pair, too short for a dissimilar one
    pairs = PairSet.from_constraints(X, *([(0, 1)], [])[:: 1 if is_similar else -1])
    v = X[1] - X[0]
    a = (1.0 + gamma) / (1.0 + gamma * 5.0 / bounds[0 if is_similar else 1])
    expected = np.eye(3) + (a - 1.0) * np.outer(v, v) / 5.0
    found = solve(ITMLProblem(pairs, gamma, bounds), solver, tol=1e-10)
    assert found.metric == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("solver", ["descent", "bregman"])
def test_closed_form_itml_is_euclidean_where_that_keeps_the_bounds(solver):
    X, y = random_labels(0, 9, 3, 3)
    squares, same = squareform(pdist(X, "sqeuclidean")), y[:, None] == y
    bounds = (squares[same].max() + 0.1, squares[~same].min() - 0.1)
    solution = solve(problem_of(ITML, X, y, bounds=bounds), solver)
    assert solution.metric == pytest.approx(np.eye(3), abs=1e-12)
    assert solution.value == pytest.approx(0.0, abs=1e-12)


def test_itml_bounds_are_percentiles_of_all_pairs_and_equal_points_do_not_count():
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = np.where(np.arange(30) < 6, np.arange(30) % 2, -1)
    for times in (1, 2):
        problem = problem_of(ITML, np.repeat(X, times, axis=0), np.repeat(y, times))
        near, far = np.percentile(np.repeat(pdist(X, "sqeuclidean"), times**2), [5, 95])
        assert problem.targets == pytest.approx(np.where(problem.signs > 0.0, near, far))


@pytest.mark.parametrize("seed", range(4))
def test_closed_form_lmnn_on_a_line(seed):
    """A convex piecewise linear function of one number is least at 0 or at a corner."""
    problem = problem_of(LMNN, *random_labels(seed, 14, 1, 3))
    room = np.square(problem.far) - np.square(problem.near)
    corners = np.concatenate([[0.0], 1.0 / room[room > 0.0]])
    least = min(problem.value(np.array([[corner]])) for corner in corners)
    assert solve(problem).value == pytest.approx(least, rel=2e-5)


def test_lmnn_targets_and_triples_against_loops():
    X, y = random_labels(3, 11, 2, 4)  # the last class has two points
    y[2] = 9  # and this one is alone
    problem, expected = problem_of(LMNN, X, y), []
    for i, squares in enumerate(squareform(pdist(X))):
        expected += [(i, j) for j in np.argsort(squares).tolist() if y[j] == y[i] and j != i][:3]
    assert sorted(map(tuple, problem.target_pairs.tolist())) == sorted(expected)
    triples = [(i, j, k) for i, j in expected for k in range(11) if y[k] != y[i]]
    assert sorted(map(tuple, problem.triples.tolist())) == sorted(triples)
    assert 2 not in problem.target_pairs
    assert 2 in problem.triples[:, 2]


def test_lmnn_ignores_points_of_unknown_class():
    X, y = random_labels(1, 9, 2, 3)
    more = np.vstack([X, np.random.default_rng(0).normal(size=(5, 2))])
    with_unknown = LMNN().fit(more, np.append(y, np.full(5, -1)))
    assert np.array_equal(with_unknown.metric_, LMNN().fit(X, y).metric_)


def test_closed_form_lmnn_with_more_features_than_points():
    """The least value is 0: points linked by target neighbors fall together, classes do not."""
    problem = problem_of(LMNN, *random_labels(2, 12, 20, 3))
    assert np.all(TargetCoordinates.of(problem).is_free)
    solution = solve(problem)
    assert solution.value == pytest.approx(0.0, abs=1e-9)
    assert solution.bound == 0.0
    lengths = squared_distances(problem.points, problem.target_pairs, solution.metric)
    assert lengths.max() <= 1e-12
    assert problem.margins(solution.metric).max() == pytest.approx(0.0, abs=1e-9)


def test_lmnn_free_triples_cost_nothing_and_the_others_are_learned():
    """One class apart along an axis of its own: what is left is the problem of the others."""
    X, y = random_labels(0, 10, 2, 2)
    apart = np.array([[0.3, 0.4, 2.0], [0.1, 0.5, 2.0]])
    both = np.vstack([np.column_stack([X, np.zeros(10)]), apart])
    problem = problem_of(LMNN, both, np.append(y, [2, 2]))
    is_free = TargetCoordinates.of(problem).is_free
    assert np.array_equal(is_free, (problem.triples[:, [0, 2]] >= 10).any(axis=1))
    assert_agrees(problem)


@pytest.mark.parametrize("seed", range(3))
def test_weak_duality_no_bound_is_beyond_a_value(seed):
    """Bounds at random points of the duals, and values at random metrics, of all three."""
    rng = np.random.default_rng(seed)
    gdm = problem_of(GDM, *random_labels(seed, 12, 4, 3))
    itml = problem_of(ITML, *random_labels(seed, 10, 3, 3), gamma=0.5)
    lmnn = problem_of(LMNN, *random_labels(seed, 10, 3, 3))
    most, least, least_lmnn = (
        solve(gdm, tol=1e-9).proven_value,
        *(solve(problem).proven_value for problem in (itml, lmnn)),
    )
    assert gdm.upper_bound(np.zeros((4, 4))) == np.inf
    coordinates = TargetCoordinates.of(lmnn)
    for scale in (1.0, 0.1, 0.1, 0.01, 0.01, 0.001, 0.001):
        assert gdm.upper_bound(random_psd(rng, 4, rank=4)) >= most
        multipliers = 0.1 * scale * rng.exponential(size=len(itml.vectors))
        assert itml.lower_bound(multipliers) <= least
        A = random_psd(rng, 3, rank=3)
        assert itml.value_from_above(A) == pytest.approx(itml.value(A), rel=1e-9)
        assert itml.value(A) >= itml.lower_bound(itml.multipliers(A))
        z = rng.uniform(0.0, 0.5 * scale, size=len(lmnn.triples))
        assert 0.0 < coordinates.lower_bound(z) <= least_lmnn
        L = coordinates.factor(A)
        value = 0.5 * np.trace(A) + 0.5 * np.sum(np.maximum(coordinates.margins(A), 0.0))
        assert lmnn.value(L @ L.T) == pytest.approx(value, rel=1e-9)
        assert lmnn.value_from_above(L) == pytest.approx(value, rel=1e-9)


MIX = np.random.default_rng(1).normal(size=(4, 4)) * [1e-3, 1.0, 10.0, 1e3]
ROTATION = np.linalg.qr(MIX)[0]


@pytest.mark.parametrize(
    ("model", "change", "shift"),
    [
        *((rival(), 1e3 * ROTATION, 1e8) for rival in (GDM, LMNN)),
        (ITML(), ROTATION, 1e5),
        (GDM(ridge=0.0), MIX, 0.0),
    ],
)
def test_a_rotation_a_shift_and_a_unit_of_the_points_change_the_metric_alike(model, change, shift):
    """And without a ridge, GDM does not depend on the units of single features."""
    X, y = random_labels(1, 12, 4, 3)
    plain, changed = clone(model).fit(X, y), model.fit(X @ change + shift, y)
    assert changed.objective_ == pytest.approx(plain.objective_, rel=1e-5)
    largest = np.abs(plain.metric_).max()
    assert change @ changed.metric_ @ change.T == pytest.approx(plain.metric_, abs=0.01 * largest)


@pytest.mark.parametrize("model", [GDM(), GDM(ridge=0.0), ITML(), LMNN()])
def test_points_in_a_plane_are_learned_from_as_points_of_the_plane(model):
    """Of R^5: the metric of a vector outside of it is 0, or the Euclidean one."""
    X, y = random_labels(0, 8, 2, 2)
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(5, 2)))[0]
    is_open = isinstance(model, LMNN) or model.get_params().get("ridge") == 0.0
    flat = clone(model).fit(X, y)
    # rounded, the points are in no plane
    with pytest.warns(NotCertified) if is_open else nullcontext():
        raised = model.fit(X @ Q.T + 7.0, y)
    if model.get_params().get("ridge", 0.0) == 0.0:  # a share of the mean over all features
        assert raised.objective_ == pytest.approx(flat.objective_, rel=2e-5)
    v = rng.normal(size=5)
    v -= Q @ (Q.T @ v)
    expected = v @ v if isinstance(model, ITML) else 0.0
    assert v @ raised.metric_ @ v == pytest.approx(expected, abs=1e-9)


def test_gdm_is_unbounded_without_a_ridge_and_grows_as_its_inverse_root():
    X, y = random_labels(0, 8, 10, 2)
    for solver in ("power", "CLARABEL"):
        with pytest.raises(ValueError, match=r"GDM is unbounded, as far.*Use ridge > 0"):
            GDM(ridge=0.0, solver=solver).fit(X, y)
    tiny, tinier = (GDM(ridge=ridge).fit(X, y).objective_ for ridge in (1e-8, 1e-10))
    assert tinier / tiny == pytest.approx(10.0, rel=1e-3)


def test_failure_path_itml_equal_points():
    X = [[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [3.0, 1.0]]
    with pytest.warns(UserWarning, match="Points 0 and 1 are dissimilar but equal") as caught:
        model = ITML().fit(X, [0, 1, 0, 1])
    without = ITML().fit(X, similar=[(0, 2), (1, 3)], dissimilar=[(0, 3), (1, 2), (2, 3)])
    assert np.array_equal(model.metric_, without.metric_)
    assert {warning.filename for warning in caught} == {__file__}


def test_failure_path_a_statement_without_a_solution_is_said_to_have_none():
    A = cp.Variable((2, 2), PSD=True, name="A")
    problem = cp.Problem(cp.Minimize(cp.trace(A)), [A[0, 0] <= -1.0])
    with pytest.raises(RuntimeError, match=r"CLARABEL returned no matrix \(infeasible\): use"):
        solve_statement(problem, "CLARABEL")


def test_itml_a_metric_near_the_boundary_costs_much_and_is_not_lost_beside_the_identity():
    """At distance 0 a multiplier is infinite, without a warning."""
    problem = ITMLProblem(random_pairs(2, n=8, m=1, n_labeled=6))
    assert [problem.value(np.array([[a]])) for a in (0.0, -1e-3)] == [np.inf, np.inf]
    assert np.isfinite(problem.value(np.eye(1)))
    assert extend_by_identity(np.array([[-1.0]]), np.array([[1e-19]])) == 1e-19
    multipliers = problem.multipliers(np.zeros((1, 1)))
    assert np.array_equal(np.isinf(multipliers), problem.signs < 0.0)
    assert problem.lower_bound(multipliers) == 0.0
