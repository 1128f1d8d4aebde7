"""
How an M-step without an optimum is detected
============================================

Without a trace penalty the objective (11) usually falls forever along some direction. This is
detected before any solver starts, and the error names the direction, the pair and the cure.
"""

from textwrap import fill

import numpy as np

from seraph_cvx import MStepObjective, OptimumNotAttained, PairSet, solve_m_step
from seraph_cvx.plots.style import PALETTE, enlarge_text, new_figure

# %%
# Two classes form two columns. Similar pairs differ only in the vertical feature, so nothing keeps
# the metric from stretching the horizontal one, and every dissimilar pair pulls it that way.
X = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 2.0], [1.0, 0.3], [1.0, 1.2], [1.0, 2.2]])
pairs = PairSet.from_labels(X, [0, 0, 0, 1, 1, 1])
objective = MStepObjective(pairs, trace_weight=0.0)

# %%
# The objective falls forever along a direction in the null space of :math:`\sum_k (c_k - b_k) v_k
# v_k^\top + \lambda I` that is not orthogonal to some dissimilar pair. This is a question of rank,
# so no solver has to run.
assert not objective.attains_optimum
try:
    solve_m_step(objective)
except OptimumNotAttained as error:
    refused = error
print(fill(str(refused), 76))
u = refused.direction
i, j = refused.pair
assert np.allclose(np.abs(u), [1.0, 0.0])
assert abs((X[i] - X[j]) @ u) > 0.9

# %%
# Along this direction f falls with every doubling of the metric.
along = np.outer(u, u)
values = [objective.value(t * along) for t in 2.0 ** np.arange(5)]
assert np.all(np.diff(values) < 0.0)

# %%
# Any trace weight above zero is a cure: it gives an optimum with a certificate. As the weight
# falls, the optima run away along :math:`u`.
weights = [3.0, 1.0, 0.3, 0.1, 0.03, 0.01]
optima = [solve_m_step(objective.with_trace_weight(weight)) for weight in weights]
assert all(optimum.relative_gap <= 1e-8 for optimum in optima)
lengths = [u @ optimum.metric @ u for optimum in optima]
print("A along u, as the trace weight falls:", np.round(lengths, 2))
assert np.all(np.diff(lengths) > 0.5)

# %%
# The picture shows f without a trace penalty on the slice :math:`x u u^\top + y w w^\top` of the
# cone, and the optima for smaller and smaller weights, projected onto the slice.
w = u[::-1] * [1.0, -1.0]
x, y = np.linspace(-1.0, 10.0, 45), np.linspace(-1.0, 2.0, 45)
on_slice = [[objective.value(a * along + b * np.outer(w, w)) for a in x] for b in y]
path = np.array([[u @ optimum.metric @ u, w @ optimum.metric @ w] for optimum in optima])
figure = new_figure(8.4, 6.0, "λ = 0: f falls forever along uuᵀ, and the optima follow it")
ax = figure.subplots()
figure.colorbar(ax.contourf(x, y, on_slice, levels=15, cmap="cividis_r"), label="f(A), eq. (11)")
ax.plot([0.0, 0.0, 10.0], [2.0, 0.0, 0.0], color="black", label="boundary of the cone")
ax.plot(*path.T, "o-", color=PALETTE[1], label="optima, λ from 3 to 0.01")
ax.set(xlabel="x, along uuᵀ", ylabel="y, along wwᵀ")
ax.legend()
enlarge_text(ax)
figure.set_label("Levels of f fall to the right without end; a path of optima runs the same way.")
