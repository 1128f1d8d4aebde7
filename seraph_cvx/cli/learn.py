"""`seraph-cvx demo` and `fit`: learn a metric, and say in words how good it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ..certificate import certify
from ..datasets import load_sampling
from ..estimators.settings import RECOMMENDED
from ..numerics.checks import FloatArray
from ..pairs.pair_set import PairSet
from ..solvers.solution import OptimumNotAttained, Status
from .fit_options import (
    Algorithm,
    AlgorithmChoice,
    AllowUnattained,
    CorrelationWeight,
    Decimal,
    DecimalMark,
    Drop,
    Encoding,
    Force,
    Html,
    IdentityShare,
    Impute,
    LabelColumn,
    MaxIter,
    MStepTol,
    OneHot,
    Out,
    PaperSetting,
    Picture,
    Polish,
    Reference,
    Sharpness,
    Solver,
    Standardize,
    TableFile,
    Threshold,
    TimeLimit,
    Tol,
    TraceWeight,
    Unknown,
    UnlabeledWeight,
)
from .fit_page import command_given, loading_code, write_report
from .fitting import announce_long_work, check_points, learn, scale_points
from .main import EXAMPLES, Debug, Panels, app
from .metric_report import draw_demo, draw_fit, report_metric
from .report import alert, answers_in_words, describe, finish, say
from .tables.files import TableError, check_output, require_file, write_metric
from .tables.reading import Reading
from .tables.user_table import UserTable, read_table
from .tables.workload import require_memory_for_pairs

PICTURES = (".png", ".pdf", ".svg")
READING_OPTIONS = ("--drop", "--one-hot", "--impute", "--decimal", "--encoding")
PARAMETERS = (
    "--unlabeled-weight",
    "--trace-weight",
    "--identity-share",
    "--correlation-weight",
    "--solver",
    "--tol",
    "--m-step-tol",
    "--max-iter",
    "--time-limit",
    "--polish",
    "--allow-unattained",
)
"""The options of `fit` that stand for parameters which messages of the package may name."""


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
        from ..estimators.seraph import SERAPH

        if not no_picture:
            check_output(out, PICTURES)
        sampling = load_sampling("iris", seed=seed)
        labels = sampling.y.astype(np.int64)
        table = UserTable(sampling.X, labels, (), ("setosa", "versicolor", "virginica"))
        pairs = PairSet.from_labels(table.X, table.y)
        metrics: list[FloatArray] = []
        describe(table, pairs, "iris flowers, standardized")
        seraph = SERAPH()
        learn(seraph, table.X, table.labels, metrics.append)
        report_metric(table, seraph, sampling.X_test, sampling.y_test)
        if not no_picture:
            first = RECOMMENDED.first_m_step(pairs)  # a fixed point solves its own M-step
            gaps = [certify(first.with_soft_labels_of(A), A).relative_gap for A in metrics]
            draw_demo(out, sampling, table.class_names, seraph.metric_, gaps, kept)
        finish(seraph.status_, kept)


@app.command(epilog=EXAMPLES, cls=Panels)
def fit(
    context: typer.Context,
    file: TableFile,
    label: LabelColumn,
    out: Out = None,
    force: Force = False,
    picture: Picture = None,
    html: Html = None,
    drop: Drop = None,
    unknown: Unknown = "-1,NA,NaN,nan",
    one_hot: OneHot = None,
    impute: Impute = None,
    decimal: Decimal = DecimalMark.POINT,
    encoding: Encoding = None,
    standardize: Standardize = True,
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
    m_step_tol: MStepTol = 1e-8,
    max_iter: MaxIter = None,
    time_limit: TimeLimit = None,
    polish: Polish = False,
    allow_unattained: AllowUnattained = False,
    debug: Debug = False,
) -> None:
    """Learn a metric from your own table, and write it to a file."""
    with answers_in_words(PARAMETERS) as kept:
        from sklearn.pipeline import Pipeline

        from ..estimators.seraph import SERAPH

        require_file(file)
        target = file.with_suffix(".metric.npz") if out is None else out
        check_output(target, (".npz", ".csv"), file, may_replace=force)
        if picture is not None:
            check_output(picture, PICTURES, file, may_replace=force)
        if html is not None:
            check_output(html, (".html",), file, may_replace=force)
        if algorithm is Algorithm.DIRECT and sharpness is not None:
            raise TableError("--sharpness needs --algorithm em: direct has no soft labels.")
        reading = Reading(
            unknown=tuple(word.strip() for word in unknown.split(",")),
            drop=tuple(drop or ()),
            one_hot=tuple(one_hot or ()),
            decimal=decimal.value,
            encoding=encoding,
            impute=impute is not None,
            options=READING_OPTIONS,
        )
        seraph = SERAPH(
            unlabeled_weight=number_or_word(unlabeled_weight),
            trace_weight=number_or_word(trace_weight),
            threshold=threshold,
            sharpness=RECOMMENDED.sharpness if sharpness is None else sharpness,
            identity_share=number_or_word(identity_share),
            reference=reference,
            correlation_weight=number_or_word(correlation_weight),
            setting=setting,
            algorithm=algorithm.value,
            solver=solver,
            tol=tol,
            m_step_tol=m_step_tol,
            max_iter=max_iter,
            time_limit=time_limit,
            polish=polish,
            allow_unattained=allow_unattained,
        )
        table = read_table(file, label, reading)
        check_points(table, standardize)
        require_memory_for_pairs(table.y)
        steps, Z = scale_points(table, impute, standardize)
        pairs = PairSet.from_labels(np.asarray(Z), table.y)
        describe(table, pairs, f"{file}, {'' if standardize else 'not '}standardized")
        announce_long_work(pairs, seraph.unlabeled_weight == 0.0)
        try:
            learn(seraph, Z, table.labels)
        except OptimumNotAttained as error:
            feature = table.feature_names[int(np.argmax(np.abs(error.direction)))]
            error.add_note(
                f"In your table that feature is the column {feature!r}, and the points are its "
                "rows, numbered from 0."
            )
            raise
        model: Any = Pipeline([*steps, ("seraph", seraph)]) if steps else seraph
        if seraph.status_ is Status.INTERRUPTED:
            target = target.with_stem(target.stem + ".interrupted")
            write_model(target, model, table)
            kept.append(f"the metric of iteration {seraph.n_iter_} is in {target}")
            raise KeyboardInterrupt
        if not np.any(seraph.metric_):
            alert(
                f"The status is {seraph.status_.value}, but all distances are zero; nothing was "
                "written. Exit code 1.",
                style="red",
            )
            raise typer.Exit(1)
        write_model(target, model, table)
        kept.append(f"the metric is in {target}")
        scaled = UserTable(np.asarray(Z), table.y, table.feature_names, table.class_names)
        report_metric(scaled, seraph)
        say_what_was_written(target, standardize)
        if picture is not None:
            title = f"SERAPH on {file.name}"
            draw_fit(picture, scaled, seraph.metric_, seraph.history_, title, kept)
        if html is not None:
            code = loading_code(file, label, reading, table)
            write_report(html, model, table, file.name, code, command_given(context), kept)
        finish(seraph.status_, kept)


def write_model(path: Path, model: Any, table: UserTable) -> None:
    """Write the model, or as .csv its matrix alone."""
    from ..estimators.saving.model_file import save_model

    if path.suffix == ".npz":
        save_model(model, path)
    else:
        metric = getattr(model, "steps", [("", model)])[-1][1].metric_
        write_metric(path, metric, table.feature_names)


def say_what_was_written(path: Path, standardize: bool) -> None:
    """Say what the file holds, and what can be done with it."""
    if path.suffix == ".npz":
        say(f"\nWritten: the model, to {path}. Next:\n  seraph-cvx apply {path} NEW.csv --predict")
        return
    say(f"\nWritten: the matrix alone, to {path}. For seraph-cvx apply, use --out NAME.npz.")
    if standardize:
        say(
            "  It applies to the standardized features. For the columns as they are in the "
            "table, divide entry (i, j) by the standard deviations of columns i and j."
        )


def number_or_word(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
