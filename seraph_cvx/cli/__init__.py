"""The `seraph-cvx` command, which imports all other folders and is imported by none."""

from __future__ import annotations

from . import explore, learn, reproduce, study, verify
from .main import app
from .race import compare, export

__all__ = ["app", "compare", "explore", "export", "learn", "reproduce", "study", "verify"]
