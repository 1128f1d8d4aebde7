"""The instances of the library, from easy to nasty, each with what makes it so."""

from __future__ import annotations

LIBRARY = {
    # Easy
    "iris-n12-rounded-hyper-w1000-s0": "easy: the optimum is zero",
    "onehot2-n8-l8-rounded-proj-w0.125-s0": "easy: two features, rank 1",
    "iris-n20-rounded-proj-w1-s0": "easy: labeled pairs only",
    "balance-n20-rounded-proj-w0.125-s0": "easy: whole numbers",
    "iris-n24-rounded-hyper-w1-s0": "easy: the first M-step of a fit",
    "cloud5-n20-rounded-hyper-w0.125-s0": "easy: the optimum has full rank",
    "wine-n12-rounded-proj-w1-s0": "more features than points",
    "iris-n20-l20-rounded-none-w0-s0": "no regularizer at all",
    # Soft labels
    "iris-n20-rounded-hyper-w1-s0-soft1": "soft labels",
    "iris-n24-rounded-post-w0-s0-soft0.25": "soft labels, no trace term",
    "wine-n12-rounded-hyper-w0.125-s0-soft0.125": "soft labels, more features than points",
    # Each penalty
    "iris-n20-rounded-hyper-w0-s0-trace0.5": "the trace term as a penalty",
    "iris-n16-rounded-hyper-w1-s0-manifold0.25": "a graph of neighbors",
    "cloud8-n12-l12-rounded-none-w0-s0-tracebound2": "attained only by the bound on the trace",
    "wine-n12-rounded-proj-w0.125-s0-upperbound0.25": "two PSD cones; the bound is active",
    "iris-n20-rounded-hyper-w1-s0-linear0.125": "five bounds on distances, some active",
    "wine-n12-rounded-proj-w0.125-s0-diagonal": "a diagonal matrix as a PSD cone",
    "iris-n20-rounded-hyper-w1-s0-sparse3": "entries of the optimum are zero",
    "cloud5-n20-rounded-hyper-w0.125-s0-soft0.5-sparse1": "sparse, with soft labels",
    "wine-n12-rounded-proj-w0.125-s0-logdet0.125": "log det, with a PSD cone of order 26",
    "wine-n12-nearlycollinear-proj-w0.01-s0-ridge1": "quadratic, nearly collinear features",
    # The rank of the optimum
    "onehot5-n12-l12-rounded-proj-w0.125-s0": "rank 4",
    "digits-n10-raw-proj-w100-s0": "rank 5 of 64; dark pixels",
    "onehot7-n14-l14-rounded-proj-w0.125-s0": "rank 6",
    "onehot9-n20-l20-rounded-proj-w0.0625-s0": "rank 8",
    "onehot13-n24-l24-rounded-proj-w0.0625-s0": "rank 12",
    "onehot17-n28-l28-rounded-proj-w0.125-s0": "rank 16",
    "onehot21-n30-l30-rounded-proj-w0.125-s0": "rank 20",
    # Nearly unattained: without the trace term there is no optimum
    "iris-n20-rounded-proj-w0.000001-s0": "nearly unattained: trace weight 1e-6",
    "iris-n20-rounded-hyper-w0.000000001-s1": "nearly unattained: trace weight 1e-9",
    "wine-n12-rounded-proj-w0.000001-s0": "nearly unattained, more features than points",
    "breast_cancer-n8-l8-rounded-proj-w0.0001-s1": "nearly unattained: 30 features, 8 points",
    # Collinear
    "iris-n20-collinear-hyper-w1-s0": "a feature is the sum of two others",
    "wine-n12-nearlycollinear-proj-w0.01-s0": "two features agree to two millionths",
    "iris-n20-nearlycollinear-hyper-w0.000001-s1": "agree to two millionths, trace weight 1e-6",
    # Badly scaled
    "iris-n20-skewed12-hyper-w0.01-s0": "units of features span twelve decades",
    "wine-n12-skewed6-proj-w0.0001-s0": "units span six decades, trace weight 1e-4",
    "wine-n12-skewed12-proj-w1-s0": "units of 13 features span twelve decades",
    "iris-n16-outlier-hyper-w1-s0": "a value of a million among ones",
    "wine-n16-outlier-hyper-w0.01-s0": "a value of a million, more features than points",
}
"""Why each instance is in the library, by its name."""
