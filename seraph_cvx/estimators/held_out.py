"""What held-out labels say: the errors of classifiers, the choice among them, and its gain.

Each label is held out in turn, with its point kept as an unlabeled one, and the metric is learned
anew from the others. So no label judges what it was used for; and as the best of several is better
by chance, too, the gain of the choice is measured on bootstrap samples of the labeled points that
did not take part in it (Tsamardinos, Greasidou and Borboudakis, 2018).
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..engine.passes import Limit
from ..numerics.checks import FloatArray, IntArray
from ..pairs.labeled_pairs import ClassLabels
from ..pairs.pair_set import PairSet
from .base import BaseSERAPH
from .settings import NEGLIGIBLE

KINDS = ("nearest", "neighbors", "logistic")
BASELINE = "plain-nearest"
MEMBERS = ("neighbors", "logistic", "plain-neighbors", "plain-logistic")
"""What the vote averages: on nine tables with 80 labels it erred in 24.1 % of the rows, logistic
regression in 24.4 %, the nearest row in 27.9 %, and the best of six by the same folds in 24.7 %."""

CLASSIFIERS = ("vote", *KINDS, *(f"plain-{kind}" for kind in KINDS))
"""The classifiers of SERAPH, the default first: a name alone is of the learned metric."""

NEIGHBORS = 9
"""How many neighbors count, by their distance: 5 and 9 of equal weight were worse on these tables
by 0.5 points."""

CAUTION = 1.5
"""By so many standard errors another classifier has to beat the vote: with 1.5 the choice erred in
23.6 % of the rows of these tables, with 1 and 2 in 23.8 and 24.0 %."""

MOST_OTHERS = 500
"""The number of unlabeled points that the folds learn from at most, to save time."""


@dataclass(frozen=True)
class HeldOut:
    """Errors on held-out labels, the classifier that was chosen by them, and its gain.

    The baseline is the nearest labeled point in the features as they are given, "plain-nearest".

    Attributes
    ----------
    n : int
        The number of labeled points, each of which was held out.
    n_fits : int
        How many times the metric was learned anew.
    errors : dict
        The error rate of each classifier, by its name.
    classifier : str
        The choice: the vote, unless another one is better by 1.5 standard errors.
    keeps_metric : bool
        Whether the learned metric is kept: whether classifiers have fewer errors in it, on average,
        than in the plain features.
    gain : float
        How much smaller the error of the choice is than that of the baseline, corrected for
        choosing the best of several.
    margin : float
        The 95 % interval of the gain is gain +- margin: Bonett and Price's (2012) for differences
        of paired shares, widened by Nadeau and Bengio's factor for overlapping training sets.
    seconds : float
        What the folds took.
    """

    n: int
    n_fits: int
    errors: dict[str, float]
    classifier: str
    keeps_metric: bool
    gain: float
    margin: float
    seconds: float

    @property
    def baseline(self) -> float:
        """The error of the baseline."""
        return self.errors[BASELINE]

    @property
    def error(self) -> float:
        """The expected error of the choice on other points."""
        return min(1.0, max(0.0, self.baseline - self.gain))

    @property
    def metric_gain(self) -> float:
        """How much smaller errors are in the learned metric than in the plain features, on average.

        Over the three kinds of classifiers.
        """
        gains = [self.errors[f"plain-{kind}"] - self.errors[kind] for kind in KINDS]
        return math.fsum(gains) / len(gains)

    @property
    def verdict(self) -> str:
        """What the gain shows, in a sentence."""
        if self.gain > self.margin:
            return "The labels show a gain over the baseline."
        if self.gain < -self.margin:
            return "The labels show a loss against the baseline."
        return "This may be chance: the interval includes zero."

    def __str__(self) -> str:
        """The errors, and what they show, in a few sentences."""
        metric = "helps" if self.keeps_metric else "does not help, so the Euclidean one is used"
        return (
            f"{self.n} labels, each held out in turn ({self.n_fits} fits): {self.error:.1%} wrong "
            f"with {self.classifier!r}, {self.baseline:.1%} with {BASELINE!r}. Gain "
            f"{self.gain:+.1%}, 95% interval {self.gain - self.margin:+.1%} to "
            f"{self.gain + self.margin:+.1%}. {self.verdict} The learned metric {metric} "
            f"({self.metric_gain:+.1%})."
        )


def class_probabilities(
    name: str, points: FloatArray, codes: IntArray, L: FloatArray, X: FloatArray
) -> FloatArray:
    """The probabilities of the classes 0, 1, ... at X, a column each, by a classifier of this name.

    It learns from labeled points and their classes, in the metric L'L or, "plain-", as they are.
    """
    if name == "vote":
        votes = [class_probabilities(one, points, codes, L, X) for one in MEMBERS]
        return np.asarray(np.mean(votes, axis=0))
    kind = name.removeprefix("plain-")
    if kind == name:
        points, X = points @ L.T, X @ L.T
    found = np.zeros((len(X), int(np.max(codes)) + 1))
    if kind == "logistic" and len(np.unique(codes)) > 1:
        from sklearn.linear_model import LogisticRegression

        classifier: Any = LogisticRegression(max_iter=1000)
    else:
        from sklearn.neighbors import KNeighborsClassifier

        k = min(NEIGHBORS, len(points)) if kind == "neighbors" else 1
        classifier = KNeighborsClassifier(k, weights="distance")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it did not converge: what it has is judged
        classifier.fit(points, codes)
    found[:, classifier.classes_] = classifier.predict_proba(X)
    return found


def judge_by_folds(model: BaseSERAPH, pairs: PairSet, random_state: Any = None) -> HeldOut | None:
    """Judge classifiers by labels that are held out; the metric is learned anew in each fold.

    Ten folds, twice; of more than 200 labels once, of more than 1,000 labels five. None where fewer
    than two classes have two labels, or where the time limit or Ctrl-C ended it.
    """
    labels: Any = pairs.labels
    clock = time.perf_counter()
    if not isinstance(labels, ClassLabels) or np.sum(np.bincount(labels.classes) > 1) < 2:
        return None
    n = len(labels.members)
    n_folds, repeats = min(n, 10 if n <= 1_000 else 5), 2 if n <= 200 else 1
    random = check_random_state(random_state)
    seeds = list(range(repeats)) if random_state is None else random.randint(2**31, size=repeats)
    pairs = _with_fewer_others(pairs, seeds[0])
    codes: IntArray = np.asarray(pairs.labels.classes)
    guesses = {
        name: np.zeros((repeats, n), dtype=np.int64) for name in (*CLASSIFIERS, "plain-vote")
    }
    from .half_labeled import LabeledKFold

    splitters = (LabeledKFold(n_folds, shuffle=True, random_state=seed) for seed in seeds)
    folds = chain.from_iterable(one._iter_test_indices(codes, codes) for one in splitters)
    limit = Limit(clock + (np.inf if model.time_limit is None else model.time_limit))
    with model._watched(limit) as watch:
        for k, held in enumerate(folds):
            if watch is not None:
                watch.running = f"held-out labels, fit {k + 1} of {n_folds * repeats}"
                watch.show_running()
            if limit.is_interrupted or time.perf_counter() > limit.deadline:
                return None
            found = _learn_and_guess(model, pairs, held)
            for name, probabilities in found.items():
                guesses[name][k // n_folds, held] = np.argmax(probabilities, axis=1)
    wrong = {name: np.mean(guess != codes, axis=0) for name, guess in guesses.items()}
    return _choice(wrong, n_folds, n_folds * repeats, time.perf_counter() - clock)


def _with_fewer_others(pairs: PairSet, seed: int) -> PairSet:
    """The labeled points and at most 500 of the others."""
    members = pairs.labels.members
    others = np.setdiff1d(np.arange(pairs.n_points), members)
    if len(others) <= MOST_OTHERS:
        return pairs
    drawn = np.random.default_rng(seed).choice(others, MOST_OTHERS, replace=False)
    rows = np.union1d(members, drawn)
    labels = ClassLabels(np.searchsorted(rows, members), np.asarray(pairs.labels.classes))
    return PairSet(pairs.points[rows], labels)


def _learn_and_guess(model: BaseSERAPH, pairs: PairSet, held: IntArray) -> dict[str, FloatArray]:
    """The probabilities of the classes at labeled points whose labels were held out."""
    members, codes = pairs.labels.members, np.asarray(pairs.labels.classes)
    kept = np.setdiff1d(np.arange(len(members)), held)
    of_kept = replace(pairs, labels=ClassLabels(members[kept], codes[kept]))
    quiet = {"callback": None, "verbose": 0, "on_interrupt": "raise"}
    learner = type(model)(**model.get_params() | quiet)
    learner.n_features_in_ = pairs.n_features
    try:
        learner._minimize(of_kept)
        L = learner.components_
    except RuntimeError:  # no metric was found, or none is best
        L = np.eye(pairs.n_features)
    given = pairs.points[members[kept]], codes[kept], L, pairs.points[members[held]]
    n_classes = int(np.max(codes)) + 1
    found = {}
    for name in CLASSIFIERS[1:]:
        p = class_probabilities(name, *given)
        found[name] = np.pad(p, ((0, 0), (0, n_classes - p.shape[1])))
    found["vote"] = np.mean([found[name] for name in MEMBERS], axis=0)
    found["plain-vote"] = np.mean([found[name] for name in MEMBERS if "-" in name], axis=0)
    return found


def _choice(wrong: dict[str, FloatArray], n_folds: int, n_fits: int, seconds: float) -> HeldOut:
    """Choose a classifier by the shares of repetitions in which each point was wrong."""
    errors = {name: float(np.mean(wrong[name])) for name in CLASSIFIERS}
    keeps_metric = math.fsum(errors[f"plain-{kind}"] - errors[kind] for kind in KINDS) > 0.0
    names: Sequence[str] = CLASSIFIERS
    if not keeps_metric:  # then both are the same
        names = [name for name in CLASSIFIERS if name not in KINDS]
        wrong = wrong | {"vote": wrong["plain-vote"]}
        errors["vote"] = float(np.mean(wrong["vote"]))
    table, n = np.array([wrong[name] for name in names]), len(wrong[BASELINE])
    chosen = int(_clearly_best(table, np.ones((1, n)))[0])
    samples = np.random.default_rng(0).multinomial(n, np.full(n, 1.0 / n), size=400)
    is_out = samples == 0
    gains = (wrong[BASELINE] - table)[_clearly_best(table, samples)]
    gain = float(np.sum(gains * is_out) / max(1, np.sum(is_out)))
    difference = wrong[BASELINE] - table[chosen]
    fewer, more = (
        (np.sum(np.maximum(d, 0.0)) + 1.0) / (n + 2.0) for d in (difference, -difference)
    )
    variance = (fewer + more - (fewer - more) ** 2) / (n + 2.0)
    if names[chosen] == BASELINE:  # whatever else might have been chosen
        gain = variance = 0.0
    margin = 1.96 * math.sqrt(variance * (1.0 + 1.0 / (n_folds - 1)))
    return HeldOut(n, n_fits, errors, names[chosen], keeps_metric, gain, margin, seconds)


def _clearly_best(wrong: FloatArray, weights: Any) -> IntArray:
    """For each row of weights of the points the best row of `wrong`, or 0 if that is not clear."""
    n = np.sum(weights, axis=1, keepdims=True)
    means, leads = weights @ wrong.T / n, wrong[0] - wrong
    best = np.argmin(means, axis=1)
    lead = means[:, :1] - means
    spread = np.sqrt(np.maximum(weights @ np.square(leads).T / n - np.square(lead), 0.0) / n)
    is_clear = (lead > np.maximum(CAUTION * spread, NEGLIGIBLE))[np.arange(len(best)), best]
    return np.where(is_clear, best, 0)
