"""Evidence: `bench.py` keeps and writes the rows it has, and they hold what they say."""

from __future__ import annotations

import json
import logging
import re
import sys
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace

import bench
import joblib
import numpy as np
import pytest
from command_line import run, words
from evidence import fit_passes, m_steps, measuring, passes
from evidence.measuring import Report, gaussian_classes
from evidence.passes import TOLERANCE, bench_sizes, bench_subsample
from joblib.parallel import get_active_backend
from reproduction_programs import reproduce, run_bench

from seraph_cvx import MStepObjective, PairSet, alternate, certify, solve_m_step
from seraph_cvx.display.result_table import ResultTable
from seraph_cvx.processes.dask_cluster import dask_cluster
from seraph_cvx.processes.isolation import ForkServer, Outcome
from seraph_cvx.processes.workers import ONE_THREAD
from seraph_cvx.race.attempt import Entrant
from seraph_cvx.race.m_step_race import PRELOAD_CONIC
from seraph_cvx.race.solvers import entrants

pytestmark = pytest.mark.once

M = 3
"""Features of the points of fits."""


def rows_of(measurement, *given, report=None, **options):
    return (report or Report()).measure(measurement, *given, **options).rows


# The program


@pytest.mark.parametrize(
    ("stop", "code"), [(None, 0), (KeyboardInterrupt(), 130), (RuntimeError("out of luck"), 2)]
)
def test_bench_shows_each_row_and_writes_what_it_prints_also_if_stopped(
    stop, code, tmp_path, monkeypatch
):
    def planted(report, **options):
        report.start("Planted")
        yield {"ratio": 2.0}
        if stop is not None:
            report.draft({"ratio": "> 3"})
            raise stop
        yield {"ratio": 4.0}
        report.note("A note.")

    monkeypatch.setitem(bench.SECTIONS, "kernel", [planted])
    markdown, data = tmp_path / "kernel.md", tmp_path / "kernel.json"
    result = run_bench("kernel", "--markdown", markdown, "--json", data)
    assert result.exit_code == code, result.output
    rows = [{"ratio": 2.0}, {"ratio": "> 3" if stop else 4.0}]
    note = "Incomplete: stopped after 1 of its rows." if stop else "A note."
    page = ResultTable("Planted", rows, [note]).to_markdown()
    assert page in result.stdout
    assert (
        result.stderr.splitlines()[: 1 if stop else 2] == ["ratio 2", "ratio 4"][: 1 if stop else 2]
    )
    assert markdown.read_text() == page + "\n"
    assert json.loads(data.read_text())[0]["rows"] == rows
    assert "the tables are in" in words(result.stderr)


def test_the_options_reach_the_bench(monkeypatch):
    asked = []
    options = ["--sizes", "500,900", "--place", "dask", "--unlabeled-pairs", 7]
    options += ["--scheduler", "tcp://a:1", "--time-limit", 5]

    def planted(report, **given):
        asked.append(given)
        return iter(())

    for section in ("size", "passes", "m-step", "kernel"):
        monkeypatch.setitem(bench.SECTIONS, section, [planted])
        assert run_bench(section, *options).exit_code == 0
    place = {"backend": "dask", "sizes": [500, 900]}
    drawn = {"unlabeled_pairs": 7, "scheduler": "tcp://a:1"}
    assert asked == [place | drawn, place, {"time_limit": 5.0}, {}]


NO_GPU = SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: False))


@pytest.mark.parametrize(
    ("arguments", "planted", "said"),
    [
        (["everything"], {}, "everything"),
        (["size", "--sizes", "ten"], {}, "'ten': write integers, such as 1000,10000"),
        (["size", "--sizes", "900,50"], {}, "50: ten classes"),
        (["compile", "--markdown", "x.txt"], {}, ".md"),
        (["passes", "--place", "dask"], {}, "on cpu or cuda, not on 'dask'"),
        (["size", "--place", "dask"], {"distributed": None}, 'pip install "seraph-cvx[dask]"'),
        (["size", "--place", "cuda"], {"torch": None}, "pip install torch"),
        (["size", "--place", "cuda"], {"torch": NO_GPU}, "needs a CUDA device"),
    ],
)
def test_what_cannot_be_measured_is_answered_in_words(arguments, planted, said, monkeypatch):
    for name, module in planted.items():
        monkeypatch.setitem(sys.modules, name, module)
    result = run_bench(*arguments)
    assert result.exit_code == 2
    assert said in words(result.stderr)
    assert "bug" not in result.stderr


