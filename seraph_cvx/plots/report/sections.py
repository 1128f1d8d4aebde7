"""The sections of the report of a fit, as HTML."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from ...display.formulas import CERTIFICATE, DESCENT, M_STEP_ONE_TERM, PROBABILITY, Formula
from ...display.notebook import Tone, gap_in_words, tone_of_gap
from ...display.result_table import visible
from ...estimators.evidence import describe_features
from ...numerics.checks import FloatArray
from ...numerics.psd_cone import numerical_rank
from .figures import history_images, scatter_images, spectrum_image
from .fitted import FittedMetric

BADGES = {Tone.GOOD: "holds", Tone.CAUTION: "corrected", Tone.BAD: "refuted", Tone.PLAIN: "plain"}
MOST_CLASSES, MOST_FEATURES = 12, 20


def data_section(fit: FittedMetric, notes: Sequence[str]) -> str:
    """The points, the classes, and what was remarked about them."""
    n, m = fit.points.shape
    known = int(np.sum(fit.codes >= 0))
    sizes = np.bincount(fit.codes[fit.codes >= 0], minlength=len(fit.class_names))
    classes = [f"{name} ({k})" for name, k in zip(fit.class_names, sizes, strict=True)]
    more = f" and {len(classes) - MOST_CLASSES} more" if len(classes) > MOST_CLASSES else ""
    facts = [
        ("rows", f"{n:,}"),
        ("features", f"{m:,}"),
        ("labeled", f"{known:,}"),
        ("unlabeled", f"{n - known:,}"),
        ("classes", ", ".join(classes[:MOST_CLASSES]) + more if classes else "none given"),
    ]
    remarks = list(dict.fromkeys([*notes, *describe_features(fit.points, fit.feature_names)]))
    listed = "".join(f"<li>{escape(visible(note))}</li>" for note in remarks)
    said = (
        f'<ul class="words">{listed}</ul>'
        if remarks
        else "<p>Nothing to remark about the features.</p>"
    )
    return _section("The data", table_of(facts), said)


def pairs_section(fit: FittedMetric) -> str:
    """How many pairs are similar, dissimilar and unlabeled."""
    pairs = fit.pairs
    dissimilar = pairs.n_labeled - pairs.n_similar
    facts = [
        ("similar (S)", f"{pairs.n_similar:,}"),
        ("dissimilar (D)", f"{dissimilar:,}"),
        ("unlabeled (U)", f"{pairs.n_unlabeled:,}"),
    ]
    missing = [
        kind for kind, n in (("similar", pairs.n_similar), ("dissimilar", dissimilar)) if not n
    ]
    words = (
        f"<p>There is no {missing[0]} pair: the labels show one side only.</p>" if missing else ""
    )
    return _section("The pairs", table_of(facts), words, _drawn(PROBABILITY))


def comparison_section(fit: FittedMetric) -> str:
    """The points before and after, and the 1-NN errors in both metrics."""
    images = f'<div class="images">{scatter_images(fit)}</div>'
    return _section("Before and after", images, errors_of_neighbors(fit))


def errors_of_neighbors(fit: FittedMetric) -> str:
    """The 1-NN errors of the labeled points in both metrics, and how uncertain they are."""
    found = getattr(fit.model, "leave_one_out_", None)
    if found is None:
        return "<p>No 1-NN error: that takes class labels, two classes and two points of one.</p>"
    rows = []
    for name, error in (
        ("Euclidean distance", found.euclidean_error),
        ("learned metric", found.learned_error),
    ):
        low, high = error_interval(error, found.n)
        rows.append((name, f"{error:.1%}", f"{low:.1%} to {high:.1%}"))
    two = 2.0 * found.standard_error
    ends = f"{found.gain - two:.1%} to {found.gain + two:.1%}"
    rows.append(("difference", f"{found.gain:.1%}", ends if two else "no point differs"))
    table = table_of(rows, ("1-NN, leaving one out", "wrong", "95 % interval"))
    return (
        f"{table}<p>{escape(found.verdict)}</p>"
        f'<p class="place">Each of {found.n:,} labeled points gets the class of the nearest other '
        "one. Intervals are as for independent points; that of the difference is two standard "
        "errors to either side.</p>"
    )


def certificate_section(fit: FittedMetric) -> str:
    """The bounds, the gap, and which matrix they are of."""
    bounds = fit.model.certificate_
    status = f"status: {fit.model.status_.value.replace('_', ' ')}"
    if bounds is None:
        words = (
            'There is none: the paper\'s objective (7), which algorithm="direct" descends, is not '
            "convex. The metric is a stationary point of it, at best."
        )
        return _section("The certificate", f"<p>{escape(words)}</p>", badge=(status, Tone.CAUTION))
    facts = [
        ("upper bound f(A)", f"{bounds.primal_value:.12g}"),
        ("lower bound D(p)", f"{bounds.dual_value:.12g}"),
        ("duality gap", f"{bounds.duality_gap:.1e}"),
        ("relative gap", f"{bounds.relative_gap:.1e}"),
    ]
    return _section(
        "The certificate",
        f"<p>{escape(gap_in_words(bounds.dual_value, bounds.primal_value))}</p>",
        f"<p><b>{escape(which_matrix(fit))}</b></p>",
        table_of(facts),
        "<p>It is about the last M-step, a convex problem. The alternation as a whole is not "
        "convex, and nothing is proved about the classes of new points.</p>",
        _drawn(M_STEP_ONE_TERM, CERTIFICATE),
        badge=(status, tone_of_gap(bounds.relative_gap)),
    )


def which_matrix(fit: FittedMetric) -> str:
    """Say in a sentence or two of which matrix the gap is."""
    if not fit.has_share:
        return "The certified matrix A is also the metric that distances and transform use."
    return (
        "The certified matrix is A of the last M-step (m_step_metric_). Distances, transform and "
        "the pictures use metric_, which is A mixed with a reference; identity_share=0 makes both "
        "the same."
    )


def spectrum_section(fit: FittedMetric) -> str:
    """The eigenvalues and the rank."""
    m, rank = len(fit.model.metric_), numerical_rank(fit.model.metric_)
    words = f"The metric (metric_) measures along {rank} of {m} directions."
    if fit.has_share:
        certified = numerical_rank(fit.model.m_step_metric_)
        words += f" The certified matrix (m_step_metric_) has rank {certified}."
    image = f'<div class="images">{spectrum_image(fit)}</div>'
    return _section("The spectrum", f"<p>{escape(words)}</p>", image)


def features_section(fit: FittedMetric) -> str:
    """What share of the squared distances each feature has by itself."""
    if not fit.has_feature_weights:
        words = "The metric is one of a kernel's coordinates: the features have no weights."
        return _section("Which features count", f"<p>{words}</p>")
    learned, certified = (
        feature_shares(fit, fit.model.metric_),
        feature_shares(fit, fit.model.m_step_metric_),
    )
    order = np.argsort(-learned, kind="stable")
    largest = float(learned[order[0]]) or 1.0
    head = '<th>feature</th><th class="number">share in metric_</th>'
    head += '<th class="number">in the certified A</th>' if fit.has_share else ""
    rows = []
    for k in order[:MOST_FEATURES]:
        bar = f'<div class="bar" style="width:{100.0 * learned[k] / largest:.1f}%"></div>'
        name = f"feature {k}" if fit.feature_names is None else fit.feature_names[k]
        cells = f'<td class="words">{escape(name)}{bar}</td>' + _number(f"{learned[k]:.1%}")
        rows.append(f"<tr>{cells}{_number(f'{certified[k]:.1%}') if fit.has_share else ''}</tr>")
    rest = order[MOST_FEATURES:]
    more = f"<p>{len(rest)} more have {float(np.sum(learned[rest])):.1%}.</p>" if len(rest) else ""
    return _section(
        "Which features count",
        f'<table class="wide"><thead><tr>{head}</tr></thead>',
        f"<tbody>{''.join(rows)}</tbody></table>{more}",
        '<p class="place">The share of feature i is its diagonal entry times its variance, over '
        "the sum of these: what it brings to squared distances by itself, in any unit. What it "
        "does together with others, the entries off the diagonal, is left out.</p>",
    )


def feature_shares(fit: FittedMetric, metric: FloatArray) -> FloatArray:
    """A_ii var(x_i), as shares of their sum; zeros for a zero metric."""
    parts = np.diag(metric) * fit.points.var(axis=0)
    total = float(np.sum(parts))
    return np.asarray(parts / total if total > 0.0 else np.zeros_like(parts))


def history_section(fit: FittedMetric) -> str:
    """J by iteration."""
    history = fit.model.history_
    values = [getattr(step, "descent_value", step) for step in history]
    name = "J" if hasattr(history[0], "descent_value") else "The objective (7)"
    words = f"{name} fell from {values[0]:.8g} to {values[-1]:.8g} in {len(values)} iterations."
    formula = _drawn(DESCENT) if name == "J" else ""
    images = f'<div class="images">{history_images(fit)}</div>'
    return _section("What the iterations did", f"<p>{words}</p>", images, formula)


def code_section(python: str, command: str) -> str:
    """The code and the command that do the same."""
    parts = [f"<p>In Python:</p><pre><code>{escape(python)}</code></pre>"]
    if command:
        parts.append(f"<p>From the command line:</p><pre><code>{escape(command)}</code></pre>")
    return _section("The same again", *parts)


def error_interval(error: float, n: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's 95 % interval of a share of n points.

    Examples
    --------
    >>> [round(end, 3) for end in error_interval(0.0, 10)]
    [0.0, 0.278]
    """
    middle = error + z * z / (2 * n)
    half = z * math.sqrt(error * (1.0 - error) / n + z * z / (4 * n * n))
    scale = 1.0 + z * z / n
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)


