"""`seraph-cvx demo` and `fit`: learn a metric, and say in words how good it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ..alternation import alternate
from ..checks import FloatArray
from ..datasets import load_sampling
from ..direct import minimise_directly
from ..estimators.settings import RECOMMENDED, Setting, find_setting
from ..m_step.solution import OptimumNotAttained, Status
from ..pairs import PairSet
from .main import EXAMPLES, app
from .report import (
    History,
    Progress,
    answers_in_words,
    describe,
    draw,
    finish,
    report_alternation,
    report_direct,
    report_metric,
    say,
    screen,
)
from .user_table import (
    TableError,
    UserTable,
    check_output,
    read_table,
    write_metric,
)

PICTURES = (".png", ".pdf", ".svg")


class Algorithm(StrEnum):
    """How the metric is learned."""

    EM = "em"
    DIRECT = "direct"


@app.command(epilog="Example:  seraph-cvx demo --seed 3 --out iris.png")
def demo(
    seed: Annotated[int, typer.Option(min=0, help="Which 100 flowers, and which 10 labels.")] = 0,
    out: Annotated[Path, typer.Option(help="Where the picture goes: .png, .pdf or .svg.")] = Path(
        "seraph-cvx-demo.png"
    ),
    no_picture: Annotated[bool, typer.Option("--no-picture", help="Draw no picture.")] = False,
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
        metric, history, status = learn_by_em(pairs, Progress(), RECOMMENDED, {})
        if metric is not None:
            report_metric(table, metric, sampling.X_test, sampling.y_test)
            if not no_picture:
                title = f"SERAPH on iris: {sampling.labeled.sum()} of {len(labels)} points labeled"
                draw(out, table, metric, history, title, kept)
        finish(status, kept)


@app.command(epilog=EXAMPLES)
def fit(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A table: a row of column names, then a row for each point; every column but the "
            "label holds numbers; commas, semicolons or tabs between the cells.",
        ),
    ],
    label: Annotated[
        str,
        typer.Option(metavar="COLUMN", help="The column of class labels. Empty cell: unknown."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where the metric goes: .csv (the feature names, then its rows) or .npz (arrays "
            "metric, components, feature_names; mean and scale if standardized). "
            "By default FILE.metric.csv.",
        ),
    ] = None,
    unlabeled_weight: Annotated[
        str,
        typer.Option(
            metavar="full|ratio|NUMBER",
            help="mu: how much a pair without labels counts. ratio is the paper's choice, labeled "
            "pairs over unlabeled pairs; full makes up for what the soft labels take away; 0 "
            "ignores the unlabeled points.",
        ),
    ] = "full",
    trace_weight: Annotated[
        str,
        typer.Option(
            metavar="auto|NUMBER",
            help="lambda: larger gives lower rank; too large, the zero metric. auto is a fiftieth "
            "of where that begins.",
        ),
    ] = "auto",
    threshold: Annotated[
        float,
        typer.Option(help="eta: the squared distance of pairs as likely similar as not."),
    ] = 1.0,
    sharpness: Annotated[
        float | None,
        typer.Option(
            help="How decided the soft labels of em are; 2 unless given. The paper's 1 + mu makes "
            "the unlabeled points count for little: see --setting."
        ),
    ] = None,
    identity_share: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1.0,
            help="The share of the Euclidean distance in the metric that is written.",
        ),
    ] = RECOMMENDED.identity_share,
    setting: Annotated[
        str | None,
        typer.Option(
            metavar="none|post|proj|hyper",
            help="One of the paper's settings, in the place of the four options above.",
        ),
    ] = None,
    algorithm: Annotated[
        Algorithm,
        typer.Option(
            help="em: the paper's alternation, whose convex steps are certified. direct: projected "
            "gradient on the paper's objective (7), which is not convex, so without certificate."
        ),
    ] = Algorithm.EM,
    solver: Annotated[
        str,
        typer.Option(
            help="For the convex steps of em: fista (fastest), projected-gradient, CLARABEL, SCS."
        ),
    ] = "fista",
    tol: Annotated[
        float,
        typer.Option(
            help="em ends when J falls by less than this, relatively; direct, when it is this "
            "near to a stationary point."
        ),
    ] = 1e-6,
    max_iter: Annotated[
        int | None,
        typer.Option(min=1, help="The most iterations; by default 500 of em, 5000 of direct."),
    ] = None,
    standardize: Annotated[
        bool,
        typer.Option(
            help="Bring each feature to mean 0 and variance 1 first. Features on different scales "
            "make the trace weight (lambda) meaningless."
        ),
    ] = True,
    picture: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Draw the points before and after, and J: .png, .pdf or .svg."
        ),
    ] = None,
    allow_unattained: Annotated[
        bool,
        typer.Option(
            "--allow-unattained", help="Go on where no best metric exists (with trace weight 0)."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the Python traceback of an error.")
    ] = False,
) -> None:
    """Learn a metric from your own table, and write it to a file."""
    with answers_in_words(debug) as kept:
        target = file.with_suffix(".metric.csv") if out is None else out
        check_output(target, (".csv", ".npz"), file)
        if picture is not None:
            check_output(picture, PICTURES, file)
        if algorithm is Algorithm.DIRECT and sharpness is not None:
            raise TableError("--sharpness is of --algorithm em: direct has no soft labels.")
        table, scaling = read_table(file, label), {}
        if standardize:
            mean, spread = table.X.mean(axis=0), table.X.std(axis=0)
            scaling = {"mean": mean, "scale": np.where(spread > 0.0, spread, 1.0)}
            table = replace(table, X=(table.X - mean) / scaling["scale"])
        pairs = PairSet.from_labels(table.X, table.y)
        describe(table, pairs, f"{file}, {'' if standardize else 'not '}standardized")
        chosen = Setting(
            number_or_word(unlabeled_weight),
            number_or_word(trace_weight),
            RECOMMENDED.sharpness if sharpness is None else sharpness,
            identity_share,
        )
        if setting is not None:
            chosen = find_setting(setting)
        settings: dict[str, Any] = {"threshold": threshold, "tol": tol}
        settings |= {} if max_iter is None else {"max_iter": max_iter}
        progress = Progress()
        try:
            if algorithm is Algorithm.DIRECT:
                metric, history, status = learn_directly(pairs, chosen, settings)
            else:
                settings |= {"solver": solver, "allow_unattained": allow_unattained}
                metric, history, status = learn_by_em(pairs, progress, chosen, settings)
        except OptimumNotAttained as error:
            feature = table.feature_names[int(np.argmax(np.abs(error.direction)))]
            error.add_note(
                f"Here that feature is the column {feature!r}, the points are numbered from 0 in "
                "the order of the table, and the options are --trace-weight, --allow-unattained."
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
                    "  It measures the standardized features. For the columns as they are in the "
                    "table, divide entry (i, j) by the standard deviations of columns i and j"
                    + (" (the array scale)." if target.suffix == ".npz" else ".")
                )
            if picture is not None:
                draw(picture, table, metric, history, f"SERAPH on {file.name}", kept)
        finish(status, kept)


Outcome = tuple[FloatArray | None, History, Status]


def learn_by_em(
    pairs: PairSet, progress: Progress, chosen: Setting, settings: Mapping[str, Any]
) -> Outcome:
    """Run the alternation and say what happens as it does."""
    say("\nEM: soft labels, then a convex M-step for the metric, until J stops falling.")
    say("J never rises; the paper's objective (7) may. Early M-steps may be left rough.")
    mu, trace_weight = chosen.weights(pairs, "em", settings.get("threshold", 1.0))
    with screen.status("learning"):
        run = alternate(
            pairs,
            unlabeled_weight=mu,
            trace_weight=trace_weight,
            sharpness=chosen.sharpness,
            callback=progress,
            **settings,
        )
    report_alternation(run)
    metric = None if run.metric is None else chosen.metric_of(run.metric, pairs)
    return metric, run.history, run.status


def learn_directly(pairs: PairSet, chosen: Setting, settings: Mapping[str, Any]) -> Outcome:
    """Run the projected gradient on (7) and say where it ended."""
    say("\nDirect: projected gradient on the paper's objective (7), from the identity.")
    mu, trace_weight = chosen.weights(pairs, "direct", settings["threshold"])
    with screen.status("learning"):
        solution = minimise_directly(
            pairs, unlabeled_weight=mu, trace_weight=trace_weight, **settings
        )
    report_direct(solution, settings["tol"])
    return chosen.metric_of(solution.metric, pairs), solution.values, solution.status


def number_or_word(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
