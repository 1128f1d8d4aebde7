"""Proves the optimal value of an M-step to nine digits, in ball arithmetic."""

from __future__ import annotations

from ...certificate.proof import Proof, prove
from ...model.m_step_objective import MStepObjective
from ...numerics.arrays import one_blas_thread
from ...solvers.first_order import fista

WIDEST = 1e-9
"""The largest relative width of an interval in the library."""

ENOUGH = 1e-10
"""No narrower interval is looked for than this."""

TOLERANCES = (1e-10, 1e-13)
"""What the solver is asked for, one after the other."""


TIME_LIMIT = 60.0
"""Seconds for each of them."""


def prove_optimum(objective: MStepObjective, name: str = "this M-step") -> Proof:
    """Prove an interval of the optimal value whose relative width is at most 1e-9.

    Raises
    ------
    ValueError
        Where that does not succeed.

    Examples
    --------
    >>> from seraph_cvx import PairSet
    >>> pairs = PairSet.from_labels([[0.0], [0.25], [2.0], [2.5]], [0, 0, 1, -1])
    >>> relative_width(prove_optimum(MStepObjective(pairs))) <= 1e-9
    True
    """
    best: Proof | None = None
    for tol in TOLERANCES:
        with one_blas_thread():
            certificate = fista(objective, tol, time_limit=TIME_LIMIT).certificate
        if certificate is None:
            continue
        proof = prove(objective, certificate.metric)
        if best is None or relative_width(proof) < relative_width(best):
            best = proof
        if relative_width(best) <= ENOUGH:
            break
    if best is None or relative_width(best) > WIDEST:
        width = (
            "not at all" if best is None else f"to a relative width of {relative_width(best):.1e}"
        )
        raise ValueError(
            f"The optimal value of {name} could be proved {width}, not to {WIDEST:g}: give it a "
            "larger trace weight, or features of like scale."
        )
    return best


def relative_width(proof: Proof) -> float:
    """The width of the interval, relative to the size of the value itself, however small."""
    size = min(abs(proof.primal_value), abs(proof.dual_value))
    return proof.duality_gap / size if size > 0.0 else float("inf")
