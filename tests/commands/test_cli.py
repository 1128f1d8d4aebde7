"""Evidence that the `seraph-cvx` command says the truth of what it learns, and keeps it."""

import os
import re
import signal
import subprocess
import sys
import tempfile

import numpy as np
import pandas as pd
import pytest
from command_line import ROWS, assert_answered_in_words, run, words
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import seraph_cvx
from seraph_cvx import SERAPH, Status, load_model
from seraph_cvx.__main__ import main
from seraph_cvx.cli import learn
from seraph_cvx.datasets import load, load_sampling
from seraph_cvx.m_step.conic import ConicMStep
from seraph_cvx.race.compare import read_race

FIT = "fit small.csv --label species --classifier nearest"
FIT_FLOWERS = "fit flowers.csv --label species --classifier nearest"


def written(command, name):
    """The SERAPH of the model file that a command writes."""
    result = run(command)
    assert result.exit_code == 0, result.output
    model = load_model(name)
    return getattr(model, "steps", [("", model)])[-1][1]


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def raises(error):
    """A function that does nothing but raise this error."""

    def work(*_, **__):
        raise error

    return work


# The demo


def test_demo_states_the_certificate_of_the_fit_and_draws_it(folder):
    result = run("demo --seed 1")
    assert (result.exit_code, result.stderr) == (0, "")
    sampling = load_sampling("iris", seed=1)
    certificate = SERAPH().fit(sampling.X, sampling.y).certificate_
    for phrase in (
        "100 points, 4 features, 3 classes, 10 labeled",
        f"no metric can have an M-step objective below {certificate.dual_value:.12g}",
        "rank 1 of 4 A, the matrix of the last M-step, which the certificate is about.",
        "mixed in after the fit, so the certificate is not about the mixture",
    ):
        assert phrase in words(result.stdout)
    assert (folder / "seraph-cvx-demo.png").read_bytes().startswith(b"\x89PNG")


# The metric that fit writes is the estimator's


@pytest.mark.parametrize("standardize", [True, False])
def test_the_file_holds_the_model_of_the_estimator(flowers, standardize):
    points, labels = flowers
    command = FIT_FLOWERS + ("" if standardize else " --no-standardize")
    seraph = written(command, "flowers.metric.npz")
    expected = make_pipeline(*[StandardScaler()] * standardize, SERAPH()).fit(points, labels)
    model = load_model("flowers.metric.npz")
    again = expected.transform(points)
    np.testing.assert_allclose(model.transform(points), again, rtol=1e-9, atol=1e-9)
    assert seraph.labels_.tolist() == [label for label in labels if label]
    assert model.feature_names_in_.tolist() == points.columns.tolist()


OPTIONS = {
    "unlabeled_weight": 0.05,
    "trace_weight": 2.0,
    "solver": "projected-gradient",
    "tol": 1e-3,
    "identity_share": 0.2,
}


@pytest.mark.parametrize("options", [OPTIONS, {"setting": "proj"}, {"algorithm": "direct"}])
def test_options_reach_the_estimator(table, options):
    """Each of them: without one of them the metric is another."""
    flags = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in options.items())
    metric = written(f"{FIT} {flags}", "small.metric.npz").metric_
    Z = StandardScaler().fit_transform([row.split(",")[:2] for row in ROWS])
    for name in ("", *options):
        fewer = {other: options[other] for other in options if other != name}
        other = SERAPH(**fewer).fit(Z, [0, 0, 1, 1, -1, -1]).metric_
        assert np.allclose(other, metric, rtol=1e-9, atol=1e-12) == (name == ""), name


# What fit notes about a table