def test_work_that_never_started_has_kept_nothing(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "distributed", None)
    rest = ("--out", tmp_path / "out", "--scheduler", "local")
    for result in (
        run("compare", "--suite", "tiny", *rest),
        reproduce("table2", "--tasks", "iris", *rest),
    ):
        assert result.exit_code == 2
        assert "Already done" not in words(result.stderr)


# Each measurement


@pytest.fixture
def small_samplings(monkeypatch):
    """Samplings of 20 points."""
    small = partial(measuring.load_sampling, n_points=20)
    monkeypatch.setattr(measuring, "load_sampling", small)


IRIS = {"tasks": ["iris"], "seeds": (0,)}
SMALL = {
    m_steps.bench_overhead: (2, {"iterations": 2}),
    m_steps.bench_path: (1, IRIS | {"repeats": 1}),
    m_steps.bench_certificate: (2, IRIS),
    m_steps.bench_proof: (1, IRIS),
    passes.bench_face: (2, {"sizes": (220,), "m": M, "rho": 2}),
    passes.bench_shares: (1, {"sizes": (400,), "m": M}),
    fit_passes.bench_fit_passes: (6, {"sizes": (200,), "n_seeds": 1}),
    passes.bench_startup: (4, {"rounds": 1}),
    passes.bench_kernel: (2, {"n": 300, "m": 8}),
    passes.bench_scaling: (2, {"sizes": (200, 400), "m": 3}),
}
"""How many rows small measurements have, and their options."""

SLOW = (passes.bench_kernel, passes.bench_scaling, passes.bench_startup)


@pytest.mark.parametrize(
    "measurement",
    [pytest.param(one, marks=[pytest.mark.slow] if one in SLOW else []) for one in SMALL],
)
def test_each_measurement_shows_its_rows_and_every_number_is_positive(
    measurement, small_samplings, monkeypatch
):
    shown = []
    n_rows, options = SMALL[measurement]
    with ForkServer([passes.__name__]) as server:
        monkeypatch.setattr(passes, "run_isolated", server.run)
        assert rows_of(measurement, report=Report(show=shown.append), **options) == shown
    assert len(shown) == n_rows
    for row in shown:
        numbers = {k: v for k, v in row.items() if isinstance(v, float) and k != "extra MiB"}
        assert all(0.0 < value < np.inf for value in numbers.values()), numbers
        certified = ("certified gap", "proven gap", "largest gap")
        assert all(row[column] <= 1e-5 for column in certified if column in row)
        if measurement is passes.bench_shares:
            assert sum(row[part] for part in (*passes.SUMS, "all else")) == pytest.approx(100.0)


@pytest.mark.parametrize(
    ("measurement", "column"),
    [
        (m_steps.bench_proof, "proven gap"),
        (m_steps.bench_path, "start"),
        (partial(m_steps.bench_first_m_steps, rivals={}), "ratio"),
    ],
)
def test_data_that_is_not_there_is_a_row_that_says_so(measurement, column, monkeypatch, tmp_path):
    monkeypatch.setenv("SERAPH_CVX_DATA", str(tmp_path))
    (row,) = rows_of(measurement, tasks=["ionosphere"], seeds=(0, 1))
    assert row["task"] == "ionosphere"
    assert re.match("not measured: .*ionosphere.csv", row[column])


# M-steps


