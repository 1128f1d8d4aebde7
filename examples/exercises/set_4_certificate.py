"""Problem set 4: the certificate.

The longest step toward an anchor on paper, the same step as a problem in CVXPY and the gap of a
rounded answer, and a matrix that only looks positive definite.
"""

from fractions import Fraction

import cvxpy as cp
import numpy as np

from seraph_cvx import MStepObjective, PairSet, certify, certify_problem, paper, solve_m_step


def is_psd(matrix):
    """Whether a symmetric 2 x 2 matrix is PSD: in fractions, a double being one as well."""
    (first, off), (_, last) = (map(Fraction, row) for row in matrix)
    return min(first, last, first * last - off * off) >= 0


# %% TODO 1. By hand. At the anchor M(1) = [[6, 0], [0, 3]]; at p, M(p) = [[3, -3], [-3, -2]], which
# is not PSD. How far can you go from the anchor toward p?
anchor, slack = [[6, 0], [0, 3]], [[3, -3], [-3, -2]]


def mixture(tau):
    """tau M(p) + (1 - tau) M(1)."""
    return [[tau * slack[i][j] + (1 - tau) * anchor[i][j] for j in (0, 1)] for i in (0, 1)]


def longest_step():
    """The largest tau for which the mixture is PSD, as a `Fraction`."""
    raise NotImplementedError(
        "TODO 1: write the determinant of the mixture as a polynomial in tau. It is positive at "
        "tau = 0; at which of its two zeros do you arrive first?"
    )


tau = Fraction(longest_step())
assert 0 < tau <= 1
assert is_psd(mixture(tau))
assert not is_psd(mixture(tau + Fraction(1, 10**12)))
print(f"The longest step is {tau}, exactly.")


# %% TODO 2. In CVXPY. The longest step between matrices of any size, never beyond tau = 1.
def state_longest_step(tau, anchor, slack):
    """The problem of the largest tau, a scalar variable; `anchor` and `slack` are arrays."""
    raise NotImplementedError(
        "TODO 2: one linear matrix inequality and one bound. tau * slack is an expression of "
        "CVXPY; what does A >> 0 mean, and what would A >= 0 mean?"
    )


def step(anchor, slack):
    """The longest step, from below: a proven bound, not a solver's word."""
    variable = cp.Variable()
    problem = state_longest_step(variable, np.asarray(anchor, float), np.asarray(slack, float))
    assert problem.is_dcp()
    certificate = certify_problem(problem)
    assert certificate.relative_gap <= 1e-6
    return certificate.lower


assert np.isclose(step(anchor, slack), float(tau), atol=1e-6)
assert np.isclose(step(np.eye(3), np.diag([2.0, 1.0, 0.5])), 1.0, atol=1e-6)

# %% The gap of a rounded answer: round the optimal metric, and prove what it cost.
rng = np.random.default_rng(4)
X = rng.normal(size=(8, 2)) + np.repeat([[0.0, 0.0], [2.0, 0.0]], 4, axis=0)
pairs = PairSet.from_labels(X, [0, 0, 0, -1, 1, 1, -1, -1])
objective = MStepObjective(pairs, trace_weight=0.5)
rows = np.vstack([pairs.similar, pairs.dissimilar, pairs.unlabeled])
counts = [len(pairs.similar), len(pairs.dissimilar), pairs.n_unlabeled]
c, b = (np.repeat([similar, 1.0, objective.mu], counts) for similar in (1.0, 0.0))
best = solve_m_step(objective, tol=1e-9)
A = np.round(best.metric, 2) + 0.005 * np.eye(2)  # a little to the inside of the cone
p = paper.posterior(paper.squared_distances(X, rows, A), -1.0, objective.threshold)
tau = step(objective.recession_matrix, objective.gradient(A))
p = tau * p + (1.0 - tau)
bound = c @ paper.entropy(p) - objective.threshold * (c @ p - np.sum(b))
judged = certify(objective, A)
assert bound <= best.value
assert judged.dual_value >= bound - 1e-6  # it tries two anchors, and keeps the better one
assert bound >= judged.dual_value - 0.5
print(f"Rounded: f = {judged.primal_value:.4f}, and no metric is below {bound:.4f}.")


# %% TODO 3. Break it. "eigvalsh says that the least eigenvalue is positive, so the matrix is PSD."
def least_eigenvalue(matrix):
    """Proven bounds on the least eigenvalue: the largest xi for which matrix - xi I is PSD."""
    xi = cp.Variable()
    problem = cp.Problem(cp.Maximize(xi), [matrix - xi * np.eye(2) >> 0])
    certificate = certify_problem(problem)
    return certificate.lower, certificate.upper


def looks_positive():
    """A symmetric 2 x 2 array, entries up to 2, not PSD, with a computed eigenvalue > 0."""
    raise NotImplementedError(
        "TODO 3: [[1, x], [x, x * x]] is PSD, but for rounding: every second x * x is a little "
        "less than the square. `is_psd` and np.linalg.eigvalsh say which x will do; try many."
    )


matrix = np.asarray(looks_positive(), dtype=float)
assert matrix.shape == (2, 2)
assert np.all(matrix == matrix.T)
assert np.max(np.abs(matrix)) <= 2.0
assert np.linalg.eigvalsh(matrix)[0] > 0.0
assert not is_psd(matrix)
assert least_eigenvalue(matrix)[0] <= 0.0  # the proof does not fall for it
assert least_eigenvalue(matrix + 1e-6 * np.eye(2))[0] > 0.0  # the control: now it is proved
print(f"Computed {np.linalg.eigvalsh(matrix)[0]:.1e}, and the matrix is not PSD.")
