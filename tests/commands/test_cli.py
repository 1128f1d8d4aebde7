"""Evidence that the `seraph-cvx` command says the truth, and answers bad input in words."""

import os
import re
import signal
import subprocess
import sys
import warnings
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import assert_answered_in_words, run, words
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import seraph_cvx
from seraph_cvx import SERAPH, PairSet, Status, alternate, certify, load_model
from seraph_cvx.__main__ import main
from seraph_cvx.cli import learn
from seraph_cvx.cli.main import on_cluster
from seraph_cvx.cli.tables import free_bytes
from seraph_cvx.datasets import load, load_sampling
from seraph_cvx.estimators.settings import RECOMMENDED
from seraph_cvx.m_step.conic import ConicMStep
from seraph_cvx.plots import RegionsDisplay
from seraph_cvx.processes import dask_cluster
from seraph_cvx.race import race
from seraph_cvx.race.race_table import Race
from seraph_cvx.race.solvers import forget_solver

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


def metric_in(path):
    """The matrix of a model file, whose last step is SERAPH."""
    model = load_model(path)
    return getattr(model, "steps", [("", model)])[-1][1].metric_


# The demo


def test_demo_states_data_pairs_iterations_certificate_and_error(folder, monkeypatch):
    drawn, draw = [], RegionsDisplay.draw
    monkeypatch.setattr(
        RegionsDisplay, "draw", lambda self, **more: drawn.append(self) or draw(self, **more)
    )
    result = run("demo", "--seed", 1)
    assert result.exit_code == 0, result.output
    said = words(result.stdout)
    sampling = load_sampling("iris", seed=1)
    pairs = PairSet.from_labels(sampling.X, sampling.y)
    first = RECOMMENDED.first_m_step(pairs)
    reference = alternate(pairs, first.mu, first.trace_weight, sharpness=RECOMMENDED.sharpness)
    certificate = reference.m_step.certificate
    assert "100 points, 4 features, 3 classes, 10 labeled" in said
    assert f"{len(pairs.similar)} similar (𝒮), {len(pairs.dissimilar)} dissimilar (𝒟)" in said
    assert f"below {certificate.dual_value:.12g}" in said
    assert "no metric can have an M-step objective below" in said
    assert f"primal value {certificate.primal_value:.12g}" in said
    assert f"{reference.history[-1].descent_value:.8f}" in said
    assert len(re.findall(r"^ +\d+ +\d+\.\d{8} ", result.stdout, re.M)) == len(reference.history)
    learned = RECOMMENDED.mix_with_reference(reference.metric, RECOMMENDED.first_m_step(pairs))
    assert "rank 1 of 4 A, the matrix of the last M-step, which the certificate is about." in said
    assert "rank 4 of 4 the metric of all distances: A mixed with the distance in units of" in said
    assert "because few labels say nothing about what A leaves out" in said
    assert "mixed in after the fit, so the certificate is not about the mixture" in said
    assert "Gap, rank and trace are of the matrix A of the M-step" in said
    assert "A, the matrix of this M-step, is at most" in said
    known, (picture,) = sampling.labeled, drawn
    metrics = {"Euclidean distance": np.eye(4), "learned metric": learned}
    for (name, A), shown in zip(metrics.items(), picture.errors, strict=True):
        v = sampling.X_test[:, None, :] - sampling.X[known][None, :, :]
        nearest = np.argmin(np.einsum("ijk,kl,ijl->ij", v, A, v), axis=1)
        error = np.mean(sampling.y[known][nearest] != sampling.y_test)
        assert f"{name} {error:.1%}" in said
        assert shown == error
    assert len(picture.gaps) == len(reference.history)
    assert picture.gaps[0] > 1e-3
    own = certify(reference.objective.with_soft_labels_of(reference.metric), reference.metric)
    assert picture.gaps[-1] == pytest.approx(own.relative_gap, abs=1e-12)
    assert own.relative_gap <= 1e-8
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


def failed(*_, **__):
    raise RuntimeError("The alternation ended with status failed.")


