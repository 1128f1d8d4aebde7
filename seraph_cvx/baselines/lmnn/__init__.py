"""Large margin nearest neighbours (Weinberger, Blitzer and Saul 2005)."""

from .estimator import LMNN

__all__ = ["LMNN"]
