"""More features than points: everything in the span of the points, and no m x m array unasked."""

import tracemalloc

import numpy as np
import pytest
from judge import Judge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from seraph_cvx import (
    SERAPH,
    MStepObjective,
    PairSet,
    alternate,
    certify,
    load_model,
    save_model,
    solve_m_step,
)


def wide_data(n=24, m=60, seed=0, kind="plain"):
    rng = np.random.default_rng(seed)
    classes = np.arange(n) % 3
    X = rng.normal(size=(n, m))
    X[:, :6] += 2.0 * rng.normal(size=(3, 6))[classes]
    if kind == "duplicates":
        X[3::4] = X[2::4]
    if kind == "constant features":
        X[:, ::5] = 1.5
    return X, np.where(np.arange(n) < 12, classes, -1)


def in_the_span(X):
    """The points in as many coordinates as they span dimensions: the same distances and twins."""
    centered = X - X.mean(axis=0)
    U, sizes, _ = np.linalg.svd(centered, full_matrices=False)
    kept = sizes > 1e-12 * sizes[0]
    _, first, number = np.unique(X, axis=0, return_index=True, return_inverse=True)
    return (U[:, kept] * sizes[kept])[first[number]]


def distances(Z):
    return np.linalg.norm(Z[:, None] - Z[None], axis=2)


SETTINGS = {
    "defaults": {},
    "identity": {"reference": "identity", "identity_share": 0.3},
    "no share": {"identity_share": 0.0},
    "labeled pairs alone": {"unlabeled_weight": 0.0},
}


