"""`seraph-cvx demo` and `fit`: learn a metric, and say in words how good it is."""

from __future__ import annotations

import re
import signal
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

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
from ..processes.whole_file import write_whole
from ..solvers.solution import OptimumNotAttained, Status
from .files import TableError, check_output, require_file
from .fit_report import (
    describe,
    draw_demo,
    draw_fit,
    finish,
    note_far_values,
    note_repeated_rows,
    report_iteration,
    report_metric,
)
from .main import DEBUG, EXAMPLES, FIRST, Panels, app, argument, grouped, listed, option
from .messages import alert, answers_in_words, interrupts_deferred, say, screen, tell
from .tables import Reading, UserTable, in_words, is_number, name_columns, read_table

if TYPE_CHECKING:
    from ..estimators.seraph import SERAPH

PICTURES = (".png", ".pdf", ".svg")
METRIC, SEARCH = "What is learned", "How it is searched for"


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
        learn(seraph, table.X, table.labels, metrics.append, [])
        report_metric(table, seraph, sampling)
        say("  Over --seed 0 to 29 these errors are 8.5% and 13.4% on average.")
        if not no_picture:
            first = RECOMMENDED.first_m_step(pairs)  # only a fixed point solves its own M-step
            gaps = [certify(first.with_soft_labels_of(A), A).relative_gap for A in metrics]
            draw_demo(out, sampling, table, seraph, gaps, kept)
            say(
                "  Its gaps are those of the M-steps with each metric's own soft labels; the gap\n"
                "  of the certificate is that of the last M-step. Both close at a fixed point."
            )
        finish(seraph.status_, kept)


# What `fit` may be told, in groups


@dataclass(frozen=True)
class Output:
    """Where the results of a fit go."""

    out: Annotated[
        Path | None,
        listed(
            FIRST,
            "Where the model goes: .npz, for seraph-cvx apply and load_model, with the scaling, "
            "the labeled points and the names of the columns. By default FILE.metric.npz.",
            metavar="FILE",
        ),
    ] = None
    force: Annotated[bool, listed(FIRST, "Replace files that exist already.", "--force")] = False
    picture: Annotated[
        Path | None,
        listed(
            FIRST,
            "Draw the points before and after, and J: .png, .pdf or .svg.",
            metavar="FILE",
        ),
    ] = None
    proof: Annotated[
        Path | None,
        listed(
            FIRST,
            "Write the certificate of the last convex step, which seraph-cvx check proves again by "
            "other code: .json.",
            metavar="FILE",
        ),
    ] = None

    def checked(self, file: Path) -> Path:
        """The path of the model; an error if something cannot be written."""
        target = file.with_suffix(".metric.npz") if self.out is None else self.out
        endings = {target: (".npz",), self.picture: PICTURES, self.proof: (".json",)}
        for path, allowed in endings.items():
            if path is not None:
                check_output(path, allowed, file, may_replace=self.force)
        return target


@dataclass(frozen=True)
class Learning:
    """What is learned, and how it is searched for: parameters of SERAPH, by their names."""

    unlabeled_weight: Annotated[
        str,
        listed(
            METRIC,
            "How much an unlabeled pair counts. ratio is the paper's choice, labeled pairs over "
            "unlabeled pairs; full makes up for what the soft labels lose; 0 ignores the "
            "unlabeled points.",
            metavar="full|ratio|NUMBER",
        ),
    ] = "full"
    trace_weight: Annotated[
        str,
        listed(
            METRIC,
            "Larger values lower the rank; very large ones give the zero metric. auto is 0.08 "
            "times the smallest that gives the zero metric, divided by the number of classes.",
            metavar="auto|NUMBER",
        ),
    ] = "auto"
    identity_share: Annotated[
        str,
        listed(
            METRIC,
            "The share of a reference distance in the metric that is written; with 0 it is the "
            "certified one. auto is larger if the learned metric brings fewer of the similar "
            "pairs together.",
            metavar="auto|NUMBER",
        ),
    ] = str(RECOMMENDED.identity_share)
    setting: Annotated[
        str | None,
        listed(
            METRIC,
            "One of the paper's settings, instead of the weights and the share above.",
            metavar="none|post|proj|hyper",
        ),
    ] = None
    classifier: Annotated[
        str,
        listed(
            METRIC,
            "What apply --predict does. auto: what labels that were held out favor, also whether "
            "the learned metric or the Euclidean one. Otherwise vote, nearest, neighbors or "
            "logistic, in the learned metric, or with plain- in front in the features as they are.",
            metavar="auto|NAME",
        ),
    ] = "auto"
    algorithm: Annotated[
        Literal["em", "direct"],
        listed(
            SEARCH,
            "em: the paper's alternation, whose convex steps are certified. direct: descent on "
            "the paper's objective (7), which is not convex and has no certificate.",
        ),
    ] = "em"
    solver: Annotated[
        str,
        listed(
            SEARCH,
            "For the convex steps of em: newton (the default), fista, projected-gradient, "
            "CLARABEL, SCS.",
        ),
    ] = "newton"
    tol: Annotated[
        float,
        listed(
            SEARCH,
            "em ends when J falls by less than this, relatively; direct, when the gradient of "
            "(7) promises no larger relative fall.",
        ),
    ] = 1e-6
    max_iter: Annotated[
        int | None,
        listed(SEARCH, "The most iterations; by default 500 for em, 5000 for direct.", min=1),
    ] = None
    time_limit: Annotated[
        float | None,
        listed(
            SEARCH, "Stop after this time, with the best metric so far.", metavar="SECONDS", min=0
        ),
    ] = None
    n_jobs: Annotated[
        int | None,
        listed(SEARCH, "Threads over blocks of pairs; -1 for one on each core.", metavar="NUMBER"),
    ] = None

    def estimator(self) -> SERAPH:
        """SERAPH with these parameters."""
        from ..estimators.seraph import SERAPH

        given = {name: value for name, value in vars(self).items() if value is not None}
        numbers = {k: float(v) for k, v in given.items() if isinstance(v, str) and is_number(v)}
        seraph = SERAPH()
        seraph.set_params(**given | numbers)
        return seraph


