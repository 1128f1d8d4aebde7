"""Evidence that the pictures of a race show its rows, legibly."""

from __future__ import annotations

import io
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex, to_rgb
from pictures import assert_legible
from PIL import Image

from seraph_cvx.plots import WorkPrecisionDisplay
from seraph_cvx.plots.race.race import (
    FAMILIES,
    FLOOR,
    draw_race,
    plot_performance_profile,
    plot_said_against_true,
    plot_work_precision,
    times_to_target,
)
from seraph_cvx.plots.style import new_figure, picture_bytes
from seraph_cvx.race.race import read_race
from seraph_cvx.race.race_table import summarize

DRAW = {
    "work-precision": plot_work_precision,
    "profile": plot_performance_profile,
    "said": plot_said_against_true,
}
FAMILY_MEMBERS = {
    "ours": ("newton", "fista", "projected-gradient"),
    "conic, primal": ("CLARABEL/primal", "SCS/primal", "CVXOPT/primal"),
    "conic, dual": ("CLARABEL/dual", "SCS/dual", "MOREAU/dual", "QICS/dual"),
    "nonlinear": ("UNO/factor", "IPOPT/factor"),
    "on a factor": ("pymanopt/factor", "L-BFGS-B/factor", "trust-constr/factor"),
    "others": ("my_own", "another"),
}
SOLVERS = [solver for members in FAMILY_MEMBERS.values() for solver in members]


def race_rows(instances=7, solvers=6, tols=(1e-3, 1e-5, 1e-7)):
    """Rows of an invented race; the last solver answers nothing on the first instance."""
    rng = np.random.default_rng(0)
    rows = []
    for i, s, tol in product(range(instances), range(solvers), tols):
        solver, _, formulation = SOLVERS[s].partition("/")
        row = {"instance": f"breast_cancer-n{20 + i}-standard-hyper-w0.01-s0", "tol": tol}
        row |= {"solver": solver, "formulation": formulation, "claims": bool(rng.random() < 0.8)}
        gaps = tol * 10.0 ** rng.normal([-2, 0], 2)
        answer = dict(zip(("true_gap", "proved_gap"), gaps.tolist(), strict=True))
        answer |= {"outcome": "done", "total_seconds": 10.0 ** rng.normal(s / 6 - 1, 0.5)}
        if s == solvers - 1 and i == 0:
            answer = dict.fromkeys(answer) | {"outcome": "error", "claims": False}
        rows.append(row | answer)
    return rows


CASES = {
    "six solvers": race_rows(instances=5),
    "one instance": race_rows(instances=1, solvers=3),
    "one run": race_rows(instances=2, solvers=1, tols=(1e-6,))[1:],
    "all solvers": race_rows(instances=2, solvers=len(SOLVERS)),
    "a whole race": race_rows(instances=16, solvers=len(SOLVERS), tols=(1e-3, 1e-5, 1e-7, 1e-8)),
}
LARGE = pytest.param("all solvers", marks=pytest.mark.slow)
"""Its pictures take a second each: slow evidence."""


@pytest.mark.parametrize("picture", DRAW)
@pytest.mark.parametrize("case", [*list(CASES)[:3], LARGE])
def test_no_text_overlaps_another_or_is_clipped(picture, case):
    limit = {} if picture == "said" else {"time_limit": 5.0}
    assert_legible(DRAW[picture](CASES[case], **limit), at_least=6)


def texts_of(legend):
    return [text.get_text() for text in legend.get_texts()]


@pytest.mark.parametrize("picture", DRAW)
def test_families_differ_by_color_and_solvers_of_one_by_marker(picture):
    figure = DRAW[picture](CASES["all solvers"])
    legend = figure.axes[0].get_legend() if picture == "said" else figure.legends[0]
    looks = {
        text.split(":")[0].split(" (")[0]: (line.get_color(), line.get_marker())
        for text, line in zip(texts_of(legend), legend.get_lines(), strict=False)
    }
    assert len({looks[solver] for solver in SOLVERS}) == len(SOLVERS)
    for family, members in FAMILY_MEMBERS.items():
        assert {looks[member][0] for member in members} == {FAMILIES[family]}


