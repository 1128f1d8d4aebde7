"""The fits of a search over SERAPH's weights, each of a candidate in a fold, and their scores."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.neighbors import KNeighborsClassifier

from ...numerics.blas_threads import one_blas_thread
from ...numerics.checks import UNKNOWN, FloatArray, IntArray, encode_labels
from ..seraph import SERAPH
from .scoring import area_over_pairs, known_accuracy, pair_auc


@dataclass(frozen=True, eq=False)
class Fold:
    """A fold with all points: the labels `kept` are used to learn, those of `test` to score.

    Attributes
    ----------
    points : (n, m) array
    labels : (n,) array
        Classes as the user gave them.
    codes : (n,) array of int
        The same as numbers from 0, -1 where unknown.
    kept, test : arrays of int
        Indices of points of known class.
    """

    points: FloatArray
    labels: NDArray[Any]
    codes: IntArray
    kept: IntArray
    test: IntArray

    @property
    def masked(self) -> IntArray:
        """The labels of this fold: those that are not kept are unknown."""
        masked = np.full(len(self.codes), UNKNOWN, dtype=np.int64)
        masked[self.kept] = self.codes[self.kept]
        return masked


@dataclass(frozen=True)
class SearchFit:
    """The result of a candidate in a fold; `failure` says why if it has no score.

    `reached_tolerance`: the fit ended certified, or stationary where algorithm="direct".
    """

    score: float
    reached_tolerance: bool
    seconds: float
    failure: str = ""


def make_folds(points: FloatArray, labels: NDArray[Any], splitter: Any) -> list[Fold]:
    """Split the points of known class into those to learn from and those to score by.

    kept = train n K and test = test n K for each split, K the points of known class.

    Examples
    --------
    >>> from seraph_cvx.estimators.selection.scoring import LabeledKFold
    >>> folds = make_folds(np.zeros((5, 1)), np.array([0, 0, 1, 1, -1]), LabeledKFold(2))
    >>> folds[0].masked, folds[0].test
    (array([-1,  0, -1,  1, -1]), array([0, 2]))
    """
    known, known_codes = encode_labels(labels, len(points))
    codes = np.full(len(points), UNKNOWN, dtype=np.int64)
    codes[known] = known_codes
    folds: list[Fold] = []
    for train, test in splitter.split(points, labels):
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
        folds.append(Fold(points, labels, codes, kept, held_out))
    return folds


def fit_fold(
    fold: Fold,
    model: SERAPH,
    scorer: Callable[[SERAPH, Fold], float],
    shares: Sequence[float | str],
) -> list[SearchFit]:
    """Fit candidates that differ in their share to a fold, by one fit, and score them.

    score(A(lambda, mu, alpha; the kept labels)) for each alpha, with the time the fit took and its
    status: the share is added to a metric after it has been learned.

    Examples
    --------
    >>> from seraph_cvx.estimators.selection.scoring import LabeledKFold
    >>> X, y = np.array([[0.0], [0.1], [2.0], [2.1]]), np.array([0, 0, 1, 1])
    >>> fold = make_folds(X, y, LabeledKFold(2))[0]
    >>> (fit,) = fit_fold(fold, SERAPH(), nearest_labeled_accuracy, ["auto"])
    >>> fit.score, fit.reached_tolerance
    (1.0, True)
    """
    clock = time.perf_counter()
    pairs = model._take(fold.points, fold.masked)
    try:
        with one_blas_thread():
            model._learn(pairs)  # the search tells of all in one
    except RuntimeError as error:  # the solver returned no metric at all
        failed = SearchFit(np.nan, False, time.perf_counter() - clock, str(error))
        return [failed] * len(shares)
    seconds = time.perf_counter() - clock
    found = []
    for share in shares:
        model.set_params(identity_share=share)._mix(model.m_step_metric_, pairs)
        score = float(scorer(model, fold))
        if np.isnan(score):
            raise ValueError("scoring returned NaN: it must return a number for every fold.")
        found.append(SearchFit(score, model.status_.reached_tolerance, seconds))
    return found


def tabulate_fits(candidates: list[dict[str, Any]], fits: list[SearchFit]) -> dict[str, Any]:
    """Tabulate the scores of all candidates.

    mean_f and std_f of score_f for each candidate, in the words of GridSearchCV.cv_results_.

    Parameters
    ----------
    candidates : list of dict
        Each with a "trace_weight", an "unlabeled_weight" and an "identity_share".
    fits : list of SearchFit
        The folds of the first candidate, then those of the second, and so on.

    Examples
    --------
    >>> others = {"unlabeled_weight": 0.0, "identity_share": 0.3}
    >>> candidates = [{"trace_weight": t, **others} for t in (1.0, 2.0)]
    >>> table = tabulate_fits(candidates, [SearchFit(score, True, 0.1) for score in (1, 0, 1, 1)])
    >>> table["mean_test_score"].tolist(), table["rank_test_score"].tolist()
    ([0.5, 1.0], [2, 1])
    """
    in_rows = len(candidates), -1
    scores = np.array([fit.score for fit in fits]).reshape(in_rows)
    mean = scores.mean(axis=1)
    if np.all(np.isnan(mean)):
        raise RuntimeError(
            "No pair of weights could be fitted in all folds; the first failure was: "
            + next(fit.failure for fit in fits if fit.failure)
        )
    merit = np.where(np.isnan(mean), -np.inf, np.round(mean, 12))
    seconds = np.array([fit.seconds for fit in fits]).reshape(in_rows)
    uncertified = np.array([not fit.reached_tolerance for fit in fits]).reshape(in_rows)
    mus = [candidate["unlabeled_weight"] for candidate in candidates]
    shares = [candidate["identity_share"] for candidate in candidates]
    return {
        "mean_fit_time": seconds.mean(axis=1),
        "param_trace_weight": np.array([candidate["trace_weight"] for candidate in candidates]),
        "param_unlabeled_weight": np.array(mus, dtype=object),
        "param_identity_share": np.array(shares, dtype=object),
        "params": candidates,
        **{f"split{i}_test_score": column for i, column in enumerate(scores.T)},
        "mean_test_score": mean,
        "std_test_score": scores.std(axis=1),
        "rank_test_score": rankdata(-merit, method="min").astype(np.int32),
        "n_uncertified": uncertified.sum(axis=1),
        "n_failed": np.isnan(scores).sum(axis=1),
    }


def best_candidate(
    table: dict[str, Any],
    default: int | None = None,
    caution: float = 0.0,
    fold_sizes: Sequence[int] = (),
) -> int:
    """Choose the candidate of the best mean score, or the default unless one is clearly better.

    Without a default, argmax of (mean score, trace weight): of equally good ones the metric of
    lower rank. With one, argmax of the lead sum_f n_f (score_f - score_f of the default), n_f the
    points held out; for accuracies that is how many more points are right. The default is kept
    unless the lead is at least `caution`.

    Examples
    --------
    >>> best_candidate({"rank_test_score": [1, 2, 1], "param_trace_weight": [0.1, 9.0, 1.0]})
    2
    >>> scores = {"split0_test_score": [0.5, 0.75], "split1_test_score": [0.5, 0.5]}
    >>> ranks = {"rank_test_score": [2, 1], "param_trace_weight": [1.0, 2.0]}
    >>> [best_candidate(ranks | scores, 0, caution, [4, 4]) for caution in (1.0, 2.0)]
    [1, 0]
    """
    tied = np.flatnonzero(np.asarray(table["rank_test_score"]) == 1)
    best = int(tied[np.argmax(np.asarray(table["param_trace_weight"])[tied])])
    if default is None:
        return best
    scores = np.array([table[f"split{f}_test_score"] for f in range(len(fold_sizes))])
    leads = np.round(np.asarray(fold_sizes) @ (scores - scores[:, [default]]), 9)
    if np.isnan(leads[default]):
        return best
    leads = np.where(np.isnan(leads), -np.inf, leads)
    return int(np.argmax(leads)) if np.max(leads) >= max(caution, 1e-9) else default


def choose_scorer(scoring: Any) -> Callable[[SERAPH, Fold], float]:
    """Turn the `scoring` of SERAPHCV into a function of the fitted SERAPH and the fold.

    Examples
    --------
    >>> choose_scorer("pair_auc").__name__
    'held_out_pair_auc'
    """
    if scoring is None or scoring in ("known_accuracy", known_accuracy):
        return nearest_labeled_accuracy
    if scoring in ("pair_auc", pair_auc):
        return held_out_pair_auc
    if not callable(scoring):
        raise ValueError(
            f'scoring={scoring!r} is not known: use "known_accuracy", "pair_auc", or a function '
            "(fitted SERAPH, X, y) -> float."
        )

    def score(model: SERAPH, fold: Fold) -> float:
        return float(scoring(model, fold.points[fold.test], fold.labels[fold.test]))

    return score


def nearest_labeled_accuracy(model: SERAPH, fold: Fold) -> float:
    """Score a metric by the nearest labeled neighbour of each hidden point.

    #{i in test : y of the kept point nearest to x_i is y_i} / #test, distances by the metric.

    Examples
    --------
    >>> from seraph_cvx.estimators.selection.scoring import LabeledKFold
    >>> X, y = np.array([[0.0], [0.1], [2.0], [0.2]]), np.array([0, 0, 1, 1])
    >>> fold = make_folds(X, y, LabeledKFold(2))[1]  # keeps points 0 and 2
    >>> nearest_labeled_accuracy(SERAPH().fit(X, fold.masked), fold)
    0.5
    """
    nearest = KNeighborsClassifier(n_neighbors=1)
    nearest.fit(model.transform(fold.points[fold.kept]), fold.codes[fold.kept])
    return known_accuracy(nearest, model.transform(fold.points[fold.test]), fold.codes[fold.test])


def held_out_pair_auc(model: SERAPH, fold: Fold) -> float:
    """Score a metric by the ROC area over the known pairs with a point held out.

    Examples
    --------
    >>> from seraph_cvx.estimators.selection.scoring import LabeledKFold
    >>> X, y = np.array([[0.0], [0.1], [2.0], [2.1]]), np.array([0, 0, 1, 1])
    >>> fold = make_folds(X, y, LabeledKFold(2))[0]
    >>> held_out_pair_auc(SERAPH().fit(X, fold.masked), fold)
    1.0
    """
    first, second = np.triu_indices(len(fold.test), 1)
    across = np.meshgrid(fold.test, fold.kept, indexing="ij")
    within = np.column_stack([fold.test[first], fold.test[second]])
    rows = np.vstack([within, np.column_stack([side.ravel() for side in across])])
    similar = fold.codes[rows[:, 0]] == fold.codes[rows[:, 1]]
    return area_over_pairs(model, fold.points, rows, similar)
