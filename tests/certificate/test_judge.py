"""Evidence: certificates are true, and as sharp as balls can tell, by the judge.

It is the checker of files, which is held against penalties and bad input in
`tests/proof/test_m_step_checker.py`. Here it is held against the paper and closed forms, and
certificates against it, on ordinary and singular data; on extreme data they are in
`test_certificate_stress.py`.
"""

from __future__ import annotations

import flint
import numpy as np
import pytest
from flint import arb
from high_precision import BITS, random_factors, solve_quietly
from instances import SETTINGS, paper_m_step, random_objective, random_psd
from judge import Judge, ball

from seraph_cvx import MStepObjective, PairSet, certify

# The judge, judged


@pytest.mark.parametrize("q", ["start", "random", "streamed"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_the_judge_agrees_with_the_paper_and_its_dual_is_below(setting, q):
    objective = random_objective(0, setting, q=q)
    judge = Judge(objective)
    values = []
    for L in np.random.default_rng(0).normal(size=(4, 4, 2)):
        value, _ = paper_m_step(objective, L @ L.T)
        values.append(judge.value(L))
        assert float(values[-1]) == pytest.approx(value, rel=1e-13)
    answer = solve_quietly(objective, tol=1e-9, max_iter=2000).certificate.factor
    values.append(judge.value(answer))
    bound = judge.lower_bound(answer)
    assert all(bound <= value for value in values)
    assert values[-1] - bound <= 1e-6 * values[-1] or setting in ("none", "post")


# Certificates, judged


def assert_true(objective, A, scale=1.0):
    """The certificate at A, true there and at random points, and the judge's own two bounds."""
    judge, certificate = Judge(objective), certify(objective, A)
    own = judge.value(certificate.factor)
    assert own <= certificate.primal_value
    assert own >= certificate.primal_value - 1e-10 * max(1.0, abs(certificate.primal_value))
    m = objective.pairs.n_features
    for L in [certificate.factor, *random_factors(np.random.default_rng(7), m, scale)]:
        assert judge.compare(L, certificate.dual_value) >= 0
    return certificate, judge, own


@pytest.mark.parametrize("q", ["start", "random", "streamed"])
@pytest.mark.parametrize("setting", ["proj", "hyper", "other"])
def test_certificates_are_as_sharp_as_bounds_in_balls_near_and_far(setting, q):
    objective = random_objective(0, setting, q=q, n=9, m=3)
    answer = solve_quietly(objective, tol=1e-9, max_iter=2000).metric
    rng = np.random.default_rng(0)
    for A in [answer, *(random_psd(rng, 3, size=10.0**k) for k in (-3, 0, 1, 3))]:
        certificate, judge, own = assert_true(objective, A)
        gap = float(own - judge.lower_bound(certificate.factor))
        slack = 1e-9 * max(1.0, float(own))
        assert certificate.duality_gap <= 2.0 * gap + slack


def test_closed_form_with_a_soft_label_of_a_previous_metric():
    """Pairs at distance 1, dissimilar and unlabeled, and a similar one at 0.

    The derivative is zero where (1 + mu)*sigma(-s) = mu*q + lambda.
    """
    pairs = PairSet.from_constraints([[0.0], [1.0], [1.0]], [(1, 2)], [(0, 1)])
    objective = MStepObjective(
        pairs,
        previous_metric=[[0.75]],
        sharpness=2.0,
        unlabeled_weight=0.5,
        trace_weight=0.25,
    )
    with flint.ctx.workprec(BITS):
        q = 1 / (1 + (arb(2) * (arb(0.75) - 1)).exp())
        r = (q / 2 + arb(0.25)) / arb(1.5)
        entropy = -r * r.log() - (1 - r) * (1 - r).log()
        optimum = arb(1.5) * entropy + arb(0.25) + (1 + arb(-1).exp()).log()
        a = float(1 + (1 / r - 1).log())
        certificate, judge = certify(objective, [[a]]), Judge(objective)
        L = np.array([[a**0.5]])
        assert certificate.dual_value <= optimum <= certificate.primal_value
        assert judge.lower_bound(L) <= optimum <= judge.value(L)
    assert certificate.duality_gap <= 1e-13


def test_the_certificate_of_an_optimum_that_is_not_attained():
    """inf f is the similar pair's term alone: f comes near it as the metric grows."""
    pairs = PairSet.from_constraints([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]], [(0, 1)], [(1, 2)])
    objective = MStepObjective(pairs, unlabeled_weight=0.0, trace_weight=0.0)
    certificate, _, _ = assert_true(objective, np.diag([40.0, 0.0]))
    with flint.ctx.workprec(256):
        least = (1 + arb(-1).exp()).log()  # of the similar pair, at distance 0
        assert ball(certificate.dual_value) <= least <= ball(certificate.primal_value)
    assert certificate.duality_gap <= 1e-13
