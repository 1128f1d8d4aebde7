"""Which pairs are similar, dissimilar or unlabeled, and with what confidence."""

from .pair_set import PairSet

__all__ = ["PairSet"]
