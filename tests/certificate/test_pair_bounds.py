"""Evidence: every sum of a certificate allows for its rounding errors, and for hardly more.

What a machine has summed may be off by so many roundings: `examples/guide/certificate.md` counts
them. Here the sums are given, the true ones are the worst that they may stand for, in fractions or
balls, and each bound has to be on the right side of them. A bound that is far on that side is
wrong too.
"""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from flint import arb, ctx
from high_precision import BITS, exact, total
from instances import random_pairs

from seraph_cvx import MStepObjective, PairSet
from seraph_cvx.certificate import pair_bounds
from seraph_cvx.certificate.pair_bounds import (
    Gain,
    LabeledTerms,
    PairBounds,
    UnlabeledTerms,
    _penalty,
    _values,
    bound_pairs,
)
from seraph_cvx.engine.distances import Chunk
from seraph_cvx.model.label_bounds import LabelBounds, Thresholds
from seraph_cvx.proof.rounding import (
    ENTROPY_ROUNDINGS,
    FEW_ROUNDINGS,
    FUNCTION_ERROR,
    LARGEST_LOG,
    LARGEST_ODDS,
    LARGEST_SCORE,
    LOSS_ROUNDINGS,
    SMALLEST_LOSS,
    UNIT,
    MatrixError,
    at_most,
)

U = Fraction(UNIT)
LEAST = Fraction(1, 2**800)


def off(roundings):
    """By how much so many roundings change a number, at most, relative to it."""
    return roundings * U / (1 - roundings * U)


def assert_just_below(bound, worst, size, units=64):
    """Not above the worst that the true value may be, and by no more than a few units below it."""
    assert Fraction(bound) <= worst
    assert Fraction(bound) >= worst - units * U * size - LEAST


def assert_just_above(bound, worst, size, units=64):
    assert_just_below(-bound, -worst, size, units)


def of_all_sizes(rng, count, most=100.0):
    return (rng.uniform(1.0, 2.0, count) * 10.0 ** rng.uniform(-most, most, count)).tolist()


# What concavity adds


def sums_of_pairs(rng, spread):
    """Sums of x, -(1 - x) ln(1 - x) and -ln(1 - x), x up to 1: the first is the largest."""
    x = rng.uniform(1.0, 2.0) * 10.0 ** rng.uniform(-spread, spread)
    return [x, x * rng.uniform(0.1, 0.99), x * rng.uniform(1.0, 7.0)]


@pytest.mark.parametrize("chain", [1, 40, 5000])
@pytest.mark.parametrize("seed", range(4))
def test_a_gain_is_made_of_the_worst_sums(seed, chain):
    rng = np.random.default_rng([seed, chain])
    kinds = [sums_of_pairs(rng, 100.0 * (seed % 2)) for _ in range(1 + seed % 3)]
    gain = Gain.of(kinds, chain)
    x, rest, logs = (sum(Fraction(kind[part]) for kind in kinds) for part in range(3))
    of_sum, of_log = off(chain + FEW_ROUNDINGS), off(chain + ENTROPY_ROUNDINGS + FEW_ROUNDINGS)
    assert_just_below(gain.distance, x * (1 - of_sum), x)
    assert_just_above(gain.largest_distance, x * (1 + of_sum), x)
    assert_just_below(gain.curvature, x * (1 - of_sum) - rest * (1 + of_log), x + rest)
    assert_just_below(gain.logs, logs * (1 - of_log), logs)


@pytest.mark.parametrize("lie", [-1.0, 0.0, 1.0])
@pytest.mark.parametrize("step", [1.0 - 2.0**-40, 1.0 - 2.0**-13, 0.9, 0.5, 0.3, 1e-3, 1e-150])
def test_the_gain_at_a_step_is_that_of_the_guide(monkeypatch, step, lie):
    """For a logarithm that is as inaccurate as the guide allows, in either direction."""
    off_by = 1.0 + lie * FUNCTION_ERROR * UNIT
    wrong = SimpleNamespace(log=lambda x: math.log(x) * off_by)
    monkeypatch.setattr(pair_bounds, "math", wrong)
    rng = np.random.default_rng(3)
    for _ in range(12):
        x, rest, logs = sums_of_pairs(rng, 60.0)
        gain = Gain(x, x * (1.0 + 2.0**-30), x - rest, logs)
        with ctx.workprec(BITS):
            tau, odds = arb(step), arb(LARGEST_ODDS)
            left = 1 - tau
            first = -tau * tau.log() * arb(x)
            short = left * (arb(logs) - (1 + left * odds) * arb(gain.largest_distance))
            best = first + short.max(tau * left * arb(gain.curvature))
            found = gain.at(step)
            size = total(abs(arb(term)) for term in found)
            assert arb(found[0]) <= first * (1 + 6 * arb(UNIT))
            assert arb(found[0]) >= first * (1 - 32 * arb(UNIT))
            assert total(map(arb, found)) <= best + 8 * arb(UNIT) * size
            assert total(map(arb, found)) >= best - 32 * arb(UNIT) * size


