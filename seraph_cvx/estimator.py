"""SERAPH as a scikit-learn transformer."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

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

from .alternation import Iteration, alternate
from .certificate import Certificate
from .direct import minimise_directly
from .m_step.solution import NotCertified, Status
from .pairs import FloatArray, PairSet
from .psd_cone import factor


class SERAPH(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """max_A sum_{S u D} ln p(y) + mu sum_U sum_y p(y) ln p(y) - lambda tr(A), eq. (7).

    Semi-supervised metric learning: points of the same known class become near, of different known
    classes far, and the other pairs, which have no label, are told apart with low entropy.

    Parameters
    ----------
    unlabeled_weight : float or "ratio", default="ratio"
        mu: the weight of the unlabeled pairs. "ratio" is the paper's #(S u D) / #U.
    trace_weight : float, default=1.0
        lambda: larger gives a metric of lower rank. The paper's settings (mu, lambda) are none
        (0, 0), post ("ratio", 0), proj (0, 1) and hyper ("ratio", 1), which is the default.
    threshold : float, default=1.0
        eta: the squared distance at which a pair is as likely similar as dissimilar.
    sharpness : float, optional
        Of the soft labels of the E-step; None is the paper's 1 + mu. With it the EM-like scheme
        descends J, in which the unlabeled pairs weigh far less than in (7); 2 keeps more of them.
    algorithm : "em" or "direct", default="em"
        The paper's EM-like scheme, whose M-steps are convex and certified; or projected gradient
        on (7) itself from A = I, which is nonconvex: it ends at a stationary point.
    solver : str, default="fista"
        Of the M-step; see :func:`seraph_cvx.solve_m_step`.
    tol : float, default=1e-6
        EM stops when J falls by less, relatively; direct, when its stationarity is below.
    m_step_tol : float, default=1e-8
        Certified relative gap of the last M-step.
    max_iter : int, optional
        By default 500 EM iterations, or 5000 steps of direct.
    n_components : int, optional
        Rows of `components_` and columns of `transform`; by default all m.
    allow_unattained : bool, default=False
        Accept M-steps that have no optimum (usual for trace_weight=0) instead of raising.
    n_jobs : int, optional
        Threads over blocks of pairs.
    verbose : int, default=0
        1 writes a line for each EM iteration to stderr.
    random_state : ignored
        Nothing here is random; accepted so that code which passes one to every estimator works.

    Attributes
    ----------
    metric_ : (m, m) array
        A, positive semidefinite; always the full one.
    components_ : (n_components, m) array
        L with A = L'L (its leading rows).
    certificate_ : Certificate or None
        The duality gap of the last M-step; None for algorithm="direct", which has none.
    history_ : list
        One :class:`~seraph_cvx.alternation.Iteration` each, or the values of (7) for "direct".
    n_iter_ : int
    status_ : Status
    n_features_in_ : int

    Examples
    --------
    >>> from seraph_cvx import SERAPH
    >>> X = [[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0], [0.2, 5.0], [1.9, 4.0]]
    >>> model = SERAPH().fit(X, [0, 0, 1, 1, -1, -1])
    >>> model.certificate_.relative_gap <= 1e-8
    True
    >>> model.pair_distance([[X[0], X[1]], [X[0], X[2]]]).round(2)
    array([0.04, 2.11])
    """

    def __init__(
        self,
        unlabeled_weight: float | str = "ratio",
        trace_weight: float = 1.0,
        threshold: float = 1.0,
        sharpness: float | None = None,
        algorithm: str = "em",
        solver: Any = "fista",
        tol: float = 1e-6,
        m_step_tol: float = 1e-8,
        max_iter: int | None = None,
        n_components: int | None = None,
        allow_unattained: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.unlabeled_weight = unlabeled_weight
        self.trace_weight = trace_weight
        self.threshold = threshold
        self.sharpness = sharpness
        self.algorithm = algorithm
        self.solver = solver
        self.tol = tol
        self.m_step_tol = m_step_tol
        self.max_iter = max_iter
        self.n_components = n_components
        self.allow_unattained = allow_unattained
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> SERAPH:
        """Learn the metric from X and class labels y, -1 for an unknown one.

        Parameters
        ----------
        X : (n, m) array_like
        y : (n,) array_like
            Class labels; -1 is unknown (None too among strings). At least two must be known.
        """
        if y is None:
            raise ValueError(
                "SERAPH requires y to be passed, but the target y is None: give the class of each "
                "point, -1 where it is not known."
            )
        points = validate_data(
            self, X, dtype=[np.float64, np.float32], ensure_min_samples=2, ensure_all_finite=True
        )
        labels = column_or_1d(y, warn=True)
        check_consistent_length(points, labels)
        if self.algorithm not in ("em", "direct"):
            raise ValueError(f'algorithm={self.algorithm!r} is not known: use "em" or "direct".')
        m = points.shape[1]
        if self.n_components is not None and not 1 <= self.n_components <= m:
            raise ValueError(f"n_components={self.n_components} must be between 1 and {m}.")
        self._learn(PairSet.from_labels(points, labels))
        self.components_ = factor(self.metric_, self.n_components)
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """z = L x: Euclidean distances of z are the learned distances of x."""
        check_is_fitted(self)
        points = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return np.asarray(points @ self.components_.T.astype(points.dtype))

    def get_mahalanobis_matrix(self) -> FloatArray:
        """L'L: the matrix of the distances after `transform`; A unless n_components cuts it."""
        check_is_fitted(self)
        return np.asarray(self.components_.T @ self.components_)

    def get_metric(self) -> Callable[[ArrayLike, ArrayLike], float]:
        """d(x, x') = ||L(x - x')|| as a function, for scikit-learn's ``metric=`` arguments."""
        check_is_fitted(self)
        L = self.components_.copy()

        def distance(x: ArrayLike, x_prime: ArrayLike) -> float:
            difference = np.asarray(x, dtype=np.float64) - np.asarray(x_prime, dtype=np.float64)
            return float(np.linalg.norm(L @ difference))

        return distance

    def pair_distance(self, pairs: ArrayLike) -> FloatArray:
        """||L(x - x')|| for each pair of a (k, 2, m) array."""
        check_is_fitted(self)
        P = check_array(pairs, ensure_2d=False, allow_nd=True, dtype=np.float64)
        if P.ndim != 3 or P.shape[1:] != (2, self.n_features_in_):
            raise ValueError(
                f"Pairs of points must have shape (k, 2, {self.n_features_in_}), not {P.shape}."
            )
        return np.asarray(np.linalg.norm((P[:, 0] - P[:, 1]) @ self.components_.T, axis=1))

    def pair_score(self, pairs: ArrayLike) -> FloatArray:
        """-||L(x - x')||: larger is more similar."""
        return -self.pair_distance(pairs)

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _learn(self, pairs: PairSet) -> None:
        if self.algorithm == "direct":
            direct = minimise_directly(
                pairs,
                self.unlabeled_weight,
                self.trace_weight,
                self.threshold,
                tol=self.tol,
                max_iter=5_000 if self.max_iter is None else self.max_iter,
                n_jobs=self.n_jobs,
            )
            self._keep(direct.metric, None, direct.values, direct.iterations, direct.status)
            if direct.status is not Status.CERTIFIED:
                warnings.warn(
                    f"Stopped after {direct.iterations} steps at stationarity "
                    f"{direct.stationarity:.2g}, asked for {self.tol:.2g}: raise max_iter or tol.",
                    NotCertified,
                    stacklevel=3,
                )
            return
        run = alternate(
            pairs,
            self.unlabeled_weight,
            self.trace_weight,
            self.threshold,
            self.sharpness,
            self.solver,
            self.tol,
            self.m_step_tol,
            500 if self.max_iter is None else self.max_iter,
            self.allow_unattained,
            self.n_jobs,
            _show if self.verbose else None,
        )
        if run.metric is None:
            raise RuntimeError(run.message)
        self._keep(run.metric, run.m_step.certificate, run.history, len(run.history), run.status)

    def _keep(
        self,
        metric: FloatArray,
        certificate: Certificate | None,
        history: list[Any],
        n_iter: int,
        status: Status,
    ) -> None:
        self.metric_ = metric
        self.certificate_ = certificate
        self.history_ = history
        self.n_iter_ = n_iter
        self.status_ = status


def _show(iteration: Iteration, metric: FloatArray) -> None:
    sys.stderr.write(
        f"[SERAPH] iteration {iteration.number}: J = {iteration.descent_value:.8g}, "
        f"M-step gap {iteration.relative_gap:.1e}, rank {iteration.rank}\n"
    )
