"""Evidence: exact solutions, ranks and dependences agree with rationals computed another way."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy
from flint import fmpq, fmpq_mat

from seraph_cvx.proof import rational, simplex
from seraph_cvx.proof.rational import dependent_rows, rank_modulo_prime, rationals, solve
from seraph_cvx.proof.simplex import LinearProgram, Simplex, optimize
from seraph_cvx.proof.steps import Steps


def rational_matrix(M):
    return fmpq_mat([[fmpq(*v.as_integer_ratio()) for v in row] for row in M.toarray().tolist()])


def sparse(rng, rows, columns, density, spread=0):
    M = scipy.sparse.random(rows, columns, density, random_state=rng, format="csr")
    M.data = np.ldexp(M.data, rng.integers(-spread, spread + 1, M.nnz))
    return scipy.sparse.csr_array(M)


@pytest.mark.parametrize("spread", [0, 300])
def test_a_solution_is_that_of_dense_elimination(spread):
    """With chains of single equations, blocks, and numbers of very different sizes."""
    rng = np.random.default_rng(spread)
    for n in (1, 6, 25):
        permutation = scipy.sparse.eye_array(n, format="csr")[rng.permutation(n)]
        M = permutation + sparse(rng, n, n, min(1.0, 1.5 / n), spread)
        rhs = [Fraction(int(v), 7) for v in rng.integers(-9, 9, n)]
        found = solve(M, rhs)
        if found is None:
            assert rational_matrix(M).det() == 0
            continue
        products = rational_matrix(M) * fmpq_mat([[fmpq(*v.as_integer_ratio())] for v in found])
        assert [Fraction(int(v.p), int(v.q)) for v in products.entries()] == rhs


def test_long_denominators_are_left_out_until_the_end(monkeypatch):
    rng = np.random.default_rng(3)
    M = scipy.sparse.block_diag([rng.normal(size=(3, 3)), rng.normal(size=(2, 2))], format="lil")
    M[4, 0], rhs = 0.3, [Fraction(k, 3) for k in range(5)]
    expected = solve(scipy.sparse.csr_array(M), rhs)
    monkeypatch.setattr(rational, "LONG", 1)
    assert solve(scipy.sparse.csr_array(M), rhs) == expected


def program_of(A, b, c):
    """A linear program without equations."""
    A = scipy.sparse.csr_array(np.array(A, dtype=float))
    return LinearProgram(A, rationals(np.array(b)), rationals(np.array(c)), np.zeros(len(b), bool))


@pytest.mark.parametrize(("cost", "met"), [(1.0, 1), (-1.0, 0)])
def test_a_variable_fixed_by_two_inequalities_is_held_by_the_one_of_its_sign(cost, met):
    program = program_of([[2.0], [-4.0]], [2.0, -4.0], [cost])
    for first in (0, 1):
        vertex = program.vertex([first])
        assert vertex.active == [met]
        assert not vertex.dual
        assert vertex.weights == [1 / abs(program.coefficient(met))]


def test_a_variable_fixed_by_an_equation_is_held_by_it_where_its_bound_has_the_wrong_sign():
    program = program_of([[1.0], [-1.0]], [1.0, -1.0], [-1.0])
    program = replace(program, is_equation=np.array([True, False]))
    vertex = program.vertex([1])
    assert vertex.active == [0]
    assert not vertex.dual


def test_a_conflict_is_read_off_the_ray_of_highs(monkeypatch):
    """Of x + y <= 1, x >= 1 and y >= 1 in between other rows: no pivots are needed."""
    A = [[1, 1, 0], [-1, 0, 0], [0, -1, 0], [0, 0, 1], [1, 1, 1], [-1, 1, -2]]
    program = program_of(A, [1.0, -1.0, -1.0, 5.0, 4.0, 9.0], [0.0, 0.0, 1.0])
    solver = Simplex(program, 10.0)
    vertex = solver.run()
    assert any(k in vertex.violated for k in solver.contradicted)
    monkeypatch.setattr(simplex, "_pivoted", None)
    conflict = optimize(program, Steps()).conflict
    assert conflict[:3] == [conflict[0]] * 3
    assert conflict[0] > 0
    assert not any(conflict[3:])


@pytest.mark.parametrize("M", [[[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [1.0, 1.0]]])
def test_a_singular_system_has_no_solution(M):
    assert solve(scipy.sparse.csr_array(M), [Fraction(1), Fraction(2)]) is None


def test_subnormal_numbers_are_solved_with():
    assert solve(scipy.sparse.csr_array([[5e-324]]), [Fraction(5e-324) / 3]) == [Fraction(1, 3)]


@pytest.mark.parametrize("density", [0.03, 0.3])
def test_ranks_and_dependences_are_those_of_rationals(density):
    """The dependent rows are exact combinations, as 0.1 + 0.1 + 0.1 and 0.3 are not."""
    rng = np.random.default_rng(1)
    A = sparse(rng, 40, 60, density)
    A.data = np.round(16.0 * A.data)
    mixed = scipy.sparse.csr_array(np.round(2.0 * rng.standard_normal((6, 40)))) @ A
    A = scipy.sparse.vstack([A, mixed, scipy.sparse.csr_array((1, 60))], format="csr")
    rank = rational_matrix(A).rank()
    assert rank_modulo_prime(A) == rank
    x = np.round(9.0 * rng.standard_normal(60))
    found = dependent_rows(A, A @ x)
    assert not found.contradictions
    assert len(found.kept) == rational_matrix(A[found.kept]).rank() == rank
    b = A @ x
    b[45] += 0.25
    (contradiction,) = dependent_rows(A, b).contradictions
    z = [contradiction.multipliers.get(i, Fraction(0)) for i in range(47)]
    assert sum(v * Fraction(w) for v, w in zip(z, b.tolist(), strict=True)) == contradiction.size
    row = fmpq_mat([[fmpq(*v.as_integer_ratio()) for v in z]]) * rational_matrix(A)
    assert not any(row.entries())


def test_rows_that_are_nearly_dependent_are_kept():
    A = scipy.sparse.csr_array([[0.1, 0.1], [0.3, 0.3], [1.0, 1.0 + 2.0**-52]])
    found = dependent_rows(A, np.array([1.0, 3.0, 10.0]))
    assert len(found.kept) == 2
    (contradiction,) = found.contradictions
    assert 0 < abs(contradiction.size) < 1e-14


@pytest.mark.parametrize(("end", "is_by_rounding"), [(0.3, True), (0.29, False)])
def test_a_conflict_of_rounded_rows_ends_no_search(end, is_by_rounding):
    """The rows x = 0.1 and y = 0.2 contradict x + y <= 0.3 by 3e-17, as doubles."""
    A = scipy.sparse.csr_array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    program = LinearProgram(
        A, rationals([0.1, 0.2, end]), rationals([0.0, 0.0]), np.array([True, True, False])
    )
    conflict = rationals([-1.0, -1.0, 1.0])
    assert program.vertex([0, 1]).may_be_rounded(conflict) == is_by_rounding
