"""Exercise 4: weak duality, and the anchor p = 1 that makes every metric prove something.

The dual of the M-step is a maximum-entropy problem. Any feasible point of it is a lower bound on f
over all metrics. From a metric A you get a point p; an anchor makes it feasible.
"""

import numpy as np

from seraph_cvx import MStepObjective, PairSet, certify, paper, solve_m_step

# %% The data: every pair as a row v, with its weight c and the weight b of its label -1.
rng = np.random.default_rng(3)
X = rng.normal(size=(16, 3)) + np.repeat([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0]], 8, axis=0)
pairs = PairSet.from_labels(X, [0, 0, 0, *[-1] * 5, 1, 1, 1, *[-1] * 5])
objective = MStepObjective(pairs, trace_weight=0.5)  # the paper's start: q(-1) = 1
mu, trace_weight, eta = objective.mu, objective.trace_weight, objective.threshold
rows = np.vstack([pairs.similar, pairs.dissimilar, pairs.unlabeled])
V = paper.differences(X, rows)
counts = [len(pairs.similar), len(pairs.dissimilar), pairs.n_unlabeled]
c = np.repeat([1.0, 1.0, mu], counts)
b = np.repeat([0.0, 1.0, mu], counts)
entropy = paper.entropy  # H(p) = -p ln p - (1 - p) ln(1 - p), with 0 ln 0 = 0


# %% TODO 1. The dual objective. Use `entropy`, c, b and eta.
def dual_value(p):
    """D(p) = sum_k c_k H(p_k) - eta*(sum_k c_k p_k - beta), with beta = sum_k b_k."""
    raise NotImplementedError(
        "TODO 1: every sum over the pairs is an inner product with c or b. The two checks "
        "below are values that you can find on paper first."
    )


assert np.isclose(dual_value(b / c), 0.0)  # p as told: no entropy, nothing off
assert np.isclose(dual_value(np.ones(len(c))), -eta * len(pairs.similar))


# %% TODO 2. Its constraint is that this matrix is PSD.
def dual_matrix(p):
    """M(p) = sum_k (c_k p_k - b_k) v_k v_k' + lambda I."""
    raise NotImplementedError(
        "TODO 2: a sum of weighted vv' is one product of matrices, without a loop. What is "
        "the weight of pair k?"
    )


assert np.allclose(dual_matrix(b / c), trace_weight * np.eye(3))
assert np.linalg.eigvalsh(dual_matrix(np.ones(len(c))))[0] > 0.0  # p = 1 is always feasible


# %% TODO 3. Between p and the anchor 1, M(tau*p + (1 - tau)*1) = M(1) - tau*[M(1) - M(p)]. Take the
# largest tau in [0, 1] for which this is PSD: an eigenvalue, after dividing by the root of M(1).
def feasible(p):
    """tau*p + (1 - tau)*1 with the largest tau in [0, 1] that is feasible."""
    raise NotImplementedError(
        "TODO 3: if M(1) were the identity, for which tau would I - tau*[M(1) - M(p)] be "
        "PSD? Then find coordinates in which M(1) is the identity. Never beyond tau = 1."
    )


def dual_point(A):
    """A feasible point from the metric A: from p(-1) of every pair."""
    return feasible(paper.posterior(paper.squared_distances(X, rows, A), -1.0, eta))


def bound(A):
    """A lower bound on f over all metrics, from the metric A."""
    return dual_value(dual_point(A))


# %% The check. Weak duality: the bound of any metric is below the value of any other.
metrics = [F @ F.T for F in rng.normal(size=(100, 3, 3)) * rng.uniform(0.05, 2.0, (100, 1, 1))]
bounds, values = [bound(A) for A in metrics], [objective.value(A) for A in metrics]
for p in map(dual_point, metrics):
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
