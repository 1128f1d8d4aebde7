"""SERAPH for pairs of points, with the interface of metric-learn's pair learners."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.metrics import roc_auc_score
from sklearn.utils.validation import check_array

from ..numerics.arrays import one_blas_thread
from ..numerics.checks import FloatArray
from ..pairs.pair_set import supervise_pairs
from .base import BaseSERAPH, Parameters
from .mahalanobis import all_or_nothing


@dataclass(eq=False, repr=False)
class _Parameters(Parameters):
    """The parameters of SERAPH, with another default."""

    identity_share: float | str = 0.0


class PairSERAPH(_Parameters, ClassifierMixin, BaseSERAPH):  # type: ignore[misc]
    """Learn a Mahalanobis metric from labeled pairs of points, as a classifier of pairs.

    Each sample is a pair of points and its label is +1 (similar) or -1 (dissimilar), so that
    scikit-learn's splitters, scorers and searches work on pairs. All other pairs of these points
    are unlabeled.

    Parameters
    ----------
    unlabeled_weight, trace_weight, threshold, ...
        As for :class:`seraph_cvx.SERAPH`, except that `identity_share` is 0: the labeled pairs
        alone decide.

    Attributes
    ----------
    metric_, components_, threshold_, certificate_, history_, n_iter_, status_, n_features_in_
    m_step_objective_, m_step_metric_
        As for :class:`seraph_cvx.SERAPH`.
    classes_ : array([-1, 1])

    Examples
    --------
    >>> from seraph_cvx import PairSERAPH
    >>> P = [[[0.0, 1.0], [0.1, 9.0]], [[0.0, 1.0], [2.0, 2.0]], [[2.0, 2.0], [2.1, 8.0]]]
    >>> model = PairSERAPH().fit(P, [1, -1, 1])
    >>> model.predict(P)
    array([ 1, -1,  1])
    >>> model.pair_distance(P).round(2)
    array([0.02, 2.44, 0.02])
    """

    def fit(
        self,
        pairs: ArrayLike,
        y: ArrayLike,
        confidence: ArrayLike | None = None,
        unlabeled_points: ArrayLike | None = None,
    ) -> Self:
        """Learn the metric from labeled pairs.

        Parameters
        ----------
        pairs : (k, 2, m) array_like
        y : (k,) array_like of +1 and -1
        confidence : (k,) array_like, optional
            c_k > 0: how much each pair counts; 1 by default.
        unlabeled_points : (u, m) array_like, optional
            More points, about which nothing is known; their pairs are added to the unlabeled ones.
        """
        if y is None:
            raise ValueError(
                "PairSERAPH requires y to be passed, but the target y is None: give +1 for each "
                "similar pair and -1 for each dissimilar one."
            )
        P = check_array(
            pairs, ensure_2d=False, allow_nd=True, dtype=np.float64, estimator=self, input_name="X"
        )
        if P.ndim != 3 or P.shape[1] != 2:
            raise ValueError(
                f"Pairs of points must have shape (k, 2, m), not {P.shape}: a pair is two points. "
                "From an array of indices make them by X[pairs]. Reshape your data."
            )
        self._check_n_components(P.shape[2])
        more = None
        if unlabeled_points is not None:
            more = check_array(unlabeled_points, dtype=np.float64, input_name="unlabeled_points")
            if more.shape[1] != P.shape[2]:
                raise ValueError(
                    f"unlabeled_points have {more.shape[1]} features, the pairs {P.shape[2]}."
                )
        with all_or_nothing(self), one_blas_thread():
            self.n_features_in_ = P.shape[2]
            supervised, left_out = supervise_pairs(P, y, confidence, more)
            if left_out:
                warnings.warn(left_out, stacklevel=2)
            _, not_reached = self._minimize(supervised)
            self.classes_ = np.array([-1, 1])
        for warning in not_reached:
            warnings.warn(warning, stacklevel=2)
        return self

    def predict(self, pairs: ArrayLike) -> Any:
        """Predict +1 for each pair within `threshold_`, else -1."""
        return self.predict_pairs(pairs)

    def decision_function(self, pairs: ArrayLike) -> FloatArray:
        """Score the similarity of each pair by -||x - x'||_A: larger is more similar."""
        return self.pair_score(pairs)

    def predict_proba(self, pairs: ArrayLike) -> FloatArray:
        """The probabilities (p(-1), p(+1)) of eq. (8), one row for each pair."""
        similar = self.predict_pair_proba(pairs)
        return np.column_stack([1.0 - similar, similar])

    def score(self, pairs: ArrayLike, y: ArrayLike) -> float:
        """The area under the ROC curve of `pair_score`, which needs no threshold."""
        return float(roc_auc_score(np.asarray(y), self.pair_score(pairs)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags
