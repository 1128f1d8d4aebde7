"""`seraph-cvx demo` and `fit`: learn a metric, and say in words how good it is."""

from __future__ import annotations

import re
import shlex
import signal
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import typer

from ..certificate import certify
from ..datasets import load_sampling
from ..display.progress_line import ProgressLine
from ..estimators.settings import RECOMMENDED
from ..fit.alternation import Iteration
from ..numerics.checks import FloatArray
from ..pairs.data_warnings import FarValueWarning, ScaleWarning, describe_scales
from ..pairs.pair_set import PairSet
from ..solvers.solution import OptimumNotAttained, Status
from .files import TableError, check_output, require_file, require_memory_for_pairs, write_rows
from .fit_report import (
    describe,
    draw_demo,
    draw_fit,
    finish,
    note_far_values,
    note_repeated_rows,
    report_iteration,
    report_metric,
    write_page,
)
from .main import (
    DEBUG,
    DECIMAL,
    ENCODING,
    EXAMPLES,
    GIVEN,
    THOUSANDS,
    Panels,
    app,
    argument,
    in_panel,
    option,
)
from .report import alert, answers_in_words, interrupts_deferred, say, screen, tell, written
from .tables import Reading, UserTable, in_words, is_number, name_columns, open_text, read_table

if TYPE_CHECKING:
    from ..estimators.seraph import SERAPH

PICTURES = (".png", ".pdf", ".svg")
FIRST, TABLE = "What most people need", "Reading the table"
METRIC, SEARCH = "What is learned", "How it is searched for"

IDENTIFIER = re.compile(r"(?i:(^|[_\s.-])(id|uid|uuid|index|nr))$|[a-z](Id|ID)$")
FEWEST_IN_SEQUENCE = 5


