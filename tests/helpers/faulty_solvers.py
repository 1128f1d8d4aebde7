"""Solvers with a fault, for the tests of what becomes of it."""

from __future__ import annotations

from cvxpy.reductions.solvers.conic_solvers.clarabel_conif import CLARABEL


class Raising(CLARABEL):
    """A solver that breaks down."""

    def name(self):
        return "RAISING"

    def solve_via_data(self, *args, **kwargs):
        raise RuntimeError("license not found")


class Planted(CLARABEL):
    """A solver that says optimal; the fault is planted in what it leaves behind."""

    def name(self):
        return "PLANTED"
