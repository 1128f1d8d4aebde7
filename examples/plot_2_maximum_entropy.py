"""
The dual of the M-step is a maximum-entropy problem, and its multiplier is the metric
=====================================================================================

Primal and dual have the same optimal value. So any feasible point of the dual proves how far a
metric is from the optimum, whoever found it.
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
# The dual gives each pair a probability p of being dissimilar, as undecided as possible,
#
#     maximize sum_k c_k H(p_k) - eta (sum_k c_k p_k - beta)
#
# as long as the pairs called dissimilar, with v v' each, outweigh those told so: M(p) PSD.
dual = state_m_step(objective, "dual")
dual.solve(solver="CLARABEL")
print(dual.objective.format_labeled())

# %%
# Strong duality: its value is that of the primal, to which our own solver has no other tie.
optimum = solve_m_step(objective)
print(f"dual {dual.value:.8f}, primal {optimum.value:.8f}")
assert np.isclose(dual.value, optimum.value, rtol=1e-6)

# %%
# The multiplier of M(p) PSD is the metric, and the p are the posterior (8) of that metric.
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
# What is it good for? From any metric the referee makes a feasible p, and so a lower bound. Here
# are both bounds along a projected gradient from the identity. Its step, after Barzilai and
# Borwein, is the inverse of the curvature that the last step has seen; f may rise in between, and
# the bounds do not mind.
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
# The bounds closing on the optimum; and p of the dual against the posterior.
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
ax.set(xlabel="p(−1) by (8) at the optimal metric", ylabel="p of the maximum-entropy dual")
ax.set_aspect("equal")
ax.set_title("The p of the dual is the posterior")
enlarge_text(ax)
