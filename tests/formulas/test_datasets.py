"""Evidence: counts and ranges of the data sets, samplings, OpenML's columns, failure paths."""

from __future__ import annotations

import csv
from urllib.error import URLError

import numpy as np
import pytest

from seraph_cvx.datasets import DATA_VARIABLE, halve_images, load, load_sampling, sample

EMBEDDED = {
    "iris": (150, 4, [50, 50, 50]),
    "wine": (178, 13, [59, 71, 48]),
    "breast_cancer": (569, 30, [212, 357]),
    "balance": (625, 4, [49, 288, 288]),
}
FILES = {"ionosphere": (351, 34, [126, 225]), "diabetes": (768, 8, [500, 268])}
IMAGES = {
    "usps": (11_000, 64, [1100] * 10),
    "mnist": (15_000, 196, [0, 3000, 0, 3000, 0, 3000, 0, 3000, 3000]),
}
RANGES = {
    "iris": (0.1, 7.9),
    "wine": (0.13, 1680.0),
    "breast_cancer": (0.0, 4254.0),
    "digits": (0.0, 16.0),
    "balance": (1.0, 5.0),
    "ionosphere": (-1.0, 1.0),
    "diabetes": (0.0, 846.0),
    "usps": (0.0, 255.0),
    "mnist": (0.0, 255.0),
}
"""The natural ranges that the docstring of `load` promises."""


@pytest.mark.parametrize("name", EMBEDDED)
def test_counts_of_the_embedded_data_sets(name):
    n, m, per_class = EMBEDDED[name]
    X, y = load(name)
    assert X.shape == (n, m)
    assert np.bincount(y).tolist() == per_class


def has(folder, name):
    """Skip where the folder was filled without the images."""
    if not (folder / f"{name}.npz").is_file():
        pytest.skip(f"no {name}.npz in {folder.name}")
    return folder


@pytest.mark.parametrize("name", [*FILES, *IMAGES])
def test_counts_of_the_data_sets_in_files(name, data_folder):
    n, m, per_class = (FILES | IMAGES)[name]
    if name in IMAGES:
        has(data_folder, name)
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


@pytest.mark.parametrize("name", RANGES)
def test_the_values_come_back_unscaled_in_the_promised_range(name, data_folder):
    if name in IMAGES:
        has(data_folder, name)
    X, y = load(name, data_folder)
    assert (X.min(), X.max()) == RANGES[name]
    assert X.dtype == np.float64
    assert y.dtype == np.int64
    low, high = RANGES[name]
    assert f"{low:g} to {high:g}" in " ".join(load.__doc__.split(f"``{name}``")[1].split()[:9])


@pytest.mark.parametrize(("name", "side"), [("usps", 16), ("mnist", 28)])
def test_images_are_halved_by_the_means_of_four_pixels(name, side, data_folder):
    X, y = load(name, has(data_folder, name))
    with np.load(data_folder / f"{name}.npz") as arrays:
        rows = np.arange(0, len(y), 997)
        images, digits = arrays["X"][rows].astype(float), arrays["y"][rows]
    images = images.reshape(-1, side, side)
    quarters = [images[:, i::2, j::2] for i in (0, 1) for j in (0, 1)]
    assert X[rows] == pytest.approx(sum(quarters).reshape(len(rows), -1) / 4.0)
    assert np.array_equal(y[rows], digits)


def test_a_sampling_of_images_is_standardized_like_any_other(data_folder):
    drawn = load_sampling("usps", n_points=60, n_labeled=30, data_dir=has(data_folder, "usps"))
    assert drawn.X.shape == (60, 64)
    assert np.all(np.abs(drawn.X.mean(axis=0)) < 1e-12)
    assert len(drawn.y_test) == 11_000 - 60


@pytest.mark.parametrize("pixels", [15, 9, 25])
def test_failure_path_images_that_cannot_be_halved(pixels):
    with pytest.raises(ValueError, match=f"Images of {pixels} pixels cannot be halved"):
        halve_images(np.zeros((2, pixels)))


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
    with pytest.raises(
        ValueError, match=r"no data set 'irises'.*iris, wine.*diabetes, usps, mnist"
    ):
        load("irises")


@pytest.fixture
def openml(monkeypatch):
    """A stand-in for `fetch_openml` that answers what it is given; no test meets the network."""
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    calls = []

    def answer_with(X, y):
        def fetch(**asked):
            calls.append(asked)
            if isinstance(X, Exception):
                raise X
            return X, np.asarray(y, dtype=object)

        monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
        return calls

    return answer_with


@pytest.mark.parametrize(
    ("name", "words", "data_id"),
    [
        ("ionosphere", {0: "b", 1: "g"}, 59),
        ("diabetes", {0: "tested_negative", 1: "tested_positive"}, 37),
    ],
)
def test_openml_tables_come_back_as_the_files_do(name, words, data_id, openml, data_folder):
    X, y = load(name, data_folder)
    calls = openml(X.astype(object), [words[c] for c in y])
    fetched, classes = load(name, download=True)
    assert np.array_equal(fetched, X)
    assert fetched.dtype == np.float64
    assert np.array_equal(classes, y)
    assert [call["data_id"] for call in calls] == [data_id]
    assert calls[0]["as_frame"] is False
    assert calls[0]["return_X_y"] is True


