"""Evidence: with penalties, too, each allowance for rounding decides somewhere.

The multipliers Z of the penalties are summed, transformed and taken off a matrix; here they cancel.
What is claimed of F is judged by balls, which share no code with the package.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from flint import ctx
from high_precision import BITS, exact, is_positive_definite, solve_quietly
from instances import random_objective, random_psd
from judge import Judge
from penalized import BLOCKS, random_feasible, random_penalized

from seraph_cvx import MStepObjective, PairSet, certify
from seraph_cvx.certificate import Certificate
from seraph_cvx.certificate.pair_bounds import Gain, PairBounds
from seraph_cvx.certificate.penalized import (
    _error,
    _is_feasible,
    certify_penalized,
    with_multipliers,
)
from seraph_cvx.penalties import (
    Diagonal,
    LogDet,
    Penalty,
    Ridge,
    check_penalty,
)
from seraph_cvx.penalties.penalty import Constraint, Multiplier
from seraph_cvx.proof.rounding import UNIT, MatrixError

# The matrix of a dual point


def of_pairs(S, tangent):
    """PairBounds of a matrix without errors."""
    nothing, gain = MatrixError(np.zeros((2, len(S))), 1, 1, 0.0), Gain(0.0, 0.0, 0.0, 0.0)
    return PairBounds(0.0, tangent, gain, gain, S, nothing, None)


def cancelling(seed):
    """Multipliers whose sum is far smaller than they are, and a T that makes it smaller still."""
    rng = np.random.default_rng([seed, 9])
    m = int(rng.integers(1, 5))
    scale = 10.0 ** rng.uniform(-60, 60)
    large, small = (random_psd(rng, m, rank=m) * scale * 10.0**k for k in (rng.uniform(0, 14), 0))
    u = np.linalg.eigh(small)[1][:, -1]
    small -= (u @ small @ u) * (1.0 - 1e-9) * np.outer(u, u)
    matrices = [large, (small + small.T) / 2.0, -large][: 1 + seed % 3]
    slacks = [
        1e-13 * np.abs(Z) if seed // 3 % 2 and k != 1 else None for k, Z in enumerate(matrices)
    ]
    conjugates = (10.0 ** rng.uniform(-3, 3, len(matrices))).tolist()
    T = (np.outer(u, rng.normal(size=m)) + 1e-6 * rng.normal(size=(m, m))) / math.sqrt(scale)
    triples = zip(matrices, conjugates, slacks, strict=True)
    return T, [Multiplier(*triple) for triple in triples], rng


@pytest.mark.parametrize("seed", range(30))
def test_multipliers_that_cancel_are_taken_off_with_their_errors(seed):
    """For every Z within the slack of what each multiplier is; T'ZT is off in either direction."""
    T, multipliers, rng = cancelling(seed)
    m = len(T)
    S = random_psd(rng, m, rank=m)
    shifted = with_multipliers(of_pairs(S, 1.0), SimpleNamespace(basis=T), multipliers)
    D = 10.0 ** rng.uniform(-3, 3, m)
    t = shifted.dual_error.relative_to(D)
    signs = np.sign(rng.normal(size=(m, m)))
    signs = np.triu(signs) + np.triu(signs, 1).T
    with ctx.workprec(BITS):
        plain = sum((exact(one.matrix) for one in multipliers), exact(np.zeros((m, m))))
        slack = sum((one.slack for one in multipliers if one.slack is not None), np.zeros((m, m)))
        for sign in (1.0, -1.0):
            Z = plain + exact(sign * signs * slack)
            off = exact(T).transpose() * Z * exact(T) - (exact(S) - exact(shifted.dual_matrix))
            rounding = exact(2.0 * UNIT * np.diag(m * np.diag(S)))  # of the subtraction itself
            assert is_positive_definite(exact(t * np.diag(D)) + rounding + off * sign)
    sizes = sum(np.abs(one.matrix) for one in multipliers)
    size, of_slack = (
        float(np.sum(np.diag(np.abs(T).T @ B @ np.abs(T)) / D)) for B in (sizes, slack)
    )
    assert t <= m * m * ((4 * m + 80) * UNIT * size + 4.0 * of_slack)
    value = 1 - sum(Fraction(one.conjugate) for one in multipliers)
    above = Fraction(shifted.tangent_value)
    size = 1 + sum(Fraction(one.conjugate) for one in multipliers)
    assert value - 64 * Fraction(UNIT) * size <= above <= value


