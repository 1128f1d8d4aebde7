"""How far (7) is from stationary at a metric, from its value and gradient in the data's units."""

from __future__ import annotations

import numpy as np


def measure_stationarity(m_step, A, value, gradient):
    """The largest <grad, A - D> over metrics D of <C + R, D> <= S, relative to max(1, |value|)."""
    Z = m_step.basis.matrix
    least = np.min(np.linalg.eigvalsh(Z.T @ gradient @ Z), initial=0.0)
    size = np.vdot(m_step.pair_moment + m_step.regularizer, A)
    typical_size = size + (1.0 + m_step.threshold) * m_step.pair_total
    return abs(np.vdot(gradient, A) - least * typical_size) / max(1.0, abs(value))
