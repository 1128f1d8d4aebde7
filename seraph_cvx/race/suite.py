"""Suites of M-steps to race on, each named by a short spec from which it can be regenerated.

``wine-n40-standard-hyper-w1-s0`` is the first M-step of 40 points of wine, standardized, in the
paper's setting hyper, with trace weight 1, drawn with seed 0. The points are drawn by Python's
``random``, whose stream is fixed, and scaled with exactly rounded sums: no platform changes a bit
of them.
"""

from __future__ import annotations

import hashlib
import math
import random
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..datasets import load
from ..estimators.settings import PAPER_SETTINGS
from ..model.m_step_objective import MStepObjective
from ..numerics.checks import UNKNOWN, FloatArray
from ..pairs.pair_set import PairSet

SCALINGS = ("standard", "unit", "raw")
"""The scalings of features: mean 0 and variance 1; from 0 to 1; unchanged."""

_NAME = re.compile(r"(\w+)-n(\d+)(?:-l(\d+))?-(\w+)-(\w+)-w([\d.e+]+)-s(\d+)")
_CLOUD = re.compile(r"cloud([1-9]\d*)")


@dataclass(frozen=True)
class InstanceSpec:
    """What defines an M-step of a suite: data, points, scaling, weights and seed.

    Attributes
    ----------
    data : str
        A data set of :func:`seraph_cvx.datasets.load`; or cloud5, which is generated: three
        bell-shaped clouds in R^5.
    n_points, n_labeled : int
        How many points are drawn, and of how many the class is known.
    scaling : "standard", "unit" or "raw"
    setting : str
        "none" and "proj" leave the unlabeled pairs out; "post" and "hyper" weight them by ratio.
    trace_weight : float
        0 for none and post.
    seed : int

    Examples
    --------
    >>> spec = InstanceSpec.parse("iris-n30-standard-hyper-w1-s0")
    >>> spec.objective()
    MStepObjective(PairSet(30 points in R^4: 17 similar, 28 dissimilar, 390 unlabeled pairs),
                   unlabeled_weight=0.1154, trace_weight=1, threshold=1)
    """

    data: str
    n_points: int
    scaling: str = "standard"
    setting: str = "hyper"
    trace_weight: float = 1.0
    seed: int = 0
    n_labeled: int = 10

    def __post_init__(self) -> None:
        if self.scaling not in SCALINGS:
            raise ValueError(f"scaling={self.scaling!r}: use one of {', '.join(SCALINGS)}.")
        if self.setting not in PAPER_SETTINGS:
            raise ValueError(f"setting={self.setting!r}: use one of {', '.join(PAPER_SETTINGS)}.")
        if self.trace_weight and not PAPER_SETTINGS[self.setting].trace_weight:
            raise ValueError(
                f"The setting {self.setting} has no trace term: write w0, or use "
                f"{'proj' if self.setting == 'none' else 'hyper'}."
            )

    @property
    def name(self) -> str:
        """The name of the instance: its spec in one word."""
        labeled = "" if self.n_labeled == 10 else f"-l{self.n_labeled}"
        weight = np.format_float_positional(self.trace_weight, trim="-")
        points = f"{self.data}-n{self.n_points}{labeled}"
        return f"{points}-{self.scaling}-{self.setting}-w{weight}-s{self.seed}"

    @classmethod
    def parse(cls, name: str) -> InstanceSpec:
        """Parse the name of an instance."""
        match = _NAME.fullmatch(name)
        if match is None:
            raise ValueError(
                f"{name!r} is not the name of an instance: write it like "
                "wine-n40-standard-hyper-w1-s0 (data, points, scaling, setting, trace weight, "
                "seed; with -l20 after the points where 20 of them are labeled, not 10)."
            )
        data, n_points, labeled, scaling, setting, weight, seed = match.groups("10")
        return cls(data, int(n_points), scaling, setting, float(weight), int(seed), int(labeled))

    def points(self) -> tuple[FloatArray, NDArray[np.int64]]:
        """The points X and labels y, with -1 for unknown classes."""
        cloud = _CLOUD.fullmatch(self.data)
        X, y = _clouds(int(cloud[1]), self.n_points, self.seed) if cloud else load(self.data)
        n_classes = len(np.unique(y))
        if not n_classes <= self.n_labeled <= self.n_points <= len(X):
            raise ValueError(
                f"{self.name}: {self.data} has {len(X)} points in {n_classes} classes, so "
                f"{n_classes} <= labeled <= points <= {len(X)} is needed."
            )
        # ``random()`` is the only stream that Python promises not to change
        rng, order = random.Random(self.seed), np.zeros(0, dtype=np.int64)
        while len(np.unique(y[order[: self.n_labeled]])) < n_classes:
            order = np.argsort([rng.random() for _ in X], kind="stable")
        drawn = order[: self.n_points]
        known = np.arange(self.n_points) < self.n_labeled
        labels = np.where(known, y[drawn], UNKNOWN).astype(np.int64)
        return _scale(np.asarray(X[drawn], dtype=np.float64), self.scaling), labels

    def objective(self) -> MStepObjective:
        """The first M-step, which counts all unlabeled pairs as dissimilar."""
        return MStepObjective(
            PairSet.from_labels(*self.points()),
            unlabeled_weight=PAPER_SETTINGS[self.setting].unlabeled_weight,
            trace_weight=self.trace_weight,
        )


