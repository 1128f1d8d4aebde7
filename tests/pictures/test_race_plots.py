"""Evidence that the pictures of a race show its rows, legibly."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb
from pictures import assert_legible
from PIL import Image

from seraph_cvx.plots.race.race import (
    FAMILIES,
    FLOOR,
    draw_race,
    plot_performance_profile,
    plot_said_against_true,
    plot_work_precision,
    times_to_target,
)
from seraph_cvx.plots.style import picture_bytes
from seraph_cvx.race.race import read_race
from seraph_cvx.race.race_table import label_of, summarize

DRAW = {
    "work-precision": plot_work_precision,
    "profile": plot_performance_profile,
    "said": plot_said_against_true,
}
SOLVERS = [
    ("fista", ""),
    ("projected-gradient", ""),
    *product(("CLARABEL", "SCS", "MOREAU"), ("primal", "dual")),
    ("CVXOPT", "primal"),
    ("QICS", "dual"),
    *((name, "factor") for name in ("UNO", "IPOPT", "pymanopt", "L-BFGS-B", "trust-constr")),
    ("my_own", ""),
]


def race_rows(instances=7, solvers=6, tols=(1e-3, 1e-5, 1e-7), seed=0):
    """Rows of an invented race; the last solver answers nothing on the first instance."""
    rng = np.random.default_rng(seed)
    rows = []
    for i, s, tol in product(range(instances), range(solvers), tols):
        gone = s == solvers - 1 and i == 0
        rows.append(
            {
                "instance": f"breast_cancer-n{20 + i}-standard-hyper-w0.01-s0",
                "solver": SOLVERS[s][0],
                "formulation": SOLVERS[s][1],
                "tol": tol,
                "outcome": "error" if gone else "done",
                "claims": bool(not gone and rng.random() < 0.8),
                "true_gap": None if gone else tol * 10.0 ** rng.normal(-2, 2),
                "proved_gap": None if gone else tol * 10.0 ** rng.normal(0, 2),
                "total_seconds": None if gone else 10.0 ** rng.normal(s / 6 - 1, 0.5),
            }
        )
    return rows


CASES = {
    "six solvers": race_rows(instances=5),
    "all solvers": race_rows(instances=2, solvers=16),
    "one instance": race_rows(instances=1, solvers=3),
    "one run": race_rows(instances=2, solvers=1, tols=(1e-6,))[1:],
    "a whole race": race_rows(instances=16, solvers=16, tols=(1e-3, 1e-5, 1e-7, 1e-8)),
}


LARGE = ("a whole race", "all solvers")
"""Races whose pictures take a second each: slow evidence."""


@pytest.mark.parametrize("picture", DRAW)
@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=pytest.mark.slow) if case in LARGE else case for case in CASES],
)
def test_no_text_overlaps_another_or_is_clipped(picture, case):
    limit = {} if picture == "said" else {"time_limit": 5.0}
    figure = DRAW[picture](CASES[case], **limit)
    assert_legible(figure, at_least=6)


FAMILY_MEMBERS = {
    "ours": ("fista", "projected-gradient"),
    "conic, primal": ("CLARABEL/primal", "CVXOPT/primal"),
    "conic, dual": ("SCS/dual", "QICS/dual"),
    "nonlinear": ("UNO/factor", "IPOPT/factor"),
    "on a factor": ("pymanopt/factor", "L-BFGS-B/factor"),
    "others": ("my_own",),
}


@pytest.mark.parametrize("picture", DRAW)
def test_families_differ_by_color_and_solvers_of_one_by_marker(picture):
    figure = DRAW[picture](CASES["all solvers"])
    legend = figure.axes[0].get_legend() if picture == "said" else figure.legends[0]
    lines = legend.get_lines()[: len(SOLVERS)]
    assert len({(line.get_color(), line.get_marker()) for line in lines}) == len(SOLVERS)
    names = [text.get_text().split(":")[0].split(" (")[0] for text in legend.get_texts()]
    color_of = {name: line.get_color() for name, line in zip(names, lines, strict=False)}
    for family, members in FAMILY_MEMBERS.items():
        assert {color_of[member] for member in members} == {FAMILIES[family]}


@pytest.mark.slow
@pytest.mark.parametrize("picture", DRAW)
def test_the_pictures_of_a_whole_race_are_small_and_keep_their_colors(picture):
    png = picture_bytes(DRAW[picture](CASES["a whole race"]), "png")
    assert len(png) < 120_000
    shown = Image.open(io.BytesIO(png)).convert("RGB").getcolors()
    colors = np.array([color for _, color in shown], dtype=float) / 255
    for family in FAMILIES.values():
        assert np.min(np.max(np.abs(colors - to_rgb(family)), axis=1)) < 0.02, family


def test_a_picture_has_the_same_bytes_each_time_and_few_colors():
    first, figure = (plot_performance_profile(CASES["one run"]) for _ in range(2))
    png = picture_bytes(figure, "png")
    assert png == picture_bytes(first, "png")
    assert len(Image.open(io.BytesIO(png)).getcolors()) <= 64
    assert b"<svg" in picture_bytes(figure, "svg")[:500]


# Work and precision


def markers_of(ax):
    return [line for line in ax.lines if line.get_marker() != "None"]


def test_work_precision_shows_the_rows_of_its_instance_and_the_time_limit():
    rows = CASES["six solvers"]
    name = rows[-1]["instance"]
    (ax,) = plot_work_precision(rows, instances=[name], time_limit=5.0).axes
    shown = {tuple(p) for line in markers_of(ax) for p in line.get_xydata()}
    own = [row for row in rows if row["instance"] == name]
    assert shown == {(row["total_seconds"], max(row["true_gap"], FLOOR)) for row in own}
    assert ax.get_title().replace("\n", " ") == (
        "breast cancer, 24 points, standardized, hyper, weight 0.01"
    )
    assert [5.0, 5.0] in [list(line.get_xdata()) for line in ax.lines]
    assert ax.get_xlim()[1] > 5.0


def test_no_line_doubles_back_and_each_is_the_least_gap_within_its_time():
    rows = [row for row in CASES["all solvers"] if row["true_gap"] is not None]
    names = list(dict.fromkeys(row["instance"] for row in rows))
    n_steps = 0
    for ax, name in zip(plot_work_precision(CASES["all solvers"]).axes, names, strict=True):
        gaps = [
            (row["total_seconds"], max(row["true_gap"], FLOOR), label_of(row))
            for row in rows
            if row["instance"] == name
        ]
        steps = [line.get_data() for line in ax.lines if line.get_drawstyle() == "steps-post"]
        for x, y in [step for step in steps if len(step[0])]:
            n_steps += 1
            assert np.all(np.diff(x) > 0.0)
            assert np.all(np.diff(y) <= 0.0)
            (solver,) = {s for second, gap, s in gaps if (second, gap) == (x[0], y[0])}
            own = np.array([(second, gap) for second, gap, s in gaps if s == solver])
            for second, least in zip(x, y, strict=True):
                assert least == own[own[:, 0] <= second, 1].min()
    assert n_steps == 15 + 16


# What is claimed, and what is true


def committed_rows(repository):
    return read_race(repository / "examples/solver-comparison/race.jsonl").rows


def drawn_claims(ax):
    """The filled markers, as (solver, tolerance's band, whether above the drawn threshold)."""
    (threshold,) = {
        y for line in ax.lines if line.get_label() == "threshold" for y in line.get_ydata()
    }
    return [
        (line.get_label(), int(np.floor(x + 0.5)), y > threshold)
        for line in markers_of(ax)
        if to_hex(line.get_markerfacecolor()) != "#ffffff"
        for x, y in zip(*line.get_data(), strict=True)
    ]


@pytest.mark.parametrize("which", ["invented", "committed"])
def test_the_counts_in_the_picture_equal_the_counts_in_the_table(which, repository):
    """The markers that are drawn on each side of the threshold, and the numbers written."""
    rows = CASES["a whole race"] if which == "invented" else committed_rows(repository)
    tols = sorted({row["tol"] for row in rows}, reverse=True)
    figure = plot_said_against_true(rows)
    for ax, column, word in zip(
        figure.axes, ("true", "proved"), ("false", "not proved"), strict=True
    ):
        claims = drawn_claims(ax)
        above = Counter(solver for solver, _, is_above in claims if is_above)
        drawn = Counter(solver for solver, _, _ in claims)
        written = {text.get_text() for text in ax.get_legend().get_texts()}
        table = summarize(rows).rows
        assert any(row[column] < row["claims"] for row in table)
        for row in table:
            solver, bad = row["solver"], row["claims"] - row[column]
            assert drawn[solver] == row["claims"], solver
            assert above[solver] == bad, solver
            assert f"{solver}: {bad} of {row['claims']}" in written
        assert len(written) == len(table)
        for band, tol in enumerate(tols):
            table = summarize([row for row in rows if row["tol"] == tol]).rows
            n_claims = sum(row["claims"] for row in table)
            bad = n_claims - sum(row[column] for row in table)
            in_band = [is_above for _, at, is_above in claims if at == band]
            assert (len(in_band), sum(in_band)) == (n_claims, bad)
            label = ax.get_xticklabels()[band].get_text()
            assert label.endswith(f"\n{n_claims} claims\n{bad} {word}")


def test_every_answer_is_drawn_in_the_band_of_its_tolerance_and_hollow_if_not_claimed():
    rows = [row for row in CASES["six solvers"] if row["true_gap"] is not None]
    tols = [1e-3, 1e-5, 1e-7]
    for ax in plot_said_against_true(CASES["six solvers"]).axes:
        drawn = Counter()
        for line in markers_of(ax):
            is_filled = to_hex(line.get_markerfacecolor()) != "#ffffff"
            for x in line.get_xdata():
                assert abs(x - round(x)) < 0.45
                drawn[line.get_label(), tols[round(x)], is_filled] += 1
        assert drawn == Counter((label_of(row), row["tol"], row["claims"]) for row in rows)


def test_an_answer_at_exactly_its_tolerance_is_no_false_claim():
    row = {"instance": "a", "solver": "SCS", "formulation": "dual", "tol": 1e-5, "claims": True}
    rows = [row | {"true_gap": 1e-5, "proved_gap": 1e-5 * (1 + 1e-12), "total_seconds": 1.0}]
    true, proved = plot_said_against_true(rows).axes
    assert true.get_legend().get_texts()[0].get_text() == "SCS/dual: 0 of 1"
    assert proved.get_legend().get_texts()[0].get_text() == "SCS/dual: 1 of 1"


# The profile


def steps_of(ax):
    return [line.get_data() for line in ax.lines if line.get_drawstyle() == "steps-post"]


def test_profile_counts_what_was_solved_and_how_fast():
    columns = "solver", "instance", "total_seconds", "true_gap"
    runs = [
        ("a", "one", 1.0, 1e-9),
        ("a", "two", 6.0, 1e-9),
        ("b", "one", 2.0, 1e-9),
        ("b", "two", 2.0, 1e-9),
        ("b", "two", 1.0, 1e-3),  # not solved, so its second does not count
        ("a", "three", 1.0, 1e-3),
    ]
    rows = [dict(zip(columns, run, strict=True)) | {"formulation": ""} for run in runs]
    for label, times in (("a", [1.0, 6.0, np.inf]), ("b", [2.0, 2.0, np.inf])):
        found = times_to_target(rows, label, ["one", "two", "three"], 1e-6)
        np.testing.assert_array_equal(found, times)
    figure = plot_performance_profile(rows, time_limit=10.0)
    seconds, ratios = figure.axes
    for (x, y), expected in zip(steps_of(ratios), ([1.0, 3.0], [1.0, 2.0]), strict=True):
        np.testing.assert_allclose(x[:-1], expected)
        np.testing.assert_allclose(y, np.array([1, 2, 2]) / 3)
    for (x, y), expected in zip(steps_of(seconds), ([1.0, 6.0], [2.0, 2.0]), strict=True):
        np.testing.assert_allclose(x[1:-1], expected)
        np.testing.assert_allclose(y, np.array([0, 1, 2, 2]) / 3)
    assert [10.0, 10.0] in [list(line.get_xdata()) for line in seconds.lines]
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["a (2/3)", "b (2/3)", "time limit, 10 s"]
    assert seconds.get_ylabel() == "fraction solved to gap <= 1e-6"
    assert figure.get_suptitle() == "Fraction of 3 instances solved to a true gap <= 1e-6"


def test_a_race_is_drawn_with_its_own_time_limit(repository):
    race = read_race(repository / "examples/solver-comparison/race.jsonl")
    of_one = [row for row in race.rows if row["instance"] == race.rows[0]["instance"]]
    figures = draw_race(replace(race, rows=of_one))
    for name in ("work-precision", "performance-profile"):
        texts = [text.get_text() for text in figures[name].legends[0].get_texts()]
        assert f"time limit, {race.time_limit:g} s" in texts
