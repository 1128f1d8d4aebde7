"""Evidence: `bench.py` and `two_versions.py` run on tiny input and write the rows they have."""

from __future__ import annotations

import re
from functools import partial

import bench
import numpy as np
import pytest
import two_versions
from command_line import words
from evidence import m_steps, measuring, passes
from evidence.measuring import Report, gaussian_classes
from evidence.passes import bench_sizes, bench_subsample
from reproduction_programs import run_bench

from seraph_cvx import MStepObjective, PairSet, certify, solve_m_step
from seraph_cvx.race.solvers import entrants

pytestmark = pytest.mark.once


def rows_of(measurement, *given, **options):
    return Report().measure(measurement, *given, **options).rows


@pytest.mark.parametrize("stop", [None, KeyboardInterrupt()])
def test_bench_shows_each_row_and_writes_what_it_prints_also_if_stopped(
    stop, tmp_path, monkeypatch
):
    def planted(report, **options):
        report.start("Planted")
        yield {"ratio": 2.0}
        if stop is not None:
            raise stop

    monkeypatch.setitem(bench.SECTIONS, "sampling", [planted])
    markdown = tmp_path / "s.md"
    result = run_bench("sampling", "--markdown", markdown)
    assert result.exit_code == (130 if stop else 0), result.output
    assert markdown.read_text().strip() in result.stdout
    assert ("Incomplete" in markdown.read_text()) == bool(stop)
    assert "| 2 |" in markdown.read_text()


def test_what_cannot_be_measured_is_answered_in_words(tmp_path, monkeypatch):
    result = run_bench("size", "--sizes", "900,50")
    assert (result.exit_code, "50: ten classes" in words(result.stderr)) == (2, True)
    monkeypatch.setenv("SERAPH_CVX_DATA", str(tmp_path))
    (row,) = rows_of(m_steps.bench_certificate, ["ionosphere"])
    assert re.match("not measured: .*ionosphere.csv", row["certified gap"])


@pytest.mark.slow
def test_each_measurement_has_its_rows_and_every_number_is_positive(monkeypatch):
    small = partial(measuring.load_sampling, n_points=20)
    monkeypatch.setattr(measuring, "load_sampling", small)
    rivals = {"factor": entrants(["L-BFGS-B"])}
    rows = rows_of(m_steps.bench_first_m_steps, ["iris"], (0,), 5.0, rivals)
    assert rows[0]["fastest factor"] == "L-BFGS-B/factor"
    rows += rows_of(m_steps.bench_certificate, ["iris"])
    rows += rows_of(passes.bench_face, sizes=(220,), m=3, rho=2)
    rows += rows_of(passes.bench_shares, sizes=(400,), m=3)
    assert len(rows) == 6
    for row in rows:
        assert all(0.0 < x < np.inf for x in row.values() if isinstance(x, float)), row


def test_a_fit_to_drawn_pairs_is_graded_over_all_of_them():
    whole, drawn = (
        rows_of(bench_sizes, sizes=(250,), m=3, unlabeled_pairs=k)[0] for k in (None, 1_000)
    )
    assert (whole["status"], drawn["status"]) == ("certified", "certified")
    assert whole["gap over all pairs"] <= passes.TOLERANCE < drawn["gap over all pairs"]
    draws = (500, 4_000)
    (row,) = rows_of(bench_subsample, draws, n=250, m=2, n_instances=1, n_samples=1)
    pairs = PairSet.from_labels(*gaussian_classes(250, 2, seed=0))
    few = [MStepObjective(pairs.sampled(k, random_state=0)) for k in draws]
    metrics = [solve_m_step(objective, tol=1e-9).metric for objective in few]
    gaps = [certify(MStepObjective(pairs), metric).relative_gap for metric in metrics]
    assert [row[f"k = {k}"] for k in draws] == pytest.approx(gaps, rel=1e-6)


@pytest.mark.slow
def test_two_checkouts_are_compared_row_by_row(repository, monkeypatch, capsys):
    """The same one twice."""
    monkeypatch.setattr(two_versions, "ROUNDS", 1)
    two_versions.compare("certificates", repository, repository, "1")
    *rows, last = capsys.readouterr().out.splitlines()
    assert sum("iris 0" in row for row in rows) == 2
    assert re.fullmatch(r"new / old: geometric mean [\d.]+, largest [\d.]+", last)