def objective_of(instance: InstanceSpec | MStepObjective) -> MStepObjective:
    """The M-step of an instance of a race."""
    return instance.objective() if isinstance(instance, InstanceSpec) else instance


def checksum_of(name: str, *arrays: NDArray[np.generic]) -> str:
    """The SHA-256 checksum of a name and of arrays, in little-endian bytes."""
    digest = hashlib.sha256(name.encode())
    for array in arrays:
        digest.update(f"{array.shape}".encode())
        digest.update(array.astype(array.dtype.newbyteorder("<")).tobytes())
    return digest.hexdigest()


def suite(name: str = "small") -> list[InstanceSpec]:
    """The instances of a suite, from trivial to hard.

    Parameters
    ----------
    name : str
        "small" (up to 60 points, minutes), "medium" (100 to 200 points, 10 to 50 features),
        "large" (400 points or 256 features, hours) or "tiny" (a try).

    Examples
    --------
    >>> len(suite("small")), suite("small")[0].name
    (16, 'iris-n30-standard-hyper-w1000-s0')
    """
    if name not in SUITES:
        raise ValueError(f"There is no suite {name!r}; the known ones are {', '.join(SUITES)}.")
    return [InstanceSpec.parse(instance) for instance in SUITES[name].split()]


SUITES = {
    "tiny": "iris-n20-standard-hyper-w1-s0 balance-n20-standard-proj-w1-s0",
    "small": """
        iris-n30-standard-hyper-w1000-s0
        iris-n30-standard-proj-w1-s0
        iris-n30-standard-hyper-w1-s0
        iris-n30-standard-none-w0-s0
        balance-n40-standard-hyper-w1-s0
        balance-n40-raw-proj-w0.1-s0
        iris-n60-standard-hyper-w1-s0
        iris-n60-raw-hyper-w1-s0
        iris-n40-l20-standard-post-w0-s0
        wine-n40-unit-hyper-w0.1-s0
        wine-n40-standard-hyper-w1-s0
        wine-n30-standard-hyper-w0.01-s0
        wine-n30-raw-proj-w1-s0
        breast_cancer-n30-standard-proj-w1-s0
        breast_cancer-n24-standard-hyper-w1-s0
        digits-n20-l12-unit-proj-w1-s0
        """,
    "medium": """
        wine-n100-standard-hyper-w1-s0
        wine-n150-unit-hyper-w0.1-s0
        wine-n120-l40-raw-proj-w1-s0
        breast_cancer-n100-standard-hyper-w1-s0
        breast_cancer-n200-l40-standard-proj-w0.1-s0
        breast_cancer-n120-standard-hyper-w0.01-s0
        cloud10-n200-standard-hyper-w1-s0
        cloud50-n100-standard-hyper-w1-s0
        """,
    "large": """
        balance-n400-standard-hyper-w1-s0
        breast_cancer-n200-standard-hyper-w1-s0
        breast_cancer-n400-standard-hyper-w1-s0
        cloud256-n100-l40-standard-proj-w1-s0
        """,
}

TIME_LIMITS = {"tiny": 5.0, "small": 10.0, "medium": 60.0, "large": 300.0}
"""Seconds per run on a suite, if nothing is said."""


def _clouds(m: int, n_points: int, seed: int) -> tuple[FloatArray, NDArray[np.int64]]:
    """Three bell-shaped clouds in R^m, two units out along the first features, in sixteenths."""
    rng = random.Random(seed)
    y = np.arange(n_points) % 3
    noise = [[math.fsum(rng.random() for _ in range(12)) - 6.0 for _ in range(m)] for _ in y]
    X = np.array(noise) + np.eye(3, m)[y] * 2.0
    return np.rint(X * 16.0) / 16.0, y


def _scale(X: FloatArray, scaling: str) -> FloatArray:
    """Shift and scale each feature; a constant one is only shifted."""
    if scaling == "raw":
        return X
    if scaling == "unit":
        shift, spread = X.min(axis=0), np.ptp(X, axis=0)
    else:
        n = len(X)
        shift = np.array([math.fsum(column) / n for column in X.T])
        squares = [math.fsum(column) / n for column in np.square(X - shift).T]
        spread = np.where(np.ptp(X, axis=0) > 0.0, np.sqrt(squares), 0.0)
    return np.asarray((X - shift) / np.where(spread > 0.0, spread, 1.0))
