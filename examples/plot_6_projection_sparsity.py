"""
Projection sparsity: what the trace penalty takes away (the paper's Figure 2)
=============================================================================

tr(A) is the smallest mixed norm of A over all rotations, eq. (15): it does not shrink entries, it
removes directions. What is left is a projection.
"""

import numpy as np
from reproduction.evidence.figures import PROJECTION_WEIGHT, artificial_set
from reproduction.evidence.tasks import nearest_neighbor_error

from seraph_cvx import MStepObjective, OptimumNotAttained, PairSet, solve_m_step
from seraph_cvx.numerics.psd_cone import factor, numerical_rank
from seraph_cvx.plots import MetricDisplay

# %%
# Two tall boxes of points side by side, four labels which favor the vertical feature at close
# range: the labeled points of a class are level, those of different classes 3 apart in height
# and at least 4 apart in width. (The paper describes its set and does not give it.)
sampling = artificial_set(2)
pairs = PairSet.from_labels(sampling.X, sampling.y)


def learn(trace_weight):
    """The certified metric of (11), without unlabeled pairs: mu = 0."""
    objective = MStepObjective(pairs, unlabeled_weight=0.0, trace_weight=trace_weight)
    return solve_m_step(objective).metric


# %%
# Without a penalty there is nothing to draw: no similar pair differs in height, so the metric
# would grow in that direction for ever.
try:
    learn(0.0)
except OptimumNotAttained as error:
    direction = error.direction
assert np.allclose(np.abs(direction), [0.0, 1.0])

# %%
# With any penalty one direction of the two is left, and the other has the weight zero; how large
# the penalty is decides which one. A small one allows a large metric, and that is cheapest along
# the labels' height. A large one makes every unit of it dear, and it is spent where the classes
# are farthest apart: across the gap.
errors, ranks = {}, []
for weight in (0.1, 3.0, 30.0, PROJECTION_WEIGHT):
    A = learn(weight)
    errors[weight] = nearest_neighbor_error(sampling, factor(A))
    ranks.append(numerical_rank(A))
    share = A[0, 0] / np.trace(A)
    print(f"λ = {weight:5g}: {100 * share:3.0f} % horizontal, {errors[weight]:.0f} % wrong")
sparse = learn(PROJECTION_WEIGHT)
assert ranks == [1, 1, 1, 1]
assert sparse[0, 0] > 5.0 * sparse[1, 1]

# %%
# The plain Euclidean distance, by which the height counts as much as the gap, is wrong more often.
# The learned metric is small, so that (8) calls all pairs similar; a nearest neighbor only asks
# which distance is the smallest.
euclidean = nearest_neighbor_error(sampling, np.eye(2))
assert errors[PROJECTION_WEIGHT] == 0.0
assert euclidean > 10.0
assert errors[0.1] > 30.0

# %%
# The points, four of them labeled, and the one dimension that is left of them.
truth = np.concatenate([sampling.y[sampling.labeled], sampling.y_test])
names = {"feature_names": ["horizontal", "vertical"], "class_names": ["left", "right"]}
marked = {"features": (0, 1), "labeled": sampling.labeled}
display = MetricDisplay.from_result(sparse, sampling.X, truth, **marked, **names)
wrong = f"{euclidean:.0f} % of the points wrong before, {errors[PROJECTION_WEIGHT]:.0f} % after"
figure = display.draw(title=f"λ = {PROJECTION_WEIGHT:.0f}: {wrong}")
