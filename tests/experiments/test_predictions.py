"""Evidence: the program that checks claims does what the commands do, and counts as it says."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from predictions import OWN, SCALES, compare_scales, run_once, summarize, table_of

pytestmark = pytest.mark.once


def test_tables_have_enough_rows_and_two_have_categories():
    tables = [table_of(name, None) for name in OWN]
    assert min(map(len, tables)) > 500
    assert sum(any(kind.kind not in "if" for kind in frame.dtypes[:-1]) for frame in tables) == 2


def test_a_table_of_ones_own_has_its_label_in_the_last_column(tmp_path):
    pd.DataFrame({"a": [1.5, 2.5], "b": ["x", "y"], "risk": [1, 2]}).to_csv(tmp_path / "t.csv")
    frame = table_of(tmp_path / "t.csv", None)
    assert frame["label"].tolist() == ["class1", "class2"]
    assert frame["b"].tolist() == ["x", "y"]
    assert "risk" not in frame


@pytest.mark.slow
def test_a_run_is_judged_on_rows_that_the_fit_never_saw():
    run = run_once(table_of("shop", None)[:400], n_rows=60, n_labels=30, draw=0)
    errors = {run[name] for name in ("predicted", "plain-nearest", "plain-logistic", "nearest")}
    assert 0.1 < min(errors) < max(errors) < 0.9
    assert run["gain"] == run["plain-nearest"] - run["predicted"]
    assert run["covered"] == (abs(run["claimed"] - run["gain"]) <= run["margin"])


def test_each_value_counting_as_a_column_drowns_a_number_in_thirty_values_of_noise():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    noise = [f"v{k}" for k in rng.integers(0, 30, 400)]
    frame = pd.DataFrame({"x": 3.0 * y + rng.normal(size=400), "c": noise, "label": y.astype(str)})
    errors = compare_scales(frame, n_rows=120, n_labels=60, draw=0)
    assert errors.index.tolist() == [*SCALES] == ["column", "value", "none"]
    assert errors.loc["value", "plain-nearest"] > errors.loc["column", "plain-nearest"] + 0.1
    same = compare_scales(frame.assign(c="v"), n_rows=120, n_labels=60, draw=0)
    assert (same == same.loc["column"]).all(axis=None)  # one value: nothing to scale


def test_the_summary_is_of_means_over_draws():
    runs = pd.DataFrame(
        {
            "plain-nearest": [0.4, 0.3],
            "plain-logistic": [0.3, 0.3],
            "nearest": [0.2, 0.4],
            "predicted": [0.2, 0.2],
            "gain": [0.2, 0.1],
            "claimed": [0.1, 0.1],
            "margin": [0.15, 0.05],
            "covered": [True, False],
            "seconds": [1.0, 2.0],
        }
    )
    error = 100 * np.std([-0.1, 0.0], ddof=1) / np.sqrt(2)
    numbers = f"35.0 | 30.0 | 30.0 | 20.0 | 15.0 | 10.0 | -5.0 ± {error:.1f} | 10.0 | 50% | 1.5"
    assert summarize("t", runs) == f"| t | {numbers} |"
