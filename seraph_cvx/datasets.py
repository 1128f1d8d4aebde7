"""Loads data sets, and draws random samplings of them as the paper does (Section 5.1)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

DATA_VARIABLE = "SERAPH_CVX_DATA"
"""The environment variable with the folder of data files that are not embedded."""


@dataclass(frozen=True, eq=False)
class Sampling:
    """A random sampling: training points with few labels (-1 = unknown), and test points.

    Examples
    --------
    >>> import numpy as np
    >>> from seraph_cvx.datasets import Sampling
    >>> X, y = np.array([[0.0], [0.2], [2.0]]), np.array([0, -1, 1])
    >>> sampling = Sampling("mine", X, y, X_test=np.array([[1.9]]), y_test=np.array([1]))
    >>> sampling.labeled
    array([ True, False,  True])
    """

    name: str
    X: NDArray[np.float64]
    y: NDArray[Any]
    X_test: NDArray[np.float64]
    y_test: NDArray[Any]

    @property
    def labeled(self) -> NDArray[np.bool_]:
        """Which training points have a known class."""
        return np.asarray(self.y != -1)


def load(name: str, data_dir: str | os.PathLike[str] | None = None) -> tuple[Any, Any]:
    """Load the points X and classes y of a data set of the paper's Table 1, unscaled.

    =================  ===========  =======  =================================================
    name               n x m        classes  natural range of the values
    =================  ===========  =======  =================================================
    ``iris``           150 x 4      3        0.1 to 7.9 (centimeters)
    ``wine``           178 x 13     3        0.13 to 1680 (each feature its own unit)
    ``breast_cancer``  569 x 30     2        0 to 4254 (each feature its own unit)
    ``digits``         1797 x 64    10       0 to 16 (gray, 8 x 8 pixels; not in Table 1)
    ``balance``        625 x 4      3        1 to 5 (whole numbers)
    ``ionosphere``     351 x 34     2        -1 to 1; the second feature is 0 throughout
    ``diabetes``       768 x 8      2        0 to 846 (each feature its own unit)
    ``usps``           11000 x 64   10       0 to 255 (gray, 8 x 8 pixels)
    ``mnist``          15000 x 196  5        0 to 255 (gray, 14 x 14 pixels; 1, 3, 5, 7 and 8)
    =================  ===========  =======  =================================================

    Parameters
    ----------
    name : str
        One of the names above. The first five are embedded; the others are read from a folder.
        The network is never used.
    data_dir : path, optional
        The folder of the last four; by default the value of the environment variable
        ``SERAPH_CVX_DATA``. ``ionosphere.csv``, ``diabetes.csv``: a header, the features, a column
        ``label``. ``usps.npz``, ``mnist.npz``: ``X`` (n, 256) or (n, 784), row-major gray images,
        and ``y``, their digits; they come back at half the resolution, by the means of 2 x 2 pixels
        (Section 5.1 halves them too, by a filter it does not name).

    Examples
    --------
    >>> X, y = load("balance")
    >>> X.shape, np.bincount(y).tolist()
    ((625, 4), [49, 288, 288])
    """
    if name == "balance":
        return _balance()
    if name in _EMBEDDED:
        from sklearn import datasets

        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        return np.asarray(X, dtype=np.float64), np.asarray(y)
    if name in _FILES:
        return _read(name, data_dir)
    known = ", ".join([*_EMBEDDED, *_FILES])
    raise ValueError(f"There is no data set {name!r}; the known ones are {known}.")


def sample(
    name: str,
    X: ArrayLike,
    y: ArrayLike,
    n_points: int = 100,
    n_labeled: int = 10,
    seed: int = 0,
) -> Sampling:
    """Draw `n_points` training points, reveal the class of the first `n_labeled`, standardize.

    The first labels are redrawn until every class is among them. Each feature is shifted and
    scaled to mean 0 and variance 1 over the training points; a constant one is only shifted.

    Parameters
    ----------
    name : str
        The name of the data.
    X, y : (n, m) and (n,) array_like
        All points with their classes; those that are not drawn become test points.
    n_points, n_labeled : int
        The number of training points, and how many of them keep their label.
    seed : int
        The seed of the draw.

    Examples
    --------
    >>> sampling = sample("iris", *load("iris"), seed=1)
    >>> sampling.X.shape, int(sampling.labeled.sum()), len(sampling.y_test)
    ((100, 4), 10, 50)
    """
    points, classes = np.asarray(X, dtype=np.float64), np.asarray(y)
    n_classes = len(np.unique(classes))
    if not n_classes <= n_labeled <= n_points <= len(points):
        raise ValueError(
            f"{name} has {len(points)} points in {n_classes} classes: n_labeled={n_labeled} and "
            f"n_points={n_points} must satisfy {n_classes} <= n_labeled <= n_points."
        )
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(points))
    while len(np.unique(classes[order[:n_labeled]])) < n_classes:
        order = rng.permutation(len(points))
    drawn = points[order[:n_points]]
    scale = np.where(np.ptp(drawn, axis=0) > 0.0, drawn.std(axis=0), 1.0)
    scaled = (points[order] - drawn.mean(axis=0)) / scale
    signed = np.result_type(classes, np.int8) if classes.dtype.kind in "biuf" else object
    shown = classes[order[:n_points]].astype(signed)
    shown[n_labeled:] = -1
    return Sampling(name, scaled[:n_points], shown, scaled[n_points:], classes[order[n_points:]])


def load_sampling(
    name: str,
    n_points: int = 100,
    n_labeled: int = 10,
    seed: int = 0,
    data_dir: str | os.PathLike[str] | None = None,
) -> Sampling:
    """Load a data set and draw a sampling of it: ``sample(name, *load(name, ...), ...)``.

    Parameters
    ----------
    name, data_dir
        As for :func:`load`.
    n_points, n_labeled, seed
        As for :func:`sample`.

    Examples
    --------
    >>> from seraph_cvx.datasets import load_sampling
    >>> sampling = load_sampling("wine", n_points=60, n_labeled=9)
    >>> sampling.X.shape, int(sampling.labeled.sum()), sampling.X_test.shape
    ((60, 13), 9, (118, 13))
    """
    return sample(name, *load(name, data_dir), n_points, n_labeled, seed)


def halve_images(X: ArrayLike) -> NDArray[np.float64]:
    """Halve the sides of square images by averaging four pixels each.

    z_{uv} = (x_{2u,2v} + x_{2u,2v+1} + x_{2u+1,2v} + x_{2u+1,2v+1}) / 4.

    Parameters
    ----------
    X : (n, s*s) array_like
        Row-major images of s x s pixels, s even.

    Returns
    -------
    (n, s*s/4) array

    Examples
    --------
    >>> halve_images([[0, 4, 1, 1, 8, 0, 1, 1, 2, 2, 0, 0, 2, 2, 0, 4]])
    array([[3., 1., 2., 1.]])
    """
    images = np.asarray(X)
    side = int(np.sqrt(images.shape[1]))
    if side**2 != images.shape[1] or side % 2:
        raise ValueError(
            f"Images of {images.shape[1]} pixels cannot be halved: they must be square, with an "
            "even number of pixels a side."
        )
    blocks = images.reshape(-1, side // 2, 2, side // 2, 2)
    return np.asarray(blocks.mean(axis=(2, 4), dtype=np.float64).reshape(len(images), -1))


def _balance() -> tuple[Any, Any]:
    """Enumerate the balance scale data: all of {1..5}^4; 0 balanced, 1 tips left, 2 tips right."""
    X = 1.0 + np.indices((5, 5, 5, 5)).reshape(4, -1).T
    tip = X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3]
    return X, np.sign(tip).astype(np.int64) % 3


def _read(name: str, data_dir: str | os.PathLike[str] | None) -> tuple[Any, Any]:
    """Load a data set from its file."""
    file, data_id = _FILES[name]
    folder = data_dir if data_dir is not None else os.environ.get(DATA_VARIABLE)
    path = Path(folder or ".") / file
    if folder is not None and path.is_file():
        return _read_images(name, path) if name in _SIDES else _read_csv(path)
    contents = "arrays X and y" if name in _SIDES else "a header, the features, a column `label`"
    raise FileNotFoundError(
        f"{name} is not embedded and {path} does not exist: put {file} ({contents}) into a folder "
        f"and give its path as data_dir or {DATA_VARIABLE}. The data are at "
        f"https://www.openml.org/d/{data_id}: sklearn.datasets.fetch_openml(data_id={data_id})."
    )


def _read_csv(path: Path) -> tuple[Any, Any]:
    """The features and the classes of a file with a header and a last column `label`."""
    table = np.loadtxt(path, str, None, ",", quotechar='"', encoding="utf-8-sig")
    if (last := table[0, -1]) != "label":
        raise ValueError(f"The last column of {path} is {str(last)!r}; it must be `label`.")
    return table[1:, :-1].astype(np.float64), np.unique(table[1:, -1], return_inverse=True)[1]


def _read_images(name: str, path: Path) -> tuple[Any, Any]:
    """The images, halved, and the digits of a file of arrays X and y."""
    side = _SIDES[name]
    with np.load(path) as arrays:
        if not {"X", "y"} <= set(arrays.files):
            raise ValueError(f"{path} holds {', '.join(arrays.files)}; it must hold X and y.")
        X, y = arrays["X"], arrays["y"]
    if X.shape != (len(y), side**2):
        raise ValueError(
            f"X of {path} has shape {X.shape} and y {y.shape}: images of {side} x {side} pixels "
            f"have shape (n, {side**2}), and y one digit each."
        )
    return halve_images(X), y.astype(np.int64)


_EMBEDDED = ("iris", "wine", "breast_cancer", "digits", "balance")
_FILES = {
    "ionosphere": ("ionosphere.csv", 59),
    "diabetes": ("diabetes.csv", 37),
    "usps": ("usps.npz", 41082),
    "mnist": ("mnist.npz", 554),
}
"""The file of each data set that is not embedded, and its number at OpenML."""
_SIDES = {"usps": 16, "mnist": 28}
"""The data sets of images: the pixels of a side, in the file and at OpenML."""
