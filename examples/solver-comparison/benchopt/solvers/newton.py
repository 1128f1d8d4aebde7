"""This package's own solver, which stops on the certificate."""

import numpy as np
from benchopt import BaseSolver

from seraph_cvx.solvers.solution import newton_method


class Solver(BaseSolver):
    """Newton's method on a factor of A; FISTA where that does not close the gap."""

    name = "newton"
    sampling_strategy = "tolerance"

    def set_objective(self, spec):
        self.spec = spec

    def pre_run_hook(self, tolerance):
        self.objective = self.spec.objective()  # afresh: no run profits from an earlier one

    def get_next(self, tolerance):
        return min(0.1, tolerance / 10.0)

    def run(self, tolerance):
        m = self.objective.pairs.n_features
        self.A = np.zeros((m, m))
        if tolerance <= 1.0:  # benchopt starts with a run that may do nothing
            self.A = newton_method(self.objective, tolerance).metric

    def get_result(self):
        return {"A": self.A}
