"""Evidence: what ball arithmetic calls PSD is so, by rational arithmetic; it rounds outwards."""

from __future__ import annotations

import importlib
import math
import sys

import numpy as np
import pytest

flint = pytest.importorskip("flint")

from seraph_cvx.numerics import ball_arithmetic  # noqa: E402
from seraph_cvx.numerics.ball_arithmetic import (  # noqa: E402
    ball_matrix,
    entropy_from_below,
    exact_coordinates,
    is_proven_psd,
    pair_matrix,
    posterior,
    rounded_down,
    rounded_up,
    surprise,
)

arb, arb_mat, ctx, fmpq, fmpq_mat = flint.arb, flint.arb_mat, flint.ctx, flint.fmpq, flint.fmpq_mat


def rational(values):
    return fmpq_mat([[fmpq(*x.as_integer_ratio()) for x in row] for row in values.tolist()])


def barely_indefinite(rng, m):
    """FF' of rank m - 1, less 2^-140 of the identity: no PSD matrix, by the sign of a minor."""
    F = rational(rng.normal(size=(m, m - 1)))
    shift = fmpq_mat(m, m, [fmpq(int(i == j), 2**140) for i in range(m) for j in range(m)])
    S = F * F.transpose() - shift
    assert S.det() < 0
    return S


def count_claims(how_many=60):
    """How many of the barely indefinite matrices are called PSD at 128 bits."""
    rng = np.random.default_rng(0)
    with ctx.workprec(128):
        return sum(
            is_proven_psd(arb_mat(barely_indefinite(rng, m)))
            for m in (2, 3, 5)
            for _ in range(how_many)
        )


def test_proof_no_indefinite_matrix_is_ever_called_psd():
    assert count_claims() == 0


def test_proof_the_test_above_sees_a_pivot_whose_rounding_is_dropped(monkeypatch):
    monkeypatch.setattr(ball_arithmetic, "certainly_positive", lambda pivot: pivot.mid() > 0)
    assert count_claims() > 0


def test_proof_the_same_matrices_shifted_upwards_are_proven_at_a_higher_precision():
    """It does say yes: FF' + 2^-140 is proven PSD with 400 bits, not with 128."""
    rng = np.random.default_rng(1)
    for m in (2, 3, 5):
        S = barely_indefinite(rng, m)
        S += fmpq_mat(m, m, [fmpq(2 * int(i == j), 2**140) for i in range(m) for j in range(m)])
        with ctx.workprec(400):
            assert is_proven_psd(arb_mat(S))
        with ctx.workprec(128):
            assert not is_proven_psd(arb_mat(S))


@pytest.mark.parametrize("size", [1, 2, 7, 40])
@pytest.mark.parametrize("spread", [1.0, 1e150])
def test_proof_positive_definite_matrices_of_any_scale_are_proven(size, spread):
    rng = np.random.default_rng(size)
    scale = spread ** rng.uniform(-1.0, 1.0, size=size)
    F = scale[:, None] * rng.normal(size=(size, size + 3))
    with ctx.workprec(128):
        balls = ball_matrix(F)
        S = balls * balls.transpose()
        assert is_proven_psd(S)
        negative = arb_mat(S)
        negative[size - 1, size - 1] = -negative[size - 1, size - 1]
        assert not is_proven_psd(negative)


def test_proof_is_withheld_where_a_leading_block_cannot_be_told_from_a_singular_one():
    """Its pivots in order are positive for certain, but not with the pivots of the solver."""
    P = [[3.50, -0.60, -2.15], [-0.60, 0.394, 1.18], [-2.15, 1.18, 5.20]]
    with ctx.workprec(128):
        block = arb_mat([[arb(x, 0.05) for x in row] for row in P])
        assert ball_arithmetic._is_positive_definite(block)
        S = arb_mat(6, 6)
        for i, j in np.ndindex(3, 3):
            S[i, j], S[i + 3, j + 3] = block[i, j], arb(int(i == j))
        with pytest.raises(ZeroDivisionError):
            block.solve(arb_mat(3, 3))
        assert not ball_arithmetic._is_positive_definite(S)


def test_proof_zero_rows_are_left_out_only_if_they_are_exactly_zero():
    assert is_proven_psd(arb_mat(2, 2))
    assert is_proven_psd(arb_mat([[0, 0], [0, 1]]))
    assert not is_proven_psd(arb_mat([[arb(0, 1e-300), 0], [0, 1]]))
    assert not is_proven_psd(arb_mat([[0, 1e-300], [1e-300, 1]]))
    assert not is_proven_psd(arb_mat([[arb("nan")]]))


def test_proof_a_sum_over_pairs_contains_the_rational_one():
    rng = np.random.default_rng(2)
    X, pairs, w = rng.normal(size=(5, 3)), np.array([[0, 1], [1, 4], [0, 3]]), rng.normal(size=3)
    V = rational(X[pairs[:, 0]]) - rational(X[pairs[:, 1]])
    exact = V.transpose() * rational(np.diag(w)) * V
    for bits in (53, 256):
        with ctx.workprec(bits):
            found = pair_matrix(ball_matrix(X), pairs, [arb(x) for x in w.tolist()])
            assert found.contains(exact)


