"""The `seraph-cvx` command; knows everybody, nobody knows it."""

from __future__ import annotations

from . import learn, study
from .main import app

__all__ = ["app", "learn", "study"]
