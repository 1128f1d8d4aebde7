"""Evidence: what a sample of the pairs is said to be worth, against its definition pair by pair."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from instances import explicit_soft_labels, random_objective, random_psd

from seraph_cvx import MStepObjective, PairSet, certify, paper
from seraph_cvx.certificate.sampling import certify_in_full
from seraph_cvx.engine.passes import OutOfTime


def sampled(k, q):
    objective = random_objective(1, "other", q=q, n=12, m=3)
    A = random_psd(np.random.default_rng(1), 3)
    return replace(objective, pairs=objective.pairs.sampled(k, random_state=0)), A


def terms(objective, A):
    """The term log(1 + e^{-s}) + q s of each drawn pair, without its weight."""
    pairs = objective.pairs
    everything = {tuple(row): k for k, row in enumerate(pairs.unlabeled.tolist())}
    q = explicit_soft_labels(replace(objective, pairs=pairs.whole))
    q = q[[everything[tuple(row)] for row in pairs.drawn.tolist()]]
    s = paper.squared_distances(pairs.points, pairs.drawn, A) - objective.threshold
    return np.logaddexp(0.0, -s) + q * s


@pytest.mark.parametrize("q", ["start", "streamed"])
@pytest.mark.parametrize("k", [2, 7, 40])
def test_the_report_is_that_of_its_definition(k, q):
    objective, A = sampled(k, q)
    report = certify_in_full(objective, A)
    whole = replace(objective, pairs=objective.pairs.whole)
    t, count = terms(objective, A), objective.pairs.n_unlabeled
    rest = math.sqrt(1.0 - k / count)  # of the pairs, none is drawn twice
    error = objective.mu * count * np.std(t) * rest / math.sqrt(k)
    assert (report.n_drawn, report.n_unlabeled) == (k, count)
    assert report.standard_error == pytest.approx(error, rel=1e-9)
    assert report.sampled_value == pytest.approx(objective.value(A), rel=1e-12)
    assert report.certificate == certify(whole, A)
    off = objective.value(A) - whole.value(A)
    assert report.sampling_error == pytest.approx(off, rel=1e-9, abs=1e-9)


def test_without_unlabeled_pairs_there_is_nothing_to_estimate():
    pairs = PairSet.from_constraints([[0.0], [1.0], [3.0]], [(0, 1)], [(0, 2), (1, 2)])
    report = certify_in_full(MStepObjective(pairs), np.eye(1))
    assert (report.n_drawn, report.n_unlabeled, report.standard_error) == (0, 0, 0.0)


def test_a_gap_that_is_enough_ends_the_search_and_a_limit_is_kept():
    objective, A = sampled(40, "start")
    best = certify_in_full(objective, A).certificate
    quick = certify_in_full(objective, A, enough=1e6).certificate
    whole = replace(objective, pairs=objective.pairs.whole)
    assert quick == certify(whole, A, enough=1e6)
    assert quick.dual_value <= best.dual_value
    with pytest.raises(OutOfTime):
        certify_in_full(objective, A, time_limit=0.0)
