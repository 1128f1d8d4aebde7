"""Problem set 3: the dual.

The conjugate of another loss on paper, the dual of the M-step in CVXPY with the metric as its
multiplier, and a "bound" that is none, because its point is not feasible.
"""

import cvxpy as cp
import numpy as np

from seraph_cvx import MStepObjective, PairSet, certify, certify_problem, paper, solve_m_step

# %% The data: 8 points, five of known class, and the weights of all 28 pairs.
rng = np.random.default_rng(3)
X = rng.normal(size=(8, 2)) + np.repeat([[0.0, 0.0], [2.0, 0.0]], 4, axis=0)
pairs = PairSet.from_labels(X, [0, 0, 0, -1, 1, 1, -1, -1])
objective = MStepObjective(pairs, trace_weight=0.5)
mu, trace_weight, eta = objective.mu, objective.trace_weight, objective.threshold
V = paper.differences(X, np.vstack([pairs.similar, pairs.dissimilar, pairs.unlabeled]))
counts = [len(pairs.similar), len(pairs.dissimilar), pairs.n_unlabeled]
c, b = np.repeat([1.0, 1.0, mu], counts), np.repeat([0.0, 1.0, mu], counts)
best = certify(objective, solve_m_step(objective, tol=1e-9).metric)


def squared_hinge(s):
    """phi(s) = max(0, 1 + s)^2: no loss for a pair that is near by a margin of 1."""
    return np.maximum(0.0, 1.0 + s) ** 2


# %% TODO 1. By hand. Section 3.3 for the squared hinge in place of the logistic term: the largest
# p s - phi(s) over all numbers s.
def conjugate(p):
    """phi*(p) for a number p; np.inf where there is no largest value."""
    raise NotImplementedError(
        "TODO 1: for which s is the slope of phi equal to p? Put it in. Then look at a line that "
        "falls, p < 0: how far below the curve can it get to lie on the left?"
    )


s = np.linspace(-30.0, 30.0, 60001)
for p in (0.0, 0.1, 0.5, 1.0, 2.0, 7.0, 20.0):
    assert np.isclose(conjugate(p), np.max(p * s - squared_hinge(s)), atol=1e-6)
for p in (-0.1, -3.0):
    assert conjugate(p) == np.inf
print("The conjugate of the squared hinge touches the curve at every slope.")


# %% TODO 2. In CVXPY. The dual of the M-step: maximize D(p) = sum_k c_k H(p_k) - eta (sum_k c_k p_k
# - beta) subject to M(p) = sum_k (c_k p_k - b_k) v_k v_k' + lambda I PSD, beta = sum_k b_k.
def state_dual(p):
    """The dual in the variable p, one number for each row of V; its first constraint is on M(p)."""
    raise NotImplementedError(
        "TODO 2: cp.entr(p) is -p ln p, and H(p) has another term. V.T @ cp.diag(w) @ V is a sum "
        "of w_k v_k v_k'. Outside [0, 1] the entropy is -infinity by itself."
    )


p = cp.Variable(len(V))
dual = state_dual(p)
assert dual.is_dcp()
dual.solve(solver="CLARABEL")
proved = certify_problem(dual)
assert proved.relative_gap <= 1e-6
assert proved.lower <= best.primal_value + 1e-9  # no gap between the dual and the M-step
assert proved.upper >= best.dual_value - 1e-9
metric = dual.constraints[0].dual_value
assert certify(objective, metric).relative_gap <= 1e-3
print(f"The dual has the value {proved.upper:.6f}, and its multiplier is the optimal metric.")


# %% TODO 3. Break it. "Every p in [0, 1] gives a lower bound D(p) on f." Not without M(p) PSD.
def dual_value(p):
    """D(p)."""
    return c @ paper.entropy(p) - eta * (c @ p - np.sum(b))


def least_eigenvalue(p):
    """The least eigenvalue of M(p)."""
    return np.linalg.eigvalsh(V.T @ ((c * p - b)[:, None] * V) + trace_weight * np.eye(2))[0]


def false_bound():
    """A vector p in [0, 1] with D(p) above the optimum by 1 or more."""
    raise NotImplementedError(
        "TODO 3: forget the constraint. Which p is best for one pair alone, so where is the slope "
        "of H(p) - eta p zero? (The slope of H is ln((1 - p)/p).)"
    )


p = np.asarray(false_bound(), dtype=float)
assert p.shape == (len(V),)
assert np.all((p >= 0.0) & (p <= 1.0))
assert dual_value(p) >= best.primal_value + 1.0
assert least_eigenvalue(p) < -1e-3
for tau in np.linspace(0.0, 1.0, 101):  # the control: toward the anchor 1, where M is PSD
    mixture = tau * p + (1.0 - tau)
    assert least_eigenvalue(mixture) < 0.0 or dual_value(mixture) <= best.primal_value + 1e-9
print(f"D(p) = {dual_value(p):.3f} is no bound: the optimum is {best.primal_value:.3f}.")
