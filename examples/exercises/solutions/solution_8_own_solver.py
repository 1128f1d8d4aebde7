"""Exercise 8: write your own solver, and let the referee judge it.

A solver returns a matrix. Whether it is any good is for the certificate to say, which knows neither
you nor your stopping rule.
"""

import numpy as np

from seraph_cvx import MStepObjective, PairSet, certify, solve_m_step

# %% The data: 30 points in R^4, one feature of which tells the classes apart.
rng = np.random.default_rng(6)
X = rng.normal(size=(30, 4)) + np.repeat([[0.0] * 4, [3.0, 0.0, 0.0, 0.0]], 15, axis=0)
pairs = PairSet.from_labels(X, [0, 0, 0, *[-1] * 12, 1, 1, 1, *[-1] * 12])
objective = MStepObjective(pairs)
tol = 1e-6

# %% Somebody else's solver is done at once, and sure of itself. The referee is not.
boast = np.eye(4), "optimal"
verdict = certify(objective, boast[0])
print(f"It says {boast[1]!r}; proved is a relative gap of {verdict.relative_gap:.2g}.")
assert verdict.relative_gap > 0.1


# %% TODO 1. The nearest PSD matrix in the Frobenius norm.
def project(A):
    """The symmetric matrix with the negative eigenvalues of A set to zero."""
    eigenvalues, vectors = np.linalg.eigh((A + A.T) / 2.0)
    return (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T


A = rng.normal(size=(4, 4)) + np.diag([1.0, -1.0, 2.0, -2.0])
nearest = project(A)
assert np.allclose(nearest, nearest.T)
assert np.linalg.eigvalsh(nearest)[0] >= -1e-12
assert np.allclose(project(nearest), nearest)
excess = nearest - (A + A.T) / 2.0  # orthogonal to the projection, and PSD itself
assert abs(np.sum(excess * nearest)) <= 1e-9
assert np.linalg.eigvalsh(excess)[0] >= -1e-9


# %% TODO 2. Your solver: from A = 0, steps A <- project(A - length * gradient) with a length that
# lets f fall. `objective.value_and_gradient(A)` gives both. Stop when the referee is content, or
# after 5000 steps.
def my_solver(objective, tol):
    """A PSD matrix whose certified relative gap is at most `tol`."""
    m = objective.pairs.n_features
    A, length = np.zeros((m, m)), 1.0 / objective.smoothness_bound
    value, gradient = objective.value_and_gradient(A)
    for step in range(5000):
        if step % 10 == 0 and certify(objective, A).relative_gap <= tol:
            break
        length *= 2.0
        while True:  # halve the length until the quadratic model lies above f
            new = project(A - length * gradient)
            move = new - A
            model = value + np.sum(gradient * move) + np.sum(move**2) / (2.0 * length)
            new_value, new_gradient = objective.value_and_gradient(new)
            if new_value <= model + 1e-12 * abs(value):
                break
            length /= 2.0
        A, value, gradient = new, new_value, new_gradient
    return A


# %% The referee's word on it, and on the package's solver.
mine = my_solver(objective, tol)
judged = certify(objective, mine)
reference = solve_m_step(objective, tol=1e-8)
assert np.linalg.eigvalsh(mine)[0] >= -1e-12
assert judged.relative_gap <= tol
assert judged.dual_value <= reference.value <= judged.primal_value + 1e-8 * abs(judged.primal_value)
print(f"mine:  f = {judged.primal_value:.9f}, relative gap {judged.relative_gap:.1e}, proved")
print(f"fista: f = {reference.value:.9f}, relative gap {reference.relative_gap:.1e}, proved")