def test_openml_usps_comes_back_in_the_gray_values_and_digits_of_the_file(openml, data_folder):
    folder = has(data_folder, "usps")
    with np.load(folder / "usps.npz") as arrays:
        images, digits = arrays["X"][::50], arrays["y"][::50]
    calls = openml(images / 127.5 - 1.0, [str(d + 1) for d in digits.astype(int)])
    X, y = load("usps", download=True)
    in_file, digits_in_file = load("usps", folder)
    assert np.allclose(X, in_file[::50], rtol=0.0, atol=1e-9)
    assert np.array_equal(y, digits_in_file[::50])
    assert calls[0]["data_id"] == 41082


def test_openml_mnist_is_cut_to_the_images_of_the_file(openml, data_folder):
    folder = has(data_folder, "mnist")
    with np.load(folder / "mnist.npz") as arrays:
        images, digits, index = arrays["X"], arrays["y"], arrays["index"]
    X, y = np.zeros((70_000, 784), dtype=np.uint8), np.full(70_000, "4", dtype=object)
    y[index.max() + 1 :] = "7"  # more than the first 3000, and the test images
    X[index], y[index] = images, digits.astype(str)
    calls = openml(X, y)
    fetched, classes = load("mnist", download=True)
    in_file, digits_in_file = load("mnist", folder)
    assert np.array_equal(fetched, in_file)
    assert np.array_equal(classes, digits_in_file)
    assert calls[0]["data_id"] == 554


def test_an_image_file_comes_back_halved_with_whole_digits(tmp_path):
    image = np.zeros((16, 16))
    image[:2, :2] = [[10.0, 20.0], [30.0, 40.0]]
    np.savez(tmp_path / "usps.npz", X=image.reshape(1, 256), y=np.array([7.0]))
    X, y = load("usps", tmp_path)
    assert X.shape == (1, 64)
    assert X[0].tolist() == [25.0, *[0.0] * 63]
    assert y.tolist() == [7]
    assert y.dtype == np.int64


def test_closed_form_openml_usps_is_taken_to_gray_values_and_digits(openml):
    """There the pixels are in [-1, 1], and the label of the digit d is d + 1."""
    openml(np.array([[-1.0] * 256, [0.0] * 256, [1.0] * 256]), ["1", "6", "10"])
    X, y = load("usps", download=True)
    assert [sorted(set(row)) for row in X.tolist()] == [[0.0], [127.5], [255.0]]
    assert y.tolist() == [0, 5, 9]


def test_closed_form_openml_mnist_keeps_3000_training_images_of_each_of_five_digits(openml):
    """The gray value of an image tells its number; ones are plenty, threes few, fours not kept."""
    digits = np.repeat([1, 3, 4, 7], [3100, 5, 60_000 - 3105, 10])
    gray = (np.arange(len(digits)) % 251).astype(np.uint8)
    openml(np.broadcast_to(gray[:, None], (len(digits), 784)), digits.astype(str))
    X, y = load("mnist", download=True)
    kept = [*range(3000), *range(3100, 3105)]
    assert y.tolist() == [1] * 3000 + [3] * 5
    assert np.array_equal(X, np.repeat(gray[kept][:, None], 196, axis=1))


@pytest.mark.parametrize("installed", [True, False])
def test_openml_is_read_with_pandas_only_where_it_is_installed(installed, openml, monkeypatch):
    monkeypatch.setattr("seraph_cvx.datasets.find_spec", lambda name: installed or None)
    calls = openml(np.zeros((2, 8)), ["a", "b"])
    load("diabetes", download=True)
    assert calls[0]["parser"] == ("pandas" if installed else "liac-arff")


@pytest.mark.parametrize("name", [*FILES, *IMAGES])
def test_nothing_is_fetched_unless_asked_for(name, openml, data_folder):
    calls = openml(AssertionError("the network was touched"), None)
    with pytest.raises(FileNotFoundError):
        load(name)
    with pytest.raises(FileNotFoundError):
        load_sampling(name)
    if any(data_folder.glob(f"{name}.*")):
        load(name, data_folder, download=True)
    assert calls == []


def test_failure_path_openml_out_of_reach(openml):
    openml(URLError("no route to host"), None)
    with pytest.raises(ConnectionError, match=r"openml\.org/d/41082.*no route.*usps\.npz"):
        load("usps", download=True)


@pytest.mark.parametrize("name", [*FILES, *IMAGES])
def test_failure_path_missing_file_is_named_with_its_cures(name, tmp_path, monkeypatch):
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    file = f"{name}.csv" if name in FILES else f"{name}.npz"
    cures = rf"{file}.*data_dir or {DATA_VARIABLE}.*download=True.*openml\.org/d/\d+"
    with pytest.raises(FileNotFoundError, match=cures):
        load(name)
    with pytest.raises(FileNotFoundError, match=rf"{tmp_path.name}.{file}"):
        load(name, tmp_path)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.zeros((3, 256))}, r"usps\.npz holds X; it must hold X and y"),
        ({"X": np.zeros((3, 64)), "y": np.zeros(3)}, r"shape \(3, 64\).*16 x 16 pixels"),
        ({"X": np.zeros((3, 256)), "y": np.zeros(2)}, r"y \(2,\).*one digit each"),
    ],
)
def test_failure_path_image_file_of_another_form(arrays, message, tmp_path):
    np.savez(tmp_path / "usps.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        load("usps", tmp_path)


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