def test_demo_without_a_metric_draws_nothing_and_says_so(folder, monkeypatch):
    monkeypatch.setattr(SERAPH, "_learn", failed)
    result = run("demo")
    assert result.exit_code == 1
    assert "status is failed; nothing was written" in words(result.stderr)
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
        (["demo"], "seraph_cvx.plots.regions"),
        (["compare", "--out", "."], "seraph_cvx.plots.race.race"),
    ],
)
def test_another_missing_package_is_not_taken_for_matplotlib(command, room, folder, monkeypatch):
    monkeypatch.setattr(race, "compare_solvers", lambda *_, **__: EMPTY_RACE)
    monkeypatch.setitem(sys.modules, room, None)
    result = run(*command)
    assert result.exit_code == 2
    assert f"import of {room} halted" in words(result.stderr)
    assert "matplotlib" not in result.stderr


# The metric that fit writes is the estimator's


@pytest.mark.parametrize("standardize", [True, False])
def test_npz_holds_the_model_of_the_estimator_and_csv_its_matrix(flowers, standardize):
    path, X, y = flowers
    switch = "--standardize" if standardize else "--no-standardize"
    assert run("fit", path, "--label", "species", switch).exit_code == 0
    result = run("fit", path, "--label", "species", switch, "--out", "m.csv")
    assert result.exit_code == 0
    assert "the matrix alone" in words(result.stdout)
    frame = pd.DataFrame(X, columns=["sl", "sw", "pl", "pw"])
    kinds = np.array(["setosa", "versicolor", "virginica", None], dtype=object)[y]
    expected = make_pipeline(StandardScaler(), SERAPH()) if standardize else SERAPH()
    expected.fit(frame, kinds)
    model = load_model(path.with_name("flowers.metric.npz"))
    again = expected.transform(frame)
    np.testing.assert_allclose(model.transform(frame), again, rtol=1e-9, atol=1e-9)
    seraph = model[-1] if standardize else model
    assert seraph.labels_.tolist() == [kind for kind in kinds if kind]
    assert model.feature_names_in_.tolist() == ["sl", "sw", "pl", "pw"]
    if standardize:
        np.testing.assert_allclose(model[0].mean_, X.mean(axis=0))
        np.testing.assert_allclose(model[0].scale_, X.std(axis=0))
    names, metric = read_csv(path.with_name("m.csv"))
    assert names == ["sl", "sw", "pl", "pw"]
    np.testing.assert_array_equal(metric, seraph.metric_)


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
        "m_step_tol": 1e-3,
        "identity_share": 0.2,
        "reference": "identity",
        "correlation_weight": 0.05,
    }
    flags = [
        item for name, value in options.items() for item in ("--" + name.replace("_", "-"), value)
    ]
    assert run("fit", table, "--label", "species", *flags).exit_code == 0
    metric = metric_in(table.with_name("small.metric.npz"))
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
    metric = metric_in(path.with_name("flowers.metric.npz"))
    expected = SERAPH(setting="proj").fit(X, y).metric_
    np.testing.assert_allclose(metric, expected, rtol=1e-9, atol=1e-12)
    assert not np.allclose(metric, SERAPH().fit(X, y).metric_, rtol=1e-3)


def test_direct_has_no_certificate_and_says_so(flowers):
    path, X, y = flowers
    result = run("fit", path, "--label", "species", "--no-standardize", "--algorithm", "direct")
    assert result.exit_code == 0
    assert "Certificate: none" in result.stdout
    metric = metric_in(path.with_name("flowers.metric.npz"))
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
    assert "Next: seraph-cvx apply" in said
    assert path.with_name("points.png").stat().st_size < 300_000


def test_other_marks_and_ends_give_the_same_metric(table):
    run("fit", table, "--label", "species")
    expected = metric_in(table.with_name("small.metric.npz"))
    other = table.with_name("other.csv")
    for mark, start, end in product((",", ";", "\t"), ("", "\ufeff"), ("\n", "\r\n")):
        text = start + end.join([HEADER, *ROWS, ""]).replace(",", mark)
        other.write_bytes(text.encode())
        assert run("fit", other, "--label", "species", "--force").exit_code == 0, text
        assert np.array_equal(metric_in(table.with_name("other.metric.npz")), expected), text


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
        ["--trace-weight"],
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


def test_debug_shows_the_error_itself(table):
    result = run("fit", table, "--label", "kind", "--debug")
    assert isinstance(result.exception, learn.TableError)