@app.command(epilog=EXAMPLES, cls=Panels)
@grouped
def fit(
    file: Path = argument(
        ...,
        "A table: a row of column names, then a row for each point; every column but the "
        "label holds numbers; cells are separated by commas, semicolons or tabs.",
        metavar="FILE",
    ),
    label: str = option(
        ...,
        "The column of class labels. Empty cell: unknown.",
        metavar="COLUMN",
        rich_help_panel=FIRST,
    ),
    output: Output = Output(),
    reading: Reading = Reading(),
    learning: Learning = Learning(),
    debug: bool = DEBUG,
) -> None:
    """Learn a metric from your own table, and write it to a file."""
    with answers_in_words() as kept:
        from sklearn.pipeline import Pipeline

        require_file(file)
        target, seraph = output.checked(file), learning.estimator()
        if output.proof is not None and learning.algorithm == "direct":
            raise ValueError("--proof writes a certificate, and --algorithm direct has none.")
        table = read_table(file, label, reading)
        seraph.table_ = {"texts": dict(table.texts), "missing": list(in_words(reading.missing))}
        note_what_may_be_wrong(table, reading)
        steps, Z = scale_points(table, reading)
        pairs = PairSet.from_labels(np.asarray(Z), table.y)
        describe(table, pairs, f"{file}, {'' if reading.standardize else 'not '}standardized")
        with interrupts_deferred() as pending:  # until the model is written
            try:
                learn(seraph, Z, table.labels, lambda _: None, pending)
            except OptimumNotAttained as error:
                feature = table.feature_names[int(np.argmax(np.abs(error.direction)))]
                error.add_note(
                    f"In your table that feature is the column {feature!r}, and the points are its "
                    "rows, numbered from 0. A larger --trace-weight makes a best metric exist."
                )
                raise
            model: Any = Pipeline([*steps, ("seraph", seraph)]) if steps else seraph
            write_model(target, model, seraph, kept)
        scaled = replace(table, X=np.asarray(Z))
        report_metric(scaled, seraph)
        tell("saved", path=target, reading=reading)
        if output.proof is not None:
            write_proof(output.proof, seraph, kept)
        if output.picture is not None and seraph.history_:
            draw_fit(output.picture, scaled, seraph, f"SERAPH on {file.name}", kept)
        finish(seraph.status_, kept)


def fail(reason: str) -> None:
    """End with exit code 1."""
    alert(f"{reason} Exit code 1.", style="red")
    raise typer.Exit(1) from None


def note_what_may_be_wrong(table: UserTable, reading: Reading) -> None:
    """Refuse numbers that cannot be squared; name columns, values and rows that look wrong."""
    X = table.X
    with np.errstate(over="ignore", invalid="ignore"):
        spread = np.nanstd(X, axis=0)
        sizes = spread if reading.standardize else np.nanmax(np.abs(X), axis=0) ** 4
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
    note_far_values(X, table.rows, table.feature_names, "--missing {} --impute median")
    note_repeated_rows(table)


def looks_like_identifier(name: str, column: FloatArray) -> bool:
    """Whether a column is called an identifier, or numbers five points or more in sequence."""
    if re.search(r"(?i:(^|[_\s.-])(id|uid|uuid|index|nr))$|[a-z](Id|ID)$", name.strip()):
        return True
    n, first = len(column), float(np.min(column))
    is_sequence = np.array_equal(np.sort(column), np.arange(n) + first)
    return n >= 5 and is_sequence and first == np.rint(first)


