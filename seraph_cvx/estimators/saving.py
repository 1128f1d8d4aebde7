"""Models on disk without pickle: numbers and a JSON header, checked on reading.

The header says format, format_version, package_version, class, parameters, attributes, output (of
`set_output`) and, for a search, the same of its best_estimator_; for a pipeline, the same of each
of its steps. A class is a name in our own table; nothing that a file holds is ever executed.
"""

from __future__ import annotations

import os
import re
import zipfile
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..certificate import Certificate
from ..numerics.psd_cone import check_metric
from ..solvers.solution import Status
from .plain_file import Arrays, NotPlain, pack, read_plain_file, refuse, unpack, write_plain_file

FORMAT = "seraph_cvx model"
FORMAT_VERSION = 2
"""Of a pipeline. A model alone is written as version 1, which earlier releases read too."""

UNREADABLE = (ValueError, EOFError, RecursionError, NotImplementedError, zipfile.BadZipFile)

PACKAGE = "seraph_cvx"

MODELS = {
    "SERAPH": "seraph_cvx.estimators.seraph",
    "PairSERAPH": "seraph_cvx.estimators.pair_seraph",
    "KernelSERAPH": "seraph_cvx.estimators.kernel_seraph",
    "SERAPHCV": "seraph_cvx.estimators.seraph_cv",
    **dict.fromkeys(
        ("GDM", "ITML", "LMNN", "LDM", "MFDA", "NCA", "Euclidean"), "seraph_cvx.baselines"
    ),
}
"""The classes that can be saved, and their modules, imported when needed."""

SCALERS = {
    "StandardScaler": "sklearn.preprocessing",
    "MinMaxScaler": "sklearn.preprocessing",
    "MaxAbsScaler": "sklearn.preprocessing",
    "RobustScaler": "sklearn.preprocessing",
    "SimpleImputer": "sklearn.impute",
}
"""The steps that may stand before a metric, and their modules."""

SCALER_ARRAYS = {
    "StandardScaler": ("mean_", "scale_", "var_"),
    "MinMaxScaler": ("min_", "scale_", "data_min_", "data_max_", "data_range_"),
    "MaxAbsScaler": ("scale_", "max_abs_"),
    "RobustScaler": ("center_", "scale_"),
    "SimpleImputer": ("statistics_",),
}
"""The arrays that each of them learns, with an entry for each feature."""