def test_a_label_that_looks_unknown_is_taken_for_a_class_and_noted_unless_it_is_named(table):
    table.write_text(table.read_text().replace(",a", ",unknown") + "2.0,15,c\n2.2,17,c\n")
    result = run(FIT)
    assert "3 classes, 6 labeled" in words(result.stdout)
    assert "'unknown' is read as a class" in words(result.stderr)
    assert "--unknown 'unknown'" in words(result.stderr)
    assert result.stderr.count("Note") == 1  # the estimator's own words would be a second
    result = run(f"{FIT} --unknown '?, unknown' --force")
    assert "2 classes, 4 labeled" in words(result.stdout)
    assert "read as unknown: 'unknown' (2)" in words(result.stdout)
    assert result.stderr == ""


@pytest.fixture
def wines(folder):
    """Wine as wines.csv, two of three rows labeled; the magnesium of four rows is 9999."""
    X, y = load("wine")
    table = pd.DataFrame(X[:, 3:6], columns=["alkalinity", "magnesium", "phenols"])
    table["kind"] = np.where(np.arange(len(y)) % 3, y.astype(str), "")
    table.loc[[15, 30, 50, 90], "magnesium"] = 9999
    table.to_csv("wines.csv", index=False)
    return table


@pytest.mark.slow
def test_numbers_for_missing_values_are_the_same_however_they_are_written(wines):
    needs = "--missing 9999 needs --impute median or --impute mean"
    assert_answered_in_words(run("fit wines.csv --label kind --missing 9999"), [needs])
    options = "--label kind --missing 9999,n.d. --impute median"
    metric = written(f"fit wines.csv {options} --out m.npz", "m.npz").metric_
    for number in ("9.999e3", "N.D.", ""):
        changed = wines.astype({"magnesium": object})
        changed.loc[[15, 30, 50, 90], "magnesium"] = number
        changed.to_csv("other.csv", index=False)
        again = written(f"fit other.csv {options} --out other.npz --force", "other.npz")
        assert np.array_equal(again.metric_, metric)
    lone = wines[15:16].assign(magnesium=9999)  # the model knows what is missing
    lone.to_csv("new.csv", index=False)
    assert run("apply m.npz new.csv --out z.csv").stderr.count("far outside") == 0
    points = lone[["alkalinity", "magnesium", "phenols"]].assign(magnesium=np.nan)
    assert np.allclose(pd.read_csv("z.csv"), load_model("m.npz").transform(points))


@pytest.mark.parametrize(
    ("new", "options", "reason"),
    [
        (",", "--unlabeled-weight 0", "all known points are of one class"),
        (",b", "--trace-weight 1000", "the trace weight is too large"),
    ],
)
def test_a_zero_metric_is_explained_and_leaves_the_file_of_yesterday(table, new, options, reason):
    assert run(FIT).exit_code == 0
    kept = table.with_name("small.metric.npz").read_bytes()
    table.write_text(table.read_text().replace(",b", new))
    result = run(f"{FIT} --force {options}")
    reasons = [reason, "all distances are zero; nothing was written. Exit code 1"]
    assert_answered_in_words(result, reasons, 1)
    assert table.with_name("small.metric.npz").read_bytes() == kept


@pytest.mark.parametrize(("option", "name"), [("--out", "m.npz"), ("--picture", "p.svg")])
def test_an_existing_file_is_replaced_only_by_force(table, monkeypatch, option, name):
    """It is said before the work."""
    old = table.with_name(name)
    old.write_text("yesterday's")
    with monkeypatch.context() as forbidden:
        forbidden.setattr(learn, "read_table", raises(RuntimeError))
        result = run(f"{FIT} {option} {name}")
    assert_answered_in_words(result, [f"{name} exists already: --force replaces it"])
    assert (result.stdout, old.read_text()) == ("", "yesterday's")
    assert run(f"{FIT} {option} {name} --force").exit_code == 0
    assert old.read_bytes() != b"yesterday's"


# What is not certified is never silent, and what is interrupted is kept


