"""Evidence that an instance is its name: anyone regenerates the same bits from it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seraph_cvx import penalties
from seraph_cvx.comparison.suite import SCALINGS, InstanceSpec, suite
from seraph_cvx.penalties import Diagonal, LinearConstraints, Ridge, TraceBound, UpperBound

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


def test_another_process_with_another_hash_seed_makes_the_same_bits():
    code = (
        "from seraph_cvx.comparison.suite import suite;"
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


def test_small_suite_has_what_was_promised():
    specs = suite("small")
    assert len(specs) == len({spec.name for spec in specs}) >= 12
    standardized = {spec.data for spec in specs if spec.scaling == "standard"}
    assert {"iris", "wine", "breast_cancer"} <= standardized
    assert {spec.data for spec in specs} == {"iris", "wine", "breast_cancer", "balance", "digits"}
    assert {spec.scaling for spec in specs} == set(SCALINGS)
    assert {spec.setting for spec in specs} == {"none", "post", "proj", "hyper"}
    assert all(spec.objective().attains_optimum for spec in specs)


def test_the_first_instance_is_trivial_and_another_is_not():
    first, second = (spec.objective() for spec in suite("small")[:2])
    assert first.critical_trace_weight < first.trace_weight
    assert second.critical_trace_weight > second.trace_weight


def test_full_suite_is_larger_and_every_name_is_read_back(monkeypatch):
    monkeypatch.delenv("SERAPH_CVX_DATA", raising=False)
    embedded = suite("full")
    monkeypatch.setenv("SERAPH_CVX_DATA", "somewhere")
    everything = suite("full")
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


def test_more_points_than_there_are():
    with pytest.raises(ValueError, match="150 points"):
        InstanceSpec("iris", 151).points()


def test_an_unknown_suite():
    with pytest.raises(ValueError, match="small"):
        suite("large")


def test_the_suite_of_penalties_has_each_of_them_twice():
    specs = suite("penalties")
    objectives = [spec.objective() for spec in specs]
    found = [type(block).__name__ for objective in objectives for block in objective.penalties]
    classes = {name: vars(penalties)[name] for name in penalties.__all__}
    offered = {name for name, kind in classes.items() if isinstance(kind, type)}
    offered = {name for name in offered if issubclass(classes[name], penalties.Penalty)}
    assert sorted(found) == sorted(2 * list(offered - {"Penalty", "Trace", "Manifold"}))
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