def test_a_sum_that_rounding_makes_negative_counts_as_zero():
    found = Gain(-1.0, 1.0, -2.0, -3.0).at(0.5)
    assert math.fsum(found) == 0.0


def numbers_of_bounds(rng, sign=1.0, spread=100.0):
    """PairBounds of random numbers, each of any size."""
    tangent, value, kappa, at_zero = of_all_sizes(rng, 4, spread)
    one, labels = (Gain.of([sums_of_pairs(rng, spread)], 10) for _ in range(2))
    nothing = MatrixError(np.zeros((2, 1)), 1, 1, 1.0)
    given = LabelBounds(kappa, 0.0, 0.0, value, np.eye(1), nothing)
    return PairBounds(0.0, sign * tangent, one, labels, np.eye(1), nothing, given, at_zero)


@pytest.mark.parametrize("step", [1.0 - 2.0**-50, 0.75, 0.3, 1e-3, 1e-20])
@pytest.mark.parametrize("seed", range(6))
def test_values_at_the_end_of_a_step_are_below_the_chord_and_the_gain(seed, step):
    rng = np.random.default_rng([seed, 5])
    bounds = numbers_of_bounds(rng, (-1.0) ** seed, spread=100.0 if seed > 2 else 1.0)
    eta = of_all_sizes(rng, 1, 2.0)[0]
    tau, at_zero = Fraction(step), Fraction(bounds.penalties_at_zero)
    tangent, value = Fraction(bounds.tangent_value), Fraction(bounds.labels.value)
    terms = [tau * tangent, -(1 - tau) * at_zero]
    at_one = [*terms, -(1 - tau) * Fraction(eta) * Fraction(bounds.labels.total)]
    at_one += map(Fraction, bounds.toward_one.at(step))
    at_labels = [*terms, (1 - tau) * value, *map(Fraction, bounds.toward_labels.at(step))]
    for found, terms in (
        (bounds.value_toward_one(step, eta), at_one),
        (bounds.value_toward_labels(step), at_labels),
    ):
        assert_just_below(found, sum(terms), sum(map(abs, terms)))
    assert_just_below(bounds.value_at_labels, value - at_zero, value + at_zero)


# The scalars of a sweep


def m_step_of_numbers(eta, mu, trace_weight=0.0, manifold_term=None, pair_total=1.0):
    pairs = SimpleNamespace(n_labeled=3, n_unlabeled=5)
    return SimpleNamespace(
        threshold=eta,
        mu=mu,
        trace_weight=trace_weight,
        manifold_term=manifold_term,
        pairs=pairs,
        pair_total=pair_total,
    )


@pytest.mark.parametrize("n_unlabeled_sums", [0, 5, 6])
@pytest.mark.parametrize("chain", [8, 3000])
@pytest.mark.parametrize("seed", range(8))
def test_both_values_are_those_of_the_worst_sums(seed, chain, n_unlabeled_sums):
    """Sums of all sizes: each is the largest of them once, and decides."""
    rng = np.random.default_rng([seed, 6])
    eta, mu = of_all_sizes(rng, 2, 1.0)
    labeled = np.array(of_all_sizes(rng, 9, 3.0))
    swept = np.array(of_all_sizes(rng, n_unlabeled_sums, 3.0)) if n_unlabeled_sums else None
    least, most = sorted(of_all_sizes(rng, 2, 1.0))
    labels = SimpleNamespace(soft_least=least, soft_most=most)
    objective, L = m_step_of_numbers(eta, mu), np.zeros((2, 1))
    found = _values(objective, L, labeled, swept, labels, chain)

    of_sum = off(chain + FEW_ROUNDINGS)
    of_loss = off(chain + FEW_ROUNDINGS + LOSS_ROUNDINGS)
    of_entropy = off(chain + FEW_ROUNDINGS + ENTROPY_ROUNDINGS)
    h, m = Fraction(eta), Fraction(mu)
    loss, entropy, _, _, _, missing, excess, *_ = map(Fraction, labeled.tolist())
    primal = [loss * (1 + of_loss)]
    tangent = [entropy * (1 - of_entropy), h * excess * (1 - of_sum), -h * missing * (1 + of_sum)]
    to_one = [labeled[2:5].tolist()]
    to_labels = [[*labeled[6:]], [labeled[5], 0.0, 0.0]]
    if swept is not None:
        loss, entropy, r, *_ = map(Fraction, swept.tolist())
        primal.append(m * loss * (1 + of_loss))
        tangent += [m * entropy * (1 - of_entropy), m * h * r * (1 - of_sum)]
        to_one.append((mu * swept[2:5]).tolist())
        if n_unlabeled_sums == 5:
            to_labels.append(to_one[1])
        else:
            primal += [m * Fraction(swept[5]) * (1 + of_sum), -h * Fraction(least)]
            tangent.append(-h * Fraction(most))
    assert_just_above(found["primal_value"], sum(primal), sum(map(abs, primal)))
    assert_just_below(found["tangent_value"], sum(tangent), sum(map(abs, tangent)))
    assert found["toward_one"] == pytest.approx(Gain.of(to_one, chain), rel=1e-15)
    assert found["toward_labels"] == pytest.approx(Gain.of(to_labels, chain), rel=1e-15)


