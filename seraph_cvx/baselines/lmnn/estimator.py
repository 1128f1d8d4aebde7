"""Large margin nearest neighbors (LMNN; Weinberger, Blitzer and Saul 2005)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ...numerics.psd_cone import scaled_factor
from ...pairs.pair_set import PairSet
from ..rival import CertifiedRival, RivalSolution, check_limits
from .descent import TargetCoordinates, descend_sharpening
from .problem import LMNNProblem, state_lmnn


def solve_lmnn(
    problem: LMNNProblem, solver: str = "descent", tol: float = 1e-5, max_iter: int = 10_000
) -> RivalSolution:
    """Solve an :class:`LMNNProblem` by descent on a rounded hinge, or by a conic solver.

    Parameters
    ----------
    problem : LMNNProblem
    solver : "descent" or the name of a CVXPY solver
        "descent" is L-BFGS over A = FF', the corners of the hinges rounded less and less.
    tol : float
        Relative gap to reach.
    max_iter : int
        L-BFGS iterations in all.

    Examples
    --------
    >>> problem = LMNNProblem.from_labels([[0.0], [1.0], [3.0]], [0, 0, 1])
    >>> solution = solve_lmnn(problem)
    >>> round(solution.value, 4), solution.metric.round(4).item()
    (0.3333, 0.3333)
    """
    check_limits(tol, max_iter)
    where = TargetCoordinates.of(problem)
    if solver == "descent":
        B, bound, iterations = descend_sharpening(where, tol, max_iter)
        A, L = where.metric(B), where.factor(B)
    else:
        from ..conic import solve_statement

        statement = state_lmnn(problem)
        A, iterations = solve_statement(statement, solver)
        L = scaled_factor(A)
        bound = where.lower_bound(np.asarray(statement.constraints[0].dual_value)[~where.is_free])
    return RivalSolution(
        metric=A,
        value=problem.value(A),
        proven_value=problem.value_from_above(L),
        bound=bound,
        solver=solver,
        iterations=iterations,
    )


class LMNN(CertifiedRival):
    """Keep other classes a margin farther away than target neighbors (LMNN).

    min_{A PSD} (1 - mu) sum_{j~i} d_ij + mu sum_{j~i, l} [1 + d_ij - d_il]_+.

    Weinberger, Blitzer and Saul (2005): each labeled point draws its target neighbors j near and
    keeps the points l of other classes a unit margin farther away. Points of unknown class (-1) are
    ignored; constraints on pairs name no neighbors and are an error. See
    :class:`~seraph_cvx.baselines.lmnn.problem.LMNNProblem` for the points that are alone in their
    class.

    The publication leaves open which optimum to take where there are many. Here the metric is 0 in
    directions in which no labeled points differ, and the same multiple of the identity in those in
    which no target neighbors differ. Where the labeled points are no more than the features the
    optimum is usually 0 and draws target neighbors together to a point. Agreement with the
    authors' program is unverified.

    Parameters
    ----------
    n_neighbors : int, default=3
        Target neighbors of each point, or all others of its class where they are fewer.
    push_weight : float, default=0.5
        mu, in (0, 1).
    solver : str, default="descent"
        A certified first-order method, or the name of a CVXPY solver ("CLARABEL", "SCS", ...) for
        small data.
    tol : float, default=1e-5
        Relative duality gap to reach; a wider one raises a warning.
    max_iter : int, default=10000
    n_components : int, optional
        Rows of `components_`; by default all m.

    Attributes
    ----------
    metric_, components_, n_features_in_
        As for :class:`~seraph_cvx.estimators.mahalanobis.MahalanobisTransformer`.
    objective_ : float
        The two sums, weighted.
    n_iter_ : int
        0 where the optimum needed no descent.

    Examples
    --------
    >>> X = [[0.0, 1.0], [1.0, 9.0], [2.0, 2.0], [3.0, 8.0], [0.2, 5.0]]
    >>> model = LMNN().fit(X, [0, 0, 1, 1, -1])
    >>> model.transform(X)[:, 0].round(1)
    array([-0.1, -0.1,  0.9,  1. , -0.3])
    """

    _refusal = (
        "LMNN learns from the neighbors of points of known class, not from pairs: give y (-1 "
        "where unknown) instead of `similar` and `dissimilar`, or use GDM or ITML."
    )

    def __init__(
        self,
        n_neighbors: int = 3,
        push_weight: float = 0.5,
        solver: str = "descent",
        tol: float = 1e-5,
        max_iter: int = 10_000,
        n_components: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.push_weight = push_weight
        super().__init__(solver, tol, max_iter, n_components)

    def _solve(self, pairs: PairSet, y: ArrayLike | None) -> RivalSolution:
        problem = LMNNProblem.from_labels(
            pairs.points, np.ravel(np.asarray(y)), self.n_neighbors, self.push_weight
        )
        return solve_lmnn(problem, self.solver, self.tol, self.max_iter)
