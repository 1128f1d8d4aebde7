"""Every picture, and the HTML report of a fit: drawn from results, without computing any.

The displays are made by `from_result` or `from_estimator` and drawn by `plot`, as scikit-learn's
are.
"""

from .convexity import SegmentDisplay, SliceDisplay
from .history import DualityDisplay, HistoryDisplay
from .points import MetricDisplay, plot_fit
from .posterior import PosteriorDisplay
from .race.race import WorkPrecisionDisplay
from .regions import RegionsDisplay
from .report import fit_report
from .spectrum import (
    FeatureWeightsDisplay,
    PathDisplay,
    SpectrumDisplay,
    plot_feature_weights,
    plot_path,
)

__all__ = [
    "DualityDisplay",
    "FeatureWeightsDisplay",
    "HistoryDisplay",
    "MetricDisplay",
    "PathDisplay",
    "PosteriorDisplay",
    "RegionsDisplay",
    "SegmentDisplay",
    "SliceDisplay",
    "SpectrumDisplay",
    "WorkPrecisionDisplay",
    "fit_report",
    "plot_feature_weights",
    "plot_fit",
    "plot_path",
]
