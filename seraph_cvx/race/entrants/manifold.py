"""The trust-region method of pymanopt on its manifold of PSD matrices of fixed rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...model.m_step_objective import MStepObjective
from ...numerics.checks import FloatArray
from .attempt import Attempt, Entrant
from .factor import Descent, FactorRun, climb, slope_tolerance


def fixed_rank(
    objective: MStepObjective,
    tol: float,
    time_limit: float,
    options: Mapping[str, Any] | None = None,
) -> Attempt:
    """Solve by pymanopt on the PSD matrices of fixed rank, see `factor.py` for the rank.

    Examples
    --------
    >>> from seraph_cvx import PairSet
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> fixed_rank(MStepObjective(pairs), 1e-6, 10.0).claims  # doctest: +SKIP
    True
    """
    import pymanopt
    from pymanopt.manifolds import PSDFixedRank
    from pymanopt.optimizers import TrustRegions

    given = dict(options or {})
    ranks = {key: given.pop(key) for key in ("rank", "largest_rank") if key in given}

    def method(start: FloatArray, seconds: float) -> FactorRun:
        descent = Descent(objective.whitened_program, start)
        manifold = PSDFixedRank(*start.shape)
        as_numpy = pymanopt.function.numpy(manifold)
        problem = pymanopt.Problem(
            manifold,
            as_numpy(descent.value),
            euclidean_gradient=as_numpy(descent.slope),
            euclidean_hessian=as_numpy(descent.bent),
        )
        words = {
            "min_gradient_norm": slope_tolerance(tol, start),
            "max_time": seconds,
            "max_iterations": 10**6,
        }
        found = TrustRegions(**({"verbosity": 0} | words | given)).run(problem, initial_point=start)
        said = str(found.stopping_criterion)
        L = np.asarray(found.point, dtype=np.float64)
        return FactorRun(L, said, "min grad norm" in said, int(found.iterations))

    return climb(objective, tol, time_limit, method, **ranks)


def manifold_entrants() -> list[Entrant]:
    """The method of pymanopt."""
    return [
        Entrant("pymanopt", "factor", f"{__name__}:fixed_rank", (), "pymanopt", "pymanopt"),
    ]
