"""Evidence that the pictures of a race show its rows, legibly."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from matplotlib.colors import to_hex
from pictures import assert_legible

from seraph_cvx.plots.race.race import (
    FLOOR,
    plot_performance_profile,
    plot_said_against_true,
    plot_work_precision,
    times_to_target,
)
from seraph_cvx.plots.style import PALETTE

DRAW = {
    "work-precision": plot_work_precision,
    "profile": plot_performance_profile,
    "said": plot_said_against_true,
}


def race_rows(instances=7, solvers=6, tols=(1e-3, 1e-5, 1e-7), seed=0):
    """Rows of an invented race; the last solver answers nothing on the first instance."""
    rng = np.random.default_rng(seed)
    rows = []
    for i, s, tol in product(range(instances), range(solvers), tols):
        gone = s == solvers - 1 and i == 0
        rows.append(
            {
                "instance": f"breast_cancer-n{20 + i}-standard-hyper-w0.01-s0",
                "solver": ["fista", "projected-gradient", "CLARABEL", "SCS"][s % 4]
                + "x" * (s // 4),
                "formulation": ["", "", "primal", "dual"][s % 4],
                "tol": tol,
                "claims": bool(rng.random() < 0.8),
                "true_gap": None if gone else tol * 10.0 ** rng.normal(-2, 2),
                "proved_gap": None if gone else tol * 10.0 ** rng.normal(0, 2),
                "total_seconds": None if gone else 10.0 ** rng.normal(s / 3 - 1, 0.5),
            }
        )
    return rows


CASES = {
    "six solvers": race_rows(),
    "one instance": race_rows(instances=1, solvers=3),
    "one run": race_rows(instances=2, solvers=1, tols=(1e-6,))[1:],
    "ten solvers": race_rows(instances=4, solvers=10, tols=(1e-2, 1e-4, 1e-6, 1e-8, 1e-10)),
}


@pytest.mark.parametrize("picture", DRAW)
@pytest.mark.parametrize("case", CASES)
def test_no_text_overlaps_another_or_is_clipped(picture, case):
    figure = DRAW[picture](CASES[case])
    assert_legible(figure, at_least=6)


@pytest.mark.parametrize("picture", DRAW)
def test_solvers_differ_by_marker_as_well_as_by_colour(picture):
    legend = DRAW[picture](CASES["ten solvers"]).legends[0]
    looks = [(line.get_color(), line.get_marker()) for line in legend.get_lines()][:10]
    assert len(set(looks)) == 10
    assert len({marker for _, marker in looks[:8]}) == 8
    assert {to_hex(colour).upper() for colour, _ in looks} <= set(PALETTE)


@pytest.mark.parametrize("picture", DRAW)
def test_pictures_are_written_and_small(tmp_path, picture):
    png, svg = tmp_path / "picture.png", tmp_path / "picture.svg"
    DRAW[picture](race_rows(instances=16), png).savefig(svg)
    assert png.read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in svg.read_bytes()[:500]
    assert max(png.stat().st_size, svg.stat().st_size) < 300_000


def test_work_precision_shows_the_rows_of_its_instance():
    rows = CASES["six solvers"]
    name = rows[-1]["instance"]
    (ax,) = plot_work_precision(rows, instances=[name]).axes
    shown = {
        tuple(p) for line in ax.lines if line.get_marker() != "None" for p in line.get_xydata()
    }
    own = [row for row in rows if row["instance"] == name]
    assert shown == {(row["total_seconds"], max(row["true_gap"], FLOOR)) for row in own}


def test_filled_markers_are_claims():
    (left, right) = plot_said_against_true(CASES["six solvers"]).axes
    answers = [row for row in CASES["six solvers"] if row["true_gap"] is not None]
    for ax, which in ((left, "true_gap"), (right, "proved_gap")):
        filled, hollow = 0, 0
        for line in ax.lines[1:]:
            if to_hex(line.get_markerfacecolor()) == "#ffffff":
                hollow += len(line.get_xdata())
            else:
                filled += len(line.get_xdata())
        assert filled == sum(row["claims"] for row in answers)
        assert hollow == len(answers) - filled
        false = sum(row["claims"] and row[which] > row["tol"] for row in answers)
        assert f"of {filled} claims, {false} " in ax.get_title()


def test_profile_counts_what_was_solved_and_how_fast():
    def row(solver, instance, seconds, gap):
        common = {"formulation": "", "tol": 1e-6, "claims": True, "proved_gap": gap}
        measured = {"true_gap": gap, "total_seconds": seconds}
        return {"solver": solver, "instance": instance, **common, **measured}

    rows = [
        row("a", "one", 1.0, 1e-9),
        row("a", "two", 6.0, 1e-9),
        row("b", "one", 2.0, 1e-9),
        row("b", "two", 2.0, 1e-9),
        row("b", "two", 1.0, 1e-3),  # not solved, so its second does not count
        row("a", "three", 1.0, 1e-3),
    ]
    names = ["one", "two", "three"]
    np.testing.assert_array_equal(times_to_target(rows, "a", names, 1e-6), [1.0, 6.0, np.inf])
    np.testing.assert_array_equal(times_to_target(rows, "b", names, 1e-6), [2.0, 2.0, np.inf])
    figure = plot_performance_profile(rows)
    a, b = (line for line in figure.axes[0].lines if line.get_drawstyle() == "steps-post")
    np.testing.assert_allclose(a.get_xdata()[:-1], [1.0, 1.0, 3.0])
    np.testing.assert_allclose(a.get_ydata(), np.array([1, 1, 2, 2]) / 3)
    np.testing.assert_allclose(b.get_xdata()[:-1], [1.0, 1.0, 2.0])
    np.testing.assert_allclose(b.get_ydata(), np.array([1, 1, 2, 2]) / 3)
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["a (2/3)", "b (2/3)"]
