"""The methods of every learned Mahalanobis metric, named as in scikit-learn and metric-learn."""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from difflib import get_close_matches
from functools import cached_property, wraps
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    is_classifier,
)
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from ..engine.distances import Factor
from ..numerics.arrays import is_foreign_array, to_device_of, to_host
from ..numerics.checks import FloatArray, check_points, is_known, refuse_masked
from ..numerics.psd_cone import factor, principal_rows
from ..pairs.data_warnings import (
    FarValueWarning,
    ScaleWarning,
    describe_far_values,
    describe_labels,
    describe_scales,
)
from ..pairs.labeled_pairs import ClassLabels, label_pairs
from ..pairs.pair_set import PairSet


@contextmanager
def all_or_nothing(estimator: BaseEstimator) -> Iterator[None]:
    """A context in which an interrupted `fit` leaves the estimator as it was before."""
    with ExitStack() as undo:
        undo.callback(setattr, estimator, "__dict__", dict(vars(estimator)))
        yield
        undo.pop_all()


def describe_classifier_around(y: ArrayLike | None) -> str:
    """Describe a classifier of scikit-learn that learns -1 as a class beside this fit; or empty.

    The estimators whose `fit` is running are found on the stack: a step of a pipeline sees no other
    one, and an ensemble hands its numbers of the classes on.
    """
    frame = sys._getframe(1).f_back
    has_unknown = y is not None and not np.all(is_known(np.asarray(y)))
    while frame is not None:
        owner, behind = frame.f_locals.get("self"), None
        steps = getattr(owner, "steps", None)
        if isinstance(owner, BaseEstimator) and steps:
            knows_unknown = ("seraph_cvx", "sklearn.semi_supervised")
            if has_unknown and not type(steps[-1][1]).__module__.startswith(knows_unknown):
                behind = steps[-1][1] if is_classifier(steps[-1][1]) else None
        elif isinstance(owner, BaseEstimator):
            for coder in vars(owner).values():
                if type(coder).__name__ == "LabelEncoder" and not np.all(is_known(coder.classes_)):
                    behind = owner
        if behind is not None:
            name = type(behind).__name__
            return (
                f"{name} learns -1, which marks an unknown class, as one more class, and may "
                f"predict little else: use LabeledOnly({name}(...)) in its place."
            )
        frame = frame.f_back
    return ""


