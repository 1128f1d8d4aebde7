"""SERAPH with its trace weight and unlabeled weight chosen by cross-validation."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata
from sklearn.metrics import pairwise_distances_chunked
from sklearn.model_selection import check_cv
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ..display.progress_line import ProgressLine
from ..model.m_step_objective import MStepObjective
from ..numerics.arrays import one_blas_thread, to_host
from ..numerics.checks import FloatArray, IntArray, check_number
from ..pairs.labeled_pairs import ClassLabels
from ..pairs.pair_set import PairSet
from ..solvers.not_certified import NotCertified
from .base import FitParameters, m_step_of, similar_probability
from .half_labeled import LabeledKFold, known_accuracy
from .mahalanobis import MahalanobisTransformer, all_or_nothing
from .seraph import SERAPH
from .settings import NEGLIGIBLE, RECOMMENDED, auto_trace_share, critical_weight, trace_shape

AUTO_FACTORS = (1.0, 3.0, 10.0)
"""The trace weights of "auto", as multiples of the default one of SERAPH, which is the first."""

OTHER_SHARES = (0.4, 0.7)
"""The shares of the reference that are tried besides the one given."""

CHOSEN = ("trace_weight", "unlabeled_weight", "identity_share")
"""The parameters of SERAPH that the search chooses."""

REFIT_PARAMETERS = ("verbose", "callback", "on_interrupt")

SHARED_PARAMETERS = tuple(
    SERAPH().get_params().keys() - {*CHOSEN, *REFIT_PARAMETERS, "setting", "n_jobs", "classifier"}
)
"""The parameters that are passed on to every SERAPH of the search."""

LEARNED = (
    *("metric_", "factor_", "components_", "threshold_", "certificate_", "history_", "n_iter_"),
    "status_",
)
"""The attributes that are copied from the chosen SERAPH, where it has them."""


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
    scoring : "soft_accuracy", "known_accuracy" or callable, optional
        None and "soft_accuracy": the share of each held-out point's neighborhood that is of its
        class, weights exp(-d/d_min) by the squared distances to the labeled points. Which of two
        metrics is better it tells with fewer labels than "known_accuracy", the accuracy on the
        held-out points of 1-NN to the labeled ones.
        A callable: ``scoring(fitted SERAPH, X_held_out, y_held_out)``, larger is better.
    n_jobs : int, optional
        Fits (of a candidate in a fold) at a time, through joblib; the result is the same.
    refit : bool, default=True
        Fit the chosen SERAPH on all labels. Without it there is no metric, only `cv_results_`.
    threshold, sharpness, algorithm, solver, tol, m_step_tol, max_iter, n_components, ...
        As for :class:`seraph_cvx.SERAPH`; `callback` and `on_interrupt` are of the final fit,
        `time_limit` is of each fit, and `verbose` also shows how far the search is.
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
    metric_, components_, threshold_, certificate_, history_, n_iter_, status_
    m_step_objective_, m_step_metric_
        Of `best_estimator_`.
    n_features_in_ : int

    Examples
    --------
    >>> from seraph_cvx.datasets import load_sampling
    >>> drawn = load_sampling("iris", n_points=40, n_labeled=12, seed=1)
    >>> search = SERAPHCV(trace_weights=[1.0, 10.0], cv=2).fit(drawn.X, drawn.y)
    >>> search.best_params_, round(search.best_score_, 3)
    ({'trace_weight': 1.0, 'unlabeled_weight': 'full', 'identity_share': 'auto'}, 0.886)
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
        with all_or_nothing(self):
            pairs = self._make_pairs(X, y)
            for doubt in self._doubts_about_data(pairs, y):
                warnings.warn(doubt, stacklevel=2)
            not_reached = self._search(pairs, column_or_1d(to_host(y)))
        for warning in not_reached:
            warnings.warn(warning, stacklevel=2)
        return self

    def _search(self, pairs: PairSet, labels: NDArray[Any]) -> list[Warning]:
        """Choose the weights, and learn with them; return the warnings to issue."""
        scorer = choose_scorer(self.scoring)
        folds = make_folds(pairs, labels, self._splitter(pairs))
        weights, scales = self._weights_to_try(pairs, folds)
        mus = check_sequence("unlabeled_weights", self.unlabeled_weights)
        shares = self._shares_to_try()
        grid = [
            dict(zip(CHOSEN, (weight, mu, share), strict=True))
            for mu, weight, share in product(mus, weights, shares)
        ]
        if not grid:
            raise ValueError(
                "There is nothing to choose from: trace_weights, unlabeled_weights or "
                "identity_shares is empty."
            )
        shared = {name: getattr(self, name) for name in SHARED_PARAMETERS}
        tasks = [
            (fold, SERAPH(**shared | one | {"trace_weight": one["trace_weight"] * scale}))
            for one in grid[:: len(shares)]  # the share is added to what one fit has learned
            for fold, scale in zip(folds, scales, strict=True)
        ]
        running = Parallel(n_jobs=self.n_jobs, return_as="generator")(
            delayed(fit_fold)(*task, scorer, shares) for task in tasks
        )
        fits: list[FoldFit] = []
        with ProgressLine() if self.verbose else nullcontext() as line:
            for fit in running:
                fits.append(fit)
                if line is not None:
                    line.move(f"[SERAPHCV] {len(fits)} of {len(tasks)} fits of the search")
        for name in (*LEARNED, "best_estimator_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        self.n_splits_ = len(folds)
        self.cv_results_ = tabulate_fits(grid, fits, len(folds))
        least_lead = check_number(self.caution, "caution", 0.0)
        least_lead /= np.sqrt(sum(len(fold.test) for fold in folds))
        default = (weights[0], RECOMMENDED.unlabeled_weight, RECOMMENDED.identity_share)
        of_seraph = dict(zip(CHOSEN, default, strict=True))
        kept = grid.index(of_seraph) if self._is_automatic and of_seraph in grid else None
        self.best_index_ = best_candidate(self.cv_results_, kept, least_lead)
        self.best_params_ = dict(grid[self.best_index_])
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
        not_reached = self._refit(pairs, labels, shared) if self.refit else []
        if n_uncertified := int(self.cv_results_["n_uncertified"].sum()):
            not_reached.append(
                NotCertified(
                    f"{n_uncertified} of the {len(folds) * len(grid)} fits of the search did not "
                    'end certified (for algorithm="direct": stationary); '
                    "cv_results_['n_uncertified'] says for which weights. Raise max_iter, or tol."
                )
            )
        return not_reached

    def _refit(self, pairs: PairSet, labels: NDArray[Any], shared: dict[str, Any]) -> list[Warning]:
        """Fit the chosen SERAPH to all labels, and keep what it learned."""
        refit_only = {name: getattr(self, name) for name in REFIT_PARAMETERS}
        best = self.best_estimator_ = SERAPH(**shared, **self.best_params_, **refit_only)
        for name in vars(self).keys() & {"n_features_in_", "feature_names_in_"}:
            setattr(best, name, getattr(self, name))
        with one_blas_thread(min(pairs.points.shape)):
            _, not_reached = best._minimize(pairs)
            best._keep_evidence(pairs, labels)
        self.__dict__.update({key: vars(best)[key] for key in LEARNED if key in vars(best)})
        return not_reached

    @property
    def m_step_objective_(self) -> MStepObjective:
        """The last M-step of `best_estimator_`, which `certificate_` is about."""
        return m_step_of(self.certificate_)

    @property
    def m_step_metric_(self) -> FloatArray:
        """The metric of the last M-step of `best_estimator_`."""
        return self.best_estimator_.m_step_metric_

    def predict_pair_proba(self, pairs: ArrayLike) -> FloatArray:
        """The probability that each pair of a (k, 2, m) array is similar: see SERAPH's."""
        return similar_probability(self.pair_distance(pairs), self.threshold_)

    def predict(self, X: ArrayLike) -> Any:
        """Predict the class of the nearest labeled point for each point of X: see SERAPH's."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "components_")

    def _shares_to_try(self) -> list[float | str]:
        """The shares of the reference that are tried."""
        if self.identity_shares is not None:
            return check_sequence("identity_shares", self.identity_shares)
        return [self.identity_share, *(OTHER_SHARES if self._is_automatic else ())]

    @property
    def _is_automatic(self) -> bool:
        """Whether the trace weights are multiples of SERAPH's own, the first that one itself."""
        return isinstance(self.trace_weights, str)

    def _weights_to_try(self, pairs: PairSet, folds: list[Fold]) -> tuple[list[float], list[float]]:
        """The trace weights for all labels, and what they are multiplied by in each fold."""
        if not isinstance(self.trace_weights, str):
            weights = [check_number(w, "trace_weights", 0.0) for w in self.trace_weights]
            return weights, [1.0] * len(folds)
        if self.trace_weights != "auto":
            raise ValueError(
                f'trace_weights={self.trace_weights!r} is not known: give numbers or "auto".'
            )
        term = self._manifold_term(pairs.points)
        shape = trace_shape(pairs.points, self.correlation_weight)

        def default_weight(pairs: PairSet) -> float:
            labeled_only = _labeled_only(pairs, self.threshold, term)
            return auto_trace_share(pairs) * critical_weight(labeled_only, shape)

        of_all = default_weight(pairs)
        if not of_all:
            raise ValueError(
                "The first metric is zero at every trace weight (no labeled pair pulls it up), so "
                '"auto" has no weights to try: give trace_weights as numbers.'
            )
        of_folds = [default_weight(fold.pairs) or of_all for fold in folds]
        return [factor * of_all for factor in AUTO_FACTORS], [own / of_all for own in of_folds]

    def _splitter(self, pairs: PairSet) -> Any:
        """What splits the points of known class into folds."""
        class_sizes = np.bincount(np.asarray(pairs.labels.classes))
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


