"""The program that proves the optima of folders of problem files."""

from __future__ import annotations

import csv

import cvxpy as cp
import libraries
import pytest
from evidence.library_proofs import solver_for
from typer.testing import CliRunner

SDPA = "1\n1\n{order}\n1.0\n0 1 1 1 1.0\n1 1 1 1 1.0\n"
LP = """Minimize
 cost: 2 x + 3 y
Subject To
 sum: x + y = {sum}
Bounds
 0 <= x <= 10
 0 <= y <= 10
End
"""


def program(folder, *options):
    arguments = [folder, "--out", folder / "out", *options]
    return CliRunner().invoke(libraries.app, [str(argument) for argument in arguments])


@pytest.mark.slow
def test_each_file_is_solved_and_proved_and_finished_ones_are_kept(tmp_path):
    folders = [tmp_path / "netlib", tmp_path / "sdplib"]
    for folder in folders:
        folder.mkdir()
    (folders[0] / "true.lp").write_text(LP.format(sum=4.0))
    (folders[0] / "false.lp").write_text(LP.format(sum=21.0))
    (folders[1] / "small.dat-s").write_text(SDPA.format(order=2))
    assert program(tmp_path, "--only", "netlib/*").exit_code == 0
    answer = program(tmp_path, "--resume")
    assert answer.exit_code == 0
    assert "small.dat-s: proved" in answer.output
    assert "true.lp" not in answer.output
    with (tmp_path / "out" / "proven-intervals.csv").open(newline="") as file:
        rows = {row["file"]: row for row in csv.DictReader(file)}
    assert float(rows["true.lp"]["lower"]) == float(rows["true.lp"]["upper"]) == 8.0
    assert [rows[name]["outcome"] for name in ("false.lp", "true.lp", "small.dat-s")] == [
        "infeasible",
        "exact",
        "proved",
    ]
    assert float(rows["small.dat-s"]["lower"]) <= 1.0 <= float(rows["small.dat-s"]["upper"])
    assert "**3 of 3 files are proved**" in (tmp_path / "out" / "libraries.md").read_text()


def test_a_folder_without_such_files_is_named(tmp_path):
    answer = program(tmp_path)
    assert answer.exit_code == 2
    assert f"{tmp_path} has no such files" in " ".join(answer.output.split())


@pytest.mark.parametrize(("order", "letters"), [(49, 0), (50, 0), (2, 60_001)])
def test_large_semidefinite_files_are_for_sdpa_where_it_is_installed(order, letters, tmp_path):
    path = tmp_path / "one.dat-s"
    path.write_text('"a comment\n' + SDPA.format(order=order) + letters * " ")
    is_large = order >= 50 or letters > 60_000
    is_sdpa = is_large and "SDPA" in cp.installed_solvers()
    assert solver_for(path, None) == ("SDPA" if is_sdpa else "CLARABEL")
    assert solver_for(path, "SCS") == "SCS"
