"""How far `seraph-cvx fit` and `apply --predict` can be trusted, on rows that they never saw.

Example:  python examples/reproduction/predictions.py --data-dir DIR --out predictions.md
          python examples/reproduction/predictions.py --data-dir DIR --scale-text --draws 20
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import typer
from evidence.contest import find_sets
from evidence.files import DATA_DIR, program

from seraph_cvx import SERAPH, load_model
from seraph_cvx.cli.learn import scale_points
from seraph_cvx.cli.messages import answers_in_words, say
from seraph_cvx.cli.tables import Reading, read_table
from seraph_cvx.datasets import DATA_VARIABLE
from seraph_cvx.processes.whole_file import write_whole

CATEGORIES = {
    "australian": (3, 4, 5, 11),
    "cleveland": (2, 6, 12),
    "contraceptive": (1, 2, 6),
    "hayes-roth": (0, 1, 2, 3),
}
"""The columns of these sets whose numbers are names of categories, by their documentation."""

TABLES = ("australian", "contraceptive", "breast_cancer", "diabetes", "segment")
OWN = ("breast_cancer", "digits", "shop", "survey", "sensors")
"""Where there is no folder of data: what scikit-learn brings along, and generated tables."""

GENERATED = {
    "shop": (3, 6, 12),
    "survey": (2, 4, 8, 16, 16),
    "clinic": (2, 2, 3),
    "orders": (5, 40),
    "sensors": (),
}
"""How many values each column of text of a generated table has; the first two tell something."""

SCALES = ("column", "value", "none")
"""The choices of `seraph-cvx fit --scale-text`, the default first."""

SCALED = {
    "plain-nearest": "nearest row",
    "nearest": "SERAPH",
    "plain-logistic": "logistic regression",
    "vote": "vote of `--predict`",
}
"""The classifiers that are compared under each of these choices."""

app = program()


def generated(name: str) -> pd.DataFrame:
    """A generated table: of categories, some of which say nothing, or of rotated measurements."""
    rng = np.random.default_rng(len(name) + ord(name[0]))
    y = rng.integers(0, 3, 2_000)
    if name == "sensors":
        centers = rng.normal(size=(3, 4)) @ rng.normal(size=(4, 12))
        return pd.DataFrame(centers[y] + 2.0 * rng.normal(size=(len(y), 12))).assign(label=y)
    columns = {f"x{j}": rng.normal(size=len(y)) + 0.8 * (y == j) for j in range(4)}
    for j, size in enumerate(GENERATED[name]):
        chances = rng.dirichlet(np.ones(size), 3 if j < 2 else 1)
        columns[f"c{j}"] = [f"v{rng.choice(size, p=chances[k % len(chances)])}" for k in y]
    return pd.DataFrame(columns).assign(label=y)


def table_of(name: str | Path, data_dir: Path | None) -> pd.DataFrame:
    """A table with its categories as texts, and the column label."""
    if isinstance(name, Path):
        frame = pd.read_csv(name)
        frame = frame.rename(columns={frame.columns[-1]: "label"})
    elif name in GENERATED:
        frame = generated(name)
    else:
        (data,) = find_sets([name], data_dir) if name != "diabetes" else (_diabetes(data_dir),)
        frame = pd.DataFrame(data.X).assign(label=data.y)
    frame.columns = [f"a{c}" if isinstance(c, int) else c for c in frame]
    for column in CATEGORIES.get(str(name), ()):
        frame[f"a{column}"] = "v" + frame[f"a{column}"].astype(int).astype(str)
    return frame.assign(label="class" + frame["label"].astype(str))


def _diabetes(data_dir: Path | None) -> Any:
    from seraph_cvx.datasets import load

    X, y = load("diabetes", data_dir)
    return find_sets({"diabetes": (X, y)})[0]


def run_once(frame: pd.DataFrame, n_rows: int, n_labels: int, draw: int) -> dict[str, float]:
    """Fit a table by the command, predict the other rows by it, and compare with the truth."""
    truth, seen, other, texts = split(frame, n_rows, n_labels, draw)
    with TemporaryDirectory() as folder:
        seen.to_csv(Path(folder) / "t.csv", index=False)
        other.drop(columns="label").to_csv(Path(folder) / "new.csv", index=False)
        options = [word for name in texts for word in ("--one-hot", name)]
        fit = ["fit", "t.csv", "--label", "label", "--out", "m.npz", *options]
        for arguments in (fit, ["apply", "m.npz", "new.csv", "--predict", "--out", "p.csv"]):
            command = [sys.executable, "-m", "seraph_cvx", *arguments]
            subprocess.run(command, cwd=folder, capture_output=True, check=True)
        predicted = pd.read_csv(Path(folder) / "p.csv", dtype=str)["predicted"]
        model = load_model(Path(folder) / "m.npz")
        points = _points(model.feature_names_in_, model[:-1], other, texts)
    errors = {"predicted": float(np.mean(predicted.to_numpy() != truth.to_numpy()))}
    seraph = model[-1]
    held_out, chosen = seraph.held_out_, seraph.classifier_
    for name in ("plain-nearest", "plain-logistic", "nearest"):
        seraph.classifier_ = name
        errors[name] = float(np.mean(seraph.predict(points) != truth.to_numpy()))
    true = errors["plain-nearest"] - errors["predicted"]
    return errors | {
        "gain": true,
        "claimed": held_out.gain,
        "margin": held_out.margin,
        "covered": abs(held_out.gain - true) <= held_out.margin,
        "vote": chosen == "vote",
        "abstained": seraph.abstained_,
        "seconds": held_out.seconds,
    }


def split(frame: pd.DataFrame, n_rows: int, n_labels: int, draw: int) -> tuple[Any, ...]:
    """The classes of the rows to judge, the rows to fit and to judge, the columns of text."""
    rows = frame.sample(frac=1.0, random_state=draw).reset_index(drop=True)
    seen, other = rows[:n_rows].copy(), rows[n_rows:]
    seen.loc[n_labels:, "label"] = ""
    texts = [name for name in seen if name != "label" and seen[name].dtype.kind not in "if"]
    return rows["label"][n_rows:], seen, other, texts


def compare_scales(frame: pd.DataFrame, n_rows: int, n_labels: int, draw: int) -> pd.DataFrame:
    """The errors on the other rows: a row for each choice of --scale-text, on the same draw."""
    truth, seen, other, texts = split(frame, n_rows, n_labels, draw)
    errors = pd.DataFrame(index=SCALES, columns=[*SCALED], dtype=float)
    for scale in SCALES:
        reading = Reading(one_hot=texts, scale_text=scale)
        with TemporaryDirectory() as folder:
            seen.to_csv(Path(folder) / "t.csv", index=False)
            table = read_table(Path(folder) / "t.csv", "label", reading)
        steps, Z = scale_points(table, reading)
        seraph = SERAPH().fit(Z, table.labels)
        points = _points(table.feature_names, steps[-1][1], other, texts)
        for seraph.classifier_ in SCALED:
            wrong = seraph.predict(points) != truth.to_numpy()
            errors.loc[scale, seraph.classifier_] = np.mean(wrong)
    return errors


def _points(names: Any, scaling: Any, rows: pd.DataFrame, texts: list[str]) -> Any:
    """The rows as the steps before SERAPH make them."""
    coded = pd.get_dummies(rows, columns=texts, prefix_sep="=", dtype=float)
    return scaling.transform(coded.reindex(columns=names, fill_value=0.0))


@app.command(epilog=str(__doc__).rpartition("\n\n")[2])
def measure(
    draws: int = typer.Option(8, min=1, help="Draws of each table."),
    labels: int = typer.Option(80, min=10, help="Labeled rows of a draw."),
    rows: int = typer.Option(400, help="Rows of the table that is fitted; the others are judged."),
    own: bool = typer.Option(False, "--own", help="The tables that need no folder of data."),
    scale_text: bool = typer.Option(
        False, "--scale-text", help="Compare the choices of fit --scale-text instead."
    ),
    tables: Path | None = typer.Option(
        None, metavar="DIR", help="A folder of CSV tables instead; the last column is the label."
    ),
    data_dir: Path | None = DATA_DIR,
    out: Path | None = typer.Option(None, metavar="FILE", help="A page to write."),
) -> None:
    """Compare what `fit` claims with what is true of rows that it never saw, on five tables."""
    with answers_in_words():
        own = own or (data_dir is None and DATA_VARIABLE not in os.environ)
        found = []
        if scale_text:
            for name in [*(() if own else CATEGORIES), *list(GENERATED)[:-1]]:
                frame = table_of(name, data_dir)
                n_rows = min(rows, len(frame) // 2)
                for draw in range(draws):
                    errors = compare_scales(frame, n_rows, min(labels, n_rows // 2), draw)
                    found.append(errors.assign(table=name, draw=draw))
            page = _scale_page(pd.concat(found))
        else:
            paths = [] if tables is None else sorted(tables.glob("*.csv"))
            for name in paths or (OWN if own else TABLES):
                frame = table_of(name, data_dir)
                runs = [run_once(frame, rows, labels, draw) for draw in range(draws)]
                found.append(pd.DataFrame(runs).assign(table=Path(name).stem))
                say(summarize(Path(name).stem, found[-1]))
            page = _page(found, labels, rows, draws)
        if out is not None:
            write_whole(out, page.encode())
        say(page)


def summarize(name: str, runs: pd.DataFrame) -> str:
    mean = runs.drop(columns="table", errors="ignore").astype(float).mean()
    claim = runs["claimed"] - runs["gain"]
    error = float(claim.std(ddof=1) / np.sqrt(len(claim))) if len(claim) > 1 else np.nan
    cells = [mean[key] for key in ("plain-nearest", "plain-logistic", "nearest", "predicted")]
    cells += [mean["gain"], mean["claimed"]]
    numbers = " | ".join(f"{100 * cell:.1f}" for cell in cells)
    return (
        f"| {name} | {numbers} | {100 * claim.mean():+.1f} ± {100 * error:.1f} | "
        f"{100 * mean['margin']:.1f} | {mean['covered']:.0%} | {mean['seconds']:.1f} |"
    )


def _page(found: list[pd.DataFrame], labels: int, rows: int, draws: int) -> str:
    whole = pd.concat(found)
    means = whole.groupby("table")[["predicted", "plain-nearest", "plain-logistic"]].mean()
    excess = means["predicted"] - means[["plain-nearest", "plain-logistic"]].min(axis=1)
    return "\n".join(
        [
            "# Predictions, and what is claimed of them",
            "",
            f"`seraph-cvx fit` on {rows} rows, {labels} of them labeled, then `apply --predict` on "
            f"all other rows of the table; {draws} draws of each, means in %.",
            "",
            "| table | nearest row | logistic regression | nearest by SERAPH | `--predict` | its "
            "gain | claimed | claimed less true | margin | covered | seconds |",
            "| --- " * 11 + "|",
            *[summarize(str(one["table"].iloc[0]), one) for one in found],
            summarize("all", whole),
            "",
            f"The most that `--predict` errs above the better of the nearest row and logistic "
            f"regression, on the mean of a table: {100 * excess.max():+.1f} points.",
            "",
        ]
    )


def _scale_page(found: pd.DataFrame) -> str:
    """The errors on each table, and how much more than the default the other choices err."""
    runs = found.rename_axis("scale").set_index(["table", "draw"], append=True)
    lines = ["| table | `--scale-text` | " + " | ".join(SCALED.values()) + " |"]
    lines.append("| --- " * (2 + len(SCALED)) + "|")
    for (table, scale), one in runs.groupby(["table", "scale"], sort=False):
        lines.append(f"| {table} | {scale} | {_cells(one)} |")
    means = runs.groupby(["scale", "table"], sort=False).mean()
    for scale in SCALES[1:]:
        more = means.loc[scale] - means.loc[SCALES[0]]
        lines.append(f"| all | {scale} less {SCALES[0]} | {_cells(more, '+')} |")
    return "\n".join(lines)


def _cells(errors: pd.DataFrame, sign: str = "") -> str:
    """The means of columns and their standard errors, in %."""
    pairs = zip(100 * errors.mean(), 100 * errors.sem(), strict=True)
    return " | ".join(f"{mean:{sign}.1f} ± {error:.1f}" for mean, error in pairs)


if __name__ == "__main__":
    app()
