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
    raise NotImplementedError(
        "TODO 1: section 1.3 of the lecture. np.linalg.eigh reads one triangle of A only; "
        "what if A is not symmetric?"
    )


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
    raise NotImplementedError(
        "TODO 2: a step is short enough if f ends no higher than the gradient and the length "
        "promise. What if it does, and how may the length grow again? The first one can be "
        "1/objective.smoothness_bound. certify takes time: ask it now and then."
    )


# %% The referee's word on it, and on the package's solver.
mine = my_solver(objective, tol)
judged = certify(objective, mine)
reference = solve_m_step(objective, tol=1e-8)
assert np.linalg.eigvalsh(mine)[0] >= -1e-12
assert judged.relative_gap <= tol
assert judged.dual_value <= reference.value <= judged.primal_value + 1e-8 * abs(judged.primal_value)
print(f"mine:   f = {judged.primal_value:.9f}, relative gap {judged.relative_gap:.1e}, proved")
print(f"newton: f = {reference.value:.9f}, relative gap {reference.relative_gap:.1e}, proved")
