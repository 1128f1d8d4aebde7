"""Exercise 1: prove by rules that the M-step (11) is convex, and by two points that (7) is not.

Disciplined convex programming (DCP) looks at how a function is written. Its rules can prove that a
function is convex; they cannot prove that one is not. For that you need a counterexample.
"""

import cvxpy as cp
import numpy as np

from seraph_cvx import MStepObjective, PairSet, paper

# %% The data: 12 points in two classes; of six the class is not told.
rng = np.random.default_rng(0)
X = rng.normal(size=(12, 2)) + np.repeat([[0.0, 0.0], [2.0, 0.0]], 6, axis=0)
pairs = PairSet.from_labels(X, [0, 0, 0, -1, -1, -1, 1, 1, 1, -1, -1, -1])
S, D, U = pairs.similar, pairs.dissimilar, pairs.unlabeled
V_similar, V_dissimilar, V_unlabeled = (paper.differences(X, rows) for rows in (S, D, U))
q = rng.random(pairs.n_unlabeled)  # the soft label q(+1) of each unlabeled pair
mu, trace_weight, eta = 0.5, 0.1, 1.0


def scores(V, A):
    """s = v'Av - eta for each row v of V: affine in A, and CVXPY knows it."""
    return cp.sum(cp.multiply(V @ A, V), axis=1) - eta


# %% TODO 1. By (8) p(y) = 1 / (1 + e^{y s}), so -ln p(y) = log(1 + e^{y s}). Write it so that
# CVXPY can see that it is convex.
def surprise(label, s):
    """-ln p(label) for each score, as a CVXPY expression; `label` is +1 or -1."""
    raise NotImplementedError(
        "TODO 1: no rule covers a logarithm of a sum that is written out. Which function of "
        "cvxpy is the whole of log(1 + e^x)? Its documentation lists them all."
    )


A = cp.Variable((2, 2), PSD=True)
s_unlabeled = scores(V_unlabeled, A)
assert surprise(1, s_unlabeled).is_convex()
assert surprise(-1, s_unlabeled).is_convex()
assert not cp.log(1 + cp.exp(s_unlabeled)).is_dcp()  # the same function: no rule covers it


# %% TODO 2. Put the M-step together: -F(A) of (11), to be minimized.
def m_step_loss(A):
    """-F(A): labeled pairs, mu times the unlabeled ones weighed by q, lambda tr(A)."""
    raise NotImplementedError(
        "TODO 2: a sum for each kind of pair, and the trace. Which labels does an unlabeled "
        "pair have, and how much does each of them weigh?"
    )


problem = cp.Problem(cp.Minimize(m_step_loss(A)))
objective = MStepObjective(
    pairs, soft_labels=q, unlabeled_weight=mu, trace_weight=trace_weight, threshold=eta
)
for _ in range(5):
    F = rng.normal(size=(2, 2))
    A.value = F @ F.T
    assert np.isclose(m_step_loss(A).value, objective.value(A.value))
assert problem.is_dcp()
print("The M-step is convex: every node of its expression is covered by a DCP rule.")

# %% In (7) the entropy of p stands where the M-step has the soft labels. DCP has no rule for it.
p = cp.inv_pos(1 + cp.exp(s_unlabeled))
assert not (cp.sum(cp.entr(p)) + cp.sum(cp.entr(1 - p))).is_dcp()


def objective_7(A):
    """(7) with its sign turned: labeled pairs + mu sum_U H(p) + lambda tr(A)."""
    return -paper.simplified_objective(X, S, D, U, A, mu=mu, lam=trace_weight, eta=eta)


# %% TODO 3. "No rule covers it" is no proof. Find two PSD matrices that break the inequality
# objective_7((A + B)/2) <= (objective_7(A) + objective_7(B))/2.
def counterexample():
    """Two PSD matrices between which objective_7 bulges upwards."""
    raise NotImplementedError(
        "TODO 3: metrics that differ by one number are enough. For which scores is H(p) "
        "largest, and where must the two ends of a chord lie to pass below that?"
    )


one, other = counterexample()
assert min(np.linalg.eigvalsh(one)[0], np.linalg.eigvalsh(other)[0]) >= 0.0
excess = objective_7((one + other) / 2.0) - (objective_7(one) + objective_7(other)) / 2.0
assert excess > 1e-3
print(f"(7) is not: at a midpoint it is {excess:.3f} above the mean of the two ends.")
