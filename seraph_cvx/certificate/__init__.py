"""Proven bounds on the optimum of an M-step, at any metric: `certify`, and what it is made of."""

from .certificate import Certificate, nominal_gap
from .certify import certify, certify_factor

__all__ = ["Certificate", "certify", "certify_factor", "nominal_gap"]
