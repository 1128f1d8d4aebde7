"""Other coordinates of the points, in which matrices are summed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..numerics.accurate_product import accurate_product, exact_difference
from ..numerics.arrays import Array
from ..numerics.checks import FloatArray
from ..numerics.medians import column_medians, some_rows
from .sweep import UnlabeledSums


@dataclass(frozen=True, eq=False)
class Frame:
    """Coordinates in which matrices are summed so that their rounding errors can be bounded.

    Attributes
    ----------
    basis : (k, r) array
        z = basis' b for a point b.
    base : (n, k) array, optional
        Other points b instead of the centred ones: see `dual_coordinates.py`.
    with_sizes : bool
        Whether rounding errors are to be bounded.
    """

    basis: FloatArray
    base: FloatArray | None = None
    with_sizes: bool = True

    def of(self, points: Array, rest: Array | None = None) -> tuple[Array, Array]:
        """Points or differences in these coordinates, and the sizes that bound their rounding.

        `rest` is what the points were rounded by. Without it they are taken as rounded once, and
        the sizes are |points| |basis|.
        """
        if rest is None:
            return points @ self.basis, np.abs(points) @ np.abs(self.basis)
        return accurate_product(points, rest, self.basis)


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
            return turned - column_medians(turned), None
        if frame.base is not None:
            turned, sizes = frame.of(frame.base, np.zeros_like(frame.base))
        elif self.given is not None:
            turned, sizes = frame.of(*exact_difference(self.given, column_medians(self.given)))
        else:
            turned, sizes = frame.of(self.points)
        coordinates = turned - column_medians(turned)
        return coordinates, sizes + np.abs(coordinates) / (len(frame.basis) + 4)

    @property
    def shift(self) -> FloatArray:
        """About the median of the points in these coordinates, found from some of them."""
        return column_medians(some_rows(self.points) @ self.frame.basis)

    def for_remote(self, sums: UnlabeledSums) -> UnlabeledSums | None:
        """Other means to sum over the unlabeled pairs, in these coordinates too."""
        frame = self.frame
        if frame.base is None:
            return sums.summed_in(frame.basis, self.shift, with_spread=frame.with_sizes)
        coordinates, sizes = self.made
        return sums.along(coordinates, np.asarray(sizes))