def test_no_optimum_is_answered_with_the_column_and_the_cure(folder):
    (folder / "few.csv").write_text("x,y,species\n0,1,a\n1,2,b\n")
    result = run("fit", "few.csv", "--label", "species", "--trace-weight", 0)
    assert_answered_in_words(result, ["no optimum", "--trace-weight", "--allow-unattained"])
    assert re.search(r"column '[xy]'", result.stderr)


def test_a_label_that_looks_unknown_is_taken_for_a_class_and_noted_unless_it_is_named(table):
    table.write_text(table.read_text().replace(",a", ",unknown") + "2.0,15,c\n2.2,17,c\n")
    result = run("fit", table, "--label", "species")
    assert result.exit_code == 0
    assert "3 classes, 6 labeled" in words(result.stdout)
    assert "'unknown' is read as a class" in words(result.stderr)
    assert "--unknown 'unknown'" in words(result.stderr)
    assert result.stderr.count("Note") == 1  # the estimator's own words would be a second
    result = run("fit", table, "--label", "species", "--unknown", "?, unknown", "--force")
    assert "2 classes, 4 labeled" in words(result.stdout)
    assert "read as unknown: 'unknown' (2)" in words(result.stdout)
    assert result.stderr == ""


def test_words_for_an_unknown_class_give_the_metric_of_empty_cells(table):
    assert run("fit", table, "--label", "species").exit_code == 0
    expected = metric_in(table.with_name("small.metric.npz"))
    lines = table.read_text().splitlines()
    for word in ("-1", "NA", "NaN", "nan", "-1.0", " NA "):
        marked = [line + word if line.endswith(",") else line for line in lines]
        table.with_name("marked.csv").write_text("\n".join(marked) + "\n")
        result = run("fit", "marked.csv", "--label", "species", "--force")
        assert f"read as unknown: '{word.strip()}' (2)" in words(result.stdout)
        assert np.array_equal(metric_in(table.with_name("marked.metric.npz")), expected), word


def test_columns_that_do_not_vary_are_named_and_the_metric_is_that_of_the_others(table):
    run("fit", table, "--label", "species")
    expected = metric_in(table.with_name("small.metric.npz"))
    lines = table.read_text().splitlines()
    table.write_text("\n".join(["unit," + lines[0], *("7," + line for line in lines[1:])]) + "\n")
    result = run("fit", table, "--label", "species", "--out", "m.csv")
    assert result.exit_code == 0
    assert "the column 'unit' is constant" in words(result.stderr)
    assert "'length'" not in result.stderr
    names, metric = read_csv(table.with_name("m.csv"))
    assert names == ["unit", "length", "width"]
    np.testing.assert_allclose(metric[1:, 1:], expected, rtol=1e-6, atol=1e-9)


ZERO = {
    "one class": (",b", ",", ["--unlabeled-weight", 0], ["all known points are of one class"]),
    "trace weight": (",b", ",b", ["--trace-weight", 1000], ["the trace weight is too large"]),
}


@pytest.mark.parametrize("case", ZERO)
def test_a_zero_metric_is_explained_and_leaves_the_file_of_yesterday(table, case):
    old, new, options, reasons = ZERO[case]
    assert run("fit", table, "--label", "species").exit_code == 0
    kept = table.with_name("small.metric.npz").read_bytes()
    table.write_text(table.read_text().replace(old, new))
    result = run("fit", table, "--label", "species", "--force", *options)
    assert result.exit_code == 1
    for reason in [*reasons, "all distances are zero; nothing was written. Exit code 1"]:
        assert reason in words(result.stderr)
    assert table.with_name("small.metric.npz").read_bytes() == kept


def test_an_existing_file_is_replaced_only_by_force_and_said_before_the_work(table, monkeypatch):
    for option, name in (("--out", "m.npz"), ("--picture", "p.svg")):
        table.with_name(name).write_text("yesterday's")
        with monkeypatch.context() as forbidden:
            forbidden.setattr(learn, "read_table", failed)
            result = run("fit", table, "--label", "species", option, name)
        assert_answered_in_words(result, [f"{name} exists already: --force replaces it"])
        assert result.stdout == ""
        assert table.with_name(name).read_text() == "yesterday's"
    assert run("fit", table, "--label", "species", "--out", "m.npz", "--force").exit_code == 0
    assert table.with_name("m.npz").read_bytes() != b"yesterday's"


