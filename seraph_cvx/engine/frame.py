"""Other coordinates of the points, in which matrices are summed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..numerics.accurate_sums import (
    accurate_product,
    column_medians,
    exact_difference,
    sampled_rows,
)
from ..numerics.checks import FloatArray
from .sweep import UnlabeledSums, shifted


@dataclass(frozen=True, eq=False)
class Frame:
    """Coordinates in which matrices are summed so that their rounding errors can be bounded.

    Attributes
    ----------
    basis : (k, r) array
        z = basis' b for a point b.
    base : (n, k) array, optional
        Other points b instead of the centered ones: see `dual_coordinates.py`.
    with_sizes : bool
        Whether rounding errors are to be bounded.
    """

    basis: FloatArray
    base: FloatArray | None = None
    with_sizes: bool = True


@dataclass(frozen=True, eq=False)
class Turned:
    """Points in the coordinates of a frame, made when they are first asked for.

    On a device or a cluster nobody does: each turns the points that it holds.

    Attributes
    ----------
    frame : Frame
    points : (n, m) array
        The points, shifted.
    given : (n, m) array, optional
        The points as the user gave them.
    """

    frame: Frame
    points: FloatArray
    given: FloatArray | None

    @cached_property
    def made(self) -> tuple[FloatArray, FloatArray | None]:
        """The points in these coordinates, and what they are rounded from if that is to be known.

        They are shifted by their median: differences stay, little cancels.
        """
        frame = self.frame
        if not frame.with_sizes:
            turned = self.points @ frame.basis
            return shifted(turned, column_medians(turned), None, len(frame.basis))
        points = self.points if self.given is None else self.given
        points = points if frame.base is None else frame.base
        exact = exact_difference(points, column_medians(points))
        turned, sizes = accurate_product(*exact, frame.basis)
        return shifted(turned, column_medians(turned), sizes, len(frame.basis))

    @property
    def shift(self) -> FloatArray:
        """About the median of the points in these coordinates, found from some of them."""
        return column_medians(sampled_rows(self.points) @ self.frame.basis)

    def for_remote(self, sums: UnlabeledSums) -> UnlabeledSums | None:
        """Other means to sum over the unlabeled pairs, in these coordinates too."""
        frame = self.frame
        if frame.base is None:
            return sums.summed_in(frame.basis, self.shift, with_spread=frame.with_sizes)
        coordinates, sizes = self.made
        return sums.along(coordinates, np.asarray(sizes))
