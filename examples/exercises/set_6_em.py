"""Problem set 6: EM, and learning from unlabeled points.

The best soft label on paper, an E-step with a condition on all pairs in CVXPY, and two starts from
which the alternation ends at different values of J.
"""

import cvxpy as cp
import numpy as np

from seraph_cvx import (
    MStepObjective,
    PairSet,
    certify,
    certify_problem,
    e_step,
    paper,
    solve_m_step,
)

# %% The data: five points on a line, two of them of known class.
X = np.array([[0.0], [2.0], [1.0], [1.1], [0.9]])
pairs = PairSet.from_labels(X, [0, 1, -1, -1, -1])
mu, trace_weight, eta, a = 2.0, 0.1, 1.0, 2.0


def payment(q, s, a):
    """What an unlabeled pair pays in J, divided by mu: E_q[-ln p] - H(q)/a, with q for q(+1)."""
    return q * np.logaddexp(0.0, s) + (1.0 - q) * np.logaddexp(0.0, -s) - paper.entropy(q) / a


# %% TODO 1. By hand. The soft label q(+1) that pays least, for a pair with the score s.
def best_soft_label(s, a):
    """q(+1) as a function of the scores s, an array, and of the sharpness a."""
    raise NotImplementedError(
        "TODO 1: set the derivative in q to zero. The slope of H(q) is ln((1 - q)/q), and the two "
        "logistic terms differ by s. For which s should q(+1) be large?"
    )


grid = np.linspace(0.0, 1.0, 10001)
for sharpness in (1.0, 1.5, 4.0):
    for s in (-3.0, -0.5, 0.0, 0.2, 2.0):
        best = best_soft_label(np.array(s), sharpness)
        assert 0.0 <= best <= 1.0
        assert payment(best, s, sharpness) <= np.min(payment(grid, s, sharpness)) + 1e-12
metric = np.array([[1.3]])
scores = paper.squared_distances(X, pairs.unlabeled, metric) - eta
soft_labels = e_step(pairs, metric, unlabeled_weight=mu, threshold=eta, sharpness=a)
assert np.allclose(best_soft_label(scores, a), soft_labels)
print("No soft label on a grid of 10,001 pays less; e_step returns the same.")


# %% TODO 2. In CVXPY. Suppose you know that a certain share of the unlabeled pairs is similar, or
# more. State the E-step under that condition: the mean of q(+1) is at least `share`.
def state_e_step(q, s, a, share):
    """Minimize the sum of the payments over q, a variable with an entry for each score in s."""
    raise NotImplementedError(
        "TODO 2: the logistic terms are data here: np.logaddexp(0.0, s). cp.entr(q) is -q ln q; "
        "what else is in H(q)? With which sign may a concave function stand here?"
    )


def with_a_price(share):
    """The same by another way: every score is lowered by one price, the least that will do."""
    low, high = -100.0, 100.0
    for _ in range(100):
        price = (low + high) / 2.0
        enough = np.mean(best_soft_label(scores - price, a)) >= share
        low, high = (low, price) if enough else (price, high)
    return best_soft_label(scores - max(0.0, high), a)


for share in (0.0, 0.5, 0.8):
    q = cp.Variable(len(scores))
    problem = state_e_step(q, scores, a, share)
    assert problem.is_dcp()
    problem.solve(solver="CLARABEL")
    proved = certify_problem(problem)
    best = with_a_price(share)
    expected = np.sum(payment(best, scores, a))
    assert proved.relative_gap <= 1e-6
    assert proved.lower - 1e-6 <= expected <= proved.upper + 1e-6
    assert np.allclose(q.value, best, atol=1e-3)
print("With the condition, every score is lowered by the same price; the optimum is proved.")


# %% The alternation from a metric, a number on a line: E-step, M-step, until it stays.
def m_step(metric, mu):
    """The M-step with the soft labels of a metric."""
    soft_labels = e_step(pairs, metric, unlabeled_weight=mu, threshold=eta, sharpness=a)
    return MStepObjective(
        pairs, soft_labels, unlabeled_weight=mu, trace_weight=trace_weight, threshold=eta
    )


def alternate(start, mu):
    """Where the alternation ends: the metric, and J there."""
    metric = np.array([[float(start)]])
    for _ in range(300):
        before, metric = metric, solve_m_step(m_step(metric, mu), tol=1e-10).metric
        if np.abs(metric - before) <= 1e-8:
            break
    own = m_step(metric, mu)
    assert certify(own, metric).relative_gap <= 1e-6  # it solves its own M-step: a fixed point
    q = e_step(pairs, metric, unlabeled_weight=mu, threshold=eta, sharpness=a)
    return metric[0, 0], own.value(metric) - mu * np.sum(paper.entropy(q)) / a


# %% TODO 3. Break it. "Each half step is a convex problem, so every start ends at the same J."
def two_starts():
    """Two numbers A >= 0 from which the alternation ends at values of J 1 or more apart."""
    raise NotImplementedError(
        "TODO 3: a pair that the start takes for similar gets a soft label that says so. Which "
        "starts take the unlabeled pairs for similar, and which for dissimilar?"
    )


one, other = two_starts()
assert min(one, other) >= 0.0
(A, J), (B, other_J) = alternate(one, mu), alternate(other, mu)
assert abs(J - other_J) >= 1.0
assert np.isclose(alternate(one, 0.0)[1], alternate(other, 0.0)[1])  # the control: one convex step
print(f"Two fixed points: J = {J:.3f} at A = {A:.3f}, and J = {other_J:.3f} at A = {B:.3f}.")
