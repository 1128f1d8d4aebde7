"""Evidence: counts and ranges of the data sets, samplings, failure paths."""

import numpy as np
import pytest

from seraph_cvx.datasets import DATA_VARIABLE, halve_images, load, load_sampling, sample

DATA = {
    "iris": (150, 4, [50, 50, 50], (0.1, 7.9)),
    "wine": (178, 13, [59, 71, 48], (0.13, 1680.0)),
    "breast_cancer": (569, 30, [212, 357], (0.0, 4254.0)),
    "digits": (1797, 64, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180], (0.0, 16.0)),
    "balance": (625, 4, [49, 288, 288], (1.0, 5.0)),
    "ionosphere": (351, 34, [126, 225], (-1.0, 1.0)),
    "diabetes": (768, 8, [500, 268], (0.0, 846.0)),
    "usps": (11_000, 64, [1100] * 10, (0.0, 255.0)),
    "mnist": (15_000, 196, [0, 3000, 0, 3000, 0, 3000, 0, 3000, 3000], (0.0, 255.0)),
}
"""The counts, and the natural ranges that the docstring of `load` promises."""
FILES = {"ionosphere": "csv", "diabetes": "csv", "usps": "npz", "mnist": "npz"}


@pytest.mark.parametrize("name", DATA)
def test_counts_and_ranges_are_those_that_are_promised(name, data_folder):
    if FILES.get(name) == "npz" and not (data_folder / f"{name}.npz").is_file():
        pytest.skip(f"no {name}.npz in {data_folder.name}")
    X, y = load(name, data_folder)
    n, m, per_class, (low, high) = DATA[name]
    assert X.shape == (n, m)
    assert np.bincount(y).tolist() == per_class
    assert (X.min(), X.max()) == (low, high)
    assert (X.dtype, y.dtype) == (np.float64, np.int64)


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "balance"])
def test_properties_of_a_sampling(name):
    X, y = load(name)
    drawn, same, other = (sample(name, X, y, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(X, load(name)[0])  # it is left as it was
    for again in (same, load_sampling(name, seed=1)):
        np.testing.assert_array_equal(drawn.X, again.X)
    assert not np.array_equal(drawn.X, other.X)
    assert drawn.labeled.tolist() == [True] * 10 + [False] * 90
    assert set(drawn.y[:10]) == set(y)
    np.testing.assert_allclose(drawn.X.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(drawn.X.std(axis=0), 1.0, rtol=1e-12)
    assert len(drawn.X_test) == len(drawn.y_test) == len(X) - 100


def test_train_and_test_points_are_disjoint_and_together_all_points():
    """Each point is marked by its own number in an extra feature; another feature is constant."""
    X, y = load("iris")
    marked = np.column_stack([X, np.full(150, 0.1), np.arange(150.0)])
    drawn = sample("iris", marked, y, seed=4)
    everything = np.vstack([drawn.X, drawn.X_test])
    rank = np.argsort(np.argsort(everything[:, -1]))  # the scaling is undone
    whose = np.concatenate([rank[:10], rank[100:]])
    assert np.array_equal(np.concatenate([drawn.y[:10], drawn.y_test]), y[whose])
    np.testing.assert_allclose(everything[:, -2], 0.0, atol=1e-12)


def test_an_image_file_comes_back_halved_with_whole_digits(tmp_path):
    image = np.zeros((16, 16))
    image[:2, :2] = [[10.0, 20.0], [30.0, 40.0]]
    np.savez(tmp_path / "usps.npz", X=image.reshape(1, 256), y=np.array([7.0]))
    X, y = load("usps", tmp_path)
    assert X.tolist() == [[25.0, *[0.0] * 63]]
    assert (y.tolist(), y.dtype) == ([7], np.int64)


@pytest.mark.parametrize("name", FILES)
def test_failure_path_missing_file_is_named_with_its_cures(name, tmp_path, monkeypatch):
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    file = f"{name}.{FILES[name]}"
    cures = rf"{file}.*data_dir or {DATA_VARIABLE}.*openml\.org/d/\d+.*fetch_openml"
    for folder in (None, tmp_path):
        with pytest.raises(FileNotFoundError, match=cures):
            load(name, folder)


def test_the_environment_variable_names_the_folder(tmp_path, monkeypatch):
    (tmp_path / "diabetes.csv").write_text('a,b,label\n1,2.5,"no"\n3,4,yes\n', encoding="utf-8")
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    X, y = load("diabetes")
    assert X.tolist() == [[1.0, 2.5], [3.0, 4.0]]
    assert y.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: load_sampling("irises"),
            r"no data set 'irises'.*iris, wine.*diabetes, usps, mnist",
        ),
        (lambda: load_sampling("iris", 100, 2), "3 <= n_labeled <= n_points"),
        (lambda: load_sampling("iris", 151, 10), "3 <= n_labeled <= n_points"),
        (lambda: halve_images(np.zeros((2, 15))), "Images of 15 pixels cannot be halved"),
        ({"X": np.zeros((3, 256))}, r"usps\.npz holds X; it must hold X and y"),
        ({"X": np.zeros((3, 64)), "y": np.zeros(3)}, r"shape \(3, 64\).*16 x 16 pixels"),
        ({"X": np.zeros((3, 256)), "y": np.zeros(2)}, r"y \(2,\).*one digit each"),
        ("a,b\n1,2\n", "is 'b'; it must be `label`"),
    ],
)
def test_failure_path_samplings_and_files_that_cannot_be(call, message, tmp_path):
    """A call, or what is in a file of images or a table."""
    if isinstance(call, dict):
        np.savez(tmp_path / "usps.npz", **call)
    elif isinstance(call, str):
        (tmp_path / "diabetes.csv").write_text(call, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        call() if callable(call) else load(
            "usps" if isinstance(call, dict) else "diabetes", tmp_path
        )