def test_a_column_that_numbers_the_rows_is_noted_and_can_be_dropped(table):
    assert run("fit", table, "--label", "species").exit_code == 0
    lines = table.read_text().splitlines()
    counted = ["row," + lines[0], *(f"{k},{line}" for k, line in enumerate(lines[1:], 7))]
    table.with_name("counted.csv").write_text("\n".join(counted) + "\n")
    result = run("fit", "counted.csv", "--label", "species", "--out", "a.npz")
    assert "the column 'row' looks like a number of each row" in words(result.stderr)
    assert "--drop 'row' leaves it out" in words(result.stderr)
    result = run("fit", "counted.csv", "--label", "species", "--drop", "row")
    assert result.stderr == ""
    expected = metric_in(table.with_name("small.metric.npz"))
    assert np.array_equal(metric_in(table.with_name("counted.metric.npz")), expected)


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
    assert "max_iter" not in result.stderr
    assert metric_in(path.with_name("flowers.metric.npz")).shape == (4, 4)


def test_a_gap_at_the_limit_of_rounding_has_its_own_word_and_is_no_failure(table):
    result = run("fit", table, "--label", "species", "--m-step-tol", 1e-17)
    assert result.exit_code == 0, result.output
    assert "above the 1e-17 asked for, but at the limit of rounding" in words(result.stdout)
    assert "not certified" not in result.output.lower()
    model = load_model(table.with_name("small.metric.npz"))[-1]
    assert model.status_ is Status.ROUNDING_LIMIT
    assert 1e-17 < model.certificate_.relative_gap < 1e-6


def test_advice_names_options_of_the_command(table, monkeypatch):
    inner = ConicMStep._run

    def inaccurately(self, options, warm_start):
        metric, *rest = inner(self, options, warm_start)
        return 1.1 * metric, *rest

    monkeypatch.setattr(ConicMStep, "_run", inaccurately)
    result = run("fit", table, "--label", "species", "--solver", "scs", "--m-step-tol", 1e-4)
    assert result.exit_code == 1
    assert "--polish closes the gap" in words(result.stderr)
    options = re.findall(r"--[a-z-]+", result.stderr)
    assert set(options) <= set(re.findall(r"--[a-z-]+", run("fit", "--help").output))
    more = ["--force", "--polish"]
    again = run("fit", table, "--label", "species", "--solver", "scs", "--m-step-tol", 1e-4, *more)
    assert again.exit_code == 0, again.output
    short = run("fit", table, "--label", "species", "--time-limit", 1e-9, "--force")
    assert short.exit_code == 1
    assert "raise --time-limit" in words(short.stderr)


def test_failure_without_a_metric_writes_nothing_and_says_so(table, monkeypatch):
    monkeypatch.setattr(SERAPH, "_learn", failed)
    result = run("fit", table, "--label", "species")
    assert result.exit_code == 1
    assert "status is failed; nothing was written" in words(result.stderr)
    assert [path.name for path in table.parent.iterdir()] == ["small.csv"]


def test_other_warnings_are_shown_too(table, monkeypatch):
    inner = SERAPH._learn

    def warn_and_learn(model, pairs):
        warnings.warn("the sky is falling", stacklevel=1)
        return [*inner(model, pairs), FutureWarning("so is the moon")]

    monkeypatch.setattr(SERAPH, "_learn", warn_and_learn)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        result = run("fit", table, "--label", "species")
    assert "Note: the sky is falling" in result.stderr
    assert "FutureWarning: so is the moon" in result.stderr


def test_interruption_keeps_the_last_iteration_beside_the_old_metric(flowers, monkeypatch):
    path = flowers[0]
    target = path.with_name("flowers.metric.npz")
    target.write_text("an older metric")
    seen = []

    def report_and_interrupt(step, metric):
        report(step, metric)
        seen.append(metric)
        if step.number == 2:
            signal.raise_signal(signal.SIGINT)

    report = learn.report_iteration
    monkeypatch.setattr(learn, "report_iteration", report_and_interrupt)
    result = run("fit", path, "--label", "species", "--force")
    assert result.exit_code == 130, result.output
    assert "Interrupted: the metric of iteration 2 is in" in words(result.stderr)
    assert len(re.findall(r"^ +\d+ +\d+\.\d{8} ", result.stdout, re.M)) == 2  # as they happen
    assert target.read_text() == "an older metric"
    kept = load_model(path.with_name("flowers.metric.interrupted.npz"))[-1]
    assert kept.status_ is Status.INTERRUPTED
    np.testing.assert_allclose(kept.m_step_metric_, seen[-1])


