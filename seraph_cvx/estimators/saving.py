"""Models on disk without pickle: numbers and a JSON header, checked on reading.

The header says format, format_version, package_version, class, parameters, attributes; for a
pipeline, the same of each of its steps. A class is a name in our own table; nothing that a file
holds is ever executed.
"""

from __future__ import annotations

import os
import re
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..certificate import Certificate
from ..numerics.psd_cone import check_metric
from ..processes.array_file import read_regular_file
from ..solvers.solution import Status
from .plain_file import (
    Arrays,
    NotPlain,
    look_up,
    pack,
    parse_plain_file,
    refuse,
    unpack,
    write_plain_file,
)

FORMAT = "seraph_cvx model"
FORMAT_VERSION = 3
"""Raised whenever the format changes: no other one is read."""

PACKAGE = "seraph_cvx"

MODELS = {
    "SERAPH": "seraph_cvx.estimators.seraph",
    "PairSERAPH": "seraph_cvx.estimators.pair_seraph",
    "KernelSERAPH": "seraph_cvx.estimators.kernel_seraph",
}
"""The classes that can be saved, and their modules, imported when needed."""

SCALERS = {
    **dict.fromkeys(
        ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler"), "sklearn.preprocessing"
    ),
    "SimpleImputer": "sklearn.impute",
}
"""The steps that may stand before a metric, and their modules."""

LEARNED = re.compile("[a-z][a-z0-9_]*_|_row_means|_mean")
"""The names of what is learned; the last two are of KernelSERAPH."""

TYPES: dict[str, Any] = {
    "n_iter_": int,
    "threshold_": float,
    "status_": Status,
    "history_": list,
    "certificate_": Certificate | None,
    "table_": dict,
    "_mean": float,
}
"""The types of these attributes, wherever they occur; every model has all but the last two, of
which `seraph-cvx fit` adds one and KernelSERAPH has the other."""


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted metric learner, alone or behind a scaler, to one .npz file, without pickle.

    The file holds all that was learned; for SERAPH that includes the labeled points and their
    labels, by which new points can be classified.

    Parameters
    ----------
    model : SERAPH, PairSERAPH or KernelSERAPH, fitted
        Or a fitted `Pipeline` that ends in one of them, after any of StandardScaler, MinMaxScaler,
        MaxAbsScaler, RobustScaler and SimpleImputer.
    path : path
        Used as given. An existing file is replaced only when the new one is complete.

    Raises
    ------
    TypeError
        If a parameter is not a plain value (a function as a kernel, a solver object), or if a
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
    describe = _describe_pipeline if isinstance(model, Pipeline) else _describe
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "package_version": import_module(PACKAGE).__version__,
        **describe(model, arrays),
    }
    write_plain_file(path, header, arrays)


def load_model(path: str | os.PathLike[str]) -> Any:
    """Load a model or pipeline that `save_model` or `seraph-cvx fit` wrote, bit for bit the same.

    Parameters
    ----------
    path : path
        The file need not be trusted: it is checked, and nothing in it is executed.

    Raises
    ------
    ValueError
        If the file is not a model of this package, or is damaged, inconsistent or of another
        format; the message names the file and what is wrong with it.

    Examples
    --------
    >>> load_model("no_such_file.npz")
    Traceback (most recent call last):
    FileNotFoundError: [Errno 2] No such file or directory: 'no_such_file.npz'
    """
    content = read_regular_file(path)
    try:
        header, arrays = parse_plain_file(content)
        if header.get("format") != FORMAT:
            refuse(f"it is no model: its header does not say {FORMAT!r}")
        if header.get("format_version") != FORMAT_VERSION:
            refuse(
                f"its format version is {header.get('format_version')!r}, written by seraph_cvx "
                f"{header.get('package_version')}, and this seraph_cvx reads version "
                f"{FORMAT_VERSION}: load and save it by a seraph_cvx that reads both, or fit again"
            )
        if header.get("class") != "Pipeline":
            return _rebuild(header, arrays)
        *scalers, (last, model) = header["steps"]
        steps = [(name, _rebuild(scaler, arrays, SCALERS)) for name, scaler in scalers]
        return Pipeline([*steps, (last, _rebuild(model, arrays))])
    except Exception as error:  # whatever a damaged or a hostile file makes of the parsers
        raise ValueError(f"{os.fspath(path)} cannot be loaded: {error}") from error


