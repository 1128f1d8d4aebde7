"""`seraph-cvx demo` and `fit`: learn a metric, and say in words how good it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ..datasets import load_sampling
from ..estimators.settings import RECOMMENDED, Setting, find_setting
from ..fit.alternation import alternate
from ..fit.direct import minimise_directly
from ..numerics.checks import FloatArray
from ..pairs.pair_set import PairSet
from ..solvers.solution import OptimumNotAttained, Status
from .fit_options import (
    Algorithm,
    AlgorithmChoice,
    AllowUnattained,
    CorrelationWeight,
    IdentityShare,
    LabelColumn,
    MaxIter,
    Out,
    PaperSetting,
    Picture,
    Reference,
    Sharpness,
    Solver,
    Standardize,
    TableFile,
    Threshold,
    Tol,
    TraceWeight,
    UnlabeledWeight,
)
from .main import EXAMPLES, Debug, app
from .metric_report import History, IterationPrinter, draw, report_metric
from .report import (
    alert,
    answers_in_words,
    describe,
    finish,
    report_alternation,
    report_direct,
    say,
    screen,
)
from .tables.files import TableError, check_output, require_file, write_metric
from .tables.user_table import UserTable, read_table
from .tables.workload import LONG, expected_seconds, in_words, require_memory_for_pairs

PICTURES = (".png", ".pdf", ".svg")


@app.command(epilog="Example:  seraph-cvx demo --seed 3 --out iris.png")
def demo(
    seed: Annotated[int, typer.Option(min=0, help="Which 100 flowers, and which 10 labels.")] = 0,
    out: Annotated[Path, typer.Option(help="Where the picture goes: .png, .pdf or .svg.")] = Path(
        "seraph-cvx-demo.png"
    ),
    no_picture: Annotated[bool, typer.Option("--no-picture", help="Draw no picture.")] = False,
    debug: Debug = False,
) -> None:
    """Learn a metric for iris flowers from 10 labels; needs no file."""
    with answers_in_words() as kept:
        if not no_picture:
            check_output(out, PICTURES)
        sampling = load_sampling("iris", seed=seed)
        labels = sampling.y.astype(np.int64)
        table = UserTable(sampling.X, labels, (), ("setosa", "versicolor", "virginica"))
        pairs = PairSet.from_labels(table.X, table.y)
        describe(table, pairs, "iris flowers, standardized")
        metric, history, status = learn_by_em(pairs, IterationPrinter(), RECOMMENDED, {})
        if metric is not None:
            report_metric(table, metric, sampling.X_test, sampling.y_test)
            if not no_picture:
                title = f"SERAPH on iris: {sampling.labeled.sum()} of {len(labels)} points labeled"
                draw(out, table, metric, history, title, kept)
        finish(status, kept)


@app.command(epilog=EXAMPLES)
def fit(
    file: TableFile,
    label: LabelColumn,
    out: Out = None,
    unlabeled_weight: UnlabeledWeight = "full",
    trace_weight: TraceWeight = "auto",
    threshold: Threshold = 1.0,
    sharpness: Sharpness = None,
    identity_share: IdentityShare = str(RECOMMENDED.identity_share),
    reference: Reference = RECOMMENDED.reference,
    correlation_weight: CorrelationWeight = str(RECOMMENDED.correlation_weight),
    setting: PaperSetting = None,
    algorithm: AlgorithmChoice = Algorithm.EM,
    solver: Solver = "fista",
    tol: Tol = 1e-6,
    max_iter: MaxIter = None,
    standardize: Standardize = True,
    picture: Picture = None,
    allow_unattained: AllowUnattained = False,
    debug: Debug = False,
) -> None:
    """Learn a metric from your own table, and write it to a file."""
    with answers_in_words() as kept:
        require_file(file)
        target = file.with_suffix(".metric.csv") if out is None else out
        check_output(target, (".csv", ".npz"), file)
        if picture is not None:
            check_output(picture, PICTURES, file)
        if algorithm is Algorithm.DIRECT and sharpness is not None:
            raise TableError("--sharpness needs --algorithm em: direct has no soft labels.")
        table, scaling = read_points(file, label, standardize)
        require_memory_for_pairs(table.y)
        pairs = PairSet.from_labels(table.X, table.y)
        describe(table, pairs, f"{file}, {'' if standardize else 'not '}standardized")
        chosen = Setting(
            number_or_word(unlabeled_weight),
            number_or_word(trace_weight),
            RECOMMENDED.sharpness if sharpness is None else sharpness,
            number_or_word(identity_share),
            reference,
            number_or_word(correlation_weight),
        )
        if setting is not None:
            chosen = find_setting(setting)
        announce_long_work(pairs, chosen.unlabeled_weight == 0.0)
        settings: dict[str, Any] = {"threshold": threshold, "tol": tol}
        settings |= {} if max_iter is None else {"max_iter": max_iter}
        progress = IterationPrinter()
        try:
            if algorithm is Algorithm.DIRECT:
                metric, history, status = learn_directly(pairs, chosen, settings)
            else:
                settings |= {"solver": solver, "allow_unattained": allow_unattained}
                metric, history, status = learn_by_em(pairs, progress, chosen, settings)
        except OptimumNotAttained as error:
            feature = table.feature_names[int(np.argmax(np.abs(error.direction)))]
            error.add_note(
                f"In your table that feature is the column {feature!r}, the points are its rows, "
                "numbered from 0, and the options are --trace-weight and --allow-unattained."
            )
            raise
        except KeyboardInterrupt:
            if progress.metric is not None:
                target = target.with_stem(target.stem + ".interrupted")
                write_metric(target, progress.metric, table.feature_names, scaling)
                kept.append(f"the metric of iteration {progress.number} is in {target}")
            raise
        if metric is not None:
            write_metric(target, metric, table.feature_names, scaling)
            kept.append(f"the metric is in {target}")
            report_metric(table, metric)
            say(f"\nWritten: the metric, {len(metric)} x {len(metric)}, to {target}")
            if standardize:
                say(
                    "  It applies to the standardized features. For the columns as they are in the "
                    "table, divide entry (i, j) by the standard deviations of columns i and j"
                    + (" (the array scale)." if target.suffix == ".npz" else ".")
                )
            if picture is not None:
                draw(picture, table, metric, history, f"SERAPH on {file.name}", kept)
        finish(status, kept)


Outcome = tuple[FloatArray | None, History, Status]


def learn_by_em(
    pairs: PairSet, progress: IterationPrinter, chosen: Setting, settings: Mapping[str, Any]
) -> Outcome:
    """Run the alternation, and report its progress and its certificate."""
    if settings.get("solver", "fista") == "fista":
        say("\nEM: a rough M-step, Newton's method on J, then soft labels and an exact M-step.")
    else:
        say("\nEM: soft labels, then a convex M-step for the metric, until J stops falling.")
    say("J never rises; the paper's objective (7) may.")
    threshold = settings.get("threshold", 1.0)
    first = chosen.first_m_step(pairs, "em", threshold)
    with screen.status("learning"):
        run = alternate(
            pairs,
            unlabeled_weight=first.mu,
            trace_weight=first.trace_weight,
            manifold_term=first.manifold_term,
            sharpness=chosen.sharpness,
            callback=progress,
            **settings,
        )
    report_alternation(run)
    metric = None if run.metric is None else chosen.metric_of(run.metric, pairs, threshold)
    return metric, run.history, run.status


def learn_directly(pairs: PairSet, chosen: Setting, settings: Mapping[str, Any]) -> Outcome:
    """Descend the objective (7), and report where that ended."""
    say("\nDirect: descent on the paper's objective (7), from the scaled identity.")
    first = chosen.first_m_step(pairs, "direct", settings["threshold"])
    with screen.status("learning"):
        solution = minimise_directly(
            pairs,
            unlabeled_weight=first.mu,
            trace_weight=first.trace_weight,
            manifold_term=first.manifold_term,
            **settings,
        )
    report_direct(solution)
    metric = chosen.metric_of(solution.metric, pairs, settings["threshold"])
    return metric, solution.values, solution.status


def number_or_word(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def read_points(
    file: Path, label: str, standardize: bool
) -> tuple[UserTable, dict[str, FloatArray]]:
    """Read the table, and standardize it if asked to; also the means and scales."""
    table = read_table(file, label)
    with np.errstate(over="ignore", invalid="ignore"):
        mean, spread = table.X.mean(axis=0), table.X.std(axis=0)
        sizes = spread if standardize else np.abs(table.X).max(axis=0) ** 4
    if not np.all(np.isfinite(sizes)):
        feature = table.feature_names[int(np.argmin(np.isfinite(sizes)))]
        raise TableError(
            f"The numbers in the column {feature!r} are too large to be squared: use a larger "
            "unit, or remove the column."
        )
    if not np.any(spread):
        raise TableError(f"All points of {file} are the same, so there is nothing to learn.")
    for name in np.array(table.feature_names, dtype=object)[spread == 0.0][:3]:
        alert(f"Note: the column {name!r} is constant, so nothing is learned from it.")
    if not standardize:
        return table, {}
    scale = np.where(spread > 0.0, spread, 1.0)
    return replace(table, X=(table.X - mean) / scale), {"mean": mean, "scale": scale}


def announce_long_work(pairs: PairSet, only_labeled: bool) -> None:
    """Warn of a fit that takes long, and say what is faster."""
    seconds = expected_seconds(pairs, only_labeled)
    if seconds > LONG:
        cure = "fewer features" if only_labeled else "a random sample of the rows, fewer features"
        cure += "" if only_labeled else " or --unlabeled-weight 0"
        alert(
            f"Note: {pairs.n_points} points with {pairs.n_features} features take about "
            f"{in_words(seconds)}, by a trial on a few of them. Much faster: {cure}. Ctrl-C keeps "
            "the last iteration."
        )
