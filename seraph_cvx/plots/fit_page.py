"""The report of a fit as one HTML page that needs nothing else."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from scipy.stats import binomtest
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

import seraph_cvx

from ..display.formulas import CERTIFICATE, DESCENT, M_STEP_ONE_TERM, PROBABILITY
from ..display.notebook import Tone, gap_in_words, tone_of_gap
from ..display.page import POLICY, fill_template, write_page
from ..display.result_table import visible
from ..estimators.evidence import describe_features
from ..numerics.checks import UNKNOWN, FloatArray, IntArray, encode_labels
from ..numerics.psd_cone import numerical_rank
from ..pairs.pair_set import PairSet, supervise
from ..processes.whole_file import write_whole
from .history import HistoryDisplay
from .points import draw_before_and_after, principal_coordinates
from .spectrum import SpectrumDisplay
from .style import add_legend, enlarge_text, new_figure, picture_bytes

BADGES = {Tone.GOOD: "holds", Tone.CAUTION: "corrected", Tone.BAD: "refuted", Tone.PLAIN: "plain"}
FORMULAS = {
    "probability": PROBABILITY,
    "m_step": M_STEP_ONE_TERM,
    "certificate": CERTIFICATE,
    "descent": DESCENT,
}
"""The formulas of the page, as its template calls them."""

SIZE = (5.2, 4.4)
"""Of a figure in inches: small, so that its text can be read on a phone."""
MOST_MARKS = 1_500
"""More points than this are drawn as pixels: as shapes they would be megabytes."""
MOST_CLASSES, MOST_FEATURES = 12, 20


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
    fit = _collect(model, X, y, similar, dissimilar, class_names)
    title = f"A metric learned from {visible(name)}"
    remarks = [*notes, *describe_features(fit.points, fit.feature_names)]
    has_constraints = similar is not None or dissimilar is not None
    body = _body(
        fit,
        title=title,
        remarks=[visible(remark) for remark in dict.fromkeys(remarks)],
        python=python_of(model, loading, has_constraints),
        command=command,
    )
    style = Path(__file__).with_name("fit_page.css").read_text(encoding="utf-8")
    page = write_page(title, body, style, f"{POLICY}; img-src data:")
    if file is not None:
        write_whole(Path(file), page.encode())
    return page


@dataclass(frozen=True, eq=False)
class FittedMetric:
    """A fitted metric learner with its data, as the report shows them."""

    model: Any
    given: Any  # the points as the learner got them, after the steps before it in a pipeline
    points: FloatArray  # the same as numbers
    pairs: PairSet
    codes: IntArray  # the class of each point as a position in `class_names`, or -1
    class_names: list[str]
    feature_names: list[str] | None

    @cached_property
    def has_share(self) -> bool:
        """Whether distances use another matrix than the certified one."""
        return bool(self.model.is_mixed_)


def _collect(
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
        learned = [k for k, (_, step) in enumerate(model.steps) if hasattr(step, "m_step_metric_")]
        if not learned:
            raise ValueError("The pipeline has no fitted SERAPH: fit it first, or give one.")
        learner = model[learned[-1]]
        given = model[: learned[-1]].transform(X) if learned[-1] else X
    check_is_fitted(learner)
    if not hasattr(learner, "m_step_metric_"):
        raise TypeError(f"The report is of SERAPH and its relatives, not {type(learner).__name__}.")
    points = np.asarray(given, dtype=np.float64)
    codes, names = np.full(len(points), UNKNOWN), []
    if y is not None:
        known, codes[known] = encode_labels(y, len(points))
        names = np.unique(np.asarray(y)[known]).tolist()
    if class_names is not None:
        names = [class_names[int(name)] for name in names]
    features = getattr(learner, "feature_names_in_", None)
    if features is None and points.shape[1] == np.shape(X)[1]:
        features = getattr(X, "columns", None)
    return FittedMetric(
        learner,
        given,
        points,
        supervise(points, y, similar, dissimilar),
        codes,
        [visible(str(name)) for name in names],
        None if features is None else [visible(str(name)) for name in features],
    )


def _body(fit: FittedMetric, **said: Any) -> str:
    """Fill the template of the page."""
    return fill_template(
        "plots/fit_page.html",
        fit=fit,
        model=fit.model,
        class_sizes=np.bincount(fit.codes[fit.codes >= 0]).tolist(),
        most_classes=MOST_CLASSES,
        formulas=FORMULAS,
        pictures=_pictures(fit),
        judged=getattr(fit.model, "leave_one_out_", None),
        error_interval=_error_interval,
        gap_in_words=gap_in_words,
        badge=_badge(fit.model),
        rank=numerical_rank,
        features=_feature_rows(fit),
        most_features=MOST_FEATURES,
        values=[getattr(step, "descent_value", step) for step in fit.model.history_],
        **said,
    )


def _badge(model: Any) -> str:
    """The class of the badge of a fit, by its certified gap."""
    bounds = model.certificate_
    return BADGES[Tone.CAUTION if bounds is None else tone_of_gap(bounds.relative_gap)]


def _error_interval(error: float, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share of n points."""
    interval = binomtest(round(error * n), n).proportion_ci(method="wilson")
    return interval.low, interval.high


