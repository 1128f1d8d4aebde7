"""Every picture: drawn from results, without computing any.

The displays are made by `from_result` or `from_estimator` and drawn by `plot`, as scikit-learn's
are; `draw` makes a figure of its own, and saves it.
"""

from .convexity import SegmentDisplay
from .history import DualityDisplay, HistoryDisplay
from .points import MetricDisplay
from .posterior import PosteriorDisplay
from .race import ClaimsDisplay
from .regions import RegionsDisplay
from .spectrum import FeatureWeightsDisplay, PathDisplay

__all__ = [
    "ClaimsDisplay",
    "DualityDisplay",
    "FeatureWeightsDisplay",
    "HistoryDisplay",
    "MetricDisplay",
    "PathDisplay",
    "PosteriorDisplay",
    "RegionsDisplay",
    "SegmentDisplay",
]