def a_dual_point(matrix, errors):
    """R + N - S = `matrix`, of which each part has its own error."""
    R = np.diag(np.diag(matrix))
    N, S = R / 2.0 + np.triu(matrix, 1) + np.triu(matrix, 1).T, R / 2.0
    of_R, of_N, of_S = (lambda D, e=e: e for e in errors)
    coordinates = SimpleNamespace(regularizer=R, regularizer_error=of_R)
    labels = SimpleNamespace(matrix=N, error=SimpleNamespace(relative_to=of_N))
    bounds = replace(of_pairs(S, 0.0), labels=labels, dual_error=SimpleNamespace(relative_to=of_S))
    return coordinates, bounds


@pytest.mark.parametrize("errors", [(0.125, 0.0, 0.0), (0.0, 0.125, 0.0), (0.0, 0.0, 0.125)])
@pytest.mark.parametrize("scale", [2.0**-400, 1.0, 2.0**400])
def test_a_dual_point_is_feasible_only_with_the_errors_of_all_parts(errors, scale):
    """The smallest eigenvalue is the share 1 - c of the diagonal, on either side of the errors."""
    errors = np.array(errors) + 2.0**-10
    unit = np.array([1.0, 2.0**20])
    for share, is_feasible in ((0.5, False), (0.99, False), (1.01, True), (2.0, True)):
        c = 1.0 - share * float(np.sum(errors))
        matrix = np.array([[1.0, c], [c, 1.0]]) * np.outer(unit, unit) * scale
        assert _is_feasible(*a_dual_point(matrix, errors)) == is_feasible
    coordinates, bounds = a_dual_point(np.eye(2), errors)
    assert _error(coordinates, bounds, np.ones(2)) == float(np.sum(errors))


# What is claimed of F


def trials(objective, rng):
    """Factors, of metrics that satisfy the constraints."""
    return [np.linalg.cholesky(random_feasible(objective, rng) + 0.0) for _ in range(3)]


@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_the_bounds_on_a_penalized_m_step_are_true_and_near_each_other(name, seed):
    """With multipliers of the gradient, of a solver, and with random ones, which are no good."""
    objective = random_penalized(name, seed)[0]
    judge, m = Judge(objective), objective.pairs.n_features
    rng = np.random.default_rng([seed, 11])
    answer = solve_quietly(objective, tol=1e-8, max_iter=500)
    assert answer.certificate.relative_gap < 1e-6
    near = answer.certificate.factor
    least = float(judge.value(near).lower())
    found = [answer.certificate]
    for L in [near, *trials(objective, rng)]:
        Z = random_psd(rng, m) - random_psd(rng, m)
        guesses = (None, [Z], [np.zeros((m, m))], [np.full((m, m), np.nan)])
        found += [certify_penalized(objective, L, guesses=guess) for guess in guesses]
    for certificate in found:
        value = judge.value(certificate.factor)
        assert value <= certificate.primal_value
        slack = 1e-9 * max(1.0, abs(certificate.primal_value))
        assert not value < certificate.primal_value - slack
        assert certificate.dual_value <= least
    assert found[1].relative_gap < 1e-5
    assert certify(objective, near @ near.T).relative_gap < 1e-5
    first = certify_penalized(objective, near, enough=10.0)
    assert first.dual_value <= found[1].dual_value


class OwnTrace(Penalty):
    """tr(A): its conjugate is finite at the identity alone, not at zero."""

    is_smooth = True

    def value(self, A):
        return self.weight * float(np.trace(A))

    def subgradient(self, A):
        return self.weight * np.eye(len(A))

    def conjugate(self, Z):
        return 0.0 if np.array_equal(Z, self.weight * np.eye(len(Z))) else math.inf