def _labeled_only(
    pairs: PairSet, threshold: float, manifold_term: FloatArray | None = None
) -> MStepObjective:
    """The M-step of the labeled pairs alone."""
    return MStepObjective(
        pairs, unlabeled_weight=0.0, threshold=threshold, manifold_term=manifold_term
    )


def check_sequence(name: str, given: Any) -> list[Any]:
    """The values to try as a list; an error unless a sequence is given."""
    if isinstance(given, str) or not np.iterable(given):
        raise ValueError(
            f"{name}={given!r} must be a sequence of values to try: write it in a list."
        )
    return list(given)


class Fold(NamedTuple):
    """All points, with the labels `kept` to learn from; those of `test` are to score by.

    `labels` are classes as the user gave them, `codes` the same as numbers from 0.
    """

    pairs: PairSet
    labels: NDArray[Any]
    codes: IntArray
    kept: IntArray
    test: IntArray


def make_folds(pairs: PairSet, labels: NDArray[Any], splitter: Any) -> list[Fold]:
    """Split the points of known class into those to learn from and those to score by."""
    known, codes = pairs.labels.members, np.full(pairs.n_points, -1)
    codes[known] = pairs.labels.classes
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
        of_kept = replace(pairs, labels=ClassLabels(kept, codes[kept]))
        folds.append(Fold(of_kept, labels, codes, kept, held_out))
    return folds


