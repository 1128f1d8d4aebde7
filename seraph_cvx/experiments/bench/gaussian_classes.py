"""Points to measure on: Gaussian classes, a few labels each."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...numerics.checks import FloatArray


def gaussian_classes(n: int, m: int, n_classes: int = 10, seed: int = 0) -> tuple[FloatArray, Any]:
    """x ~ N(mean of its class, I), means ~ N(0, I/4); y = -1 but for ten labels a class.

    Examples
    --------
    >>> X, y = gaussian_classes(1000, 2)
    >>> X.shape, int((y >= 0).sum())
    ((1000, 2), 100)
    """
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(n_classes, m)) / 2.0
    classes = rng.integers(n_classes, size=n)
    X = means[classes] + rng.normal(size=(n, m))
    known = np.concatenate([np.flatnonzero(classes == c)[:10] for c in range(n_classes)])
    y = np.full(n, -1)
    y[known] = classes[known]
    return X, y
