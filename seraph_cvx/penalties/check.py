"""Tests at random matrices that a penalty is convex and that its methods agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..numerics.checks import check_count, check_points
from .checking import inequalities, methods, statements
from .checking.matrices import sample_matrices
from .checking.report import PenaltyCheck, PenaltyReport
from .checking.trial import Trial
from .penalty import Penalty

USUAL_FEATURES = 3
"""The size of the matrices where the block does not tell it."""

CHECKS: list[Callable[[Trial], PenaltyCheck]] = [
    inequalities.check_value,
    inequalities.check_convex,
    inequalities.check_subgradient,
    inequalities.check_fenchel,
    inequalities.check_fenchel_equality,
    statements.check_statement,
    statements.check_other_weight,
    statements.check_outside,
    statements.check_rules,
    methods.check_value_above,
    methods.check_prox,
    statements.check_dual_terms,
    methods.check_smooth,
]


def check_penalty(
    block: Penalty,
    n_features: int | None = None,
    seed: int = 0,
    *,
    X: ArrayLike | None = None,
    matrices: Sequence[ArrayLike] = (),
    n_matrices: int = 10,
) -> PenaltyReport:
    """Test at random matrices that a penalty is convex and that its methods agree.

    What a certificate and the solvers rely on is tested: convexity on segments, the subgradient
    inequality, Fenchel's inequality P(A) + P*(Z) >= <Z, A> with equality at a subgradient, the
    CVXPY statement against `value` and the rules DCP and DPP; and where the block has them, the
    proximal step, the dual statement and the gradient. Tests find mistakes; they prove nothing.

    Parameters
    ----------
    block : Penalty
        A block of this package, or one of your own class.
    n_features : int, optional
        The size of the matrices; by default that of the block's own arrays, or 3.
    seed : int
        The seed of the random matrices.
    X : (n, n_features) array_like, optional
        Points to make the block for (`for_points`); by default random ones.
    matrices : sequence of (m, m) array_like
        Matrices to test too. Needed only for a constraint that no random matrix satisfies.
    n_matrices : int
        How many random matrices of each kind.

    Returns
    -------
    PenaltyReport
        ``report.holds`` is the verdict; ``print(report)`` shows a line for each check, and for one
        that failed the counterexample. What could not be checked is said, and does not hold.

    Examples
    --------
    >>> from seraph_cvx.penalties import Ridge
    >>> print(check_penalty(Ridge(2.0)))
    Ridge(2) holds, at random 3 x 3 matrices
    passed       value: finite at some PSD matrices, never NaN or -inf
    passed       convex: P(tA + (1-t)B) <= t P(A) + (1-t) P(B)
    passed       subgradient: P(B) >= P(A) + <Z, B - A>
    passed       conjugate: P(A) + P*(Z) >= <Z, A>
    passed       conjugate: equality at a subgradient
    passed       CVXPY: the statement has the value of P
    passed       CVXPY: the same holds with another weight
    not defined  CVXPY: P is finite everywhere, and there are no constraints
    passed       CVXPY: DCP, and DPP with the weight as a Parameter
    passed       value_above: not below P
    passed       prox: minimizes P(A) + ||A - Y||^2 / (2 step)
    passed       dual_terms: DCP, DPP, and the conjugate of P
    passed       is_smooth: the subgradient is the gradient, without jumps
    """
    rng = np.random.default_rng(seed)
    points = None if X is None else check_points(X)
    m = _features(block) if n_features is None else check_count(n_features, "n_features")
    m = m if points is None else points.shape[1]
    block = block.for_points(rng.normal(size=(30, m)) if points is None else points)
    trial = Trial(block, m, rng, sample_matrices(block, m, rng, n_matrices, matrices))
    checks = [check(trial) for check in CHECKS]
    return PenaltyReport(block, m, tuple(checks))


def _features(block: Penalty) -> int:
    """The size of the block's own matrices or vectors, or the usual one."""
    arrays = [value for value in vars(block).values() if isinstance(value, np.ndarray)]
    square = [a.shape[-1] for a in arrays if a.ndim >= 2 and a.shape[-1] == a.shape[-2]]
    vectors = [len(a) for a in arrays if a.ndim == 1]
    return (square or vectors or [USUAL_FEATURES])[0]
