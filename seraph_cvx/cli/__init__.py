"""The `seraph-cvx` command; knows everybody, nobody knows it."""

from __future__ import annotations

from . import compare, learn, study, verify
from .main import app

__all__ = ["app", "compare", "learn", "study", "verify"]
