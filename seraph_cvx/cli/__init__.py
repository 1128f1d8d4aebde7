"""The `seraph-cvx` command; knows everybody, nobody knows it."""

from __future__ import annotations

from . import compare, explore, learn, reproduce, study, verify
from .main import app

__all__ = ["app", "compare", "explore", "learn", "reproduce", "study", "verify"]
