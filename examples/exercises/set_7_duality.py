"""Problem set 7: convex duality.

The dual of a program with two variables on paper, a semidefinite program and its dual in CVXPY, and
a semidefinite program whose dual has another value.
"""

import cvxpy as cp
import numpy as np

from seraph_cvx import certify_problem

# %% The program of TODO 1: minimize e^{x_1} + x_2^2/2 subject to x_1 + x_2 >= 2.
grid = np.linspace(-12.0, 12.0, 2401)
x_1, x_2 = np.meshgrid(grid, grid)
f_0 = np.exp(x_1) + x_2**2 / 2.0


# %% TODO 1. By hand. With a multiplier lam for 2 - x_1 - x_2 <= 0, minimize the Lagrangian over x.
def dual_function(lam):
    """g(lam), the infimum over all x; -np.inf where there is no lower bound."""
    raise NotImplementedError(
        "TODO 1: the Lagrangian is a function of x_1 plus one of x_2, so minimize each alone. "
        "Look at lam = 0 and at lam < 0 by themselves: what does e^{x_1} do far to the left?"
    )


for lam in (0.01, 0.5, 1.0, 1.4, 3.0):
    on_the_grid = np.min(f_0 + lam * (2.0 - x_1 - x_2))
    assert on_the_grid - 1e-3 <= dual_function(lam) <= on_the_grid + 1e-9
assert dual_function(0.0) == 0.0
assert dual_function(-1.0) == -np.inf
feasible = f_0[x_1 + x_2 >= 2.0]
assert np.max([dual_function(lam) for lam in np.linspace(0.0, 5.0, 501)]) <= np.min(feasible)
print(f"No g(lam) is above {np.min(feasible):.4f}, the least value of a feasible point.")


# %% TODO 2. In CVXPY. Minimize <C, A> over A PSD with 1 on the diagonal; and the dual of this.
def state_both(C):
    """The problem in a variable A, and its dual in the multipliers lam of the diagonal."""
    raise NotImplementedError(
        "TODO 2: the Lagrangian is <C, A> + sum_i lam_i (1 - A_ii). Sort it: for which lam is "
        "its infimum over A PSD not -infinity, and what is left then?"
    )


neighbors = np.roll(np.eye(5), 1, axis=0)
pentagon = neighbors + neighbors.T
rng = np.random.default_rng(7)
C = rng.integers(-3, 4, size=(4, 4))
for cost, known in ((pentagon, 10.0 * np.cos(4.0 * np.pi / 5.0)), (C + C.T, None)):
    problem, dual = state_both(cost)
    assert isinstance(problem.objective, cp.Minimize)
    assert isinstance(dual.objective, cp.Maximize)
    assert problem.is_dcp()
    assert dual.is_dcp()
    high, low = certify_problem(problem), certify_problem(dual)
    assert max(high.relative_gap, low.relative_gap) <= 1e-6
    assert np.isclose(high.upper, low.lower, atol=1e-5)
    assert known is None or low.lower - 1e-6 <= known <= high.upper + 1e-6
    for signs in rng.choice([-1.0, 1.0], size=(50, len(cost))):
        assert signs @ cost @ signs >= low.lower - 1e-6  # A = xx' is feasible for x of signs
print("Both problems have the same value: five unit vectors on a pentagon reach the bound.")


# %% A semidefinite program: minimize <C, A> subject to <B_i, A> = d_i, i = 0, 1, over 3 x 3 PSD
# matrices A. Its dual: maximize d_0 lam_0 + d_1 lam_1 with C - lam_0 B_0 - lam_1 B_1 PSD. If a
# PSD matrix has a zero on the diagonal, the whole row is zero. So both problems may be stated
# without such rows, exactly, and then have interior points, so that certificates close.
def is_diagonal(matrix):
    """Whether a matrix is diagonal with entries >= 0."""
    return np.all(matrix == np.diag(np.maximum(np.diag(matrix), 0)))


def state_primal(C, B, d, kept):
    """The program in the rows `kept`; all the others are zero."""
    A = cp.Variable((len(kept), len(kept)), PSD=True)
    C, *B = (matrix[np.ix_(kept, kept)] for matrix in (C, *B))
    equations = [cp.sum(cp.multiply(matrix, A)) == end for matrix, end in zip(B, d, strict=True)]
    return cp.Problem(cp.Minimize(cp.sum(cp.multiply(C, A))), equations)


def value(C, B, d):
    """Proven bounds on the value of the program."""
    seen = [matrix for matrix, end in zip(B, d, strict=True) if end == 0 and is_diagonal(matrix)]
    zero = {i for matrix in seen for i in range(3) if matrix[i, i] > 0}
    return certify_problem(state_primal(C, B, d, sorted({0, 1, 2} - zero)))


def dual_value(C, B, d):
    """Proven bounds on the value of the dual."""
    lam = cp.Variable(2)
    M = C - lam[0] * B[0] - lam[1] * B[1]
    zero = [i for i in range(3) if not any(matrix[i, i] for matrix in (C, *B))]
    kept = sorted({0, 1, 2} - {*zero})
    constraints = [M[np.ix_(kept, kept)] >> 0, *(M[i, :] == 0 for i in zero)]
    return certify_problem(cp.Problem(cp.Maximize(d @ lam), constraints))


# %% TODO 3. Break it. "The values of a semidefinite program and of its dual are the same."
def program_with_a_gap():
    """C, [B_0, B_1] and [d_0, d_1] of whole numbers, the two values 3 or more apart."""
    raise NotImplementedError(
        "TODO 3: let <B_0, A> = 0 force a diagonal entry of A to be zero. Then the entries beside "
        "it are zero as well, which the second equation may be counting on. The dual does not know "
        "that; give it a zero on its diagonal, too, that forbids the multiplier you want."
    )


C, B, d = (np.asarray(part) for part in program_with_a_gap())
assert C.shape == (3, 3)
assert B.shape == (2, 3, 3)
assert all(np.array_equal(matrix, matrix.T) for matrix in (C, *B))
assert all(part.dtype.kind == "i" for part in (C, B, d))
high, low = value(C, B, d), dual_value(C, B, d)
assert np.isfinite(high.upper)  # it is feasible
assert np.isfinite(low.lower)
assert high.lower - low.upper >= 3.0 - 1e-6
traces = np.trace(B, axis1=1, axis2=2)  # the control: here A = I is feasible, ...
inside = C + (1.0 + np.linalg.norm(C)) * np.eye(3)  # ... and here lam = 0, both in the interior
assert certify_problem(state_primal(inside, B, traces, [0, 1, 2])).relative_gap <= 1e-6
print(f"The program has the value {high.upper:.3f}, and its dual {low.upper:.3f}.")
