"""A model or a scaler as a record: JSON values that say its class, parameters and attributes."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ...certificate import Certificate
from ...numerics.psd_cone import check_metric
from ...solvers.solution import Status
from .number_file import Arrays, refuse
from .plain_values import NotPlain, pack, unpack
from .scalers import SCALERS, learned_by_scaler, make_scaler

PACKAGE = "seraph_cvx"

MODELS = {
    "SERAPH": "estimators.seraph",
    "PairSERAPH": "estimators.pair_seraph",
    "KernelSERAPH": "estimators.kernel_seraph",
    "SERAPHCV": "estimators.selection.seraph_cv",
    "GDM": "baselines.gdm",
    "ITML": "baselines.itml",
    "LMNN": "baselines.lmnn.estimator",
    "LDM": "baselines.ldm",
    "MFDA": "baselines.mfda",
    "NCA": "baselines.nca",
    "Euclidean": "baselines.euclidean",
}
"""The classes that can be saved, and their modules, imported when needed."""

PRIVATE = {"KernelSERAPH": ("_row_means", "_mean")}
"""Learned attributes whose names do not end in an underscore."""

ATTRIBUTE_TYPES: dict[str, Any] = {
    "n_features_in_": int,
    "n_iter_": int,
    "threshold_": float,
    "status_": Status,
    "history_": list,
    "certificate_": Certificate | None,
}
"""The types of these attributes, wherever they occur; SERAPH and its relatives have them all."""


def describe_model(model: Any, prefix: str, arrays: Arrays) -> dict[str, Any]:
    """Describe a model in JSON values; its arrays are put into `arrays`."""
    name = type(model).__name__
    if type(model).__module__ != f"{PACKAGE}.{MODELS.get(name)}":
        raise TypeError(
            f"{name} cannot be saved: only {', '.join(MODELS)} of {PACKAGE} can, alone or at the "
            f"end of a Pipeline after {', '.join(SCALERS)}."
        )
    check_is_fitted(model)
    _check_fitted(model)
    parameters = model.get_params(deep=False)
    learned = {key: value for key, value in vars(model).items() if key not in parameters}
    learned.pop("_sklearn_output_config", None)
    parameters.pop("callback", None)  # it belongs to the fit that is over, not to what was learned
    strange = [key for key in learned if not _may_be_learned(key, type(model))]
    if strange:
        raise TypeError(f"This {name} cannot be saved: `{strange[0]}` is nothing it learns.")
    inner = learned.pop("best_estimator_", None)
    record = _record(model, parameters, learned, prefix, arrays)
    if inner is not None:
        record["best_estimator_"] = describe_model(inner, f"{prefix}best_estimator_.", arrays)
    return record


def describe_scaler(scaler: Any, prefix: str, arrays: Arrays) -> dict[str, Any]:
    """Describe a fitted scaler in JSON values; its arrays are put into `arrays`."""
    parameters = scaler.get_params(deep=False)
    return _record(scaler, parameters, learned_by_scaler(scaler), prefix, arrays)


def _record(
    model: Any,
    parameters: dict[str, Any],
    learned: dict[str, Any],
    prefix: str,
    arrays: Arrays,
) -> dict[str, Any]:
    """The class, the parameters, the learned attributes and the output of a model or scaler."""
    name = type(model).__name__
    try:
        return {
            "class": name,
            "parameters": {
                key: pack(value, f"{prefix}parameters.{key}", arrays)
                for key, value in parameters.items()
            },
            "attributes": {
                key: pack(value, prefix + key, arrays) for key, value in learned.items()
            },
            "output": getattr(model, "_sklearn_output_config", {}).get("transform"),
        }
    except NotPlain as error:
        cure = ", or save its best_estimator_" if name == "SERAPHCV" else ""
        raise TypeError(
            f"This {name} cannot be saved: {error}. Only numbers, strings, None, and sequences of "
            f"them are written: give such a value{cure}."
        ) from None


def _parts(record: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and the attributes of a record."""
    parameters, attributes = record.get("parameters"), record.get("attributes")
    if not isinstance(parameters, dict) or not isinstance(attributes, dict):
        refuse("its header has no parameters or no attributes")
    return parameters, attributes


def _with_output(model: Any, record: dict[str, Any]) -> Any:
    """Let `transform` return what it returned when the model was saved."""
    if record.get("output") not in (None, "default", "pandas", "polars"):
        refuse(f"its output is {record['output']!r}")
    return model.set_output(transform=record.get("output"))


