"""A wrapper that fits an estimator to the labeled points only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_regressor
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..numerics.checks import IntArray
from .selection.scoring import known_rows


def _inner_has(method: str) -> Callable[[Any], bool]:
    def has(self: Any) -> bool:
        getattr(self._inner, method)  # its own AttributeError is the one to show
        return True

    return has


class LabeledOnly(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Fit a scikit-learn estimator to the points of known class only.

    A pipeline hands the same y to all its steps. SERAPH learns from the points of unknown class
    (y = -1) as well, but a classifier behind it would learn "-1" as one more class. Wrapped in
    LabeledOnly it sees the points of known class alone.

    Parameters
    ----------
    estimator : classifier or supervised transformer, optional
        Cloned before it is fitted. By default ``KNeighborsClassifier(n_neighbors=1)``.

    Attributes
    ----------
    estimator_ : estimator
        The fitted clone.
    classes_ : array
        Of the fitted clone, as are `n_features_in_` and `feature_names_in_`.

    Notes
    -----
    `score` leaves points of unknown class out; ``scoring="accuracy"`` counts each of them as an
    error, without a word: use :func:`seraph_cvx.known_accuracy`, or ``cv=LabeledKFold()``.

    `predict`, `predict_proba`, `predict_log_proba`, `decision_function`, `transform` and `score`
    are there where the inner estimator has them. Fit and score parameters with one entry for each
    point (`sample_weight`) are cut to the points of known class; with scikit-learn's metadata
    routing switched on, they are those that the inner estimator requests.

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
            Handed on; those with n entries are cut to the points of known class.
        """
        if y is None:
            raise ValueError(
                "LabeledOnly requires y to be passed, but the target y is None: give the class of "
                "each point, -1 where it is not known."
            )
        if is_regressor(self._template):
            raise ValueError(
                f"{type(self.estimator).__name__} is a regressor, whose target may well be -1: "
                "LabeledOnly is for classifiers and supervised transformers."
            )
        points, labels, known = known_rows(X, y, "LabeledOnly")
        params = self._route("fit", fit_params, known, len(np.asarray(y)))
        self.estimator_ = clone(self._template).fit(points, labels, **params)
        return self

    @available_if(_inner_has("predict"))  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> Any:
        """Predict by the inner estimator: never -1."""
        return self._fitted.predict(X)

    @available_if(_inner_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Predict probabilities by the inner estimator, a column for each of `classes_`."""
        return self._fitted.predict_proba(X)

    @available_if(_inner_has("predict_log_proba"))  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Any:
        """Predict log-probabilities by the inner estimator."""
        return self._fitted.predict_log_proba(X)

    @available_if(_inner_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """Evaluate the inner estimator's decision function."""
        return self._fitted.decision_function(X)

    @available_if(_inner_has("transform"))  # type: ignore[untyped-decorator]
    def transform(self, X: Any) -> Any:
        """Transform all points by the inner estimator."""
        return self._fitted.transform(X)

    @available_if(_inner_has("transform"))  # type: ignore[untyped-decorator]
    def fit_transform(self, X: Any, y: ArrayLike, **fit_params: Any) -> Any:
        """Fit on the points of known class, transform all points."""
        return self.fit(X, y, **fit_params).transform(X)

    @available_if(_inner_has("get_feature_names_out"))  # type: ignore[untyped-decorator]
    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """The inner estimator's names of the features that `transform` returns."""
        return self._fitted.get_feature_names_out(input_features)

    @available_if(_inner_has("set_output"))  # type: ignore[untyped-decorator]
    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose the container that `transform` returns, as in scikit-learn."""
        for inner in {id(e): e for e in (self.estimator, self._inner)}.values():
            inner.set_output(transform=transform)
        return self

    @available_if(_inner_has("score"))  # type: ignore[untyped-decorator]
    def score(self, X: Any, y: ArrayLike, **score_params: Any) -> float:
        """Score the inner estimator on the points of known class: a classifier by its accuracy.

        Parameters
        ----------
        X : array_like, sparse or data frame of n rows
        y : (n,) array_like
            Class labels; points where it is -1 (None among strings) are left out.
        **score_params
            Handed on; those with n entries are cut to the points of known class.
        """
        points, labels, known = known_rows(X, y, "score")
        params = self._route("score", score_params, known, len(np.asarray(y)))
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

    def get_metadata_routing(self) -> Any:
        """Route fit and score parameters to the inner estimator's methods of the same name."""
        mapping = MethodMapping()
        for method in ("fit", "score"):
            mapping.add(caller=method, callee=method)
        return MetadataRouter(owner=self).add(estimator=self._template, method_mapping=mapping)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self) -> Any:
        tags = get_tags(self._template)
        target = replace(tags.target_tags, required=True, multi_output=False)
        kind = tags.classifier_tags and replace(tags.classifier_tags, multi_label=False)
        return replace(tags, target_tags=target, classifier_tags=kind, array_api_support=False)

    @property
    def _template(self) -> Any:
        return KNeighborsClassifier(n_neighbors=1) if self.estimator is None else self.estimator

    @property
    def _inner(self) -> Any:
        return getattr(self, "estimator_", self._template)

    @property
    def _fitted(self) -> Any:
        check_is_fitted(self)
        return self.estimator_

    def _route(
        self, method: str, given: dict[str, Any], known: IntArray, n_points: int
    ) -> dict[str, Any]:
        """Route parameters to a method of the inner estimator, cut to the known points."""
        if get_config()["enable_metadata_routing"]:
            given = process_routing(self, method, **given).estimator[method]
        return {
            name: _safe_indexing(value, known) if _has_length(value, n_points) else value
            for name, value in given.items()
        }


def _has_length(value: Any, n_points: int) -> bool:
    """Whether a value is an array with an entry for each point."""
    is_array = hasattr(value, "shape") or isinstance(value, list | tuple)
    return is_array and np.ndim(value) > 0 and len(value) == n_points
