"""The building blocks of the M-step: penalties and constraints on the metric."""

from .check import check_penalty
from .checking.report import PenaltyReport
from .diagonal import Diagonal
from .linear_constraints import LinearConstraints
from .log_det import LogDet
from .manifold import Manifold, manifold_term
from .penalty import Penalty
from .ridge import Ridge
from .sparse import Sparse
from .trace import Trace, TraceBound
from .upper_bound import UpperBound

__all__ = [
    "Diagonal",
    "LinearConstraints",
    "LogDet",
    "Manifold",
    "Penalty",
    "PenaltyReport",
    "Ridge",
    "Sparse",
    "Trace",
    "TraceBound",
    "UpperBound",
    "check_penalty",
    "manifold_term",
]
