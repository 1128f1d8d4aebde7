"""SERAPH with its trace weight and unlabeled weight chosen by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.model_selection import check_cv
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import column_or_1d

from ...certificate import Certificate
from ...numerics.arrays import one_blas_thread
from ...numerics.checks import FloatArray, check_number, encode_labels
from ...pairs.pair_set import PairSet
from ...penalties.manifold import manifold_term
from ...penalties.penalty import Penalty
from ...solvers.not_certified import NotCertified
from ...solvers.solution import Status
from ..base import similar_probability
from ..mahalanobis import MahalanobisTransformer, all_or_nothing
from ..seraph import SERAPH
from ..settings import RECOMMENDED
from .candidates import AUTO_FACTORS, OTHER_SHARES, check_sequence, find_default, list_candidates
from .choice import best_candidate, tabulate_fits
from .fold_scores import choose_scorer
from .scoring import LabeledKFold
from .search_fits import Fold, SearchFit, fit_fold, make_folds

OF_THE_SEARCH = (
    *("trace_weight", "unlabeled_weight", "identity_share"),
    *("setting", "n_jobs", "verbose", "callback", "on_interrupt"),
)
"""The parameters of SERAPH that the search sets itself."""

HANDED_ON = tuple(name for name in SERAPH().get_params() if name not in OF_THE_SEARCH)
"""The parameters that are passed on to every SERAPH of the search."""

LEARNED = (
    *("metric_", "components_", "threshold_", "certificate_", "history_", "n_iter_", "status_"),
    *("sampling_", "leave_one_out_", "data_notes_"),
)
"""The attributes that are copied from the chosen SERAPH."""


class SERAPHCV(MahalanobisTransformer):
    """Learn a metric as SERAPH does, its weights and share chosen by cross-validation.

    (lambda, mu, alpha) = argmax mean_f score_f(A(lambda, mu, alpha; y with fold f unknown)), then a
    fit with all labels. Few labels choose badly: with trace_weights="auto" SERAPH's default is
    among the candidates, and another one is taken only if it scores enough better.

    The held-out labels become unknown, but their points stay, as unlabeled ones: the search is
    transductive, as SERAPH itself is. Every fit of the search starts as SERAPH does (J is not
    convex: from a neighbor's metric it might end at another point), so that a score belongs to the
    model that is fitted in the end.

    Parameters
    ----------
    trace_weights : "auto" or sequence of float, default="auto"
        The lambdas to try. "auto": 1, 3 and 10 times the one that SERAPH would take for all
        labels without penalties; in a fold, for the labels that are kept.
    unlabeled_weights : sequence of float, "ratio" or "full", default=("full",)
        The mus to try.
    identity_shares : sequence of float or "auto", optional
        The shares of the reference to try. None: `identity_share`, and with trace_weights="auto"
        also 0.4 and 0.7. They cost no further fit.
    caution : float, default=0.1
        SERAPH's default is kept unless another candidate's mean score is better by more than
        caution/sqrt(n), n the held-out points of all folds: the fewer labels, the larger a lead is
        asked for. 0 takes the best score.
    cv : int, splitter or iterable of (train, test), optional
        An int is the number of folds of :class:`~seraph_cvx.LabeledKFold`. None: five, or as many
        as the smallest class of two or more known points has. Of other splitters' test parts only
        the known points are judged, and labels outside their training part are unknown.
    scoring : "soft_accuracy", "known_accuracy", "pair_auc" or callable, optional
        None and "soft_accuracy": the share of each held-out point's neighborhood that is of its
        class, weights exp(-d/d_min) by the squared distances to the labeled points. Which of two
        metrics is better it tells with fewer labels than "known_accuracy", the accuracy on the
        held-out points of 1-NN to the labeled ones.
        "pair_auc": the ROC area of the distances over the pairs with a held-out point in them.
        A callable: ``scoring(fitted SERAPH, X_held_out, y_held_out)``, larger is better.
    n_jobs : int, optional
        Fits (of a candidate in a fold) at a time, through joblib; the result is the same.
    refit : bool, default=True
        Fit the chosen SERAPH on all labels. Without it there is no metric, only `cv_results_`.
    threshold, sharpness, algorithm, solver, tol, m_step_tol, max_iter, n_components, ...
        As for :class:`seraph_cvx.SERAPH`; `verbose`, `callback` and `on_interrupt` are of the final
        fit, and `time_limit` is of each fit.
    random_state : int, RandomState or None
        Shuffles the folds, where given and `cv` is None or an int; and draws the pairs of
        `unlabeled_pairs`, the same ones for every candidate where it is an int.

    Attributes
    ----------
    best_params_ : dict
        "trace_weight", "unlabeled_weight" and "identity_share". Of equal scores the larger trace
        weight wins, without a default to keep.
    best_score_, best_index_, n_splits_ : float, int, int
    cv_results_ : dict of arrays
        As of scikit-learn's GridSearchCV: params, param_*, split*_test_score, mean_test_score,
        std_test_score, rank_test_score, mean_fit_time; and for each candidate `n_uncertified`,
        the fits that did not end certified (for algorithm="direct": stationary), and `n_failed`,
        those without a metric (score NaN).
    best_estimator_ : SERAPH
    metric_, components_, threshold_, certificate_, history_, n_iter_, status_, sampling_
        Of `best_estimator_`.
    n_features_in_ : int

    Examples
    --------
    >>> from seraph_cvx.datasets import load_sampling
    >>> drawn = load_sampling("iris", n_points=40, n_labeled=12, seed=1)
    >>> search = SERAPHCV(trace_weights=[1.0, 10.0], cv=2).fit(drawn.X, drawn.y)
    >>> search.best_params_, round(search.best_score_, 3)
    ({'trace_weight': 1.0, 'unlabeled_weight': 'full', 'identity_share': 'auto'}, 0.893)
    """

    history_: list[Any]
    certificate_: Certificate | None
    n_iter_: int
    status_: Status

    def __init__(
        self,
        trace_weights: str | Sequence[float] = "auto",
        unlabeled_weights: Sequence[float | str] = ("full",),
        cv: Any = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: bool = True,
        threshold: float = 1.0,
        sharpness: float | None = 2.0,
        algorithm: str = "em",
        solver: Any = "fista",
        tol: float = 1e-6,
        m_step_tol: float = 1e-8,
        max_iter: int | None = None,
        n_components: int | None = None,
        allow_unattained: bool = False,
        verbose: int = 0,
        random_state: Any = None,
        laplacian_weight: float = 0.0,
        laplacian_neighbors: int = 7,
        laplacian_kernel: str = "heat",
        laplacian_normalised: bool = False,
        identity_share: float | str = RECOMMENDED.identity_share,
        unlabeled_pairs: int | None = None,
        accelerate: bool = True,
        penalties: Sequence[Penalty] = (),
        identity_shares: Sequence[float | str] | None = None,
        caution: float = 0.1,
        reference: str = RECOMMENDED.reference,
        correlation_weight: float | str = RECOMMENDED.correlation_weight,
        time_limit: float | None = None,
        callback: Any = None,
        on_interrupt: str = "raise",
        solver_options: Mapping[str, Any] | None = None,
        formulation: str = "primal",
        polish: bool = False,
    ) -> None:
        self.trace_weights = trace_weights
        self.unlabeled_weights = unlabeled_weights
        self.cv = cv
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.refit = refit
        self.threshold = threshold
        self.sharpness = sharpness
        self.algorithm = algorithm
        self.solver = solver
        self.tol = tol
        self.m_step_tol = m_step_tol
        self.max_iter = max_iter
        self.n_components = n_components
        self.allow_unattained = allow_unattained
        self.verbose = verbose
        self.random_state = random_state
        self.laplacian_weight = laplacian_weight
        self.laplacian_neighbors = laplacian_neighbors
        self.laplacian_kernel = laplacian_kernel
        self.laplacian_normalised = laplacian_normalised
        self.identity_share = identity_share
        self.unlabeled_pairs = unlabeled_pairs
        self.accelerate = accelerate
        self.penalties = penalties
        self.identity_shares = identity_shares
        self.caution = caution
        self.reference = reference
        self.correlation_weight = correlation_weight
        self.time_limit = time_limit
        self.callback = callback
        self.on_interrupt = on_interrupt
        self.solver_options = solver_options
        self.formulation = formulation
        self.polish = polish

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Choose the two weights by cross-validation, then learn the metric from all labels.

        Parameters
        ----------
        X : (n, m) array_like
        y : (n,) array_like
            Class labels; -1 is unknown (None too among strings).
        """
        if y is None:
            raise ValueError(
                "SERAPHCV requires y to be passed, but the target y is None: give the class of "
                "each point, -1 where it is not known."
            )
        with all_or_nothing(self), one_blas_thread():
            pairs = self._take(X, y)
            for doubt in self._doubts(pairs, y, has_constraints=False):
                warnings.warn(doubt, stacklevel=2)
            not_reached = self._search(pairs, X, y)
        for warning in not_reached:
            warnings.warn(warning, stacklevel=2)
        return self

    def _search(self, pairs: PairSet, X: ArrayLike, y: ArrayLike) -> list[Warning]:
        """Choose the weights, and learn with them; return the warnings to issue."""
        scorer = choose_scorer(self.scoring)
        labels = column_or_1d(y)
        folds = make_folds(pairs.points, labels, self._splitter(labels))
        shares = self._shares()
        candidates = list_candidates(
            self._weights_to_try(pairs),
            check_sequence("unlabeled_weights", self.unlabeled_weights),
            shares,
        )
        settings = {name: getattr(self, name) for name in HANDED_ON}
        scales = [self._scale(fold, pairs) for fold in folds]
        tasks = [
            (fold, SERAPH(**settings, **_scaled(candidate, scale)), scorer, shares)
            for candidate in candidates[:: len(shares)]
            for fold, scale in zip(folds, scales, strict=True)
        ]
        found: list[list[SearchFit]]
        if effective_n_jobs(self.n_jobs) == 1:  # Parallel would change the process's warnings
            found = [fit_fold(*task) for task in tasks]
        else:
            found = Parallel(n_jobs=self.n_jobs)(delayed(fit_fold)(*task) for task in tasks)
        fits = [  # the folds of the first candidate, then of the second
            found[start + f][share]
            for start in range(0, len(found), len(folds))
            for share in range(len(shares))
            for f in range(len(folds))
        ]
        for name in (*LEARNED, "best_estimator_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        self.n_splits_ = len(folds)
        self.cv_results_ = tabulate_fits(candidates, fits)
        default = find_default(candidates) if self._is_automatic else None
        caution = check_number(self.caution, "caution", 0.0)
        n_judged = sum(len(fold.test) for fold in folds)
        self.best_index_ = best_candidate(self.cv_results_, default, caution / np.sqrt(n_judged))
        self.best_params_ = dict(candidates[self.best_index_])
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
        not_reached: list[Warning] = []
        if self.refit:
            self.best_estimator_ = SERAPH(
                **settings,
                **self.best_params_,
                verbose=self.verbose,
                callback=self.callback,
                on_interrupt=self.on_interrupt,
            )
            taken = self.best_estimator_._take(X, y)
            not_reached = self.best_estimator_._learn(taken)
            self.best_estimator_._judge(taken)
            self.best_estimator_._keep_labeled(taken, y)
            for name in LEARNED:
                setattr(self, name, getattr(self.best_estimator_, name))
        return [*not_reached, *_uncertified(fits)]

    def predict_pair_proba(self, pairs: ArrayLike) -> FloatArray:
        """The probability that each pair of a (k, 2, m) array is similar: see SERAPH's."""
        return similar_probability(self.pair_distance(pairs), self.threshold_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "components_")

    def _shares(self) -> list[float | str]:
        """The shares of the reference to try."""
        if self.identity_shares is not None:
            return check_sequence("identity_shares", self.identity_shares)
        return [self.identity_share, *(OTHER_SHARES if self._is_automatic else ())]

    @property
    def _is_automatic(self) -> bool:
        """Whether the trace weights are multiples of SERAPH's own, the first that one itself."""
        return isinstance(self.trace_weights, str)

    def _weights_to_try(self, pairs: PairSet) -> list[float]:
        if not self._is_automatic:
            return [check_number(w, "trace_weights", 0.0) for w in self.trace_weights]
        if self.trace_weights != "auto":
            raise ValueError(
                f'trace_weights={self.trace_weights!r} is not known: give numbers or "auto".'
            )
        weight = self._automatic_weight(pairs)
        if weight is None:
            raise ValueError(
                "The first metric is zero at every trace weight (no labeled pair pulls it up), so "
                '"auto" has no weights to try: give trace_weights as numbers.'
            )
        return [factor * weight for factor in AUTO_FACTORS]

    def _automatic_weight(self, pairs: PairSet) -> float | None:
        """The trace weight that SERAPH would take for these pairs."""
        setting = RECOMMENDED._replace(correlation_weight=self.correlation_weight)
        return setting.auto_trace_weight(pairs, self.threshold, self._manifold_term(pairs.points))

    def _scale(self, fold: Fold, pairs: PairSet) -> float:
        """What a trace weight is multiplied with in a fold, which has fewer labeled pairs."""
        if not self._is_automatic:
            return 1.0
        kept = PairSet.from_labels(pairs.points, fold.masked)
        whole, part = self._automatic_weight(pairs), self._automatic_weight(kept)
        return part / whole if whole and part else 1.0

    def _manifold_term(self, points: FloatArray) -> FloatArray | None:
        if self.laplacian_weight == 0.0:
            return None
        return manifold_term(
            points,
            self.laplacian_weight,
            self.laplacian_neighbors,
            self.laplacian_kernel,
            self.laplacian_normalised,
        )

    def _splitter(self, labels: Any) -> Any:
        class_sizes = np.bincount(encode_labels(labels, len(labels))[1])
        if len(class_sizes) < 2 or np.max(class_sizes) < 2:
            raise ValueError(
                f"The known points are of {len(class_sizes)} classes with at most "
                f"{np.max(class_sizes)} points each: to choose by cross-validation SERAPHCV needs "
                "two classes, and two known points of one of them. Label more points, or use "
                "SERAPH with a trace_weight of your choice."
            )
        cv = min(5, int(np.min(class_sizes[class_sizes >= 2]))) if self.cv is None else self.cv
        if not isinstance(cv, int | np.integer):
            return check_cv(cv)
        return LabeledKFold(int(cv), self.random_state is not None, self.random_state)


def _scaled(candidate: dict[str, Any], scale: float) -> dict[str, Any]:
    """A candidate with so many times its trace weight."""
    return candidate | {"trace_weight": scale * candidate["trace_weight"]}


def _uncertified(fits: list[SearchFit]) -> list[Warning]:
    uncertified = sum(not fit.reached_tolerance for fit in fits)
    if not uncertified:
        return []
    return [
        NotCertified(
            f"{uncertified} of the {len(fits)} fits of the search did not end certified (for "
            'algorithm="direct": stationary); '
            "cv_results_['n_uncertified'] says for which weights. Raise max_iter, or tol."
        )
    ]
