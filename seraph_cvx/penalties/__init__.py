"""The building blocks of the M-step: penalties and constraints on the metric."""

from .bounds import TraceBound
from .check import PenaltyReport, check_penalty
from .manifold import manifold_term
from .penalty import Penalty
from .prior import LogDet, Ridge
from .sparse import Diagonal, Sparse

__all__ = [
    "Diagonal",
    "LogDet",
    "Penalty",
    "PenaltyReport",
    "Ridge",
    "Sparse",
    "TraceBound",
    "check_penalty",
    "manifold_term",
]