def test_a_penalty_without_a_conjugate_at_zero_has_the_bound_of_the_gradient_alone():
    """The M-step is that of a trace weight that is larger by the weight of the block."""
    plain = random_objective(0, "proj", n=10, m=2, trace_weight=0.1)
    objective = replace(plain, trace_weight=0.05, penalties=[OwnTrace().with_weight(0.05)])
    least = solve_quietly(plain, tol=1e-9).certificate.primal_value
    verdicts = set()
    for size in (0.0, 0.1, 1.0, 9.0):
        A = size**2 * np.eye(2)
        is_feasible = bool(np.linalg.eigvalsh(plain.gradient(A))[0] > 0.0)
        found = certify_penalized(objective, size * np.eye(2))
        assert found.primal_value == pytest.approx(plain.value(A), rel=1e-9)
        assert found.dual_point == ("gradient" if is_feasible else "")
        assert found.dual_value <= least
        assert math.isfinite(found.dual_value) == is_feasible
        verdicts.add(is_feasible)
    assert verdicts == {True, False}


class Bumpy(OwnTrace):
    """-tr(A^2) / 2, which is not convex: its conjugate is infinite, not what it says."""

    def value(self, A):
        return -0.5 * self.weight * float(np.sum(A * A))

    def subgradient(self, A):
        return -self.weight * A

    def conjugate(self, Z):
        return -0.5 * float(np.sum(Z * Z)) / self.weight - 1e3


def test_failure_path_bounds_that_cross_blame_the_penalty_that_is_not_convex():
    objective = random_objective(0, "proj", n=10, m=2).with_penalties([Bumpy(), Ridge(1e-3)])
    with pytest.raises(ArithmeticError, match="is above the upper bound") as caught:
        certify_penalized(objective, np.eye(2))
    assert "Bumpy" in str(caught.value)
    assert "is not convex, or its value, subgradient and conjugate" in str(caught.value)
    assert "check_penalty" in str(caught.value)
    assert "defect" not in str(caught.value)
    assert "Ridge" not in str(caught.value)
    assert not check_penalty(Bumpy(), 2).holds
    with pytest.raises(ArithmeticError, match="This is a defect of seraph_cvx"):
        Certificate(1.0, 2.0, "").checked()


def test_where_f_or_a_penalty_overflows_nothing_is_claimed():
    pairs = PairSet.from_constraints([[0.0], [1e3], [2.0]], [(0, 2)], [(0, 1)])
    objective = MStepObjective(pairs, penalties=[Ridge(1.0)])
    found = certify_penalized(objective, np.array([[1e160]]))
    assert (found.primal_value, found.dual_value) == (math.inf, -math.inf)
    singular = MStepObjective(pairs, penalties=[LogDet(1.0)])
    found = certify_penalized(singular, np.zeros((1, 1)))
    assert found.primal_value == math.inf
    assert found.dual_value <= certify_penalized(singular, np.ones((1, 1))).primal_value


# The choice of multipliers


class Near(Constraint):
    """v'Av <= 1/2 for v = (1, -1)."""

    def _contains(self, A):
        return A[0, 0] + A[1, 1] - A[0, 1] - A[1, 0] <= 0.5

    def _is_proven_inside(self, L):
        return self._contains(L @ L.T)

    def multiplier(self, Z):
        return Multiplier(np.zeros_like(Z), 0.0)

    def feasible_factor(self, L):
        distance = np.sum(np.square(L[0] - L[1]))
        return L * min(1.0, 0.7 / np.sqrt(distance))


def test_a_diagonal_factor_is_made_before_the_others_shrink_it():
    """In whichever order the blocks are given: LL' may be near the bound, its diagonal not."""
    B = np.array([[1.0, 0.9], [0.9, 1.0]])
    blocks = [Near(), Diagonal()]
    for penalties in (blocks, blocks[::-1]):
        objective = random_objective(0, "hyper", n=8, m=2, penalties=penalties)
        found = certify_penalized(objective, 0.99 * np.linalg.cholesky(B))
        assert objective.value(found.factor @ found.factor.T) <= found.primal_value < math.inf
