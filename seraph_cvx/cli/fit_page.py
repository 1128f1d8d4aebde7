"""`seraph-cvx fit --html`: the report of a fit, with the code and the command that do the same."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

from .report import alert, say
from .tables.frames import name_columns
from .tables.reading import Reading
from .tables.table_text import open_text
from .tables.user_table import UserTable


def write_report(
    path: Path, model: Any, table: UserTable, name: str, code: str, command: str, kept: list[str]
) -> None:
    """Write the report of a fit, or say why there is none.

    Parameters
    ----------
    path : Path
    model : SERAPH, or a Pipeline with it
    table : UserTable
        As it was read, before the steps of the pipeline.
    name : str
        Of the table.
    code, command : str
        See :func:`loading_code` and :func:`command_given`.
    kept : list of str
        Takes what was written.
    """
    try:
        from ..plots import fit_report
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        alert('No report: matplotlib is not installed. Run  pip install "seraph-cvx[plot]"')
        return
    words = [f"{word!r} ({count} times)" for word, count in table.unknown.items()]
    fit_report(
        model,
        name_columns(table.X, table.feature_names),
        table.y,
        file=path,
        name=name,
        class_names=table.class_names,
        notes=[f"Labels read as unknown: {', '.join(words)}."] if words else [],
        loading=code,
        command=command,
    )
    kept.append(f"the report is in {path}")
    say(f"Written: the report of the fit, a page for any browser, to {path}")


def loading_code(file: Path, label: str, reading: Reading, table: UserTable) -> str:
    """The Python code that reads the table as the command does."""
    text = open_text(file, reading)
    options: dict[str, Any] = {"sep": text.delimiter, "encoding": text.encoding}
    options |= {} if reading.decimal == "." else {"decimal": reading.decimal}
    options |= {"skiprows": text.skipped} if text.skipped else {}
    options |= {"skipinitialspace": True, "dtype": {label: object}}
    options |= {"keep_default_na": reading.impute, "na_values": {label: ["", *table.unknown]}}
    given = [repr(str(file)), *(f"{name}={value!r}" for name, value in options.items())]
    inside = ",\n    ".join(given).replace("<class 'object'>", "object")
    lines = ["import pandas", "", f"X = pandas.read_csv(\n    {inside},\n)"]
    lines.append(f"y = X.pop({label!r})  # empty: unknown")
    lines += [f"X = X.drop(columns={list(reading.drop)!r})"] if reading.drop else []
    for name in reading.one_hot:
        few = f"X[{name!r}].nunique() == 2"
        lines.append(
            f"X = pandas.get_dummies(X, columns=[{name!r}], dtype=float, drop_first={few})"
        )
    return "\n".join([*lines, ""])


def command_given(context: Any) -> str:
    """The command as it was typed, but for the order of its options."""
    return shlex.join(["seraph-cvx", context.info_name, *_words(context)])


def _words(context: Any) -> Iterator[str]:
    """The arguments, then the options that were given."""
    parameters = sorted(context.command.params, key=lambda p: p.param_type_name != "argument")
    for parameter in parameters:
        source = context.get_parameter_source(parameter.name)
        if source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[parameter.name]
        for one in value if isinstance(value, list | tuple) else [value]:
            if isinstance(one, bool):
                yield (parameter.opts if one else parameter.secondary_opts)[0]
                continue
            if parameter.param_type_name != "argument":
                yield parameter.opts[0]
            yield str(one.value if isinstance(one, Enum) else one)
