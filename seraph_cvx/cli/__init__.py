"""The `seraph-cvx` command, which imports all other folders and is imported by none."""

from __future__ import annotations

from . import apply, explore, learn, study, verify
from .exercises import check
from .main import app
from .race import compare, export

__all__ = [
    "app",
    "apply",
    "check",
    "compare",
    "explore",
    "export",
    "learn",
    "study",
    "verify",
]
