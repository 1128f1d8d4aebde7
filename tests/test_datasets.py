"""Evidence: counts of the data sets, properties of the samplings, failure paths of the files."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from seraph_cvx.datasets import DATA_VARIABLE, load, load_sampling, sample

EMBEDDED = {
    "iris": (150, 4, [50, 50, 50]),
    "wine": (178, 13, [59, 71, 48]),
    "breast_cancer": (569, 30, [212, 357]),
    "balance": (625, 4, [49, 288, 288]),
}
FILES = {"ionosphere": (351, 34, [126, 225]), "diabetes": (768, 8, [500, 268])}


@pytest.mark.parametrize("name", EMBEDDED)
def test_counts_of_the_embedded_data_sets(name):
    n, m, per_class = EMBEDDED[name]
    X, y = load(name)
    assert X.shape == (n, m)
    assert np.bincount(y).tolist() == per_class


@pytest.mark.parametrize("name", FILES)
def test_counts_of_the_data_sets_in_files(name, data_folder):
    n, m, per_class = FILES[name]
    X, y = load(name, data_folder)
    assert X.shape == (n, m)
    assert np.bincount(y).tolist() == per_class
    assert np.all(np.isfinite(X))


def test_closed_form_balance_is_the_sign_of_the_torque():
    X, y = load("balance")
    assert len(np.unique(X, axis=0)) == 5**4
    assert set(np.unique(X)) == {1.0, 2.0, 3.0, 4.0, 5.0}
    torque = X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3]
    assert np.array_equal(np.sign(torque), np.choose(y, [0, 1, -1]))


def test_balance_enumerated_equals_balance_in_the_file(data_folder):
    X, y = load("balance")
    with (data_folder / "balance.csv").open(newline="", encoding="utf-8-sig") as file:
        _, *rows = csv.reader(file)
    assert np.array_equal(X, np.array([row[:-1] for row in rows], dtype=float))
    assert ["BLR"[label] for label in y] == [row[-1] for row in rows]


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "balance"])
@pytest.mark.parametrize("seed", range(3))
def test_properties_of_a_sampling(name, seed):
    X, y = load(name)
    drawn = load_sampling(name, seed=seed)
    assert drawn.X.shape == (100, X.shape[1])
    assert drawn.labeled.tolist() == [True] * 10 + [False] * 90
    assert set(drawn.y[:10]) == set(np.unique(y))
    assert drawn.X.mean(axis=0) == pytest.approx(np.zeros(X.shape[1]), abs=1e-12)
    assert drawn.X.std(axis=0) == pytest.approx(np.ones(X.shape[1]), abs=1e-12)
    assert len(drawn.X_test) == len(drawn.y_test) == len(X) - 100


def test_train_and_test_points_are_disjoint_and_together_all_points():
    """Each point is marked by its own number in an extra feature; the scaling is undone."""
    X, y = load("iris")
    marked = np.column_stack([X, np.arange(150.0)])
    drawn = sample("iris", marked, y, seed=4)
    marks = np.concatenate([drawn.X[:, -1], drawn.X_test[:, -1]])
    order = np.argsort(np.argsort(marks))
    assert sorted(order) == list(range(150))
    classes = np.concatenate([drawn.y[:10], drawn.y_test])
    whose = np.concatenate([order[:10], order[100:]])
    assert np.array_equal(classes, y[whose])


def test_a_sampling_depends_on_its_seed_alone():
    first, again, other = (load_sampling("wine", seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.X, again.X)
    assert not np.array_equal(first.X, other.X)


def test_the_input_of_a_sampling_is_not_modified():
    X, y = load("wine")
    before = X.copy(), y.copy()
    sample("wine", X, y)
    assert np.array_equal(X, before[0])
    assert np.array_equal(y, before[1])


def test_a_constant_feature_is_shifted_and_not_divided_by_zero():
    X, y = load("iris")
    X = np.column_stack([X, np.full(len(X), 0.1)])
    drawn = sample("iris", X, y)
    assert drawn.X[:, -1] == pytest.approx(np.zeros(100), abs=1e-12)
    assert drawn.X_test[:, -1] == pytest.approx(np.zeros(50), abs=1e-12)


def test_the_constant_feature_of_ionosphere_stays_finite(data_folder):
    drawn = load_sampling("ionosphere", n_labeled=20, data_dir=data_folder)
    assert np.all(np.isfinite(drawn.X))
    assert np.all(drawn.X[:, 1] == 0.0)


def test_string_classes_are_sampled_like_numbers():
    X, y = load("iris")
    names = np.array(["setosa", "versicolor", "virginica"])
    numbers, strings = sample("iris", X, y, seed=3), sample("iris", X, names[y], seed=3)
    assert strings.labeled.tolist() == numbers.labeled.tolist()
    assert strings.y[:10].tolist() == names[numbers.y[:10]].tolist()


def test_failure_path_unknown_data_set_names_the_known_ones():
    with pytest.raises(ValueError, match=r"no data set 'irises'.*iris, wine.*diabetes"):
        load("irises")


@pytest.mark.parametrize("name", FILES)
def test_failure_path_missing_file_is_named_with_its_cure(name, tmp_path, monkeypatch):
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    with pytest.raises(FileNotFoundError, match=rf"{name}\.csv.*data_dir or {DATA_VARIABLE}"):
        load(name)
    with pytest.raises(FileNotFoundError, match=rf"{tmp_path.name}.{name}\.csv"):
        load(name, tmp_path)


def test_the_environment_variable_names_the_folder(tmp_path, monkeypatch):
    (tmp_path / "diabetes.csv").write_text("a,b,label\n1,2.5,no\n3,4,yes\n", encoding="utf-8")
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    X, y = load("diabetes")
    assert X.tolist() == [[1.0, 2.5], [3.0, 4.0]]
    assert y.tolist() == [0, 1]


def test_failure_path_file_without_a_label_column(tmp_path):
    (tmp_path / "diabetes.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(ValueError, match="must be `label`"):
        load("diabetes", tmp_path)


@pytest.mark.parametrize("sizes", [(100, 2), (9, 10), (151, 10)])
def test_failure_path_sizes_that_cannot_be(sizes):
    with pytest.raises(ValueError, match="3 <= n_labeled <= n_points"):
        load_sampling("iris", *sizes)


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float64, bool])
def test_classes_of_any_number_type_leave_room_for_the_mark_of_an_unknown_one(dtype):
    rng = np.random.default_rng(0)
    drawn = sample("two", rng.normal(size=(20, 2)), np.array([0, 1] * 10).astype(dtype), 10, 4)
    assert drawn.y[4:].tolist() == [-1] * 6
    assert set(drawn.y[:4].tolist()) == {0, 1}
