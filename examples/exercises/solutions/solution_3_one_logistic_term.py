"""Exercise 3: one logistic term per pair instead of two, and what the soft labels come to.

(11) has two logarithms for each unlabeled pair, one for each label. One is enough, and then the
soft labels of all the pairs enter through one small matrix and one number only.
"""

import numpy as np

from seraph_cvx import MStepObjective, PairSet, solve_m_step

# %% The data: 20 points in R^2, so 190 pairs; 175 of them are unlabeled.
rng = np.random.default_rng(2)
X = rng.normal(size=(20, 2)) + np.repeat([[0.0, 0.0], [2.5, 0.0]], 10, axis=0)
pairs = PairSet.from_labels(X, [0, 0, 0, *[-1] * 7, 1, 1, 1, *[-1] * 7])
mu, trace_weight, eta = 0.2, 0.5, 1.0
V_similar, V_dissimilar, V_unlabeled = (
    X[rows[:, 0]] - X[rows[:, 1]] for rows in (pairs.similar, pairs.dissimilar, pairs.unlabeled)
)
q = rng.uniform(0.2, 0.8, size=pairs.n_unlabeled)  # q(+1)


def scores(V, A):
    """s = v'Av - eta for each row of V."""
    return np.einsum("ki,ij,kj->k", V, A, V) - eta


def two_terms(A):
    """-F(A) word for word as in (11): -ln p(+1) = log(1 + e^s), -ln p(-1) = log(1 + e^{-s})."""
    s = scores(V_unlabeled, A)
    labeled = np.sum(np.logaddexp(0.0, scores(V_similar, A)))
    labeled += np.sum(np.logaddexp(0.0, -scores(V_dissimilar, A)))
    unlabeled = q @ np.logaddexp(0.0, s) + (1.0 - q) @ np.logaddexp(0.0, -s)
    return labeled + mu * unlabeled + trace_weight * np.trace(A)


# %% TODO 1. Since log(1 + e^{-s}) = log(1 + e^s) - s, every pair has the same logistic term, and
# what is left over is linear in A. Collect it, over the dissimilar and the unlabeled pairs.
def label_sums(q):
    """G = sum_k b_k v_k v_k' and beta = sum_k b_k; b is 1 if dissimilar, mu q(-1) if unlabeled."""
    b = mu * (1.0 - q)
    G = V_dissimilar.T @ V_dissimilar + V_unlabeled.T @ (b[:, None] * V_unlabeled)
    return G, len(V_dissimilar) + np.sum(b)


# %% TODO 2. The M-step with one logistic term per pair, from G and beta alone: no q in it.
def one_term(A, G, beta):
    """sum_k c_k log(1 + e^{s_k}) - <G, A> + eta*beta + lambda tr(A)."""
    labeled = np.vstack([V_similar, V_dissimilar])
    logistic = np.sum(np.logaddexp(0.0, scores(labeled, A)))
    logistic += mu * np.sum(np.logaddexp(0.0, scores(V_unlabeled, A)))
    return logistic - np.sum(G * A) + eta * beta + trace_weight * np.trace(A)


G, beta = label_sums(q)
metrics = [F @ F.T for F in rng.normal(size=(20, 2, 2))]
for A in metrics:
    assert np.isclose(one_term(A, G, beta), two_terms(A))
print(f"{pairs.n_unlabeled} soft labels reach the M-step through {G.size} entries and a number.")


# %% TODO 3. So other soft labels with the same G and beta give the same M-step. Find some.
def twin(q):
    """Soft labels in [0, 1], some of them 0.1 or more away from q, with the G and beta of q."""
    products = [V_unlabeled[:, i] * V_unlabeled[:, j] for i, j in ((0, 0), (0, 1), (1, 1))]
    conditions = np.vstack([*products, np.ones(len(q))])
    direction = np.linalg.svd(conditions)[2][-1]  # orthogonal to all four
    room = np.where(direction > 0.0, 1.0 - q, q) / np.maximum(np.abs(direction), 1e-12)
    return np.clip(q + np.min(room) * direction, 0.0, 1.0)


other = twin(q)
assert np.all((other >= 0.0) & (other <= 1.0))
assert np.max(np.abs(other - q)) >= 0.1
first, second = (
    MStepObjective(pairs, soft_labels=labels, unlabeled_weight=mu, trace_weight=trace_weight)
    for labels in (q, other)
)
for A in metrics:
    assert np.isclose(first.value(A), second.value(A), rtol=1e-10)
assert np.allclose(solve_m_step(first).metric, solve_m_step(second).metric, atol=1e-4)
print(f"A soft label differs by {np.max(np.abs(other - q)):.2f}, and the metric is the same.")
