"""What the rivals share: an estimator around a metric, the points' span, descent on a factor."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod

import cvxpy as cp
import numpy as np
from scipy.linalg import qr
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from seraph_cvx import PairSet
from seraph_cvx.numerics.psd_cone import factor

SPAN_TOLERANCE = 1e-12
"""Directions in which the points differ by less than this share of their spread do not count."""


class Rival(TransformerMixin, BaseEstimator, ABC):
    """The base of all rivals: `_learn` makes the metric A = L'L of points and supervision.

    Attributes
    ----------
    metric_ : (m, m) array
        A.
    components_ : (m, m) array
        L: the Euclidean distances of `transform` are the learned ones.
    """

    def fit(self, X, y=None, similar=None, dissimilar=None):
        """Learn from classes y (-1 is unknown), or from rows (i, j) of pairs.

        LMNN and NCA need classes.
        """
        if y is None:
            pairs = PairSet.from_constraints(X, similar or [], dissimilar or [])
        else:
            pairs = PairSet.from_labels(X, y)
        self.metric_ = self._learn(pairs, y)
        self.components_ = factor(self.metric_)
        return self

    @abstractmethod
    def _learn(self, pairs, y):
        """Learn the metric A."""

    def transform(self, X):
        """Transform points to z = L x."""
        check_is_fitted(self)
        return np.asarray(X, dtype=np.float64) @ self.components_.T

    def _warn_if(self, stopped):
        """Warn that the iterations ended at the limit."""
        if stopped:
            warnings.warn(
                f"{type(self).__name__} stopped after {self.n_iter_} iterations: raise max_iter or "
                "tol, or standardize the features.",
                ConvergenceWarning,
                stacklevel=4,
            )


def known_classes(rival, y):
    """The indices of the points of known class, and their classes; there must be two of them."""
    if y is None:
        raise ValueError(f"{type(rival).__name__} learns from classes, not from pairs: give y.")
    known = np.flatnonzero(np.asarray(y) != -1)
    classes = np.unique(np.asarray(y)[known], return_inverse=True)[1]
    if not np.any(classes):
        raise ValueError(f"{type(rival).__name__} needs labeled points of two classes at least.")
    return known, classes


def quadratic_forms(A, V):
    """The squared distances v_k' A v_k of the rows of V, never below 0."""
    return np.maximum(np.sum((V @ A) * V, axis=1), 0.0)


def moment(V, weights=1.0):
    """The weighted second moment sum_k w_k v_k v_k' of the rows of V."""
    return (V.T * weights) @ V


def state_squared_distances(A, V) -> cp.Expression:
    """State the squared distances v_k' A v_k of the rows of V: linear in the distinct entries."""
    i, j = np.triu_indices(V.shape[1])
    return (V[:, i] * V[:, j] * np.where(i == j, 1.0, 2.0)) @ A[i, j]


def span_basis(points):
    """An orthonormal basis Q of the span of the differences x_i - x_j."""
    Q, R, _ = qr((points - points.mean(axis=0)).T, mode="economic", pivoting=True)
    lengths = np.abs(np.diag(R))
    return Q[:, lengths > SPAN_TOLERANCE * max(1e-300, lengths[0])]


def principal_directions(points):
    """The eigenvectors of the covariance of points, as columns, the widest direction first."""
    centered = points - points.mean(axis=0)
    variances, vectors = np.linalg.eigh(centered.T @ centered / len(points))
    rank = int(np.sum(variances > SPAN_TOLERANCE * max(variances[-1], 0.0)))
    if rank == 0:
        raise ValueError("All points are equal: there is no direction in which they differ.")
    return np.ascontiguousarray(vectors[:, ::-1][:, :rank])


def descend(value_and_gradient, start, max_iter):
    """Descend a function of a factor F by L-BFGS (Byrd, Lu, Nocedal, Zhu 1995), to rounding.

    The first step, which knows no curvature, is at most 0.3 times the norm of F: from F = I it
    cannot reach a singular F.
    """
    unit = 0.3 * float(np.linalg.norm(start, 2))

    def flat(x):
        value, gradient = value_and_gradient(unit * x.reshape(start.shape))
        return value, unit * gradient.ravel()

    limits = {"maxiter": max_iter, "maxfun": 2 * max_iter}
    options = {**limits, "maxcor": 50, "maxls": 60, "ftol": 1e-15, "gtol": 1e-9}
    search = minimize(flat, start.ravel() / unit, jac=True, method="L-BFGS-B", options=options)
    return unit * search.x.reshape(start.shape), int(search.nit)
