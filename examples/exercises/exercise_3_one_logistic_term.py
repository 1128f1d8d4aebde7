"""Exercise 3: one logistic term per pair instead of two, and what the soft labels come to.

(11) has two logarithms for each unlabeled pair, one for each label. One is enough, and then the
soft labels of all the pairs enter through one small matrix and one number only.
"""

import numpy as np

from seraph_cvx import MStepObjective, PairSet, paper, solve_m_step

# %% The data: 20 points in R^2, so 190 pairs; 175 of them are unlabeled.
rng = np.random.default_rng(2)
X = rng.normal(size=(20, 2)) + np.repeat([[0.0, 0.0], [2.5, 0.0]], 10, axis=0)
pairs = PairSet.from_labels(X, [0, 0, 0, *[-1] * 7, 1, 1, 1, *[-1] * 7])
mu, trace_weight, eta = 0.2, 0.5, 1.0
S, D, U = pairs.similar, pairs.dissimilar, pairs.unlabeled
V_similar, V_dissimilar, V_unlabeled = (paper.differences(X, rows) for rows in (S, D, U))
q = rng.uniform(0.2, 0.8, size=pairs.n_unlabeled)  # q(+1)


def scores(V, A):
    """s = v'Av - eta for each row of V."""
    return np.einsum("ki,ij,kj->k", V, A, V) - eta


def two_terms(A):
    """-F(A), (11): -ln p(+1) = log(1 + e^s) and -ln p(-1) = log(1 + e^{-s}), weighed by q."""
    return -paper.m_step(X, S, D, U, q, A, mu=mu, lam=trace_weight, eta=eta)


# %% TODO 1. Since log(1 + e^{-s}) = log(1 + e^s) - s, every pair has the same logistic term, and
# what is left over is linear in A. Collect it, over the dissimilar and the unlabeled pairs.
def label_sums(q):
    """G = sum_k b_k v_k v_k' and beta = sum_k b_k; b is 1 if dissimilar, mu q(-1) if unlabeled."""
    raise NotImplementedError(
        "TODO 1: put log(1 + e^s) - s for each log(1 + e^{-s}) of (11). Which pairs leave "
        "something over, and with which weight?"
    )


# %% TODO 2. The M-step with one logistic term per pair, from G and beta alone: no q in it.
def one_term(A, G, beta):
    """sum_k c_k log(1 + e^{s_k}) - <G, A> + eta*beta + lambda tr(A)."""
    raise NotImplementedError(
        "TODO 2: every pair has one logistic term now. How much does it weigh, labeled and "
        "unlabeled? Which inner product of matrices is <G, A>?"
    )


G, beta = label_sums(q)
metrics = [F @ F.T for F in rng.normal(size=(20, 2, 2))]
for A in metrics:
    assert np.isclose(one_term(A, G, beta), two_terms(A))
print(f"{pairs.n_unlabeled} soft labels reach the M-step through {G.size} entries and a number.")


# %% TODO 3. So other soft labels with the same G and beta give the same M-step. Find some.
def twin(q):
    """Soft labels in [0, 1], some of them 0.1 or more away from q, with the G and beta of q."""
    raise NotImplementedError(
        "TODO 3: how many numbers are in q, and how many equations are G and beta? A change "
        "that no equation notices is in a null space; how far can you go along it?"
    )


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