def table_of(rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """A table whose first column is words; the others are numbers, but for a list of classes."""
    words = "".join(f'<th class="number">{escape(word)}</th>' for word in head[1:])
    top = f"<thead><tr><th>{escape(head[0])}</th>{words}</tr></thead>" if head else ""
    lines = []
    for name, *values in rows:
        kind = "words" if name == "classes" else "number"
        cells = "".join(f'<td class="{kind}">{escape(value)}</td>' for value in values)
        lines.append(f"<tr><td>{escape(name)}</td>{cells}</tr>")
    return f"<table>{top}<tbody>{''.join(lines)}</tbody></table>"


def _number(text: str) -> str:
    return f'<td class="number">{escape(text)}</td>'


def _drawn(*formulas: Formula) -> str:
    return "".join(
        f"<details><summary>{escape(formula.title)}</summary>{formula.mathml}"
        f'<p class="place">{escape(formula.where)}</p></details>'
        for formula in formulas
    )


def _section(title: str, *parts: str, badge: tuple[str, Tone] | None = None) -> str:
    mark = ""
    if badge is not None:
        mark = f'<span class="badge {BADGES[badge[1]]}">{escape(badge[0])}</span>'
    return f"<article><header><h2>{escape(title)}</h2>{mark}</header>{''.join(parts)}</article>"
