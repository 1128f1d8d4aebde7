"""The M-step as a benchopt objective: a solver returns a matrix, the certificate grades it."""

import numpy as np
from benchopt import BaseObjective
from benchopt.stopping_criterion import StoppingCriterion

from seraph_cvx.solvers.solution import grade_matrix, newton_method


class GapReached(StoppingCriterion):
    """Stop at a true gap of `target`, or after `patience` runs that came no nearer."""

    def __init__(
        self, target=1e-8, patience=3, strategy=None, key_to_monitor="true_gap", minimize=True
    ):
        self.target, self.patience = target, patience
        super().__init__(
            strategy, key_to_monitor, minimize=minimize, target=target, patience=patience
        )

    def check_convergence(self, objective_list):
        gaps = [point[self.key_to_monitor_] for point in objective_list]
        best_before = min(gaps[: -self.patience], default=np.inf)
        has_stalled = min(gaps[-self.patience :]) >= best_before
        return gaps[-1] <= self.target or has_stalled, 0.0


class Objective(BaseObjective):
    """Minimize f(A) of equation (11) over the positive semidefinite matrices."""

    name = "M-step"
    requirements = ["pip::seraph-cvx"]  # noqa: RUF012
    min_benchopt_version = "1.7"
    sampling_strategy = "tolerance"
    stopping_criterion = GapReached()

    def set_data(self, spec):
        self.spec = spec
        self.objective = objective = spec.objective()
        # proved, whoever found it
        self.lower = newton_method(objective, 1e-9).certificate.dual_value

    def evaluate_result(self, A):
        """The value, the gap to the best proved lower bound, and what the matrix itself proves."""
        graded = grade_matrix(self.objective, np.asarray(A, dtype=np.float64))
        if graded is None:
            return {"value": np.inf, "true_gap": np.inf, "proved_gap": np.inf}
        certificate = graded.certificate
        value = certificate.primal_value
        distance = value - max(self.lower, certificate.dual_value)
        return {
            "value": value,
            "true_gap": max(0.0, distance) / max(1.0, abs(value)),
            "proved_gap": certificate.relative_gap,
        }

    def get_one_result(self):
        m = self.objective.pairs.n_features
        return {"A": np.zeros((m, m))}

    def get_objective(self):
        return {"spec": self.spec}
