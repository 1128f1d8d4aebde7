"""The building blocks of the M-step: penalties and constraints on the metric."""

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
    "Ridge",
    "Sparse",
    "Trace",
    "TraceBound",
    "UpperBound",
    "manifold_term",
]
