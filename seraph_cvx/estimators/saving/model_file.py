"""Models on disk without pickle: numbers and a JSON header, checked on reading.

The header says format, format_version, package_version, class, parameters, attributes, output (of
`set_output`) and, for a search, the same of its best_estimator_. A class is a name in our own
table; nothing that a file holds is ever executed.
"""

from __future__ import annotations

import os
import re
import zipfile
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ...certificate import Certificate
from ...numerics.psd_cone import check_metric
from ...solvers.solution import Status
from .number_file import Arrays, read_number_file, refuse, write_number_file
from .plain_values import NotPlain, pack, unpack

FORMAT = "seraph_cvx model"
FORMAT_VERSION = 1
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

UNREADABLE = (ValueError, EOFError, RecursionError, NotImplementedError, zipfile.BadZipFile)


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted metric learner of this package to one .npz file, without pickle.

    Parameters
    ----------
    model : SERAPH, PairSERAPH, KernelSERAPH, SERAPHCV or a rival of theirs, fitted
    path : path
        Taken as it is. What is there is replaced only when the new file is complete.

    Raises
    ------
    TypeError
        When a parameter is not a plain value: a function as a kernel, a solver object.

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
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "package_version": import_module(PACKAGE).__version__,
        **_describe(model, "", arrays),
    }
    write_number_file(path, header, arrays)


def load_model(path: str | os.PathLike[str]) -> Any:
    """Load the model that `save_model` wrote; its distances are the same bit for bit.

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
        header, arrays = read_number_file(path)
        _check_format(header)
        model = _rebuild(header, arrays)
        if arrays:
            refuse(f"its header does not name its entries {sorted(arrays)}")
    except UNREADABLE as error:
        raise ValueError(f"{os.fspath(path)} cannot be loaded: {error}") from error
    return model


def _describe(model: Any, prefix: str, arrays: Arrays) -> dict[str, Any]:
    """Describe a model in JSON values; its arrays are put into `arrays`."""
    name = type(model).__name__
    if type(model).__module__ != f"{PACKAGE}.{MODELS.get(name)}":
        raise TypeError(f"{name} cannot be saved: only {', '.join(MODELS)} of {PACKAGE} can.")
    check_is_fitted(model)
    _check_fitted(model)
    parameters = model.get_params(deep=False)
    learned = {key: value for key, value in vars(model).items() if key not in parameters}
    output = learned.pop("_sklearn_output_config", {}).get("transform")
    strange = [key for key in learned if not _may_be_learned(key, type(model))]
    if strange:
        raise TypeError(f"This {name} cannot be saved: `{strange[0]}` is nothing it learns.")
    inner = learned.pop("best_estimator_", None)
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
            "output": output,
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


def _rebuild(record: dict[str, Any], arrays: Arrays) -> Any:
    """Rebuild the model that a record describes."""
    cls = _open_class(record.get("class"))
    parameters, attributes = record.get("parameters"), record.get("attributes")
    if not isinstance(parameters, dict) or not isinstance(attributes, dict):
        refuse("its header has no parameters or no attributes")
    unknown = parameters.keys() - cls().get_params(deep=False).keys()
    if unknown:
        refuse(f"{cls.__name__} has no parameter {sorted(unknown)[0]!r}")
    model = cls(**{key: unpack(value, arrays) for key, value in parameters.items()})
    for key, value in attributes.items():
        if not _may_be_learned(key, cls):
            refuse(f"{cls.__name__} learns no attribute {key!r}")
        setattr(model, key, unpack(value, arrays, may_be_nan=key == "cv_results_"))
    if cls.__name__ == "SERAPHCV" and isinstance(record.get("best_estimator_"), dict):
        model.best_estimator_ = _rebuild(record["best_estimator_"], arrays)
    _check_fitted(model)
    if record.get("output") not in (None, "default", "pandas", "polars"):
        refuse(f"its output is {record['output']!r}")
    return model.set_output(transform=record.get("output"))


def _open_class(name: Any) -> Any:
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
    return shapes
