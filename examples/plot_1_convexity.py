"""
Why the M-step is convex, and the objective (7) is not
======================================================

Rules prove convexity, node by node. To refute it, one segment is enough on which a function lies
above its chord.
"""

import numpy as np

from seraph_cvx import MStepObjective, PairSet, state_m_step
from seraph_cvx.m_step.explain import explain_convexity
from seraph_cvx.model.m_step_objective import SemiSupervisedObjective
from seraph_cvx.plots.style import new_figure

# %%
# The data are like those of the paper's Figure 1: two boxes of points side by side, with two
# labeled points each. The 5350 unlabeled pairs together weigh ten times as much as the 6 labeled
# ones.
classes = np.repeat([0, 1], 50)
points = np.random.default_rng(0).uniform((-0.2, -0.6), (0.2, 0.6), (100, 2))
points[:, 0] += classes - 0.5
X = np.vstack([[(-0.7, 0.4), (-0.3, 0.4), (0.3, -0.4), (0.7, -0.4)], points])
y = np.array([0, 0, 1, 1, *[-1] * 100])
pairs = PairSet.from_labels(X, y)
mu = 10.0 * pairs.resolve_unlabeled_weight("ratio")
objective = MStepObjective(pairs, unlabeled_weight=mu)

# %%
# The M-step (11) is a sum of terms :math:`\log(1 + e^{s})` with affine :math:`s`, which are convex,
# and of terms linear in :math:`A`, over the convex cone of positive semidefinite matrices. CVXPY
# knows these rules. The proof is a tree in which each node names the rule for its curvature.
proof = explain_convexity(state_m_step(objective))
print(proof)
assert proof.holds

# %%
# In (7) an unlabeled pair has the entropy of its posterior instead of a soft label. The entropy is
# small if the pair is clearly near or clearly far, and large in between, so it rises before it
# falls. The ends of our segment are two metrics that use one feature each. Each of them is sure
# about most pairs; the metric halfway between them is not.
horizontal, vertical = np.diag([4.0, 0.0]), np.diag([0.0, 4.0])
t = np.linspace(0.0, 1.0, 101)
metrics = [horizontal + step * (vertical - horizontal) for step in t]
functions = {"M-step (11)": objective, "objective (7)": SemiSupervisedObjective(objective)}
values = {name: np.array([f.value(A) for A in metrics]) for name, f in functions.items()}
chords = {name: (1.0 - t) * of_f[0] + t * of_f[-1] for name, of_f in values.items()}
convex_excess, paper_excess = (
    np.max(values[name] - chords[name]) / np.max(np.abs(values[name])) for name in functions
)
print(f"above its chord, relatively: M-step {convex_excess:.1e}, objective (7) {paper_excess:.1e}")

# %%
# That (11) stays below its chord on one segment proves nothing, but the tree promised it for all
# segments. That (7) rises above its chord on one segment proves that it is not convex: where a
# descent on it ends depends on its start, while an M-step has one optimal value, which the
# certificate bounds.
assert convex_excess <= 1e-12
assert paper_excess > 0.05

# %%
# The picture shows both objectives from one metric to the other.
figure = new_figure(32.0 / 3.0, 4.6, "From a metric of one feature to one of the other")
for ax, name in zip(figure.subplots(1, 2), functions, strict=True):
    ax.plot(t, values[name], label=name)
    ax.plot(t, chords[name], "--", color="gray", label="its chord")
    ax.fill_between(t, chords[name], values[name], where=values[name] > chords[name], alpha=0.3)
    ax.set(xlabel="t, from the first metric to the second", ylabel="value")
    ax.legend()
figure.set_label("The M-step (11) lies below its chord, the objective (7) far above it.")