def _describe_pipeline(pipeline: Pipeline, arrays: Arrays) -> dict[str, Any]:
    """Describe a pipeline by its steps: scalers, then a model."""
    check_is_fitted(pipeline)
    steps = [(name, step) for name, step in pipeline.steps if step not in (None, "passthrough")]
    for _, step in steps[:-1]:
        if not _is_one_of(SCALERS, step):
            raise TypeError(
                f"This Pipeline cannot be saved: before its last step it may have "
                f"{', '.join(SCALERS)}, not {type(step).__name__}. {_cure(pipeline)}"
            )
    records = [
        [name, _describe(step, arrays, f"steps.{k}.", MODELS if step is steps[-1][1] else SCALERS)]
        for k, (name, step) in enumerate(steps)
    ]
    return {"class": "Pipeline", "steps": records}


def _cure(pipeline: Pipeline) -> str:
    """What to save instead of a pipeline."""
    if _is_one_of(MODELS, pipeline[-1]):
        first = pipeline.steps[0][0]
        return (
            f"Transform the columns before it, by {first!r} fitted on its own, and save the "
            "pipeline of the steps behind; of a CSV table, seraph-cvx fit --one-hot COLUMN saves "
            "the columns of text, too."
        )
    return "To save it without the classifier at its end, save pipeline[:-1]."


def _describe(
    model: Any, arrays: Arrays, prefix: str = "", classes: dict[str, str] = MODELS
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
    for of_factor, matrix in (("factor_", "metric_"), ("m_step_factor_", "m_step_metric_")):
        if of_factor in learned:  # the matrix may have been made of it since
            learned.pop(matrix, None)
    parameters.pop("callback", None)  # it belongs to the fit that is over, not to what was learned
    if name == "SimpleImputer":  # the rest follows from these; of a constant they are objects
        kept = learned.keys() & {"n_features_in_", "feature_names_in_"}
        statistics = np.asarray(learned["statistics_"], dtype=np.float64)
        learned = {key: learned[key] for key in kept} | {"statistics_": statistics}
    try:
        if unknown := [key for key in learned if not LEARNED.fullmatch(key)]:
            raise NotPlain(f"`{unknown[0]}` is nothing it learns")
        return {
            "class": name,
            "parameters": {
                key: pack(value, f"{prefix}parameters.{key}", arrays)
                for key, value in parameters.items()
            },
            "attributes": {
                key: pack(value, prefix + key, arrays) for key, value in learned.items()
            },
        }
    except NotPlain as error:
        raise TypeError(
            f"This {name} cannot be saved: {error}. Only numbers, strings, None, and sequences of "
            "them are written: give such a value."
        ) from None


def _rebuild(record: dict[str, Any], arrays: Arrays, classes: dict[str, str] = MODELS) -> Any:
    """Rebuild the model or scaler that a record describes."""
    name = record.get("class")
    cls = getattr(import_module(look_up(name, classes, "class")), str(name))
    parameters = {key: unpack(value, arrays) for key, value in record["parameters"].items()}
    model = cls(**parameters)
    for key in record["attributes"]:
        is_method = hasattr(cls, key) and not isinstance(getattr(cls, key), cached_property)
        if not LEARNED.fullmatch(key) or is_method:
            refuse(f"{name} learns no attribute {key!r}")
    learned = {key: unpack(value, arrays) for key, value in record["attributes"].items()}
    if classes is MODELS:
        _check_attributes(str(name), learned)
        if "metric_" in learned:
            metric = learned["metric_"]
            check_metric(metric, len(metric), f"the metric_ of this {name}")
    elif name == "SimpleImputer":  # the statistics of one row are that row
        model.fit(learned.pop("statistics_")[None])
    vars(model).update(learned)
    return model


def _is_one_of(classes: dict[str, str], model: Any) -> bool:
    """Whether a model is of one of these classes, and not of one derived from it."""
    name = type(model).__name__
    return name in classes and getattr(import_module(classes[name]), name) is type(model)


def _check_attributes(name: str, learned: dict[str, Any]) -> None:
    """Check that what a model learned is all there, of its type and finite."""
    required = {"factor_" if "factor_" in learned else "metric_", "components_"}
    required |= TYPES.keys() - {"table_", "_mean"}
    if name == "KernelSERAPH":
        required |= {"axes_", "training_points_", "_row_means", "_mean"}
    if missing := sorted(required - learned.keys()):
        refuse(f"the {missing[0]} of this {name} is missing")
    for key, value in learned.items():
        if not isinstance(value, TYPES.get(key, object)):
            refuse(f"the {key} of this {name} is {value!r}")
        is_number = isinstance(value, float | np.ndarray) and np.asarray(value).dtype.kind == "f"
        if is_number and not np.all(np.isfinite(value)):
            refuse(f"the {key} of this {name} holds NaN or infinity")
