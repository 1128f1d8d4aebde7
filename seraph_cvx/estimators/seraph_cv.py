"""SERAPH with its trace weight and unlabeled weight chosen by cross-validation."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.metrics import pairwise_distances_chunked
from sklearn.model_selection import check_cv
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import column_or_1d

from ..model.m_step_objective import MStepObjective
from ..numerics.arrays import one_blas_thread, to_host
from ..numerics.checks import UNKNOWN, FloatArray, IntArray, check_number, encode_labels
from ..pairs.labeled_pairs import label_pairs
from ..pairs.pair_set import PairSet
from ..solvers.not_certified import NotCertified
from .base import FitParameters, similar_probability
from .half_labeled import LabeledKFold, area_over_pairs, known_accuracy, pair_auc
from .mahalanobis import MahalanobisTransformer
from .seraph import SERAPH
from .settings import RECOMMENDED

AUTO_FACTORS = (1.0, 3.0, 10.0)
"""The trace weights of "auto", as multiples of the default one of SERAPH, which is the first."""

OTHER_SHARES = (0.4, 0.7)
"""The shares of the reference that are tried besides the one given."""

CHOSEN = ("trace_weight", "unlabeled_weight", "identity_share")
"""The parameters of SERAPH that the search chooses."""

OF_THE_LAST_FIT = ("setting", "n_jobs", "verbose", "callback", "on_interrupt")

HANDED_ON = tuple(SERAPH().get_params().keys() - {*CHOSEN, *OF_THE_LAST_FIT})
"""The parameters that are passed on to every SERAPH of the search."""

LEARNED = (
    *("metric_", "components_", "threshold_", "certificate_", "history_", "n_iter_", "status_"),
    *("sampling_", "leave_one_out_", "data_notes_"),
)
"""The attributes that are copied from the chosen SERAPH."""

ROUNDING = 1e-12
"""Mean scores that differ by no more are equal."""

SAME_POINT = 1e-10
"""Points nearer than this, as a share of the largest squared distance, count as equal."""


@dataclass(eq=False, repr=False)
class SearchParameters:
    """What SERAPHCV tries, and how it judges."""

    trace_weights: str | Sequence[float] = "auto"
    unlabeled_weights: Sequence[float | str] = ("full",)
    cv: Any = None
    scoring: Any = None
    n_jobs: int | None = None
    refit: bool = True


@dataclass(eq=False, repr=False)
class _Parameters(FitParameters, SearchParameters):
    """All parameters of SERAPHCV; its own are the first, but for two."""

    identity_shares: Sequence[float | str] | None = None
    caution: float = 0.1


class SERAPHCV(_Parameters, MahalanobisTransformer):
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
        return self._fit_pairs(X, y, stacklevel=2)

    def _learn(self, pairs: PairSet, y: ArrayLike | None) -> list[Warning]:
        with one_blas_thread():
            return self._search(pairs, column_or_1d(to_host(y)))

    def _search(self, pairs: PairSet, labels: NDArray[Any]) -> list[Warning]:
        """Choose the weights, and learn with them; return the warnings to issue."""
        scorer = choose_scorer(self.scoring)
        folds = make_folds(pairs, labels, self._splitter(labels))
        shares = self._shares()
        default_weight = self._automatic_weight(pairs)
        candidates = list_candidates(
            self._weights_to_try(default_weight),
            check_sequence("unlabeled_weights", self.unlabeled_weights),
            shares,
        )
        settings = {name: getattr(self, name) for name in HANDED_ON}
        scales = np.ones(len(folds))
        if default_weight is not None:  # in a fold there are fewer labeled pairs
            own_weights = (self._automatic_weight(fold.kept_pairs) for fold in folds)
            scales = np.array([own or default_weight for own in own_weights]) / default_weight
        tasks = [
            (fold, SERAPH(**settings | one | {"trace_weight": weight}), scorer, shares)
            for one in candidates[:: len(shares)]
            for fold, weight in zip(folds, (one["trace_weight"] * scales).tolist(), strict=True)
        ]
        results: list[list[SearchFit]]
        if effective_n_jobs(self.n_jobs) == 1:  # Parallel would change the process's warnings
            results = [fit_fold(*task) for task in tasks]
        else:
            results = Parallel(n_jobs=self.n_jobs)(delayed(fit_fold)(*task) for task in tasks)
        fits = [  # the folds of the first candidate, then of the second
            results[start + f][share]
            for start in range(0, len(results), len(folds))
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
        warnings = self._refit(pairs, labels, settings) if self.refit else []
        n_uncertified = sum(fit.is_uncertified for fit in fits)
        if n_uncertified:
            warnings.append(
                NotCertified(
                    f"{n_uncertified} of the {len(fits)} fits of the search did not end certified "
                    '(for algorithm="direct": stationary); '
                    "cv_results_['n_uncertified'] says for which weights. Raise max_iter, or tol."
                )
            )
        return warnings

    def _refit(
        self, pairs: PairSet, labels: NDArray[Any], settings: dict[str, Any]
    ) -> list[Warning]:
        """Fit the chosen SERAPH to all labels, and keep what it learned."""
        best = SERAPH(
            **settings,
            **self.best_params_,
            verbose=self.verbose,
            callback=self.callback,
            on_interrupt=self.on_interrupt,
        )
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(best, name, getattr(self, name))
        not_reached = best._minimize(pairs)
        best._keep_evidence(pairs, labels)
        self.best_estimator_ = best
        for name in LEARNED:
            setattr(self, name, getattr(best, name))
        return not_reached

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

    def _automatic_weight(self, pairs: PairSet) -> float | None:
        """The trace weight that SERAPH would take for these pairs, if it is to be tried."""
        if not self._is_automatic:
            return None
        if self.trace_weights != "auto":
            raise ValueError(
                f'trace_weights={self.trace_weights!r} is not known: give numbers or "auto".'
            )
        setting = RECOMMENDED._replace(correlation_weight=self.correlation_weight)
        return setting.auto_trace_weight(pairs, self.threshold, self._manifold_term(pairs.points))

    def _weights_to_try(self, default_weight: float | None) -> list[float]:
        if not self._is_automatic:
            return [check_number(w, "trace_weights", 0.0) for w in self.trace_weights]
        if default_weight is None:
            raise ValueError(
                "The first metric is zero at every trace weight (no labeled pair pulls it up), so "
                '"auto" has no weights to try: give trace_weights as numbers.'
            )
        return [factor * default_weight for factor in AUTO_FACTORS]

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


def list_candidates(
    trace_weights: Sequence[float], mus: Sequence[float | str], shares: Sequence[float | str]
) -> list[dict[str, Any]]:
    """List all combinations of weights and share, the share running first."""
    candidates = [
        {"trace_weight": weight, "unlabeled_weight": mu, "identity_share": share}
        for mu, weight, share in product(mus, trace_weights, shares)
    ]
    if not candidates:
        raise ValueError(
            "There is nothing to choose from: trace_weights, unlabeled_weights or "
            "identity_shares is empty."
        )
    return candidates


def find_default(candidates: Sequence[dict[str, Any]]) -> int | None:
    """Find SERAPH's default among the candidates; the first trace weight is the automatic one."""
    wanted = (RECOMMENDED.unlabeled_weight, RECOMMENDED.identity_share)
    others = [(one["unlabeled_weight"], one["identity_share"]) for one in candidates]
    return others.index(wanted) if wanted in others else None


