"""`explain` and `bench`: they run, and their tables hold what they say."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from seraph_cvx import cli
from seraph_cvx.experiments import bench_speed, bench_statement
from seraph_cvx.result_table import ResultTable


def run(*arguments):
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


def ignore(text):
    """A progress report that nobody reads."""


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


def test_bench_writes_what_it_prints(tmp_path, monkeypatch):
    table = ResultTable("Planted", [{"ratio": 2.0}], ["A note."])
    monkeypatch.setattr(bench_speed, "bench_kernel", lambda tell: table)
    markdown, data = tmp_path / "kernel.md", tmp_path / "kernel.json"
    result = run("bench", "kernel", "--markdown", markdown, "--json", data)
    assert result.exit_code == 0, result.output
    assert "| ratio |" in result.output
    assert markdown.read_text() == table.to_markdown() + "\n"
    assert json.loads(data.read_text())[0]["rows"] == [{"ratio": 2.0}]


def test_bench_refuses_an_unknown_section():
    assert run("bench", "everything").exit_code == 2


def test_kernel_ratio_is_own_over_products():
    table = bench_speed.bench_kernel(ignore, n=300, m=8)
    assert [row["threads"] for row in table.rows] == [1, 2]
    for row in table.rows:
        assert row["own / products"] == pytest.approx(row["own (s)"] / row["products (s)"])


def test_scaling_fits_an_exponent():
    table = bench_speed.bench_scaling(ignore, sizes=(200, 400), m=3)
    assert [row["n"] for row in table.rows] == [200, 400]
    assert "exponent in n" in table.notes[0]


def test_a_large_fit_counts_its_evaluations():
    (row,) = bench_speed.bench_large_fit(ignore, n=700, m=4).rows
    assert row["status"] == "certified"
    assert row["evaluations"] > row["iterations"] > 1
    assert row["gap"] <= 1e-6


@pytest.mark.slow
def test_own_m_step_against_conic_solvers():
    table = bench_speed.bench_first_m_steps(ignore, tasks=("balance",), seeds=(0,), time_limit=0.5)
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
