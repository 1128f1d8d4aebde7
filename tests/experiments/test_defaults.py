"""Evidence: the benchmark of defaults draws, measures, tests and resumes as it says."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from command_line import words
from evidence import contest
from evidence.contest import (
    CONTESTANTS,
    MORE,
    Contestant,
    DataSet,
    area_of_pairs,
    bench_defaults,
    draw_points,
    find_sets,
    run_on_draw,
)
from evidence.pictures import plot_critical_difference
from evidence.ranking import (
    Results,
    defaults_page,
    duel,
    mean_ranks,
    means_table,
    nemenyi_value,
    paired_p_value,
    rank_methods,
    sets_table,
)
from evidence.tasks import vote
from reproduction_programs import run_defaults
from rivals import Euclidean
from scipy.stats import friedmanchisquare, ttest_rel, wilcoxon
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from seraph_cvx import SERAPH, pair_auc
from seraph_cvx.datasets import DATA_VARIABLE
from seraph_cvx.estimators.half_labeled import LabeledOnly

pytestmark = pytest.mark.once

METRICS = {"euclidean": Euclidean, "wide": lambda: Stretched(100.0)}


class Stretched:
    """A metric learner that learns nothing: the first feature counts `factor` times."""

    def __init__(self, factor):
        self.factor = factor

    def fit(self, X, y):
        return self

    def transform(self, X):
        return X * np.r_[self.factor, np.ones(X.shape[1] - 1)]


def boom():
    raise KeyError("planted trouble")


def blobs(sizes=(60, 60), seed=0):
    """Classes that the first of three features tells apart, less than the others hide it."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    return rng.normal(size=(len(y), 3)) + np.outer(y, [2.0, 0.0, 0.0]), y


def drawn(sizes, labels, number):
    return draw_points(DataSet.of("blobs", *blobs(sizes)), labels, number)


def measured(make, draw):
    return run_on_draw(("blobs", 2, 0, "method"), make, draw)


# Draws and measures


@pytest.mark.parametrize("labels", [2, 10])
def test_a_draw_shows_the_labels_it_says_and_standardizes(labels):
    sizes = (90, 40, 9)
    draw = drawn(sizes, labels, 3)
    shown = draw.y >= 0
    assert np.bincount(draw.y[shown]).tolist() == [labels, labels, min(labels, 4)]
    np.testing.assert_array_equal(draw.y[shown], draw.truth[shown])
    assert draw.X.shape == (100, 3)
    np.testing.assert_allclose([draw.X.mean(axis=0), draw.X.var(axis=0) - 1.0], 0.0, atol=1e-12)
    together = np.sort(np.vstack([draw.X, draw.X_rest]), axis=0)
    correlations = np.corrcoef(together.T, np.sort(blobs(sizes)[0], axis=0).T)
    np.testing.assert_allclose(np.diag(correlations, 3), 1.0)  # the same points, scaled
    assert tuple(np.bincount(np.r_[draw.truth, draw.truth_rest])) == sizes
    np.testing.assert_array_equal(drawn(sizes, labels, 3).X, draw.X)
    assert not np.array_equal(drawn(sizes, labels, 4).X, draw.X)


def test_many_labels_make_a_draw_of_twice_as_many_points_at_most_the_whole_set():
    assert [len(drawn((30,) * 8, labels, 0).y) for labels in (2, 10)] == [100, 160]
    few = drawn((20, 20), 3, 0)
    assert (len(few.y), len(few.X_rest)) == (40, 0)
    assert measured(Euclidean, few)["held_out_error"] is None


@pytest.mark.parametrize(
    ("X", "y", "said"),
    [
        (np.zeros((3, 2)), [0, 1], "are not n points"),
        ([[0.0], [np.nan], [1.0], [2.0]], [0, 0, 1, 1], "not finite"),
        (np.zeros((4, 1)), [0, 0, 0, 1], "the smallest of 1 points"),
        (np.zeros((4, 1)), [0, 0, 0, 0], "1 classes"),
    ],
)
def test_points_that_cannot_be_drawn_from_are_refused(X, y, said):
    with pytest.raises(ValueError, match=said):
        DataSet.of("bad", X, y)


def test_the_thirteen_sets_are_found_where_they_are(monkeypatch, tmp_path):
    X, y = blobs()
    np.savez(tmp_path / "more.npz", **{f"{n}__X": X for n in MORE}, **{f"{n}__y": y for n in MORE})
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    names = [data.name for data in find_sets()]
    assert names == [*MORE, "iris", "wine", "breast_cancer", "digits"]
    with pytest.raises(FileNotFoundError, match=r"nowhere.more.npz does not exist"):
        find_sets(["glass"], tmp_path / "nowhere")