@pytest.mark.slow
@pytest.mark.parametrize("picture", DRAW)
def test_the_pictures_of_a_whole_race_are_legible_and_small_and_keep_their_colors(picture):
    limit = {} if picture == "said" else {"time_limit": 5.0}
    figure = DRAW[picture](CASES["a whole race"], **limit)
    png = picture_bytes(figure, "png")
    assert_legible(figure)
    assert len(png) < 120_000
    shown = Image.open(io.BytesIO(png)).convert("RGB").getcolors()
    colors = np.array([color for _, color in shown], dtype=float) / 255
    for family in FAMILIES.values():
        assert np.min(np.max(np.abs(colors - to_rgb(family)), axis=1)) < 0.02, family


def test_a_picture_has_the_same_bytes_each_time_and_few_colors():
    first, second = (plot_performance_profile(CASES["one run"]) for _ in range(2))
    png = picture_bytes(first, "png")
    assert png == picture_bytes(second, "png")
    assert len(Image.open(io.BytesIO(png)).getcolors()) <= 64


def runs(*values):
    """Rows of solver, instance, seconds and true gap."""
    columns = "solver", "instance", "total_seconds", "true_gap"
    rest = {"formulation": "", "claims": True, "tol": 1e-5, "proved_gap": 1.0}
    return [rest | dict(zip(columns, run, strict=True)) for run in values]


def steps_of(ax):
    return [line.get_data() for line in ax.lines if line.get_drawstyle() == "steps-post"]


def test_work_precision_shows_every_answer_and_the_least_gap_within_each_time():
    slow = [("a", "i", t, gap) for t, gap in ((4, 1e-9), (2, 1e-20), (1, 1e-3), (3, 1e-6))]
    fast = [("b", "i", 0.5, 1e-4)]
    rows = runs(*slow, *fast, ("a", "another", 9.0, 1e-2))
    (ax,) = plot_work_precision(rows, instances=["i"], time_limit=5.0).axes
    shown = [line.get_xydata() for line in ax.lines if line.get_marker() not in ("None", "")]
    drawn = {tuple(place) for places in shown for place in places.tolist()}
    assert drawn == {(t, max(gap, FLOOR)) for _, _, t, gap in (*slow, *fast)}
    (x, y), (_, least) = steps_of(ax)
    assert list(x)[:-1] == [1, 2, 3, 4]
    assert list(y) == [1e-3, FLOOR, FLOOR, FLOOR, FLOOR]
    assert list(least) == [1e-4, 1e-4]
    assert [5.0, 5.0] in [list(line.get_xdata()) for line in ax.lines]
    title = plot_work_precision(CASES["one instance"]).axes[0].get_title()
    words = "breast cancer, 20 points, standardized, hyper, weight 0.01"
    assert title.replace("\n", " ") == words


def test_work_precision_is_drawn_on_given_axes_and_errors_name_the_culprit():
    rows, ax = CASES["one instance"], new_figure(6, 5).subplots()
    assert WorkPrecisionDisplay.from_result(rows).plot(ax).ax_ is ax
    for given, message in (((rows, ["iris"]), "of the instance 'iris'"), (([],), "has no rows")):
        with pytest.raises(ValueError, match=message):
            WorkPrecisionDisplay.from_result(*given)


def committed_race(repository):
    return read_race(repository / "examples/solver-comparison/race.jsonl")


def drawn_answers(ax):
    """The markers: solver, band of the tolerance, whether filled, and that and too high."""
    keys = [(line.get_color(), line.get_marker()) for line in ax.get_legend().get_lines()]
    names = dict(zip(keys, texts_of(ax.get_legend()), strict=True))
    (limit,) = [line.get_ydata()[0] for line in ax.lines if line.get_label() == "_threshold"]
    answers = []
    for line in ax.lines:
        name = names.get((line.get_color(), line.get_marker()), "").split(":")[0]
        claims = to_hex(line.get_markerfacecolor()) != "#ffffff"
        places = line.get_xydata() if name else []
        answers += [(name, round(x), claims, claims and y > limit) for x, y in places]
        assert all(abs(x - round(x)) < 0.45 for x, _ in places)
    return pd.DataFrame(answers, columns=["solver", "band", "claims", "bad"])


