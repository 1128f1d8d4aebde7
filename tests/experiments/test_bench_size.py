"""Evidence: the bench of sizes and of drawn pairs counts right, wherever its sums are made."""

from __future__ import annotations

import logging
import sys
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from command_line import run, words
from evidence.bench import size as bench_size
from evidence.bench.parts import bench_face, bench_shares
from evidence.bench.report import Report
from evidence.bench.size import (
    ENOUGH,
    bench_sizes,
    bench_subsample,
    gaussian_classes,
)
from joblib.parallel import get_active_backend
from reproduction_programs import reproduce, run_bench

from seraph_cvx import MStepObjective, PairSet, alternate, certify, solve_m_step
from seraph_cvx.processes.dask_cluster import dask_cluster

M = 3


def measured(backend="cpu", n=250, tell=None, **settings):
    """The row of one small fit."""
    (row,) = bench_sizes(Report(tell), backend, sizes=(n,), m=M, **settings).rows
    return row


def joblib_backend():
    return type(get_active_backend()[0]).__name__


def test_every_size_is_a_row_with_the_numbers_of_its_fit():
    told = []
    rows = bench_sizes(Report(told.append), sizes=(220, 300), m=M).rows
    assert [row["n"] for row in rows] == [220, 300]
    assert [text for text in told if ":" not in text] == ["n = 220", "n = 300"]
    for row in rows:
        run = alternate(
            PairSet.from_labels(*gaussian_classes(row["n"], M)), tol=ENOUGH, m_step_tol=ENOUGH
        )
        evaluations = sum(step.evaluations for step in run.history)
        assert row["pairs"] == row["n"] * (row["n"] - 1) // 2
        assert row["J"] == pytest.approx(run.history[-1].descent_value, rel=1e-9)
        assert (row["iterations"], row["evaluations"]) == (len(run.history), evaluations)
        assert row["status"] == "certified"
        assert row["gap over all pairs"] <= ENOUGH
        assert 0.0 < row["seconds / evaluation"] * evaluations <= row["seconds"]
        assert row["in full passes"] > 1.0
        assert row["peak MiB"] > 10.0
        assert "drawn" not in row


def test_a_fit_to_drawn_pairs_is_graded_over_all_of_them():
    few, many = (measured(unlabeled_pairs=k) for k in (1_000, 20_000))
    assert (few["drawn"], many["drawn"]) == (1_000, 20_000)
    assert few["pairs"] == many["pairs"] == 250 * 249 // 2
    assert few["gap over all pairs"] > many["gap over all pairs"] > ENOUGH
    for row in (few, many):
        assert row["status"] == "certified"  # of the drawn pairs
        assert 0.0 < row["fit alone (s)"] < row["seconds"]


def test_a_fit_stopped_in_its_midst_leaves_how_far_it_came(monkeypatch):
    def stopped(pairs, callback, **settings):
        def stop_at_the_third(step, metric):
            if step.number == 3:
                raise KeyboardInterrupt
            callback(step, metric)

        return alternate(pairs, callback=stop_at_the_third, **settings)

    monkeypatch.setattr(bench_size, "alternate", stopped)
    report = Report()
    with pytest.raises(KeyboardInterrupt):
        bench_sizes(report, sizes=(250,), m=M)
    (row,) = report.table().rows
    assert (row["n"], row["iterations"]) == (250, 2)
    assert report.table().notes == ["Incomplete: stopped after 0 of its rows."]


def test_a_gap_of_drawn_pairs_is_the_certificate_of_the_whole_m_step():
    (row,) = bench_subsample(
        Report(), draws=(500, 4_000), n=250, m=2, n_instances=1, n_samples=1
    ).rows
    pairs = PairSet.from_labels(*gaussian_classes(250, 2, seed=0))
    for k in (500, 4_000):
        drawn = MStepObjective(pairs.sampled(k, random_state=0))
        metric = solve_m_step(drawn, tol=1e-9).metric
        whole = certify(MStepObjective(pairs), metric)
        assert row[f"k = {k}"] == pytest.approx(whole.relative_gap, rel=1e-6)


@pytest.mark.slow
def test_the_exponent_of_sampling_is_the_slope_of_the_mean_gaps():
    told, draws = [], (500, 2_000, 8_000)
    table = bench_subsample(
        Report(told.append), draws=draws, n=250, m=2, n_instances=2, n_samples=2
    )
    assert told == [f"instance {seed}, k = {k}" for seed in (0, 1) for k in draws]
    for row in table.rows:
        gaps = [row[f"k = {k}"] for k in draws]
        assert gaps == sorted(gaps, reverse=True)
        x, y = np.log(draws) - np.log(draws).mean(), np.log(gaps)
        assert row["exponent of k"] == pytest.approx(x @ y / (x @ x))
    assert [row["instance"] for row in table.rows] == [0, 1]