@app.command(epilog="Example:  seraph-cvx demo --seed 3 --out iris.png")
def demo(
    seed: int = option(15, "Which 100 flowers, and which 10 labels; 15 is typical.", min=0),
    out: Path = option("seraph-cvx-demo.png", "Where the picture goes: .png, .pdf or .svg."),
    no_picture: bool = option(False, "Draw no picture.", "--no-picture"),
    debug: bool = DEBUG,
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
        report_metric(table, seraph, sampling)
        say("  Over --seed 0 to 29 these errors are 8.5% and 13.4% on average.")
        if not no_picture:
            first = RECOMMENDED.first_m_step(pairs)  # only a fixed point solves its own M-step
            gaps = [certify(first.with_soft_labels_of(A), A).relative_gap for A in metrics]
            draw_demo(out, sampling, table, seraph, gaps, kept)
        finish(seraph.status_, kept)


@app.command(epilog=EXAMPLES, cls=Panels)
def fit(
    context: typer.Context,
    file: Path = argument(
        ...,
        "A table: a row of column names, then a row for each point; every column but the "
        "label holds numbers; cells are separated by commas, semicolons or tabs.",
        metavar="FILE",
    ),
    label: str = in_panel(
        FIRST, ..., "The column of class labels. Empty cell: unknown.", metavar="COLUMN"
    ),
    out: Path | None = in_panel(
        FIRST,
        None,
        "Where the model goes: .npz, for seraph-cvx apply and load_model, with the scaling, "
        "the labeled points and the names of the columns; or .csv, the matrix alone. By "
        "default FILE.metric.npz.",
        metavar="FILE",
    ),
    force: bool = in_panel(FIRST, False, "Replace files that exist already.", "--force"),
    picture: Path | None = in_panel(
        FIRST, None, "Draw the points before and after, and J: .png, .pdf or .svg.", metavar="FILE"
    ),
    html: Path | None = in_panel(
        FIRST,
        None,
        "Write a report of the fit, one page that works offline: .html.",
        metavar="FILE",
    ),
    drop: list[str] = in_panel(
        FIRST,
        [],
        "Leave a column out, such as a number of each row; may be given several times.",
        metavar="COLUMN",
    ),
    unknown: str = in_panel(
        TABLE,
        "-1,NA,NaN,nan",
        "Labels that mean an unknown class, separated by commas; an empty cell always does.",
        metavar="WORDS",
    ),
    one_hot: list[str] = in_panel(
        TABLE,
        [],
        "Make a feature of each value of a column of text; may be given several times.",
        metavar="COLUMN",
    ),
    impute: Literal["median", "mean"] | None = in_panel(
        TABLE, None, "Fill empty cells by the median or the mean of their column."
    ),
    missing: str = in_panel(
        TABLE,
        "",
        "Numbers or words that mean a missing value among the features, separated by commas, such "
        "as 9999,-999; needs --impute. An empty cell, NA, NaN, null, none and ? always do.",
        metavar="WORDS",
    ),
    decimal: Literal[".", ","] = DECIMAL,
    thousands: Literal[",", ".", "'", "space"] | None = THOUSANDS,
    encoding: str | None = ENCODING,
    standardize: bool = in_panel(
        TABLE,
        True,
        "Bring each feature to mean 0 and variance 1 first. Features on different scales "
        "make the trace weight meaningless.",
    ),
    unlabeled_weight: str = in_panel(
        METRIC,
        "full",
        "How much an unlabeled pair counts. ratio is the paper's choice, labeled pairs "
        "over unlabeled pairs; full makes up for what the soft labels lose; 0 ignores the "
        "unlabeled points.",
        metavar="full|ratio|NUMBER",
    ),
    trace_weight: str = in_panel(
        METRIC,
        "auto",
        "Larger values lower the rank; very large ones give the zero metric. auto is 0.08 times "
        "the smallest that gives the zero metric, divided by the number of classes.",
        metavar="auto|NUMBER",
    ),
    threshold: float = in_panel(
        METRIC, 1.0, "The squared distance at which a pair is as likely similar as not."
    ),
    sharpness: float | None = in_panel(
        METRIC,
        None,
        "How decided the soft labels of em are; 2 by default. The paper's choice makes the "
        "unlabeled points count for little: see --setting.",
    ),
    identity_share: str = in_panel(
        METRIC,
        str(RECOMMENDED.identity_share),
        "The share of the reference in the metric that is written; with 0 it is the "
        "certified one. auto is larger if the learned metric brings fewer of the similar pairs "
        "together.",
        metavar="auto|NUMBER",
    ),
    reference: str = in_panel(
        METRIC,
        RECOMMENDED.reference,
        "The reference: the Euclidean distance (identity), or the distance in units of the spread "
        "inside the classes (within).",
        metavar="within|identity",
    ),
    correlation_weight: str = in_panel(
        METRIC,
        str(RECOMMENDED.correlation_weight),
        "How much the trace penalty follows the covariance of the features, from 0 (as in "
        "the paper) to below 1. auto is 0 unless the features are very strongly correlated.",
        metavar="auto|NUMBER",
    ),
    setting: str | None = in_panel(
        METRIC,
        None,
        "One of the paper's settings, instead of the weights, the sharpness, the share and "
        "the reference above.",
        metavar="none|post|proj|hyper",
    ),
    algorithm: Literal["em", "direct"] = in_panel(
        SEARCH,
        "em",
        "em: the paper's alternation, whose convex steps are certified. direct: descent on "
        "the paper's objective (7), which is not convex and has no certificate.",
    ),
    solver: str = in_panel(
        SEARCH,
        "newton",
        "For the convex steps of em: newton (the default), fista, projected-gradient, CLARABEL, "
        "SCS.",
    ),
    tol: float = in_panel(
        SEARCH,
        1e-6,
        "em ends when J falls by less than this, relatively; direct, when the gradient of "
        "(7) promises no larger relative fall.",
    ),
    m_step_tol: float = in_panel(
        SEARCH, 1e-8, "The relative gap to which the last M-step of em is to be certified."
    ),
    max_iter: int | None = in_panel(
        SEARCH, None, "The most iterations; by default 500 for em, 5000 for direct.", min=1
    ),
    time_limit: float | None = in_panel(
        SEARCH,
        None,
        "Stop after this time, with the best metric so far.",
        metavar="SECONDS",
        min=0.0,
    ),
    unlabeled_pairs: int | None = in_panel(
        SEARCH,
        None,
        "Learn from so many unlabeled pairs, drawn at random, instead of all: much faster with "
        "many points. The certificate is over all pairs.",
        metavar="NUMBER",
        min=1,
    ),
    n_jobs: int | None = in_panel(
        SEARCH, None, "Threads over blocks of pairs; -1 for one on each core.", metavar="NUMBER"
    ),
    polish: bool = in_panel(
        SEARCH,
        False,
        "Continue with newton where the answer of another solver is not certified.",
        "--polish",
    ),
    allow_unattained: bool = in_panel(
        SEARCH,
        False,
        "Continue if no best metric exists (with trace weight 0).",
        "--allow-unattained",
    ),
    debug: bool = DEBUG,
) -> None:
    """Learn a metric from your own table, and write it to a file."""
    with answers_in_words(context.params) as kept:
        from sklearn.pipeline import Pipeline

        from ..estimators.seraph import SERAPH

        require_file(file)
        target = file.with_suffix(".metric.npz") if out is None else out
        for path, endings in ((target, (".npz", ".csv")), (picture, PICTURES), (html, (".html",))):
            if path is not None:
                check_output(path, endings, file, may_replace=force)
        if algorithm == "direct" and sharpness is not None:
            raise TableError("--sharpness needs --algorithm em: direct has no soft labels.")
        if missing and impute is None:
            raise TableError(
                f"--missing {missing} needs --impute median or --impute mean, which says what to "
                "fill in instead."
            )
        reading = Reading(
            unknown=in_words(unknown),
            drop=tuple(drop),
            one_hot=tuple(one_hot),
            decimal=decimal,
            encoding=encoding,
            impute=impute is not None,
            missing=in_words(missing),
            thousands=thousands,
            options=tuple(context.params),
        )
        settings = {
            name: float(value) if isinstance(value, str) and is_number(value) else value
            for name, value in context.params.items()
            if value is not None and name in SERAPH().get_params()
        }
        seraph = SERAPH(random_state=0).set_params(**settings)
        table = read_table(file, label, reading)
        seraph.table_ = {"texts": dict(table.texts), "missing": list(reading.missing)}
        check_points(table, standardize)
        note_far_values(table.X, table.rows, table.feature_names, "--missing {} --impute median")
        note_repeated_rows(table)
        require_memory_for_pairs(table.y)
        steps, Z = scale_points(table, impute, standardize)
        cure = "leave out --no-standardize"
        if doubtful := describe_scales(np.asarray(Z), table.feature_names, cure):
            alert(f"Note: {doubtful}")
        pairs = PairSet.from_labels(np.asarray(Z), table.y)
        describe(table, pairs, f"{file}, {'' if standardize else 'not '}standardized")
        with interrupts_deferred() as pending:  # until the model is written
            try:
                learn(seraph, Z, table.labels, pending=pending)
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
                write_model(target, model, seraph, table)
                kept.append(f"the metric of iteration {seraph.n_iter_} is in {target}")
                raise KeyboardInterrupt
            if not np.any(seraph.components_):
                status = seraph.status_.value
                fail(f"The status is {status}, but all distances are zero; nothing was written.")
            write_model(target, model, seraph, table)
            kept.append(f"the metric is in {target}")
        scaled = replace(table, X=np.asarray(Z))
        report_metric(scaled, seraph)
        tell("saved", path=target, standardize=standardize, reading=reading)
        if not seraph.history_ and (picture or html):
            alert("Nothing is drawn: the fit ended before its first iteration.")
            picture = html = None
        if picture is not None:
            draw_fit(picture, scaled, seraph, f"SERAPH on {file.name}", kept)
        if html is not None:
            code = loading_code(file, label, reading, table)
            command = shlex.join(["seraph-cvx", "fit", *context.meta[GIVEN]])
            write_page(html, model, table, file.name, code, command, kept)
        finish(seraph.status_, kept)


def loading_code(file: Path, label: str, reading: Reading, table: UserTable) -> str:
    """Python code that reads a table as the command does."""
    of_text = tuple(f"{name}=" for name in reading.one_hot)
    numeric = [name for name in table.feature_names if not name.startswith(of_text)]
    missing = {name: list(reading.missing) for name in numeric} if reading.missing else {}
    return (
        written(
            "loading",
            file=file,
            label=label,
            text=open_text(file, reading),
            reading=reading,
            texts=dict.fromkeys([label, *reading.one_hot], "object"),
            unknown={label: ["", *table.unknown], **missing},
            features=table.feature_names,
        )
        + "\n"
    )


def fail(reason: str) -> None:
    """End with exit code 1."""
    alert(f"{reason} Exit code 1.", style="red")
    raise typer.Exit(1) from None


def check_points(table: UserTable, standardize: bool) -> None:
    """Refuse numbers that cannot be squared; name columns that are constant or number the rows."""
    X = table.X
    with np.errstate(over="ignore", invalid="ignore"):
        spread = np.nanstd(X, axis=0)
        sizes = spread if standardize else np.nanmax(np.abs(X), axis=0) ** 4
    if not np.all(np.isfinite(sizes)):
        feature = table.feature_names[int(np.argmin(np.isfinite(sizes)))]
        raise TableError(
            f"The numbers in the column {feature!r} are too large to be squared: use a larger "
            "unit, or remove the column."
        )
    if not np.any(spread):
        raise TableError("All points of the table are the same, so there is nothing to learn.")
    for name, column, varies in zip(table.feature_names, X.T, spread > 0.0, strict=True):
        if not varies:
            alert(f"Note: the column {name!r} is constant, so nothing is learned from it.")
        elif looks_like_identifier(name, column):
            alert(
                f"Note: the column {name!r} looks like a number of each row, and counts as a "
                f"feature. --drop {name!r} leaves it out."
            )


def looks_like_identifier(name: str, column: FloatArray) -> bool:
    """Whether a column is called an identifier, or numbers the points in sequence."""
    if IDENTIFIER.search(name.strip()):
        return True
    n, first = len(column), float(np.min(column))
    is_sequence = np.array_equal(np.sort(column), np.arange(n) + first)
    return n >= FEWEST_IN_SEQUENCE and is_sequence and first == np.rint(first)


def scale_points(
    table: UserTable, impute: str | None, standardize: bool
) -> tuple[list[tuple[str, Any]], Any]:
    """Fit what comes before the metric; the steps of a pipeline, and the points after them."""
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    X = name_columns(table.X, table.feature_names)
    steps: list[tuple[str, Any]] = []
    if impute is not None:
        from sklearn.impute import SimpleImputer  # half a second

        steps.append(("impute", SimpleImputer(strategy=impute)))
    if standardize:
        steps.append(("scale", StandardScaler()))
    return steps, Pipeline(steps).fit_transform(X) if steps else X


class IterationReports(ProgressLine):
    """Prints each iteration of a fit, and a line of progress below them."""

    def __init__(self, then: Callable[[FloatArray], object] | None, pending: list[int]) -> None:
        super().__init__(console=screen)
        self.then, self.pending = then, pending

    def __call__(self, step: Iteration, metric: FloatArray) -> None:
        """Print an iteration, and hand its metric on."""
        report_iteration(step, metric)
        if self.then is not None:
            self.then(metric)

    def progress(self, text: str) -> None:
        """Say what is running; press Ctrl-C that was pressed before the fit could listen."""
        if self.pending:
            self.pending.clear()
            signal.raise_signal(signal.SIGINT)
        self.move(text)


def learn(
    seraph: SERAPH,
    X: Any,
    labels: Any,
    then: Callable[[FloatArray], object] | None = None,
    pending: list[int] | None = None,
) -> None:
    """Fit SERAPH, print each iteration, which `then` gets too; Ctrl-C keeps what there is."""
    is_direct = seraph.algorithm == "direct"
    tell("steps", seraph=seraph)
    with (
        IterationReports(then, [] if pending is None else pending) as callback,
        warnings.catch_warnings(),
    ):
        seraph.set_params(callback=callback, on_interrupt="keep")
        warnings.simplefilter("always", UserWarning)
        warnings.filterwarnings("ignore", "y holds")  # said before, with the option that helps
        warnings.simplefilter("ignore", FarValueWarning)
        warnings.simplefilter("ignore", ScaleWarning)
        try:
            seraph.fit(X, labels)
        except RuntimeError as error:
            if type(error) is not RuntimeError:  # only that says that no metric was found
                raise
            fail(f"The status is failed; nothing was written. {error}")
    seraph.set_params(callback=None, on_interrupt="raise")
    if is_direct:
        tell("direct", seraph=seraph, is_stationary=seraph.status_ is Status.STATIONARY)
    elif seraph.certificate_ is not None:
        say("\nCertificate of the last M-step, a convex program", style="bold")
        is_at_limit = seraph.status_ is Status.ROUNDING_LIMIT
        tell("certificate", seraph=seraph, is_at_rounding_limit=is_at_limit)


def write_model(path: Path, model: Any, seraph: SERAPH, table: UserTable) -> None:
    """Write the model, or as .csv its matrix alone, below the names of the features."""
    from ..estimators.saving import save_model

    if path.suffix == ".npz":
        save_model(model, path)
    else:
        write_rows(path, [table.feature_names, *seraph.metric_.tolist()])
