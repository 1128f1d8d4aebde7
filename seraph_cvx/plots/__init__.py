"""Every picture: drawn from results, without computing any.

The displays are made by `from_result` or `from_estimator`; `draw` makes a figure, and saves it.
"""

from .points import MetricDisplay
from .race import ClaimsDisplay
from .regions import RegionsDisplay

__all__ = [
    "ClaimsDisplay",
    "MetricDisplay",
    "RegionsDisplay",
]
