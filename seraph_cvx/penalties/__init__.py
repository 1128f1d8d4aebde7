"""The building blocks of the M-step: penalties and constraints on the metric."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .check import PenaltyReport, check_penalty
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

_MODULES = {
    "LinearConstraints": "linear_constraints",
    "LogDet": "log_det",
    "PenaltyReport": "check",
    "TraceBound": "trace",
    "UpperBound": "upper_bound",
    "check_penalty": "check",
    "manifold_term": "manifold",
}
"""Where a name is that is not in the file of its own name."""


def __getattr__(name: str) -> Any:
    """Import a block when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES.get(name, name.lower())}", __name__), name)
