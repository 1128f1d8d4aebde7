"""Large margin nearest neighbors (Weinberger, Blitzer and Saul 2005)."""

from .estimator import LMNN

__all__ = ["LMNN"]
