"""Problem set 2: from a metric to a likelihood.

The curvature of a pair's loss on paper, the M-step with one logistic term per pair in CVXPY, and a
second variable in which the same function is not convex.
"""

import cvxpy as cp
import numpy as np

from seraph_cvx import MStepObjective, PairSet, certify, certify_problem, paper

# %% The data: 8 points, five of known class, and the weights of all 28 pairs.
rng = np.random.default_rng(2)
X = rng.normal(size=(8, 2)) + np.repeat([[0.0, 0.0], [2.0, 0.0]], 4, axis=0)
pairs = PairSet.from_labels(X, [0, 0, 0, -1, 1, 1, -1, -1])
objective = MStepObjective(pairs, trace_weight=0.5)  # the paper's start: q(-1) = 1
mu, trace_weight, eta = objective.mu, objective.trace_weight, objective.threshold
V = paper.differences(X, np.vstack([pairs.similar, pairs.dissimilar, pairs.unlabeled]))
counts = [len(pairs.similar), len(pairs.dissimilar), pairs.n_unlabeled]
c, b = np.repeat([1.0, 1.0, mu], counts), np.repeat([0.0, 1.0, mu], counts)
G, beta = V.T @ (b[:, None] * V), np.sum(b)


# %% TODO 1. By hand. A pair that is told to be dissimilar pays ln(1 + e^{-s}), which is convex. Let
# it pay for its entropy as well: phi(s) = ln(1 + e^{-s}) + mu H(sigma(s)). Differentiate twice.
def curvature(s, mu):
    """phi''(s), for an array of scores s."""
    raise NotImplementedError(
        "TODO 1: ln p - ln(1 - p) = s at p = sigma(s), which makes the slope of the entropy short. "
        "Which factor do both terms have in common in the end?"
    )


def loss(s, mu):
    """phi(s)."""
    return np.logaddexp(0.0, -s) + mu * paper.entropy(1.0 / (1.0 + np.exp(-s)))


s, w = np.linspace(-8.0, 8.0, 161), 1e-3
for weight in (0.0, 0.5, 1.0, 3.0):
    bulge = loss(s + w, weight) - 2.0 * loss(s, weight) + loss(s - w, weight)
    assert np.allclose(curvature(s, weight), bulge / w**2, atol=1e-5)
assert np.all(curvature(s, 1.0) >= 0.0)
assert np.any(curvature(s, 1.01) < 0.0)
print("The label makes up for the bulge of the entropy as long as mu is at most 1.")


# %% TODO 2. In CVXPY. The M-step with one logistic term per pair, so that DCP accepts it:
# f(A) = sum_k c_k ln(1 + e^{s_k}) - <G, A> + eta beta + lambda tr(A).
def state_m_step(A):
    """The problem of minimizing f over the variable A, which is PSD."""
    raise NotImplementedError(
        "TODO 2: the scores are affine in A: cp.sum(cp.multiply(V @ A, V), axis=1) has v'Av of all "
        "pairs. Which function of cvxpy is the whole of ln(1 + e^x)? What is <G, A> in CVXPY?"
    )


A = cp.Variable((2, 2), PSD=True)
problem = state_m_step(A)
assert problem.is_dcp()
for L in rng.normal(size=(5, 2, 2)):
    A.value = L @ L.T
    assert np.isclose(problem.objective.value, objective.value(A.value))
problem.solve(solver="CLARABEL")
proved, judged = certify_problem(problem), certify(objective, A.value)
assert proved.relative_gap <= 1e-6
assert proved.lower <= judged.primal_value + 1e-9
assert judged.dual_value <= proved.upper + 1e-9
assert judged.relative_gap <= 1e-3
print(f"The optimum of the M-step is {proved.upper:.6f}, by two certificates.")


# %% TODO 3. Break it. f is convex in A. With A = LL' it is tempting to say: so it is convex in L.
def above_chord(function, one, other):
    """How far a function is above the mean of its ends, in the middle of a chord."""
    return function((one + other) / 2.0) - (function(one) + function(other)) / 2.0


def counterexample():
    """Two 2 x 2 factors between which f(LL') is above its chord, by 0.1 or more."""
    raise NotImplementedError(
        "TODO 3: different factors can have the same metric. Which simple one is the opposite of "
        "L, what is halfway between the two, and how good a metric is that?"
    )


one, other = (np.asarray(L, dtype=float) for L in counterexample())
assert above_chord(lambda L: objective.value(L @ L.T), one, other) >= 0.1
assert above_chord(objective.value, one @ one.T, other @ other.T) <= 1e-9  # the control: in A
print("Between the two factors f rises above its chord; between their metrics it does not.")
