"""Evidence that the pictures of a race show its rows, legibly."""

from __future__ import annotations

import io
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex, to_rgb
from pictures import assert_legible, box_of
from PIL import Image

from seraph_cvx.plots import WorkPrecisionDisplay
from seraph_cvx.plots.race.race import (
    FAMILIES,
    FLOOR,
    SHADES,
    draw_race,
    line_looks,
    plot_performance_profile,
    plot_said_against_true,
    plot_work_precision,
    times_to_target,
    typical_instances,
)
from seraph_cvx.plots.style import new_figure, picture_bytes
from seraph_cvx.race.m_step_race import read_race
from seraph_cvx.race.race_table import Race, label_of, summarize
from seraph_cvx.race.statistics import solver_of

DRAW = {
    "work-precision": plot_work_precision,
    "profile": plot_performance_profile,
    "said": plot_said_against_true,
}
FAMILY_MEMBERS = {
    "ours": ("newton", "fista", "projected-gradient"),
    "conic, primal": ("CLARABEL/primal", "SCS/primal", "CVXOPT/primal"),
    "conic, dual": (
        *("CLARABEL/dual", "CLARABEL-tuned/dual", "SCS/dual", "SCS-tuned/dual"),
        *("MOREAU/dual", "MOREAU-tuned/dual", "QICS/dual"),
    ),
    "nonlinear": ("UNO/factor", "UNO-tuned/factor", "IPOPT/factor"),
    "on a factor": ("pymanopt/factor", "L-BFGS-B/factor", "trust-constr/factor"),
    "others": ("my_own", "another"),
}
SOLVERS = [solver for members in FAMILY_MEMBERS.values() for solver in members]


def race_rows(instances=7, solvers=6, tols=(1e-3, 1e-5, 1e-7), repeats=1):
    """Rows of an invented race; the last solver answers nothing on the first instance."""
    rng = np.random.default_rng(0)
    rows = []
    for i, s, tol, repeat in product(range(instances), range(solvers), tols, range(repeats)):
        solver, _, formulation = SOLVERS[s].partition("/")
        row = {"instance": f"breast_cancer-n{20 + i}-standard-hyper-w0.01-s0", "tol": tol}
        row |= {"solver": solver, "formulation": formulation, "repeat": repeat + 1}
        gaps = tol * 10.0 ** rng.normal([-2, 0], 2)
        answer = dict(zip(("true_gap", "proved_gap"), gaps.tolist(), strict=True))
        answer |= {"outcome": "done", "total_seconds": 10.0 ** rng.normal(s / 6 - 1, 0.5)}
        answer |= {"solve_seconds": answer["total_seconds"] * rng.random()}
        answer |= {"claims": bool(rng.random() < 0.8)}
        if s == solvers - 1 and i == 0:
            answer = dict.fromkeys(answer) | {"outcome": "error", "claims": False}
        rows.append(row | answer)
    return rows


CASES = {
    "six solvers": race_rows(instances=5),
    "one instance": race_rows(instances=1, solvers=3),
    "one run": race_rows(instances=2, solvers=1, tols=(1e-6,))[1:],
    "all solvers": race_rows(instances=2, solvers=len(SOLVERS)),
    "a whole race": race_rows(16, len(SOLVERS), (1e-3, 1e-5, 1e-7, 1e-8), repeats=3),
}
LARGE = pytest.param("all solvers", marks=pytest.mark.slow)
"""Its pictures take a second each: slow evidence."""


@pytest.mark.parametrize("picture", DRAW)
@pytest.mark.parametrize("case", [*list(CASES)[:3], LARGE])
def test_no_text_overlaps_another_or_is_clipped(picture, case):
    limit = {"time_limit": 5.0} if picture == "work-precision" else {}
    assert_legible(DRAW[picture](CASES[case], **limit), at_least=6)


def texts_of(legend):
    return [text.get_text() for text in legend.get_texts()]


