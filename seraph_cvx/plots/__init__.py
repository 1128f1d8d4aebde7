"""Every picture: drawn from results, without computing any.

The displays are made by `from_result` or `from_estimator` and drawn by `plot`, as scikit-learn's
are; `draw` makes a figure of its own, and saves it.
"""

from .history import HistoryDisplay
from .points import MetricDisplay
from .race import ClaimsDisplay
from .regions import RegionsDisplay

__all__ = [
    "ClaimsDisplay",
    "HistoryDisplay",
    "MetricDisplay",
    "RegionsDisplay",
]
