"""Proven bounds on the optimum of any continuous DCP problem of CVXPY: `certify_problem`."""

from .certify import ProblemCertificate, certify_problem
from .checker import check_certificate

__all__ = ["ProblemCertificate", "certify_problem", "check_certificate"]
