"""Scores of a metric by the points that a fold holds out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...numerics.checks import FloatArray, IntArray
from ..seraph import SERAPH
from .scoring import area_over_pairs, known_accuracy, pair_auc
from .search_fits import Fold

ROWS_AT_ONCE = 256
"""The number of held-out points whose distances to all kept ones are held at a time."""

SAME_PLACE = 1e-10
"""Points nearer than this, as a share of the largest squared distance, are in the same place."""


def choose_scorer(scoring: Any) -> Callable[[SERAPH, Fold], float]:
    """Turn the `scoring` of SERAPHCV into a function of the fitted SERAPH and the fold.

    Examples
    --------
    >>> choose_scorer("pair_auc").__name__
    'held_out_pair_auc'
    """
    if scoring is None or scoring == "soft_accuracy":
        return held_out_soft_accuracy
    if scoring in ("known_accuracy", known_accuracy):
        return nearest_labeled_accuracy
    if scoring in ("pair_auc", pair_auc):
        return held_out_pair_auc
    if not callable(scoring):
        raise ValueError(
            f'scoring={scoring!r} is not known: use "soft_accuracy", "known_accuracy", "pair_auc", '
            "or a function (fitted SERAPH, X, y) -> float."
        )

    def score(model: SERAPH, fold: Fold) -> float:
        return float(scoring(model, fold.points[fold.test], fold.labels[fold.test]))

    return score


def held_out_soft_accuracy(model: SERAPH, fold: Fold) -> float:
    """Score a metric by the share of each hidden point's neighborhood that is of its class.

    The mean over the held-out points i of sum_{j of its class} w_ij / sum_j w_ij over the kept
    points j, w_ij = exp(-d_ij/d_i), d_ij the squared distance and d_i the smallest of them: the
    chance to be right by a neighbor drawn with these weights. Near misses count in part, so that
    fewer labels than for the accuracy tell which of two metrics is better.

    Examples
    --------
    >>> from seraph_cvx.estimators.selection.scoring import LabeledKFold
    >>> from seraph_cvx.estimators.selection.search_fits import make_folds
    >>> X, y = np.array([[0.0], [0.1], [2.0], [0.2]]), np.array([0, 0, 1, 1])
    >>> fold = make_folds(X, y, LabeledKFold(2))[1]  # keeps points 0 and 2
    >>> round(held_out_soft_accuracy(SERAPH().fit(X, fold.masked), fold), 3)
    0.5
    """
    right = []
    for classes, squares in _squared_distances(model, fold):
        nearest = np.min(squares, axis=1, keepdims=True)
        scale = np.maximum(nearest, SAME_PLACE * np.max(squares))
        scale = np.where(scale > 0.0, scale, 1.0)  # a metric that is zero
        weights = np.exp((nearest - squares) / scale)
        of_class = fold.codes[fold.kept] == classes[:, None]
        right.append(np.sum(weights * of_class, axis=1) / np.sum(weights, axis=1))
    return float(np.mean(np.concatenate(right)))


def nearest_labeled_accuracy(model: SERAPH, fold: Fold) -> float:
    """Score a metric by the nearest labeled neighbor of each hidden point.

    #{i in test : y of the kept point nearest to x_i is y_i} / #test, distances by the metric.

    Examples
    --------
    >>> from seraph_cvx.estimators.selection.scoring import LabeledKFold
    >>> from seraph_cvx.estimators.selection.search_fits import make_folds
    >>> X, y = np.array([[0.0], [0.1], [2.0], [0.2]]), np.array([0, 0, 1, 1])
    >>> fold = make_folds(X, y, LabeledKFold(2))[1]  # keeps points 0 and 2
    >>> nearest_labeled_accuracy(SERAPH().fit(X, fold.masked), fold)
    0.5
    """
    right = [
        fold.codes[fold.kept[np.argmin(squares, axis=1)]] == classes
        for classes, squares in _squared_distances(model, fold)
    ]
    return float(np.mean(np.concatenate(right)))


def _squared_distances(model: SERAPH, fold: Fold) -> Iterator[tuple[IntArray, FloatArray]]:
    """For some held-out points at a time, their classes and squared distances to the kept ones."""
    kept, test = (model.transform(fold.points[rows]) for rows in (fold.kept, fold.test))
    center = kept.mean(axis=0)
    kept, test = kept - center, test - center
    lengths = np.sum(np.square(kept), axis=1)
    for start in range(0, len(test), ROWS_AT_ONCE):
        some = slice(start, start + ROWS_AT_ONCE)
        squares = np.sum(np.square(test[some]), axis=1)[:, None] + lengths
        squares = np.maximum(squares - 2.0 * test[some] @ kept.T, 0.0)
        yield fold.codes[fold.test[some]], squares


def held_out_pair_auc(model: SERAPH, fold: Fold) -> float:
    """Score a metric by the ROC area over the known pairs with a point held out.

    Examples
    --------
    >>> from seraph_cvx.estimators.selection.scoring import LabeledKFold
    >>> from seraph_cvx.estimators.selection.search_fits import make_folds
    >>> X, y = np.array([[0.0], [0.1], [2.0], [2.1]]), np.array([0, 0, 1, 1])
    >>> fold = make_folds(X, y, LabeledKFold(2))[0]
    >>> held_out_pair_auc(SERAPH().fit(X, fold.masked), fold)
    1.0
    """
    first, second = np.triu_indices(len(fold.test), 1)
    across = np.meshgrid(fold.test, fold.kept, indexing="ij")
    within = np.column_stack([fold.test[first], fold.test[second]])
    rows = np.vstack([within, np.column_stack([side.ravel() for side in across])])
    similar = fold.codes[rows[:, 0]] == fold.codes[rows[:, 1]]
    return area_over_pairs(model, fold.points, rows, similar)