class FoldFit(NamedTuple):
    """What one fit to a fold gave: a score for each share, NaN if it failed."""

    scores: list[float]
    is_certified: bool
    seconds: float
    failure: str = ""


def fit_fold(
    fold: Fold,
    model: SERAPH,
    scorer: Callable[[SERAPH, Fold], float],
    shares: Sequence[float | str],
) -> FoldFit:
    """Fit candidates that differ in their share to a fold, by one fit, and score them."""
    clock = time.perf_counter()
    model.n_features_in_ = fold.pairs.n_features
    try:
        with one_blas_thread():
            model._minimize(fold.pairs)  # the search warns for all of its fits together
    except RuntimeError as error:  # the solver returned no metric at all
        return FoldFit([np.nan] * len(shares), False, time.perf_counter() - clock, str(error))
    seconds = time.perf_counter() - clock
    labeled_only, scores = _labeled_only(fold.pairs, model.threshold), []
    for share in shares:
        model.set_params(identity_share=share)._mix(labeled_only)
        scores.append(float(scorer(model, fold)))
    if np.any(np.isnan(scores)):
        raise ValueError("scoring returned NaN: it must return a number for every fold.")
    return FoldFit(scores, model.status_.reached_tolerance, seconds)


def tabulate_fits(grid: list[dict[str, Any]], fits: list[FoldFit], n_folds: int) -> dict[str, Any]:
    """Tabulate the scores of all candidates, in the words of GridSearchCV.cv_results_."""
    of_fits = np.array([fit.scores for fit in fits])  # a row for each weight and fold
    n_shares = of_fits.shape[1]
    scores = of_fits.reshape(-1, n_folds, n_shares).swapaxes(1, 2).reshape(-1, n_folds)
    certified, seconds = (
        np.repeat(np.reshape(column, (-1, n_folds)), n_shares, axis=0)
        for column in ([fit.is_certified for fit in fits], [fit.seconds for fit in fits])
    )
    mean = scores.mean(axis=1)
    if np.all(np.isnan(mean)):
        raise RuntimeError(
            "No pair of weights could be fitted in all folds; the first failure was: "
            + next(fit.failure for fit in fits if fit.failure)
        )
    columns = {name: np.array([one[name] for one in grid], dtype=object) for name in CHOSEN}
    columns["trace_weight"] = columns["trace_weight"].astype(np.float64)
    return {
        "mean_fit_time": seconds.mean(axis=1),
        **{f"param_{name}": column for name, column in columns.items()},
        "params": grid,
        **{f"split{i}_test_score": column for i, column in enumerate(scores.T)},
        "mean_test_score": mean,
        "std_test_score": scores.std(axis=1),
        "rank_test_score": rankdata(
            np.nan_to_num(-np.round(mean, 12), nan=np.inf), method="min"
        ).astype(np.int32),
        "n_uncertified": (~certified).sum(axis=1),
        "n_failed": np.isnan(scores).sum(axis=1),
    }


