"""Evidence that the libraries' race accuses nobody wrongly, and no false claim passes."""

from __future__ import annotations

import csv

import pytest
from evidence.library_race import (
    SIZES,
    TOLERANCES,
    FileInstance,
    judge,
    judged_rows,
    page,
    proven_instances,
)

from seraph_cvx import compare_solvers
from seraph_cvx.race.compare import read_race

MPS = """NAME T
ROWS
 N cost
 G sum
COLUMNS
    x cost 2.0 sum 1.0
    y cost 3.0 sum 1.0
RHS
    RHS sum 4.0
ENDATA
"""
KNOWN = {"lower": 8.0, "upper": 8.0}
ROW = dict.fromkeys(SIZES, 10.0) | {"solver": "SCS", "tol": None, "said": "optimal", "value": 8.0}
ROW |= KNOWN | {"violation": 0.0, "maximize": False}
ALLOWED = 1e-5 * (9.0 + 21.0 * 10.0)  # of a value of 8 that is too low


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, "solved"),
        ({"value": 8.0 - 0.99 * ALLOWED}, "explained"),
        ({"value": 8.0 - 1.01 * ALLOWED}, "false"),
        ({"value": 8.0 - 1e-5, "tol": 1e-8}, "false"),
        ({"value": 8.0 + 31e-5 * 10.0 + 9e-5 + 1e-4}, "false"),
        ({"violation": 0.1}, "explained"),
        ({"said": "optimal_inaccurate", "value": 1.0}, "no claim"),
        ({"said": "", "value": None}, "no claim"),
        ({"said": "infeasible", "value": None}, "false"),
        ({"said": "infeasible", "value": None, "x_sum": 0.99e6}, "explained"),
        ({"said": "infeasible", "value": None, "x_sum": 0.9e6}, "false"),
        ({"said": "unbounded", "value": None}, "false"),
        ({"lower": None, "upper": None, "violation": 1e-4}, "explained"),
        ({"lower": None, "upper": None, "violation": 1e-3}, "false"),
        ({"lower": None, "upper": None, "said": "infeasible"}, "solved"),
    ],
)
def test_a_claim_is_false_where_its_own_tolerance_does_not_explain_it(changes, kind):
    row = ROW | changes
    answer = ROW | {"x_sum": row["x_sum"]}  # of some other solver
    assert judge(row, [answer, row] if row["said"] == "optimal" else [answer])["kind"] == kind


def test_files_are_raced_and_the_page_is_made_from_the_rows(tmp_path):
    (tmp_path / "netlib").mkdir()
    (tmp_path / "netlib" / "t.mps").write_text(MPS)
    rows = [
        {"library": "netlib", "file": name, "nonzeros": 2, "outcome": "exact", **KNOWN}
        for name in ("t.mps", "gone.mps")
    ]
    with (tmp_path / "proven.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(
            [*rows, rows[0] | {"lower": 7.0}, rows[0] | {"outcome": "one", "upper": ""}]
        )
    chosen = proven_instances(tmp_path / "proven.csv", tmp_path, 9)
    assert list(chosen) == ["netlib/t.mps"]
    out = tmp_path / "rows.jsonl"
    liar = {"netlib/wrong": FileInstance(tmp_path / "netlib" / "t.mps", 9.0, 9.0)}
    race = compare_solvers(chosen | liar, ["HIGHS", "CLARABEL"], out=out)
    kinds = {(row["instance"], row["kind"]) for row in judged_rows(race)}
    assert kinds == {("netlib/t.mps", "solved"), ("netlib/wrong", "false")}
    text = page(read_race(out))
    assert "**4 of 8 claims are false**: 1 by CLARABEL, 1 by CLARABEL at 1e-08, 1 by HIGHS" in text
    assert "| netlib/wrong | HIGHS | 8 | [9, 9] | 1 | " in text


def test_the_committed_page_has_what_its_rows_say(repository):
    folder = repository / "examples" / "reproduction"
    race = read_race(folder / "libraries-race.jsonl")
    assert page(race) == (folder / "libraries-race.md").read_text(encoding="utf-8")
    assert {row["solver"] for row in race.rows} <= set(TOLERANCES)
