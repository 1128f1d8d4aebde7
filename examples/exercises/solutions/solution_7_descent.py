"""Exercise 7: what the alternation of E-step and M-step descends, and that it is not (7).

Each half step of the alternation minimizes something. Write down what, and watch it fall; then
watch the paper's objective (7), which was to be optimized, rise.
"""

import numpy as np

from seraph_cvx import MStepObjective, PairSet, e_step, solve_m_step

# %% The data: six points on a line, three of known class.
X = np.array([[0.1], [2.0], [1.8], [-0.8], [-0.4], [-0.8]])
pairs = PairSet.from_labels(X, [0, 0, 1, -1, -1, -1])
mu, trace_weight, eta = 1.0, 0.1, 1.0
V_similar, V_dissimilar, V_unlabeled = (
    X[rows[:, 0]] - X[rows[:, 1]] for rows in (pairs.similar, pairs.dissimilar, pairs.unlabeled)
)


def surprises(V, A):
    """-ln p(+1) and -ln p(-1) of each row of V, by (8)."""
    s = np.einsum("ki,ij,kj->k", V, A, V) - eta
    return np.logaddexp(0.0, s), np.logaddexp(0.0, -s)


def labeled_part(A):
    """-sum_SD ln p(y) + lambda tr(A): the same in (7), in (11) and in J."""
    near, far = surprises(V_similar, A)[0], surprises(V_dissimilar, A)[1]
    return np.sum(near) + np.sum(far) + trace_weight * np.trace(A)


def entropy(q):
    """H(q) = -q ln q - (1 - q) ln(1 - q), with 0 ln 0 = 0."""
    ends = [np.where(x > 0.0, -x * np.log(np.where(x > 0.0, x, 1.0)), 0.0) for x in (q, 1.0 - q)]
    return ends[0] + ends[1]


# %% TODO 1. The paper's objective (7), as a minimization.
def objective_7(A):
    """labeled_part(A) + mu sum_U H(p)."""
    near, far = surprises(V_unlabeled, A)
    return labeled_part(A) + mu * np.sum(np.exp(-near) * near + np.exp(-far) * far)


zero = np.zeros((1, 1))
p = 1.0 / (1.0 + np.exp(-eta))  # p(+1) of every pair at A = 0
expected = labeled_part(zero) + mu * len(V_unlabeled) * entropy(np.array(p))
assert np.isclose(objective_7(zero), expected)


# %% TODO 2. One function J(q, A) that the E-step (10) minimizes over q and the M-step (11) over A.
# (9), divided by 1 + mu, is E_q[-ln p] - H(q)/(1 + mu); the M-step does not see H(q).
def descent(q, A):
    """J(q, A); q is q(+1) of each unlabeled pair."""
    near, far = surprises(V_unlabeled, A)
    expected_surprise = q * near + (1.0 - q) * far
    return labeled_part(A) + mu * np.sum(expected_surprise - entropy(q) / (1.0 + mu))


# %% The alternation, from the paper's start q(-1) = 1; J after every half step.
q = np.zeros(pairs.n_unlabeled)
J, seven = [], []
for _ in range(6):
    objective = MStepObjective(
        pairs, soft_labels=q, unlabeled_weight=mu, trace_weight=trace_weight, threshold=eta
    )
    A = solve_m_step(objective, tol=1e-9).metric
    J.append(descent(q, A))
    q = e_step(pairs, A, unlabeled_weight=mu, threshold=eta)
    J.append(descent(q, A))
    seven.append(objective_7(A))

# %% The check: J is what each half step minimizes, so it never rises; (7) does.
for nudge in (-1e-3, 1e-3):
    assert descent(np.clip(q + nudge, 0.0, 1.0), A) >= descent(q, A)
assert np.all(np.diff(J) <= 1e-8)
assert J[-1] < J[0] - 0.1
assert np.max(np.diff(seven)) > 0.1
print("J   ", np.round(J, 4))
print("(7) ", np.round(seven, 4))
print("J falls at every half step; (7) rises.")
