"""Exercise 4: weak duality, and the anchor p = 1 that makes every metric prove something.

The dual of the M-step is a maximum-entropy problem. Any feasible point of it is a lower bound on f
over all metrics. From a metric A you get a point p; an anchor makes it feasible.
"""

import numpy as np

from seraph_cvx import MStepObjective, PairSet, certify, solve_m_step

# %% The data: every pair as a row v, with its weight c and the weight b of its label -1.
rng = np.random.default_rng(3)
X = rng.normal(size=(16, 3)) + np.repeat([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0]], 8, axis=0)
pairs = PairSet.from_labels(X, [0, 0, 0, *[-1] * 5, 1, 1, 1, *[-1] * 5])
objective = MStepObjective(pairs, trace_weight=0.5)  # the paper's start: q(-1) = 1
mu, trace_weight, eta = objective.mu, objective.trace_weight, objective.threshold
rows = np.vstack([pairs.similar, pairs.dissimilar, pairs.unlabeled])
V = X[rows[:, 0]] - X[rows[:, 1]]
counts = [len(pairs.similar), len(pairs.dissimilar), pairs.n_unlabeled]
c = np.repeat([1.0, 1.0, mu], counts)
b = np.repeat([0.0, 1.0, mu], counts)


def entropy(p):
    """H(p) = -p ln p - (1 - p) ln(1 - p), with 0 ln 0 = 0."""
    ends = [np.where(x > 0.0, -x * np.log(np.where(x > 0.0, x, 1.0)), 0.0) for x in (p, 1.0 - p)]
    return ends[0] + ends[1]


# %% TODO 1. The dual objective. Use `entropy`, c, b and eta.
def dual_value(p):
    """D(p) = sum_k c_k H(p_k) - eta*(sum_k c_k p_k - beta), with beta = sum_k b_k."""
    return c @ entropy(p) - eta * (c @ p - np.sum(b))


assert np.isclose(dual_value(b / c), 0.0)  # p as told: no entropy, nothing off
assert np.isclose(dual_value(np.ones(len(c))), -eta * len(pairs.similar))


# %% TODO 2. Its constraint is that this matrix is PSD.
def dual_matrix(p):
    """M(p) = sum_k (c_k p_k - b_k) v_k v_k' + lambda I."""
    return V.T @ ((c * p - b)[:, None] * V) + trace_weight * np.eye(3)


assert np.allclose(dual_matrix(b / c), trace_weight * np.eye(3))
assert np.linalg.eigvalsh(dual_matrix(np.ones(len(c))))[0] > 0.0  # p = 1 is always feasible


# %% TODO 3. Between p and the anchor 1, M(tau*p + (1 - tau)*1) = M(1) - tau*[M(1) - M(p)]. Take the
# largest tau in [0, 1] for which this is PSD: an eigenvalue, after dividing by the root of M(1).
def feasible(p):
    """tau*p + (1 - tau)*1 with the largest tau in [0, 1] that is feasible."""
    anchor = dual_matrix(np.ones(len(p)))
    eigenvalues, vectors = np.linalg.eigh(anchor)
    root = vectors / np.sqrt(eigenvalues)
    steepest = np.linalg.eigvalsh(root.T @ (anchor - dual_matrix(p)) @ root)[-1]
    tau = 1.0 / max(1.0, steepest)
    return tau * p + (1.0 - tau)


def bound(A):
    """A lower bound on f over all metrics, from the metric A."""
    s = np.einsum("ki,ij,kj->k", V, A, V) - eta
    return dual_value(feasible(1.0 / (1.0 + np.exp(-s))))


# %% The check. Weak duality: the bound of any metric is below the value of any other.
metrics = [F @ F.T for F in rng.normal(size=(100, 3, 3)) * rng.uniform(0.05, 2.0, (100, 1, 1))]
bounds, values = [bound(A) for A in metrics], [objective.value(A) for A in metrics]
for A in metrics:
    s = np.einsum("ki,ij,kj->k", V, A, V) - eta
    p = feasible(1.0 / (1.0 + np.exp(-s)))
    assert np.linalg.eigvalsh(dual_matrix(p))[0] >= -1e-9
    assert np.all((p >= 0.0) & (p <= 1.0))
assert max(bounds) <= min(values) + 1e-9

# %% And near the optimum the two meet: that is strong duality, and a proof that no solver wrote.
best = solve_m_step(objective, tol=1e-9).metric
gap = objective.value(best) - bound(best)
assert -1e-9 <= gap <= 1e-6
assert bound(best) >= certify(objective, best).dual_value - 1e-6
print(f"100 random metrics: no bound above {max(bounds):.3f}, no value below {min(values):.3f}.")
print(f"The solver's metric: f = {objective.value(best):.9f}, proved to within {gap:.1e}.")