def test_families_differ_by_color_and_their_members_by_marker_or_dash():
    rows = CASES["all solvers"]
    legend = plot_said_against_true(rows).axes[0].get_legend()
    looks = {
        text.split(":")[0]: (line.get_color(), line.get_marker())
        for text, line in zip(texts_of(legend), legend.get_lines(), strict=True)
    }
    assert len({looks[solver] for solver in SOLVERS}) == len(SOLVERS)
    lines = line_looks(rows)
    assert len({(look["color"], look["linestyle"]) for look in lines.values()}) == len(lines) == 15
    assert max(lines, key=lambda name: lines[name]["linewidth"]) == "newton"
    for family, members in FAMILY_MEMBERS.items():
        assert {looks[member][0] for member in members} == {FAMILIES[family]}
        names = {solver_of({"solver": member.partition("/")[0]}) for member in members}
        assert {lines[name]["color"] for name in names} <= set(SHADES[family.partition(",")[0]])
        assert len({lines[name]["linestyle"] for name in names}) >= min(len(names), 3)


def test_every_color_of_a_line_can_be_read_on_white():
    for color in {color for shades in SHADES.values() for color in shades}:
        parts = np.array(to_rgb(color))
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        assert 1.05 / (linear @ [0.2126, 0.7152, 0.0722] + 0.05) >= 3.0, color


@pytest.mark.slow
def test_the_pictures_of_a_whole_race_are_legible_and_small_and_keep_their_colors():
    """21 entrants, three repeats, 16 instances."""
    rows = CASES["a whole race"]
    figures = draw_race(Race("A race", rows, races=[{"time_limit": 5.0}]))
    assert len(figures.pop("work-precision-all").axes) == 16
    lines = [look["color"] for look in line_looks(rows).values()]
    for name, figure in figures.items():
        png = picture_bytes(figure, "png")
        assert_legible(figure)
        assert len(png) < 300_000
        shown = Image.open(io.BytesIO(png)).convert("RGB").getcolors()
        colors = np.array([color for _, color in shown], dtype=float) / 255
        for color in FAMILIES.values() if name.startswith("said") else lines:
            assert np.min(np.max(np.abs(colors - to_rgb(color)), axis=1)) < 0.03, (name, color)


@pytest.mark.slow
def test_the_picture_of_all_instances_is_legible_and_small(repository):
    figure = draw_race(committed_race(repository))["work-precision-all"]
    svg = picture_bytes(figure, "svg", svg_fonts="none")
    assert len(svg) < 300_000
    assert_legible(figure)


def labels_of(ax):
    return [text for text in ax.texts if text.arrow_patch is not None]


@pytest.mark.parametrize("picture", ["work-precision", "profile"])
@pytest.mark.parametrize("inches", [None, (16.0, 9.0)])
def test_each_solver_is_labeled_once_in_its_color_beside_the_end_of_its_line(picture, inches):
    """No label overlaps another, also in a picture whose size was changed."""
    rows = CASES["all solvers"]
    figure = DRAW[picture](rows)
    if inches:
        figure.set_size_inches(inches)
    figure.draw_without_rendering()
    looks = line_looks(rows)
    for ax in figure.axes:
        labels = {text.get_text().split()[0].rstrip(":"): text for text in labels_of(ax)}
        assert sorted(labels) == sorted(looks)
        assert len(labels_of(ax)) == len(looks)
        boxes = {name: box_of(text) for name, text in labels.items()}
        for one, other in combinations(boxes.values(), 2):
            assert not one.overlaps(other)
        assert min(box.x0 for box in boxes.values()) > ax.bbox.x1
        lines = [line for line in ax.lines if line.get_drawstyle() != "default"]
        assert len(lines) == len(looks)
        for name, text in labels.items():
            assert text.get_color() == looks[name]["color"]
            own = [line for line in lines if line.get_color() == text.get_color()]
            assert text.xy in [tuple(line.get_xydata()[-1]) for line in own]
        heights = [labels[name].xy[1] for name in sorted(boxes, key=lambda name: -boxes[name].y0)]
        assert heights == sorted(heights, reverse=True)


def test_a_picture_has_the_same_bytes_each_time_and_few_colors():
    first, second = (plot_performance_profile(CASES["one run"]) for _ in range(2))
    png = picture_bytes(first, "png")
    assert png == picture_bytes(second, "png")
    first, second = (plot_performance_profile(CASES["one run"]) for _ in range(2))
    assert picture_bytes(first, "svg") == picture_bytes(second, "svg")
    assert len(Image.open(io.BytesIO(png)).getcolors()) <= 64


