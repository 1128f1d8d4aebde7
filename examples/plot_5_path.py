"""
The rank of the metric against the trace weight
===============================================

From the critical trace weight on, the metric is zero, and that weight can be computed without
solving anything. Below it the metric gains one direction after the other. Every point of the path
has a certificate.
"""

import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from seraph_cvx import MStepObjective, PairSet, Status, seraph_path, solve_m_step
from seraph_cvx.numerics.psd_cone import numerical_rank
from seraph_cvx.plots.style import new_figure

# %%
# Wine has 13 features with different units, so we standardize. Four points of each class are
# labeled.
X, classes = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)
rng = np.random.default_rng(0)
y = np.full(len(classes), -1)
for label in range(3):
    y[rng.choice(np.flatnonzero(classes == label), 4, replace=False)] = label
pairs = PairSet.from_labels(X, y)

# %%
# :math:`A = 0` is optimal if the gradient of f at 0 is positive semidefinite, that is, if
#
# .. math:: \lambda \ge \lambda_{\max}\left(G - \sigma(-\eta) \sum_k c_k v_k v_k^\top\right),
#
# the largest eigenvalue of a 13 x 13 matrix. Just above this weight the solver returns zero; just
# below it, a metric with one direction, that of the eigenvector.
critical = MStepObjective(pairs).critical_trace_weight
above = solve_m_step(MStepObjective(pairs, trace_weight=1.001 * critical)).metric
below = solve_m_step(MStepObjective(pairs, trace_weight=0.99 * critical)).metric
assert not np.any(above)
assert numerical_rank(below) == 1
slope = MStepObjective(pairs, trace_weight=0.0).gradient(np.zeros((13, 13)))
steepest = np.linalg.eigh(-slope)[1][:, -1]
assert steepest @ below @ steepest > 0.99 * np.trace(below)

# %%
# The path goes down from there, and starts each M-step at the metric before it. The trace penalty
# is a nuclear norm: it removes whole directions. So few of the 13 are in use at any weight, and
# fewer at larger weights. (The rank need not be monotone; on this path it is.)
path = seraph_path(pairs, n_weights=25)
print("ranks along the path:", *path.ranks)
assert path.ranks[0] == 0
assert 2 <= max(path.ranks) < 13
assert all(point.status is Status.CERTIFIED for point in path)

# %%
# The paper's :math:`\lambda = 1` depends on the units of the features; on these data it is about a
# thousandth of the critical weight. SERAPH(trace_weight="auto") takes a few hundredths of the
# critical weight of the labeled pairs instead, whatever the units are.
print(f"critical trace weight {critical:.1f}; the paper's is 1")
assert critical > 500.0

# %%
# The picture shows eigenvalues, rank and certified gap as the trace weight falls.
title = f"Wine: zero above {critical:.0f}, then a direction at a time"
figure = new_figure(32.0 / 3.0, 4.0, title)
eigenvalues = np.array([np.linalg.eigvalsh(metric) for metric in path.metrics])
courses = {
    "eigenvalue of A": np.where(eigenvalues > 1e-6 * eigenvalues.max(), eigenvalues, np.nan),
    "rank of A": path.ranks,
    "relative duality gap": [max(point.certificate.relative_gap, 1e-16) for point in path],
}
for ax, (name, course) in zip(figure.subplots(1, 3), courses.items(), strict=True):
    ax.plot(path.trace_weights, course, "o-", markersize=3)
    ax.axvline(critical, color="gray", linestyle=":")
    ax.set(xscale="log", xlabel="trace weight (dotted: critical)", ylabel=name)
    ax.set_yscale("linear" if name == "rank of A" else "log")
    ax.invert_xaxis()
figure.set_label("As the weight falls, eigenvalues leave zero one by one.")
