"""A conic solver through CVXPY, on the primal or the dual."""

import numpy as np
from benchopt import BaseSolver

from seraph_cvx.race.conic_solvers import conic


class Solver(BaseSolver):
    """A solver of CVXPY that has the semidefinite and the exponential cone."""

    name = "conic"
    parameters = {"solver": ["CLARABEL"], "formulation": ["dual", "primal"]}  # noqa: RUF012
    sampling_strategy = "tolerance"
    time_limit = 60.0

    def set_objective(self, spec):
        self.spec = spec

    def pre_run_hook(self, tolerance):
        self.objective = self.spec.objective()  # afresh: no run profits from an earlier one

    def warm_up(self):
        self.run_once(0.1)  # imports CVXPY

    def get_next(self, tolerance):
        return min(0.1, tolerance / 10.0)

    def run(self, tolerance):
        m = self.objective.pairs.n_features
        self.A = np.zeros((m, m))
        if tolerance <= 1.0:  # benchopt starts with a run that may do nothing
            limits = tolerance, self.time_limit
            attempt = conic(self.objective, *limits, self.solver, self.formulation)
            self.A = self.A if attempt.answer is None else attempt.answer

    def get_result(self):
        return {"A": self.A}
