"""`seraph-cvx apply`: transform new rows by a learned metric, and classify them."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ..display.result_table import visible
from ..numerics.checks import FloatArray
from ..processes.whole_file import write_whole
from .fit_options import Decimal, DecimalMark, Encoding
from .main import Debug, Panels, app
from .report import alert, answers_in_words, say
from .tables.files import TableError, check_output, require_file
from .tables.frames import name_columns
from .tables.new_rows import read_new_rows
from .tables.reading import Reading, some

EXAMPLES = """\b
Examples:
  seraph-cvx apply metric.npz new.csv
  seraph-cvx apply metric.npz new.csv --predict --out classified.csv"""


@app.command(epilog=EXAMPLES, cls=Panels)
def apply(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="The .npz file of seraph-cvx fit, or of save_model."),
    ],
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A table that has the columns of the fit, in any order; others are ignored.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where the transformed rows go: .csv. By default FILE.transformed.csv.",
        ),
    ] = None,
    predict: Annotated[
        bool,
        typer.Option(
            "--predict",
            help="Also classify each row, by the nearest labeled point of the fit: the column "
            "predicted.",
        ),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a file that exists already.")
    ] = False,
    decimal: Decimal = DecimalMark.POINT,
    encoding: Encoding = None,
    debug: Debug = False,
) -> None:
    """Transform new rows by the learned metric; --predict also classifies them.

    The Euclidean distance between transformed rows is the learned distance.
    """
    with answers_in_words():
        from ..estimators.saving.model_file import load_model

        for path in (model, file):
            require_file(path)
        target = file.with_suffix(".transformed.csv") if out is None else out
        check_output(target, (".csv",), file, may_replace=force)
        loaded = load_model(model)
        steps = [step for _, step in getattr(loaded, "steps", [("", loaded)])]
        labeled = labeled_points(steps[-1], model) if predict else None
        names = getattr(steps[0], "feature_names_in_", None)
        may_lack = type(steps[0]).__name__ == "SimpleImputer"
        rows = read_new_rows(
            file,
            names,
            steps[0].n_features_in_,
            Reading(
                decimal=decimal.value,
                encoding=encoding,
                impute=may_lack,
                options=("--decimal", "--encoding"),
            ),
        )
        if rows.ignored:
            alert(f"Note: not used, as the metric does not know them: {some(rows.ignored)}.")
        for column, values in rows.unseen.items():
            alert(f"Note: new in the column {column!r}, and no feature: {some(values)}.")
        X = rows.X if names is None else name_columns(rows.X, names)
        Z = np.asarray(loaded.transform(X))
        columns = [str(name) for name in steps[-1].get_feature_names_out()]
        predicted = None if labeled is None else classify(Z, *labeled)
        write_rows(target, columns, Z, predicted)
        say(f"Model  {model}: {' and '.join(type(step).__name__ for step in steps)}")
        say(f"Rows   {len(Z)} of {file}, {rows.X.shape[1]} features")
        if labeled is not None and predicted is not None:
            counts = Counter(map(str, predicted))
            shown = ", ".join(f"{visible(name)} ({k})" for name, k in counts.most_common(8))
            say(f"Class  by the nearest of {len(labeled[1])} labeled points: {shown}")
        say(
            f"\nWritten: {len(Z)} rows to {target}, with the columns {columns[0]} to "
            f"{columns[-1]}{'' if predicted is None else ' and predicted'}"
        )


def labeled_points(learner: Any, path: Path) -> tuple[FloatArray, Any]:
    """The labeled points of a fit, transformed, and their labels; an error if there are none."""
    learner = getattr(learner, "best_estimator_", learner)
    if getattr(learner, "labels_", None) is None:
        raise TableError(
            f"{path} holds no labeled points to classify by: it is of a {type(learner).__name__} "
            "that kept none, or of an earlier version. Run seraph-cvx fit again."
        )
    if not np.any(learner.metric_):
        raise TableError(f"The metric in {path} is zero: all points are at the same place.")
    return learner.labeled_points_ @ learner.components_.T, learner.labels_


def classify(Z: FloatArray, labeled: FloatArray, labels: Any) -> Any:
    """The label of the nearest labeled point."""
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=1).fit(labeled)
    return labels[search.kneighbors(Z, return_distance=False)[:, 0]]


def write_rows(path: Path, columns: Sequence[str], Z: FloatArray, predicted: Any) -> None:
    """Write the transformed rows, with the predicted classes as a last column if there are any."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([*columns, *([] if predicted is None else ["predicted"])])
    if predicted is None:
        writer.writerows(Z.tolist())
    else:
        writer.writerows([*z, label] for z, label in zip(Z.tolist(), predicted, strict=True))
    write_whole(path, text.getvalue().encode())
