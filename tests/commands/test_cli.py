"""Evidence that the `seraph-cvx` command says the truth, and answers bad input in words."""

import os
import re
import subprocess
import sys
import warnings
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from command_line import run, words

import seraph_cvx
from seraph_cvx import SERAPH, PairSet, Status, alternate, certify
from seraph_cvx.__main__ import main
from seraph_cvx.cli import learn
from seraph_cvx.cli.main import on_cluster
from seraph_cvx.cli.report import report_alternation
from seraph_cvx.cli.tables.workload import free_bytes
from seraph_cvx.comparison import race
from seraph_cvx.comparison.race_table import Race
from seraph_cvx.comparison.solvers import forget_solver
from seraph_cvx.datasets import load, load_sampling
from seraph_cvx.estimators.settings import RECOMMENDED
from seraph_cvx.experiments.runs import dask_cluster

HEADER = "length,width,species"
ROWS = ["1.0,10,a", "1.2,30,a", "3.0,12,b", "3.1,28,b", "1.1,20,", "2.9,22,"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def table(folder):
    path = folder / "small.csv"
    path.write_text("\n".join([HEADER, *ROWS]) + "\n")
    return path


@pytest.fixture
def flowers(folder):
    """Iris with 20 labels of 150, as a file and as arrays."""
    X, y = load("iris")
    known = np.isin(np.arange(150), np.random.default_rng(0).permutation(150)[:20])
    names = np.where(known, np.array(["setosa", "versicolor", "virginica"])[y], "")
    lines = [",".join([*map(str, x), name]) for x, name in zip(X.tolist(), names, strict=True)]
    path = folder / "flowers.csv"
    path.write_text("\n".join(["sl,sw,pl,pw,species", *lines]) + "\n")
    return path, X, np.where(known, y, -1)


def read_csv(path):
    header, *rows = path.read_text().splitlines()
    return header.split(","), np.array([row.split(",") for row in rows], dtype=float)


# The demo


def test_demo_states_data_pairs_iterations_certificate_and_error(folder):
    result = run("demo", "--seed", 1)
    assert result.exit_code == 0, result.output
    said = words(result.stdout)
    sampling = load_sampling("iris", seed=1)
    pairs = PairSet.from_labels(sampling.X, sampling.y)
    mu, trace_weight = RECOMMENDED.weights(pairs)
    reference = alternate(pairs, mu, trace_weight, sharpness=RECOMMENDED.sharpness)
    certificate = reference.m_step.certificate
    assert "100 points, 4 features, 3 classes, 10 labeled" in said
    assert f"{len(pairs.similar)} similar (S), {len(pairs.dissimilar)} dissimilar (D)" in said
    assert f"below {certificate.dual_value:.12g}" in said
    assert "no metric can have an M-step objective below" in said
    assert f"primal value {certificate.primal_value:.12g}" in said
    assert f"{reference.history[-1].descent_value:.8f}" in said
    assert len(re.findall(r"^ +\d+ +\d+\.\d{8} ", result.stdout, re.M)) == len(reference.history)
    learned = RECOMMENDED.metric_of(reference.metric, pairs)
    assert "Rank 4 of 4" in said
    known = sampling.labeled
    for name, A in (("learned metric", learned), ("Euclidean distance", np.eye(4))):
        v = sampling.X_test[:, None, :] - sampling.X[known][None, :, :]
        nearest = np.argmin(np.einsum("ijk,kl,ijl->ij", v, A, v), axis=1)
        error = np.mean(sampling.y[known][nearest] != sampling.y_test)
        assert f"{name} {error:.1%}" in said
    assert "seraph-cvx-demo.png" in said
    assert (folder / "seraph-cvx-demo.png").read_bytes().startswith(b"\x89PNG")
    assert result.stderr == ""


def test_demo_without_picture_writes_nothing(folder):
    assert run("demo", "--no-picture").exit_code == 0
    assert list(folder.iterdir()) == []


@pytest.fixture
def no_matplotlib(monkeypatch):
    for name in [*sys.modules]:
        if name.startswith(("seraph_cvx.plots", "matplotlib.")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)


def test_demo_without_matplotlib_goes_on_and_says_so(folder, no_matplotlib):
    result = run("demo")
    assert result.exit_code == 0
    assert "no metric can have" in words(result.stdout)
    assert 'matplotlib is not installed. Run pip install "seraph-cvx[plot]"' in words(result.stderr)
    assert list(folder.iterdir()) == []


def failed(pairs, **settings):
    """An alternation whose last M-step gave no metric."""
    return replace(alternate(pairs, **settings), metric=None, status=Status.FAILED)


def test_demo_without_a_metric_draws_nothing_and_says_so(folder, monkeypatch):
    monkeypatch.setattr(learn, "alternate", failed)
    result = run("demo")
    assert result.exit_code == 1
    assert "status is failed, not certified" in words(result.stderr)
    assert "Rank" not in result.stdout
    assert list(folder.iterdir()) == []


EMPTY_RACE = Race(
    "Nobody raced",
    [],
    races=[{"versions": {}, "date": "", "machine": "", "time_limit": 1.0, "memory_limit": 2**30}],
)


@pytest.mark.parametrize(
    ("command", "room"),
    [
        (["demo"], "seraph_cvx.plots"),
        (["reproduce", "figure2", "--out", "."], "seraph_cvx.plots.reproduction"),
        (["compare", "--out", "."], "seraph_cvx.plots.race.race"),
    ],
)
def test_another_missing_package_is_not_taken_for_matplotlib(command, room, folder, monkeypatch):
    monkeypatch.setattr(race, "compare_solvers", lambda *_, **__: EMPTY_RACE)
    monkeypatch.delattr(import_module("seraph_cvx.plots"), "reproduction", raising=False)
    monkeypatch.setitem(sys.modules, room, None)
    result = run(*command)
    assert result.exit_code == 2
    assert f"import of {room} halted" in words(result.stderr)
    assert "matplotlib" not in result.stderr


# The metric that fit writes is the estimator's


@pytest.mark.parametrize("standardize", [True, False])
def test_csv_and_npz_hold_the_metric_of_the_estimator(flowers, standardize):
    path, X, y = flowers
    switch = "--standardize" if standardize else "--no-standardize"
    assert run("fit", path, "--label", "species", switch).exit_code == 0
    assert run("fit", path, "--label", "species", switch, "--out", "m.npz").exit_code == 0
    mean, scale = X.mean(axis=0), X.std(axis=0)
    model = SERAPH().fit((X - mean) / scale if standardize else X, y)
    names, metric = read_csv(path.with_name("flowers.metric.csv"))
    assert names == ["sl", "sw", "pl", "pw"]
    np.testing.assert_allclose(metric, model.metric_, rtol=1e-12, atol=1e-14)
    with np.load(path.with_name("m.npz")) as archive:
        np.testing.assert_array_equal(archive["metric"], metric)
        np.testing.assert_allclose(archive["components"], model.components_, atol=1e-12)
        assert archive["feature_names"].tolist() == names
        assert ("scale" in archive, "mean" in archive) == (standardize, standardize)
        if standardize:
            np.testing.assert_allclose(archive["scale"], scale)
            np.testing.assert_allclose(archive["mean"], mean)


def test_fit_names_what_may_spoil_the_metric_with_its_cure(folder):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    X[:, 1] = np.exp(2.5 * X[:, 1])
    X = np.column_stack([X, 1.0 - X[:, 2]])
    kinds = np.where(np.arange(60) < 12, np.where(X[:, 0] > 0.0, "a", "b"), "")
    lines = [",".join([*map(str, x), kind]) for x, kind in zip(X.tolist(), kinds, strict=True)]
    path = folder / "spoilt.csv"
    path.write_text("\n".join(["plain,tail,one,other,kind", *lines]) + "\n")
    said = words(run("fit", path, "--label", "kind").stdout)
    assert "Note. Heavy tails: 'tail'." in said
    assert "Note. Nearly the same: 'one' and 'other'. Leave one of each two out." in said
    assert said.count("Note.") == 2


def test_options_reach_the_estimator(table):
    options = {
        "unlabeled_weight": 0.05,
        "trace_weight": 2.0,
        "threshold": 1.5,
        "sharpness": 3.0,
        "solver": "projected-gradient",
        "tol": 1e-3,
        "identity_share": 0.2,
        "reference": "identity",
        "correlation_weight": 0.05,
    }
    flags = [
        item for name, value in options.items() for item in ("--" + name.replace("_", "-"), value)
    ]
    assert run("fit", table, "--label", "species", *flags).exit_code == 0
    metric = read_csv(table.with_name("small.metric.csv"))[1]
    X = np.array([row.split(",")[:2] for row in ROWS], dtype=float)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = SERAPH(**options).fit(Z, [0, 0, 1, 1, -1, -1]).metric_
    np.testing.assert_allclose(metric, expected, rtol=1e-9, atol=1e-12)
    for name in options:
        fewer = {other: options[other] for other in options if other != name}
        other = SERAPH(**fewer).fit(Z, [0, 0, 1, 1, -1, -1]).metric_
        assert not np.allclose(other, expected, rtol=1e-9, atol=1e-12), f"{name} changes nothing"


def test_a_setting_of_the_paper_stands_in_the_place_of_the_weights(flowers):
    path, X, y = flowers
    options = ["--label", "species", "--no-standardize", "--setting", "proj"]
    assert run("fit", path, *options).exit_code == 0
    metric = read_csv(path.with_name("flowers.metric.csv"))[1]
    expected = SERAPH(setting="proj").fit(X, y).metric_
    np.testing.assert_allclose(metric, expected, rtol=1e-9, atol=1e-12)
    assert not np.allclose(metric, SERAPH().fit(X, y).metric_, rtol=1e-3)


def test_direct_has_no_certificate_and_says_so(flowers):
    path, X, y = flowers
    result = run("fit", path, "--label", "species", "--no-standardize", "--algorithm", "direct")
    assert result.exit_code == 0
    assert "Certificate: none" in result.stdout
    metric = read_csv(path.with_name("flowers.metric.csv"))[1]
    np.testing.assert_allclose(metric, SERAPH(algorithm="direct").fit(X, y).metric_, atol=1e-12)


def test_fit_reports_leave_one_out_error_and_what_the_metric_measures(flowers):
    path, X, y = flowers
    result = run("fit", path, "--label", "species", "--picture", "points.png")
    said = words(result.stdout)
    Z = ((X - X.mean(axis=0)) / X.std(axis=0))[y >= 0]
    distances = np.linalg.norm(Z[:, None] - Z[None], axis=2) + np.diag([np.inf] * len(Z))
    error = np.mean(y[y >= 0][np.argmin(distances, axis=1)] != y[y >= 0])
    assert "leave-one-out error on the 20 labeled points" in said
    assert re.search(r"difference -?\d+\.\d%, standard error \d+\.\d%", said)
    assert "these labels" in said.lower() or "the labels show a gain" in said.lower()
    assert f"Euclidean distance {error:.1%}" in said
    assert "It applies to the standardized features" in said
    assert path.with_name("points.png").stat().st_size < 300_000


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_other_marks_and_ends_give_the_same_metric(table, mark, start, end):
    run("fit", table, "--label", "species")
    other = table.with_name("other.csv")
    text = start + end.join([HEADER, *ROWS, ""]).replace(",", mark)
    other.write_bytes(text.encode())
    assert run("fit", other, "--label", "species").exit_code == 0
    expected = table.with_name("small.metric.csv").read_text()
    assert table.with_name("other.metric.csv").read_text() == expected


# Bad input is answered in words: exit code 2, and the culprit is named


BAD_TABLES = {
    "empty": ("", ["bad.csv is empty"]),
    "blank": ("\n \n", ["bad.csv is empty"]),
    "header only": (HEADER + "\n", ["bad.csv", "no points"]),
    "text": (
        "\n".join([HEADER, *ROWS[:2], "3.0,wide,b", *ROWS[3:]]),
        ["Row 4", "'width'", "'wide'"],
    ),
    "decimal comma": (
        "length;species\n1,5;a\n2,5;b\n",
        ["Row 2", "'length'", "'1,5'", "with a point"],
    ),
    "missing number": (
        "\n".join([HEADER, *ROWS[:2], ",12,b"]),
        ["Row 4", "'length'", "cell is empty"],
    ),
    "infinite": ("\n".join([HEADER, "inf,1,a", *ROWS]), ["Row 2", "'length'", "'inf'"]),
    "no label column": ("a,b\n1,2\n", ["no column 'species'", "'a', 'b'"]),
    "no header": ("1,2\n3,4\n", ["no column 'species'", "'1', '2'", "first row"]),
    "one label": ("\n".join([HEADER, "1,2,a", "2,3,", "4,5,"]), ["1 of the 3", "'species'"]),
    "no labels": ("\n".join([HEADER, "1,2,", "2,3,"]), ["0 of the 2", "'species'"]),
    "ragged": ("\n".join([HEADER, "1,2,a", "2,3"]), ["Row 3", "2 cells", "3 columns"]),
    "ragged, wide": ("\n".join([HEADER, "1,2,a", "2,3,b,4"]), ["Row 3", "4 cells"]),
    "unnamed column": (",x,species\n0,1,a\n1,2,b\n", ["Column 1", "no name"]),
    "twice named": ("x,x,species\n0,1,a\n1,2,b\n", ["2 columns named 'x'"]),
    "no features": ("species\na\nb\n", ["no column besides 'species'"]),
    "not UTF-8": (f"{HEADER}\n1,2,".encode() + b"\xe9\n3,4,b\n", ["Line 2", "utf-8", "0xe9"]),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_table(folder, case):
    content, culprits = BAD_TABLES[case]
    (folder / "bad.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    result = run("fit", "bad.csv", "--label", "species")
    assert_answered_in_words(result, culprits)
    assert [path.name for path in folder.iterdir()] == ["bad.csv"]


BAD_OPTIONS = {
    "missing file": (["fit", "no such.csv", "--label", "species"], ["no such.csv"]),
    "folder": (["fit", ".", "--label", "species", "--out", "m.csv"], ["Is a directory"]),
    "no label": (["fit", "small.csv"], ["--label"]),
    "ending": (["fit", "small.csv", "--label", "species", "--out", "m.txt"], ["m.txt", ".npz"]),
    "picture ending": (
        ["fit", "small.csv", "--label", "species", "--picture", "p.jpeg"],
        ["p.jpeg", ".png"],
    ),
    "no folder": (["fit", "small.csv", "--label", "species", "--out", "no/m.csv"], ["folder no"]),
    "onto the table": (
        ["fit", "small.csv", "--label", "species", "--out", "small.csv"],
        ["small.csv is the table itself"],
    ),
    "weight": (
        ["fit", "small.csv", "--label", "species", "--unlabeled-weight", "much"],
        ["'much'", "ratio"],
    ),
    "negative": (
        ["fit", "small.csv", "--label", "species", "--trace-weight", -1],
        ["trace_weight"],
    ),
    "solver": (["fit", "small.csv", "--label", "species", "--solver", "FOO"], ["'FOO'", "fista"]),
    "sharpness": (
        ["fit", "small.csv", "--label", "species", "--algorithm", "direct", "--sharpness", 2],
        ["--sharpness"],
    ),
    "seed": (["demo", "--seed", -1], ["--seed"]),
    "demo ending": (["demo", "--out", "iris"], ["iris must end in .png"]),
    "setting": (
        ["fit", "small.csv", "--label", "species", "--setting", "best"],
        ["'best'", "none, post, proj, hyper"],
    ),
}


@pytest.mark.parametrize("case", BAD_OPTIONS)
def test_bad_option(table, case):
    arguments, culprits = BAD_OPTIONS[case]
    before = table.read_text()
    assert_answered_in_words(run(*arguments), culprits)
    assert table.read_text() == before
    assert [path.name for path in table.parent.iterdir()] == ["small.csv"]


def test_a_folder_is_no_file_to_write_to(table):
    (table.parent / "metrics.csv").mkdir()
    result = run("fit", table, "--label", "species", "--out", "metrics.csv")
    assert_answered_in_words(result, ["metrics.csv is a folder: give the name of a file"])


def assert_answered_in_words(result, culprits):
    assert result.exit_code == 2, result.output
    for culprit in culprits:
        assert culprit in words(result.stderr)
    assert "Traceback" not in result.output
    assert isinstance(result.exception, SystemExit)


def test_debug_shows_the_error_itself(table):
    result = run("fit", table, "--label", "kind", "--debug")
    assert isinstance(result.exception, learn.TableError)


def test_no_optimum_is_answered_with_the_column_and_the_cure(folder):
    (folder / "few.csv").write_text("x,y,species\n0,1,a\n1,2,b\n")
    result = run("fit", "few.csv", "--label", "species", "--trace-weight", 0)
    assert_answered_in_words(result, ["no optimum", "--trace-weight", "--allow-unattained"])
    assert re.search(r"column '[xy]'", result.stderr)


def test_label_that_looks_unknown_is_taken_for_a_class_and_noted(table):
    table.write_text(table.read_text().replace(",a", ",-1"))
    result = run("fit", table, "--label", "species")
    assert result.exit_code == 0
    assert "2 classes, 4 labeled" in words(result.stdout)
    assert "'-1' is read as a class" in words(result.stderr)


def test_columns_that_do_not_vary_are_named_and_the_metric_is_that_of_the_others(table):
    run("fit", table, "--label", "species")
    expected = read_csv(table.with_name("small.metric.csv"))[1]
    lines = table.read_text().splitlines()
    table.write_text("\n".join(["unit," + lines[0], *("7," + line for line in lines[1:])]) + "\n")
    result = run("fit", table, "--label", "species")
    assert result.exit_code == 0
    assert "the column 'unit' is constant" in words(result.stderr)
    assert "'length'" not in result.stderr
    names, metric = read_csv(table.with_name("small.metric.csv"))
    assert names == ["unit", "length", "width"]
    np.testing.assert_allclose(metric[1:, 1:], expected, rtol=1e-6, atol=1e-9)


def test_a_single_class_is_learned_from_and_noted(table):
    table.write_text(table.read_text().replace(",b", ","))
    result = run("fit", table, "--label", "species")
    assert "1 similar (S), 0 dissimilar (D)" in words(result.stdout)
    assert "only one class is known" in words(result.stderr)


def test_zero_metric_is_explained_by_the_critical_trace_weight(table):
    result = run("fit", table, "--label", "species", "--trace-weight", 1000)
    assert result.exit_code == 0
    assert "Rank 0 of 2" in result.stdout
    assert "the metric is zero" in words(result.stderr)


# What is not certified is never silent, and what is interrupted is kept


@pytest.mark.parametrize("algorithm", ["em", "direct"])
def test_not_certified_is_exit_code_1_a_line_and_a_metric(flowers, algorithm):
    path = flowers[0]
    options = ["--label", "species", "--max-iter", 1, "--algorithm", algorithm]
    result = run("fit", path, *options)
    assert result.exit_code == 1
    assert re.search(r"^Not certified: ", result.stderr, re.M)
    assert "--max-iter" in result.stderr
    assert "status is iteration_limit" in words(result.stderr)
    assert ".py" not in result.stderr
    assert read_csv(path.with_name("flowers.metric.csv"))[1].shape == (4, 4)


def test_certificate_is_of_the_metric_kept_where_the_last_answer_was_refused(capsys):
    finished = alternate(PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1]))
    report_alternation(replace(finished, metric=np.eye(1)))
    value = certify(finished.objective, np.eye(1)).primal_value
    assert value != finished.m_step.certificate.primal_value
    assert f"primal value {value:.12g}" in words(capsys.readouterr().out)


def test_failure_without_a_metric_writes_nothing_and_says_so(table, monkeypatch):
    monkeypatch.setattr(learn, "alternate", failed)
    result = run("fit", table, "--label", "species")
    assert result.exit_code == 1
    assert "status is failed, not certified; nothing was written" in words(result.stderr)
    assert [path.name for path in table.parent.iterdir()] == ["small.csv"]


def test_other_warnings_are_shown_too(table, monkeypatch):
    def warn_and_alternate(pairs, **settings):
        warnings.warn("the sky is falling", stacklevel=1)
        return alternate(pairs, **settings)

    monkeypatch.setattr(learn, "alternate", warn_and_alternate)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        result = run("fit", table, "--label", "species")
    assert "Warning (UserWarning): the sky is falling" in result.stderr


def test_interruption_keeps_the_last_iteration_beside_the_old_metric(flowers, monkeypatch):
    path = flowers[0]
    target = path.with_name("flowers.metric.csv")
    target.write_text("an older metric")
    seen = []

    def interrupted(pairs, callback, **settings):
        def stop_at_the_third(step, metric):
            if step.number == 3:
                raise KeyboardInterrupt
            seen.append(metric)
            return callback(step, metric)

        return alternate(pairs, callback=stop_at_the_third, **settings)

    monkeypatch.setattr(learn, "alternate", interrupted)
    result = run("fit", path, "--label", "species")
    assert result.exit_code == 130
    assert "Interrupted: the metric of iteration 2 is in" in words(result.stderr)
    assert len(re.findall(r"^ +\d+ +\d+\.\d{8} ", result.stdout, re.M)) == 2  # as they happen
    assert target.read_text() == "an older metric"
    kept = read_csv(path.with_name("flowers.metric.interrupted.csv"))[1]
    np.testing.assert_allclose(kept, seen[-1])


def test_interruption_before_the_first_iteration_says_nothing_was_written(table, monkeypatch):
    def interrupted(pairs, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(learn, "alternate", interrupted)
    result = run("fit", table, "--label", "species")
    assert (result.exit_code, result.stderr) == (130, "Interrupted: nothing was written.\n")
    assert [path.name for path in table.parent.iterdir()] == ["small.csv"]


def test_failed_writing_leaves_the_old_file_and_no_draft(table, monkeypatch):
    target = table.with_name("small.metric.csv")
    target.write_text("an older metric")

    def full(source, destination):
        raise OSError(28, "No space left on device", str(destination))

    monkeypatch.setattr(os, "replace", full)
    result = run("fit", table, "--label", "species")
    assert_answered_in_words(result, ["No space left on device", "small.metric.csv"])
    assert target.read_text() == "an older metric"
    names = sorted(path.name for path in table.parent.iterdir())
    assert names == ["small.csv", "small.metric.csv"]


def test_a_failure_to_write_without_a_number_keeps_its_own_words(table, monkeypatch):
    def full(source, destination):
        raise OSError("the tape has run out")

    monkeypatch.setattr(os, "replace", full)
    result = run("fit", table, "--label", "species")
    assert_answered_in_words(result, ["Error: the tape has run out"])
    assert [path.name for path in table.parent.iterdir()] == ["small.csv"]


# The race and the cluster


OWN_SOLVER = """
def without_licence(objective, tol, time_limit):
    raise RuntimeError("licence not found")
"""


def test_a_race_tells_who_fails_what_is_not_drawn_and_what_a_resumption_changes(
    folder, no_matplotlib, monkeypatch
):
    """A solver of the user's own, found where the user stands; it fails, fista goes on."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    (folder / "solver_of_mine.py").write_text(OWN_SOLVER)
    command = ["compare", "--suite", "tiny", "--tol", "1e-3", "--out", "race"]
    command += ["--solvers", "fista,mine=solver_of_mine:without_licence"]
    result = run(*command)
    forget_solver("mine")
    assert result.exit_code == 0, result.output
    told = words(result.stderr)
    assert "mine at 0.001: error (RuntimeError: licence not found" in told
    assert "fista at" not in told
    assert "No pictures: matplotlib is not installed" in told
    names = sorted(path.name for path in (folder / "race").iterdir())
    assert names == ["race.jsonl", "race.md"]
    rows = race.read_race(folder / "race/race.jsonl").rows
    outcomes = {(row["solver"], row["outcome"]) for row in rows}
    assert outcomes == {("fista", "done"), ("mine", "error")}
    again = run(*command, "--resume", "--time-limit", 7)
    forget_solver("mine")
    assert again.exit_code == 0, again.output
    assert "Resumed with other time_limit: 5.0, then 7.0." in words(again.stderr)


@pytest.mark.parametrize(("named", "address"), [("local", None), ("tcp://a:8786", "tcp://a:8786")])
def test_work_goes_to_the_cluster_that_is_named(named, address, monkeypatch):
    asked = []

    @contextmanager
    def cluster(scheduler):
        asked.append(scheduler)
        yield

    monkeypatch.setattr(dask_cluster, "dask_cluster", cluster)
    with on_cluster(None):
        assert asked == []
    with on_cluster(named):
        assert asked == [address]


@pytest.mark.parametrize("text", [None, "MemTotal: 1 kB\n"])
def test_where_the_system_does_not_tell_its_free_memory_all_of_it_counts(text, monkeypatch):
    def read_text(path, encoding=None):
        if text is None:
            raise FileNotFoundError(path)
        return text

    free = free_bytes()
    monkeypatch.setattr(Path, "read_text", read_text)
    assert free_bytes() == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") > free


# The command itself


def test_version_and_help_without_arguments():
    assert run("--version").stdout == f"seraph-cvx {seraph_cvx.__version__}\n"
    shown = run().output
    assert "demo" in shown
    assert "fit flowers.csv --label species" in shown


def test_help_explains_every_option_of_fit():
    shown = run("fit", "--help").output
    options = shown.partition("Options:")[2].partition("Examples:")[0]
    blocks = re.split(r"^  (?=--)", options, flags=re.M)[1:]
    assert len(blocks) == 19
    for block in blocks:
        assert len(block.split()) > 5, block


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_missing_package_is_one_sentence_with_its_cure(missing, monkeypatch, capsys):
    for name in (
        "seraph_cvx.cli",
        "seraph_cvx.cli.report",
        "seraph_cvx.cli.main",
        "seraph_cvx.cli.learn",
        "seraph_cvx.cli.study",
        "rich.console",
    ):
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert f"needs {missing}" in said.err
    assert 'pip install "seraph-cvx[cli]"' in said.err


def test_python_dash_m_runs_the_command():
    result = subprocess.run(
        [sys.executable, "-m", "seraph_cvx", "--version"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert result.stdout == f"seraph-cvx {seraph_cvx.__version__}\n"


def test_commands_are_listed_in_the_order_of_use_with_whole_sentences():
    text = run("--help").output
    listed = text[text.index("Commands:") : text.index("Examples:")].splitlines()[1:]
    names = [line.split()[0] for line in listed if line.strip()]
    assert names[:4] == ["demo", "fit", "explain", "verify"]
    for line in listed:
        assert not line.strip() or line[-1] == "." != line[-2], line
