"""What a method makes of a draw: errors of nearest neighbors, the ROC area of pairs, seconds."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist, pdist
from sklearn.metrics import roc_auc_score

from seraph_cvx.numerics.arrays import one_blas_thread
from seraph_cvx.numerics.checks import UNKNOWN, FloatArray, IntArray

from .draws import Draw

DONE, FAILED = "done", "failed"
"""The outcomes of a run."""

MEASURES = ("error", "error_3nn", "pair_auc", "held_out_error")
"""The measures of a run, all in %; the last three are None where there is none."""

Factory = Callable[[], Any]
"""A function without arguments that makes an estimator which is not fitted."""


class KeptFailure(AbstractContextManager["KeptFailure"]):
    """A context that records the error message of a method; Ctrl-C passes."""

    def __init__(self) -> None:
        self.detail = ""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        self.detail = f"{type(error).__name__}: {error}"
        return True


def run_on_draw(method: str, make: Factory, draw: Draw) -> dict[str, Any]:
    """Fit an estimator to a draw and measure it on the points whose class it was not shown."""
    row: dict[str, Any] = {
        **{"set": draw.name, "labels": draw.labels, "draw": draw.number, "method": method},
        **{"outcome": FAILED, **dict.fromkeys(MEASURES), "seconds": 0.0, "warnings": 0},
    }
    clock = time.process_time()
    with KeptFailure() as failure, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with one_blas_thread():
            model = _prepared(make, draw.number)
            clock = time.process_time()
            model.fit(draw.X, draw.y)
            row["seconds"] = time.process_time() - clock
            row |= _judge(model, draw) | {"outcome": DONE}
        row["warnings"] = len({(warning.category, str(warning.message)) for warning in caught})
    return row | {"detail": failure.detail}


def _prepared(make: Factory, seed: int) -> Any:
    model = make()
    if "random_state" in getattr(model, "get_params", dict)():
        model.set_params(random_state=seed)
    return model


def _judge(model: Any, draw: Draw) -> dict[str, float | None]:
    """The measures of a fitted model."""
    judged = draw.y == UNKNOWN
    truth = draw.truth[judged]
    has_rest = len(draw.X_rest) > 0
    if hasattr(model, "predict"):
        guess = model.predict(draw.X[judged])
        held_out = share_wrong(model.predict(draw.X_rest), draw.truth_rest) if has_rest else None
        return {"error": share_wrong(guess, truth), "held_out_error": held_out}
    Z, known = _projected(model, draw.X), ~judged
    near, classes = Z[known], draw.y[known]
    held_out = None
    if has_rest:
        guess = vote(_projected(model, draw.X_rest), near, classes, 1)
        held_out = share_wrong(guess, draw.truth_rest)
    return {
        "error": share_wrong(vote(Z[judged], near, classes, 1), truth),
        "error_3nn": share_wrong(vote(Z[judged], near, classes, 3), truth),
        "pair_auc": area_of_pairs(Z[judged], truth),
        "held_out_error": held_out,
    }


def _projected(model: Any, X: FloatArray) -> FloatArray:
    Z = np.asarray(model.transform(X), dtype=np.float64)
    if Z.ndim != 2 or len(Z) != len(X) or not np.all(np.isfinite(Z)):
        raise ValueError(f"transform of {len(X)} points made {Z.shape}, or not finite numbers.")
    return Z


def share_wrong(guess: Any, truth: IntArray) -> float:
    """The share (in %) of guesses that are not the truth."""
    return 100.0 * float(np.mean(np.asarray(guess) != truth))


def vote(points: FloatArray, labeled: FloatArray, classes: IntArray, k: int) -> IntArray:
    """Guess classes by the k nearest labeled points; of tied classes the nearest point's wins."""
    nearest = np.argsort(cdist(points, labeled), axis=1, kind="stable")[:, :k]
    voters = classes[nearest]
    counts = np.sum(voters[:, :, None] == voters[:, None, :], axis=2)
    return np.asarray(voters[np.arange(len(points)), np.argmax(counts, axis=1)])


def area_of_pairs(points: FloatArray, classes: IntArray) -> float | None:
    """The ROC area (in %) by which distances tell pairs of one class from pairs of two."""
    first, second = np.triu_indices(len(points), 1)
    similar = classes[first] == classes[second]
    if np.all(similar) or not np.any(similar):
        return None
    return 100.0 * float(roc_auc_score(similar, -pdist(points)))
