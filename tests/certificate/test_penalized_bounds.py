"""Evidence: certificates with penalties are true on badly scaled data, whatever the metric.

The lower bound at any metric is compared with an upper bound in ball arithmetic, and the other way
round: no interval may lie above another one. Whether a gap closes is another matter.
"""

import warnings

import numpy as np
import pytest
from instances import random_psd
from penalized import BLOCKS

from seraph_cvx import MStepObjective, PairSet, certify, solve_m_step
from seraph_cvx.penalties import LogDet, Ridge, UpperBound

NAMES = [name for name in BLOCKS if name not in ("Trace", "Manifold")]


def badly_scaled(name, seed):
    """Features over six orders of magnitude, far from zero, now and then a value far out."""
    rng = np.random.default_rng([seed, NAMES.index(name), 77])
    n, m = int(rng.integers(4, 10)), int(rng.integers(1, 5))
    scale = 10.0 ** rng.uniform(-3, 3, m)
    X = rng.standard_normal((n, m)) * scale
    if rng.random() < 0.3:
        X = X + 10.0 ** rng.uniform(0, 6) * rng.standard_normal(m)
    if rng.random() < 0.15:
        X[rng.integers(n), rng.integers(m)] *= 1e6
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pairs = PairSet.from_labels(X, np.r_[0, 0, 1, rng.integers(-1, 2, n - 3)])
    given = {
        "trace_weight": float(rng.choice([0.0, 1e-3, 1.0, 100.0])),
        "unlabeled_weight": float(rng.choice([0.0, 0.1, 1.0])),
    }
    prior = (random_psd(rng, m, rank=m) + 0.2 * np.eye(m)) / np.outer(scale, scale)
    weight = 10.0 ** rng.uniform(-2, 2)
    own = {
        "Ridge": lambda: Ridge(weight * float(np.min(scale)) ** 4, prior),
        "LogDet": lambda: LogDet(weight, prior),
        "UpperBound": lambda: UpperBound(weight * prior),
    }
    block = own[name]() if name in own else BLOCKS[name](MStepObjective(pairs, **given), rng)[0]
    return MStepObjective(pairs, **given, penalties=[block]), scale, rng


def check_bounds(name, seed):
    pytest.importorskip("flint", reason="a proof in ball arithmetic needs python-flint")
    objective, scale, rng = badly_scaled(name, seed)
    if not objective.attains_optimum:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not every gap closes
        metric = solve_m_step(objective, tol=1e-6, max_iter=200).metric
    near = certify(objective, metric)
    uppers = [near.primal_value]
    try:
        proof = certify(objective, metric, rigorous=True)
    except ArithmeticError:  # the metric violates a constraint, by rounding
        proof = near
    uppers.append(proof.primal_value)
    assert max(near.dual_value, proof.dual_value) <= min(uppers)
    for _ in range(5):
        A = metric + 1e-9 * np.diag(1.0 / scale**2)
        A = A * 10.0 ** rng.uniform(-2, 2)
        far = certify(objective, A)
        assert far.dual_value <= min(uppers)
        assert near.dual_value <= far.primal_value


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name == "at most" else name for name in NAMES],
)
def test_no_lower_bound_is_above_an_upper_bound(name):
    check_bounds(name, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_no_lower_bound_is_above_an_upper_bound_many_times(name):
    for seed in range(1, 13):
        check_bounds(name, seed)
