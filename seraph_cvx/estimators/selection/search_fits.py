"""The fits of a search over SERAPH's weights, each of a candidate in a fold."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...numerics.arrays import one_blas_thread
from ...numerics.checks import UNKNOWN, FloatArray, IntArray, encode_labels
from ..seraph import SERAPH


@dataclass(frozen=True, eq=False)
class Fold:
    """A fold with all points: the labels `kept` are used to learn, those of `test` to score.

    Attributes
    ----------
    points : (n, m) array
    labels : (n,) array
        Classes as the user gave them.
    codes : (n,) array of int
        The same as numbers from 0, -1 where unknown.
    kept, test : arrays of int
        Indices of points of known class.
    """

    points: FloatArray
    labels: NDArray[Any]
    codes: IntArray
    kept: IntArray
    test: IntArray

    @property
    def masked(self) -> IntArray:
        """The labels of this fold: those that are not kept are unknown."""
        masked = np.full(len(self.codes), UNKNOWN, dtype=np.int64)
        masked[self.kept] = self.codes[self.kept]
        return masked


@dataclass(frozen=True)
class SearchFit:
    """The result of a candidate in a fold; `failure` says why if it has no score.

    `reached_tolerance`: the fit ended certified, or stationary where algorithm="direct".
    """

    score: float
    reached_tolerance: bool
    seconds: float
    failure: str = ""


def make_folds(points: FloatArray, labels: NDArray[Any], splitter: Any) -> list[Fold]:
    """Split the points of known class into those to learn from and those to score by.

    kept = train n K and test = test n K for each split, K the points of known class.

    Examples
    --------
    >>> from seraph_cvx.estimators.selection.scoring import LabeledKFold
    >>> folds = make_folds(np.zeros((5, 1)), np.array([0, 0, 1, 1, -1]), LabeledKFold(2))
    >>> folds[0].masked, folds[0].test
    (array([-1,  0, -1,  1, -1]), array([0, 2]))
    """
    known, known_codes = encode_labels(labels, len(points))
    codes = np.full(len(points), UNKNOWN, dtype=np.int64)
    codes[known] = known_codes
    folds: list[Fold] = []
    for train, test in splitter.split(points, labels):
        kept, held_out = np.intersect1d(train, known), np.intersect1d(test, known)
        if not len(held_out):
            raise ValueError(
                f"Fold {len(folds)} of cv holds out no point of known class: use LabeledKFold, or "
                "give cv as an int."
            )
        if len(np.unique(codes[kept])) < 2:
            raise ValueError(
                f"Fold {len(folds)} leaves {len(kept)} known points of fewer than two classes to "
                "learn from: label more points of the rare classes, ask for fewer folds, or give a "
                "cv that keeps them."
            )
        folds.append(Fold(points, labels, codes, kept, held_out))
    return folds


def fit_fold(
    fold: Fold,
    model: SERAPH,
    scorer: Callable[[SERAPH, Fold], float],
    shares: Sequence[float | str],
) -> list[SearchFit]:
    """Fit candidates that differ in their share to a fold, by one fit, and score them.

    score(A(lambda, mu, alpha; the kept labels)) for each alpha, with the time the fit took and its
    status: the share is added to a metric after it has been learned.

    Examples
    --------
    >>> from seraph_cvx.estimators.selection.fold_scores import nearest_labeled_accuracy
    >>> from seraph_cvx.estimators.selection.scoring import LabeledKFold
    >>> X, y = np.array([[0.0], [0.1], [2.0], [2.1]]), np.array([0, 0, 1, 1])
    >>> fold = make_folds(X, y, LabeledKFold(2))[0]
    >>> (fit,) = fit_fold(fold, SERAPH(), nearest_labeled_accuracy, ["auto"])
    >>> fit.score, fit.reached_tolerance
    (1.0, True)
    """
    clock = time.perf_counter()
    pairs = model._take(fold.points, fold.masked)
    try:
        with one_blas_thread():
            model._learn(pairs)  # the search tells of all in one
    except RuntimeError as error:  # the solver returned no metric at all
        failed = SearchFit(np.nan, False, time.perf_counter() - clock, str(error))
        return [failed] * len(shares)
    seconds = time.perf_counter() - clock
    found = []
    for share in shares:
        model.set_params(identity_share=share)._mix(model.m_step_metric_, pairs)
        score = float(scorer(model, fold))
        if np.isnan(score):
            raise ValueError("scoring returned NaN: it must return a number for every fold.")
        found.append(SearchFit(score, model.status_.reached_tolerance, seconds))
    return found
