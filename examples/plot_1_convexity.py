"""
Why the M-step is convex, and the objective (7) is not
======================================================

Convexity can be proved by rules, node by node; that it is missing is shown by one segment on which
a function is above its chord.
"""

import numpy as np

from seraph_cvx import MStepObjective, PairSet, state_m_step
from seraph_cvx.m_step.explain import explain_convexity
from seraph_cvx.model.m_step_objective import SemiSupervisedObjective
from seraph_cvx.plots.style import new_figure

# %%
# The data are like those of the paper's Figure 1: two boxes of points side by side, two points of
# each with a label. All 5350 unlabeled pairs weigh ten times as much as the 6 labeled ones.
classes = np.repeat([0, 1], 50)
points = np.random.default_rng(0).uniform((-0.2, -0.6), (0.2, 0.6), (100, 2))
points[:, 0] += classes - 0.5
X = np.vstack([[(-0.7, 0.4), (-0.3, 0.4), (0.3, -0.4), (0.7, -0.4)], points])
y = np.array([0, 0, 1, 1, *[-1] * 100])
pairs = PairSet.from_labels(X, y)
mu = 10.0 * pairs.resolve_unlabeled_weight("ratio")
objective = MStepObjective(pairs, unlabeled_weight=mu)

# %%
# The M-step (11) is a sum of log(1 + exp(affine)), which is convex, and of terms linear in A, over
# the cone of positive semidefinite matrices, which is convex too. CVXPY knows these rules; the
# proof is a tree in which each node says which rule gives its curvature.
proof = explain_convexity(state_m_step(objective))
print(proof)
assert proof.holds

# %%
# In (7) the unlabeled pairs have the entropy of their posterior in the place of a soft label:
# small where the pair is surely near or surely far, large between. So it has to rise before it
# can fall. The two ends of our segment are metrics that see one feature each; both know what
# they think of most pairs. Half way between them, neither does.
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
# Below the chord on one segment proves nothing, and is what the tree promised for all of them.
# Above the chord on one segment proves that (7) is not convex: a descent on it ends where its
# start leads it, while an M-step has one optimal value, and the certificate finds it.
assert convex_excess <= 1e-12
assert paper_excess > 0.05

# %%
# f of (11) and the objective (7) from one metric to the other.
figure = new_figure(32.0 / 3.0, 4.6, "From a metric of one feature to one of the other")
for ax, name in zip(figure.subplots(1, 2), functions, strict=True):
    ax.plot(t, values[name], label=name)
    ax.plot(t, chords[name], "--", color="gray", label="its chord")
    ax.fill_between(t, chords[name], values[name], where=values[name] > chords[name], alpha=0.3)
    ax.set(xlabel="t, from the first metric to the second", ylabel="value")
    ax.legend()
