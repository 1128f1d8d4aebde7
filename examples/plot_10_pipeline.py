"""SERAPH in a scikit-learn pipeline: handwritten digits, most of them without a label.

The metric learns from all points; the classifier behind it must see the labeled ones alone.
"""

import numpy as np
from gallery import save
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from seraph_cvx import SERAPH, LabeledOnly
from seraph_cvx.numerics.psd_cone import numerical_rank
from seraph_cvx.plots import PosteriorDisplay

# %%
# 300 digits of 8 x 8 pixels, five of each class labeled, the others y = -1; 1497 more for a test.
X, classes = load_digits(return_X_y=True)
rows = np.random.default_rng(0).permutation(len(X))
train, test = rows[:300], rows[300:]
y = np.full(300, -1)
for label in range(10):
    y[np.flatnonzero(classes[train] == label)[:5]] = label


# %%
# Pixels go from 0 to 16. All have the same unit, so we divide by 16 rather than standardise,
# which would blow up the noise of the pixels at the border.
def to_unit(pixels):
    """Grey values in [0, 1]."""
    return pixels / 16.0


def nearest_neighbour():
    """Of the labeled points: to a plain classifier "-1" would be an eleventh class."""
    return LabeledOnly(KNeighborsClassifier(n_neighbors=1))


plain = make_pipeline(FunctionTransformer(to_unit), nearest_neighbour())
learned = make_pipeline(FunctionTransformer(to_unit), SERAPH(), nearest_neighbour())

# %%
# A pipeline like any other: `fit` with the incomplete labels, `score` on digits never seen.
before = plain.fit(X[train], y).score(X[test], classes[test])
after = learned.fit(X[train], y).score(X[test], classes[test])
model = learned["seraph"]
print(f"accuracy {before:.3f} by Euclidean distances, {after:.3f} by the learned ones")
assert after > before + 0.01
assert model.certificate_.relative_gap <= 1e-8

# %%
# The M-step found a few of the 64 directions; a share of the distance in units of the spread inside
# the classes keeps what 50 labels say nothing about. How much is gained depends on the draw.
rank = numerical_rank(model.m_step_metric_)
print(f"rank {rank} of the last M-step's metric, {len(model.metric_)} of the whole")
assert rank < 20


def draw():
    """The posterior of all pairs of the 300 digits, sorted by their true class."""
    points = to_unit(X[train])
    posterior = PosteriorDisplay.from_estimator(model, points, classes[train])
    title = f"Digits: 1-NN accuracy {before:.3f} before, {after:.3f} after"
    return posterior.draw(title=title)


if __name__ == "__main__":
    save(draw, __file__)
