"""Every picture, and the HTML report of a fit: drawn from results, without computing any.

The displays are made by `from_result` or `from_estimator` and drawn by `plot`, as scikit-learn's
are; `draw` makes a figure of its own, and saves it.
"""

from .convexity import SegmentDisplay
from .fit_page import fit_report
from .history import DualityDisplay, HistoryDisplay
from .points import MetricDisplay
from .posterior import PosteriorDisplay
from .race import ClaimsDisplay, ProfileDisplay, WorkPrecisionDisplay, draw_race
from .regions import RegionsDisplay
from .spectrum import FeatureWeightsDisplay, PathDisplay, SpectrumDisplay

__all__ = [
    "ClaimsDisplay",
    "DualityDisplay",
    "FeatureWeightsDisplay",
    "HistoryDisplay",
    "MetricDisplay",
    "PathDisplay",
    "PosteriorDisplay",
    "ProfileDisplay",
    "RegionsDisplay",
    "SegmentDisplay",
    "SpectrumDisplay",
    "WorkPrecisionDisplay",
    "draw_race",
    "fit_report",
]
