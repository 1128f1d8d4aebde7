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
from evidence import m_steps, measuring, passes
from evidence.measuring import Report, gaussian_classes
from evidence.passes import TOLERANCE, bench_sizes, bench_subsample
from joblib.parallel import get_active_backend
from reproduction_programs import reproduce, run_bench

from seraph_cvx import MStepObjective, PairSet, alternate, certify, solve_m_step
from seraph_cvx.display.result_table import ResultTable
from seraph_cvx.processes.dask_cluster import dask_cluster
from seraph_cvx.processes.isolation import Outcome
from seraph_cvx.race.attempt import Entrant
from seraph_cvx.race.solvers import entrants

M = 3
"""Features of the points of fits."""

# The program


def plant(monkeypatch, section, stop=None):
    """A measurement of two rows in place of a section's, stopped after the first one by `stop`."""

    def measure(report, **options):
        report.start("Planted")
        report.tell("planting")
        report.add({"ratio": 2.0})
        if stop is not None:
            report.draft({"ratio": "> 3"})
            raise stop
        report.add({"ratio": 4.0})
        return report.finish("A note.")

    monkeypatch.setitem(bench.SECTIONS, section, [measure])


def test_bench_writes_what_it_prints_and_shows_each_row(tmp_path, monkeypatch):
    table = ResultTable("Planted", [{"ratio": 2.0}, {"ratio": 4.0}], ["A note."])
    plant(monkeypatch, "kernel")
    markdown, data = tmp_path / "kernel.md", tmp_path / "kernel.json"
    result = run_bench("kernel", "--markdown", markdown, "--json", data)
    assert result.exit_code == 0, result.output
    assert table.to_markdown() in result.stdout
    assert result.stderr.splitlines()[:2] == ["ratio 2", "ratio 4"]
    assert markdown.read_text() == table.to_markdown() + "\n"
    assert json.loads(data.read_text())[0]["rows"] == [{"ratio": 2.0}, {"ratio": 4.0}]


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), RuntimeError("out of luck")])
def test_a_stopped_bench_keeps_the_rows_it_has_and_says_so(stop, tmp_path, monkeypatch):
    plant(monkeypatch, "kernel", stop)
    markdown = tmp_path / "table.md"
    result = run_bench("kernel", "--markdown", markdown)
    assert "| 2 |\n| > 3 |\n\nIncomplete: stopped after 1 of its rows." in result.stdout
    assert markdown.read_text() in result.stdout
    assert "the tables are in" in words(result.stderr)
    assert result.exit_code == (130 if isinstance(stop, KeyboardInterrupt) else 2)


def test_the_options_reach_the_bench(monkeypatch):
    asked = []
    for section in ("size", "passes", "m-step", "kernel"):
        monkeypatch.setitem(bench.SECTIONS, section, [lambda report, **given: asked.append(given)])
    options = ["--sizes", "500,900", "--place", "dask", "--unlabeled-pairs", 7]
    options += ["--scheduler", "tcp://a:1", "--time-limit", 5]
    for section in ("size", "passes", "m-step", "kernel"):
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


SMALL = {
    "overhead": partial(m_steps.bench_overhead, iterations=2),
    "path": partial(m_steps.bench_path, tasks=["iris"], seeds=(0,), repeats=1),
    "certificate": partial(m_steps.bench_certificate, tasks=["iris"]),
    "proof": partial(m_steps.bench_proof, tasks=["iris"], seeds=(0,)),
    "face": partial(passes.bench_face, sizes=(220,), m=M, rho=2),
    "shares": partial(passes.bench_shares, sizes=(400,), m=M),
    "large": partial(passes.bench_large_fit, n=700, m=4),
    "startup": partial(passes.bench_startup, rounds=1),
    "kernel": partial(passes.bench_kernel, n=300, m=8),
    "scaling": partial(passes.bench_scaling, sizes=(200, 400), m=3),
}
SMALL_ROWS = {"overhead": 2, "certificate": 2, "face": 2, "startup": 4, "kernel": 2, "scaling": 2}
SLOW = ("kernel", "scaling")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in SMALL],
)
def test_each_measurement_shows_its_rows_and_every_number_is_positive(name, small_samplings):
    shown = []
    table = SMALL[name](Report(show=shown.append))
    assert list(table.rows) == shown
    assert len(shown) == SMALL_ROWS.get(name, 1)
    for row in shown:
        numbers = {k: v for k, v in row.items() if isinstance(v, float) and k != "extra MiB"}
        assert all(0.0 < value < np.inf for value in numbers.values()), numbers
        certified = ("certified gap", "proven gap", "largest gap", "gap")
        assert all(row[column] <= 1e-5 for column in certified if column in row)
        if name == "shares":
            assert sum(row[part] for part in (*passes.SUMS, "all else")) == pytest.approx(100.0)


