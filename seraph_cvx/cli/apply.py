"""`seraph-cvx apply`: transform new rows by a learned metric, and classify them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from .files import TableError, check_output, require_file, write_rows
from .fit_report import note_far_values
from .main import DEBUG, Panels, app, argument, grouped, option
from .messages import alert, answers_in_words, tell
from .tables import NewRows, Notation, Reading, first_names, in_words, name_columns, read_new_rows

EXAMPLES = """\b
Examples:
  seraph-cvx apply metric.npz new.csv
  seraph-cvx apply metric.npz new.csv --predict --out classified.csv"""


@app.command(epilog=EXAMPLES, cls=Panels)
@grouped
def apply(
    model: Path = argument(
        ..., "The .npz file of seraph-cvx fit, or of save_model.", metavar="MODEL"
    ),
    file: Path = argument(
        ...,
        "A table that has the columns of the fit, in any order; others are ignored.",
        metavar="FILE",
    ),
    out: Path | None = option(
        None,
        "Where the transformed rows go: .csv. By default FILE.transformed.csv.",
        metavar="FILE",
    ),
    predict: bool = option(
        False,
        "Also classify each row, as the fit has found best or was told: the column predicted.",
        "--predict",
    ),
    keep: str = option(
        "",
        "Columns of the table to write before the others, separated by commas, such as id,name; "
        "all for all of them.",
        metavar="COLUMNS",
    ),
    force: bool = option(False, "Replace a file that exists already.", "--force"),
    notation: Notation = Notation(),
    debug: bool = DEBUG,
) -> None:
    """Transform new rows by the learned metric; --predict also classifies them.

    The Euclidean distance between transformed rows is the learned distance.
    """
    with answers_in_words():
        from ..estimators.saving import load_model

        for path in (model, file):
            require_file(path)
        target = file.with_suffix(".transformed.csv") if out is None else out
        check_output(target, (".csv",), file, may_replace=force)
        loaded = load_model(model)
        steps = [step for _, step in getattr(loaded, "steps", [("", loaded)])]
        labels = getattr(steps[-1], "labels_", None) if predict else []
        if labels is None:
            raise TableError(
                f"{model} holds no labeled points to classify by: the fit of "
                f"{type(steps[-1]).__name__} kept none. Fit it to class labels."
            )
        if predict and not np.any(steps[-1].components_):
            raise TableError(f"The metric in {model} is zero: all distances are zero.")
        rows = rows_for(steps, file, notation, in_words(keep))
        columns = [str(name) for name in steps[-1].get_feature_names_out()]
        made = [*columns, "predicted"] if predict else columns
        if clashing := [name for name in rows.kept if name in made]:
            raise TableError(
                f"{file} has a column {clashing[0]!r}, and so has what is written: rename it, or "
                "leave it out of --keep."
            )
        names = getattr(steps[0], "feature_names_in_", None)
        X = rows.X if names is None else name_columns(rows.X, names)
        Z = np.asarray(loaded.transform(X))
        predicted = loaded.predict(X).tolist() if predict else []
        written = [*rows.kept.values(), *Z.T.tolist(), *([predicted] if predict else [])]
        write_rows(target, [[*rows.kept, *made], *zip(*written, strict=True)])
        tell(
            "applied",
            model=model,
            steps=steps,
            file=file,
            X=rows.X,
            target=target,
            columns=columns,
            labels=labels,
            kept=rows.kept,
            predicted=Counter(map(str, predicted)).most_common(),
            classifier=getattr(steps[-1], "classifier_", "nearest"),
        )


def rows_for(steps: list[Any], file: Path, notation: Notation, keep: tuple[str, ...]) -> NewRows:
    """Read what a model needs of a table as its fit did, and note what is unusual in it."""
    names, table = getattr(steps[0], "feature_names_in_", None), getattr(steps[-1], "table_", {})
    strategy = steps[0].strategy if type(steps[0]).__name__ == "SimpleImputer" else None
    missing = ",".join(table.get("missing", ()))
    reading = Reading(**vars(notation), impute=strategy, missing=missing)
    texts = table.get("texts", {})
    rows = read_new_rows(file, names, steps[0].n_features_in_, reading, texts, keep)
    if names is not None:
        cure = "the option --missing {} --impute median of seraph-cvx fit"
        note_far_values(rows.X, rows.rows, names, cure)
    if rows.ignored:
        alert(f"Note: columns not used in the fit, ignored: {first_names(rows.ignored)}.")
    for column, values in rows.unseen.items():
        unseen = f"values not seen in the fit, ignored: {first_names(values)}"
        alert(f"Note: the column {column!r} has {unseen}.")
    return rows