@pytest.mark.parametrize("algorithm", ["em", "direct"])
def test_not_certified_is_exit_code_1_a_line_and_a_metric(flowers, algorithm):
    result = run(f"{FIT_FLOWERS} --max-iter 1 --algorithm {algorithm}")
    assert_answered_in_words(result, ["--max-iter", "status is iteration_limit"], 1)
    assert re.search(r"^Not certified: ", result.stderr, re.M)
    assert not re.search(r"\.py|max_iter", result.stderr)
    assert ("Certificate: none" in result.stdout) == (algorithm == "direct")
    assert load_model("flowers.metric.npz")[-1].metric_.shape == (4, 4)


def test_a_gap_at_the_limit_of_rounding_has_its_own_word_and_is_no_failure(table, monkeypatch):
    monkeypatch.setattr(learn.Learning, "estimator", lambda _: SERAPH(m_step_tol=1e-17))
    result = run(FIT)
    assert result.exit_code == 0, result.output
    assert "above the 1e-17 asked for, but at the limit of rounding" in words(result.stdout)
    assert "not certified" not in result.output.lower()
    model = load_model("small.metric.npz")[-1]
    assert model.status_ is Status.ROUNDING_LIMIT
    assert 1e-17 < model.certificate_.relative_gap < 1e-6


def test_advice_names_options_of_the_command(table, monkeypatch):
    inner = ConicMStep._run

    def inaccurately(self, options):
        metric, *rest = inner(self, options)
        return 1.1 * metric, *rest

    monkeypatch.setattr(ConicMStep, "_run", inaccurately)
    result = run(f"{FIT} --solver scs --force")
    assert_answered_in_words(result, ["status is inaccurate", "or use --solver newton."], 1)
    certificate = load_model("small.metric.npz")[-1].certificate_
    for kind in ("primal", "dual"):
        value = getattr(certificate, f"{kind}_value")
        assert f"{kind} value {value:.12g}" in words(result.stdout)
    known = re.findall(r"--[a-z-]+", run("fit --help").output)
    assert set(re.findall(r"--[a-z-]+", result.stderr)) <= set(known)
    late = run(f"{FIT} --time-limit 1e-9 --force")
    assert_answered_in_words(late, ["status is time_limit", "Raise --time-limit."], 1)


def test_interruption_keeps_the_last_iteration_beside_the_old_metric(flowers, folder, monkeypatch):
    old = folder / "flowers.metric.npz"
    old.write_text("an older metric")
    seen, report = [], learn.report_iteration

    def report_and_interrupt(step):
        report(step)
        seen.append(step.rank)
        if step.number == 2:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(learn, "report_iteration", report_and_interrupt)
    result = run(f"{FIT_FLOWERS} --force")
    assert_answered_in_words(result, ["Interrupted: the metric of iteration 2 is in"], 130)
    assert len(re.findall(r"^ +\d+ +\d+\.\d{8} ", result.stdout, re.M)) == 2  # as they happen
    assert old.read_text() == "an older metric"
    kept = load_model("flowers.metric.interrupted.npz")[-1]
    assert kept.status_ is Status.INTERRUPTED
    assert kept.m_step_rank_ == seen[-1]


@pytest.mark.parametrize(
    ("module", "name", "said"),
    [
        (SERAPH, "_make_pairs", "the metric of iteration 0 is in flowers.metric.interrupted.npz"),
        (learn, "write_model", "the metric is in flowers.metric.npz"),
        (learn, "tell", "the metric"),  # when the fit is announced
    ],
)
def test_ctrl_c_just_before_or_after_a_fit_loses_nothing(
    flowers, folder, monkeypatch, module, name, said
):
    original, presses = getattr(module, name), []

    def press_once(*args, **given):
        if not presses:
            presses.append(signal.raise_signal(signal.SIGINT))
        return original(*args, **given)

    monkeypatch.setattr(module, name, press_once)
    result = run(f"{FIT_FLOWERS} --force")
    assert_answered_in_words(result, [f"Interrupted: {said}"], 130)
    assert load_model(next(folder.glob("*.npz")))


