"""Evidence that the pictures of a race show its rows."""

from __future__ import annotations

import numpy as np
import pytest

from seraph_cvx.plots import ClaimsDisplay, ProfileDisplay, WorkPrecisionDisplay, draw_race
from seraph_cvx.race.m_step_race import read_race
from seraph_cvx.race.race_table import summarize


def runs(*values):
    """Rows of solver, instance, seconds and true gap."""
    columns = "solver", "instance", "total_seconds", "true_gap", "formulation", "solve_seconds"
    rest = {"formulation": "", "claims": True, "tol": 1e-5, "proved_gap": 1.0}
    rows = [rest | dict(zip(columns, run, strict=False)) for run in values]
    return [{"solve_seconds": row["total_seconds"]} | row for row in rows]


def lines_of(ax):
    return {line.get_label(): line for line in ax.lines}


@pytest.mark.once
def test_a_committed_race_is_drawn_with_the_counts_of_its_table(repository):
    race = read_race(repository / "examples/solver-comparison/small/race.jsonl")
    figures = draw_race(race)
    assert len(figures["work-precision-all"].axes) == len({row["instance"] for row in race.rows})
    drawn = lines_of(figures["work-precision"].axes[0])
    assert f"time limit, {race.time_limit:g} s" in drawn
    table = summarize(race.rows).rows
    for ax, column in zip(figures["said-against-true"].axes, ("true", "proved"), strict=True):
        said = {label.get_text() for label in ax.get_yticklabels()}
        assert said == {
            f"{row['solver']}: {row['claims'] - row[column]} of {row['claims']}" for row in table
        }


def test_profile_counts_what_was_solved_and_how_fast():
    """By solve time a and b change places; a false claim is no solution."""
    rows = runs(
        ("a", "one", 1.0, 1e-9, "primal", 0.8),
        ("a", "one", 5.0, 1e-9, "dual", 0.5),
        ("a", "two", 6.0, 1e-9, "", 1.0),
        ("b", "one", 2.0, 1e-9, "", 0.25),
        ("b", "two", 2.0, 1e-3, "", 1.0),
    )
    display = ProfileDisplay.from_result(rows).plot()
    expected = {"solve": {"a": [2, 1], "b": [1, np.inf]}, "total": {"a": [1, 1], "b": [2, np.inf]}}
    for ax, (kind, ratios) in zip(display.axes_, expected.items(), strict=True):
        for solver, values in ratios.items():
            assert display.ratios[kind][solver].tolist() == values
            share = np.isfinite(values).mean()
            assert lines_of(ax)[solver].get_ydata()[-1] == share


def test_an_answer_at_exactly_its_tolerance_is_no_false_claim():
    (row,) = runs(("SCS", "i", 1.0, 1e-5))
    axes = ClaimsDisplay.from_result([row | {"proved_gap": 1e-5 * (1 + 1e-12)}]).plot().axes_
    said = [[label.get_text() for label in ax.get_yticklabels()] for ax in axes]
    assert said == [["SCS: 0 of 1"], ["SCS: 1 of 1"]]


def test_errors_name_the_culprit():
    rows = runs(("SCS", "i", 1.0, 1e-5))
    with pytest.raises(ValueError, match="of the instance 'iris'"):
        WorkPrecisionDisplay.from_result(rows, ["iris"])
    with pytest.raises(ValueError, match="has no rows"):
        ClaimsDisplay.from_result([])