def test_a_whole_fit_is_timed_to_the_end_or_is_a_bound(small_samplings, monkeypatch):
    """A limit of no seconds stops CLARABEL after its first iteration; so does Ctrl-C."""
    whole_fit = partial(rows_of, m_steps.bench_whole_fit, "iris")
    (whole,) = whole_fit(time_limit=60.0)
    assert min(whole["CLARABEL iterations"], whole["own iterations"]) > 1
    assert whole["ratio"] == whole["CLARABEL (s)"] / whole["own (s)"]
    (cut,) = whole_fit(time_limit=0.0)

    def stopped(pairs, solver="newton", callback=None, **settings):
        if solver == "newton":
            return alternate(pairs, **settings)
        callback(SimpleNamespace(number=1), None)
        raise KeyboardInterrupt

    monkeypatch.setattr(m_steps, "alternate", stopped)
    report = Report()
    with pytest.raises(KeyboardInterrupt):
        whole_fit(report=report)
    for row in (cut, *report.table().rows):
        assert row["CLARABEL iterations"] == 1
        assert (row["CLARABEL (s)"][:2], row["ratio"][:2]) == ("> ", "> ")
        assert row["own iterations"] > 1


LADDER = {
    "A": [Outcome("memory limit", None, "", 1.0)],
    "B": [(2.0, 1e-3), (3.0, 1e-5)],
    "C": [(9.0, 1e-2)],
    "D": [(0.5, 1e-4)] * 5,
    "E": [(0.25, 1e-6)],
}
"""By solver: seconds and true gap of each rung that it climbs."""


