"""`explain` and `bench`: they run, and their tables hold what they say."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from command_line import run

from seraph_cvx.cli import study
from seraph_cvx.experiments import bench_conic, bench_passes, bench_statement
from seraph_cvx.experiments.bench_path import bench_path
from seraph_cvx.experiments.bench_proof import bench_proof
from seraph_cvx.experiments.bench_report import Report
from seraph_cvx.result_table import ResultTable


@pytest.mark.parametrize("statement", ["primal", "dual", "textbook"])
def test_explain_shows_the_tree_and_the_verdict(statement):
    result = run("explain", "--statement", statement)
    assert result.exit_code == 0, result.output
    assert "└─" in result.output
    assert "So the problem is convex" in result.output


def test_explain_names_the_data_sets_it_knows():
    result = run("explain", "--data", "tulips")
    assert result.exit_code == 2
    assert "iris" in result.output


def planted(stop=None):
    """A measurement of two rows, stopped after the first one by `stop`."""

    def measure(report, **limits):
        report.start("Planted")
        report.tell("planting")
        report.add({"ratio": 2.0})
        if stop is not None:
            report.draft({"ratio": "> 3"})
            raise stop
        report.add({"ratio": 4.0})
        return report.finish(["A note."])

    return measure


def test_bench_writes_what_it_prints(tmp_path, monkeypatch):
    table = ResultTable("Planted", [{"ratio": 2.0}, {"ratio": 4.0}], ["A note."])
    monkeypatch.setattr(bench_passes, "bench_kernel", planted())
    markdown, data = tmp_path / "kernel.md", tmp_path / "kernel.json"
    result = run("bench", "kernel", "--markdown", markdown, "--json", data)
    assert result.exit_code == 0, result.output
    assert table.to_markdown() in result.stdout
    assert result.stderr.splitlines()[:2] == ["ratio 2", "ratio 4"]
    assert markdown.read_text() == table.to_markdown() + "\n"
    assert json.loads(data.read_text())[0]["rows"] == [{"ratio": 2.0}, {"ratio": 4.0}]


def test_bench_shows_a_row_before_the_next_one_is_measured(monkeypatch, capfd):
    seen = []

    def measure(report):
        report.start("Planted")
        report.add({"ratio": 2.0})
        seen.append(capfd.readouterr().err)
        return report.finish()

    monkeypatch.setattr(bench_passes, "bench_kernel", measure)
    study._measure(measure, [])
    assert seen == ["ratio 2\n"]


@pytest.mark.parametrize(
    ("section", "room", "name"),
    [
        ("m-step", bench_conic, "bench_first_m_steps"),
        ("fit", bench_conic, "bench_whole_fit"),
        ("kernel", bench_passes, "bench_kernel"),
    ],
)
def test_a_stopped_bench_keeps_the_rows_it_has_and_says_so(
    section, room, name, tmp_path, monkeypatch
):
    monkeypatch.setattr(room, name, planted(KeyboardInterrupt()))
    markdown, data = tmp_path / "table.md", tmp_path / "table.json"
    result = run("bench", section, "--markdown", markdown, "--json", data)
    assert result.exit_code == 130
    assert "| 2 |\n| > 3 |\n\nIncomplete: stopped after 1 of its rows." in result.stdout
    assert "Interrupted: the tables are in" in " ".join(result.stderr.split())
    assert markdown.read_text() in result.stdout
    assert json.loads(data.read_text())[0]["notes"] == ["Incomplete: stopped after 1 of its rows."]


def test_a_bench_that_fails_keeps_the_rows_it_has(tmp_path, monkeypatch):
    monkeypatch.setattr(bench_passes, "bench_kernel", planted(RuntimeError("out of luck")))
    result = run("bench", "kernel", "--markdown", tmp_path / "table.md")
    assert result.exit_code
    assert "Incomplete" in (tmp_path / "table.md").read_text()


def test_a_bench_stopped_before_its_first_row_writes_nothing(tmp_path, monkeypatch):
    def stopped(report):
        raise KeyboardInterrupt

    monkeypatch.setattr(bench_passes, "bench_scaling", stopped)
    result = run("bench", "scaling", "--markdown", tmp_path / "table.md")
    assert result.exit_code == 130
    assert "nothing was written" in " ".join(result.stderr.split())
    assert not list(tmp_path.iterdir())


def test_a_path_is_reported_row_by_row(monkeypatch):
    told, rows = [], []
    monkeypatch.setattr("seraph_cvx.experiments.bench_path.TASKS", {"iris": 10})
    monkeypatch.setattr("seraph_cvx.experiments.bench_path.REPEATS", 1)
    table = bench_path(Report(told.append, rows.append), seeds=(0,))
    assert told == ["iris, seed 0: path of 20"]
    assert list(table.rows) == rows
    assert rows[0]["largest gap"] < 1e-6


def test_a_proof_is_reported_beside_the_certificate(monkeypatch):
    monkeypatch.setattr("seraph_cvx.experiments.bench_proof.TASKS", {"iris": 10})
    (row,) = bench_proof(Report(), seeds=(0,)).rows
    assert row["proven gap"] <= 1e-7
    assert row["proven gap"] == pytest.approx(row["certified gap"], rel=0.1)


def test_data_that_is_not_there_is_a_row_that_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr("seraph_cvx.experiments.bench_proof.TASKS", {"ionosphere": 20})
    monkeypatch.setenv("SERAPH_CVX_DATA", str(tmp_path))
    (row,) = bench_proof(Report(), seeds=(0, 1)).rows
    assert row["proven gap"].startswith("not measured: ")


def test_a_stopped_fit_keeps_its_own_half(monkeypatch):
    """The conic half is stopped after its first iteration; what is drafted is the row so far."""
    alternate = bench_conic.alternate

    def stopped(pairs, solver="fista", callback=None, **settings):
        if solver == "fista":
            return alternate(pairs, **settings)
        callback(SimpleNamespace(number=1), None)
        raise KeyboardInterrupt

    monkeypatch.setattr(bench_conic, "alternate", stopped)
    report = Report()
    with pytest.raises(KeyboardInterrupt):
        bench_conic.bench_whole_fit(report, "iris")
    (row,) = report.table().rows
    assert row["own iterations"] > 1
    assert row["CLARABEL iterations"] == 1
    assert row["ratio"].startswith("> ")


def test_bench_refuses_an_unknown_section():
    assert run("bench", "everything").exit_code == 2


@pytest.mark.slow
def test_kernel_ratio_is_own_over_products():
    table = bench_passes.bench_kernel(Report(), n=300, m=8)
    assert [row["threads"] for row in table.rows] == [1, 2]
    for row in table.rows:
        assert row["own / products"] == pytest.approx(row["own (s)"] / row["products (s)"])


@pytest.mark.slow
def test_scaling_fits_an_exponent():
    table = bench_passes.bench_scaling(Report(), sizes=(200, 400), m=3)
    assert [row["n"] for row in table.rows] == [200, 400]
    assert "exponent in n" in table.notes[0]


def test_a_large_fit_counts_its_evaluations():
    (row,) = bench_passes.bench_large_fit(Report(), n=700, m=4).rows
    assert row["status"] == "certified"
    assert row["evaluations"] > row["iterations"] > 1
    assert row["gap"] <= 1e-6


@pytest.mark.slow
def test_own_m_step_against_conic_solvers():
    table = bench_conic.bench_first_m_steps(
        Report(), tasks=("balance",), seeds=(0,), time_limit=0.5
    )
    (row,) = table.rows
    assert row["fista to 1e-8 (s)"] < 10.0
    assert row["conic (s)"] == "> 0.5"


def test_ours_compiles_and_updates():
    times = bench_statement.time_ours("iris")
    assert 0.0 < times["again"] < times["first"]


def test_a_table_is_read_by_people_programs_and_pandas():
    table = ResultTable("T", [{"a": 1, "b": 0.5}, {"a": 2, "c": "x|y"}], ["note"])
    assert table.columns == ["a", "b", "c"]
    assert "| 2 |  | x\\|y |" in table.to_markdown()
    assert json.loads(table.to_json())["notes"] == ["note"]
    assert list(table.to_pandas().columns) == ["a", "b", "c"]
