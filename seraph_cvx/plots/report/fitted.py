"""What the report of a fit is about: a fitted metric with its points and labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ...display.result_table import visible
from ...numerics.checks import UNKNOWN, FloatArray, IntArray, encode_labels
from ...pairs.pair_set import PairSet
from ...pairs.supervision import supervise


@dataclass(frozen=True, eq=False)
class FittedMetric:
    """A fitted metric with its data, as the report shows them.

    Attributes
    ----------
    whole : estimator
        What the user fitted: the metric learner, or a pipeline that has one.
    model : estimator
        The metric learner.
    given : array or frame
        The points as the metric learner got them, after the steps before it in a pipeline.
    points : (n, m) array
        The same as numbers.
    pairs : PairSet
    codes : (n,) integer array
        The class of each point as a position in `class_names`, -1 where it is unknown.
    class_names : list of str
    feature_names : list of str or None
        None where the points had no names of columns.
    """

    whole: Any
    model: Any
    given: Any
    points: FloatArray
    pairs: PairSet
    codes: IntArray
    class_names: list[str]
    feature_names: list[str] | None

    @cached_property
    def has_share(self) -> bool:
        """Whether distances use another matrix than the certified one."""
        return not np.array_equal(self.model.metric_, self.model.m_step_metric_)

    @property
    def has_feature_weights(self) -> bool:
        """Whether the metric is one of the features themselves, not of a kernel's coordinates."""
        return len(self.model.metric_) == self.points.shape[1] and not hasattr(self.model, "kernel")


def collect(
    model: Any,
    X: Any,
    y: ArrayLike | None,
    similar: ArrayLike | None,
    dissimilar: ArrayLike | None,
    class_names: Sequence[str] | None,
) -> FittedMetric:
    """Find the metric learner and the points it got, and count the pairs anew."""
    learner, given = model, X
    if isinstance(model, Pipeline):
        places = [k for k, (_, step) in enumerate(model.steps) if hasattr(step, "m_step_metric_")]
        if not places:
            raise ValueError("The pipeline has no fitted SERAPH: fit it first, or give one.")
        learner = model.steps[places[-1]][1]
        given = model[: places[-1]].transform(X) if places[-1] else X
    check_is_fitted(learner)
    if not hasattr(learner, "m_step_metric_"):
        raise TypeError(f"The report is of SERAPH and its relatives, not {type(learner).__name__}.")
    points = np.asarray(given, dtype=np.float64)
    pairs = supervise(points, y, similar, dissimilar)
    codes = np.full(len(points), UNKNOWN)
    names: list[str] = []
    if y is not None:
        known, found = encode_labels(y, len(points))
        codes[known] = found
        labels = np.asarray(y)[known]
        names = [str(labels[np.argmax(found == k)]) for k in range(len(np.unique(found)))]
        if class_names is not None:
            names = [str(class_names[int(name)]) for name in names]
    features = getattr(learner, "feature_names_in_", None)
    if features is None:
        same = points.shape[1] == np.shape(X)[1]
        features = getattr(X, "columns", None) if same else None
    return FittedMetric(
        whole=model,
        model=learner,
        given=given,
        points=points,
        pairs=pairs,
        codes=codes,
        class_names=[visible(name) for name in names],
        feature_names=None if features is None else [visible(str(name)) for name in features],
    )
