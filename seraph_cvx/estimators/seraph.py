"""SERAPH as a scikit-learn transformer."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted, validate_data

from ..numerics.arrays import one_blas_thread, to_host
from ..numerics.checks import FloatArray
from ..pairs.labeled_pairs import ClassLabels
from ..pairs.pair_set import PairSet
from ..solvers.solution import Status
from .base import BaseSERAPH, Parameters
from .evidence import matching_threshold
from .held_out import CLASSIFIERS, HeldOut, class_probabilities, judge_by_folds
from .mahalanobis import all_or_nothing


@dataclass(eq=False, repr=False)
class _Parameters(Parameters):
    """All parameters of SERAPH; its own are the last two."""

    classifier: str = "nearest"
    random_state: Any = None


class SERAPH(_Parameters, BaseSERAPH):
    """Learn a Mahalanobis metric from a few labeled and many unlabeled points.

    Points of the same known class are brought near each other, points of different known classes
    are moved apart, and the pairs without a label become either near or far.

    By default it minimizes over A PSD, by an alternation of soft labels and convex M-steps,

        J(A) = -sum_{S u D} ln p(y) + lambda <W, A> + mu (a - 1)/a sum_U H_a(p),

    p of (8) the probability that a pair is similar (S) or dissimilar (D), H_a the Renyi entropy of
    order a (`sharpness`) of p on the unlabeled pairs U, and W = I for most data (see
    `correlation_weight`). The paper's objective (7) has mu times Shannon's entropy there, and is
    what algorithm="direct" minimizes. J is not convex, each M-step is: `certificate_` bounds how
    far the last one is from its optimum.

    Parameters
    ----------
    unlabeled_weight : float, "ratio" or "full", default="full"
        mu: the weight of the unlabeled pairs. "ratio" is the paper's #(S u D) / #U. "full" is the
        weight of the M-steps at which J has all of that ratio: ratio * a/(a - 1), a = sharpness.
    trace_weight : float or "auto", default="auto"
        lambda: larger values lower the rank. "auto" is 0.08 p times the critical trace
        weight of the labeled pairs, p the chance that two labeled points are similar (1/k for k
        classes of one size): it follows the unit of the features, as no number can. Where that is
        zero (no labeled pair pulls the metric up) it is 1.0. With `penalties` it is the same number
        as without them.
    threshold : float, default=1.0
        eta: the squared distance at which a pair is as likely similar as dissimilar.
    sharpness : float or None, default=2.0
        a, of the soft labels of the E-step. None is the paper's 1 + mu; with it the EM-like scheme
        descends a J in which the unlabeled pairs weigh far less than in (7).
    algorithm : "em" or "direct", default="em"
        The paper's EM-like scheme, whose M-steps are convex and certified; or Newton's method on
        (7) itself, which is nonconvex: it starts at a multiple of the identity (A = I for
        standardized points) and ends at a stationary point.
    solver : str, default="newton"
        Solver of each M-step, see :func:`seraph_cvx.solve_m_step`: "newton", or a conic one such
        as "CLARABEL", in upper or lower case.
    tol : float, default=1e-6
        EM stops when J falls by less, relatively; direct, when the gradient of (7) promises no
        larger relative fall, see :class:`seraph_cvx.fit.direct.DirectSolution`.
    m_step_tol : float, default=1e-8
        Certified relative gap of the last M-step.
    max_iter : int, optional
        M-steps and steps of the descent together, by default 500; steps of direct, by default
        5000.
    n_components : int, optional
        Rows of `components_` and columns of `transform`; by default all m.
    allow_unattained : bool, default=False
        Accept M-steps that have no optimum (usual for trace_weight=0) instead of raising.
    n_jobs : int, optional
        Threads over blocks of pairs.
    verbose : int, default=0
        1 shows a line of progress on stderr, which also moves inside a long M-step: by rich where
        that is installed, and as a plain line for each iteration where stderr is no terminal.
    laplacian_weight : float, default=0.0
        nu: the weight of the manifold term nu*<X'LX, A> (Appendix C.3), which keeps neighbors
        near; see :func:`seraph_cvx.penalties.manifold_term`.
    laplacian_neighbors : int, default=7
        How many neighbors a point has in the graph of that term.
    accelerate : bool, default=True
        After a rough first M-step descend J itself by Newton's method, and end with an E-step and a
        certified M-step. False, and any solver other than "newton", runs E-steps and M-steps alone,
        as the paper does, which end near a fixed point too, ten to a hundred times later.
    penalties : list or tuple of Penalty, default=()
        Blocks of :mod:`seraph_cvx.penalties` that are added to the objective, such as
        ``[Diagonal()]`` (one weight for each feature) or ``[Ridge(0.1, prior=A0)]`` (stay near a
        metric learned before), in the units of X. Where one of them is not smooth the fit is not
        accelerated. algorithm="direct" takes smooth ones only: Ridge, LogDet.
    identity_share : float or "auto", default="auto"
        alpha: the metric is (1 - alpha) A + alpha c B, B the `reference`, c such that both parts
        have the same mean squared distance over the points. It keeps what few labels say nothing
        about. "auto" is one less Youden's index of A on the labeled pairs: the mean of p(-1) over
        the similar ones plus that of p(+1) over the dissimilar ones, by (8) and at most 1.
        Where the labels do not support the mixture, it is mixed with the Euclidean metric in turn:
        a share of 0.15 for each standard error that its support is below two. The support is the
        mean gain, in standard errors, of the margins ln(b/a) of labeled points, a and b the
        distances to the nearest similar and to the nearest dissimilar one. The certificate is of
        A itself, `m_step_metric_`; where `metric_` has to satisfy the constraints among `penalties`
        too, set the share to 0. A diagonal A stays diagonal.
    setting : "none", "post", "proj" or "hyper", optional
        The paper's settings, instead of mu, lambda, sharpness, share, reference and correlation
        weight: (mu, lambda) = (0, 0), ("ratio", 0), (0, 1) or ("ratio", 1), the paper's soft
        labels and trace, nothing of a reference. Over 50 samplings of the paper's twelve tasks the
        mean error of "hyper" at convergence is 25.3 %, that of the defaults, which were chosen on
        other data, 23.0 %.
    classifier : str, default="nearest"
        What `predict` does. "nearest": the class of the nearest labeled point, in the learned
        metric. "neighbors": the nine nearest, weighted by their distance. "logistic": logistic
        regression in the coordinates of `transform`. With "plain-" in front, as "plain-logistic":
        the same in the features as they are. "vote": the mean of the probabilities of these, but
        for the two nearest ones. "auto": the vote, or another one where held-out labels show it to
        be better; and where they do not show that the learned metric helps, the Euclidean one is
        kept. It takes twenty more fits of the labeled points and at most 500 others.
    random_state : int, RandomState or None, default=None
        The seed of the folds of "auto", and of which 500 others; by default they are always the
        same. Nothing else of a fit is random.
    reference : "within" or "identity", default="within"
        B, what the learned metric is mixed with. "identity": the Euclidean distance. "within": in
        units of the spread inside the classes, ((1 - g) W + g S)^-1, S the second moment of the
        similar pairs scaled to the trace r, g = n/(n + r) for n labeled points less classes and r
        features that vary (fewer than points), and W = I, or that of `correlation_weight`.
    correlation_weight : float or "auto", default="auto"
        w: the trace penalty is lambda <W, A> with W = (1 - w) I + w C, C the covariance of the
        features scaled to the trace m; 0 is the paper's lambda tr(A). "auto" is max(0, 3r - 2), at
        most 0.95, r the mean squared correlation of the features: it is 0 for most data, and where
        all features say nearly the same their small differences are not taxed out of reach. The
        certificate is of the M-step with this penalty.
    time_limit : float, optional
        Seconds for the whole fit, which then ends, also inside a pass over the pairs, with the best
        metric so far and status time_limit; `certificate_` is None where half a second more is not
        enough to compute it.
    callback : callable, optional
        Called with each :class:`~seraph_cvx.fit.alternation.Iteration` and its metric; a true
        return value ends the fit there, with status interrupted. If it has a method `progress`,
        that is called between blocks of pairs with a line about what is running; "direct", which
        has no iterations, calls only that.
    on_interrupt : "raise" or "keep", default="raise"
        What Ctrl-C does. "raise": KeyboardInterrupt, and the estimator stays as it was before.
        "keep": the fit ends as at a time limit, with status interrupted; a second Ctrl-C raises. A
        KeyboardInterrupt that `callback` raises is one Ctrl-C. Where Ctrl-C is ignored (background
        jobs) it stays so. A fit in another thread than the main one never receives it: end that by
        `callback` or `time_limit`.

    Attributes
    ----------
    metric_ : (m, m) array
        The metric of all distances, positive semidefinite; always the full one. With more features
        than points, and no penalty but the trace, it lies in the span of the points, and so does
        the reference in it: off the span all points of the fit are equally far from a new one. Then
        `factor_`, F with FF' = metric_, is kept instead, and the matrix is made when it is read,
        which `components_`, distances, predictions and saving never do.
    m_step_metric_ : (m, m) array
        A of the last M-step, before the identity's share; of `m_step_factor_` likewise.
    is_mixed_ : bool
        Whether `metric_` is another matrix than `m_step_metric_`, which the certificate is of.
    m_step_rank_ : int
        The numerical rank of `m_step_metric_`.
    components_ : (n_components, m) array
        L with L'L = metric_ (its leading rows).
    certificate_ : Certificate or None
        The duality gap of the last M-step at `m_step_metric_`; None for algorithm="direct".
    m_step_objective_ : MStepObjective
        The last M-step, which the certificate is about: ``certify(model.m_step_objective_,
        model.m_step_metric_)`` repeats it, and ``certificate_.to_json()`` writes it to a file.
    history_ : list
        One :class:`~seraph_cvx.fit.alternation.Iteration` each, or the values of (7) for "direct".
    n_iter_ : int
    status_ : Status
        certified, or stationary for algorithm="direct". rounding_limit: the gap is below 1e-6, but
        in double precision no smaller one can be proved. Any other one is also a warning.
    threshold_ : float
        `predict_pairs` calls pairs up to this distance similar, and `predict_pair_proba` is 1/2
        there: sqrt(eta) without a share of the reference. The share moves pairs of one class apart;
        with it, the distance within which as many pairs of the training points are as A calls
        similar by (8). `calibrate_threshold` and `set_threshold` change it.
    classifier_ : str
        The classifier of `predict`: that of the parameter, or what "auto" has chosen.
    held_out_ : HeldOut or None
        What "auto" found: the errors of all classifiers on held-out labels, with the metric learned
        anew in each fold, and the gain of the choice with its 95 % interval; printed, it says
        whether the labels show a gain. None otherwise, and where there was nothing to judge.
    abstained_ : bool
        Whether "auto" has kept the Euclidean metric; `m_step_metric_` is the learned one still.
    labeled_points_, labels_ : (k, m) and (k,) arrays, or None
        The points of known class and their classes, which :func:`seraph_cvx.save_model` saves too:
        by them `predict` classifies. None where constraints were given.
    classes_ : array
        The classes among `labels_`, sorted.
    table_ : dict
        Of a model of ``seraph-cvx fit`` alone: how it read its table.
    n_features_in_ : int

    Examples
    --------
    >>> from seraph_cvx import SERAPH
    >>> X = [[0.0, 0.1], [0.1, 0.9], [2.0, 0.2], [2.1, 0.8], [0.2, 0.5], [1.9, 0.4]]
    >>> model = SERAPH().fit(X, [0, 0, 1, 1, -1, -1])
    >>> model.certificate_.relative_gap <= 1e-8
    True
    >>> model.pair_distance([[X[0], X[1]], [X[0], X[2]]]).round(2)
    array([0.3 , 2.44])

    A weight for each feature, as a penalty among others makes it:

    >>> from seraph_cvx.penalties import Diagonal
    >>> weighting = SERAPH(penalties=[Diagonal()], identity_share=0.0)
    >>> weighting.fit(X, [0, 0, 1, 1, -1, -1]).metric_.round(2)
    array([[1.52, 0.  ],
           [0.  , 0.  ]])
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
            An array of another library than NumPy (torch, CuPy, ...) has the sums over unlabeled
            pairs made by that library, on its device; what is learned is NumPy arrays in any case.
        y : (n,) array_like, optional
            Class labels; unknown are -1, NaN, None and pandas' NA.
        similar, dissimilar : (k, 2) array_like of int, optional
            Constraints: rows (i, j) of indices into X. They are indices into *this* X: where
            cross-validation removes rows they would refer to other points, so cross-validate
            constraints with :class:`~seraph_cvx.PairSERAPH`.
        similar_confidence, dissimilar_confidence : float or (k,) array_like, optional
            c_k > 0: how much each constraint counts; 1 by default, as a pair of class labels does.
        """
        constraints = similar, dissimilar, similar_confidence, dissimilar_confidence
        if self.classifier not in ("auto", *CLASSIFIERS):
            raise ValueError(
                f"classifier={self.classifier!r} is not known: use one of auto, "
                f"{', '.join(CLASSIFIERS)}."
            )
        with all_or_nothing(self):
            pairs = self._make_pairs(X, y, *constraints)
            for doubt in self._doubts_about_data(pairs, y):
                warnings.warn(doubt, stacklevel=2)
            with one_blas_thread(min(pairs.points.shape)):
                _, not_reached = self._minimize(pairs)
                self._keep_evidence(pairs, y)
        for warning in not_reached:
            warnings.warn(warning, stacklevel=2)
        return self

    def _keep_evidence(self, pairs: PairSet, y: ArrayLike | None) -> None:
        """Keep the labeled points, and what they say about the fit where that is asked for."""
        self.held_out_: HeldOut | None = None
        self.abstained_ = False
        self.classifier_ = "vote" if self.classifier == "auto" else self.classifier
        self.labeled_points_ = self.labels_ = None
        if not isinstance(pairs.labels, ClassLabels):
            return
        known = pairs.labels.members
        self.labeled_points_ = pairs.points[known]
        labels = np.ravel(np.asarray(to_host(y)))[known]
        self.labels_ = labels if labels.dtype.kind in "biuf" else labels.astype(object)
        if self.classifier == "auto" and self.status_ is not Status.INTERRUPTED:
            self.held_out_ = judge_by_folds(self, pairs, self.random_state)
        if self.held_out_ is not None:
            self.classifier_ = self.held_out_.classifier
            self.abstained_ = not self.held_out_.keeps_metric
        if self.abstained_:
            learned = pairs.points @ self.components_.T
            self._keep_metric(np.eye(pairs.n_features))
            self.threshold_ = matching_threshold(learned, pairs.points, self.threshold_**2)

    def predict(self, X: ArrayLike) -> Any:
        """Predict the class of each point, by the labeled points of the fit and `classifier_`.

        By default that of the nearest one after `transform`; ``seraph-cvx apply --predict`` uses
        what held-out labels favor, see the parameter `classifier`. A pipeline that ends in SERAPH
        predicts likewise. For any other classifier, put it behind SERAPH, as in
        ``make_pipeline(SERAPH(), LabeledOnly(...))``.

        Parameters
        ----------
        X : (n, m) array_like

        Returns
        -------
        (n,) array
            Of the classes that were given to `fit`.

        Examples
        --------
        >>> X = [[0.0, 0.1], [0.1, 0.9], [2.0, 0.2], [2.1, 0.8], [0.2, 0.5], [1.9, 0.4]]
        >>> model = SERAPH().fit(X, ["a", "a", "b", "b", None, None])
        >>> model.predict([[0.3, 0.3], [1.7, 0.6]]).tolist()
        ['a', 'b']
        """
        probabilities = self.predict_proba(X)
        return self.classes_[np.argmax(probabilities, axis=1)]

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """The probabilities of the classes at each point by `classifier_`, columns as `classes_`.

        Those of the nearest point are 0 and 1, of neighbors the shares of their weights, of the
        vote the mean of the probabilities of its members.

        Parameters
        ----------
        X : (n, m) array_like
        """
        check_is_fitted(self)
        known, labels = (getattr(self, name, None) for name in ("labeled_points_", "labels_"))
        if known is None or labels is None:
            raise ValueError(
                "This SERAPH has no labeled points to classify by: it was fitted to constraints, "
                "not to class labels, by which alone it can predict."
            )
        if not np.any(self.components_) and not self.classifier_.startswith("plain-"):
            raise ValueError("The learned metric is zero: no labeled point is nearer than others.")
        points = validate_data(self, to_host(X), dtype=np.float64, reset=False)
        codes = np.unique(labels, return_inverse=True)[1]
        return class_probabilities(self.classifier_, known, codes, self.components_, points)

    @property
    def classes_(self) -> Any:
        """The classes that `predict` may give, sorted."""
        labels = getattr(self, "labels_", None)
        if labels is None:
            raise AttributeError("This SERAPH was fitted to no class labels.")
        return np.unique(labels)
