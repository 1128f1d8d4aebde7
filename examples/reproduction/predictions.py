"""How far `seraph-cvx fit` and `apply --predict` can be trusted, on rows that they never saw.

Example:  python examples/reproduction/predictions.py --data-dir DIR --out predictions.md
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

from seraph_cvx import load_model
from seraph_cvx.cli.messages import answers_in_words, say
from seraph_cvx.datasets import DATA_VARIABLE
from seraph_cvx.processes.whole_file import write_whole

CATEGORIES = {"australian": (3, 4, 5, 11), "contraceptive": (1, 2, 6)}
"""The columns of these sets whose numbers are names of categories, by their documentation."""

TABLES = ("australian", "contraceptive", "breast_cancer", "diabetes", "segment")
OWN = ("breast_cancer", "digits", "shop", "survey", "sensors")
"""Where there is no folder of data: what scikit-learn brings along, and generated tables."""

app = program()


def generated(name: str) -> pd.DataFrame:
    """A generated table: of categories, some of which say nothing, or of rotated measurements."""
    rng = np.random.default_rng(len(name) + ord(name[0]))
    y = rng.integers(0, 3, 2_000)
    if name == "sensors":
        centers = rng.normal(size=(3, 4)) @ rng.normal(size=(4, 12))
        return pd.DataFrame(centers[y] + 2.0 * rng.normal(size=(len(y), 12))).assign(label=y)
    columns = {f"x{j}": rng.normal(size=len(y)) + 0.8 * (y == j) for j in range(4)}
    for j, size in enumerate((3, 6, 12) if name == "shop" else (2, 4, 8, 16, 16)):
        chances = rng.dirichlet(np.ones(size), 3 if j < 2 else 1)
        columns[f"c{j}"] = [f"v{rng.choice(size, p=chances[k % len(chances)])}" for k in y]
    return pd.DataFrame(columns).assign(label=y)


def table_of(name: str | Path, data_dir: Path | None) -> pd.DataFrame:
    """A table with its categories as texts, and the column label."""
    if isinstance(name, Path):
        frame = pd.read_csv(name)
        frame = frame.rename(columns={frame.columns[-1]: "label"})
    elif name in ("shop", "survey", "sensors"):
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
    rows = frame.sample(frac=1.0, random_state=draw).reset_index(drop=True)
    truth, seen, other = rows["label"][n_rows:], rows[:n_rows].copy(), rows[n_rows:]
    seen.loc[n_labels:, "label"] = ""
    texts = [name for name in seen if name != "label" and seen[name].dtype.kind not in "if"]
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
        points = _points(model, other, texts)
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


def _points(model: Any, rows: pd.DataFrame, texts: list[str]) -> Any:
    """The rows as the steps before SERAPH make them."""
    names = model.feature_names_in_
    coded = pd.get_dummies(rows, columns=texts, prefix_sep="=", dtype=float)
    return model[:-1].transform(coded.reindex(columns=names, fill_value=0.0))


@app.command(epilog=str(__doc__).rpartition("\n\n")[2])
def measure(
    draws: int = typer.Option(8, min=1, help="Draws of each table."),
    labels: int = typer.Option(80, min=10, help="Labeled rows of a draw."),
    rows: int = typer.Option(400, help="Rows of the table that is fitted; the others are judged."),
    own: bool = typer.Option(False, "--own", help="The tables that need no folder of data."),
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
        paths = [] if tables is None else sorted(tables.glob("*.csv"))
        for name in paths or (OWN if own else TABLES):
            frame = table_of(name, data_dir)
            runs = pd.DataFrame([run_once(frame, rows, labels, draw) for draw in range(draws)])
            found.append(runs.assign(table=Path(name).stem))
            say(summarize(Path(name).stem, runs))
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


if __name__ == "__main__":
    app()