def check_sequence(name: str, given: Any) -> list[Any]:
    """The values to try as a list; an error unless a sequence is given."""
    if isinstance(given, str) or not np.iterable(given):
        raise ValueError(
            f"{name}={given!r} must be a sequence of values to try: write it in a list."
        )
    return list(given)


@dataclass(frozen=True, eq=False)
class Fold:
    """A fold with all points: the labels `kept` are used to learn, those of `test` to score.

    `labels` are classes as the user gave them, `codes` the same as numbers from 0, -1 if unknown.
    """

    pairs: PairSet
    labels: NDArray[Any]
    codes: IntArray
    kept: IntArray
    test: IntArray

    @property
    def points(self) -> FloatArray:
        """All points."""
        return self.pairs.points

    @property
    def masked(self) -> IntArray:
        """The labels of this fold: those that are not kept are unknown."""
        return np.where(np.isin(np.arange(len(self.codes)), self.kept), self.codes, UNKNOWN)

    @cached_property
    def kept_pairs(self) -> PairSet:
        """The pairs of this fold's labels."""
        return replace(self.pairs, labels=label_pairs(self.points, self.masked))


@dataclass(frozen=True)
class SearchFit:
    """The result of a candidate in a fold; `failure` says why if it has no score.

    `is_uncertified`: the fit did not end certified, or stationary where algorithm="direct".
    """

    score: float
    is_uncertified: bool
    seconds: float
    failure: str = ""


