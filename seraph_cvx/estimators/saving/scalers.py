"""Scalers and imputers of scikit-learn in a model file: their parameters and learned numbers."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from .number_file import refuse

SCALERS = {
    "StandardScaler": ("sklearn.preprocessing", ("mean_", "scale_", "var_")),
    "MinMaxScaler": (
        "sklearn.preprocessing",
        ("min_", "scale_", "data_min_", "data_max_", "data_range_"),
    ),
    "MaxAbsScaler": ("sklearn.preprocessing", ("scale_", "max_abs_")),
    "RobustScaler": ("sklearn.preprocessing", ("center_", "scale_")),
    "SimpleImputer": ("sklearn.impute", ("statistics_",)),
}
"""The steps that may stand before a metric: their modules, and the arrays that they learn."""

OTHERS = ("n_features_in_", "feature_names_in_", "n_samples_seen_")


def is_scaler(step: Any) -> bool:
    """Whether a step is one of the scalers, and not of a class derived from one."""
    room, _ = SCALERS.get(type(step).__name__, ("", ()))
    return bool(room) and type(step) is getattr(import_module(room), type(step).__name__)


def learned_by_scaler(step: Any) -> dict[str, Any]:
    """The public attributes that a fitted scaler learned."""
    _, arrays = SCALERS[type(step).__name__]
    learned = {key: getattr(step, key) for key in (*arrays, *OTHERS) if hasattr(step, key)}
    if "statistics_" in learned:  # of a constant they are objects
        learned["statistics_"] = np.asarray(learned["statistics_"], dtype=np.float64)
    return learned


def make_scaler(name: Any, parameters: dict[str, Any], learned: dict[str, Any]) -> Any:
    """Make a fitted scaler from what was saved; a ValueError says what does not fit.

    Examples
    --------
    >>> learned = {"mean_": np.ones(1), "scale_": 2.0 * np.ones(1), "n_features_in_": 1}
    >>> make_scaler("StandardScaler", {}, learned).transform([[5.0]])
    array([[2.]])
    """
    if not isinstance(name, str) or name not in SCALERS:
        refuse(f"its step {name!r} is none of {', '.join(SCALERS)}")
    room, arrays = SCALERS[name]
    cls = getattr(import_module(room), name)
    unknown = {*parameters} - {*cls().get_params()} | {*learned} - {*arrays, *OTHERS}
    if unknown:
        refuse(f"{name} has no parameter and learns no attribute {sorted(unknown)[0]!r}")
    step, m = cls(**parameters), learned.get("n_features_in_")
    if type(m) is not int or m < 1:
        refuse(f"the n_features_in_ of this {name} is {m!r}")
    _check_learned(name, arrays, learned, m)
    if name == "SimpleImputer":  # the statistics of one row are that row
        statistics = learned.pop("statistics_")
        step.fit(statistics.reshape(1, m))
        if not np.array_equal(step.statistics_, statistics):
            refuse("the statistics_ of this SimpleImputer are not what its strategy gives")
    for key, value in learned.items():
        setattr(step, key, value)
    return step


def _check_learned(name: str, arrays: tuple[str, ...], learned: dict[str, Any], m: int) -> None:
    for key in (*arrays, "feature_names_in_"):
        value = learned.get(key)
        if value is None and (key == "feature_names_in_" or name != "SimpleImputer"):
            continue  # nobody named them, or the scaler was told not to learn it
        kind = "O" if key == "feature_names_in_" else "f"
        if not isinstance(value, np.ndarray) or value.dtype.kind != kind or value.shape != (m,):
            refuse(f"the {key} of this {name} is not an array of {m} entries of its kind")
