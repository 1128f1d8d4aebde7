"""Exercise 7: what the alternation of E-step and M-step descends, and that it is not (7).

Each half step of the alternation minimizes something. Write down what, and watch it fall; then
watch the paper's objective (7), which was to be optimized, rise.
"""

import numpy as np

from seraph_cvx import MStepObjective, PairSet, e_step, solve_m_step
from seraph_cvx.paper import entropy, log_posterior, squared_distances

# %% The data: six points on a line, three of known class.
X = np.array([[0.1], [2.0], [1.8], [-0.8], [-0.4], [-0.8]])
pairs = PairSet.from_labels(X, [0, 0, 1, -1, -1, -1])
mu, trace_weight, eta = 1.0, 0.1, 1.0


def surprises(rows, A):
    """-ln p(+1) and -ln p(-1) of each of these pairs, by (8)."""
    d = squared_distances(X, rows, A)
    return -log_posterior(d, 1.0, eta), -log_posterior(d, -1.0, eta)


def labeled_part(A):
    """-sum_SD ln p(y) + lambda tr(A): the same in (7), in (11) and in J."""
    near, far = surprises(pairs.similar, A)[0], surprises(pairs.dissimilar, A)[1]
    return np.sum(near) + np.sum(far) + trace_weight * np.trace(A)


# %% TODO 1. The paper's objective (7), as a minimization.
def objective_7(A):
    """labeled_part(A) + mu sum_U H(p)."""
    raise NotImplementedError(
        "TODO 1: an entropy is a surprise that is expected under p itself. `surprises` has "
        "the surprise at each label; how does p(y) follow from it?"
    )


zero = np.zeros((1, 1))
p = 1.0 / (1.0 + np.exp(-eta))  # p(+1) of every pair at A = 0
expected = labeled_part(zero) + mu * pairs.n_unlabeled * entropy(np.array(p))
assert np.isclose(objective_7(zero), expected)


# %% TODO 2. One function J(q, A) that the E-step (10) minimizes over q and the M-step (11) over A.
# (9), divided by 1 + mu, is E_q[-ln p] - H(q)/(1 + mu); the M-step does not see H(q).
def descent(q, A):
    """J(q, A); q is q(+1) of each unlabeled pair."""
    raise NotImplementedError(
        "TODO 2: begin with what the M-step minimizes over A. Which term in q alone may be "
        "added, so that the E-step minimizes the same function? Mind its sign and its "
        "factor."
    )


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
