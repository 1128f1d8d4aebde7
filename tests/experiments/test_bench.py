"""Evidence: `bench.py` runs on tiny input and writes the rows that it has."""

from __future__ import annotations

from functools import partial

import bench
import numpy as np
import pytest
from evidence import m_steps, measuring, passes
from evidence.measuring import Report
from reproduction_programs import run_bench

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

    monkeypatch.setitem(bench.SECTIONS, "many-points", [planted])
    markdown = tmp_path / "s.md"
    result = run_bench("many-points", "--markdown", markdown)
    assert result.exit_code == (130 if stop else 0), result.output
    assert markdown.read_text().strip() in result.stdout
    assert ("Incomplete" in markdown.read_text()) == bool(stop)
    assert "| 2 |" in markdown.read_text()


@pytest.mark.slow
def test_each_measurement_has_its_rows_and_every_number_is_positive(monkeypatch):
    small = partial(measuring.load_sampling, n_points=20)
    monkeypatch.setattr(measuring, "load_sampling", small)
    rivals = {"factor": entrants(["L-BFGS-B"])}
    rows = rows_of(m_steps.bench_first_m_steps, ["iris"], (0,), 5.0, rivals)
    assert rows[0]["fastest factor"] == "L-BFGS-B/factor"
    rows += rows_of(m_steps.bench_certificate, ["iris"])
    rows += rows_of(passes.bench_face, sizes=(220,), m=3, rho=2)
    assert len(rows) == 5
    for row in rows:
        assert all(0.0 < x < np.inf for x in row.values() if isinstance(x, float)), row