@pytest.mark.parametrize("which", ["invented", "committed"])
def test_the_counts_in_the_picture_equal_the_counts_in_the_table(which, repository):
    """The markers that are drawn on each side of the threshold, and the numbers written."""
    rows = CASES["a whole race"] if which == "invented" else committed_race(repository).rows
    tols = sorted({row["tol"] for row in rows}, reverse=True)
    words = {"true": "false", "proved": "not proved"}
    for ax, column in zip(plot_said_against_true(rows).axes, words, strict=True):
        answers = drawn_answers(ax)
        table = pd.DataFrame(summarize(rows).rows).set_index("solver")
        table["bad"] = table.claims - table[column]
        drawn = answers.groupby("solver").agg({"band": "size", "claims": "sum", "bad": "sum"})
        assert table.bad.sum()
        expected = table[["answers", "claims", "bad"]].sort_index()
        np.testing.assert_array_equal(drawn.sort_index(), expected[expected.answers > 0])
        assert sorted(texts_of(ax.get_legend())) == sorted(
            f"{solver}: {bad} of {claims}" for solver, _, claims, bad in expected.itertuples()
        )
        for band, tol in enumerate(tols):
            table = summarize([row for row in rows if row["tol"] == tol]).rows
            claims, good = (sum(row[name] for row in table) for name in ("claims", column))
            own = answers[answers.band == band]
            assert (own.claims.sum(), own.bad.sum()) == (claims, claims - good)
            label = ax.get_xticklabels()[band].get_text()
            assert label.endswith(f"\n{claims} claims\n{claims - good} {words[column]}")


def test_an_answer_at_exactly_its_tolerance_is_no_false_claim():
    (row,) = runs(("SCS", "i", 1.0, 1e-5))
    axes = plot_said_against_true([row | {"proved_gap": 1e-5 * (1 + 1e-12)}]).axes
    assert [texts_of(ax.get_legend()) for ax in axes] == [["SCS: 0 of 1"], ["SCS: 1 of 1"]]


def test_profile_counts_what_was_solved_and_how_fast():
    rows = runs(
        ("a", "one", 1.0, 1e-9),
        ("a", "two", 6.0, 1e-9),
        ("b", "one", 2.0, 1e-9),
        ("b", "two", 2.0, 1e-9),
        ("b", "two", 1.0, 1e-3),  # not solved, so its second does not count
        ("a", "three", 1.0, 1e-3),
    )
    for label, times in (("a", [1.0, 6.0, np.inf]), ("b", [2.0, 2.0, np.inf])):
        found = times_to_target(rows, label, ["one", "two", "three"], 1e-6)
        np.testing.assert_array_equal(found, times)
    figure = plot_performance_profile(rows, time_limit=10.0)
    seconds, ratios = figure.axes
    for ax, first, expected in (
        (seconds, 1, [([1.0, 6.0], [0, 1, 2, 2]), ([2.0, 2.0], [0, 2, 2, 2])]),
        (ratios, 0, [([1.0, 3.0], [1, 2, 2]), ([1.0, 2.0], [1, 2, 2])]),
    ):
        for (x, y), (times, solved) in zip(steps_of(ax), expected, strict=True):
            np.testing.assert_allclose(x[first:-1], times)
            np.testing.assert_allclose(y, np.array(solved) / 3)
    assert [10.0, 10.0] in [list(line.get_xdata()) for line in seconds.lines]
    assert texts_of(figure.legends[0]) == ["a (2/3)", "b (2/3)", "time limit, 10 s"]
    assert seconds.get_ylabel() == "fraction solved to gap <= 1e-6"
    assert figure.get_suptitle() == "Fraction of 3 instances solved to a true gap <= 1e-6"


def test_a_race_is_drawn_with_its_own_time_limit(repository):
    race = committed_race(repository)
    of_one = [row for row in race.rows if row["instance"] == race.rows[0]["instance"]]
    figures = draw_race(replace(race, rows=of_one))
    for name in ("work-precision", "performance-profile"):
        assert f"time limit, {race.time_limit:g} s" in texts_of(figures[name].legends[0])