# M-steps


@pytest.mark.parametrize(
    ("measure", "column"),
    [
        (m_steps.bench_proof, "proven gap"),
        (m_steps.bench_path, "start"),
        (partial(m_steps.bench_first_m_steps, rivals={}), "ratio"),
    ],
)
def test_data_that_is_not_there_is_a_row_that_says_so(measure, column, monkeypatch, tmp_path):
    monkeypatch.setenv("SERAPH_CVX_DATA", str(tmp_path))
    (row,) = measure(Report(), tasks=["ionosphere"], seeds=(0, 1)).rows
    assert row["task"] == "ionosphere"
    assert row[column].startswith("not measured: ")
    assert "ionosphere.csv" in row[column]


def test_a_whole_fit_is_timed_to_the_end_or_is_a_bound(small_samplings, monkeypatch):
    """A limit of no seconds stops CLARABEL after its first iteration; so does Ctrl-C."""
    (whole,) = m_steps.bench_whole_fit(Report(), "iris", time_limit=60.0).rows
    assert min(whole["CLARABEL iterations"], whole["own iterations"]) > 1
    assert whole["ratio"] == whole["CLARABEL (s)"] / whole["own (s)"]
    (cut,) = m_steps.bench_whole_fit(Report(), "iris", time_limit=0.0).rows

    def stopped(pairs, solver="fista", callback=None, **settings):
        if solver == "fista":
            return alternate(pairs, **settings)
        callback(SimpleNamespace(number=1), None)
        raise KeyboardInterrupt

    monkeypatch.setattr(m_steps, "alternate", stopped)
    report = Report()
    with pytest.raises(KeyboardInterrupt):
        m_steps.bench_whole_fit(report, "iris")
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
    asked = []

    def climb(function, name, seed, entrant, tol, limit, time_limit):
        asked.append((entrant.label, tol, limit))
        rung = LADDER[entrant.label][sum(a[0] == entrant.label for a in asked) - 1]
        return rung if isinstance(rung, Outcome) else Outcome("done", rung, "", rung[0])

    server = nullcontext(SimpleNamespace(run=climb))
    monkeypatch.setattr(m_steps, "ForkServer", lambda modules, environment: server)
    solvers = {name: Entrant(name, "", "module:function") for name in LADDER}
    rivals = {"conic": [solvers[name] for name in "ABCD"], "factor": [solvers["E"]]}
    (row,) = m_steps.bench_first_m_steps(Report(), ["iris"], (0,), 60.0, rivals).rows
    own = row["fista to 1e-8 (s)"]
    assert (row["fastest conic"], row["conic (s)"], row["conic / fista"]) == ("B", 3.0, 3.0 / own)
    assert (row["fastest factor"], row["factor (s)"], row["ratio"]) == ("E", 0.25, 0.25 / own)
    assert [label for label, _, _ in asked] == list("ABBCDDDDDE")
    assert [tol for _, tol, _ in asked[4:9]] == [1e-5, 1e-6, 1e-7, 1e-8, 1e-9]
    assert [limit for _, _, limit in asked] == [60.0] * 3 + [3.0] * 6 + [60.0]