def make_folds(pairs: PairSet, labels: NDArray[Any], splitter: Any) -> list[Fold]:
    """Split the points of known class into those to learn from and those to score by."""
    known, known_codes = encode_labels(labels, pairs.n_points)
    codes = np.full(pairs.n_points, UNKNOWN, dtype=np.int64)
    codes[known] = known_codes
    folds: list[Fold] = []
    for train, test in splitter.split(pairs.points, labels):
        kept, held_out = np.intersect1d(train, known), np.intersect1d(test, known)
        if not len(held_out):
            raise ValueError(
                f"Fold {len(folds)} of cv holds out no point of known class: use LabeledKFold, or "
                "give cv as an int."
            )
        if len(np.unique(codes[kept])) < 2:
            raise ValueError(
                f"Fold {len(folds)} leaves {len(kept)} known points of fewer than two classes to "
                "learn from: label more points of the rare classes, ask for fewer folds, or give a "
                "cv that keeps them."
            )
        folds.append(Fold(pairs, labels, codes, kept, held_out))
    return folds


def fit_fold(
    fold: Fold,
    model: SERAPH,
    scorer: Callable[[SERAPH, Fold], float],
    shares: Sequence[float | str],
) -> list[SearchFit]:
    """Fit candidates that differ in their share to a fold, by one fit, and score them."""
    clock = time.perf_counter()
    pairs = fold.kept_pairs
    model.n_features_in_ = pairs.n_features
    try:
        with one_blas_thread():
            model._minimize(pairs)  # the search warns for all of its fits together
    except RuntimeError as error:  # the solver returned no metric at all
        failed = SearchFit(np.nan, True, time.perf_counter() - clock, str(error))
        return [failed] * len(shares)
    seconds = time.perf_counter() - clock
    labeled_only = MStepObjective(pairs, unlabeled_weight=0.0, threshold=model.threshold)
    results = []
    for share in shares:  # which is added to a metric after it has been learned
        model.set_params(identity_share=share)._mix(labeled_only)
        score = float(scorer(model, fold))
        if np.isnan(score):
            raise ValueError("scoring returned NaN: it must return a number for every fold.")
        results.append(SearchFit(score, not model.status_.reached_tolerance, seconds))
    return results


def tabulate_fits(candidates: list[dict[str, Any]], fits: list[SearchFit]) -> dict[str, Any]:
    """Tabulate the scores of all candidates, in the words of GridSearchCV.cv_results_.

    `fits` are the folds of the first candidate, then those of the second, and so on.
    """
    in_rows = len(candidates), -1
    scores, uncertified, seconds = (
        np.array([getattr(fit, name) for fit in fits]).reshape(in_rows)
        for name in ("score", "is_uncertified", "seconds")
    )
    mean = scores.mean(axis=1)
    if np.all(np.isnan(mean)):
        raise RuntimeError(
            "No pair of weights could be fitted in all folds; the first failure was: "
            + next(fit.failure for fit in fits if fit.failure)
        )
    merit = np.where(np.isnan(mean), -np.inf, np.round(mean, 12))
    columns = {
        f"param_{name}": np.array(
            [candidate[name] for candidate in candidates],
            dtype=np.float64 if name == "trace_weight" else object,
        )
        for name in CHOSEN
    }
    return {
        "mean_fit_time": seconds.mean(axis=1),
        **columns,
        "params": candidates,
        **{f"split{i}_test_score": column for i, column in enumerate(scores.T)},
        "mean_test_score": mean,
        "std_test_score": scores.std(axis=1),
        "rank_test_score": rankdata(-merit, method="min").astype(np.int32),
        "n_uncertified": uncertified.sum(axis=1),
        "n_failed": np.isnan(scores).sum(axis=1),
    }