def test_pairs_beyond_the_largest_score_may_add_what_is_cut_off():
    """Where all sums are zero, that is all there is."""
    labels = SimpleNamespace(soft_least=0.0, soft_most=0.0)
    for eta, pair_total in ((1e-6, 1.0), (1e3, 8.0), (0.5, 300.0), (1.0, 0.25)):
        objective = m_step_of_numbers(eta, 0.0, pair_total=pair_total)
        found = _values(objective, np.zeros((2, 1)), np.zeros(9), None, labels, 8)
        least, most = SMALLEST_LOSS * pair_total, SMALLEST_LOSS * (pair_total + 1.0)
        assert least <= found["primal_value"] <= 16.0 * (1.0 + eta) * most


@pytest.mark.parametrize("shape", [(1, 1), (12, 10), (60, 2)])
@pytest.mark.parametrize("seed", range(3))
def test_the_linear_term_allows_for_any_order_of_summation(seed, shape):
    """Of few bits, so that nothing is rounded here, and large sizes beside the sum itself."""
    rng, m = np.random.default_rng(seed), shape[0]
    L = rng.integers(-3, 4, shape) * 2.0 ** rng.integers(-200, 200)
    F = rng.integers(-3, 4, (m, m)).astype(float)
    weight, term = float(rng.integers(1, 9)), F @ F.T
    with ctx.workprec(BITS):
        for trace_weight, manifold_term in ((weight, None), (0.0, term)):
            objective = m_step_of_numbers(1.0, 0.0, trace_weight, manifold_term)
            R = trace_weight * np.eye(m) + (0.0 if manifold_term is None else term)
            value, size = (
                (B.transpose() * exact(matrix) * B).trace()
                for B, matrix in ((exact(L), R), (exact(np.abs(L)), np.abs(R)))
            )
            bound = arb(at_most(*_penalty(objective, L)))
            assert bound >= value + (m + L.size) * arb(UNIT) * size
            assert bound <= value + (200 + 8 * (m + L.size)) * arb(UNIT) * size


# The terms of a pair


DISTANCES = [0.0, 1e-300, 1e-9, 0.3, 1.0, 2.0, 37.0, 80.0, 599.0, 650.0, 1e4]


def softplus(t):
    return t + (-t).exp().log1p() if t > 0 else t.exp().log1p()


def assert_near(found, true, roundings, least=0.0):
    """Within so many roundings, and a little more where a product is cut off."""
    assert abs(arb(float(found)) - true) <= roundings * arb(UNIT) * abs(true) + least


def entropy_terms(r):
    """-r ln r, -(1 - r) ln(1 - r), -ln r and -ln(1 - r), the last two cut off."""
    x, cut = arb(float(r)), arb(LARGEST_LOG)
    log = -x.log() if x > 0 else arb("inf")
    rest = -(-x).log1p() if x < 1 else arb("inf")
    parts = (x * log if x > 0 else arb(0)), ((1 - x) * rest if x < 1 else arb(0))
    return *parts, log.min(cut), rest.min(cut)


