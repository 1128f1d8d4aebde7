"""What `seraph-cvx demo` and `fit` report: the data, iterations, certificate, errors, pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from ..certificate import Certificate
from ..datasets import Sampling
from ..display.result_table import visible
from ..estimators.evidence import describe_features, leave_one_out
from ..fit.alternation import Iteration
from ..numerics.checks import UNKNOWN, FloatArray
from ..numerics.psd_cone import factor, numerical_rank
from ..pairs.data_warnings import WORDS_FOR_UNKNOWN
from ..pairs.pair_set import PairSet
from ..processes.whole_file import write_whole
from ..solvers.solution import Status
from .report import alert, needs_matplotlib, say
from .tables import Reading, UserTable, name_columns, open_text

if TYPE_CHECKING:
    from ..estimators.seraph import SERAPH

REFERENCES = {
    "identity": "the Euclidean distance",
    "within": "the distance in units of the spread inside the classes",
}
"""What a learned metric is mixed with."""


def describe(table: UserTable, pairs: PairSet, name: str) -> None:
    """Describe the data, and how many pairs are similar, dissimilar and unlabeled."""
    n, m = table.X.shape
    counts = [int(np.sum(table.y == k)) for k in range(len(table.class_names))]
    shown = zip(table.class_names[:8], counts, strict=False)
    classes = ", ".join(f"{visible(c)} ({k})" for c, k in shown)
    unknown = ", ".join(f"{word!r} ({k})" for word, k in list(table.unknown.items())[:8])
    say(
        f"Data   {visible(name)}\n"
        f"       {n} points, {m} features, {len(counts)} classes, {sum(counts)} labeled\n"
        f"       labels: {classes}{', ...' if len(counts) > 8 else ''}"
        + (f"; read as unknown: {visible(unknown)}" if unknown else "")
        + f"\nPairs  {pairs.n_similar} similar (𝒮), {pairs.n_labeled - pairs.n_similar} dissimilar "
        f"(𝒟), {pairs.n_unlabeled} unlabeled (𝒰)"
    )
    doubtful = [name for name in table.class_names if name.lower() in WORDS_FOR_UNKNOWN]
    if doubtful:
        alert(
            f"Note: {doubtful[0]!r} is read as a class. If it means that the class is not known, "
            f"use --unknown {doubtful[0]!r}, or leave the cell empty."
        )


def report_iteration(step: Iteration, metric: FloatArray) -> None:
    """Print an iteration, the first one below the names of the columns."""
    if step.number == 1:
        titles = ("iter", "J", "objective (7)", "M-step gap", "rank", "trace", "seconds")
        say(
            "Gap, rank and trace are of the matrix A of the M-step, before it is mixed with its "
            "reference."
        )
        say("{:>4} {:>15} {:>15} {:>11} {:>5} {:>10} {:>8}".format(*titles), style="bold")
    gap = f"{step.relative_gap:.1e}" if np.isfinite(step.relative_gap) else step.kind
    say(
        f"{step.number:>4} {step.descent_value:>15.8f} {step.paper_objective:>15.8f} "
        f"{gap:>11} {step.rank:>5} {step.trace:>10.4g} {step.seconds:>8.2f}"
    )


def report_certificate(certificate: Certificate, status: Status, tol: float) -> None:
    """Report the certificate of the last M-step, and of which matrix it is."""
    bound, gap = f"{certificate.dual_value:.12g}", f"{certificate.duality_gap:.1e}"
    say("\nCertificate of the last M-step, a convex program", style="bold")
    say(
        f"  primal value  {certificate.primal_value:.12g}\n"
        f"  dual value    {bound}\n"
        f"  duality gap   {gap}  (relative gap {certificate.relative_gap:.1e})\n"
        f"  In words: no metric can have an M-step objective below {bound}, and A, the matrix of "
        f"this M-step, is at most {gap} above. This is proved from the data, not taken from the "
        "solver. It is about the last M-step: the alternation as a whole is not convex."
    )
    if status is Status.ROUNDING_LIMIT:
        say(
            f"  The gap is above the {tol:.0e} asked for, but at the limit of rounding: in double "
            "precision it cannot be proved to be smaller. This is not a failure."
        )


def report_direct(values: Sequence[float], n_steps: int, tol: float, status: Status) -> None:
    """Report how far the descent on (7) went, and what that shows."""
    reached = f"stationary to {tol:.0e}" if status is Status.STATIONARY else "not yet stationary"
    say(
        f"Objective (7) fell from {values[0]:.8g} to {values[-1]:.8g} in {n_steps} steps.\n"
        f"Certificate: none, since (7) is not convex. The metric is {reached}; a better one may "
        "exist."
    )


def report_metric(table: UserTable, seraph: SERAPH, sampling: Sampling | None = None) -> None:
    """Report the ranks, and the 1-NN error on test points or, leaving one out, on labeled ones."""
    metric = seraph.metric_
    report_ranks(seraph)
    if not np.any(metric) or len(table.class_names) < 2:
        return
    known = table.y != UNKNOWN
    X, y = table.X[known], table.y[known]
    result = leave_one_out(X, y, metric) if sampling is None else None
    if result is not None:
        say(
            f"\n1-NN leave-one-out error on the {result.n} labeled points, whose labels were used\n"
            f"  learned metric      {result.learned_error:.1%}\n"
            f"  Euclidean distance  {result.euclidean_error:.1%}\n"
            f"  difference          {result.gain:.1%}, standard error {result.standard_error:.1%}\n"
            f"  {result.verdict}"
        )
    if sampling is not None:
        test, y_test = sampling.X_test, sampling.y_test
        L = factor(metric)
        learned = np.mean(nearest_labels(test @ L.T, X @ L.T, y) != y_test)
        euclidean = np.mean(nearest_labels(test, X, y) != y_test)
        say(
            f"\n1-NN test error on {len(test)} other points, by the nearest of the {len(y)} "
            f"labeled ones\n"
            f"  learned metric      {learned:.1%}\n"
            f"  Euclidean distance  {euclidean:.1%}"
        )
    varying = np.flatnonzero(np.ptp(table.X, axis=0) > 0.0)
    names = [table.feature_names[i] for i in varying] if table.feature_names else None
    for note in describe_features(table.X[:, varying], names):
        say(f"Note. {visible(note)}")


def report_ranks(seraph: SERAPH) -> None:
    """Report which metric is certified, the rank of each, and why there are two."""
    metric, A, m = seraph.metric_, seraph.m_step_metric_, len(seraph.metric_)
    rank, has_proof = numerical_rank(A), seraph.certificate_ is not None
    title, origin = "The metric", "where the descent on (7) ended: it has no certificate"
    if has_proof:
        title, origin = (
            "Which metric is certified",
            "the matrix of the last M-step, which the certificate is about",
        )
    is_used = np.array_equal(metric, A)
    say(f"\n{title}", style="bold")
    use = " All distances use A itself." if is_used else ""
    say(f"  rank {rank} of {m}  A, {origin}.{use}", hang=13)
    if not is_used:
        doubt = "leave A uncertain" if rank == m else "say nothing about what A leaves out"
        say(
            f"  rank {numerical_rank(metric)} of {m}  the metric of all distances: A mixed with "
            f"{REFERENCES[seraph.reference]} (reference {seraph.reference}), because few labels "
            f"{doubt}. It is mixed in after the fit, so the certificate is not about the mixture.",
            hang=13,
        )


def nearest_labels(Z: FloatArray, labeled: FloatArray, labels: Any) -> Any:
    """The label of the labeled point that is nearest to each point."""
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=1).fit(labeled)
    return labels[search.kneighbors(Z, return_distance=False)[:, 0]]


def finish(status: Status, kept: list[str]) -> None:
    """Exit with code 1 unless the result is certified, as far as rounding allows, or stationary."""
    if not status.reached_tolerance:
        files = " and ".join(kept) or "nothing was written"
        alert(f"The status is {status.value}, not certified; {files}. Exit code 1.", style="red")
        raise typer.Exit(1)


# Pictures and the page


def draw_fit(path: Path, table: UserTable, seraph: SERAPH, title: str, kept: list[str]) -> None:
    """Write the picture of a fit, or say why there is none."""
    with needs_matplotlib("picture"):
        from ..plots.points import plot_fit

        figure = plot_fit(
            *(table.X, table.y, factor(seraph.metric_), seraph.history_),
            title=visible(title),
            class_names=[visible(name) for name in table.class_names],
        )
        _write_picture(path, figure, "points before and after, J by iteration", kept)


def draw_demo(
    path: Path,
    sampling: Sampling,
    table: UserTable,
    seraph: SERAPH,
    gaps: Sequence[float],
    kept: list[str],
) -> None:
    """Write the picture of the demo, or say why there is none."""
    counts = f"{sampling.labeled.sum()} of {len(table.y)} points labeled"
    title = f"SERAPH on {sampling.name}: {counts}, tested on {len(sampling.y_test)} others by 1-NN"
    with needs_matplotlib("picture"):
        from ..plots.regions import RegionsDisplay

        figure = RegionsDisplay.from_result(
            *(seraph.metric_, table.X, table.y, sampling.X_test, sampling.y_test, gaps),
            table.class_names,
        ).draw(title=title)
        _write_picture(path, figure, "1-NN regions before and after, the certified gap", kept)


def _write_picture(path: Path, figure: Any, content: str, kept: list[str]) -> None:
    from ..plots.style import picture_bytes

    write_whole(path, picture_bytes(figure, path.suffix[1:]))
    kept.append(f"the picture is in {path}")
    say(f"Written: the picture ({content}), to {path}")


def write_page(
    path: Path, model: Any, table: UserTable, name: str, code: str, command: str, kept: list[str]
) -> None:
    """Write the report of a fit as a page, or say why there is none."""
    words = [f"{word!r} ({count} times)" for word, count in table.unknown.items()]
    with needs_matplotlib("report"):
        from ..plots import fit_report

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
    options = {
        "sep": text.delimiter,
        "encoding": text.encoding,
        "decimal": reading.decimal,
        "skiprows": text.skipped,
        "skipinitialspace": True,
        "dtype": {label: "object"},
        "keep_default_na": reading.impute,
        "na_values": {label: ["", *table.unknown]},
    }
    given = [repr(str(file)), *(f"{name}={value!r}" for name, value in options.items())]
    inside = ",\n    ".join(given)
    lines = ["import pandas", "", f"X = pandas.read_csv(\n    {inside},\n)"]
    lines.append(f"y = X.pop({label!r})  # empty: unknown")
    lines += [f"X = X.drop(columns={list(reading.drop)!r})"] if reading.drop else []
    lines += [
        f"X = pandas.get_dummies(X, columns=[{name!r}], dtype=float, "
        f"drop_first=X[{name!r}].nunique() == 2)"
        for name in reading.one_hot
    ]
    return "\n".join([*lines, ""])