def test_neighbors_and_pairs_are_judged_as_elsewhere():
    draw = drawn((80, 50, 40), 5, 1)
    judged = draw.X[draw.y < 0], draw.truth[draw.y < 0]
    model = make_pipeline(SERAPH(), LabeledOnly(KNeighborsClassifier(1))).fit(draw.X, draw.y)
    row = measured(SERAPH, draw)
    for measure, share in {
        "error": 1.0 - model.score(*judged),
        "held_out_error": 1.0 - model.score(draw.X_rest, draw.truth_rest),
        "pair_auc": pair_auc(model[0], *judged),
    }.items():
        assert row[measure] == pytest.approx(100.0 * share)


def test_three_neighbors_vote_and_the_nearest_breaks_a_tie():
    labeled, classes = np.array([[0.0], [1.0], [2.5], [2.6]]), np.array([2, 1, 0, 0])
    points = np.array([[-1.0], [1.7], [8.0]])
    assert vote(points, labeled, classes).tolist() == [2, 1, 0]
    assert vote(points, labeled, classes, 3).tolist() == [2, 0, 0]
    assert area_of_pairs(points, np.zeros(3)) is None


def test_every_known_method_makes_something_of_a_draw():
    draw = drawn((15, 15), 3, 3)
    for contestant in CONTESTANTS.values():
        row = measured(contestant.make, draw)
        assert row["detail"] == ""
        assert (row["pair_auc"] is not None) == contestant.is_metric
        assert row["error"] <= 50.0


# Runs: resumable, and a method's failure costs its row alone


def test_an_interrupted_benchmark_goes_on_and_repeats_nothing(tmp_path):
    asked = (METRICS, {"a": blobs(), "b": blobs(seed=1)}, (2, 3), 2)
    journal, seen = tmp_path / "runs.jsonl", []
    whole = bench_defaults(*asked).rows

    def stop_at_five(row, number, total):
        seen.append(number)
        if len(seen) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bench_defaults(*asked, out=journal, callback=stop_at_five)
    journal.write_text(journal.read_text() + '{"kind": "run", "set": "a", "lab')  # killed
    with pytest.raises(FileExistsError, match="resume"):
        bench_defaults(*asked, out=journal)
    again = bench_defaults(*asked, out=journal, resume=True, callback=stop_at_five)
    assert seen == list(range(1, 17))
    assert "damaged" in again.notes[0]
    pd.testing.assert_frame_equal(Results(again.rows).draws, Results(whole).draws)
    means = Results(whole).means.mean()
    assert means["wide"] < means["euclidean"]


def test_forgotten_methods_run_again_and_others_do_not(tmp_path):
    sets, journal, ran = {"a": blobs()}, tmp_path / "runs.jsonl", []
    bench_defaults(METRICS, sets, (2,), 2, out=journal)
    resumed = {"out": journal, "resume": True}
    changed = METRICS | {"wide": lambda: Stretched(0.0)}
    told = {"callback": lambda row, *_: ran.append(row["method"]), "forget": ["wide"]}
    table = bench_defaults(changed, sets, (2,), 2, **resumed, **told)
    assert ran == ["wide", "wide"]
    means = Results(table.rows).means
    assert means["wide"].mean() > means["euclidean"].mean()
    assert len(bench_defaults([], sets, (2,), 2, **resumed).rows) == len(table.rows) == 4
    with pytest.raises(ValueError, match="points of a are not those"):
        bench_defaults(METRICS, {"a": blobs(seed=9)}, (2,), 1, **resumed)


def test_a_method_that_raises_costs_its_rows_and_says_why():
    methods = METRICS | {"boom": boom, "wild": lambda: Stretched(np.inf)}
    rows = bench_defaults(methods, {"a": blobs()}, (2, 3), 2).rows
    failed = [row for row in rows if row["outcome"] == "failed"]
    assert {row["method"] for row in failed} == {"boom", "wild"}
    assert all(row["error"] is None for row in failed)
    page = defaults_page(rows)
    assert "| boom | 4 | a, 2 labels, draw 0 | KeyError: 'planted trouble' |" in page
    assert "| wild | 4 | a, 2 labels, draw 0 | ValueError: transform of" in page
    assert rank_methods(Results(rows)).names == ("wide", "euclidean")


# The program


@pytest.fixture
def tables(tmp_path):
    """A folder of two tables, the class in the last column, and one row without it."""
    folder = tmp_path / "tables"
    folder.mkdir()
    for name, seed in (("north", 1), ("south", 2)):
        X, y = blobs(seed=seed)
        lines = [f"{a},{b},{c},{'uv'[k]}" for (a, b, c), k in zip(X.tolist(), y, strict=True)]
        (folder / f"{name}.csv").write_text("\n".join(["a,b,c,kind", *lines, "0,0,0,"]) + "\n")
    return folder