def scale_points(table: UserTable, reading: Reading) -> tuple[list[tuple[str, Any]], Any]:
    """Fit what comes before the metric; the steps of a pipeline, and the points after them."""
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    X = name_columns(table.X, table.feature_names)
    steps: list[tuple[str, Any]] = []
    if reading.impute is not None:
        from sklearn.impute import SimpleImputer  # half a second

        steps.append(("impute", SimpleImputer(strategy=reading.impute)))
    if reading.standardize:
        steps.append(("scale", StandardScaler()))
    before = Pipeline(steps).fit(X) if steps else None
    if reading.standardize and reading.scale_text != "value":
        scaler, names = steps[-1][1], np.array(table.feature_names)
        for column in table.texts:
            coded = np.char.startswith(names, f"{column}=")
            total = np.sqrt(np.sum(scaler.var_[coded])) or 1.0
            scaler.scale_[coded] = total if reading.scale_text == "column" else 1.0
    Z = X if before is None else before.transform(X)
    cure = "leave out --no-standardize"
    if doubtful := describe_scales(np.asarray(Z), table.feature_names, cure):
        alert(f"Note: {doubtful}")
    return steps, Z


class IterationReports(ProgressLine):
    """Prints each iteration of a fit, and a line of progress below them."""

    def __init__(self, then: Callable[[FloatArray], object], pending: list[int]) -> None:
        super().__init__(console=screen)
        self.then, self.pending = then, pending

    def __call__(self, step: Iteration, metric: FloatArray) -> None:
        """Print an iteration, and hand its metric on."""
        report_iteration(step)
        self.then(metric)

    def progress(self, text: str) -> None:
        """Say what is running; press Ctrl-C that was pressed before the fit could listen."""
        if self.pending:
            self.pending.clear()
            signal.raise_signal(signal.SIGINT)
        self.move(text)


def learn(
    seraph: SERAPH, X: Any, labels: Any, then: Callable[[FloatArray], object], pending: list[int]
) -> None:
    """Fit SERAPH, print each iteration, which `then` gets too; Ctrl-C keeps what there is."""
    from ..solvers.not_certified import NotCertified

    tell("steps", seraph=seraph)
    with IterationReports(then, pending) as callback, warnings.catch_warnings():
        seraph.set_params(callback=callback, on_interrupt="keep")
        warnings.simplefilter("always", UserWarning)
        warnings.filterwarnings("ignore", "y holds")  # said before, with the option that helps
        for said_elsewhere in (FarValueWarning, ScaleWarning, NotCertified):
            warnings.simplefilter("ignore", said_elsewhere)
        try:
            seraph.fit(X, labels)
        except RuntimeError as error:
            if type(error) is not RuntimeError:  # only that says that no metric was found
                raise
            fail(f"The status is failed; nothing was written. {error}")
    seraph.set_params(callback=None, on_interrupt="raise")
    if seraph.algorithm == "direct":
        tell("direct", seraph=seraph, is_stationary=seraph.status_ is Status.STATIONARY)
    elif seraph.certificate_ is not None:
        say("\nCertificate of the last M-step, a convex program", style="bold")
        is_at_limit = seraph.status_ is Status.ROUNDING_LIMIT
        tell("certificate", seraph=seraph, is_at_rounding_limit=is_at_limit)


def write_proof(path: Path, seraph: SERAPH, kept: list[str]) -> None:
    """Write the certificate of the last M-step."""
    if seraph.certificate_ is None:
        alert(f"{path} was not written: there was no time to certify the metric.")
        return
    write_whole(path, seraph.certificate_.to_json().encode())
    kept.append(f"its certificate is in {path}")
    say(f"Written: the certificate, to {path}; seraph-cvx check {path} checks it.")


def write_model(path: Path, model: Any, seraph: SERAPH, kept: list[str]) -> None:
    """Write the model.

    After Ctrl-C it has a name of its own; a metric that is zero is not written.
    """
    from ..estimators.saving import save_model

    was_interrupted = seraph.status_ is Status.INTERRUPTED
    if was_interrupted:
        path = path.with_stem(path.stem + ".interrupted")
    elif not np.any(seraph.components_):
        fail(
            f"The status is {seraph.status_.value}, but all distances are zero; nothing was "
            "written."
        )
    save_model(model, path)
    of_iteration = f" of iteration {seraph.n_iter_}" if was_interrupted else ""
    kept.append(f"the metric{of_iteration} is in {path}")
    if was_interrupted:
        raise KeyboardInterrupt
