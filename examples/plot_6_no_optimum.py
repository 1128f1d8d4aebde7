"""
When an M-step has no optimum, and how one is told
==================================================

Without a trace penalty the objective (11) usually falls for ever along some direction. That is
decided before any solver starts, and answered with the direction, the pair and the cure.
"""

import numpy as np

from seraph_cvx import MStepObjective, OptimumNotAttained, PairSet, solve_m_step
from seraph_cvx.plots.style import PALETTE, enlarge_text, new_figure

# %%
# Two classes, two columns. Similar pairs differ in the vertical feature only; so nothing holds
# the metric back from stretching the horizontal one, and every dissimilar pair asks it to.
X = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 2.0], [1.0, 0.3], [1.0, 1.2], [1.0, 2.2]])
pairs = PairSet.from_labels(X, [0, 0, 0, 1, 1, 1])
objective = MStepObjective(pairs, trace_weight=0.0)

# %%
# f falls along a direction that lies in the null space of M(1) = sum (c - b) v v' + lambda I and
# that some dissimilar pair has a part in. It is a question of rank, so no solver has to wander.
assert not objective.attains_optimum
try:
    solve_m_step(objective)
except OptimumNotAttained as error:
    refused = error
print(refused)
u = refused.direction
i, j = refused.pair
assert np.allclose(np.abs(u), [1.0, 0.0])
assert abs((X[i] - X[j]) @ u) > 0.9

# %%
# The direction keeps its promise: f falls with every doubling of the metric along it.
along = np.outer(u, u)
values = [objective.value(t * along) for t in 2.0 ** np.arange(5)]
assert np.all(np.diff(values) < 0.0)

# %%
# The cure is any trace weight above zero. Each has an optimum with a certificate, and as the
# weight falls the optima run away along u.
weights = [3.0, 1.0, 0.3, 0.1, 0.03, 0.01]
optima = [solve_m_step(objective.with_trace_weight(weight)) for weight in weights]
assert all(optimum.relative_gap <= 1e-8 for optimum in optima)
lengths = [u @ optimum.metric @ u for optimum in optima]
print("A along u, as the trace weight falls:", np.round(lengths, 2))
assert np.all(np.diff(lengths) > 0.5)

# %%
# f without a trace penalty on a slice of the cone, x uu' + y ww', and the optima with ever less of
# it, projected onto the slice.
w = u[::-1] * [1.0, -1.0]
x, y = np.linspace(-1.0, 10.0, 45), np.linspace(-1.0, 2.0, 45)
on_slice = [[objective.value(a * along + b * np.outer(w, w)) for a in x] for b in y]
path = np.array([[u @ optimum.metric @ u, w @ optimum.metric @ w] for optimum in optima])
figure = new_figure(8.4, 6.0, "λ = 0: f falls for ever along uuᵀ, and the optima run after it")
ax = figure.subplots()
figure.colorbar(ax.contourf(x, y, on_slice, levels=15, cmap="cividis_r"), label="f(A), eq. (11)")
ax.plot([0.0, 0.0, 10.0], [2.0, 0.0, 0.0], color="black", label="boundary of the cone")
ax.plot(*path.T, "o-", color=PALETTE[1], label="optima, λ from 3 to 0.01")
ax.set(xlabel="x, along uuᵀ", ylabel="y, along wwᵀ")
ax.legend()
enlarge_text(ax)
