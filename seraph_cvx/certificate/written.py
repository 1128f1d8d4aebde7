"""The certificate of an M-step as a file, for `check_certificate`, which shares no code with this.

Every number is a double in hexadecimal. The fields are described in `proof/checker.py`.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ..engine.distances import Factor, as_factor
from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray, IntArray
from ..numerics.exact_rank import component_roots
from ..penalties import Diagonal, LogDet, Ridge, Sparse, TraceBound
from ..penalties.penalty import Penalty
from ..proof.rounding import UNIT, at_least, score_slack

ANCHORS = {"toward p = b/c": "labels", "p = b/c": "labels"}
"""Where a step of these dual points begins; that of all others begins at r = 0."""

PENALTIES = (Ridge, LogDet, Diagonal, Sparse, TraceBound)
"""The penalties that a file can hold; a class derived from one may have another formula."""


@dataclass(frozen=True)
class LowerBound:
    """A bound on the optimum, and the dual point it is of: by these a checker finds it again.

    From r = 0 or r = q, as `dual_point` says, and Z = 0 it is `step` of the way to r = sigma(-s) at
    `factor` and `multipliers`. With `groups`, r = 0 in pairs of points that are not in one group.
    """

    dual_value: float
    dual_point: str
    step: float = 1.0
    multipliers: tuple[FloatArray, ...] = ()
    groups: IntArray | None = None
    factor: FloatArray | None = None


def m_step_file(
    objective: MStepObjective, primal_value: float, factor: FloatArray, lower: LowerBound | None
) -> str:
    """The M-step, the bounds, and the numbers of their proof, as JSON."""
    has_upper = math.isfinite(primal_value)
    content = {
        "format": "seraph_cvx m-step certificate",
        "version": 1,
        "m_step": _m_step(objective),
        "claim": {
            "lower": None if lower is None else _claimed(objective, lower).hex(),
            "upper": primal_value.hex() if has_upper else None,
        },
        "primal": {"factor": _hex(factor)} if has_upper else None,
        "dual": None,
    }
    if lower is not None:
        groups = lower.groups  # of points that the pairs of the bound connect
        if groups is None and objective.mu == 0.0:
            groups = component_roots(objective.pairs.n_points, objective.pairs.labeled)
        blocks = zip(objective.penalties, lower.multipliers, strict=bool(lower.multipliers))
        content["dual"] = {
            "factor": _hex(lower.factor),
            "anchor": ANCHORS.get(lower.dual_point, "one"),
            "step": lower.step.hex(),
            "groups": None if groups is None else groups.tolist(),
            "multipliers": [  # of a bound on the trace it is nu * I, of which nu is written
                _hex(Z[:1, 0] if isinstance(block, TraceBound) else Z) for block, Z in blocks
            ],
        }
    return json.dumps(content)


def _m_step(objective: MStepObjective) -> dict[str, Any]:
    """The M-step: points, pairs and their weights, labels, and what is added."""
    pairs, previous = objective.pairs, objective.previous_metric
    is_factor = isinstance(previous, Factor)
    return {
        "points": _hex(pairs.points),
        "similar": pairs.similar.tolist(),
        "dissimilar": pairs.dissimilar.tolist(),
        "confidence": _hex(pairs.confidence),
        "unlabeled_weight": objective.mu.hex(),
        "threshold": _hex(objective.threshold),
        "sharpness": _hex(objective.sharpness),
        "soft_labels": _hex(objective.soft_labels),
        "previous_factor": _hex(previous.L) if isinstance(previous, Factor) else None,
        "previous_metric": None if is_factor else _hex(previous),
        "trace_weight": _hex(objective.trace_weight),
        "manifold_term": _hex(objective.manifold_term),
        "penalties": [_penalty(block, pairs.n_features) for block in objective.penalties],
    }


def _claimed(objective: MStepObjective, lower: LowerBound) -> float:
    """The lower bound of the exact r = sigma(-s), for that of the r that was computed.

    That one is of scores at most t lower; soft labels count as those of scores t off, too. It is
    feasible, and so is the smaller exact one, but D may be larger there: by no more than t sum_k
    c_k d_k r_k <= t (1 + eta) sum_k c_k, with d_k the squared distances, for d sigma(eta - d) is
    at most 1 + eta for all d >= 0.
    """
    eta, metrics = objective.threshold, list[tuple[float, FloatArray]]()
    if lower.factor is not None and lower.step:
        metrics.append((1.0, lower.factor))
    if objective.has_soft_labels and objective.previous_metric is not None:
        a = cast(float, objective.sharpness)
        metrics.append((max(a, 1.0), as_factor(objective.previous_metric).L))
    t, points = 0.0, np.abs(objective.sums.centered)
    for steepness, L in metrics:
        size = float(np.max(np.sum(np.square(points @ np.abs(L)), axis=1)))
        t += steepness * (4.0 * score_slack(*L.shape) * size + 32.0 * UNIT * (1.0 + eta))
    return at_least(lower.dual_value, -t * (1.0 + eta) * objective.pair_total)


def _penalty(block: Penalty, m: int) -> dict[str, Any]:
    """A penalty by its definition."""
    if type(block) not in PENALTIES:
        raise TypeError(
            f"{block!r} is a penalty of a class of your own, whose formula no file can hold: only "
            "M-steps with penalties of seraph_cvx.penalties have certificates for others."
        )
    match block:
        case Ridge():
            prior = np.zeros((m, m)) if block.prior is None else block.prior
            return {"kind": "quadratic", "weight": block.weight.hex(), "prior": _hex(prior)}
        case LogDet():
            weight, inverse = block.weight.hex(), _hex(block.inverse_prior(m))
            return {"kind": "log_det", "weight": weight, "inverse": inverse}
        case Diagonal():
            return {"kind": "off_diagonal", "limit": None}
        case Sparse():
            return {"kind": "off_diagonal", "limit": block.weight.hex()}
        case TraceBound():
            return {"kind": "trace_bound", "bound": block.weight.hex()}
    raise AssertionError(block)


def _hex(values: Any) -> Any:
    """Numbers in hexadecimal, in lists of lists; None stays None."""
    if values is None:
        return None
    return [_hex(row) for row in values] if np.ndim(values) else float(values).hex()
