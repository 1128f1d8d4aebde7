"""The report of a fit as one HTML page that needs nothing else."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from ...display.page import POLICY, write_page
from ...display.result_table import visible
from ...processes.whole_file import write_whole
from .fitted import collect
from .recipe import python_of
from .sections import (
    certificate_section,
    code_section,
    comparison_section,
    data_section,
    features_section,
    history_section,
    pairs_section,
    spectrum_section,
)

STYLE = """
.images { display: flex; flex-wrap: wrap; gap: 1rem; margin: .6rem 0; }
.images img { width: 100%; max-width: 29rem; height: auto; background: #fff; border-radius: 6px; }
@media (min-width: 62rem) { .images img { width: calc(50% - .5rem); max-width: none; } }
.bar { height: .5rem; background: var(--bar); border-radius: 2px; margin: .15rem 0 .3rem; }
.plain { background: #e7e5e4; color: #1c1917; }
.words { overflow-wrap: anywhere; }
table.wide { width: 100%; max-width: 44rem; } table.wide td.words { width: 99%; }
table.wide td.number { vertical-align: middle; } th { white-space: normal; }
th.number { text-align: right; } details { margin: .5rem 0; overflow-x: auto; }
"""


def fit_report(
    model: Any,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    similar: ArrayLike | None = None,
    dissimilar: ArrayLike | None = None,
    file: str | os.PathLike[str] | None = None,
    name: str = "your data",
    class_names: Sequence[str] | None = None,
    notes: Sequence[str] = (),
    loading: str = "",
    command: str = "",
) -> str:
    """Write the report of a fit as one HTML page that works offline.

    The data, the pairs, the points before and after, the certificate and which matrix it is of,
    the spectrum, which features count, J by iteration, and the code that does the same.

    Parameters
    ----------
    model : SERAPH, a relative of it, or a Pipeline with one
        Fitted.
    X : (n, m) array_like
        What it was fitted to.
    y : (n,) array_like, optional
        The class labels it was fitted to; -1 is unknown.
    similar, dissimilar : (k, 2) array_like of int, optional
        The constraints it was fitted to.
    file : path, optional
        Also write the page to this file.
    name : str
        What the data are called.
    class_names : sequence of str, optional
        For labels that are positions in this sequence.
    notes : sequence of str
        Remarks about the data, shown before those about the features.
    loading : str
        Lines of Python that define X and y, for the code that does the same.
    command : str
        The command that does the same.

    Returns
    -------
    str
        The page, well-formed and with nothing to fetch.

    Examples
    --------
    >>> from seraph_cvx import SERAPH
    >>> from seraph_cvx.plots import fit_report
    >>> X = [[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0], [0.2, 5.0], [1.9, 4.0]]
    >>> y = ["a", "a", "b", "b", None, None]
    >>> page = fit_report(SERAPH().fit(X, y), X, y, name="six points")
    >>> "<h1>A metric learned from six points</h1>" in page
    True
    """
    fit = collect(model, X, y, similar, dissimilar, class_names)
    title = f"A metric learned from {visible(name)}"
    has_constraints = similar is not None or dissimilar is not None
    body = [
        f"<h1>{escape(title)}</h1>",
        '<p class="place">SERAPH: semi-supervised metric learning by certified convex '
        "optimization.</p>",
        data_section(fit, notes),
        pairs_section(fit),
        comparison_section(fit),
        certificate_section(fit),
        spectrum_section(fit),
        features_section(fit),
        history_section(fit),
        code_section(python_of(model, loading, has_constraints), command),
    ]
    page = write_page(title, "".join(body), STYLE, f"{POLICY}; img-src data:")
    if file is not None:
        write_whole(Path(file), page.encode())
    return page
