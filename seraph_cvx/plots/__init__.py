"""Every picture: drawn from results, without computing any.

The displays are made by `from_result` or `from_estimator` and drawn by `plot`, as scikit-learn's
are.
"""

from .cone_slice import SliceDisplay
from .duality import DualityDisplay
from .fit import plot_fit
from .history import HistoryDisplay
from .metric import MetricDisplay
from .path import PathDisplay, plot_path
from .posterior import PosteriorDisplay
from .race.work_precision import WorkPrecisionDisplay
from .segment import SegmentDisplay
from .spectrum import SpectrumDisplay

__all__ = [
    "DualityDisplay",
    "HistoryDisplay",
    "MetricDisplay",
    "PathDisplay",
    "PosteriorDisplay",
    "SegmentDisplay",
    "SliceDisplay",
    "SpectrumDisplay",
    "WorkPrecisionDisplay",
    "plot_fit",
    "plot_path",
]