def interrupted(*_, **__):
    raise KeyboardInterrupt


def test_interruption_before_the_first_iteration_says_nothing_was_written(table, monkeypatch):
    monkeypatch.setattr(SERAPH, "_learn", interrupted)
    result = run("fit", table, "--label", "species")
    assert (result.exit_code, result.stderr) == (130, "Interrupted: nothing was written.\n")
    assert [path.name for path in table.parent.iterdir()] == ["small.csv"]


@pytest.mark.parametrize("name", ["m.npz", "m.csv"])
def test_failed_writing_leaves_the_old_file_and_no_draft(table, monkeypatch, name):
    target = table.with_name(name)
    target.write_text("an older metric")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    result = run("fit", table, "--label", "species", "--out", name, "--force")
    assert_answered_in_words(result, ["No space left on device", name])
    assert target.read_text() == "an older metric"
    assert sorted(path.name for path in table.parent.iterdir()) == [name, "small.csv"]


def test_a_failure_to_write_without_a_number_keeps_its_own_words(table, monkeypatch):
    def full(*_):
        raise OSError("the tape has run out")

    monkeypatch.setattr(os, "fsync", full)
    result = run("fit", table, "--label", "species")
    assert_answered_in_words(result, ["Error: the tape has run out"])
    assert [path.name for path in table.parent.iterdir()] == ["small.csv"]


# The race and the cluster


OWN_SOLVER = """
def without_license(objective, tol, time_limit):
    raise RuntimeError("license not found")
"""


def test_a_race_tells_who_fails_what_is_not_drawn_and_what_a_resumption_changes(
    folder, no_matplotlib, monkeypatch
):
    """A solver of the user's own, found where the user stands; it fails, fista goes on."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    (folder / "solver_of_mine.py").write_text(OWN_SOLVER)
    command = ["compare", "--suite", "tiny", "--tol", "1e-3", "--out", "race"]
    command += ["--solvers", "fista,mine=solver_of_mine:without_license"]
    result = run(*command)
    forget_solver("mine")
    assert result.exit_code == 0, result.output
    told = words(result.stderr)
    assert "mine at 0.001: error (RuntimeError: license not found" in told
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


def test_help_of_fit_explains_every_option_in_groups_with_what_most_need_first():
    shown = run("fit", "--help").output
    options = shown.partition("What most people need:")[2].partition("Examples:")[0]
    blocks = re.split(r"^  (?=--)", options, flags=re.M)[1:]
    assert len(blocks) == 30
    for block in blocks:
        assert len(block.split()) > 4, block
    titles = re.findall(r"^(\S.*):$", shown, flags=re.M)
    assert titles[:3] == ["Arguments", "What most people need", "Reading the table"]
    assert len(titles) == 6
    assert shown.index("--label") < shown.index("--out") < shown.index("--trace-weight")


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_missing_package_is_one_sentence_with_its_cure(missing, monkeypatch, capsys):
    for name in (
        "seraph_cvx.cli",
        "seraph_cvx.cli.report",
        "seraph_cvx.cli.main",
        "seraph_cvx.cli.learn",
        "seraph_cvx.cli.apply",
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


@pytest.mark.parametrize("columns", ["40", "80", "100"])
def test_commands_are_listed_in_the_order_of_use_with_whole_sentences(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    text = run("--help").output
    listed = text[text.index("Commands:") : text.index("Examples:")].partition("\n")[2]
    names = re.findall(r"^  (\S+(?: \S+)?)(?:$|  +)", listed, flags=re.M)
    assert names[:6] == ["demo", "fit", "apply", "explain", "verify", "compare"]
    assert names[-1] == "export"
    assert "..." not in listed
    for name in names:
        told = listed.partition(f"  {name} ")[2] or listed.partition(f"  {name}\n")[2]
        assert "." in re.split(r"\n  \S", told)[0], name
