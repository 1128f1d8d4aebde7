"""Proven bounds on the optimum of an M-step, at any metric: `certify`, and what it is made of."""

from .certificate import Certificate
from .certify_m_step import certify, certify_factor
from .estimates import nominal_gap

__all__ = ["Certificate", "certify", "certify_factor", "nominal_gap"]
