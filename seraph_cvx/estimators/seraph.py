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

    By default, it alternates soft labels and convex M-steps to minimize, over PSD matrices A,

        J(A) = -sum_{S u D} ln p(y) + lambda <W, A> + mu (a - 1)/a sum_U H_a(p)

    Here p is the probability (8) that a pair is similar (S) or dissimilar (D), H_a is the Renyi
    entropy of order a (`sharpness`) of p on the unlabeled pairs U, and W = I for most data (see
    `correlation_weight`). The paper's objective (7), which algorithm="direct" minimizes, has mu
    times the Shannon entropy instead. J is not convex, but each M-step is: `certificate_` bounds
    how far the last one is from its optimum.

    Parameters
    ----------
    unlabeled_weight : float, "ratio" or "full", default="full"
        mu: the weight of the unlabeled pairs. "ratio" is the paper's #(S u D) / #U. "full" is a/(a
        - 1) times that ratio, a = sharpness: with this weight in the M-steps, the factor of the
        entropy in J is the ratio itself.
    trace_weight : float or "auto", default="auto"
        lambda: larger values lower the rank. "auto" is 0.08 p times the critical trace weight of
        the labeled pairs, where p is the probability that two labeled points are similar (1/k for k
        classes of equal size). Unlike a fixed number, it adapts to the units of the features. If
        the critical trace weight is zero (no labeled pair pulls the metric up), "auto" is 1.0. It
        does not depend on `penalties`.
    threshold : float, default=1.0
        eta: the squared distance at which a pair is as likely similar as dissimilar.
    sharpness : float or None, default=2.0
        The sharpness a of the soft labels in the E-step. None means the paper's 1 + mu; the J that
        the EM-like scheme then decreases gives the unlabeled pairs far less weight than (7) does.
    algorithm : "em" or "direct", default="em"
        The paper's EM-like scheme, whose M-steps are convex and certified; or Newton's method on
        (7) itself, which is nonconvex: it starts at a multiple of the identity (A = I for
        standardized points) and ends at a stationary point.
    solver : str, default="newton"
        Solver of each M-step, see :func:`seraph_cvx.solve_m_step`: "newton", or a conic one such
        as "CLARABEL", in upper or lower case.
    tol : float, default=1e-6
        "em" stops when the relative decrease of J is smaller; "direct", when the gradient of (7)
        predicts no larger relative decrease, see :class:`seraph_cvx.fit.direct.DirectSolution`.
    m_step_tol : float, default=1e-8
        Certified relative gap of the last M-step.
    max_iter : int, optional
        The largest number of M-steps and descent steps together, by default 500; for "direct", of
        its steps, by default 5000.
    n_components : int, optional
        Rows of `components_` and columns of `transform`; by default all m.
    allow_unattained : bool, default=False
        Accept M-steps that have no optimum (usual for trace_weight=0) instead of raising.
    n_jobs : int, optional
        The number of threads that sum over blocks of pairs.
    verbose : int, default=0
        1 shows a progress line on stderr (drawn by rich if it is installed), which is also updated
        within a long M-step. If stderr is not a terminal, one plain line is printed for each
        iteration.
    laplacian_weight : float, default=0.0
        nu: the weight of the manifold term nu*<X'LX, A> (Appendix C.3), which keeps neighbors close
        together; see :func:`seraph_cvx.penalties.manifold_term`.
    laplacian_neighbors : int, default=7
        The number of neighbors of each point in the graph of that term.
    accelerate : bool, default=True
        After a rough first M-step, minimize J itself by Newton's method, and finish with an E-step
        and a certified M-step. With False, or a solver other than "newton", the fit consists of
        E-steps and M-steps only, as in the paper; it also ends near a fixed point, but takes ten to
        a hundred times as long.
    penalties : list or tuple of Penalty, default=()
        Blocks of :mod:`seraph_cvx.penalties` that are added to the objective, such as
        ``[Diagonal()]`` (one weight for each feature) or ``[Ridge(0.1, prior=A0)]`` (stay near a
        metric learned before), in the units of X. If any of them is not smooth, the fit is not
        accelerated. algorithm="direct" accepts only smooth ones: Ridge and LogDet.
    identity_share : float or "auto", default="auto"
        alpha: the metric is (1 - alpha) A + alpha c B, where B is the `reference` and c gives both
        parts the same mean squared distance over the points. The reference preserves directions
        about which few labels say nothing. "auto" is one minus Youden's index of A on the labeled
        pairs: the mean of p(-1) over the similar ones plus the mean of p(+1) over the dissimilar
        ones, by (8), and at most 1. If the labels do not support the mixture, it is in turn mixed
        with the Euclidean metric: with a share of 0.15 for each standard error by which its support
        is below two. The support is the mean gain, in standard errors, of the margins ln(b/a) of
        the labeled points, where a and b are the distances to the nearest similar and the nearest
        dissimilar point. The certificate is for A itself, `m_step_metric_`; if `metric_` must also
        satisfy the constraints among `penalties`, set the share to 0. If A is diagonal, so is the
        mixture.
    setting : "none", "post", "proj" or "hyper", optional
        One of the paper's settings, in place of the weights mu and lambda, the sharpness, the
        share, the reference and the correlation weight: (mu, lambda) = (0, 0), ("ratio", 0), (0, 1)
        or ("ratio", 1), with the paper's soft labels and trace penalty and without a reference.
        Over 50 samplings of the paper's twelve tasks the mean error at convergence is 25.3 % for
        "hyper" and 23.0 % for the defaults, which were chosen on other data.
    classifier : str, default="nearest"
        What `predict` does. "nearest": the class of the nearest labeled point, in the learned
        metric. "neighbors": the nine nearest, weighted by their distance. "logistic": logistic
        regression in the coordinates of `transform`. With "plain-" in front, as in
        "plain-logistic": the same on the unchanged features. "vote": the mean of the probabilities
        of these, except "nearest" and "plain-nearest". "auto": the vote, unless held-out labels
        show that another classifier is better; if they do not show that the learned metric helps,
        the Euclidean metric is kept. "auto" takes twenty more fits, each to the labeled points and
        at most 500 others.
    random_state : int, RandomState or None, default=None
        The seed for the folds of "auto" and for its choice of 500 other points; by default both are
        always the same. Nothing else in a fit is random.
    reference : "within" or "identity", default="within"
        B, the matrix that the learned metric is mixed with. "identity": the Euclidean metric.
        "within": distances in units of the spread within the classes, B = ((1 - g) W + g S)^-1,
        where S is the second moment of the similar pairs, scaled to the trace r; g = n/(n + r); n
        is the number of labeled points minus that of classes; r is the number of features that
        vary, but less than that of points; and W is I, or the matrix of `correlation_weight`.
    correlation_weight : float or "auto", default="auto"
        w: the trace penalty is lambda <W, A> with W = (1 - w) I + w C, where C is the covariance
        matrix of the features, scaled to the trace m; w = 0 gives the paper's lambda tr(A). "auto"
        is max(0, 3r - 2), but at most 0.95, where r is the mean squared correlation of the
        features. It is 0 for most data; if all features are nearly the same, it keeps the penalty
        from suppressing the small differences between them. The certificate is for the M-step with
        this penalty.
    time_limit : float, optional
        Seconds for the whole fit. It then stops, even within a pass over the pairs, with the best
        metric so far and status time_limit. `certificate_` is None if it cannot be computed within
        another half second.
    callback : callable, optional
        Called with each :class:`~seraph_cvx.fit.alternation.Iteration` and its metric; a true
        return value ends the fit there, with status interrupted. If it has a method `progress`,
        that method is called between blocks of pairs with a line that says what is running;
        "direct", which has no iterations, calls nothing else.
    on_interrupt : "raise" or "keep", default="raise"
        What Ctrl-C does. "raise": it raises KeyboardInterrupt and leaves the estimator as it was.
        "keep": the fit ends as at a time limit, with status interrupted; a second Ctrl-C raises. A
        KeyboardInterrupt raised by `callback` counts as a Ctrl-C. If the process ignores Ctrl-C (as
        background jobs do), so does the fit. A fit outside the main thread never receives Ctrl-C:
        end it by `callback` or `time_limit`.

    Attributes
    ----------
    metric_ : (m, m) array
        The metric of all distances, a positive semidefinite matrix; always of full size. With more
        features than points and no penalty other than the trace, both the metric and the reference
        lie in the span of the points: off the span, all points of the fit are equally far from a
        new one. In that case the factor `factor_`, F with FF' = metric_, is stored instead, and the
        matrix is formed when it is read; `components_`, distances, predictions and saving do not
        need it.
    m_step_metric_ : (m, m) array
        The matrix A of the last M-step, before it is mixed with the reference; formed from
        `m_step_factor_` in the case above.
    is_mixed_ : bool
        Whether `metric_` differs from `m_step_metric_`, the matrix that the certificate is for.
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
        An :class:`~seraph_cvx.fit.alternation.Iteration` for each step; for "direct", the values of
        (7).
    n_iter_ : int
    status_ : Status
        certified, or stationary for algorithm="direct". rounding_limit: the gap is below 1e-6, but
        in double precision no smaller one can be proved. Any other status also issues a warning.
    threshold_ : float
        The distance up to which `predict_pairs` calls pairs similar, and at which
        `predict_pair_proba` is 1/2. Without a share of the reference it is sqrt(eta). The share
        moves points of one class apart; the threshold is then chosen so that as many pairs of
        training points lie within it as A calls similar by (8). `calibrate_threshold` and
        `set_threshold` change it.
    classifier_ : str
        The classifier of `predict`: that of the parameter, or what "auto" has chosen.
    held_out_ : HeldOut or None
        The result of "auto": the errors of all classifiers on held-out labels, with the metric
        learned anew in each fold, and the gain of the chosen one with its 95 % interval; printed,
        it says whether the labels show a gain. None for the other choices of `classifier`, and if
        there was nothing to judge.
    abstained_ : bool
        Whether "auto" kept the Euclidean metric; `m_step_metric_` is still the learned one.
    labeled_points_, labels_ : (k, m) and (k,) arrays, or None
        The points of known class and their classes, which `predict` uses and
        :func:`seraph_cvx.save_model` saves. None if constraints were given.
    classes_ : array
        The classes among `labels_`, sorted.
    table_ : dict
        Only in a model of ``seraph-cvx fit``: how the command read its table.
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

    A weight for each feature, by the penalty Diagonal:

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
            If X is an array of a library other than NumPy (torch, CuPy, ...), that library computes
            the sums over unlabeled pairs, on its device. The learned attributes are NumPy arrays in
            any case.
        y : (n,) array_like, optional
            Class labels; -1, NaN, None and pandas' NA mean unknown.
        similar, dissimilar : (k, 2) array_like of int, optional
            Constraints: rows (i, j) of indices into X. They are indices into *this* X.
            Cross-validation removes rows, so that the indices would refer to other points:
            cross-validate constraints with :class:`~seraph_cvx.PairSERAPH`.
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
        """Predict the class of each point from the labeled points of the fit, by `classifier_`.

        By default, this is the class of the nearest labeled point after `transform`; ``seraph-cvx
        apply --predict`` uses the classifier that held-out labels favor (see the parameter
        `classifier`). A pipeline that ends in SERAPH predicts in the same way. To use any other
        classifier, put it behind SERAPH, as in ``make_pipeline(SERAPH(), LabeledOnly(...))``.

        Parameters
        ----------
        X : (n, m) array_like

        Returns
        -------
        (n,) array
            Classes, as they were given to `fit`.

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
        """Estimate the probability of each class at each point, with columns as in `classes_`.

        They are 0 and 1 for "nearest", shares of the neighbors' weights for "neighbors", and the
        mean over its members for "vote".

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
