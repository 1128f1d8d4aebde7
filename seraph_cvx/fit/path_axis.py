"""What a regularization path varies: the trace weight, or the weight of another penalty."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..model.m_step_objective import MStepObjective
from ..numerics.checks import check_number
from ..penalties.penalty import Penalty
from ..penalties.trace import Trace, TraceBound

TRACE_WEIGHT = "trace weight"


@dataclass(frozen=True, eq=False)
class PathAxis:
    """The weights of a path, largest first, and the M-step at each.

    Attributes
    ----------
    name : str
        "trace weight", "weight of Ridge", "bound of TraceBound", ...
    weights : list of float
    m_step : callable
        Returns the M-step at a weight.
    critical_trace_weight : float
        From which on the metric is zero; NaN where it is not known, or something else is varied.
    trace_weight : float or None
        The trace weight of all points; None where it is the weight that is varied.
    """

    name: str
    weights: list[float]
    m_step: Callable[[float], MStepObjective]
    critical_trace_weight: float
    trace_weight: float | None = None

    @classmethod
    def of_trace_weight(
        cls,
        first: MStepObjective,
        penalties: Sequence[Penalty],
        trace_weights: str | ArrayLike,
        n_weights: int,
        smallest: float,
    ) -> PathAxis:
        """Vary the trace weight, with these penalties; the parameters are those of the path."""
        if any(isinstance(block, Trace) for block in penalties):
            raise ValueError(
                "The trace weight is what is varied, so leave the Trace block out; or give its "
                "number as varied, with trace_weight=0."
            )
        is_auto = isinstance(trace_weights, str)
        critical = _critical(first.with_penalties(penalties), is_needed=is_auto)
        return cls(
            TRACE_WEIGHT,
            _choose(trace_weights, critical, n_weights, smallest),
            lambda weight: replace(first, trace_weight=weight, penalties=penalties),
            critical,
        )

    @classmethod
    def of_penalty(
        cls, first: MStepObjective, penalties: Sequence[Penalty], varied: int, weights: Any
    ) -> PathAxis:
        """Vary the weight of one of the penalties, `first` having the trace weight.

        Examples
        --------
        >>> from seraph_cvx import PairSet
        >>> from seraph_cvx.penalties import Ridge
        >>> first = MStepObjective(PairSet.from_labels([[0.0], [0.2], [2.0]], [0, 0, 1]))
        >>> axis = PathAxis.of_penalty(first, [Ridge()], 0, [0.1, 10.0])
        >>> axis.name, axis.weights, axis.m_step(10.0).penalties
        ('weight of Ridge', [10.0, 0.1], (Ridge(10),))
        """
        if varied not in range(len(penalties)):
            raise ValueError(
                f"varied={varied!r} is not the number of one of the {len(penalties)} penalties, "
                "which count from 0."
            )
        blocks = list(penalties)
        block = blocks[varied]
        if "weight" not in vars(block):
            raise ValueError(f"{block!r} has no weight that could be varied: vary another block.")

        def m_step(weight: float) -> MStepObjective:
            blocks[varied] = blocks[varied].with_weight(weight)  # keeps what the last one computed
            return first.with_penalties(tuple(blocks))

        kind = "bound" if isinstance(block, TraceBound) else "weight"
        numbers = _check_weights(weights, "penalty_weights", strict=True)
        return cls(f"{kind} of {block.name}", numbers, m_step, np.nan, first.trace_weight)

    def at(self, weight: float) -> str:
        """A weight in a message."""
        return f"{'trace_weight' if self.trace_weight is None else self.name}={weight:g}"

    def point(self, weight: float) -> dict[str, Any]:
        """The two weights of a point of the path."""
        if self.trace_weight is None:
            return {"trace_weight": weight}
        return {"trace_weight": self.trace_weight, "penalty_weight": weight}


def plural(name: str) -> str:
    """The name of an axis in the plural.

    Examples
    --------
    >>> plural("weight of Ridge"), plural("trace weight")
    ('weights of Ridge', 'trace weights')
    """
    return name.replace("weight", "weights", 1).replace("bound", "bounds", 1)


def _critical(objective: MStepObjective, is_needed: bool) -> float:
    """The critical trace weight; NaN where it has no closed form and is not needed."""
    try:
        return objective.critical_trace_weight
    except ValueError:
        if is_needed:
            raise
        return np.nan


def _choose(
    given: str | ArrayLike, critical: float, n_weights: int, smallest: float
) -> list[float]:
    """Choose the trace weights, largest first."""
    if not isinstance(given, str):
        return _check_weights(given, "trace_weights")
    if given != "auto":
        raise ValueError(f'trace_weights={given!r} is not known: give numbers or "auto".')
    check_number(n_weights, "n_weights", 1.0)
    check_number(smallest, "smallest", 0.0, strict=True)
    if critical == 0.0:
        raise ValueError(
            "The metric is zero at every trace weight (no pair pulls it up), so there is no "
            "path from the critical one: give dissimilar pairs, or trace_weights as numbers."
        )
    if not np.isfinite(critical):
        raise ValueError(
            "With these penalties the metric is zero at no trace weight, so there is no path "
            "from the critical one: give trace_weights as numbers."
        )
    return [float(w) for w in np.geomspace(critical, smallest * critical, int(n_weights))]


def _check_weights(given: Any, name: str, strict: bool = False) -> list[float]:
    """Check given weights, and sort them, largest first."""
    if given is None or isinstance(given, str):
        raise ValueError(
            f"{name}={given!r}: give numbers, such as numpy.geomspace(10, 0.01, 8). There is no "
            'range that suits every penalty, so there is no "auto".'
        )
    numbers = [check_number(w, name, 0.0, strict=strict) for w in np.ravel(np.asarray(given))]
    if not numbers:
        raise ValueError(f"{name} is empty: give at least one number.")
    return sorted(set(numbers), reverse=True)
