"""Evidence that an instance is its name: anyone regenerates the same bits from it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seraph_cvx import e_step, penalties
from seraph_cvx.penalties import Diagonal, Ridge, TraceBound
from seraph_cvx.race.instances import EXACT_SCALINGS, generate
from seraph_cvx.race.suite import SCALINGS, InstanceSpec, suite

CHECKSUMS = {
    "iris-n30-standard-hyper-w1000-s0": "80ec9f0f023aaa4d",
    "iris-n30-standard-proj-w1-s0": "83ceb7f33a96a28d",
    "iris-n30-standard-hyper-w1-s0": "80ab68c26c0baa3f",
    "iris-n30-standard-none-w0-s0": "557c9930c991758a",
    "balance-n40-standard-hyper-w1-s0": "e80d623b0c9a5921",
    "balance-n40-raw-proj-w0.1-s0": "555b85779334e55c",
    "iris-n60-standard-hyper-w1-s0": "816d21ba8676f625",
    "iris-n60-raw-hyper-w1-s0": "a4aee2bf1e8c8c5c",
    "iris-n40-l20-standard-post-w0-s0": "d5312efab6b280a0",
    "wine-n40-unit-hyper-w0.1-s0": "71634197f7722f25",
    "wine-n40-standard-hyper-w1-s0": "5fcd574d34c1acbe",
    "wine-n30-standard-hyper-w0.01-s0": "c2e7c1006e8dcc40",
    "wine-n30-raw-proj-w1-s0": "2d2646c453c65bff",
    "breast_cancer-n30-standard-proj-w1-s0": "6bbf209ec5d28178",
    "breast_cancer-n24-standard-hyper-w1-s0": "ffd85e52956e1b36",
    "digits-n20-l12-unit-proj-w1-s0": "71f1d7c429434b9f",
}
"""SHA-256 of name, X and y of the small suite, its first 16 digits."""


def test_checksums_of_the_small_suite_and_its_optima():
    """Each has an optimum, and only the first a trivial one."""
    specs = suite("small")
    assert {spec.name: spec.checksum()[:16] for spec in specs} == CHECKSUMS
    first, *others = (spec.objective() for spec in specs)
    assert all(objective.attains_optimum for objective in (first, *others))
    assert first.critical_trace_weight < first.trace_weight
    assert others[0].critical_trace_weight > others[0].trace_weight


def test_grid_is_larger_and_needs_the_data_folder_for_some(monkeypatch):
    monkeypatch.delenv("SERAPH_CVX_DATA", raising=False)
    embedded = suite("grid")
    monkeypatch.setenv("SERAPH_CVX_DATA", "somewhere")
    everything = suite("grid")
    assert len(embedded) > 3 * len(CHECKSUMS)
    others = {spec.data for spec in everything} - {spec.data for spec in embedded}
    assert others == {"ionosphere", "diabetes"}


def test_an_instance_of_the_data_folder(data_folder, monkeypatch):
    monkeypatch.setenv("SERAPH_CVX_DATA", str(data_folder))
    spec = InstanceSpec.parse("ionosphere-n40-l20-standard-hyper-w1-s0")
    assert spec.objective().pairs.n_points == 40


@given(
    st.builds(
        InstanceSpec,
        data=st.sampled_from(["iris", "breast_cancer", "cloud5"]),
        n_points=st.integers(10, 99),
        scaling=st.sampled_from(SCALINGS),
        setting=st.just("hyper"),
        trace_weight=st.floats(1e-6, 1e6),
        seed=st.integers(0, 10**6),
        n_labeled=st.integers(3, 10),
        penalty=st.sampled_from(["", "diagonal", "ridge10", "sparse0.5", "manifold3"]),
        soft=st.just(0.0) | st.floats(1e-6, 1e6),
    )
)
def test_property_a_name_is_read_back_exactly(spec):
    assert InstanceSpec.parse(spec.name) == spec


@pytest.mark.parametrize("scaling", ["standard", "unit", "raw"])
def test_scaling_does_what_it_says(scaling):
    X, y = InstanceSpec("wine", 50, scaling).points()
    assert X.shape == (50, 13)
    assert np.sum(y != -1) == 10
    assert len(np.unique(y[:10])) == 3
    if scaling == "standard":
        np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=1e-14)
        np.testing.assert_allclose(X.std(axis=0), 1.0, rtol=1e-13)
        pixels, _ = InstanceSpec("digits", 30, scaling).points()
        np.testing.assert_array_equal(pixels[:, 0], 0.0)  # a constant feature is only shifted
    elif scaling == "unit":
        np.testing.assert_array_equal([X.min(axis=0), X.max(axis=0)], [[0.0] * 13, [1.0] * 13])


def test_scalings_of_the_library_do_what_they_say():
    plain, _ = InstanceSpec("iris", 20, "standard").points()
    X = {scaling: InstanceSpec("iris", 20, scaling).points()[0] for scaling in EXACT_SCALINGS}
    rounded = X.pop("rounded")
    np.testing.assert_array_equal(rounded, np.round(plain * 16.0) / 16.0)
    for scaling in ("skewed6", "skewed12"):
        skewed = X.pop(scaling)
        spread = np.ptp(skewed, axis=0)
        assert np.log10(spread[-1] / spread[0]) == pytest.approx(float(scaling[6:]), abs=0.5)
        np.testing.assert_array_equal(np.frexp(skewed)[0], np.frexp(rounded)[0])
    last = {
        "collinear": rounded[:, 0] + rounded[:, 1],
        "nearlycollinear": rounded[:, 0] + rounded[:, 3] / 2**19,
        "outlier": [*rounded[:-1, 3], 2.0**20],
    }
    for scaling, column in last.items():
        np.testing.assert_array_equal(X[scaling], np.column_stack([rounded[:, :3], column]))
    assert X.keys() == last.keys()


def test_soft_labels_of_an_instance_are_those_of_a_multiple_of_the_identity():
    name = "iris-n20-rounded-hyper-w1-s0"
    objective, first = (InstanceSpec.parse(n).objective() for n in (f"{name}-soft0.5", name))
    assert first.soft_labels is None
    expected = e_step(first.pairs, 0.5 * np.eye(4), unlabeled_weight=first.mu)
    np.testing.assert_allclose(objective.soft_labels, expected, atol=2.0**-11)
    assert np.any(objective.soft_labels > 0.1)
    assert all((number * 1024).is_integer() for number in (*objective.soft_labels, objective.mu))
    assert objective.mu == pytest.approx(45 / 145, abs=2.0**-11)


@pytest.mark.parametrize(("data", "n_classes"), [("cloud4", 3), ("onehot4", 4)])
def test_generated_points_are_short_fractions_and_differ_by_seed(data, n_classes):
    X, y = generate(data, 12, seed=0)
    assert X.shape == (12, 4)
    assert len(np.unique(y)) == n_classes
    assert np.all(np.rint(X * 16) == X * 16)
    assert not np.array_equal(X, generate(data, 12, seed=1)[0])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("wine", "not the name of an instance"),
        ("wine-n40-metric-hyper-w1-s0", "scaling='metric'"),
        ("wine-n40-raw-super-w1-s0", "setting='super'"),
        ("wine-n40-raw-post-w1-s0", "no trace term"),
        ("wine-n40-raw-proj-w1-s0-soft1", "soft labels have no weight: use post or hyper"),
        ("wine-n40-raw-hyper-w1-s0-lasso1", "penalty='lasso1' is not known.*ridge"),
        ("wine-n40-raw-hyper-w1-s0-ridge0", "penalty='ridge0': write diagonal without a number"),
        ("wine-n40-raw-hyper-w1-s0-ridge1.2.3", "penalty='ridge1.2.3'"),
        ("wine-n40-raw-hyper-w1-s0-diagonal2", "penalty='diagonal2'"),
        ("iris-n151-raw-hyper-w1-s0", "150 points"),
        ("cloud2-n20-collinear-hyper-w1-s0", "need 3 of them; there are 2"),
    ],
)
def test_what_there_is_not_is_refused_in_words(name, words):
    with pytest.raises(ValueError, match=words):
        InstanceSpec.parse(name).points()
    with pytest.raises(ValueError, match="the known ones are tiny, small"):
        suite(name)


def test_the_suite_of_penalties_has_each_of_them_twice():
    specs = suite("penalties")
    objectives = [spec.objective() for spec in specs]
    names = [type(block).__name__ for objective in objectives for block in objective.penalties]
    others = {"Penalty", "PenaltyReport", "Trace", "Manifold", "check_penalty", "manifold_term"}
    assert sorted(names) == sorted(2 * list(set(penalties.__all__) - others))
    assert all(objective.attains_optimum for objective in objectives)


def test_the_penalty_of_an_instance_is_what_its_name_says():
    objectives = {
        word: InstanceSpec.parse(f"iris-n30-standard-hyper-w1-s0-{word}").objective()
        for word in ("ridge10", "diagonal", "tracebound0.5", "upperbound0.5", "linear0.1")
    }
    ridge, diagonal, trace, upper, near = (
        block for objective in objectives.values() for block in objective.penalties
    )
    assert [ridge, diagonal, trace] == [Ridge(10.0, prior=np.eye(4)), Diagonal(), TraceBound(0.5)]
    np.testing.assert_allclose(np.linalg.eigvalsh(upper.bound), [0.5, 0.5, 0.5, 1.0])
    assert near.bounds.tolist() == [0.1] * 5
    pairs = objectives["linear0.1"].pairs
    v = np.subtract(*pairs.points[pairs.similar[0]])
    np.testing.assert_array_equal(near.matrices[0], np.outer(v, v))
