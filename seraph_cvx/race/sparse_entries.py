"""Sparse arrays as lists of their entries, as files hold them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..numerics.checks import FloatArray, IntArray


@dataclass(frozen=True)
class SparseEntries:
    """A sparse array: a row of indices and a number for each entry that is not zero."""

    index: IntArray
    value: FloatArray

    @classmethod
    def none(cls, n_indices: int) -> SparseEntries:
        """An array without nonzero entries."""
        return cls(np.zeros((0, n_indices), dtype=np.int64), np.zeros(0))

    @classmethod
    def of(cls, value: FloatArray, *index: NDArray[np.integer] | int) -> SparseEntries:
        """Make an array from one column of indices each; zeros are left out."""
        columns = [np.broadcast_to(column, value.shape).ravel() for column in index]
        flat = value.ravel()
        kept = flat != 0.0
        return cls(np.column_stack(columns)[kept].astype(np.int64), flat[kept])

    def __add__(self, other: SparseEntries) -> SparseEntries:
        """Join the entries of two arrays."""
        index = np.concatenate([self.index, other.index])
        return SparseEntries(index, np.concatenate([self.value, other.value]))

    def merged(self) -> SparseEntries:
        """The same array with one entry for each place.

        Examples
        --------
        >>> twice = SparseEntries(np.array([[0, 1], [2, 0], [0, 1]]), np.array([1.0, 5.0, 2.0]))
        >>> twice.merged().value
        array([3., 5.])
        """
        index, place = np.unique(self.index, axis=0, return_inverse=True)
        value = np.zeros(len(index))
        np.add.at(value, place.reshape(-1), self.value)
        return SparseEntries(index, value)