FAILURES = {
    "failed": (RuntimeError("no metric"), 1, "status is failed; nothing was written. no metric"),
    "interrupted": (KeyboardInterrupt(), 130, "Interrupted: nothing was written."),
    "a bug": (KeyError("soft_labels"), 2, "This is a bug", "KeyError: 'soft_labels'", "--debug"),
    "no memory": (MemoryError("9 TiB"), 2, "Not enough memory (9 TiB): use fewer points"),
}


@pytest.mark.parametrize("command", [FIT, "demo"])
@pytest.mark.parametrize("case", FAILURES)
def test_a_fit_that_fails_writes_nothing_and_says_why(table, monkeypatch, case, command):
    error, exit_code, *reasons = FAILURES[case]
    monkeypatch.setattr(SERAPH, "_minimize", raises(error))
    result = run(command)
    assert_answered_in_words(result, reasons, exit_code)
    assert "rank" not in result.stdout
    assert names_in(table.parent) == ["small.csv"]


@pytest.mark.parametrize(
    ("error", "reasons"),
    [
        (OSError(28, "No space left on device"), ["No space left on device: m.", "(free some"]),
        (OSError("the tape has run out"), ["Error: the tape has run out"]),
    ],
)
def test_failed_writing_leaves_the_old_file_and_no_draft(table, monkeypatch, error, reasons):
    name = "m.npz"
    table.with_name(name).write_text("an older metric")
    monkeypatch.setattr(os, "fsync", raises(error))
    assert_answered_in_words(run(f"{FIT} --out {name} --force"), reasons)
    assert table.with_name(name).read_text() == "an older metric"
    assert names_in(table.parent) == [name, "small.csv"]


# The race


OWN_SOLVER = """
def without_license(objective, tol, time_limit):
    raise RuntimeError("license not found")
"""


def test_a_race_tells_who_fails_and_what_is_not_drawn_and_resumes_with_the_same_limits(
    folder, no_matplotlib, monkeypatch
):
    """A solver of the user's own, found where the user stands; it fails, newton goes on.

    Nothing is left in the temporary folder.
    """
    monkeypatch.setattr(sys, "path", [*sys.path])
    scratch = folder / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    (folder / "solver_of_mine.py").write_text(OWN_SOLVER)
    command = (
        "compare --suite tiny --tol 1e-3 --out race "
        "--solvers newton,mine=solver_of_mine:without_license"
    )
    notes = [
        "mine at tol 0.001: error (RuntimeError: license not found",
        "No pictures: matplotlib is not installed",
    ]
    for more, noted in (("", notes), (" --resume", notes[1:])):
        result = run(command + more)
        assert result.exit_code == 0, result.output
        assert all(note in words(result.stderr) for note in noted), result.stderr
        assert "newton at" not in result.stderr
    assert names_in(folder / "race") == ["race.jsonl", "race.md"]
    assert names_in(scratch) == []
    assert run(command).exit_code == 2  # without --resume
    changed = run(f"{command} --resume --time-limit 7")
    assert_answered_in_words(changed, ["another time_limit, 5", "give that one"])
    rows = read_race(folder / "race/race.jsonl").rows
    outcomes = {(row["solver"], row["outcome"]) for row in rows}
    assert outcomes == {("newton", "done"), ("mine", "error")}


# The command itself


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_missing_package_is_one_sentence_with_its_cure(missing, monkeypatch, capsys):
    for name in [*sys.modules]:
        if name.startswith("seraph_cvx.cli") or name == "rich.console":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(SystemExit) as end:
        main()
    printed = capsys.readouterr()
    assert (end.value.code, printed.out, printed.err.count("\n")) == (2, "", 1)
    assert f"needs {missing}" in printed.err
    assert 'pip install "seraph-cvx[cli]"' in printed.err


def test_python_dash_m_runs_the_command():
    command = [sys.executable, "-m", "seraph_cvx", "--version"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert printed == run("--version").stdout == f"seraph-cvx {seraph_cvx.__version__}\n"
