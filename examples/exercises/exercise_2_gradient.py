"""Exercise 2: the posterior (8) and the gradient of the M-step, by hand.

The gradient says in one line what learning a metric is: of each pair, how dissimilar the metric
takes it to be, less how dissimilar it was told to be.
"""

import numpy as np

from seraph_cvx import MStepObjective, PairSet, paper

# %% The data: every pair as a row v, with its weight c and the weight b of its label -1.
rng = np.random.default_rng(1)
X = rng.normal(size=(15, 3))
pairs = PairSet.from_labels(X, [0, 0, 0, 1, 1, 1, *[-1] * 9])
q = rng.random(pairs.n_unlabeled)  # q(+1)
mu, trace_weight, eta = 0.4, 0.3, 1.5
rows = np.vstack([pairs.similar, pairs.dissimilar, pairs.unlabeled])
V = paper.differences(X, rows)
counts = [len(pairs.similar), len(pairs.dissimilar), pairs.n_unlabeled]
c = np.repeat([1.0, 1.0, mu], counts)
b = np.concatenate([np.zeros(counts[0]), np.ones(counts[1]), mu * (1.0 - q)])
objective = MStepObjective(
    pairs, soft_labels=q, unlabeled_weight=mu, trace_weight=trace_weight, threshold=eta
)


# %% TODO 1. The score of a pair: how much its squared distance under A exceeds the threshold.
def scores(A):
    """s = v'Av - eta for each row of V."""
    raise NotImplementedError(
        "TODO 1: v'Av is a sum over two indices of v, for each row. Which function of NumPy "
        "sums products over the indices that you name?"
    )


assert np.allclose(scores(np.eye(3)), np.sum(V**2, axis=1) - eta)
assert np.allclose(scores(np.zeros((3, 3))), -eta)


# %% TODO 2. The posterior (8) of the label -1. Mind the overflow: s may be 10,000.
def probability_dissimilar(s):
    """p(-1) = 1 / (1 + e^{-s}), for any s without a warning."""
    raise NotImplementedError(
        "TODO 2: for which s does e^{-s} overflow? Write the same fraction in another way "
        "for those, so that no exponent is positive."
    )


with np.errstate(all="raise", under="ignore"):
    assert np.allclose(probability_dissimilar(np.array([-1e4, 0.0, 1e4])), [0.0, 0.5, 1.0])
assert np.allclose(probability_dissimilar(np.array([2.0])), 1.0 / (1.0 + np.exp(-2.0)))


# %% TODO 3. Differentiate f(A) = sum_k [c_k log(1 + e^{s_k}) - b_k s_k] + lambda tr(A).
def gradient(A):
    """The derivative of f at A, an m x m matrix."""
    raise NotImplementedError(
        "TODO 3: the chain rule, pair by pair: first the derivative in s, then that of s in "
        "A. By which name do you know the derivative of log(1 + e^s)?"
    )


# %% The check: against differences of f, which know nothing of your formula, and the package.
for _ in range(10):
    F, D = rng.normal(size=(2, 3, 3))
    A, D = F @ F.T, D + D.T
    ahead, behind = objective.value(A + 1e-5 * D), objective.value(A - 1e-5 * D)
    assert np.isclose(np.sum(gradient(A) * D), (ahead - behind) / 2e-5, rtol=1e-5, atol=1e-5)
    assert np.allclose(gradient(A), objective.gradient(A))
print("The gradient is right: sum of (taken for dissimilar - told dissimilar) vv', plus lambda I.")
