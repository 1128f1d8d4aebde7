"""QICS on the dual, where it has a cone for the entropies.

With y_k = c_k (1 - p_k) and M the recession matrix, the dual of the M-step is

    minimize    t - eta sum_k y_k
    subject to  t >= sum_k (c_k - y_k) log(c_k - y_k) + y_k log y_k,     M - sum_k y_k v_k v_k' PSD;

the multiplier of the last is the metric.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse

from ...model.m_step_objective import MStepObjective
from .attempt import Attempt, Entrant
from .listed import ListedProblem


def entropy_cone(
    objective: MStepObjective,
    tol: float,
    time_limit: float,
    options: Mapping[str, Any] | None = None,
) -> Attempt:
    """Solve by QICS on the dual, with its cone of the classical entropy.

    Examples
    --------
    >>> from seraph_cvx import PairSet
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> entropy_cone(MStepObjective(pairs), 1e-6, 10.0).claims  # doctest: +SKIP
    True
    """
    import qics

    clock = time.perf_counter()
    problem = ListedProblem.of(objective)
    n, r = len(problem.weights), problem.size
    V, ones = problem.differences, scipy.sparse.eye_array(n)
    products = (V[:, :, None] * V[:, None, :]).reshape(n, r * r)
    blocks = [  # of h - G (y, t): t, then 1, c - y, y, and the matrix
        [None, scipy.sparse.csr_array([[-1.0]])],
        [scipy.sparse.csr_array((1, n)), None],
        [ones, None],
        [-ones, None],
        [scipy.sparse.csr_array(products.T), None],
    ]
    h = np.concatenate([[0.0, 1.0], problem.weights, np.zeros(n), problem.recession.ravel()])
    model = qics.Model(
        c=np.append(np.full(n, -problem.threshold), 1.0)[:, None],
        G=scipy.sparse.block_array(blocks).tocsr(),
        h=h[:, None],
        cones=[qics.cones.ClassEntr(2 * n), qics.cones.PosSemidefinite(r)],
    )
    words = {"tol_gap": tol, "tol_feas": tol, "max_iter": 10**6}
    compiled = time.perf_counter() - clock
    words["max_time"] = max(0.1, time_limit - compiled)
    found = qics.Solver(model, **({"verbose": 0} | words | dict(options or {}))).solve()
    inside = time.perf_counter() - clock - compiled
    B = np.asarray(found["z_opt"][1][0], dtype=np.float64)
    return Attempt(
        problem.metric(B),
        f"{found['sol_status']} ({found['exit_status']})",
        found["sol_status"] == "optimal",
        int(found["num_iter"]),
        compiled,
        inside,
    )


def entropy_entrants() -> list[Entrant]:
    """QICS on the dual."""
    return [Entrant("QICS", "dual", f"{__name__}:entropy_cone", (), "qics", "qics")]
