"""The methods of every learned Mahalanobis metric, named as in scikit-learn and metric-learn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from ..numerics.arrays import is_foreign_array, to_device_of, to_host
from ..numerics.checks import FloatArray, refuse_masked
from ..numerics.psd_cone import factor
from ..pairs.far_points import FarValueWarning, describe_far_values
from ..pairs.label_doubts import describe_labels
from ..pairs.pair_set import PairSet
from ..pairs.supervision import supervise


@contextmanager
def all_or_nothing(estimator: BaseEstimator) -> Iterator[None]:
    """A context in which an interrupted `fit` leaves the estimator as it was before.

    Examples
    --------
    >>> model = MahalanobisTransformer()
    >>> try:
    ...     with all_or_nothing(model):
    ...         model.n_features_in_ = 2
    ...         raise KeyboardInterrupt
    ... except KeyboardInterrupt:
    ...     hasattr(model, "n_features_in_")
    False
    """
    with ExitStack() as undo:
        undo.callback(setattr, estimator, "__dict__", dict(vars(estimator)))
        yield
        undo.pop_all()


class MahalanobisTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The base of all metric learners: what every learned Mahalanobis metric can do.

    d(x, x')^2 = (x - x')' A (x - x') = ||L(x - x')||^2.

    A subclass learns A from X and a :class:`~seraph_cvx.PairSet` and hands it to `_keep_metric`,
    all of it under :func:`all_or_nothing`.

    Attributes
    ----------
    metric_ : (m, m) array
        A, positive semidefinite; always the full one.
    components_ : (n_components, m) array
        L with A = L'L (its leading rows).
    threshold_ : float
        Pairs nearer than this are called similar by `predict_pairs`.
    n_features_in_ : int
    """

    n_components: int | None = None
    metric_: FloatArray
    components_: FloatArray
    threshold_: float
    n_features_in_: int

    def transform(self, X: ArrayLike) -> FloatArray:
        """Transform points to z = L x, whose Euclidean distances are the learned ones.

        An array of another library than NumPy gives one of the same library, on the same device.
        """
        check_is_fitted(self)
        points = validate_data(
            self, to_host(X), dtype=[np.float64, np.float32], order="C", reset=False
        )
        transformed = np.asarray(points @ self.components_.T.astype(points.dtype))
        return to_device_of(X, transformed) if is_foreign_array(X) else transformed

    def get_mahalanobis_matrix(self) -> FloatArray:
        """The matrix L'L of the distances after `transform`: A unless n_components cuts it."""
        check_is_fitted(self)
        return np.asarray(self.components_.T @ self.components_)

    def get_metric(self) -> Callable[..., float]:
        """The learned distance d(x, x', squared=False) as a function, for ``metric=`` arguments."""
        check_is_fitted(self)
        L = self.components_.copy()

        def distance(x: ArrayLike, x_prime: ArrayLike, squared: bool = False) -> float:
            difference = np.asarray(x, dtype=np.float64) - np.asarray(x_prime, dtype=np.float64)
            length = float(np.linalg.norm(L @ difference))
            return length * length if squared else length

        return distance

    def pair_distance(self, pairs: ArrayLike) -> FloatArray:
        """The learned distance ||L(x - x')|| of each pair of a (k, 2, m) array."""
        check_is_fitted(self)
        differences = self._pair_differences(pairs)
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

    def calibrate_threshold(
        self,
        pairs: ArrayLike,
        y: ArrayLike,
        strategy: str = "accuracy",
        min_rate: float | None = None,
        beta: float = 1.0,
    ) -> Self:
        """Choose `threshold_` so that `predict_pairs` does best on these pairs.

        Parameters
        ----------
        pairs : (k, 2, m) array_like
        y : (k,) array_like of +1 (similar) and -1 (dissimilar)
        strategy : "accuracy", "f_beta", "max_tpr" or "max_tnr"
            "max_tpr" maximizes the true positive rate among thresholds whose true negative rate is
            at least `min_rate`; "max_tnr" the other way round.
        min_rate : float, optional
            In [0, 1]; required by the last two.
        beta : float
            The beta of the F score.
        """
        distances = self.pair_distance(pairs)
        self.threshold_ = best_threshold(distances, y, strategy, min_rate, beta)
        return self

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _take(
        self,
        X: ArrayLike,
        y: ArrayLike | None,
        similar: ArrayLike | None = None,
        dissimilar: ArrayLike | None = None,
        similar_confidence: ArrayLike | None = None,
        dissimilar_confidence: ArrayLike | None = None,
    ) -> PairSet:
        """Turn what `fit` was given into pairs, after scikit-learn's own checks."""
        name = type(self).__name__
        if y is None and similar is None and dissimilar is None:
            raise ValueError(
                f"{name} requires y to be passed, but the target y is None: give the class of each "
                "point, -1 where it is not known, or pairs of point indices `similar` and "
                "`dissimilar`."
            )
        refuse_masked(X, "X", "remove these points or impute the missing values first")
        refuse_masked(y, "y", "mark an unknown label by -1")
        with np.errstate(invalid="ignore"):  # infinities are refused in words
            points = validate_data(
                self,
                to_host(X),
                dtype=[np.float64, np.float32],
                order="C",
                ensure_min_samples=2,
                ensure_all_finite=True,
            )
        if y is not None:
            y = column_or_1d(to_host(y), warn=True)
            check_consistent_length(points, y)
        self._check_n_components(points.shape[1])
        where = X if is_foreign_array(X) else points
        return supervise(where, y, similar, dissimilar, similar_confidence, dissimilar_confidence)

    @staticmethod
    def _doubts(pairs: PairSet, y: ArrayLike | None, has_constraints: bool) -> list[Warning]:
        """The warnings to issue before learning: outliers, labels of the wrong kind."""
        far = describe_far_values(pairs.points)
        kind = "" if y is None or has_constraints else describe_labels(to_host(y))
        return [*([FarValueWarning(far)] if far else []), *([UserWarning(kind)] if kind else [])]

    def _check_n_components(self, most: int) -> None:
        if self.n_components is not None and not 1 <= self.n_components <= most:
            raise ValueError(f"n_components={self.n_components} must be between 1 and {most}.")

    def _keep_metric(self, metric: FloatArray) -> None:
        self.metric_ = metric
        self.components_ = factor(metric, self.n_components)

    def _pair_differences(self, pairs: ArrayLike) -> FloatArray:
        """The differences x - x' of pairs, in the coordinates of the metric."""
        P = self._check_point_pairs(pairs)
        return np.asarray(P[:, 0] - P[:, 1])

    def _check_point_pairs(self, pairs: ArrayLike) -> FloatArray:
        P = check_array(to_host(pairs), ensure_2d=False, allow_nd=True, dtype=np.float64)
        if P.ndim != 3 or P.shape[1:] != (2, self.n_features_in_):
            raise ValueError(
                f"Pairs of points must have shape (k, 2, {self.n_features_in_}), not {P.shape}. "
                "From indices make them by X[pairs]."
            )
        return np.asarray(P)


