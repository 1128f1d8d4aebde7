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
from seraph_cvx.numerics.psd_cone import project
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
# bound. Here are both bounds along a projected gradient method from the identity. Its step, due to
# Barzilai and Borwein, is the inverse of the curvature along the last step. The objective may rise
# in between; the bounds hold anyway.
A, step, records = np.eye(4), 1e-3, []
gradient = objective.gradient(A)
for number in range(500):
    certificate = certify(objective, A)
    records.append((number, certificate.primal_value, certificate.dual_value))
    if certificate.duality_gap <= 1e-8:
        break
    new = project(A - step * gradient)
    new_gradient = objective.gradient(new)
    moved = new - A
    step = np.vdot(moved, moved) / np.vdot(moved, new_gradient - gradient)
    A, gradient = new, new_gradient
print(f"after {number} steps the optimum lies in an interval of {certificate.duality_gap:.1e}")
assert certificate.duality_gap <= 1e-8
assert all(low <= optimum.value + 1e-9 <= high + 2e-9 for _, high, low in records)

# %%
# The picture shows how the bounds close in on the optimum, and compares the dual's p with the
# posterior.
figure = new_figure(32.0 / 3.0, 5.2, "Two problems, one value: M-step and maximum entropy")
grid = figure.add_gridspec(2, 2, width_ratios=[1.2, 1.0])
numbers, primal, lower = np.transpose(records)
ax = figure.add_subplot(grid[0, 0])
ax.fill_between(numbers, lower, primal, color=PALETTE[0], alpha=0.4)
ax.set(ylabel="value", title="The optimum is in the band")
enlarge_text(ax)
ax = figure.add_subplot(grid[1, 0])
ax.semilogy(numbers, np.maximum(primal - lower, 1e-16), color=PALETTE[2])
ax.set(xlabel="iteration", ylabel="duality gap")
enlarge_text(ax)
ax = figure.add_subplot(grid[:, 1])
ax.plot([0, 1], [0, 1], color="black", linewidth=1)
ax.plot(posterior, entropic, "o", color=PALETTE[2], alpha=0.5, markersize=5)
ax.set(xlabel="p(−1) by (8) at the optimal metric", ylabel="p(−1) by the dual")
ax.set_aspect("equal")
ax.set_title("The dual finds the posterior")
enlarge_text(ax)
figure.set_label("A band around the optimum narrows to nothing; all dots of p lie on the diagonal.")
