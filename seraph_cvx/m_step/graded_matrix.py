"""Grades a solver's matrix: symmetrized, projected to the cone, and certified."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..certificate import Certificate, certify
from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import project, symmetrize


@dataclass(frozen=True)
class GradedMatrix:
    """A solver's matrix, projected to the cone, with its certificate.

    Attributes
    ----------
    metric : array (m, m)
        Symmetrized and projected to the cone.
    certificate : Certificate
        Of `metric`.
    psd_violation : float
        How far the matrix was from the cone: minus its least eigenvalue, relative to the largest.
    """

    metric: FloatArray
    certificate: Certificate
    psd_violation: float


def grade_matrix(objective: MStepObjective, raw: FloatArray) -> GradedMatrix | None:
    """Grade a solver's matrix without asking the solver; None if it is not m x m and finite.

    Examples
    --------
    >>> from seraph_cvx import PairSet
    >>> objective = MStepObjective(PairSet.from_labels([[0.0], [0.2], [2.0]], [0, 0, 1]))
    >>> grade_matrix(objective, np.array([[-1.0]])).psd_violation
    1.0
    >>> grade_matrix(objective, np.array([[np.nan]]))
    """
    m = objective.pairs.n_features
    if raw.shape != (m, m) or not np.all(np.isfinite(raw)):
        return None
    symmetric = symmetrize(raw)
    eigenvalues = np.linalg.eigvalsh(symmetric)
    largest = max(float(np.max(np.abs(eigenvalues))), float(np.finfo(np.float64).tiny))
    metric = project(symmetric)
    certificate = certify(objective, metric)
    if objective.penalties:  # LL' satisfies the constraints
        metric = certificate.metric
    return GradedMatrix(metric, certificate, max(0.0, -float(eigenvalues[0]) / largest))
