"""Models on disk without pickle: numbers and a JSON header, checked on reading.

The header says format, format_version, package_version, class, parameters, attributes, output (of
`set_output`) and, for a search, the same of its best_estimator_; for a pipeline, the same of each
of its steps. A class is a name in our own table; nothing that a file holds is ever executed.
"""

from __future__ import annotations

import os
import zipfile
from importlib import import_module
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .number_file import Arrays, read_number_file, refuse, write_number_file
from .records import PACKAGE, describe_model, describe_scaler, rebuild_model, rebuild_scaler
from .scalers import SCALERS, is_scaler

FORMAT = "seraph_cvx model"
FORMAT_VERSION = 2
"""Of a pipeline. A model alone is written as version 1, which earlier releases read too."""

UNREADABLE = (ValueError, EOFError, RecursionError, NotImplementedError, zipfile.BadZipFile)


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
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION if isinstance(model, Pipeline) else 1,
        "package_version": import_module(PACKAGE).__version__,
        **(_describe_pipeline if isinstance(model, Pipeline) else describe_model)(
            model, "", arrays
        ),
    }
    write_number_file(path, header, arrays)


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
        header, arrays = read_number_file(path)
        _check_format(header)
        is_pipeline = header.get("class") == "Pipeline"
        model = (_rebuild_pipeline if is_pipeline else rebuild_model)(header, arrays)
        if arrays:
            refuse(f"its header does not name its entries {sorted(arrays)}")
    except UNREADABLE as error:
        raise ValueError(f"{os.fspath(path)} cannot be loaded: {error}") from error
    return model


def _describe_pipeline(pipeline: Pipeline, prefix: str, arrays: Arrays) -> dict[str, Any]:
    """Describe a pipeline by its steps: scalers, then a model."""
    check_is_fitted(pipeline)
    steps = [(name, step) for name, step in pipeline.steps if step not in (None, "passthrough")]
    records = []
    for number, (name, step) in enumerate(steps):
        inside = f"{prefix}steps.{number}."
        if number == len(steps) - 1:
            records.append([name, describe_model(step, inside, arrays)])
        elif is_scaler(step):
            records.append([name, describe_scaler(step, inside, arrays)])
        else:
            raise TypeError(
                f"This Pipeline cannot be saved: before its last step it may have "
                f"{', '.join(SCALERS)}, not {type(step).__name__}. To save it without the "
                "classifier at its end, save pipeline[:-1]."
            )
    return {"class": "Pipeline", "steps": records}


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


def _rebuild_pipeline(record: dict[str, Any], arrays: Arrays) -> Pipeline:
    """Rebuild the pipeline whose steps a record describes."""
    steps = record.get("steps")
    if not isinstance(steps, list) or not steps:
        refuse("its pipeline has no steps")
    rebuilt = []
    for number, step in enumerate(steps):
        match step:
            case [str(name), dict(content)]:
                is_last = number == len(steps) - 1
                rebuild = rebuild_model if is_last else rebuild_scaler
                rebuilt.append((name, rebuild(content, arrays)))
            case _:
                refuse(f"the step {number} of its pipeline has no name or no content")
    sizes = {step.n_features_in_ for _, step in rebuilt}
    if len(sizes) > 1:
        refuse(f"the steps of its pipeline take {' and '.join(map(str, sorted(sizes)))} features")
    return Pipeline(rebuilt)
