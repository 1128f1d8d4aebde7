"""Kernel SERAPH (Appendix C.2): the metric of the feature space, through kernel PCA."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics.pairwise import pairwise_kernels

from ..numerics.arrays import one_blas_thread
from ..numerics.checks import MOST, FloatArray
from ..pairs.pair_set import PairSet
from ..penalties.penalty import Penalty
from .base import BaseSERAPH, Parameters
from .mahalanobis import all_or_nothing
from .settings import NEGLIGIBLE


@dataclass(eq=False, repr=False)
class KernelParameters:
    """The kernel of KernelSERAPH, and its parameters."""

    kernel: str | Callable[..., float] = "rbf"
    gamma: float | None = None
    degree: float = 3
    coef0: float = 1.0
    kernel_params: Mapping[str, Any] | None = None


@dataclass(eq=False, repr=False)
class _Parameters(Parameters, KernelParameters):
    """All parameters of KernelSERAPH; the kernel's are the first."""


class KernelSERAPH(_Parameters, BaseSERAPH):
    """Learn a metric in the feature space of a kernel, as SERAPH does in the space of the features.

    It minimizes exactly the objective of :class:`seraph_cvx.SERAPH`, with ||phi(x) - phi(x')||_A in
    place of ||x - x'||_A.

    Only the restriction of the metric to the span of the training points matters, and the trace
    penalty makes it zero outside that span. Kernel PCA with all components kept and none rescaled
    is an isometry on that span, so SERAPH in its coordinates is SERAPH in the feature space.
    Appendix C.2 of the paper is not available; this derivation is our own.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        Any name of :func:`sklearn.metrics.pairwise.pairwise_kernels`, or a function of two rows.
    gamma, degree, coef0 : float, optional
        Parameters of the named kernels, as in scikit-learn.
    kernel_params : mapping, optional
        Passed to a callable kernel.
    unlabeled_weight, trace_weight, threshold, ...
        As for :class:`seraph_cvx.SERAPH`. `penalties` may only contain those that do not refer to
        features: TraceBound, and Ridge and LogDet without a prior.

    Attributes
    ----------
    metric_ : (r, r) array
        A in the kernel PCA coordinates.
    components_ : (n_components, r) array
        L with A = L'L.
    certificate_, history_, n_iter_, status_, threshold_, n_features_in_
    m_step_objective_, m_step_metric_
        As for :class:`seraph_cvx.SERAPH`.

    Examples
    --------
    >>> from seraph_cvx import KernelSERAPH
    >>> X = [[0.0, 0.1], [0.1, 0.9], [2.0, 0.2], [2.1, 0.8], [0.2, 0.5], [1.9, 0.4]]
    >>> model = KernelSERAPH(kernel="linear").fit(X, [0, 0, 1, 1, -1, -1])
    >>> model.pair_distance([[X[0], X[1]], [X[0], X[2]]]).round(2)
    array([0.3 , 2.44])
    """

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        similar: ArrayLike | None = None,
        dissimilar: ArrayLike | None = None,
        similar_confidence: ArrayLike | None = None,
        dissimilar_confidence: ArrayLike | None = None,
    ) -> Self:
        """Learn the metric from X and class labels, constraints on pairs, or both.

        The parameters are those of :meth:`seraph_cvx.SERAPH.fit`.
        """
        constraints = similar, dissimilar, similar_confidence, dissimilar_confidence
        with all_or_nothing(self):
            pairs = self._make_pairs(X, y, *constraints)
            for doubt in self._doubts_about_data(pairs, y):
                warnings.warn(doubt, stacklevel=2)
            for block in self.penalties if isinstance(self.penalties, list | tuple) else ():
                if isinstance(block, Penalty) and block.refers_to_features:
                    raise ValueError(
                        f"{block!r} refers to the features, and the metric of KernelSERAPH is one "
                        "of the kernel's coordinates: leave it out, or use SERAPH. TraceBound, and "
                        "Ridge and LogDet without a prior mean the same in all coordinates."
                    )
            with one_blas_thread():
                _, not_reached = self._minimize(self._embed(pairs))
        for warning in not_reached:
            warnings.warn(warning, stacklevel=2)
        return self

    def _embed(self, pairs: PairSet) -> PairSet:
        """Embed the pairs in kernel PCA coordinates, and keep these for new points."""
        self.training_points_ = pairs.points
        K = self._kernel_with(pairs.points)
        self._row_means = K.mean(axis=0)
        self._mean = float(self._row_means.mean())
        eigenvalues, vectors = np.linalg.eigh(self._centered(K))
        rounding = 4.0 * np.finfo(np.float64).eps * len(K) * float(np.max(np.abs(K)))
        kept = eigenvalues > max(NEGLIGIBLE * float(eigenvalues[-1]), rounding)
        roots = np.sqrt(eigenvalues[kept])
        self.axes_, coordinates = vectors[:, kept] / roots, vectors[:, kept] * roots
        if not np.any(kept):  # all points are one: one coordinate, in which they do not differ
            self.axes_ = coordinates = np.zeros((len(K), 1))
        self._check_n_components(coordinates.shape[1])
        return PairSet(coordinates, pairs.labels)

    def _coordinates(self, points: FloatArray) -> FloatArray:
        """The kernel PCA coordinates of any points."""
        return np.asarray(self._centered(self._kernel_with(points)) @ self.axes_)

    def _centered(self, K: FloatArray) -> FloatArray:
        """Center a kernel: the inner products of phi(x) - mean with the phi(x_i) - mean."""
        return np.asarray(K - K.mean(axis=1)[:, None] - self._row_means + self._mean)

    def _kernel_with(self, points: FloatArray) -> FloatArray:
        """The kernel of any points with those of the fit."""
        settings: dict[str, Any]
        if callable(self.kernel):
            settings = dict(self.kernel_params or {})
        else:
            settings = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        with np.errstate(over="ignore", invalid="ignore"):
            kernel = pairwise_kernels(
                np.asarray(points, dtype=np.float64),
                self.training_points_,
                metric=self.kernel,
                filter_params=True,
                **settings,
            )
        K = np.asarray(kernel, dtype=np.float64)
        largest = MOST / len(self.training_points_) ** 2  # so that sums over pairs do not overflow
        if not np.max(np.abs(K)) <= largest:
            raise ValueError(
                f"kernel={self.kernel!r} is beyond {largest:.1g}, or no number, at some two "
                "points: standardize the features, or choose another kernel or gamma."
            )
        return K