def test_the_program_makes_page_table_and_picture_of_a_folder(tables, tmp_path):
    out = tmp_path / "r"
    asked = ("--tables", tables, "--methods", "euclidean,mfda,lda", "--labels", "2,3", "--draws", 3)
    done = run_defaults(*asked, "--out", out)
    assert done.exit_code == 0, done.output
    journal = (out / "runs.jsonl").read_text()
    page = (out / "defaults.md").read_text()
    for said in ("36 runs of 3 methods on 2 sets, 3 draws", "**Mean error in %, other sets (2)**"):
        assert said in page
    assert page in done.stdout
    assert (out / "defaults.png").read_bytes().startswith(b"\x89PNG")
    again = run_defaults(*asked, "--out", out, "--resume", "--label", "kind")
    assert again.exit_code == 0, again.output
    assert (out / "runs.jsonl").read_text() == journal
    runs = pd.read_json(io.StringIO(journal), lines=True).query("kind == 'run'")
    means = pd.read_csv(out / "defaults.csv", index_col=["set", "labels", "measure"])
    errors = runs.query("set == 'south' and labels == 3 and method == 'mfda'")["error"]
    assert means.loc[("south", 3, "error"), "mfda"] == pytest.approx(errors.mean(), abs=0.006)
    assert means.loc[("south", 3, "error_se"), "mfda"] == pytest.approx(errors.sem(), abs=0.006)
    assert np.isnan(means.loc[("south", 3, "pair_auc"), "lda"])


def interrupt():
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("make", "code", "said"),
    [(boom, 1, "Of 8 runs 4 failed"), (interrupt, 130, "--resume goes on")],
)
def test_the_program_tells_of_failures_and_how_to_go_on(
    make, code, said, tables, tmp_path, monkeypatch
):
    monkeypatch.setitem(contest.CONTESTANTS, "gdm", Contestant("GDM", make))
    asked = ("--tables", tables, "--methods", "euclidean,gdm", "--labels", "2", "--draws", 2)
    result = run_defaults(*asked, "--out", tmp_path / "r")
    assert result.exit_code == code
    assert said in words(result.output)
    assert '"method":"euclidean"' in (tmp_path / "r" / "runs.jsonl").read_text()
    if make is boom:
        assert result.stderr.count("planted trouble") == 1
        assert "What failed" in (tmp_path / "r" / "defaults.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--methods", "svm"), "no method 'svm'"),
        (("--sets", "tulips"), "no data set 'tulips'"),
        (("--sets", "glass", "--data-dir", "nowhere"), "more.npz does not exist"),
        (("--sets", "iris", "--labels", "two"), "write integers, such as 2,5"),
        (("--sets", "iris", "--labels", "0"), "at least one label"),
        (("--tables", "nowhere"), "There is no folder nowhere"),
        (("--tables", "."), "has no file that ends in .csv"),
        (("--sets", "iris", "--markdown", "page.md"), "--markdown"),
        (("--draws", "0"), "'--draws'"),
    ],
)
def test_bad_input_is_answered_in_words(arguments, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run_defaults(*arguments)
    assert result.exit_code == 2
    assert said in words(result.output)
    assert "Traceback" not in result.output


# Tests between methods: against SciPy, and against what Demsar (2006) prints

DEMSAR_Q = {
    0.05: (1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164),
    0.10: (1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920),
}
"""Table 5(a) for 2 to 10 methods."""

DEMSAR_RANKS = """
4 3 2 1; 1 2 3 4; 4 1 2 3; 4 1 3 2; 4 2 3 1; 1 2.5 4 2.5; 3 2 4 1; 2.5 2.5 4 1; 4 3 2 1
2.5 2.5 2.5 2.5; 4 2.5 1 2.5; 3 2 4 1; 4 1 2 3; 3 1 4 2
"""
"""Table 6: the ranks of C4.5, C4.5+m, C4.5+cf and C4.5+m+cf on fourteen data sets."""


@pytest.mark.parametrize(("level", "difference"), [(0.05, 1.25), (0.10, 1.12)])
def test_critical_values_and_ranks_are_those_that_demsar_prints(level, difference):
    ranges = np.sqrt(2.0) * np.array([nemenyi_value(k, level) for k in range(2, 11)])
    # he divides a table of three decimals
    assert np.round(np.round(ranges, 3) / np.sqrt(2.0), 3).tolist() == list(DEMSAR_Q[level])
    ranks = np.array(DEMSAR_RANKS.replace(";", " ").split(), dtype=float).reshape(14, 4)
    found = mean_ranks(["C4.5", "m", "cf", "m+cf"], ranks, level)
    assert found.names == ("m+cf", "m", "cf", "C4.5")
    np.testing.assert_allclose(found.ranks, [1.964, 2.000, 2.893, 3.143], atol=5e-4)
    # he prints 9.28, without the correction for ties: three pairs and one four of equal ranks
    ties = (3 * (2**3 - 2) + (4**3 - 4)) / (14 * (4**3 - 4))
    assert found.chi_square * (1.0 - ties) == pytest.approx(9.28, abs=5e-3)
    assert found.critical_difference == pytest.approx(difference, abs=6e-3)
    # Section 3.2.2: at 5 % nothing differs; at 10 % C4.5 differs from m and from m+cf
    everything = [("m+cf", "m", "cf", "C4.5")]
    assert found.groups == (everything if level == 0.05 else [("m+cf", "m", "cf"), ("cf", "C4.5")])


@pytest.mark.parametrize(("n", "k"), [(8, 3), (17, 5), (1, 4)])
@pytest.mark.parametrize("decimals", [0, 1, 12], ids=["many ties", "few ties", "none"])
def test_friedmans_test_is_that_of_scipy_also_with_ties(n, k, decimals):
    errors = np.round(np.random.default_rng(k).random((n, k)) + 0.3 * np.arange(k), decimals)
    found = mean_ranks([str(j) for j in range(k)], errors)
    expected = friedmanchisquare(*errors.T)
    assert found.chi_square == pytest.approx(expected.statistic, rel=1e-12)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-9)
    tied = mean_ranks(found.names, np.ones((n, k)))
    assert (tied.chi_square, tied.p_value, tied.groups) == (0.0, 1.0, [tied.names])


