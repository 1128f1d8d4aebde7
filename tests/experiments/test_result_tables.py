"""Evidence: means, tests and tables of results are counted right."""

from __future__ import annotations

import numpy as np
import pytest
from evidence.protocol.protocol_evidence import scaling_evidence
from evidence.protocol.tasks import TASKS, find_tasks
from evidence.results.summaries import are_comparable, mark_best, summarize
from evidence.results.tables import (
    table1,
    table2,
    table2_reasons,
    to_csv,
)
from reproduction_programs import run_row
from scipy.stats import ttest_ind, ttest_rel

# The tables


def test_closed_form_of_a_summary():
    rows = [run_row("iris", "euclidean", s, e, seconds=e) for s, e in enumerate([8.0, 9.0, 13.0])]
    (summary,) = summarize(rows)
    assert summary.mean == pytest.approx(10.0)
    assert summary.standard_error == pytest.approx(np.sqrt((4 + 1 + 9) / 2 / 3))
    apart = (10.0 - 9.58) / np.sqrt(14 / 6 + 0.73**2)
    assert summary.difference == pytest.approx(apart)
    assert summary.seconds == pytest.approx(10.0)
    assert (summary.printed, summary.printed_error) == (9.58, 0.73)


def test_boldface_agrees_with_the_unpaired_t_test_of_scipy():
    rng = np.random.default_rng(0)
    seen = set()
    for shift in np.linspace(0.0, 3.0, 13):
        best, other = rng.normal(10.0, 2.0, size=20), rng.normal(10.0 + shift, 3.0, size=15)
        if other.mean() < best.mean():
            best, other = other, best
        bold = "other" in mark_best({"best": best, "other": other})
        assert bold == (ttest_ind(best, other).pvalue >= 0.05)
        seen.add(bold)
    assert seen == {True, False}


def test_the_paired_t_test_agrees_with_scipys_and_sees_what_the_unpaired_one_does_not():
    rng = np.random.default_rng(1)
    seen = set()
    for shift in np.linspace(0.0, 3.0, 61):
        hard = rng.normal(10.0, 4.0, size=5)  # some samplings are hard for both
        a, b = hard + rng.normal(size=5), hard + shift + rng.normal(size=5)
        tied = are_comparable(a, b), are_comparable(a, b, paired=True)
        assert tied == (ttest_ind(a, b).pvalue >= 0.05, ttest_rel(a, b).pvalue >= 0.05)
        seen.add(tied)
    assert seen >= {(True, True), (True, False)}


def test_boldface_without_variance_or_with_one_sampling():
    flat = np.full(4, 5.0)
    assert mark_best({"a": flat, "b": flat.copy(), "c": flat + 1.0}) == {"a", "b"}
    assert mark_best({"a": np.array([5.0]), "b": np.array([5.1])}) == {"a"}
    assert mark_best({}) == set()


def test_table_2_shows_means_boldface_the_paper_and_what_is_missing():
    rows = [run_row("iris", "euclidean", s, 20.0 + s % 2) for s in range(10)]
    rows += [run_row("iris", "itml", s, 5.0 + s % 2) for s in range(10)]
    rows += [run_row("iris", "lmnn", s, 5.1 + s % 2) for s in range(9)]
    rows += [run_row("iris", "lmnn", 9, None, "failed", detail="planted trouble")]
    rows += [run_row("iris", "gdm", s, None, "cut off", detail="spent") for s in range(10)]
    rows += [run_row("mnist-1-7", "euclidean", s, 10.0) for s in range(2)]
    summaries = summarize(rows)
    upper = {row[""]: row for row in table2(summaries)[0].rows}
    assert upper["Euclidean"]["iris"].startswith("20.50 ± 0.17<br>9.58 ± 0.73 (+14.6)")
    assert upper["ITML"]["iris"].startswith("**5.50 ± 0.17**<br>5.57 ± 0.53 (-0.1)")
    assert upper["LMNN"]["iris"].startswith("**5.54 ± 0.18** (9 of 10)<br>9.81 ± 0.79")
    assert upper["GDM"]["iris"] == "cut off<br>8.95 ± 0.71"
    assert upper["GDM"]["MNIST 1,7"] == ""
    assert upper["Euclidean"]["MNIST 1,7"] == "**10.00 ± 0.00**<br>10.42 ± 0.67 (-0.6)"
    reasons = {row["method"]: row for row in table2_reasons(summaries).rows}
    assert reasons["LMNN"]["first reason"] == "planted trouble"
    assert (reasons["GDM"]["done"], reasons["GDM"]["cut off"]) == (0, 10)


def test_table_2_shows_a_single_sampling_and_a_method_of_ones_own_without_a_comparison():
    rows = [run_row("iris", "euclidean", 0, 9.0), run_row("iris", "mine", 0, 8.0)]
    shown = {row[""]: row["iris"] for row in table2(summarize(rows))[0].rows}
    assert shown["Euclidean"] == "9.00<br>9.58 ± 0.73"
    assert shown["mine"] == "**8.00**"


def test_table_2_has_a_block_for_every_six_tasks():
    rows = [run_row(task, "euclidean", s, 9.0 + s) for task in TASKS for s in (0, 1)]
    blocks = table2(summarize(rows))
    titles = [task.title for task in TASKS.values()]
    assert [block.columns[1:] for block in blocks] == [titles[:6], titles[6:]]


def test_table_1_prints_ours_beside_the_papers(invented_images):
    rows = {row["task"]: row for row in table1(find_tasks(["iris", "usps-1-10-40"]), 200).rows}
    assert rows["USPS 1-10,40"]["E#S"] == rows["USPS 1-10,40"]["E#S printed"] == "60.00"
    assert rows["USPS 1-10,40"]["#U"] == "79020"
    assert rows["iris"]["E#S printed"] == "15.10"
    assert abs(float(rows["iris"]["E#S"]) - 14.4) < 0.6
    assert to_csv(list(rows.values())).splitlines()[2].startswith('"USPS 1-10,40",10,64,400,2500')


def test_scaling_evidence_names_the_scaling_nearest_to_the_paper():
    (row,) = scaling_evidence(find_tasks(["wine"]), 5, ["unit", "none"]).rows
    assert row["nearest"] == "unit"  # unscaled wine errs by a third, the paper prints 12.93
    assert row["printed"] == "12.93 ± 0.83"
    assert "+" in row["none"]
