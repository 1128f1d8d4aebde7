"""
Two rings: a kernel and a graph of neighbors
============================================

No linear metric can separate an inner ring from an outer one. A linear metric in the feature space
of a kernel can, and the manifold term spreads the few labels along the rings.
"""

import numpy as np
from sklearn.datasets import make_circles
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from seraph_cvx import SERAPH, KernelSERAPH, LabeledOnly
from seraph_cvx.plots.points import draw_points
from seraph_cvx.plots.style import add_legend, enlarge_text, new_figure

RINGS = ["outer", "inner"]

# %%
# Two rings of 100 points, four of each with a label.
X, classes = make_circles(200, factor=0.45, noise=0.06, random_state=3)
rng = np.random.default_rng(3)
y = np.full(len(classes), -1)
for label in range(2):
    y[rng.choice(np.flatnonzero(classes == label), 4, replace=False)] = label
unknown = y == -1

# %%
# Three models. KernelSERAPH is SERAPH in the coordinates of kernel PCA. They are all kept and not
# rescaled, so the map is an isometry, and trace penalty and certificate keep their meaning. The
# manifold term :math:`\nu \langle X^\top L X, A\rangle` is linear in :math:`A`, so the M-step stays
# convex.
models = {
    "linear": SERAPH(),
    "kernel": KernelSERAPH(gamma=1.0),
    "kernel and manifold": KernelSERAPH(gamma=1.0, laplacian_weight=10.0),
}

# %%
# Accuracy on the unlabeled points, each classified by the nearest labeled one.
accuracy = {}
for name, model in models.items():
    nearest = make_pipeline(model, LabeledOnly(KNeighborsClassifier(n_neighbors=1)))
    accuracy[name] = nearest.fit(X, y).score(X[unknown], classes[unknown])
    gap = model.certificate_.relative_gap
    print(f"{name}: accuracy {accuracy[name]:.3f}, certified gap {gap:.1e}")
    assert gap <= 1e-8
assert accuracy["linear"] < 0.8
assert accuracy["kernel"] > accuracy["linear"] + 0.1
assert accuracy["kernel and manifold"] > 0.99

# %%
# With only four labels per ring, it matters which points they are. In three other draws of rings
# and labels the accuracy of the kernel alone was 0.91 to 0.97, and 1 with this weight of the
# manifold term. With a tenth of the weight it was below 1: choose the weight with care.

# %%
# The points, and their first two coordinates under each model. Colors are the true rings.
figure = new_figure(32.0 / 3.0, 8.6, "Two rings, as each metric sees them")
places, *panels = figure.subplots(2, 2).flat
draw_points(places, X, y, ("first feature", "second feature"), RINGS)
places.set_title("the points and their eight labels")
enlarge_text(places)
for ax, (name, model) in zip(panels, models.items(), strict=True):
    names = "first learned coordinate", "second learned coordinate"
    draw_points(ax, model.transform(X), classes, names, RINGS)
    ax.set_title(f"{name}: accuracy {accuracy[name]:.2f}")
    enlarge_text(ax)
add_legend(figure, [places])
figure.set_label("The rings are mixed under the linear metric, apart under the last.")