def runs(*values):
    """Rows of solver, instance, seconds and true gap."""
    columns = "solver", "instance", "total_seconds", "true_gap", "formulation", "solve_seconds"
    rest = {"formulation": "", "claims": True, "tol": 1e-5, "proved_gap": 1.0}
    return [rest | dict(zip(columns, run, strict=False)) for run in values]


def steps_of(ax):
    return [line.get_data() for line in ax.lines if line.get_drawstyle() != "default"]


def test_work_precision_shows_the_time_to_each_gap():
    slow = [("a", "i", t, gap) for t, gap in ((4, 1e-8), (2, 1e-20), (1, 1e-3), (3, 1e-6))]
    fast = [("b", "i", 0.5, 1e-4, "primal"), ("b-tuned", "i", 0.7, 1e-5, "dual")]
    fast += [("b", "i", 0.6, 1e-4, "dual")]  # no better, and later
    rows = runs(*slow, *fast, ("a", "another", 9.0, 1e-2))
    rows = [row | {"tol": 10.0**-k} for k, row in enumerate(rows)]
    (ax,) = plot_work_precision(rows, instances=["i"], time_limit=5.0).axes
    drawn = {tuple(map(tuple, line)) for line in steps_of(ax)}
    assert drawn == {
        ((4.0, 1e-3, FLOOR), (1, 1, 2)),  # its gap of 1e-8 took longer than one below the floor
        ((4.0, 1e-4, 1e-5), (0.5, 0.5, 0.7)),
    }
    assert [5.0, 5.0] in [list(line.get_ydata()) for line in ax.lines]
    (ax,) = plot_work_precision(rows, instances=["another"]).axes
    assert sorted(text.get_text() for text in labels_of(ax)) == ["a", "b: none"]
    assert sorted(len(x) for x, _ in steps_of(ax)) == [1, 2]  # one point is no line
    title = plot_work_precision(CASES["one instance"]).axes[0].get_title()
    words = "breast cancer, 20 points, standardized, hyper, weight 0.01"
    assert title.replace("\n", " ") == words


def test_repeats_count_by_their_median_and_failures_as_never():
    times = {"one": (1.0, 3.0, 2.0), "two": (1.0, None, 2.0), "three": (1.0, None, None)}
    values = [
        ("a", name, t and 2 * t, t and 1e-9, "", t) for name, own in times.items() for t in own
    ]
    for kind, factor in (("solve", 1.0), ("total", 2.0)):
        found = times_to_target(runs(*values), "a", list(times), 1e-6, kind)
        np.testing.assert_array_equal(found, [factor * 2.0, factor * 2.0, np.inf])
    (ax,) = plot_work_precision(runs(*values), instances=["three"]).axes
    assert [text.get_text() for text in labels_of(ax)] == ["a: none"]


@pytest.mark.parametrize("n", [1, 3, 4, 5, 16, 40])
def test_the_panels_are_the_middle_instances_of_the_quarters(n):
    """Ordered by the median of four solvers; what is not solved is at the limit."""
    order = np.random.default_rng(n).permutation(n).tolist()
    values = []
    for rank in order:
        values += [("a", f"i{rank}", 1.0 + rank, 1e-7), ("b", f"i{rank}", 0.01, 1e-7)]
        values += [("c", f"i{rank}", 0.1, 1e-5 if rank else 1e-8)]  # all but one not solved
        values += [("d", f"i{rank}", None, None)]
    expected = [f"i{rank}" for rank in range(n)]
    if n > 4:
        picks = {5: (0, 1, 3, 4), 16: (2, 6, 10, 14), 40: (5, 15, 25, 35)}[n]
        expected = [f"i{rank}" for rank in picks]
    assert typical_instances(runs(*values), time_limit=60.0) == expected
    figure = plot_work_precision(runs(*values), time_limit=60.0)
    assert [ax.get_title() for ax in figure.axes] == expected
    rule = f"Of {n} instances, ordered by the median solver's time to 1e-6, those at the quantiles"
    assert figure.legends[0].get_title().get_text().startswith(rule) == (n > 4)


