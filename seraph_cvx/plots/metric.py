"""Points under the Euclidean and under the learned metric, with the ball of the metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

from ..numerics.checks import FloatArray, check_number, check_points
from ..numerics.psd_cone import check_metric, factor, symmetrize
from .display import Display
from .points import LEARNED, PRINCIPAL, draw_ball, draw_points, group_by_class, principal_directions
from .style import legible


@dataclass(eq=False)
class MetricDisplay(Display):
    """Show the unit ball of a metric among the points, and the points as it sees them.

    Its edge {v: v'Av = eta} holds the pairs with p(+1) = 1/2 in eq. (8).

    Left the points in a plane of the features, right the same points where Euclidean distances
    are those of A. The ball is cut by the plane and centered at the mean of the points; both panels
    have one scale for both axes.

    Parameters
    ----------
    before, after : (n, 1) or (n, 2) arrays
        The points in the left and in the right panel.
    section : (k, k) array
        U'AU: the metric in the plane of `before`.
    y : (n,) array
        Class labels; -1 or None is unknown.
    threshold : float
        eta.
    before_names, after_names : pairs of str
        The labels of the axes.
    class_names : sequence of str, optional
        For labels that are positions in this sequence: their names in the legend.
    labeled : (n,) boolean array, optional
        Which points had their label used: they are large, the others small. By default all are.
    """

    before: FloatArray
    after: FloatArray
    section: FloatArray
    y: NDArray[Any]
    threshold: float = 1.0
    before_names: tuple[str, str] = PRINCIPAL
    after_names: tuple[str, str] = LEARNED
    class_names: Sequence[str] | None = None
    labeled: NDArray[np.bool_] | None = None

    @classmethod
    def from_result(
        cls,
        metric: ArrayLike,
        X: ArrayLike,
        y: ArrayLike | None = None,
        threshold: float = 1.0,
        features: tuple[int, int] | None = None,
        feature_names: Sequence[str] | None = None,
        class_names: Sequence[str] | None = None,
        labeled: ArrayLike | None = None,
    ) -> Self:
        """Compute the points in a plane of the features, and in coordinates of the metric.

        Parameters
        ----------
        metric : (m, m) array_like
            A.
        X : (n, m) array_like
        y : (n,) array_like, optional
            Class labels; -1 or None is unknown.
        threshold : float
            eta of the ball.
        features : pair of int, optional
            The two features whose plane is shown, left as they are, right by (U'AU)^(1/2). By
            default left the two leading principal components of X, right the two leading
            coordinates of L x, A = L'L.
        feature_names, class_names : sequences of str, optional
        labeled : (n,) boolean array_like, optional
            Which points of known class had their label used; by default all.

        Examples
        --------
        >>> from seraph_cvx.plots import MetricDisplay
        >>> X = [[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0]]
        >>> display = MetricDisplay.from_result([[4.0, 0.0], [0.0, 0.01]], X, features=(0, 1))
        >>> display.after[2]
        array([4. , 0.2])
        """
        points = check_points(X)
        A = check_metric(metric, points.shape[1], "metric")
        labels = np.full(len(points), -1) if y is None else np.asarray(y)
        eta = check_number(threshold, "threshold", 0.0, strict=True)
        if features is None:
            basis = principal_directions(points)[:, :2]
            before = (points - points.mean(axis=0)) @ basis
            after = points @ factor(A)[:2].T
            names = PRINCIPAL, LEARNED
        else:
            basis = np.eye(points.shape[1])[:, _check_features(features, points.shape[1])]
            before = points @ basis
            after = before @ _root(basis.T @ A @ basis)
            names = _name(features, feature_names)
        used = None if labeled is None else np.asarray(labeled, dtype=bool)
        section = basis.T @ A @ basis
        return cls(before, after, section, labels, eta, *names, class_names, used)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: ArrayLike,
        y: ArrayLike | None = None,
        threshold: float | None = None,
        **more: Any,
    ) -> Self:
        """Show the metric of a fitted model: A = L'L of its `components_`, eta its `threshold`.

        So the ball holds the differences that `predict_pairs` calls similar, unless its threshold
        was calibrated. For the A of SERAPH's last M-step alone, before any share of the identity,
        give its `m_step_metric_` to :meth:`from_result`.

        Parameters
        ----------
        model : SERAPH or another fitted metric learner
        X, y, threshold, **more
            As for :meth:`from_result`; a model without a threshold needs one.

        Examples
        --------
        >>> from seraph_cvx import SERAPH
        >>> from seraph_cvx.plots import MetricDisplay
        >>> X = [[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0]]
        >>> model = SERAPH().fit(X, [0, 0, 1, 1])
        >>> MetricDisplay.from_estimator(model, X, [0, 0, 1, 1]).plot().ax_.get_title()
        'Before: Euclidean distance'
        """
        if hasattr(model, "kernel"):
            raise ValueError(
                f"{type(model).__name__} has a metric on the feature space of its kernel, which "
                "the features of X do not show: use PosteriorDisplay.from_estimator."
            )
        eta = threshold_of(model, threshold)
        return cls.from_result(model.get_mahalanobis_matrix(), X, y, eta, **more)

    def _draw(self, axes: Sequence[Axes]) -> None:
        left, right = axes
        groups = group_by_class(self.y, self.class_names, self.labeled)
        draw_points(left, self.before, groups, self.before_names)
        draw_points(right, self.after, groups, self.after_names)
        classes = left.get_legend_handles_labels()[0]
        edges = (
            draw_ball(left, self.before, self.section, self.threshold),
            draw_ball(right, self.after, np.eye(self.after.shape[1]), self.threshold),
        )
        left.set_title("Before: Euclidean distance")
        right.set_title("After: learned metric")
        self._add_legend([*[edge for edge in edges if edge is not None][:1], *classes])

    def _title(self) -> str:
        return "The points and the ball of the metric"

    def _shape(self) -> tuple[int, int]:
        return 1, 2

    def _size(self) -> tuple[float, float]:
        return super()._size()[0], 5.4


def threshold_of(model: Any, threshold: float | None) -> float:
    """The threshold eta as given, or that of the model."""
    if threshold is None:
        threshold = getattr(model, "threshold", None)
    if threshold is None:
        raise ValueError(
            f"{type(model).__name__} has no parameter `threshold`: give threshold=, the squared "
            "distance at which a pair is as likely similar as dissimilar."
        )
    return check_number(threshold, "threshold", 0.0, strict=True)


def _check_features(features: tuple[int, int], m: int) -> list[int]:
    chosen = list(features)
    if len(set(chosen)) != 2 or len(chosen) != 2 or not all(0 <= k < m for k in chosen):
        raise ValueError(
            f"features={features} must be two different feature numbers from 0 to {m - 1}."
        )
    return chosen


def _name(
    features: tuple[int, int], given: Sequence[str] | None
) -> tuple[tuple[str, str], tuple[str, str]]:
    plain = [f"feature {k}" if given is None else str(given[k]) for k in features]
    before = (legible(plain[0], 40), legible(plain[1], 40))
    after = (legible(f"{plain[0]}, by A", 40), legible(f"{plain[1]}, by A", 40))
    return before, after


def _root(B: FloatArray) -> FloatArray:
    """The symmetric square root, which turns the points as little as possible."""
    eigenvalues, vectors = np.linalg.eigh(symmetrize(B))
    return np.asarray((vectors * np.sqrt(np.maximum(eigenvalues, 0.0))) @ vectors.T)
