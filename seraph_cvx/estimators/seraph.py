"""SERAPH as a scikit-learn transformer."""

from __future__ import annotations

import sys
import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ..alternation import Iteration, alternate
from ..certificate import Certificate
from ..checks import FloatArray, check_number
from ..direct import minimise_directly
from ..m_step.solution import NotCertified, Status
from ..mahalanobis import MahalanobisTransformer
from ..manifold import manifold_term
from ..objective import MStepObjective
from ..pairs import PairSet
from ..posterior import posterior_similar
from ..psd_cone import factor, shrink

AUTO_TRACE_SHARE = 0.02
"""trace_weight="auto": this share of the weight above which the labeled pairs give A = 0."""


class BaseSERAPH(MahalanobisTransformer):
    """The parameters of SERAPH, and the learning itself, for whatever gives the pairs."""

    def __init__(
        self,
        unlabeled_weight: float | str = "ratio",
        trace_weight: float | str = 1.0,
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
        laplacian_weight: float = 0.0,
        laplacian_neighbors: int = 7,
        laplacian_kernel: str = "heat",
        laplacian_normalised: bool = False,
        identity_share: float = 0.0,
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
        self.laplacian_weight = laplacian_weight
        self.laplacian_neighbors = laplacian_neighbors
        self.laplacian_kernel = laplacian_kernel
        self.laplacian_normalised = laplacian_normalised
        self.identity_share = identity_share

    def predict_pair_proba(self, pairs: ArrayLike) -> FloatArray:
        """p(+1 | x, x') = 1 / (1 + exp(||x - x'||_A^2 - eta)), eq. (8), for each pair.

        Parameters
        ----------
        pairs : (k, 2, m) array_like

        Returns
        -------
        (k,) array
            The probability that the two points are of one class under the learned A, whole as it
            is (`n_components` and `identity_share` do not enter). p(-1) is one minus it.
        """
        check_is_fitted(self)
        V = self._pair_differences(pairs)
        squares = np.einsum("ki,ij,kj->k", V, self.metric_, V)
        return posterior_similar(squares - self.threshold)

    def _learn(self, pairs: PairSet) -> None:
        """Fit the metric to the pairs, by the algorithm asked for."""
        if self.algorithm not in ("em", "direct"):
            raise ValueError(f'algorithm={self.algorithm!r} is not known: use "em" or "direct".')
        nu = check_number(self.laplacian_weight, "laplacian_weight", 0.0)
        term = None
        if nu > 0.0:
            term = manifold_term(
                pairs.points,
                nu,
                self.laplacian_neighbors,
                self.laplacian_kernel,
                self.laplacian_normalised,
            )
        mu, trace_weight = self._unlabeled_weight(pairs), self._trace_weight(pairs, term)
        if self.algorithm == "direct":
            direct = minimise_directly(
                pairs,
                mu,
                trace_weight,
                self.threshold,
                tol=self.tol,
                max_iter=5_000 if self.max_iter is None else self.max_iter,
                n_jobs=self.n_jobs,
                manifold_term=term,
            )
            self._keep(direct.metric, None, direct.values, direct.iterations, direct.status)
            if direct.status is not Status.CERTIFIED:
                warnings.warn(
                    f"Stopped after {direct.iterations} steps at stationarity "
                    f"{direct.stationarity:.2g}, asked for {self.tol:.2g}: raise max_iter or tol.",
                    NotCertified,
                    stacklevel=4,
                )
            return
        run = alternate(
            pairs,
            mu,
            trace_weight,
            self.threshold,
            self.sharpness,
            self.solver,
            self.tol,
            self.m_step_tol,
            500 if self.max_iter is None else self.max_iter,
            self.allow_unattained,
            self.n_jobs,
            _show if self.verbose else None,
            term,
        )
        if run.metric is None:
            raise RuntimeError(run.message)
        self._keep(run.metric, run.m_step.certificate, run.history, len(run.history), run.status)

    def _unlabeled_weight(self, pairs: PairSet) -> float:
        """mu of the M-steps as a number."""
        if self.unlabeled_weight != "full":
            return pairs.resolve_unlabeled_weight(self.unlabeled_weight)
        ratio = pairs.resolve_unlabeled_weight("ratio")
        if self.algorithm == "direct":
            return ratio
        if self.sharpness is None or not self.sharpness > 1.0:
            raise ValueError(
                f'unlabeled_weight="full" needs sharpness > 1, not {self.sharpness!r}: the soft '
                "labels of a sharpness a leave (a - 1)/a of the weight."
            )
        return ratio * self.sharpness / (self.sharpness - 1.0)

    def _trace_weight(self, pairs: PairSet, term: FloatArray | None) -> float:
        """lambda as a number."""
        if not isinstance(self.trace_weight, str):
            return self.trace_weight
        if self.trace_weight != "auto":
            raise ValueError(f'trace_weight={self.trace_weight!r}: give a number or "auto".')
        supervised = MStepObjective(
            pairs, unlabeled_weight=0.0, threshold=self.threshold, manifold_term=term
        )
        return AUTO_TRACE_SHARE * supervised.critical_trace_weight or 1.0

    def _keep(
        self,
        metric: FloatArray,
        certificate: Certificate | None,
        history: list[Any],
        n_iter: int,
        status: Status,
    ) -> None:
        self._keep_metric(metric)
        share = check_number(self.identity_share, "identity_share", 0.0)
        if share > 0.0:
            self.components_ = factor(shrink(metric, share), self.n_components)
        self.threshold_ = float(np.sqrt(self.threshold))  # there a pair is as likely as not
        self.certificate_ = certificate
        self.history_ = history
        self.n_iter_ = n_iter
        self.status_ = status


class SERAPH(BaseSERAPH):
    """max_A sum_{S u D} ln p(y) + mu sum_U sum_y p(y) ln p(y) - lambda tr(A), eq. (7).

    Semi-supervised metric learning: points of the same known class become near, of different known
    classes far, and the other pairs, which have no label, are told apart with low entropy.

    Parameters
    ----------
    unlabeled_weight : float, "ratio" or "full", default="ratio"
        mu: the weight of the unlabeled pairs. "ratio" is the paper's #(S u D) / #U. "full" is the
        weight of the M-steps at which J has all of that ratio: ratio * a/(a - 1), a = sharpness.
    trace_weight : float or "auto", default=1.0
        lambda: larger gives a metric of lower rank. The paper's settings (mu, lambda) are none
        (0, 0), post ("ratio", 0), proj (0, 1) and hyper ("ratio", 1), which is the default.
        "auto" is a fiftieth of the critical trace weight of the labeled pairs: it follows the unit
        of the features, as no number can.
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
    laplacian_weight : float, default=0.0
        nu: the weight of the manifold term nu*<X'LX, A> (Appendix C.3), which keeps neighbours
        near; see :func:`seraph_cvx.manifold.manifold_term`.
    laplacian_neighbors, laplacian_kernel, laplacian_normalised
        Of its graph: 7 neighbours, weights "heat" or "binary", normalised or not.
    identity_share : float, default=0.0
        alpha: `components_`, and so `transform` and all distances, are those of
        (1 - alpha) A + alpha tr(A)/m I. A little of the Euclidean distance keeps what few labels
        say nothing about. `metric_` and `certificate_` are of A itself.

    Attributes
    ----------
    metric_ : (m, m) array
        A, positive semidefinite; always the full one.
    components_ : (n_components, m) array
        L with L'L = A, or what `identity_share` makes of it (its leading rows).
    certificate_ : Certificate or None
        The duality gap of the last M-step; None for algorithm="direct", which has none.
    history_ : list
        One :class:`~seraph_cvx.alternation.Iteration` each, or the values of (7) for "direct".
    n_iter_ : int
    status_ : Status
    threshold_ : float
        `predict_pairs` calls pairs up to this distance similar: sqrt(eta), where p = 1/2, until
        `calibrate_threshold` or `set_threshold` is called.
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

        Parameters
        ----------
        X : (n, m) array_like
        y : (n,) array_like, optional
            Class labels; -1 is unknown (None too among strings).
        similar, dissimilar : (k, 2) array_like of int, optional
            Constraints: rows (i, j) of indices into X. They are indices into *this* X: where
            cross-validation takes rows away they would point elsewhere, so cross-validate
            constraints with :class:`~seraph_cvx.PairSERAPH`.
        similar_confidence, dissimilar_confidence : float or (k,) array_like, optional
            c_k > 0: how much each constraint counts; 1 by default, as a pair of class labels does.
        """
        self._learn(
            self._take(X, y, similar, dissimilar, similar_confidence, dissimilar_confidence)
        )
        return self


def _show(iteration: Iteration, metric: FloatArray) -> None:
    sys.stderr.write(
        f"[SERAPH] iteration {iteration.number}: J = {iteration.descent_value:.8g}, "
        f"M-step gap {iteration.relative_gap:.1e}, rank {iteration.rank}\n"
    )
