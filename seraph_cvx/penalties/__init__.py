"""The building blocks of the M-step: penalties and constraints on the metric."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_MODULES = {
    "bounds": ("TraceBound",),
    "check": ("PenaltyReport", "check_penalty"),
    "manifold": ("manifold_term",),
    "penalty": ("Penalty",),
    "prior": ("LogDet", "Ridge"),
    "sparse": ("Diagonal", "Sparse"),
}


def __getattr__(name: str) -> Any:
    """Import a block when it is first used."""
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f".{module}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
