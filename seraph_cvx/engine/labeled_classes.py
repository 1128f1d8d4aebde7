"""Labels given as classes: every pair of labeled points is labeled, and none need be listed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..numerics.checks import IntArray
from ..pairs.pair_set import PairSet
from .blocks import LabeledBlock

MANY_PAIRS = 1 << 14
"""Labeled pairs up to which each is taken by itself, by the difference of its points."""

BLOCK = 256
"""Points per side of a block."""


@dataclass(frozen=True, eq=False)
class LabeledClasses:
    """The points that have a class.

    Attributes
    ----------
    members : integer array
        Their numbers.
    classes : integer array
        Of each, some number of its class.
    """

    members: IntArray
    classes: IntArray

    @classmethod
    def of(cls, pairs: PairSet) -> LabeledClasses | None:
        """The classes behind many labeled pairs; None where these are few, or are no classes."""
        labels = pairs.labels
        if pairs.n_labeled <= MANY_PAIRS or labels.classes is None:
            return None
        return cls(labels.members, labels.classes)

    @cached_property
    def blocks(self) -> list[LabeledBlock]:
        """The blocks of all labeled pairs, each pair once."""
        n = len(self.members)
        edges = [slice(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK)]
        return [
            LabeledBlock(rows, columns, None, self.classes[rows], self.classes[columns])
            for k, rows in enumerate(edges)
            for columns in edges[k:]
        ]
