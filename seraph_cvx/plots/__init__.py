"""Every picture, and the HTML report of a fit: drawn from results, without computing any.

The displays are made by `from_result` or `from_estimator` and drawn by `plot`, as scikit-learn's
are.
"""

from .convexity.cone_slice import SliceDisplay
from .convexity.duality import DualityDisplay
from .convexity.segment import SegmentDisplay
from .feature_weights import FeatureWeightsDisplay, plot_feature_weights
from .fit import plot_fit
from .history import HistoryDisplay
from .metric import MetricDisplay
from .path import PathDisplay, plot_path
from .posterior import PosteriorDisplay
from .race.work_precision import WorkPrecisionDisplay
from .regions import RegionsDisplay
from .report.fit_report import fit_report
from .spectrum import SpectrumDisplay

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
