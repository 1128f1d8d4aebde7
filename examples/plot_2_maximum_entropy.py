"""
The dual of the M-step is a maximum-entropy problem, and its multiplier is the metric
=====================================================================================

Primal and dual have the same optimal value. So any feasible point of the dual proves how far a
metric is from the optimum, no matter who found it.
"""

import numpy as np
from sklearn.datasets import load_iris

from seraph_cvx import MStepObjective, PairSet, certify, solve_m_step, state_m_step
from seraph_cvx.model.posterior import posterior_similar
from seraph_cvx.plots.style import PALETTE, enlarge_text, new_figure

# %%
# Every third iris, nine of these 50 with a label: 36 labeled pairs and 1189 others.
X, classes = load_iris(return_X_y=True)
X, classes = X[::3], classes[::3]
y = np.full(len(classes), -1)
for label in range(3):
    y[np.flatnonzero(classes == label)[::6][:3]] = label
pairs = PairSet.from_labels(X, y)
objective = MStepObjective(pairs)

# %%
# The dual gives each pair a probability :math:`p_k = p_k(-1)` of being dissimilar, as undecided as
# possible:
#
# .. math:: \max_p \; \sum_k c_k H(p_k) - \eta \left(\sum_k c_k p_k - \beta\right)
#
# subject to :math:`M(p) \succeq 0`: the moment of the pairs that :math:`p` calls dissimilar must
# not be less than the moment of the pairs that are given as dissimilar.
dual = state_m_step(objective, "dual")
dual.solve(solver="CLARABEL")
print(dual.objective.format_labeled())

# %%
# By strong duality its value is that of the primal, which our own solver computes independently.
optimum = solve_m_step(objective)
print(f"dual {dual.value:.8f}, primal {optimum.value:.8f}")
assert np.isclose(dual.value, optimum.value, rtol=1e-6)

# %%
# The multiplier of :math:`M(p) \succeq 0` is the metric, and :math:`p` is its posterior (8).
multiplier = dual.constraints[0].dual_value
assert np.allclose(multiplier, optimum.metric, atol=1e-3 * np.trace(optimum.metric))
by_name = {variable.name(): variable.value for variable in dual.variables()}
entropic = np.concatenate([by_name["p"], by_name["p_unlabeled"]])
rows = np.vstack([pairs.labeled, pairs.unlabeled])
V = X[rows[:, 0]] - X[rows[:, 1]]
scores = np.einsum("ki,ij,kj->k", V, optimum.metric, V) - objective.threshold
posterior = 1.0 - posterior_similar(scores)
assert np.max(np.abs(entropic - posterior)) < 1e-3

# %%
# What is this good for? From any metric the referee makes a feasible :math:`p`, and so a lower
# bound. Here are both bounds on the way from the identity to the optimum.
steps = np.linspace(0.0, 1.0, 41)
proofs = [certify(objective, (1.0 - t) * np.eye(4) + t * optimum.metric) for t in steps]
primal, lower = np.transpose([(proof.primal_value, proof.dual_value) for proof in proofs])
print(f"the last interval is {proofs[-1].duality_gap:.1e} wide")
assert proofs[-1].duality_gap <= 1e-8
assert np.all((lower <= optimum.value + 1e-8) & (optimum.value <= primal + 1e-8))

# %%
# The picture shows how the bounds close in on the optimum, and compares the dual's p with the
# posterior.
figure = new_figure(32.0 / 3.0, 4.6, "Two problems, one value: M-step and maximum entropy")
left, right = figure.subplots(1, 2)
left.fill_between(steps, lower, primal, color=PALETTE[0], alpha=0.4)
left.set(xlabel="from the identity to the optimum", title="The optimum is in the band")
right.plot(posterior, entropic, "o", color=PALETTE[2], alpha=0.5, markersize=5)
right.set(xlabel="p(−1) by (8) at the optimal metric", ylabel="p(−1) by the dual")
right.set_title("The dual finds the posterior")
figure.set_label("A band around the optimum narrows to nothing; all dots of p lie on the diagonal.")
for ax in (left, right):
    enlarge_text(ax)