def test_an_unknown_place_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="Unknown backend 'moon': use one of cpu, cuda, dask"):
        bench_sizes(Report(), "moon", sizes=(200,), m=M)


def test_the_memory_of_a_fit_on_a_gpu_is_that_of_the_gpu_since_its_start(monkeypatch):
    """A planted torch: its arrays are NumPy's, and its memory is counted from the reset on."""
    events = []
    cuda = SimpleNamespace(
        is_available=lambda: True,
        reset_peak_memory_stats=lambda: events.append("reset"),
        max_memory_allocated=lambda: 7 * 2**20 if events == ["moved to cuda", "reset"] else 0,
    )

    def asarray(X, device):
        events.append(f"moved to {device}")
        return X

    torch = SimpleNamespace(asarray=asarray, cuda=cuda, Tensor=type("Tensor", (), {}))
    monkeypatch.setitem(sys.modules, "torch", torch)
    row = measured("cuda")
    assert row["peak MiB"] == 7.0
    assert row["status"] == "certified"


def test_a_cluster_needs_the_extra_and_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r'pip install "seraph-cvx\[dask\]"'):
        measured("dask")


@pytest.mark.parametrize(
    ("backend", "planted", "cure"),
    [
        ("dask", {"distributed": None}, 'pip install "seraph-cvx[dask]"'),
        ("cuda", {"torch": None}, "pip install torch"),
        (
            "cuda",
            {"torch": SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: False))},
            "needs a CUDA device",
        ),
    ],
)
def test_what_is_missing_is_no_fault_of_the_command(monkeypatch, backend, planted, cure):
    for name, module in planted.items():
        monkeypatch.setitem(sys.modules, name, module)
    result = run_bench("size", "--place", backend, "--sizes", "200")
    assert result.exit_code == 2
    assert cure in words(result.stderr)
    assert "bug" not in result.stderr


def test_a_race_that_never_started_has_kept_nothing(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "distributed", None)
    rest = ("--out", tmp_path / "out", "--scheduler", "local")
    for result in (
        run("compare", "--suite", "tiny", *rest),
        reproduce("table2", "--tasks", "iris", *rest),
    ):
        assert result.exit_code == 2
        assert "Already done" not in words(result.stderr)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_fit_on_a_cluster_is_the_fit_on_this_machine():
    """On two processes started for it, then on a cluster that runs already and is left running."""
    pytest.importorskip("distributed", reason="dask is not installed")
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    local, seen = measured(n=1_200), []
    same = ("n", "pairs", "iterations", "evaluations", "status")

    def tell(text):
        seen.append(joblib_backend())

    with dask_cluster() as client:
        assert len(client.scheduler_info()["workers"]) == 2
        with joblib.parallel_config(backend="sequential"):
            address = client.scheduler.address
            running = measured("dask", n=1_200, tell=tell, scheduler=address)
        assert client.submit(sum, (1, 2)).result() == 3
    assert joblib_backend() != "DaskDistributedBackend"
    started = measured("dask", n=1_200, tell=tell)
    assert set(seen) == {"DaskDistributedBackend"}
    for row in (running, started):
        assert {key: row[key] for key in same} == {key: local[key] for key in same}
        assert row["J"] == pytest.approx(local["J"], rel=1e-10)


def test_passes_of_both_functions_are_timed():
    rows = bench_face(Report(), sizes=(220,), m=M, rho=2).rows
    assert [(row["n"], row["function"]) for row in rows] == [(220, "(11)"), (220, "J")]
    assert all(row[part] > 0.0 for row in rows for part in ("slope", "gradient", "product"))
    with pytest.raises(ValueError, match="on cpu or cuda, not on 'dask'"):
        bench_face(Report(), "dask")


def test_the_shares_of_a_fit_are_those_of_its_sums_and_of_all_else():
    (row,) = bench_shares(Report(), sizes=(400,), m=M).rows
    parts = ("values and slopes", "products", "gradients", "certificate and moments", "all else")
    assert all(0.0 < row[part] < 100.0 for part in parts)
    assert sum(row[part] for part in parts) == pytest.approx(100.0)
    with pytest.raises(ValueError, match="on cpu or cuda, not on 'dask'"):
        bench_shares(Report(), "dask")
