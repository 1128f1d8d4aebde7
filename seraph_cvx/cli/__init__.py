"""The `seraph-cvx` command, which imports all other folders and is imported by none."""

from __future__ import annotations

from . import apply, compare, exercises, explore, learn, problems, study, verify
from .main import app

__all__ = ["app", "apply", "compare", "exercises", "explore", "learn", "problems"]
__all__ += ["study", "verify"]
