"""Half-labeled data in scikit-learn: folds, scores and estimators by the points of known class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_regressor
from sklearn.metrics import accuracy_score
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils import _safe_indexing, check_random_state, get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    _check_method_params,
    _estimator_has,
    check_is_fitted,
    column_or_1d,
)

from ..numerics.checks import IntArray, encode_labels, is_known, refuse_masked


def known_rows(X: Any, y: ArrayLike, purpose: str) -> tuple[Any, Any, IntArray]:
    """The points of known class, in the kind of X, their labels and indices; none is an error."""
    refuse_masked(y, "y", "mark an unknown label by -1")
    labels = column_or_1d(y, warn=True)
    X, labels = indexable(X, labels)
    known = np.flatnonzero(is_known(np.asarray(labels)))
    if not len(known):
        raise ValueError(
            f"None of the {len(labels)} labels is known (-1 and None mark unknown ones): {purpose} "
            "needs at least one point of known class."
        )
    kept = labels[known]
    if kept.dtype == object and not any(isinstance(label, str) for label in kept):
        kept = np.array(kept.tolist())  # integers that were stored with None are integers again
    return _safe_indexing(X, known), kept, known


class LabeledKFold(KFold):  # type: ignore[misc]
    """Split only the points of known class into folds; all others are in every training set.

    Each test fold holds only points of known class; all other points, including the unlabeled ones,
    are in the training set. The known points are dealt out class by class, one to each fold in
    turn, so that the folds differ by at most one point, in total and in each class. A class with
    fewer known points than there are folds is missing from some of them.

    Parameters
    ----------
    n_splits : int, default=5
    shuffle : bool, default=False
        Shuffle the points of each class before they are dealt.
    random_state : int, RandomState or None
        The seed of the shuffle.

    Examples
    --------
    >>> y = [0, 0, 1, 1, -1]
    >>> for train, test in LabeledKFold(2).split([[0.0]] * 5, y):
    ...     train.tolist(), test.tolist()
    ([1, 3, 4], [0, 2])
    ([0, 2, 4], [1, 3])
    """

    def __init__(self, n_splits: int = 5, shuffle: bool = False, random_state: Any = None) -> None:
        super().__init__(n_splits, shuffle=shuffle, random_state=random_state)

    def _iter_test_indices(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[IntArray]:
        """Yield the known points of each fold; scikit-learn makes the training sets."""
        if y is None:
            raise ValueError("LabeledKFold needs y: the class of each point, -1 where unknown.")
        refuse_masked(y, "y", "mark an unknown label by -1")
        labels = column_or_1d(y)
        known, codes = encode_labels(labels, len(labels))
        if len(known) < self.n_splits:
            raise ValueError(
                f"n_splits={self.n_splits}, but only {len(known)} points are of known class: "
                "ask for fewer folds or label more points."
            )
        order = np.arange(len(known))
        if self.shuffle:
            order = check_random_state(self.random_state).permutation(len(known))
        order = order[np.argsort(codes[order], kind="stable")]
        for fold in range(self.n_splits):
            yield known[order[fold :: self.n_splits]]


def known_accuracy(estimator: Any, X: Any, y: ArrayLike) -> float:
    """Score predictions on the points of known class alone.

    The score is #{i in K : predict(x_i) = y_i} / #K, where K is the set of points of known class;
    it can be used as a scikit-learn scorer.

    Parameters
    ----------
    estimator : fitted classifier, or a pipeline that ends in one
    X : array_like of n rows
    y : (n,) array_like
        Class labels, -1 (None among strings) where unknown.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> classifier = KNeighborsClassifier(1).fit([[0.0], [1.0]], [0, 1])
    >>> known_accuracy(classifier, [[0.1], [0.2], [0.9], [0.8]], [0, 1, 1, -1])
    0.6666666666666666
    """
    if not hasattr(estimator, "predict"):
        raise TypeError(
            f"known_accuracy needs an estimator that predicts classes, and "
            f"{type(estimator).__name__} does not: end a pipeline with LabeledOnly(...)."
        )
    points, labels, _ = known_rows(X, y, "known_accuracy")
    return float(accuracy_score(labels, estimator.predict(points)))


def _if_inner_has(method: str) -> Any:
    """A decorator of methods that are there where the inner estimator has them."""
    return available_if(_estimator_has(method, delegates=("_inner",)))


def _delegated(method: str, doc: str) -> Any:
    """A method of X that the inner estimator answers, where it has that method."""

    def call(self: Any, X: Any) -> Any:
        return getattr(self._fitted, method)(X)

    call.__name__, call.__doc__ = method, doc
    call.__qualname__ = f"LabeledOnly.{method}"
    return _if_inner_has(method)(call)


class LabeledOnly(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Fit a scikit-learn classifier to the points of known class only.

    A pipeline hands the same y to all its steps. SERAPH learns from the points of unknown class (y
    = -1) as well, but a classifier behind it would learn "-1" as one more class. Wrapped in
    LabeledOnly, it sees only the points of known class.

    Parameters
    ----------
    estimator : classifier, optional
        Cloned before it is fitted. By default ``KNeighborsClassifier(n_neighbors=1)``.

    Attributes
    ----------
    estimator_ : estimator
        The fitted clone.
    classes_ : array
        Those of the fitted clone, like `n_features_in_` and `feature_names_in_`.

    Notes
    -----
    `score` leaves out points of unknown class, but ``scoring="accuracy"`` silently counts each of
    them as an error: use :func:`seraph_cvx.known_accuracy`, or ``cv=LabeledKFold()``.

    `predict`, `predict_proba`, `predict_log_proba`, `decision_function` and `score` exist if the
    inner estimator has them. Fit and score parameters with one entry for each point
    (`sample_weight`) are restricted to the points of known class.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X, y = [[0.0], [0.1], [0.9], [1.0]], [0, -1, -1, 1]
    >>> KNeighborsClassifier(1).fit(X, y).predict(X)
    array([ 0, -1, -1,  1])
    >>> LabeledOnly(KNeighborsClassifier(1)).fit(X, y).predict(X)
    array([0, 0, 1, 1])
    """

    def __init__(self, estimator: Any = None) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: ArrayLike, **fit_params: Any) -> Self:
        """Fit a clone of the inner estimator on the points of known class.

        Parameters
        ----------
        X : array_like, sparse or data frame of n rows
        y : (n,) array_like
            Class labels, -1 (None or NaN among strings and objects) where unknown.
        **fit_params
            Passed on; those with n entries are restricted to the points of known class.
        """
        if y is None:
            raise ValueError(
                "LabeledOnly requires y to be passed, but the target y is None: give the class of "
                "each point, -1 where it is not known."
            )
        if is_regressor(self._template):
            raise ValueError(
                f"{type(self.estimator).__name__} is a regressor, whose target may well be -1: "
                "LabeledOnly is for classifiers."
            )
        points, labels, known = known_rows(X, y, "LabeledOnly")
        params = _check_method_params(X, fit_params, indices=known)
        self.estimator_ = clone(self._template).fit(points, labels, **params)
        return self

    predict = _delegated("predict", "Predict by the inner estimator: never -1.")
    predict_proba = _delegated(
        "predict_proba", "Predict probabilities by the inner estimator, a column for each class."
    )
    predict_log_proba = _delegated(
        "predict_log_proba", "Predict log-probabilities by the inner estimator."
    )
    decision_function = _delegated(
        "decision_function", "Evaluate the inner estimator's decision function."
    )

    @_if_inner_has("score")  # type: ignore[untyped-decorator]
    def score(self, X: Any, y: ArrayLike, **score_params: Any) -> float:
        """Score the inner estimator on the points of known class: a classifier by its accuracy.

        Parameters
        ----------
        X : array_like, sparse or data frame of n rows
        y : (n,) array_like
            Class labels; points where it is -1 (None among strings) are left out.
        **score_params
            Passed on; those with n entries are restricted to the points of known class.
        """
        points, labels, known = known_rows(X, y, "score")
        params = _check_method_params(X, score_params, indices=known)
        return float(self._fitted.score(points, labels, **params))

    @property
    def classes_(self) -> Any:
        """The classes that the inner estimator was fitted to."""
        return self._fitted.classes_

    @property
    def n_features_in_(self) -> int:
        """The number of features that the fitted inner estimator saw."""
        return int(self._fitted.n_features_in_)

    @property
    def feature_names_in_(self) -> Any:
        """The names of the features that the fitted inner estimator saw."""
        return self._fitted.feature_names_in_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self) -> Any:
        tags = get_tags(self._template)
        target = replace(tags.target_tags, required=True, multi_output=False)
        kind = tags.classifier_tags and replace(tags.classifier_tags, multi_label=False)
        return replace(tags, target_tags=target, classifier_tags=kind, array_api_support=False)

    @property
    def _template(self) -> Any:
        """What is cloned and fitted."""
        return KNeighborsClassifier(n_neighbors=1) if self.estimator is None else self.estimator

    @property
    def _inner(self) -> Any:
        """The fitted estimator, or before a fit what it will be a clone of."""
        return getattr(self, "estimator_", self._template)

    @property
    def _fitted(self) -> Any:
        """The fitted estimator; an error before a fit."""
        check_is_fitted(self)
        return self.estimator_
