"""
Posterior sparsity: what the unlabeled pairs add (the paper's Figure 1)
=======================================================================

Six labeled pairs can be explained by the wrong feature. The entropy of the unlabeled pairs prefers
a metric that is sure about most of them, and that is the right one here.
"""

import numpy as np
from reproduction.evidence.figures import POSTERIOR_FACTOR, artificial_set
from reproduction.evidence.methods import stop_early
from reproduction.evidence.tasks import nearest_neighbor_error
from scipy.spatial.distance import cdist

from seraph_cvx import PairSet
from seraph_cvx.model.posterior import posterior_entropy, posterior_similar
from seraph_cvx.numerics.psd_cone import factor
from seraph_cvx.plots.style import new_figure

# %%
# Two boxes of 50 points side by side, with a gap between them, and two labeled points in each. The
# labeled points of a class are level and apart, and the classes at different heights: so the
# labels speak for the vertical feature, the gap for the horizontal one. (The paper describes its
# set and does not give it; this one is ours.)
sampling = artificial_set(1)
pairs = PairSet.from_labels(sampling.X, sampling.y)
unlabeled = pairs.unlabeled

# %%
# lambda = 0 for both metrics, so that all there is to see is mu. (7) has no optimum then, and
# both are early-stopped gradient projections.
ratio = pairs.resolve_unlabeled_weight("ratio")
labels_only = stop_early(pairs, unlabeled_weight=0.0, trace_weight=0.0).metric
with_entropy = stop_early(pairs, POSTERIOR_FACTOR * ratio, trace_weight=0.0).metric
metrics = {"labels only (μ = 0)": labels_only, "with posterior sparsity": with_entropy}


# %%
# A posterior is sparse where its entropy is small: p near 0 or near its largest value.
def mean_entropy(metric):
    """Of the posterior (8) of the unlabeled pairs, in nats."""
    V = sampling.X[unlabeled[:, 0]] - sampling.X[unlabeled[:, 1]]
    scores = np.einsum("ki,ij,kj->k", V, metric, V) - 1.0
    return float(np.mean(posterior_entropy(scores)))


entropies = [mean_entropy(metric) for metric in metrics.values()]
print("mean entropy of the unlabeled pairs:", np.round(entropies, 3))
assert entropies[1] < 0.8 * entropies[0]

# %%
# And it is the right one: the labels alone turn the metric to the vertical feature, and do worse
# than the plain Euclidean distance; the entropy turns it to the gap.
assert labels_only[1, 1] > labels_only[0, 0]
assert with_entropy[0, 0] > with_entropy[1, 1]
errors = [nearest_neighbor_error(sampling, factor(metric)) for metric in metrics.values()]
print("wrong in %:", errors)
assert errors[0] > nearest_neighbor_error(sampling, np.eye(2))
assert errors[1] == 0.0

# %%
# The posterior of all pairs of the unlabeled points, sorted by true class, for both.
figure = new_figure(32.0 / 3.0, 5.0, "Posterior sparsity: who is of one class with whom?")
by_class = sampling.X_test[np.argsort(sampling.y_test, kind="stable")]
for ax, (name, metric), error in zip(figure.subplots(1, 2), metrics.items(), errors, strict=True):
    transformed = by_class @ factor(metric).T
    posterior = posterior_similar(cdist(transformed, transformed, "sqeuclidean") - 1.0)
    picture = ax.imshow(posterior, cmap="cividis", vmin=0.0, vmax=1.0)
    ax.set(xlabel="points, sorted by class", ylabel="points, sorted by class")
    ax.set_title(f"{name}: {error:.0f} % wrong")
figure.colorbar(picture, ax=figure.axes, label="p(+1): of one class, eq. (8)")
