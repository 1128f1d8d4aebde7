"""Evidence: from a messy table to predictions with IDs in four commands, by their own advice."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import assert_answered_in_words, run, words

from seraph_cvx import load_model
from seraph_cvx.datasets import load

KINDS = ["Grün", "红", "Żółty"]
HEADER = ["", "id", "Alkohol", "Magnesium", "Preis", "Farbe", "Gerät", "Sorte"]


def german(number):
    """12700.5 as 12700,5."""
    return str(number).replace(".", ",")


def messy_rows():
    """Wines with row numbers, IDs, decimal commas, 9999s, text, twins, a constant."""
    X, y = load("wine")
    rng = np.random.default_rng(0)
    rows = []
    for k in range(len(y)):
        magnesium = 9999 if k in (7, 31, 66, 120) else int(X[k, 4])
        price = round(10.0 * X[k, 12] + rng.integers(9) / 2.0, 1)
        color = "rot" if X[k, 9] > 5.0 else "hell"
        label = KINDS[y[k]] if k % 4 == 0 else ""
        cells = [german(X[k, 0]), magnesium, german(price), color, "3,0", label]
        rows.append([k, f"W-{k:04d}", *cells])
    rows[5][2] = ""
    return [*rows, *([len(rows) + k, *row[1:]] for k, row in enumerate(rows[:3]))]


@pytest.fixture
def messy(folder):
    """messy.csv, and new.csv with the same columns but for the label."""
    rows = messy_rows()
    for name, width in (("messy.csv", 8), ("new.csv", 7)):
        with Path(name).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, delimiter=";").writerows([r[:width] for r in [HEADER, *rows]])
    return rows


def test_a_messy_table_gives_predictions_with_ids_in_four_commands(messy):
    first = run("fit messy.csv --label Sorte --out wein.npz")
    advised = [
        "fit --drop id leaves the column out",
        'or use fit --decimal ","',
        "--impute median",
        "--one-hot Farbe makes a feature",
        'fit --drop "" leaves all columns without a name out',
    ]
    assert_answered_in_words(first, advised)
    options = "--drop '' --drop id --one-hot Farbe --decimal , --impute median"
    fit = f"fit messy.csv --label Sorte --out wein.npz {options}"
    second = run(fit)
    assert second.exit_code == 0, second.output
    for note in (
        "the column 'Gerät' is constant",
        "For missing values, use --missing 9999 --impute median",
        "3 of 181 rows repeat the features of an earlier one (row 180 those of row 2)",
    ):
        assert note in words(second.stderr)
    third = run(f"{fit} --missing 9999 --drop Gerät --force --picture wein.png")
    assert third.exit_code == 0
    assert "far outside" not in third.stderr
    assert "constant" not in third.stderr
    told = "Next: seraph-cvx apply wein.npz NEW.csv --predict --decimal ,"
    assert told in words(third.stdout)
    command = told.partition("seraph-cvx ")[2].replace("NEW.csv", "new.csv")
    fourth = run(f"{command} --keep id --out sorten.csv")
    assert fourth.exit_code == 0, fourth.output
    rows = pd.read_csv("sorten.csv", dtype={"id": str})
    assert rows["id"].tolist() == [row[1] for row in messy]
    truth = np.array(KINDS)[load("wine")[1]]
    assert np.mean(rows["predicted"][: len(truth)] == truth) > 0.8
    model = load_model("wein.npz")
    assert model.feature_names_in_.tolist() == ["Alkohol", "Magnesium", "Preis", "Farbe=rot"]
    assert model[0].statistics_[1] < 120.0  # no 9999 has a part in the median