def best_threshold(
    distances: ArrayLike,
    y: ArrayLike,
    strategy: str = "accuracy",
    min_rate: float | None = None,
    beta: float = 1.0,
) -> float:
    """Find the threshold t for which "similar iff distance <= t" agrees best with y.

    Among equally good ones the middle of the gap between two distances; below the smallest
    distance, where nothing is called similar, half of it, or -1 where that is zero.

    Examples
    --------
    >>> best_threshold([1.0, 2.0, 4.0, 5.0], [1, 1, -1, -1])
    3.0
    """
    distances, y = np.asarray(distances, dtype=np.float64), np.asarray(y)
    if y.shape != distances.shape or not np.all(np.isin(y, (-1, 1))):
        raise ValueError("y must hold +1 (similar) or -1 (dissimilar) for each pair.")
    n_similar, n_dissimilar = int(np.sum(y == 1)), int(np.sum(y == -1))
    if not n_similar or not n_dissimilar:
        raise ValueError("A threshold needs both similar and dissimilar pairs to be calibrated on.")
    order = np.argsort(distances, kind="stable")
    sorted_distances = distances[order]
    hits = np.concatenate([[0], np.cumsum(y[order] == 1)])
    false_alarms = np.arange(len(y) + 1) - hits
    cuts = np.flatnonzero(np.diff(sorted_distances, prepend=-np.inf, append=np.inf) > 0.0)
    sensitivity = hits[cuts] / n_similar
    specificity = 1.0 - false_alarms[cuts] / n_dissimilar
    if strategy == "accuracy":
        merit = sensitivity * n_similar + specificity * n_dissimilar
    elif strategy == "f_beta":
        missed = n_similar - hits[cuts]
        weighted = (1.0 + beta**2) * hits[cuts]
        merit = weighted / np.maximum(weighted + beta**2 * missed + false_alarms[cuts], 1e-300)
    elif strategy in ("max_tpr", "max_tnr"):
        if min_rate is None or not 0.0 <= min_rate <= 1.0:
            raise ValueError(f'strategy="{strategy}" needs min_rate in [0, 1], not {min_rate!r}.')
        rates = (sensitivity, specificity) if strategy == "max_tpr" else (specificity, sensitivity)
        merit = np.where(rates[1] >= min_rate - 1e-12, rates[0], -1.0)
    else:
        raise ValueError(
            f"strategy={strategy!r} is not known: use accuracy, f_beta, max_tpr or max_tnr."
        )
    cut = int(cuts[np.argmax(merit)])
    if cut == 0:
        return float(sorted_distances[0]) / 2.0 or -1.0
    below = float(sorted_distances[cut - 1])
    if cut == len(y):
        return below
    above = float(sorted_distances[cut])
    middle = below + (above - below) / 2.0
    return middle if middle < above else below  # of neighboring numbers the middle is one of them