def best_candidate(
    table: dict[str, Any], default: int | None = None, least_lead: float = 0.0
) -> int:
    """Choose the candidate of the best mean score, or the default unless it leads by enough.

    Of equally good ones that of the largest trace weight, whose metric is of lower rank.
    """
    tied = np.flatnonzero(np.asarray(table["rank_test_score"]) == 1)
    best = int(tied[np.argmax(np.asarray(table["param_trace_weight"])[tied])])
    if default is None:
        return best
    lead = table["mean_test_score"][best] - table["mean_test_score"][default]
    return default if lead <= max(least_lead, NEGLIGIBLE) else best  # NaN: it was not fitted


def choose_scorer(scoring: Any) -> Callable[[SERAPH, Fold], float]:
    """Turn the `scoring` of SERAPHCV into a function of the fitted SERAPH and the fold."""
    if scoring in (None, "soft_accuracy"):
        return partial(neighbor_score, weigh_by_distance)
    if scoring in ("known_accuracy", known_accuracy):
        return partial(neighbor_score, weigh_nearest)
    if not callable(scoring):
        raise ValueError(
            f'scoring={scoring!r} is not known: use "soft_accuracy", "known_accuracy", or a '
            "function (fitted SERAPH, X, y) -> float."
        )
    return lambda model, fold: scoring(model, fold.pairs.points[fold.test], fold.labels[fold.test])


def weigh_by_distance(squares: FloatArray) -> Any:
    """The weights exp(-d_ij/d_i) of the kept points, d_i the smallest of the squared distances.

    Near misses count in part, so that fewer labels than for the accuracy tell which of two metrics
    is better.
    """
    nearest = np.min(squares, axis=1, keepdims=True)
    scale = np.maximum(nearest, NEGLIGIBLE * np.max(squares))
    scale = np.where(scale > 0.0, scale, 1.0)  # a metric that is zero
    return np.exp((nearest - squares) / scale)


def weigh_nearest(squares: FloatArray) -> Any:
    """The nearest kept point of each held-out one alone."""
    return np.arange(squares.shape[1]) == np.argmin(squares, axis=1)[:, None]


def neighbor_score(weigh: Callable[[FloatArray], Any], model: SERAPH, fold: Fold) -> float:
    """The mean share of each held-out point's neighbors, the kept points, that is of its class.

    sum_{j of its class} w_ij / sum_j w_ij: the chance to be right by a neighbor drawn with the
    weights w, which are those of the squared distances.
    """
    kept, test = (model.transform(fold.pairs.points[rows]) for rows in (fold.kept, fold.test))
    center = kept.mean(axis=0)  # so that the distances lose nothing to rounding

    def shares(squares: FloatArray, start: int) -> Any:
        classes, weights = fold.codes[fold.test[start : start + len(squares)]], weigh(squares)
        is_same = fold.codes[fold.kept] == classes[:, None]
        return np.sum(weights * is_same, axis=1) / np.sum(weights, axis=1)

    chunks = pairwise_distances_chunked(
        test - center, kept - center, reduce_func=shares, metric="euclidean", squared=True
    )
    return float(np.mean(np.concatenate(list(chunks))))
