"""The Python code that fits what a report is about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sklearn.pipeline import Pipeline

import seraph_cvx


def python_of(model: Any, loading: str = "", has_constraints: bool = False) -> str:
    """Write the Python code that makes and fits this model.

    Parameters
    ----------
    model : estimator or Pipeline
    loading : str
        Lines that define X and y; by default a comment says what they are.
    has_constraints : bool
        Whether `fit` was also given pairs, `similar` and `dissimilar`.

    Examples
    --------
    >>> from seraph_cvx import SERAPH
    >>> print(python_of(SERAPH(trace_weight=0.5)))
    from seraph_cvx import SERAPH
    from seraph_cvx.plots import fit_report
    <BLANKLINE>
    # X: the points, a row each; y: their classes, -1 where unknown
    model = SERAPH(trace_weight=0.5)
    model.fit(X, y)
    fit_report(model, X, y, file="report.html")
    """
    homes: dict[str, set[str]] = {"seraph_cvx.plots": {"fit_report"}}
    for part in _parts(model):
        homes.setdefault(_home(type(part)), set()).add(type(part).__name__)
    imports = [f"from {home} import {', '.join(sorted(homes[home]))}" for home in sorted(homes)]
    if not loading:
        loading = "# X: the points, a row each; y: their classes, -1 where unknown"
    given = "X, y, similar=similar, dissimilar=dissimilar" if has_constraints else "X, y"
    return "\n".join(
        [
            *imports,
            "",
            loading,
            f"model = {model.__repr__(N_CHAR_MAX=100_000)}",
            f"model.fit({given})",
            f'fit_report(model, {given}, file="report.html")',
        ]
    )


def _parts(model: Any) -> Iterator[Any]:
    """The model and all within it whose names the code has to import."""
    yield model
    if isinstance(model, Pipeline):
        for _, step in model.steps:
            if not isinstance(step, str):
                yield from _parts(step)
    yield from getattr(model, "penalties", ())


def _home(kind: type) -> str:
    """The module from which users import a class."""
    if kind.__name__ in seraph_cvx.__all__:
        return "seraph_cvx"
    public = []
    for part in kind.__module__.split("."):
        if part.startswith("_"):
            break
        public.append(part)
    return ".".join(public[:2] if public[0] == "seraph_cvx" else public)