@pytest.mark.parametrize("eta", [1e-3, 1.0, 40.0, 700.0])
def test_the_terms_of_labeled_pairs(eta):
    """Losses at the far end of an interval of distances; all others of the very doubles r.

    The bounds on distances allow for the subtraction of eta, by a rounding of themselves.
    """
    thresholds = Thresholds.of(eta)
    lower = np.array(DISTANCES * 2)
    upper, n = lower * (1.0 + 2.0**-30) + 2.0**-40, len(DISTANCES)
    values, r = LabeledTerms(thresholds)(Chunk(slice(0, 2 * n), None, n), (lower, upper))
    losses, entropy, first, rest, rest_log, missing, excess, own_rest, own_log = values
    with ctx.workprec(BITS):
        for k in range(2 * n):
            assert 0.0 <= r[k] <= 1.0
            s_low = arb(float(lower[k])) * (1 + arb(UNIT)) - arb(eta)
            s_high = arb(float(upper[k])) * (1 - arb(UNIT)) - arb(eta)
            true = softplus(s_high) if k < n else softplus(-s_low.min(arb(LARGEST_SCORE)))
            moved = 2.0 * (8.0 * UNIT * eta + UNIT * float(lower[k]))
            few = LOSS_ROUNDINGS * arb(UNIT)
            assert arb(float(losses[k])) * (1 + few) >= true
            assert arb(float(losses[k])) <= true * (1 + few + 4 * moved) + (k < n) * moved
            assert_near(r[k], 1 / (1 + s_low.min(arb(LARGEST_SCORE)).exp()), 64, 4 * moved)
            part, other, log, other_log = entropy_terms(r[k])
            x, is_similar = arb(float(r[k])), k < n
            assert_near(entropy[k], part + other, ENTROPY_ROUNDINGS)
            assert first[k] == r[k]
            assert_near(rest[k], other, ENTROPY_ROUNDINGS)
            assert_near(rest_log[k], other_log, ENTROPY_ROUNDINGS)
            assert_near(missing[k], (1 - x) * is_similar, 2)
            assert_near(excess[k], x * (not is_similar), 2)
            assert_near(own_rest[k], part if is_similar else other, ENTROPY_ROUNDINGS)
            assert_near(own_log[k], log if is_similar else other_log, ENTROPY_ROUNDINGS)


@pytest.mark.parametrize("eta", [1e-3, 1.0, 700.0])
def test_the_terms_of_unlabeled_pairs_are_those_of_dissimilar_ones(eta):
    """And, with soft labels, one more."""
    lower, n = np.array(DISTANCES), len(DISTANCES)
    upper, q = lower - 0.5, np.linspace(0.0, 1.0, n)
    batch = Chunk(slice(0, n), None, 0)
    enclosure = SimpleNamespace(most=lambda batch, previous: q * previous)
    with_labels = UnlabeledTerms(Thresholds.of(eta), enclosure)
    (*five, longest), r = with_labels(batch, (lower, upper.copy()), 2.0)
    np.testing.assert_array_equal(longest, np.maximum(upper, 0.0) * (2.0 * q))
    both = LabeledTerms(Thresholds.of(eta))(batch, (lower, lower))
    np.testing.assert_array_equal(both.weights, r)
    plain, _ = UnlabeledTerms(Thresholds.of(eta), None)(batch, lower)
    for mine, same, its in zip(five, plain, list(both.values)[:5], strict=True):
        np.testing.assert_array_equal(mine, same)
        np.testing.assert_allclose(mine, its, rtol=4.0 * UNIT * ENTROPY_ROUNDINGS)


# All of them


@pytest.mark.parametrize("rank", [1, 60, 400])
def test_distances_allow_for_as_many_additions_as_the_factor_has_columns(rank):
    """One similar pair, so far apart that f is its distance, which is exact: a sum of ones."""
    d = float(rank)
    pairs = PairSet.from_constraints([[0.0], [16.0]], [(0, 1)], [])
    objective = MStepObjective(pairs, trace_weight=0.0, threshold=1.0)
    bounds = bound_pairs(objective, np.ones((1, rank)))
    off_by = Fraction(bounds.primal_value) - (256 * Fraction(d) - 1)
    assert rank * U * 256 * Fraction(d) <= off_by <= 4 * (rank + 100) * U * 256 * Fraction(d)


def test_sums_that_overflow_are_no_bounds():
    """Of distances, of the factor itself, or of the labels alone."""
    pairs = random_pairs(0, n=6, m=2, n_labeled=4)
    objective = MStepObjective(pairs, unlabeled_weight=0.5)
    huge = PairSet.from_constraints(pairs.points * 1e100, pairs.similar, pairs.dissimilar)
    with np.errstate(all="ignore"):
        assert bound_pairs(objective, np.eye(2)) is not None
        assert bound_pairs(objective, 1e160 * np.eye(2)) is None
        assert bound_pairs(MStepObjective(huge, unlabeled_weight=0.5), 1e60 * np.eye(2)) is None
        object.__setattr__(objective, "label_bounds", None)
        assert bound_pairs(objective, np.eye(2)) is None