def best_candidate(
    table: dict[str, Any], default: int | None = None, least_lead: float = 0.0
) -> int:
    """Choose the candidate of the best mean score, or the default unless it leads by enough.

    Of equally good ones that of the largest trace weight, whose metric is of lower rank. The
    default is kept unless that one's mean score is better by more than `least_lead`.
    """
    tied = np.flatnonzero(np.asarray(table["rank_test_score"]) == 1)
    best = int(tied[np.argmax(np.asarray(table["param_trace_weight"])[tied])])
    if default is None:
        return best
    lead = table["mean_test_score"][best] - table["mean_test_score"][default]
    return default if lead <= max(least_lead, ROUNDING) else best  # NaN: it was not fitted


def choose_scorer(scoring: Any) -> Callable[[SERAPH, Fold], float]:
    """Turn the `scoring` of SERAPHCV into a function of the fitted SERAPH and the fold."""
    if scoring is None or scoring == "soft_accuracy":
        return held_out_soft_accuracy
    if scoring in ("known_accuracy", known_accuracy):
        return nearest_labeled_accuracy
    if scoring in ("pair_auc", pair_auc):
        return held_out_pair_auc
    if not callable(scoring):
        raise ValueError(
            f'scoring={scoring!r} is not known: use "soft_accuracy", "known_accuracy", "pair_auc", '
            "or a function (fitted SERAPH, X, y) -> float."
        )

    def score(model: SERAPH, fold: Fold) -> float:
        return float(scoring(model, fold.points[fold.test], fold.labels[fold.test]))

    return score


def held_out_soft_accuracy(model: SERAPH, fold: Fold) -> float:
    """Score a metric by the share of each hidden point's neighborhood that is of its class.

    The mean over the held-out points i of sum_{j of its class} w_ij / sum_j w_ij over the kept
    points j, w_ij = exp(-d_ij/d_i), d_ij the squared distance and d_i the smallest of them: the
    chance to be right by a neighbor drawn with these weights. Near misses count in part, so that
    fewer labels than for the accuracy tell which of two metrics is better.
    """

    def share(squares: FloatArray, is_same: NDArray[np.bool_]) -> FloatArray:
        nearest = np.min(squares, axis=1, keepdims=True)
        scale = np.maximum(nearest, SAME_POINT * np.max(squares))
        scale = np.where(scale > 0.0, scale, 1.0)  # a metric that is zero
        weights = np.exp((nearest - squares) / scale)
        return np.asarray(np.sum(weights * is_same, axis=1) / np.sum(weights, axis=1))

    return _mean_over_held_out(model, fold, share)


def nearest_labeled_accuracy(model: SERAPH, fold: Fold) -> float:
    """Score a metric by the nearest labeled neighbor of each hidden point."""

    def is_right(squares: FloatArray, is_same: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return np.asarray(is_same[np.arange(len(squares)), np.argmin(squares, axis=1)])

    return _mean_over_held_out(model, fold, is_right)


def _mean_over_held_out(model: SERAPH, fold: Fold, judge: Callable[..., Any]) -> float:
    """The mean of what is judged by squared distances to the kept points, and which are alike."""
    kept, test = (model.transform(fold.points[rows]) for rows in (fold.kept, fold.test))
    center = kept.mean(axis=0)  # so that the distances lose nothing to rounding

    def judge_rows(squares: FloatArray, start: int) -> Any:
        classes = fold.codes[fold.test[start : start + len(squares)]]
        return judge(squares, fold.codes[fold.kept] == classes[:, None])

    chunks = pairwise_distances_chunked(
        test - center, kept - center, reduce_func=judge_rows, metric="euclidean", squared=True
    )
    return float(np.mean(np.concatenate(list(chunks))))


def held_out_pair_auc(model: SERAPH, fold: Fold) -> float:
    """Score a metric by the ROC area over the known pairs with a point held out."""
    first, second = np.triu_indices(len(fold.test), 1)
    across = np.meshgrid(fold.test, fold.kept, indexing="ij")
    within = np.column_stack([fold.test[first], fold.test[second]])
    rows = np.vstack([within, np.column_stack([side.ravel() for side in across])])
    similar = fold.codes[rows[:, 0]] == fold.codes[rows[:, 1]]
    return area_over_pairs(model, fold.points, rows, similar)