@pytest.mark.parametrize("s", [-2e4, -800.0, -1.5, -1e-9, 0.0, 0.3, 40.0, 2e4])
def test_formulas_agree_functions_of_the_score_at_two_precisions(s):
    """Against log(1 + e^s) - (1 - q) s and its like, with 20,000 digits, where nothing cancels."""
    q = arb(0.3)
    with ctx.workprec(128):
        found = [surprise(arb(s), q, 1 - q), *posterior(arb(s))]
        found.append(entropy_from_below(*found[1:]))
    with ctx.workdps(20_000):
        e = arb(s).exp()
        p = e / (1 + e)
        exact = [(1 + e).log() - (1 - q) * s, 1 - p, p]
        exact.append(-p * p.log() - (1 - p) * (1 - p).log())
        for ours, theirs in zip(found, exact, strict=True):
            assert ours.overlaps(theirs)
            assert ours.rad() <= 1e-36 * max(1.0, abs(s))


def test_rounding_goes_outwards_to_the_nearest_double():
    rng = np.random.default_rng(3)
    numbers = (rng.normal(size=200) * 10.0 ** rng.uniform(-300, 300, size=200)).tolist()
    for x in [*numbers, 0.0, 5e-324, 1.7976931348623157e308]:
        assert rounded_up(arb(x)) == rounded_down(arb(x)) == x
        with ctx.workprec(2000):
            above, below = arb(x) + arb("1e-400"), arb(x) - arb("1e-400")
            assert rounded_up(above) == math.nextafter(x, math.inf)
            assert rounded_down(below) == math.nextafter(x, -math.inf)
    assert rounded_up(arb("nan")) == rounded_up(arb("1e400")) == math.inf
    assert rounded_down(arb("-1e400")) == -math.inf
    assert math.copysign(1.0, rounded_down(arb(0))) == 1.0


def check_span(points, pairs):
    """Points of one group, and no others, differ by a vector of the span; and Z has its rank."""
    Z, group = exact_coordinates(points, pairs)
    X = rational(points).table()
    rows = [[a - b for a, b in zip(X[i], X[j], strict=True)] for i, j in pairs.tolist()]
    rank = fmpq_mat(rows).rank()
    assert Z.shape == (len(points), rank)
    for i in range(len(points)):
        for j in range(i):
            v = [a - b for a, b in zip(X[i], X[j], strict=True)]
            assert (fmpq_mat([*rows, v]).rank() == rank) == (group[i] == group[j])
    return Z, group


def grid(rng):
    return rng.integers(0, 3, size=(12, 4)).astype(float)


def generic(rng):
    return rng.normal(size=(9, 5))


def more_features_than_points(rng):
    return rng.normal(size=(6, 11))


def duplicates_of_few(rng):
    return np.repeat(rng.normal(size=(4, 11)), 2, axis=0)


@pytest.mark.parametrize("n_pairs", [1, 2, 4])
@pytest.mark.parametrize("kind", [grid, generic, more_features_than_points, duplicates_of_few])
def test_exact_coordinates_are_those_of_the_span(kind, n_pairs):
    rng = np.random.default_rng(n_pairs)
    points = kind(rng)
    pairs = np.array([rng.choice(len(points), 2, replace=False) for _ in range(n_pairs)])
    Z, group = check_span(points, pairs)
    live = [(i, j) for i in range(len(points)) for j in range(i) if group[i] == group[j]]
    weights = [fmpq(int(w)) for w in rng.integers(-3, 4, size=len(live))]
    inner, outer = (_form(rational(P), live, weights) for P in (Z, points))
    assert inner.rank() == outer.rank()


def _form(X, pairs, weights):
    rows = X.table()
    V = fmpq_mat([[a - b for a, b in zip(rows[i], rows[j], strict=True)] for i, j in pairs])
    weighted = [[w * v for v in row] for w, row in zip(weights, V.table(), strict=True)]
    return V.transpose() * fmpq_mat(weighted)


def test_exact_coordinates_where_no_pair_spans_anything():
    points = np.array([[0.1, 1.0], [0.1, 1.0], [0.2, 1.0]])
    Z, group = exact_coordinates(points, np.empty((0, 2), dtype=np.int64))
    assert Z.shape == (3, 0)
    assert group[0] == group[1] != group[2]


def test_failure_path_without_flint_the_cure_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "flint", None)
    for name in ("numerics.ball_arithmetic", "certificate.proof"):
        monkeypatch.delitem(sys.modules, f"seraph_cvx.{name}", raising=False)
    with pytest.raises(ImportError, match=r'pip install "seraph-cvx\[rigorous\]"'):
        importlib.import_module("seraph_cvx.certificate.proof")