def invented_rows(n=12, seed=0):
    rng = np.random.default_rng(seed)
    cells = [("a", 2), ("a", 5), ("b", 2), ("b", 5), ("c", 2)]
    base = rng.normal(30.0, 5.0, size=(5, n))
    return [
        {
            **{"set": place, "labels": labels, "draw": draw, "method": name, "outcome": "done"},
            "error": base[k, draw] + shift * (k + 1) / 3 + rng.normal(),
        }
        for name, shift in (("euclidean", 0.0), ("seraph", -2.0), ("itml", 0.1))
        for k, (place, labels) in enumerate(cells)
        for draw in range(n)
    ]


def test_paired_tests_are_scipys():
    rows = invented_rows()
    results, means = Results(rows), []
    for _, cell in results.cells:
        differences = cell["seraph"] - cell["euclidean"]
        expected = ttest_rel(cell["seraph"], cell["euclidean"]).pvalue
        assert paired_p_value(differences) == pytest.approx(expected)
        means.append(differences.mean())
    found, back = duel(results, "seraph", "euclidean"), duel(results, "euclidean", "seraph")
    assert found["Wilcoxon p"] == pytest.approx(wilcoxon(means).pvalue)
    assert found["difference"] == pytest.approx(np.mean(means))
    wins, ties, losses = (found[word] for word in ("wins", "ties", "losses"))
    assert wins + ties + losses == 5
    assert wins >= 3
    assert (back["wins"], back["ties"], back["losses"]) == (losses, ties, wins)
    assert duel(results, "seraph", "absent") is None
    *sets, tally = sets_table(results).rows
    assert [row["set"] for row in sets] == ["a", "b", "c"]
    assert all(row["SERAPH"].startswith("**-") for row in sets)
    assert (tally["SERAPH"], tally["ITML"]) == ("3 / 0 / 0", "0 / 3 / 0")
    fewer = Results([row for row in rows if row["method"] != "itml" or row["draw"] >= 7])
    assert len(fewer.differences("seraph", "itml")) == 25  # the draws that both have
    draws = [row["draws"] for row in means_table(fewer, "", ["a", "b", "c"]).rows]
    assert sorted(draws) == ["12", "12", "5"]


@pytest.mark.parametrize("noise", [0.0, 1e-14])
def test_equal_differences_are_tested_by_their_signs(noise):
    differences = 100.0 * np.full(6, 2 / 94) + noise * np.arange(6)
    assert paired_p_value(differences) == 2.0**-5
    assert paired_p_value(noise * differences) == 1.0
    assert paired_p_value(differences[:1]) == paired_p_value(differences[:0]) == 1.0


def test_the_picture_shows_ranks_and_joins_equals():
    errors = np.arange(14.0) + np.random.default_rng(0).normal(0.0, 4.0, size=(17, 14))
    ranks = mean_ranks([f"method {k}" for k in range(14)], errors)
    (ax,) = plot_critical_difference(ranks, {"method 0": "SERAPH"}).axes
    texts = [text.get_text().strip() for text in ax.texts]
    assert f"SERAPH  {ranks.ranks[ranks.names.index('method 0')]:.1f}" in texts
    bars = [bar.get_segments()[0][:, 0] for bar in ax.collections]
    assert len(bars) == len(ranks.groups) > 1
    assert all(right - left < ranks.critical_difference + 0.1 for left, right in bars)
