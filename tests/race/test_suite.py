"""Evidence that an instance is its name: anyone regenerates the same bits from it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seraph_cvx import e_step, penalties
from seraph_cvx.penalties import Diagonal, LinearConstraints, Ridge, TraceBound, UpperBound
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


def test_checksums_of_the_small_suite():
    assert {spec.name: spec.checksum()[:16] for spec in suite("small")} == CHECKSUMS


@pytest.mark.slow
def test_another_process_with_another_hash_seed_makes_the_same_bits():
    code = (
        "from seraph_cvx.race.suite import suite;"
        "print(*[spec.checksum()[:16] for spec in suite('small')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONHASHSEED": "7", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == list(CHECKSUMS.values())


def test_every_instance_has_an_optimum_and_only_the_first_is_trivial():
    first, second, *others = (spec.objective() for spec in suite("small"))
    assert all(objective.attains_optimum for objective in (first, second, *others))
    assert first.critical_trace_weight < first.trace_weight
    assert second.critical_trace_weight > second.trace_weight


def test_grid_is_larger_and_every_name_is_read_back(monkeypatch):
    monkeypatch.delenv("SERAPH_CVX_DATA", raising=False)
    embedded = suite("grid")
    monkeypatch.setenv("SERAPH_CVX_DATA", "somewhere")
    everything = suite("grid")
    assert len(everything) > len(embedded) > 3 * len(suite("small"))
    assert {spec.data for spec in everything} - {spec.data for spec in embedded} == {
        "ionosphere",
        "diabetes",
    }
    assert all(InstanceSpec.parse(spec.name) == spec for spec in everything)


def test_an_instance_of_the_data_folder(data_folder):
    spec = InstanceSpec.parse("ionosphere-n40-l20-standard-hyper-w1-s0")
    assert spec.objective(data_folder).pairs.n_points == 40


@given(
    st.builds(
        InstanceSpec,
        data=st.sampled_from(["iris", "breast_cancer"]),
        n_points=st.integers(10, 99),
        scaling=st.sampled_from(SCALINGS),
        setting=st.sampled_from(["proj", "hyper"]),
        trace_weight=st.floats(1e-6, 1e6),
        seed=st.integers(0, 10**6),
        n_labeled=st.integers(3, 10),
        penalty=st.sampled_from(["", "diagonal", "ridge10", "sparse0.5", "linear2", "logdet3"]),
        soft=st.just(0.0),
    )
    | st.builds(
        InstanceSpec,
        data=st.sampled_from(["cloud5", "onehot3"]),
        n_points=st.integers(10, 99),
        scaling=st.sampled_from(SCALINGS),
        setting=st.just("hyper"),
        penalty=st.sampled_from(["", "manifold0.5", "trace2"]),
        soft=st.floats(1e-6, 1e6),
    )
)
def test_property_a_name_is_read_back_exactly(spec):
    assert InstanceSpec.parse(spec.name) == spec


@pytest.mark.parametrize("scaling", SCALINGS)
def test_scaling_does_what_it_says(scaling):
    X, y = InstanceSpec("wine", 50, scaling).points()
    assert X.shape == (50, 13)
    assert np.sum(y != -1) == 10
    assert len(np.unique(y[:10])) == 3
    if scaling == "standard":
        np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=1e-14)
        np.testing.assert_allclose(X.std(axis=0), 1.0, rtol=1e-13)
    elif scaling == "unit":
        np.testing.assert_array_equal(X.min(axis=0), 0.0)
        np.testing.assert_array_equal(X.max(axis=0), 1.0)


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
    last = {scaling: points[:, 3].copy() for scaling, points in X.items()}
    np.testing.assert_array_equal(last["collinear"], rounded[:, 0] + rounded[:, 1])
    np.testing.assert_array_equal(last["nearlycollinear"] - rounded[:, 0], rounded[:, 3] / 2**19)
    np.testing.assert_array_equal(last["outlier"], [*rounded[:-1, 3], 2.0**20])
    assert all(np.array_equal(points[:, :3], rounded[:, :3]) for points in X.values())


def test_soft_labels_of_an_instance_are_those_of_a_multiple_of_the_identity():
    spec = InstanceSpec.parse("iris-n20-rounded-hyper-w1-s0-soft0.5")
    objective = spec.objective()
    first = InstanceSpec.parse("iris-n20-rounded-hyper-w1-s0").objective()
    assert first.soft_labels is None
    expected = e_step(first.pairs, 0.5 * np.eye(4), unlabeled_weight=first.mu)
    np.testing.assert_allclose(objective.soft_labels, expected, atol=2.0**-11)
    assert np.any(objective.soft_labels > 0.1)
    for number in (*objective.soft_labels, objective.mu):
        assert (number * 1024).is_integer()
    assert objective.mu == pytest.approx(45 / 145, abs=2.0**-11)


@pytest.mark.parametrize(("data", "n_classes"), [("cloud4", 3), ("onehot4", 4)])
def test_generated_points_are_short_fractions_and_differ_by_seed(data, n_classes):
    X, y = generate(data, 12, seed=0)
    assert X.shape == (12, 4)
    assert len(np.unique(y)) == n_classes
    assert np.all(np.rint(X * 16) == X * 16)
    np.testing.assert_array_equal(X, generate(data, 12, seed=0)[0])
    assert not np.array_equal(X, generate(data, 12, seed=1)[0])


def test_a_constant_feature_is_only_shifted():
    X, _ = InstanceSpec("digits", 30, "standard").points()
    assert np.all(np.isfinite(X))
    np.testing.assert_array_equal(X[:, 0], 0.0)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("wine", "not the name of an instance"),
        ("wine-n40-metric-hyper-w1-s0", "scaling='metric'"),
        ("wine-n40-raw-super-w1-s0", "setting='super'"),
        ("wine-n40-raw-post-w1-s0", "no trace term"),
        ("wine-n40-raw-proj-w1-s0-soft1", "soft labels have no weight: use post or hyper"),
        ("wine-n40-raw-hyper-w1-s0-lasso1", "penalty='lasso1' is not known.*ridge"),
        ("wine-n40-raw-hyper-w1-s0-ridge", "penalty='ridge': write diagonal without a number"),
        ("wine-n40-raw-hyper-w1-s0-ridge0", "penalty='ridge0'"),
        ("wine-n40-raw-hyper-w1-s0-ridge1.2.3", "penalty='ridge1.2.3'"),
        ("wine-n40-raw-hyper-w1-s0-diagonal2", "penalty='diagonal2'"),
    ],
)
def test_a_wrong_name_is_answered_in_words(name, words):
    with pytest.raises(ValueError, match=words):
        InstanceSpec.parse(name)


def test_what_there_is_not_is_refused_in_words():
    with pytest.raises(ValueError, match="150 points"):
        InstanceSpec("iris", 151).points()
    with pytest.raises(ValueError, match="need 3 of them; there are 2"):
        InstanceSpec("cloud2", 20, "collinear").points()
    with pytest.raises(ValueError, match="cloud5"):
        generate("moon5", 12, seed=0)
    with pytest.raises(ValueError, match="small"):
        suite("large")


def test_the_suite_of_penalties_has_each_of_them_twice():
    specs = suite("penalties")
    objectives = [spec.objective() for spec in specs]
    names = [type(block).__name__ for objective in objectives for block in objective.penalties]
    others = {"Penalty", "PenaltyReport", "Trace", "Manifold", "check_penalty", "manifold_term"}
    assert sorted(names) == sorted(2 * list(set(penalties.__all__) - others))
    assert [InstanceSpec.parse(spec.name) for spec in specs] == specs
    assert all(objective.attains_optimum for objective in objectives)
    assert len({spec.checksum() for spec in specs}) == len(specs)


def test_the_penalty_of_an_instance_is_what_its_name_says():
    def block(word):
        (made,) = InstanceSpec.parse(f"iris-n30-standard-hyper-w1-s0-{word}").objective().penalties
        return made

    assert block("ridge10") == Ridge(10.0, prior=np.eye(4))
    assert block("diagonal") == Diagonal()
    assert block("tracebound0.5") == TraceBound(0.5)
    bound = block("upperbound0.5")
    assert isinstance(bound, UpperBound)
    np.testing.assert_allclose(np.linalg.eigvalsh(bound.bound), [0.5, 0.5, 0.5, 1.0])
    near = block("linear0.1")
    pairs = InstanceSpec.parse("iris-n30-standard-hyper-w1-s0").objective().pairs
    assert isinstance(near, LinearConstraints)
    assert near.bounds.tolist() == [0.1] * 5
    i, j = pairs.similar[0]
    v = pairs.points[i] - pairs.points[j]
    np.testing.assert_array_equal(near.matrices[0], np.outer(v, v))
