"""Evidence: what an M-step decides by itself, and what it hands on instead of summing it again."""

from dataclasses import replace

import array_api_strict
import numpy as np
import pytest
from flint import acb_mat, arb, ctx
from high_precision import BITS, differences, moment
from instances import pair_lists, random_objective, random_pairs

from seraph_cvx import MStepObjective, PairSet, Status, certify, solve_m_step
from seraph_cvx.pairs.pair_set import supervise


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("seed", range(6))
def test_the_critical_trace_weight_is_zero_where_only_rounding_pulls(seed, scale):
    """Similar pairs alone, on a line in space: nothing pulls up, and two eigenvalues are zero."""
    rng = np.random.default_rng(seed)
    X = scale * np.outer(rng.normal(size=8), rng.normal(size=3))
    similar = np.column_stack(np.triu_indices(8, 1))
    objective = MStepObjective(PairSet.from_constraints(X, similar, []), unlabeled_weight=0.0)
    assert objective.critical_trace_weight == 0.0


@pytest.mark.parametrize(
    ("X", "similar", "pull"),
    [
        *(([[0.0, 0.0], [scale, 0.0]], [], scale**2) for scale in (1e-6, 1e-3, 1.0, 1e3)),
        ([[1e8, 1.0], [1e8, 0.0], [0.0, 0.0]], [(1, 2)], 1.0),  # down along the large one alone
    ],
)
def test_closed_form_the_critical_trace_weight_of_a_tiny_pull_is_not_zero(X, similar, pull):
    """One dissimilar pair: lambda = sigma(eta)*|v|^2 in its direction."""
    objective = MStepObjective(PairSet.from_constraints(X, similar, [(0, 1)]), unlabeled_weight=0)
    expected = pull / (1.0 + np.exp(-1.0))
    assert objective.critical_trace_weight == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("seed", range(40))
def test_the_critical_trace_weight_is_accurate_whatever_the_scales_of_the_features(seed):
    """Against the largest eigenvalue with 800 bits, for scales of 1e-8 to 1e8."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(3, 12)), int(rng.integers(1, 7))
    X = rng.normal(size=(n, m)) * 10.0 ** rng.uniform(-8, 8, size=m)
    rows = rng.permutation(np.column_stack(np.triu_indices(n, 1)))
    n_similar = int(rng.integers(0, len(rows)))
    pairs = PairSet.from_constraints(X, rows[:n_similar], rows[n_similar : n_similar + 2])
    mu = float(rng.choice([0.0, 1e-3, 0.5]))
    with ctx.workprec(BITS):
        C = moment(differences(X, pairs.labeled), np.ones(pairs.n_labeled))
        if mu > 0.0 and pairs.n_unlabeled:
            C += moment(differences(X, pairs.unlabeled), np.full(pairs.n_unlabeled, mu))
        P = C / (1 + arb(-1).exp())
        if n_similar:
            P -= moment(differences(X, pairs.similar), np.ones(n_similar))
        expected = max(float(root.real) for root in acb_mat(P).eig(algorithm="approx"))
    expected = expected if expected > 1e-200 else 0.0  # the truth is zero
    objective = MStepObjective(pairs, unlabeled_weight=mu)
    assert objective.critical_trace_weight == pytest.approx(expected, rel=1e-9, abs=0.0)


@pytest.mark.parametrize("setting", ["hyper", "proj"])
@pytest.mark.parametrize("q", ["streamed", "random", "start"])
def test_soft_labels_of_weight_zero_do_not_count_and_are_never_asked_for(setting, q):
    objective = random_objective(0, setting, q=q)
    assert objective.has_soft_labels == (setting == "hyper" and q != "start")
    if not objective.has_soft_labels:
        assert objective.soft_label_sums.total == 0.0


def test_given_soft_labels_are_summed_by_numpy():
    """They lie in a NumPy table, so that pairs of another library are summed by NumPy too."""
    on_numpy = random_pairs(0)
    points = array_api_strict.asarray(on_numpy.points)
    on_device = PairSet.from_constraints(points, on_numpy.similar, on_numpy.dissimilar)
    q = np.random.default_rng(0).random(on_numpy.n_unlabeled)
    with_table, without_table = MStepObjective(on_device, soft_labels=q), MStepObjective(on_device)
    assert with_table.sums.remote is None
    assert without_table.sums.remote is not None
    expected = MStepObjective(on_numpy, soft_labels=q).value(np.eye(4))
    assert with_table.value(np.eye(4)) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(
    ("scale", "too_large", "fine"), [(1e-150, 1e10, 1.0), (1e-100, 1e150, 1e90)]
)
def test_failure_path_a_trace_weight_that_overflows_in_the_unit_of_the_points(
    scale, too_large, fine
):
    pairs = PairSet.from_labels(scale * np.arange(8.0).reshape(4, 2), [0, 0, 1, -1])
    with pytest.raises(ValueError, match=r"trace_weight=.* is too large for a feature that varies"):
        MStepObjective(pairs, trace_weight=too_large)
    assert certify(MStepObjective(pairs, trace_weight=fine), np.zeros((2, 2))).relative_gap < 1.0
    apart = PairSet.from_labels(np.ones((4, 2)), [0, 0, 1, -1])
    assert MStepObjective(apart, trace_weight=too_large).trace_weight == too_large


@pytest.mark.parametrize(("scale", "weight"), [(1e83, 1e159), (1.0, 1e308), (1e-100, 1e308)])
def test_failure_path_weights_that_overflow_times_squared_distances(scale, weight):
    X, rows = scale * np.arange(12.0).reshape(6, 2) ** 2, ([(0, 1)], [(1, 2), (3, 4)])
    words = r"A confidence of up to .* is too large .* Divide all weights by one number"
    with pytest.raises(ValueError, match=words):
        PairSet.from_constraints(X, *rows, 1.0, weight)
    with pytest.raises(ValueError, match=words):
        supervise(X, None, *rows, weight, weight)
    pairs = PairSet.from_constraints(X, *rows)
    with pytest.raises(ValueError, match=r"unlabeled_weight=.* Divide all weights"):
        MStepObjective(pairs, unlabeled_weight=weight)


def test_failure_path_a_manifold_term_that_overflows_in_the_unit_of_the_points():
    X, rows = 1e-100 * np.arange(12.0).reshape(6, 2), ([(0, 1)], [(1, 2)])
    term = 1e300 * np.eye(2)
    with pytest.raises(ValueError, match=r"manifold_term\[0, 0\]=1e\+300 is too large"):
        MStepObjective(PairSet.from_constraints(X, *rows), manifold_term=term)
    heavy = PairSet.from_constraints(X, *rows, 1e300, 1e300)
    objective = MStepObjective(heavy, unlabeled_weight=0.0, trace_weight=0.0, manifold_term=term)
    assert certify(objective, np.zeros((2, 2))).relative_gap < 1.0


@pytest.mark.parametrize(("scale", "weight"), [(1.0, 1e300), (1e-100, 1e300), (1e83, 1e130)])
def test_large_weights_of_points_that_are_not_too_far_apart_are_certified(scale, weight):
    X, S, D, U = pair_lists(random_pairs(0))
    objective = MStepObjective(
        PairSet.from_constraints(scale * X, S, D, weight, weight),
        unlabeled_weight=weight,
        trace_weight=weight * scale * scale,
        soft_labels=np.full(len(U), 0.3),
    )
    assert solve_m_step(objective).status is Status.CERTIFIED


def test_an_objective_is_equal_to_itself_only():
    """Or to compare two would compare arrays; and they are keys of caches."""
    objective = random_objective(0, "other")
    assert len({objective, replace(objective)}) == 2