@pytest.mark.filterwarnings("ignore::seraph_cvx.pairs.data_warnings.ScaleWarning")  # one unit
@pytest.mark.parametrize("kind", ["plain", "duplicates", "constant features"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_fit_is_that_of_the_points_in_coordinates_of_their_span(setting, kind):
    n = 24
    X, y = wide_data(n, 60, kind=kind)
    wide, narrow = (SERAPH(**SETTINGS[setting]).fit(P, y) for P in (X, in_the_span(X)))
    assert wide.status_ is narrow.status_
    assert wide.factor_.shape[1] <= min(n - 1, wide.components_.shape[0])
    rtol = 1e-6
    apart = distances(narrow.transform(in_the_span(X)))
    size = np.max(apart)
    np.testing.assert_allclose(distances(wide.transform(X)), apart, atol=rtol * size)
    assert wide.threshold_ == pytest.approx(narrow.threshold_, rel=10.0 * rtol)
    np.testing.assert_allclose(wide.components_.T @ wide.components_, wide.metric_, atol=1e-12)
    assert np.trace(wide.m_step_metric_) == pytest.approx(
        np.trace(narrow.m_step_metric_), rel=10.0 * rtol
    )
    assert wide.m_step_rank_ == narrow.m_step_rank_
    assert wide.is_mixed_ is narrow.is_mixed_ is (setting != "no share")


def test_direct_descends_in_the_span_too():
    X, y = wide_data()
    model = SERAPH(algorithm="direct").fit(X, y)
    assert model.status_.value == "stationary"
    off = np.eye(60) - np.linalg.pinv(X - X.mean(axis=0)) @ (X - X.mean(axis=0))
    assert np.max(np.abs(off @ model.factor_)) <= 1e-10 * np.max(np.abs(model.factor_))
    assert model.history_[-1] < model.history_[0]


def test_the_mixture_is_the_formula_on_the_span_of_the_points():
    X, y = wide_data()
    model = SERAPH(reference="identity", identity_share=0.3).fit(X, y)
    A, C = model.m_step_metric_, np.cov(X.T)
    formula = 0.7 * A + 0.3 * np.vdot(A, C) / np.trace(C) * np.eye(60)
    differences = X[:, None] - X[None]
    expected = np.einsum("abi,ij,abj->ab", differences, formula, differences)
    np.testing.assert_allclose(distances(model.transform(X)) ** 2, expected, rtol=1e-9, atol=1e-9)
    new = np.random.default_rng(1).normal(size=(5, 60))
    from_new = new[:, None] - X[None]  # off the span all training points are equally far
    beyond = np.einsum("abi,ij,abj->ab", from_new, formula - model.metric_, from_new)
    np.testing.assert_allclose(beyond, np.repeat(beyond[:, :1], len(X), axis=1), rtol=1e-9)


def test_no_matrix_of_all_features_is_made_unless_it_is_read(tmp_path):
    X, y = wide_data(20, 3_000)
    tracemalloc.start()
    model = make_pipeline(StandardScaler(), SERAPH()).fit(X, y)
    model.transform(X)
    model[-1].predict_pairs(X[[[0, 1], [2, 3]]])
    save_model(model, tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz")
    assert tracemalloc.get_traced_memory()[1] < 3_000 * 3_000 * 8 / 2
    tracemalloc.stop()
    assert "metric_" not in vars(model[-1])
    assert (tmp_path / "model.npz").stat().st_size < 3_000 * 3_000 * 8 / 20
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    np.testing.assert_array_equal(again[-1].metric_, model[-1].metric_)
    np.testing.assert_array_equal(again[-1].m_step_metric_, model[-1].m_step_metric_)
    save_model(model, tmp_path / "read.npz")  # not with the matrices that were read
    sizes = [(tmp_path / name).stat().st_size for name in ("model.npz", "read.npz")]
    assert sizes[0] == sizes[1]


def test_fewer_components_cut_the_factor_and_not_the_metric():
    X, y = wide_data()
    whole, cut = SERAPH().fit(X, y), SERAPH(n_components=2).fit(X, y)
    assert cut.components_.shape == (2, 60)
    np.testing.assert_array_equal(cut.components_, whole.components_[:2])
    np.testing.assert_array_equal(cut.metric_, whole.metric_)
    more = SERAPH(n_components=30).fit(X, y)
    assert more.transform(X).shape == (24, 30)
    assert not np.any(more.components_[23:])
    lengths = np.linalg.norm(whole.components_, axis=1)
    assert np.all(np.diff(lengths) <= 1e-12 * lengths[0])
    gram = whole.components_ @ whole.components_.T
    np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-12 * gram[0, 0])


@pytest.mark.parametrize("share", [0.0, "auto"])
def test_a_metric_that_is_zero_has_one_component(share):
    X, _ = wide_data(4, 9)
    with pytest.warns(UserWarning, match="The learned metric is zero"):
        model = SERAPH(identity_share=share, trace_weight=1e6).fit(X, [0, 0, 1, -1])
    np.testing.assert_array_equal(model.transform(X), np.zeros((4, len(model.components_))))
    assert len(model.components_) >= 1
    assert model.m_step_rank_ == 0
    assert not model.is_mixed_
    assert model.metric_.shape == (9, 9)


def test_a_fit_to_other_data_leaves_nothing_of_the_last_one():
    X, y = wide_data()
    model = SERAPH().fit(X, y)
    assert model.metric_.shape == (60, 60)
    model.fit(X[:, :5], y)
    assert model.metric_.shape == model.m_step_metric_.shape == (5, 5)
    assert not hasattr(model, "factor_")
    model.fit(X, y)
    assert model.metric_.shape == model.m_step_metric_.shape == (60, 60)


def test_the_certificate_is_of_the_points_as_they_are_given():
    """Balls, in the features themselves, enclose the optimum of the same M-step."""
    X, y = wide_data(10, 14)
    run = alternate(PairSet.from_labels(X, y), trace_weight=0.5, sharpness=2.0)
    again = MStepObjective(
        run.objective.pairs,
        previous_metric=np.asarray(run.objective.previous_metric),
        trace_weight=0.5,
        sharpness=2.0,
    )
    judge, certificate = Judge(again), certify(again, run.metric)
    value, bound = judge.value(certificate.factor), judge.lower_bound(certificate.factor)
    assert certificate.dual_value <= value <= certificate.primal_value
    assert value - bound <= 1e-8 * value
    assert certificate.relative_gap <= 1e-8
    original = run.m_step.certificate
    assert original.primal_value == pytest.approx(float(value), rel=1e-12)
    assert original.dual_value == pytest.approx(certificate.dual_value, rel=1e-9)


def test_an_m_step_of_many_features_is_solved_by_its_factor():
    X, y = wide_data(20, 2_000)
    tracemalloc.start()
    solution = solve_m_step(MStepObjective(PairSet.from_labels(X, y)))
    assert solution.status.value == "certified"
    assert tracemalloc.get_traced_memory()[1] < 2_000 * 2_000 * 8 / 2
    tracemalloc.stop()
    assert solution.metric.shape == (2_000, 2_000)
