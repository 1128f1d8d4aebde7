"""The table of a search, and the candidate that is chosen from it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import rankdata

from .search_fits import SearchFit

ROUNDING = 1e-12
"""Mean scores that differ by no more are equal."""


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
    table: dict[str, Any], default: int | None = None, least_lead: float = 0.0
) -> int:
    """Choose the candidate of the best mean score, or the default unless it leads by enough.

    argmax of (mean score, trace weight): of equally good ones the metric of lower rank. The default
    is kept unless that one's mean score is better by more than `least_lead`.

    Examples
    --------
    >>> table = {"mean_test_score": np.array([0.5, 0.75]), "param_trace_weight": [1.0, 9.0]}
    >>> table["rank_test_score"] = [2, 1]
    >>> [best_candidate(table, 0, least_lead) for least_lead in (0.1, 0.3)]
    [1, 0]
    """
    tied = np.flatnonzero(np.asarray(table["rank_test_score"]) == 1)
    best = int(tied[np.argmax(np.asarray(table["param_trace_weight"])[tied])])
    if default is None:
        return best
    lead = table["mean_test_score"][best] - table["mean_test_score"][default]
    return default if lead <= max(least_lead, ROUNDING) else best  # NaN: it was not fitted
