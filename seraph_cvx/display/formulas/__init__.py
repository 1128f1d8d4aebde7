"""The formulas that are shown to users, each written once, in a file for each idea.

The command line takes `ascii`, pages and notebooks take `mathml`. The claims of the paper in
``theory/`` have their own formulas, drawn by the same :mod:`seraph_cvx.display.mathml`.
"""

from .alternation import (
    DESCENT,
    E_STEP,
    ENVELOPE,
    LEAST_OVER_SOFT_LABELS,
    LINEAR_PARTS,
    ONE_FUNCTION,
    THREE_LOSSES,
)
from .certificate import (
    ANCHORS,
    CERTIFICATE,
    GAP_AT_A_METRIC,
    LONGER_STEP,
    PSD_PROOF,
    ROUNDING,
)
from .cone import (
    CONE_INFIMUM,
    INNER_PRODUCT,
    METRIC_CONE,
    OTHER_METRICS,
    PROJECTION,
    PROJECTION_CONDITIONS,
)
from .duality import (
    CRITICAL_TRACE_WEIGHT,
    DUAL,
    DUAL_SLOPE,
    GRADIENT,
    LAGRANGIAN,
    LOGISTIC_CONJUGATE,
    MOMENTS,
    OPTIMALITY,
    SORTED_LAGRANGIAN,
    SPLIT_M_STEP,
    TOUCHING_POINT,
    WEAK_DUALITY,
)
from .formula import Formula
from .model import (
    CONVEX_FUNCTION,
    ENTROPY_CURVATURE,
    LOGISTIC_CURVATURE,
    LOGISTIC_IDENTITY,
    M_STEP,
    M_STEP_ONE_TERM,
    OBJECTIVE,
    OBJECTIVE_MINIMIZED,
    PROBABILITY,
    SURPRISE,
)
from .solvers import (
    CENTRAL_PATH,
    FISTA,
    ON_A_FACE,
    PROJECTED_GRADIENT,
)

__all__ = [
    "ANCHORS",
    "CENTRAL_PATH",
    "CERTIFICATE",
    "CONE_INFIMUM",
    "CONVEX_FUNCTION",
    "CRITICAL_TRACE_WEIGHT",
    "DESCENT",
    "DUAL",
    "DUAL_SLOPE",
    "ENTROPY_CURVATURE",
    "ENVELOPE",
    "E_STEP",
    "FISTA",
    "FORMULAS",
    "GAP_AT_A_METRIC",
    "GRADIENT",
    "INNER_PRODUCT",
    "LAGRANGIAN",
    "LEAST_OVER_SOFT_LABELS",
    "LINEAR_PARTS",
    "LOGISTIC_CONJUGATE",
    "LOGISTIC_CURVATURE",
    "LOGISTIC_IDENTITY",
    "LONGER_STEP",
    "METRIC_CONE",
    "MOMENTS",
    "M_STEP",
    "M_STEP_ONE_TERM",
    "OBJECTIVE",
    "OBJECTIVE_MINIMIZED",
    "ONE_FUNCTION",
    "ON_A_FACE",
    "OPTIMALITY",
    "OTHER_METRICS",
    "PROBABILITY",
    "PROJECTED_GRADIENT",
    "PROJECTION",
    "PROJECTION_CONDITIONS",
    "PSD_PROOF",
    "ROUNDING",
    "SORTED_LAGRANGIAN",
    "SPLIT_M_STEP",
    "SURPRISE",
    "THREE_LOSSES",
    "TOUCHING_POINT",
    "WEAK_DUALITY",
    "Formula",
]

FORMULAS = tuple(each for each in list(globals().values()) if isinstance(each, Formula))
"""All of them."""
