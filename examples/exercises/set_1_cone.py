"""Problem set 1: the cone of metrics.

Clip the eigenvalues of one matrix on paper, state the same projection as a problem in CVXPY, and
refute a rule about the order of metrics that looks true.
"""

from fractions import Fraction

import cvxpy as cp
import numpy as np

from seraph_cvx import certify_problem


# %% Matrices of fractions: nothing is rounded, so no check needs a tolerance.
def exact(matrix):
    """A 2 x 2 matrix with its entries as fractions."""
    return np.array([[Fraction(entry) for entry in row] for row in matrix])


def is_psd(A):
    """Whether a 2 x 2 matrix of fractions is symmetric and PSD."""
    determinant = A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0]
    return bool(A[0, 1] == A[1, 0] and min(A[0, 0], A[1, 1], determinant) >= 0)


B = exact([[1, 2], [2, -2]])


# %% TODO 1. By hand. Find the eigenvalues and eigenvectors of B on paper, then its nearest metric.
def nearest_metric():
    """P(B), a 2 x 2 list of whole numbers or `Fraction`s: 1.6 is not 8/5 to a computer."""
    raise NotImplementedError(
        "TODO 1: the eigenvalues are whole numbers: their sum is the trace, their product the "
        "determinant. What is left of B when the negative one is set to zero?"
    )


A = exact(nearest_metric())
cut = A - B
assert is_psd(A)
assert is_psd(cut)
assert np.sum(A * cut) == 0  # with these three conditions (section 1.4) no metric is nearer
print(f"The nearest metric to B is at the squared distance {np.sum(cut * cut)}, exactly.")


# %% TODO 2. In CVXPY. The projection of any symmetric matrix C as an optimization problem.
def state_projection(A, C):
    """Minimize the squared Frobenius distance to C over the metrics A, a symmetric variable."""
    raise NotImplementedError(
        "TODO 2: A is only symmetric; the cone has to be a constraint. Which operator of CVXPY "
        "compares matrices in the PSD order, and which compares their entries?"
    )


rng = np.random.default_rng(1)
for C in (B.astype(float), rng.normal(size=(3, 3)), rng.normal(size=(4, 4))):
    C = (C + C.T) / 2.0
    variable = cp.Variable(C.shape, symmetric=True)
    problem = state_projection(variable, C)
    assert problem.is_dcp()
    problem.solve(solver="CLARABEL")
    certificate = certify_problem(problem)
    eigenvalues, vectors = np.linalg.eigh(C)
    squared_distance = np.sum(np.minimum(eigenvalues, 0.0) ** 2)
    assert certificate.relative_gap <= 1e-6
    assert certificate.lower - 1e-9 <= squared_distance <= certificate.upper + 1e-9
    clip = (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T
    assert np.allclose(variable.value, clip, atol=1e-3)
print("CVXPY's projection is the clip: the proven interval contains the clip's distance.")


# %% TODO 3. Break it. For numbers, a >= b >= 0 implies a^2 >= b^2. In the order of metrics, where
# A >= B means that A - B is PSD, the same rule looks true, and holds for diagonal matrices.
def squares_keep_the_order(A, B):
    """The claim: if A >= B >= 0 then A^2 >= B^2."""
    return is_psd(A @ A - B @ B)


control = exact([[3, 0], [0, 2]]), exact([[1, 0], [0, 2]])
assert squares_keep_the_order(*control)  # the control: diagonal matrices


def counterexample():
    """Metrics A and B, 2 x 2 lists, with A - B PSD and A^2 - B^2 not PSD."""
    raise NotImplementedError(
        "TODO 3: diagonal matrices commute, so take two that do not. Start with diag(1, 0), and "
        "add a PSD matrix of rank one that has other eigenvectors."
    )


larger, smaller = map(exact, counterexample())
assert is_psd(smaller)
assert is_psd(larger - smaller)
assert not squares_keep_the_order(larger, smaller)
print("A >= B, and A^2 >= B^2 is false: the order of metrics is not the order of numbers.")