def _feature_rows(fit: FittedMetric) -> list[tuple[str, float, float]]:
    """The share A_ii var(x_i) of each feature in metric_ and in the certified A, largest first.

    None for a metric of a kernel's coordinates.
    """
    m, names = fit.points.shape[1], fit.feature_names
    metrics = fit.model.metric_, fit.model.m_step_metric_
    if len(metrics[0]) != m or hasattr(fit.model, "kernel"):
        return []
    parts = np.array([np.diag(A) for A in metrics]) * fit.points.var(axis=0)
    totals = parts.sum(axis=1, keepdims=True)
    shares = (parts / np.where(totals > 0.0, totals, 1.0)).T
    order = np.argsort(-shares[:, 0], kind="stable")
    return [(names[k] if names else f"feature {k}", *shares[k].tolist()) for k in order]


def _pictures(fit: FittedMetric) -> dict[str, list[tuple[str, str]]]:
    """The figures of the sections: points before and after, eigenvalues, iterations."""
    learned, model = np.asarray(fit.model.transform(fit.given)), fit.model
    metrics = {"metric_": model.metric_}
    if fit.has_share:
        metrics["m_step_metric_"] = model.m_step_metric_
    history = HistoryDisplay.from_estimator(model)
    gaps = history.relative_gaps
    *scatter, spectrum, values, paper, last = (new_figure(*SIZE).subplots() for _ in range(6))
    coordinates = principal_coordinates(fit.points), learned
    draw_before_and_after(scatter, coordinates, fit.codes, fit.class_names or None)
    for ax in scatter:
        enlarge_text(ax)
        add_legend(cast(Figure, ax.figure), [ax])
    SpectrumDisplay.from_result(metrics).plot(spectrum, "Eigenvalues")
    courses = history.plot([paper] if gaps is None else [values, paper, last]).axes_
    if gaps is not None and np.sum(np.isfinite(gaps)) < 2:  # one point is no course
        courses = courses[:2]
    return {
        "scatter": [_image(ax, n_marks=len(learned)) for ax in scatter],
        "spectrum": [_image(spectrum, "The eigenvalues of the metric")],
        "history": [_image(ax) for ax in courses],
    }


def _image(ax: Axes, text: str = "", n_marks: int = 0) -> tuple[str, str]:
    """The description of a figure, by default its title, and its picture as an address."""
    ending, kind = ("svg", "svg+xml") if n_marks <= MOST_MARKS else ("png", "png")
    content = b64encode(picture_bytes(cast(Figure, ax.figure), ending)).decode("ascii")
    return text or ax.get_title(), f"data:image/{kind};base64,{content}"


def python_of(model: Any, loading: str = "", has_constraints: bool = False) -> str:
    """Write the Python code that makes and fits this model; `loading` defines X and y."""
    homes: dict[str, set[str]] = {"seraph_cvx.plots": {"fit_report"}}
    for part in _parts(model):
        homes.setdefault(_home(type(part)), set()).add(type(part).__name__)
    given = "X, y, similar=similar, dissimilar=dissimilar" if has_constraints else "X, y"
    return "\n".join(
        [
            *(f"from {home} import {', '.join(sorted(homes[home]))}" for home in sorted(homes)),
            "",
            loading or "# X: the points, a row each; y: their classes, -1 where unknown",
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
    public = kind.__module__.partition("._")[0].split(".")
    return ".".join(public[:2] if public[0] == "seraph_cvx" else public)