@pytest.mark.slow
def test_own_m_step_against_rivals():
    """CLARABEL does not get there in the time; L-BFGS-B does."""
    rivals = {"conic": entrants(["CLARABEL/dual"]), "factor": entrants(["L-BFGS-B"])}
    (row,) = m_steps.bench_first_m_steps(Report(), ["balance"], (0,), 0.5, rivals).rows
    assert row["fista to 1e-8 (s)"] < 10.0
    assert row["conic (s)"] == "> 0.5"
    assert row["fastest factor"] == "L-BFGS-B/factor"
    assert row["ratio"] == row["factor / fista"] == row["factor (s)"] / row["fista to 1e-8 (s)"]


def test_a_rivals_run_is_graded_by_the_best_bound_known(small_samplings, monkeypatch):
    (scs,) = entrants(["SCS/dual"])
    loose, tight = (m_steps.solve_once("iris", 0, scs, tol, 30.0)[1] for tol in (1e-2, 1e-7))
    assert -1e-9 <= tight <= 1e-6 < loose
    objective = MStepObjective(measuring.task_pairs("iris"))
    bound = m_steps.best_lower_bound(objective)
    other = certify(objective, solve_m_step(objective, tol=1e-6).metric)
    assert bound <= other.primal_value  # proven both; a computed value may be below the optimum
    assert other.dual_value <= bound + 1e-10 * max(1.0, bound)  # its gap, at most
    poor = SimpleNamespace(relative_gap=1e-7, seconds=1.0, certificate_seconds=0.1)
    monkeypatch.setattr(m_steps, "fista", lambda objective, **settings: poor)
    with pytest.raises(RuntimeError, match="fista is not certified on iris, seed 3"):
        m_steps.bench_first_m_steps(Report(), ["iris"], (3,), rivals={})


def test_compilation_is_told_as_ratios_to_ours_or_is_a_bound(small_samplings, monkeypatch):
    (cut,) = m_steps.bench_compilation(Report(), 0.05, ["iris"]).rows
    assert re.fullmatch(r"> \d+ \(time limit\)", cut["textbook, q Parameters (s)"])
    assert re.fullmatch(r"> \d+", cut["first: q Parameters / ours"])
    done = Outcome("done", 6.0, "", 7.0)
    monkeypatch.setattr(m_steps, "run_isolated", lambda *a, **limits: done)
    (row,) = m_steps.bench_compilation(Report(), names=["iris"]).rows
    ours, constant = row["ours first (s)"], row["textbook, q constant (s)"]
    assert row["textbook, q Parameters (s)"] == 6.0
    assert row["first: q Parameters / ours"] == 6.0 / ours
    assert row["first: q constant / ours"] == constant / ours
    assert row["again: textbook / ours"] == constant / row["ours again (s)"]


def test_ours_compiles_once_and_updates(canonicalized):
    """What is timed as "again" canonicalizes no expression tree anew."""
    assert min(m_steps.time_ours("iris")) > 0.0
    assert len(canonicalized) == 1


def test_answers_show_the_solvers_word_beside_the_truth(small_samplings):
    rows = m_steps.bench_answers(Report(), names=["iris"]).rows
    assert [row["solver"] for row in rows] == ["fista", "CLARABEL", "CLARABEL", "SCS", "SCS"]
    for row in rows:
        assert -1e-9 <= row["true gap"] <= row["proved gap"] + 1e-9
        assert (row["status"] == "certified") == (row["proved gap"] <= 1e-6)
        assert (row["compile (s)"] > 0.0) == (row["solver"] != "fista")


# Passes and fits


def test_the_exponent_in_m_is_the_slope_of_the_times(monkeypatch):
    """Passes whose seconds are 2 m^1.5."""
    monkeypatch.setattr(passes, "three_passes", lambda n, m: (2.0 * m**1.5, 0))
    table = passes.bench_dimension(Report(), dimensions=(4, 8, 16), n=50)
    assert [(row["m"], row["n"]) for row in table.rows] == [(4, 50), (8, 50), (16, 50)]
    assert table.notes == ["Fitted exponent in m: 1.50."]