def _naming_unknown_parameters(init: Callable[..., None]) -> Callable[..., None]:
    """An `__init__` whose error about a parameter names the class, and the one that is like it."""
    known = inspect.signature(init).parameters

    @wraps(init)
    def checked(self: Any, *values: Any, **given: Any) -> None:
        for name in given.keys() - known.keys():
            near = get_close_matches(name, known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{type(self).__name__} has no parameter {name!r}.{hint}")
        init(self, *values, **given)

    return checked


class MahalanobisTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The base of all metric learners: what every learned Mahalanobis metric can do.

    d(x, x')^2 = (x - x')' A (x - x') = ||L(x - x')||^2.

    The `fit` of a subclass gets pairs from `_make_pairs`, learns A from them, and hands it to
    `_keep_metric`.

    Attributes
    ----------
    metric_ : (m, m) array
        A, positive semidefinite; always the full one. Where A lies in the span of fewer points than
        features, it is made of `factor_`, F with FF' = A, when it is read.
    components_ : (n_components, m) array
        L with A = L'L (its leading rows).
    threshold_ : float
        Pairs nearer than this are called similar by `predict_pairs`.
    n_features_in_ : int
    """

    n_components: int | None = None
    factor_: FloatArray
    components_: FloatArray
    threshold_: float
    n_features_in_: int

    def __init_subclass__(cls, **options: Any) -> None:
        """Let an error about a parameter name the class."""
        super().__init_subclass__(**options)
        if "__init__" not in vars(cls):  # made by a dataclass of parameters
            cls.__init__ = _naming_unknown_parameters(cls.__init__)  # type: ignore[method-assign]

    def transform(self, X: ArrayLike) -> FloatArray:
        """Transform points to z = L x, whose Euclidean distances are the learned ones.

        For an array of a library other than NumPy, the result is of that library, on the same
        device.
        """
        check_is_fitted(self)
        points = validate_data(
            self, to_host(X), dtype=[np.float64, np.float32], order="C", reset=False
        )
        coordinates = self._coordinates(points)
        transformed = coordinates @ self.components_.T.astype(coordinates.dtype)
        transformed = np.asarray(transformed, dtype=points.dtype)
        return to_device_of(X, transformed) if is_foreign_array(X) else transformed

    def get_mahalanobis_matrix(self) -> FloatArray:
        """The matrix L'L of the distances after `transform`: A unless n_components truncates it."""
        check_is_fitted(self)
        return self.components_.T @ self.components_

    def get_metric(self) -> Callable[..., float]:
        """The learned distance d(x, x', squared=False) as a function, for ``metric=`` arguments."""
        check_is_fitted(self)
        fitted = copy.copy(self)  # which a later `fit` does not change

        def distance(x: ArrayLike, x_prime: ArrayLike, squared: bool = False) -> float:
            z, z_prime = fitted._coordinates(np.array([x, x_prime], dtype=np.float64))
            length = float(np.linalg.norm(fitted.components_ @ (z - z_prime)))
            return length * length if squared else length

        return distance

    def pair_distance(self, pairs: ArrayLike) -> FloatArray:
        """The learned distance ||L(x - x')|| of each pair of a (k, 2, m) array."""
        check_is_fitted(self)
        P = check_array(to_host(pairs), ensure_2d=False, allow_nd=True, dtype=np.float64)
        if P.ndim != 3 or P.shape[1:] != (2, self.n_features_in_):
            raise ValueError(
                f"Pairs of points must have shape (k, 2, {self.n_features_in_}), not {P.shape}. "
                "From indices make them by X[pairs]."
            )
        differences = self._coordinates(P[:, 0]) - self._coordinates(P[:, 1])
        return np.asarray(np.linalg.norm(differences @ self.components_.T, axis=1))

    def pair_score(self, pairs: ArrayLike) -> FloatArray:
        """Score the similarity of each pair: minus its distance, so larger is more similar."""
        return -self.pair_distance(pairs)

    def predict_pairs(self, pairs: ArrayLike) -> Any:
        """Predict +1 for each pair whose distance is at most `threshold_`, else -1."""
        distances = self.pair_distance(pairs)
        if not hasattr(self, "threshold_"):
            raise AttributeError(
                f"This {type(self).__name__} has no threshold yet: call calibrate_threshold or "
                "set_threshold first."
            )
        return np.where(distances <= self.threshold_, 1, -1)

    def set_threshold(self, threshold: float) -> Self:
        """Set the distance up to which pairs are predicted similar."""
        check_is_fitted(self)
        self.threshold_ = float(threshold)
        return self

    def calibrate_threshold(self, pairs: ArrayLike, y: ArrayLike) -> Self:
        """Choose the `threshold_` at which `predict_pairs` is right on the most of these pairs.

        Parameters
        ----------
        pairs : (k, 2, m) array_like
        y : (k,) array_like of +1 (similar) and -1 (dissimilar)
        """
        self.threshold_ = best_threshold(self.pair_distance(pairs), y)
        return self

    @property
    def _n_features_out(self) -> int:
        """The number of columns of `transform`, for scikit-learn."""
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _make_pairs(
        self,
        X: ArrayLike,
        y: ArrayLike | None,
        similar: ArrayLike | None = None,
        dissimilar: ArrayLike | None = None,
        similar_confidence: ArrayLike | None = None,
        dissimilar_confidence: ArrayLike | None = None,
    ) -> PairSet:
        """Turn what `fit` was given into pairs; X is copied once, and its numbers checked once."""
        if y is None and similar is None and dissimilar is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: give "
                "the class of each point, -1 where it is not known, or pairs of point indices "
                "`similar` and `dissimilar`."
            )
        refuse_masked(X, "X", "remove these points or impute the missing values first")
        refuse_masked(y, "y", "mark an unknown label by -1")
        copied = validate_data(
            self,
            to_host(X),
            dtype=np.float64,
            order="C",
            copy=True,
            ensure_min_samples=2,
            ensure_all_finite=False,
        )
        points = check_points(copied, copy=False)
        if y is not None:
            y = column_or_1d(to_host(y), warn=True)
            check_consistent_length(points, y)
        self._check_n_components(points.shape[1])
        labels = label_pairs(
            points, y, similar, dissimilar, similar_confidence, dissimilar_confidence
        )
        return PairSet(points, labels, X if is_foreign_array(X) else None)

    def _doubts_about_data(self, pairs: PairSet, y: ArrayLike | None) -> list[Warning]:
        """What was probably not meant so: values, scales and class labels."""
        names, doubts = getattr(self, "feature_names_in_", None), list[Warning]()
        if doubt := describe_far_values(pairs.points, names):
            doubts.append(FarValueWarning(doubt))
        if doubt := describe_scales(pairs.points, names):
            doubts.append(ScaleWarning(doubt))
        if isinstance(pairs.labels, ClassLabels) and (doubt := describe_labels(to_host(y))):
            doubts.append(UserWarning(doubt))
        if doubt := describe_classifier_around(to_host(y)):
            doubts.append(UserWarning(doubt))
        return doubts

    def _check_n_components(self, most: int) -> None:
        """Require that there are so many components."""
        if self.n_components is not None and not 1 <= self.n_components <= most:
            raise ValueError(f"n_components={self.n_components} must be between 1 and {most}.")

    @cached_property
    def metric_(self) -> FloatArray:
        """The metric A; formed from `factor_` when it is read, if only that is stored."""
        return self._made_of("factor_", "metric_")

    def _made_of(self, factor: str, name: str) -> FloatArray:
        """The matrix of a factor that is kept instead of it."""
        F = self.__dict__.get(factor)
        if F is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return np.asarray(F @ F.T)

    def _keep_metric(self, metric: FloatArray | Factor) -> FloatArray:
        """Keep the metric, or its factor, and its components; return all of these."""
        for name in ("metric_", "factor_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if isinstance(metric, Factor):
            self.factor_, L = metric.L, principal_rows(metric.L)
        else:
            self.metric_, L = metric, factor(metric)
        missing = max(0, (self.n_components or 0) - len(L))  # beyond the rank of a factor
        self.components_ = np.pad(L[: self.n_components], ((0, missing), (0, 0)))
        return L

    def _coordinates(self, points: FloatArray) -> FloatArray:
        """The points in the coordinates of the metric: the features themselves."""
        return points


def best_threshold(distances: ArrayLike, y: ArrayLike) -> float:
    """Find the threshold t for which "similar iff distance <= t" agrees with most of y.

    Among equally good ones the middle of the gap between two distances; below the smallest
    distance, where nothing is called similar, half of it, or -1 where that is zero.
    """
    distances, y = np.asarray(distances, dtype=np.float64), np.asarray(y)
    if y.shape != distances.shape or not np.all(np.isin(y, (-1, 1))):
        raise ValueError("y must hold +1 (similar) or -1 (dissimilar) for each pair.")
    if not np.any(y == 1) or not np.any(y == -1):
        raise ValueError("A threshold needs both similar and dissimilar pairs to be calibrated on.")
    cuts, number = np.unique(distances, return_inverse=True)
    merits = np.cumsum(np.bincount(number, weights=y))  # hits less false alarms at each cut
    best = int(np.argmax(merits))
    if merits[best] <= 0.0:  # nothing is called similar
        return float(cuts[0]) / 2.0 or -1.0
    below, above = float(cuts[best]), float(cuts[min(best + 1, len(cuts) - 1)])
    middle = below + (above - below) / 2.0
    return middle if middle < above else below  # of neighboring numbers the middle is one of them
