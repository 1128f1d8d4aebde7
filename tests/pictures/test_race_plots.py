"""Evidence that the picture of a race shows its rows."""

from __future__ import annotations

import pytest

from seraph_cvx.plots import ClaimsDisplay
from seraph_cvx.race.compare import read_race
from seraph_cvx.race.race_table import summarize


@pytest.mark.once
def test_a_committed_race_is_drawn_with_the_counts_of_its_table(repository):
    race = read_race(repository / "examples/solver-comparison/small/race.jsonl")
    table = summarize(race.rows).rows
    axes = ClaimsDisplay.from_result(race).draw().axes
    for ax, column in zip(axes, ("true", "proved"), strict=True):
        said = {label.get_text() for label in ax.get_yticklabels()}
        assert said == {
            f"{row['solver']}: {row['claims'] - row[column]} of {row['claims']}" for row in table
        }


def test_an_answer_at_exactly_its_tolerance_is_no_false_claim():
    row = {"solver": "SCS", "formulation": "", "instance": "i", "total_seconds": 1.0}
    row |= {"claims": True, "tol": 1e-5, "true_gap": 1e-5, "proved_gap": 1e-5 * (1 + 1e-12)}
    axes = ClaimsDisplay.from_result([row]).draw().axes
    said = [[label.get_text() for label in ax.get_yticklabels()] for ax in axes]
    assert said == [["SCS: 0 of 1"], ["SCS: 1 of 1"]]
    with pytest.raises(ValueError, match="has no rows"):
        ClaimsDisplay.from_result([])