def rebuild_scaler(record: dict[str, Any], arrays: Arrays) -> Any:
    """Rebuild the scaler that a record describes."""
    parameters, attributes = (
        {key: unpack(value, arrays) for key, value in part.items()} for part in _parts(record)
    )
    return _with_output(make_scaler(record.get("class"), parameters, attributes), record)


def rebuild_model(record: dict[str, Any], arrays: Arrays) -> Any:
    """Rebuild the model that a record describes."""
    cls = open_class(record.get("class"))
    parameters, attributes = _parts(record)
    unknown = parameters.keys() - cls().get_params(deep=False).keys()
    if unknown:
        refuse(f"{cls.__name__} has no parameter {sorted(unknown)[0]!r}")
    model = cls(**{key: unpack(value, arrays) for key, value in parameters.items()})
    for key, value in attributes.items():
        if not _may_be_learned(key, cls):
            refuse(f"{cls.__name__} learns no attribute {key!r}")
        setattr(model, key, unpack(value, arrays, may_be_nan=key == "cv_results_"))
    if cls.__name__ == "SERAPHCV" and isinstance(record.get("best_estimator_"), dict):
        model.best_estimator_ = rebuild_model(record["best_estimator_"], arrays)
    _check_fitted(model)
    return _with_output(model, record)


def open_class(name: Any) -> Any:
    """Import the class of a model by its name."""
    if not isinstance(name, str) or name not in MODELS:
        refuse(f"its class {name!r} is none of {', '.join(MODELS)}")
    try:
        return getattr(import_module(f"{PACKAGE}.{MODELS[name]}"), name)
    except ImportError as error:
        refuse(f"its class {name} cannot be imported ({error})")


def _may_be_learned(key: str, cls: Any) -> bool:
    named_so = re.fullmatch(r"[a-z][a-z0-9_]*_", key) and not hasattr(cls, key)
    return bool(named_so) or key in PRIVATE.get(cls.__name__, ())


def _check_fitted(model: Any) -> None:
    """Check that the learned attributes exist, with their types and matching shapes."""
    name, learned = type(model).__name__, vars(model)
    for key, kind in ATTRIBUTE_TYPES.items():
        if key not in learned and MODELS[name].startswith("baselines"):
            continue
        if not isinstance(learned.get(key, ()), kind) or learned[key] != learned[key]:
            refuse(f"the {key} of this {name} is {learned.get(key, 'missing')!r}")
    if name == "SERAPHCV" and type(learned.get("best_estimator_")).__name__ != "SERAPH":
        refuse("this SERAPHCV has no SERAPH as its best_estimator_")
    if name == "KernelSERAPH" and not isinstance(learned.get("_mean"), float):
        refuse(f"the _mean of this KernelSERAPH is {learned.get('_mean')!r}")
    for key, shape in _shapes(name, learned).items():
        array = learned.get(key)
        kind = "O" if key == "feature_names_in_" else "f"
        if not isinstance(array, np.ndarray) or array.dtype.kind != kind:
            refuse(f"the {key} of this {name} is missing, or not an array of its kind")
        is_cut = key == "components_" and 1 <= len(array) <= shape[0]
        if array.shape != shape and not (is_cut and array.shape[1:] == shape[1:]):
            refuse(f"the {key} of this {name} has shape {array.shape}, where {shape} fits")
    check_metric(learned["metric_"], len(learned["metric_"]), f"the metric_ of this {name}")


def _shapes(name: str, learned: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    m = learned.get("n_features_in_", 0)
    shapes: dict[str, tuple[int, ...]] = {"metric_": (m, m), "components_": (m, m)}
    if name == "KernelSERAPH":
        axes = np.asarray(learned.get("axes_"))
        n, r = axes.shape if axes.ndim == 2 else (0, 0)
        shapes = {"axes_": (n, r), "training_points_": (n, m), "_row_means": (n,)}
        shapes |= {"metric_": (r, r), "components_": (r, r)}
    if "feature_names_in_" in learned:
        shapes["feature_names_in_"] = (m,)
    labels = learned.get("labels_")
    if labels is not None:
        if not isinstance(labels, np.ndarray) or labels.ndim != 1:
            refuse(f"the labels_ of this {name} are not an array with an entry for each point")
        shapes["labeled_points_"] = (len(labels), m)
    return shapes