LEARNED_BY_SCALERS = ("n_features_in_", "feature_names_in_", "n_samples_seen_")

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


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted metric learner, alone or behind a scaler, to one .npz file, without pickle.

    The file holds all that was learned; for SERAPH that includes the labeled points and their
    labels, by which new points can be classified.

    Parameters
    ----------
    model : SERAPH, PairSERAPH, KernelSERAPH, SERAPHCV or a rival of theirs, fitted
        Or a fitted `Pipeline` that ends in one of them, after any of StandardScaler, MinMaxScaler,
        MaxAbsScaler, RobustScaler and SimpleImputer.
    path : path
        Taken as it is. What is there is replaced only when the new file is complete.

    Raises
    ------
    TypeError
        When a parameter is not a plain value: a function as a kernel, a solver object; or when a
        pipeline has other steps.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from seraph_cvx import SERAPH
    >>> X = [[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0], [0.2, 5.0], [1.9, 4.0]]
    >>> model = SERAPH(trace_weight=2.0).fit(X, [0, 0, 1, 1, -1, -1])
    >>> with TemporaryDirectory() as folder:
    ...     save_model(model, Path(folder) / "model.npz")
    ...     again = load_model(Path(folder) / "model.npz")
    >>> again, bool((again.transform(X) == model.transform(X)).all())
    (SERAPH(trace_weight=2.0), True)
    """
    arrays: Arrays = {}
    is_pipeline = isinstance(model, Pipeline)
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION if is_pipeline else 1,
        "package_version": import_module(PACKAGE).__version__,
        **(_describe_pipeline(model, arrays) if is_pipeline else _describe(model, "", arrays)),
    }
    write_plain_file(path, header, arrays)


def load_model(path: str | os.PathLike[str]) -> Any:
    """Load the model or pipeline that `save_model` or `seraph-cvx fit` wrote, the same bit for bit.

    Parameters
    ----------
    path : path
        From whomever: the file is checked, and nothing in it is executed.

    Raises
    ------
    ValueError
        When the file is no model of this package, damaged, of a newer format, or does not fit
        together; it names the file and what is wrong with it.

    Examples
    --------
    >>> load_model("no_such_file.npz")
    Traceback (most recent call last):
    FileNotFoundError: [Errno 2] No such file or directory: 'no_such_file.npz'
    """
    try:
        header, arrays = read_plain_file(path)
        _check_format(header)
        is_pipeline = header.get("class") == "Pipeline"
        model = (_rebuild_pipeline if is_pipeline else _rebuild)(header, arrays)
        if arrays:
            refuse(f"its header does not name its entries {sorted(arrays)}")
    except UNREADABLE as error:
        raise ValueError(f"{os.fspath(path)} cannot be loaded: {error}") from error
    return model


def _check_format(header: dict[str, Any]) -> None:
    if header.get("format") != FORMAT:
        refuse(f"it is no model: its header does not say {FORMAT!r}")
    version = header.get("format_version")
    if type(version) is not int or version < 1:
        refuse(f"its format version is {version!r}")
    if version > FORMAT_VERSION:
        refuse(
            f"its format version {version} (seraph_cvx {header.get('package_version')}) is newer "
            f"than {FORMAT_VERSION}, which this seraph_cvx reads: upgrade seraph_cvx"
        )


def _describe_pipeline(pipeline: Pipeline, arrays: Arrays) -> dict[str, Any]:
    """Describe a pipeline by its steps: scalers, then a model."""
    check_is_fitted(pipeline)
    steps = [(name, step) for name, step in pipeline.steps if step not in (None, "passthrough")]
    for _, step in steps[:-1]:
        if not _is_one_of(SCALERS, step):
            raise TypeError(
                f"This Pipeline cannot be saved: before its last step it may have "
                f"{', '.join(SCALERS)}, not {type(step).__name__}. To save it without the "
                "classifier at its end, save pipeline[:-1]."
            )
    records = [
        [name, _describe(step, f"steps.{k}.", arrays, MODELS if step is steps[-1][1] else SCALERS)]
        for k, (name, step) in enumerate(steps)
    ]
    return {"class": "Pipeline", "steps": records}


def _describe(
    model: Any, prefix: str, arrays: Arrays, classes: dict[str, str] = MODELS
) -> dict[str, Any]:
    """Describe a fitted model or scaler in JSON values; its arrays are put into `arrays`."""
    name = type(model).__name__
    if not _is_one_of(classes, model):
        raise TypeError(
            f"{name} cannot be saved: only {', '.join(MODELS)} of {PACKAGE} can, alone or at the "
            f"end of a Pipeline after {', '.join(SCALERS)}."
        )
    check_is_fitted(model)
    parameters = model.get_params(deep=False)
    learned = {key: value for key, value in vars(model).items() if key not in parameters}
    learned.pop("_sklearn_output_config", None)
    parameters.pop("callback", None)  # it belongs to the fit that is over, not to what was learned
    inner = learned.pop("best_estimator_", None)
    if classes is SCALERS:
        learned = {key: value for key, value in learned.items() if _may_be_learned(key, name)}
        if "statistics_" in learned:  # of a constant they are objects
            learned["statistics_"] = np.asarray(learned["statistics_"], dtype=np.float64)
    else:
        _check_fitted(name, vars(model))
        if unknown := [key for key in learned if not _may_be_learned(key, name)]:
            raise TypeError(f"This {name} cannot be saved: `{unknown[0]}` is nothing it learns.")
    try:
        record = {
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
    if inner is not None:
        record["best_estimator_"] = _describe(inner, f"{prefix}best_estimator_.", arrays)
    return record


def _rebuild_pipeline(record: dict[str, Any], arrays: Arrays) -> Pipeline:
    """Rebuild the pipeline whose steps a record describes."""
    steps = record.get("steps")
    if not isinstance(steps, list) or not steps:
        refuse("its pipeline has no steps")
    rebuilt = []
    for number, step in enumerate(steps):
        match step:
            case [str(name), dict(content)]:
                classes = MODELS if number == len(steps) - 1 else SCALERS
                rebuilt.append((name, _rebuild(content, arrays, classes)))
            case _:
                refuse(f"the step {number} of its pipeline has no name or no content")
    sizes = {step.n_features_in_ for _, step in rebuilt}
    if len(sizes) > 1:
        refuse(f"the steps of its pipeline take {' and '.join(map(str, sorted(sizes)))} features")
    return Pipeline(rebuilt)


def _rebuild(record: dict[str, Any], arrays: Arrays, classes: dict[str, str] = MODELS) -> Any:
    """Rebuild the model or scaler that a record describes."""
    name = record.get("class")
    if not isinstance(name, str) or name not in classes:
        refuse(f"its class {name!r} is none of {', '.join(classes)}")
    try:
        cls = getattr(import_module(classes[name]), name)
    except ImportError as error:
        refuse(f"its class {name} cannot be imported ({error})")
    parameters, attributes = record.get("parameters"), record.get("attributes")
    if not isinstance(parameters, dict) or not isinstance(attributes, dict):
        refuse("its header has no parameters or no attributes")
    if unknown := parameters.keys() - cls().get_params(deep=False).keys():
        refuse(f"{name} has no parameter {sorted(unknown)[0]!r}")
    model = cls(**{key: unpack(value, arrays) for key, value in parameters.items()})
    for key in attributes:
        if not _may_be_learned(key, name) or hasattr(cls, key):
            refuse(f"{name} learns no attribute {key!r}")
    learned = {
        key: unpack(value, arrays, may_be_nan=key == "cv_results_")
        for key, value in attributes.items()
    }
    if name == "SERAPHCV" and isinstance(record.get("best_estimator_"), dict):
        learned["best_estimator_"] = _rebuild(record["best_estimator_"], arrays)
    if classes is MODELS:
        _check_fitted(name, learned)
    else:
        _check_scaler(model, learned)
    vars(model).update(learned)
    if record.get("output") not in (None, "default", "pandas", "polars"):
        refuse(f"its output is {record['output']!r}")
    return model.set_output(transform=record.get("output"))


def _is_one_of(classes: dict[str, str], model: Any) -> bool:
    """Whether a model is of one of these classes, and not of one derived from it."""
    name = type(model).__name__
    return name in classes and getattr(import_module(classes[name]), name) is type(model)


def _may_be_learned(key: str, name: str) -> bool:
    if name in SCALERS:
        return key in (*SCALER_ARRAYS[name], *LEARNED_BY_SCALERS)
    return bool(re.fullmatch(r"[a-z][a-z0-9_]*_", key)) or key in PRIVATE.get(name, ())


def _check_scaler(scaler: Any, learned: dict[str, Any]) -> None:
    """Check that what a scaler learned fits together, and let an imputer make the rest of it."""
    name, m = type(scaler).__name__, learned.get("n_features_in_")
    if type(m) is not int or m < 1:
        refuse(f"the n_features_in_ of this {name} is {m!r}")
    for key in (*SCALER_ARRAYS[name], "feature_names_in_"):
        value = learned.get(key)
        if value is None and (key == "feature_names_in_" or name != "SimpleImputer"):
            continue  # nobody named them, or the scaler was told not to learn it
        kind = "O" if key == "feature_names_in_" else "f"
        if not isinstance(value, np.ndarray) or value.dtype.kind != kind or value.shape != (m,):
            refuse(f"the {key} of this {name} is not an array of {m} entries of its kind")
    if name == "SimpleImputer":  # the statistics of one row are that row
        statistics = learned.pop("statistics_")
        scaler.fit(statistics.reshape(1, m))
        if not np.array_equal(scaler.statistics_, statistics):
            refuse("the statistics_ of this SimpleImputer are not what its strategy gives")


def _check_fitted(name: str, learned: dict[str, Any]) -> None:
    """Check that what a model learned is all there, with its types and matching shapes."""
    for key, kind in ATTRIBUTE_TYPES.items():
        if key not in learned and MODELS[name] == "seraph_cvx.baselines":
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