def test_the_fastest_of_a_kind_is_the_first_rung_that_is_truly_within_the_gap(
    small_samplings, monkeypatch
):
    """One dies, one gets there on its second rung, one is too slow to go on, one never does."""
    asked, rungs = [], {name: iter(outcomes) for name, outcomes in LADDER.items()}

    def climb(function, name, seed, entrant, tol, limit, time_limit):
        asked.append((entrant.label, tol, limit))
        rung = next(rungs[entrant.label])
        return rung if isinstance(rung, Outcome) else Outcome("done", rung, "", rung[0])

    server = nullcontext(SimpleNamespace(run=climb))
    monkeypatch.setattr(m_steps, "ForkServer", lambda modules, environment: server)
    solvers = {name: Entrant(name, "", "module:function") for name in LADDER}
    rivals = {"conic": [solvers[name] for name in "ABCD"], "factor": [solvers["E"]]}
    (row,) = rows_of(m_steps.bench_first_m_steps, ["iris"], (0,), 60.0, rivals)
    own = row["newton to 1e-8 (s)"]
    assert (row["fastest conic"], row["conic (s)"], row["conic / newton"]) == ("B", 3.0, 3.0 / own)
    assert (row["fastest factor"], row["factor (s)"], row["ratio"]) == ("E", 0.25, 0.25 / own)
    labels, tolerances, limits = zip(*asked, strict=True)
    assert "".join(labels) == "ABBCDDDDDE"
    assert tolerances[4:9] == (1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
    assert list(limits) == [60.0] * 3 + [3.0] * 6 + [60.0]


@pytest.mark.slow
def test_own_m_step_against_rivals(monkeypatch):
    """CLARABEL does not get there in the time; L-BFGS-B does."""
    rivals = {"conic": entrants(["CLARABEL/dual"]), "factor": entrants(["L-BFGS-B"])}
    with ForkServer([m_steps.__name__, *PRELOAD_CONIC], ONE_THREAD) as server:
        monkeypatch.setattr(m_steps, "ForkServer", lambda *_: nullcontext(server))
        (row,) = rows_of(m_steps.bench_first_m_steps, ["balance"], (0,), 0.5, rivals)
    assert row["newton to 1e-8 (s)"] < 10.0
    assert row["conic (s)"] == "> 0.5"
    assert row["fastest factor"] == "L-BFGS-B/factor"
    assert row["ratio"] == row["factor / newton"] == row["factor (s)"] / row["newton to 1e-8 (s)"]


def test_a_rivals_run_is_graded_by_the_best_bound_known(small_samplings, monkeypatch):
    (scs,) = entrants(["SCS/dual"])
    loose, tight = (m_steps.solve_once("iris", 0, scs, tol, 30.0)[1] for tol in (1e-2, 1e-7))
    assert -1e-9 <= tight <= 1e-6 < loose
    objective = MStepObjective(measuring.task_pairs("iris"))
    bound = m_steps.best_lower_bound(objective)
    other = certify(objective, solve_m_step(objective, tol=1e-6).metric)
    assert bound <= other.primal_value  # proven both; a computed value may be below the optimum
    assert other.dual_value <= bound + 1e-10 * max(1.0, bound)  # its gap, at most
    for name, solver in (("fista", "fista"), ("newton_method", "newton")):
        poor = SimpleNamespace(
            solver=solver, relative_gap=1e-7, seconds=1.0, certificate_seconds=0.1
        )
        monkeypatch.setattr(m_steps, name, lambda objective, tol, answer=poor: answer)
        with pytest.raises(RuntimeError, match=f"{solver} is not certified on iris, seed 3"):
            rows_of(m_steps.bench_first_m_steps, ["iris"], (3,), rivals={})


def test_compilation_is_told_as_ratios_to_ours_or_is_a_bound(small_samplings, monkeypatch):
    (cut,) = rows_of(m_steps.bench_compilation, 0.05, ["iris"])
    assert re.fullmatch(r"> \d+ \(time limit\)", cut["textbook, q Parameters (s)"])
    assert re.fullmatch(r"> \d+", cut["first: q Parameters / ours"])
    done = Outcome("done", 6.0, "", 7.0)
    monkeypatch.setattr(m_steps, "run_isolated", lambda *a, **limits: done)
    (row,) = rows_of(m_steps.bench_compilation, names=["iris"])
    ours, constant = row["ours first (s)"], row["textbook, q constant (s)"]
    assert row["textbook, q Parameters (s)"] == 6.0
    assert row["first: q Parameters / ours"] == 6.0 / ours
    assert row["first: q constant / ours"] == constant / ours
    assert row["again: textbook / ours"] == constant / row["ours again (s)"]


def test_answers_show_the_solvers_word_beside_the_truth(small_samplings):
    rows = rows_of(m_steps.bench_answers, names=["iris"])
    assert [row["solver"] for row in rows] == ["newton", "CLARABEL", "CLARABEL", "SCS", "SCS"]
    for row in rows:
        assert -1e-9 <= row["true gap"] <= row["proved gap"] + 1e-9
        assert (row["status"] == "certified") == (row["proved gap"] <= 1e-6)
        assert (row["compile (s)"] > 0.0) == (row["solver"] != "newton")


# Passes and fits


def test_the_exponent_in_m_is_the_slope_of_the_times_or_why_there_are_none(monkeypatch):
    """Passes whose seconds are 2 m^1.5, and such as do not come back."""

    def isolated(function, n, m, time_limit):
        return Outcome("done", (2.0 * m**1.5, 0), "", 1.0) if m else crashed

    crashed = Outcome("crashed", None, "the process ended by signal 9", 1.0)
    monkeypatch.setattr(passes, "run_isolated", isolated)
    table = Report().measure(passes.bench_dimension, dimensions=(4, 8, 16), n=50)
    assert [(row["m"], row["n"]) for row in table.rows] == [(4, 50), (8, 50), (16, 50)]
    assert table.notes == ["Fitted exponent in m: 1.50."]
    with pytest.raises(RuntimeError, match=r"n = 300, m = 0: crashed\. the process ended by"):
        rows_of(passes.bench_scaling, sizes=(300,), m=0)


def measured(backend="cpu", n=250, report=None, **settings):
    """The row of one small fit."""
    (row,) = rows_of(bench_sizes, backend, report=report, sizes=(n,), m=M, **settings)
    return row


def test_a_size_is_a_row_with_the_numbers_of_its_fit():
    row = measured()
    pairs = PairSet.from_labels(*gaussian_classes(250, M))
    fit = alternate(pairs, tol=TOLERANCE, m_step_tol=TOLERANCE)
    evaluations = sum(step.evaluations for step in fit.history)
    assert row["pairs"] == 250 * 249 // 2
    assert row["J"] == pytest.approx(fit.history[-1].descent_value, rel=1e-9)
    assert (row["iterations"], row["evaluations"]) == (len(fit.history), evaluations)
    assert row["gap over all pairs"] <= TOLERANCE
    assert 0.0 < row["seconds / evaluation"] * evaluations <= row["seconds"]
    assert row["peak MiB"] > 10.0


def test_a_fit_to_drawn_pairs_is_graded_over_all_of_them():
    few, many = (measured(unlabeled_pairs=k) for k in (1_000, 20_000))
    assert (few["drawn"], many["drawn"]) == (1_000, 20_000)
    assert few["gap over all pairs"] > many["gap over all pairs"] > TOLERANCE
    for row in (few, many):
        assert row["pairs"] == 250 * 249 // 2
        assert row["status"] == "certified"  # of the drawn pairs
        assert 0.0 < row["fit alone (s)"] < row["seconds"]


def test_a_fit_stopped_in_its_midst_leaves_how_far_it_came(monkeypatch):
    def stopped(pairs, callback, **settings):
        def stop_at_the_third(step, metric):
            if step.number == 3:
                raise KeyboardInterrupt
            callback(step, metric)

        return alternate(pairs, callback=stop_at_the_third, **settings)

    monkeypatch.setattr(passes, "alternate", stopped)
    report = Report()
    with pytest.raises(KeyboardInterrupt):
        measured(report=report)
    (row,) = report.table().rows
    assert (row["n"], row["iterations"]) == (250, 2)


def test_a_gap_of_drawn_pairs_is_the_certificate_of_the_whole_m_step():
    draws = (500, 4_000)
    (row,) = rows_of(bench_subsample, draws, n=250, m=2, n_instances=1, n_samples=1)
    pairs = PairSet.from_labels(*gaussian_classes(250, 2, seed=0))
    drawn = [MStepObjective(pairs.sampled(k, random_state=0)) for k in draws]
    metrics = [solve_m_step(objective, tol=1e-9).metric for objective in drawn]
    gaps = [certify(MStepObjective(pairs), metric).relative_gap for metric in metrics]
    assert [row[f"k = {k}"] for k in draws] == pytest.approx(gaps, rel=1e-6)
    assert row["exponent of k"] == pytest.approx(np.log(gaps[1] / gaps[0]) / np.log(8.0))


def test_the_memory_of_a_fit_on_a_gpu_is_that_of_the_gpu_since_its_start(monkeypatch):
    """A planted torch: its arrays are NumPy's, and its memory is counted from the reset on."""
    events = []
    cuda = SimpleNamespace(
        is_available=lambda: True,
        reset_peak_memory_stats=lambda: events.append("reset"),
        max_memory_allocated=lambda: 7 * 2**20 if events == ["cuda", "reset"] else 0,
    )

    def asarray(X, device):
        events.append(device)
        return X

    torch = SimpleNamespace(asarray=asarray, cuda=cuda, Tensor=type("Tensor", (), {}))
    monkeypatch.setitem(sys.modules, "torch", torch)
    row = measured("cuda")
    assert (row["peak MiB"], row["status"]) == (7.0, "certified")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_fit_on_a_cluster_is_the_fit_on_this_machine():
    """On two processes that run already, and are left running."""
    pytest.importorskip("distributed", reason="dask is not installed")
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    local, seen = measured(n=1_100), set()
    report = Report(lambda text: seen.add(type(get_active_backend()[0]).__name__))
    with dask_cluster() as client:
        with joblib.parallel_config(backend="sequential"):
            row = measured("dask", n=1_100, scheduler=client.scheduler.address, report=report)
        assert client.submit(sum, (1, 2)).result() == 3
    assert seen == {"DaskDistributedBackend"}
    for key in ("n", "pairs", "iterations", "evaluations", "status"):
        assert row[key] == local[key]
    assert row["J"] == pytest.approx(local["J"], rel=1e-10)
