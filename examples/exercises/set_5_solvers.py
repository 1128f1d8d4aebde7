"""Problem set 5: solvers, and what they say of themselves.

The central path of a one-dimensional M-step on paper, the central path of a larger one in CVXPY,
and a point at which f hardly falls although it is far from optimal.
"""

import cvxpy as cp
import numpy as np

from seraph_cvx import MStepObjective, PairSet, certify, certify_problem, paper, solve_m_step

# %% The data of TODO 1: one dissimilar pair at distance 1, so that a metric is a number A > 0.
line = PairSet.from_constraints([[0.0], [1.0]], similar=[], dissimilar=[(0, 1)])
one_pair = MStepObjective(line, trace_weight=0.2, threshold=1.0)
trace_weight, eta = one_pair.trace_weight, one_pair.threshold


def f(A):
    """ln(1 + e^{eta - A}) + lambda A."""
    return one_pair.value(np.array([[A]]))


# %% TODO 1. By hand. On the central path A minimizes f(A) - epsilon ln A. Solve for epsilon.
def barrier_weight(A):
    """The epsilon > 0 for which the number A is on the central path."""
    raise NotImplementedError(
        "TODO 1: set the derivative of f(A) - epsilon ln A to zero. What is the derivative of "
        "ln(1 + e^{eta - A})?"
    )


for A in (2.5, 3.0, 5.0, 10.0):
    epsilon, w = barrier_weight(A), 1e-5
    behind, ahead = (f(near) - epsilon * np.log(near) for near in (A - w, A + w))
    assert abs(ahead - behind) / (2.0 * w) <= 1e-8
    p = 1.0 / (1.0 + np.exp(eta - A))
    assert p - 1.0 + trace_weight > 0.0  # M(p), so that p is feasible, and D(p) a bound:
    bound = paper.entropy(np.array(p)) - eta * (p - 1.0)
    assert np.isclose(f(A) - bound, epsilon)
print("On the central path of one number the gap is epsilon, the weight of the barrier.")

# %% The data of TODO 2 and 3: a metric of two features.
rng = np.random.default_rng(5)
X = rng.normal(size=(8, 2)) + np.repeat([[0.0, 0.0], [2.0, 0.0]], 4, axis=0)
labels = [0, 0, 0, -1, 1, 1, -1, -1]
pairs = PairSet.from_labels(X, labels)
objective = MStepObjective(pairs, trace_weight=0.5)
V = paper.differences(X, np.vstack([pairs.similar, pairs.dissimilar, pairs.unlabeled]))
counts = [len(pairs.similar), len(pairs.dissimilar), pairs.n_unlabeled]
c, b = (np.repeat([similar, 1.0, objective.mu], counts) for similar in (1.0, 0.0))
G, beta = V.T @ (b[:, None] * V), np.sum(b)


def loss(A):
    """f(A) of the variable A, as an expression of CVXPY."""
    s = cp.sum(cp.multiply(V @ A, V), axis=1) - objective.threshold
    linear = 0.5 * cp.trace(A) - cp.sum(cp.multiply(G, A)) + objective.threshold * beta
    return c @ cp.logistic(s) + linear


# %% TODO 2. In CVXPY. The point of the central path for a weight epsilon, by `loss(A)`.
def state_central_path(A, epsilon):
    """The problem whose optimum is the point of the central path."""
    raise NotImplementedError(
        "TODO 2: the barrier is the logarithm of a determinant, one function of cvxpy. It is "
        "concave: with which sign may it stand in a minimization?"
    )


for epsilon in (1.0, 0.1, 0.01):
    A = cp.Variable((2, 2), symmetric=True)
    problem = state_central_path(A, epsilon)
    assert problem.is_dcp()
    problem.solve(solver="CLARABEL")
    assert certify_problem(problem).relative_gap <= 1e-6
    value = objective.value(A.value) - epsilon * np.linalg.slogdet(A.value)[1]
    assert np.isclose(value, problem.value, rtol=1e-6)
    assert np.isclose(certify(objective, A.value).duality_gap, 2.0 * epsilon, rtol=1e-2)
print("On the central path of two features the certified gap is 2 epsilon.")

# %% One more point, of a third class and far away, makes the bound on the curvature huge. A step of
# projected gradient has the length 1 over that bound.
far_pairs = PairSet.from_labels(np.vstack([X, [[60.0, 60.0]]]), [*labels, 2])
far = MStepObjective(far_pairs, trace_weight=0.5)
length = 1.0 / far.smoothness_bound


def relative_fall(A):
    """By which part of itself f falls in one step of projected gradient."""
    eigenvalues, vectors = np.linalg.eigh(A - length * far.gradient(A))
    stepped = (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T
    return (far.value(A) - far.value(stepped)) / far.value(A)


# %% TODO 3. Break it. "f falls by less than a millionth of itself in a step, so we are done."
def looks_done():
    """A PSD matrix where f hardly falls, although the certified relative gap is 0.1 or more."""
    raise NotImplementedError(
        "TODO 3: f falls by about the squared gradient times the length. At A = 0 the far point "
        "pulls hard. Under which simple metric is it far enough away to pull no more?"
    )


A = np.asarray(looks_done(), dtype=float)
optimum = solve_m_step(far, tol=1e-8).metric
assert np.linalg.eigvalsh(A)[0] >= 0.0
assert relative_fall(np.zeros((2, 2))) > 1e-6
assert 0.0 <= relative_fall(A) < 1e-6
assert certify(far, A).relative_gap >= 0.1
assert relative_fall(optimum) < 1e-6  # the control: so it is at the optimum, ...
assert certify(far, optimum).relative_gap <= 1e-6  # ... which is one
print(f"f falls by {relative_fall(A):.0e}, and the gap is {certify(far, A).relative_gap:.2f}.")
