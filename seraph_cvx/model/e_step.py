"""The E-step (10): the soft labels of a metric."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..engine.pair_sums import CHUNK
from ..numerics.checks import FloatArray, check_number
from ..numerics.psd_cone import check_metric
from ..pairs.pair_set import PairSet
from .posterior import soft_label


def e_step(
    pairs: PairSet,
    A: ArrayLike,
    unlabeled_weight: float | str = "ratio",
    threshold: float = 1.0,
    sharpness: float | None = None,
) -> FloatArray:
    """Compute the soft label of each unlabeled pair under a metric: the E-step (10).

    q(+1) = sigma(-sharpness * (v'Av - eta)) for each row of ``pairs.unlabeled``.

    Parameters
    ----------
    pairs : PairSet
    A : (m, m) array_like
        The metric of the last M-step.
    unlabeled_weight : float or "ratio"
        The weight mu of an unlabeled pair.
    threshold : float
        The squared distance eta at which a pair is as likely similar as dissimilar.
    sharpness : float, optional
        None is the paper's 1 + mu, which solves (9) by Theorem 3; any other is not in the paper.

    Returns
    -------
    (n_unlabeled,) array
        The soft labels q(+1), which take O(n^2) memory. The alternation does not need
        them: ``MStepObjective(previous_metric=A)`` streams the same soft labels.

    Examples
    --------
    >>> from seraph_cvx import PairSet, e_step
    >>> pairs = PairSet.from_labels([[0.0], [0.0], [1.0], [3.0]], [0, 0, 1, -1])
    >>> e_step(pairs, [[1.0]], sharpness=2.0).round(6)
    array([0.      , 0.      , 0.002473])
    """
    mu = pairs.resolve_unlabeled_weight(unlabeled_weight)
    a = check_number(1.0 + mu if sharpness is None else sharpness, "sharpness", 0.0, strict=True)
    eta = check_number(threshold, "threshold", 0.0, strict=True)
    matrix = check_metric(A, pairs.n_features)
    q = np.empty(pairs.n_unlabeled)
    rows = max(1, CHUNK // pairs.n_features)
    for start in range(0, len(q), rows):
        i, j = pairs.unlabeled[start : start + rows].T
        V = pairs.points[i] - pairs.points[j]
        q[start : start + rows] = soft_label(np.einsum("ij,ij->i", V @ matrix, V) - eta, a)
    return q