def test_work_precision_is_drawn_on_given_axes_and_errors_name_the_culprit():
    rows, ax = CASES["one instance"], new_figure(6, 5).subplots()
    assert WorkPrecisionDisplay.from_result(rows).plot(ax).ax_ is ax
    for given, message in (((rows, ["iris"]), "of the instance 'iris'"), (([],), "has no rows")):
        with pytest.raises(ValueError, match=message):
            WorkPrecisionDisplay.from_result(*given)


def committed_race(repository):
    return read_race(repository / "examples/solver-comparison/small/race.jsonl")


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
    """By solve time a and b change places; a tie is won by both."""
    rows = runs(
        ("a", "one", 1.0, 1e-9, "primal", 0.8),
        ("a", "one", 5.0, 1e-9, "dual", 0.5),
        ("a", "two", 6.0, 1e-9, "", 1.0),
        ("b", "one", 2.0, 1e-9, "", 0.25),
        ("b-tuned", "two", 2.0, 1e-9, "", 1.0),
        ("b", "two", 1.0, 1e-3, "", 0.1),  # not solved, so its second does not count
        ("a", "three", 1.0, 1e-3, "", 1.0),
        ("c", "three", None, None, "", None),
    )
    for label, kind, times in (
        ("a", "total", [1.0, 6.0, np.inf]),
        ("a", "solve", [0.5, 1.0, np.inf]),
        ("b", "total", [2.0, 2.0, np.inf]),
        ("b", "solve", [0.25, 1.0, np.inf]),
    ):
        found = times_to_target(rows, label, ["one", "two", "three"], 1e-6, kind)
        np.testing.assert_array_equal(found, times)
    figure = plot_performance_profile(rows)
    solve, total = figure.axes
    for ax, expected, labels in (
        (solve, [([1.0], [2, 2]), ([1.0, 2.0], [1, 2, 2]), ([1.0], [0, 0])], "bac"),
        (total, [([1.0, 2.0], [1, 2, 2]), ([1.0, 3.0], [1, 2, 2]), ([1.0], [0, 0])], "bac"),
    ):
        for (x, y), (times, solved) in zip(steps_of(ax), expected, strict=True):
            np.testing.assert_allclose(x[:-1], times)
            np.testing.assert_allclose(y, np.array(solved) / 3)
        texts = [text.get_text() for text in labels_of(ax)]
        assert texts == [f"{name} {2 * (name != 'c')}/3" for name in labels]
    assert solve.get_ylabel() == "fraction solved to gap <= 1e-6"
    words = "multiple of the fastest solver's {} time"
    assert [ax.get_xlabel() for ax in figure.axes] == [words.format(k) for k in ("solve", "total")]
    assert "Failures never count as solved" in figure.get_supxlabel()


@pytest.mark.parametrize("which", ["invented", "committed"])
def test_the_ends_of_the_profile_are_the_fractions_solved(which, repository):
    rows = CASES["a whole race"] if which == "invented" else committed_race(repository).rows
    table = pd.DataFrame([row | {"label": label_of(row), "solver": solver_of(row)} for row in rows])
    table = table[table.tol >= 1e-5].copy()
    table["solved"] = table.true_gap <= 1e-6  # that of no answer is NaN
    settings = table.groupby(["solver", "instance", "label", "tol"]).solved
    most = settings.mean() > 0.5  # of three repeats, or of one
    fractions = most.groupby(["solver", "instance"]).any().groupby("solver").mean()
    assert fractions.nunique() > 3
    for ax in plot_performance_profile([row for row in rows if row["tol"] >= 1e-5]).axes:
        ends = {text.get_text().split()[0]: text.xy[1] for text in labels_of(ax)}
        assert ends == pytest.approx(fractions.to_dict())


def test_a_race_is_drawn_with_its_own_time_limit(repository):
    race = committed_race(repository)
    of_one = [row for row in race.rows if row["instance"] == race.rows[0]["instance"]]
    figures = draw_race(Race(race.title, of_one, races=race.races))
    for name in ("work-precision", "work-precision-all"):
        assert f"time limit, {race.time_limit:g} s" in texts_of(figures[name].legends[0])