def test_passes_that_do_not_come_back_end_the_bench_with_their_reason(monkeypatch):
    gone = Outcome("crashed", None, "the process ended by signal 9", 1.0)
    monkeypatch.setattr(passes, "run_isolated", lambda *arguments, **limits: gone)
    with pytest.raises(RuntimeError, match=r"n = 300: crashed\. the process ended by"):
        passes.bench_scaling(Report(), sizes=(300,))


def measured(backend="cpu", n=250, report=None, **settings):
    """The row of one small fit."""
    (row,) = bench_sizes(report or Report(), backend, sizes=(n,), m=M, **settings).rows
    return row


def test_a_size_is_a_row_with_the_numbers_of_its_fit():
    row = measured()
    pairs = PairSet.from_labels(*gaussian_classes(250, M))
    run = alternate(pairs, tol=TOLERANCE, m_step_tol=TOLERANCE)
    evaluations = sum(step.evaluations for step in run.history)
    assert row["pairs"] == 250 * 249 // 2
    assert row["J"] == pytest.approx(run.history[-1].descent_value, rel=1e-9)
    assert (row["iterations"], row["evaluations"]) == (len(run.history), evaluations)
    assert row["gap over all pairs"] <= TOLERANCE
    assert 0.0 < row["seconds / evaluation"] * evaluations <= row["seconds"]
    assert row["peak MiB"] > 10.0
    with pytest.raises(ValueError, match="Unknown backend 'moon': use one of cpu, cuda, dask"):
        measured("moon")


def test_a_fit_to_drawn_pairs_is_graded_over_all_of_them():
    few, many = (measured(unlabeled_pairs=k) for k in (1_000, 20_000))
    assert (few["drawn"], many["drawn"]) == (1_000, 20_000)
    assert few["pairs"] == many["pairs"] == 250 * 249 // 2
    assert few["gap over all pairs"] > many["gap over all pairs"] > TOLERANCE
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

    monkeypatch.setattr(passes, "alternate", stopped)
    report = Report()
    with pytest.raises(KeyboardInterrupt):
        measured(report=report)
    (row,) = report.table().rows
    assert (row["n"], row["iterations"]) == (250, 2)
    assert report.table().notes == ["Incomplete: stopped after 0 of its rows."]


def test_a_gap_of_drawn_pairs_is_the_certificate_of_the_whole_m_step():
    draws = (500, 4_000)
    (row,) = bench_subsample(Report(), draws, n=250, m=2, n_instances=1, n_samples=1).rows
    pairs = PairSet.from_labels(*gaussian_classes(250, 2, seed=0))
    gaps = []
    for k in draws:
        drawn = MStepObjective(pairs.sampled(k, random_state=0))
        whole = certify(MStepObjective(pairs), solve_m_step(drawn, tol=1e-9).metric)
        gaps.append(whole.relative_gap)
    assert [row[f"k = {k}"] for k in draws] == pytest.approx(gaps, rel=1e-6)
    assert row["exponent of k"] == pytest.approx(np.log(gaps[1] / gaps[0]) / np.log(8.0))


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


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_fit_on_a_cluster_is_the_fit_on_this_machine():
    """On two processes started for it, then on a cluster that runs already and is left running."""
    pytest.importorskip("distributed", reason="dask is not installed")
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    local, seen = measured(n=1_200), set()
    report = partial(Report, lambda text: seen.add(type(get_active_backend()[0]).__name__))
    rows = [measured("dask", n=1_200, report=report())]
    with dask_cluster() as client:
        with joblib.parallel_config(backend="sequential"):
            address = client.scheduler.address
            rows.append(measured("dask", n=1_200, scheduler=address, report=report()))
        assert client.submit(sum, (1, 2)).result() == 3
    assert seen == {"DaskDistributedBackend"}
    for row in rows:
        for key in ("n", "pairs", "iterations", "evaluations", "status"):
            assert row[key] == local[key]
        assert row["J"] == pytest.approx(local["J"], rel=1e-10)
