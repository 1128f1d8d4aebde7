"""What is added to the trace penalty of the M-step."""

from .manifold import manifold_term

__all__ = ["manifold_term"]
