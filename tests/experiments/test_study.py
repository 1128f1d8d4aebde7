"""`explain` and `bench`: they run, and their tables hold what they say."""

from __future__ import annotations

import json
import re
from functools import partial
from types import SimpleNamespace

import bench as speed
import pytest
from command_line import run, words
from evidence.bench import conic as bench_conic
from evidence.bench import first_m_steps as bench_m_steps
from evidence.bench import passes as bench_passes
from evidence.bench import size as bench_size
from evidence.bench import statement as bench_statement
from evidence.bench.path import bench_path
from evidence.bench.proof import bench_certificate, bench_proof
from evidence.bench.report import Report
from evidence.bench.startup import STARTS, bench_startup
from reproduction_programs import run_bench

from seraph_cvx import MStepObjective, PairSet, certify
from seraph_cvx.datasets import load_sampling
from seraph_cvx.display.result_table import ResultTable
from seraph_cvx.processes.isolation import Outcome
from seraph_cvx.race.attempt import Entrant
from seraph_cvx.race.solvers import entrants


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
    result = run_bench("kernel", "--markdown", markdown, "--json", data)
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
    speed._measure(measure, [])
    assert seen == ["ratio 2\n"]


@pytest.mark.parametrize(
    ("section", "room", "name"),
    [
        ("m-step", bench_m_steps, "bench_first_m_steps"),
        ("fit", bench_conic, "bench_whole_fit"),
        ("kernel", bench_passes, "bench_kernel"),
    ],
)
def test_a_stopped_bench_keeps_the_rows_it_has_and_says_so(
    section, room, name, tmp_path, monkeypatch
):
    monkeypatch.setattr(room, name, planted(KeyboardInterrupt()))
    markdown, data = tmp_path / "table.md", tmp_path / "table.json"
    result = run_bench(section, "--markdown", markdown, "--json", data)
    assert result.exit_code == 130
    assert "| 2 |\n| > 3 |\n\nIncomplete: stopped after 1 of its rows." in result.stdout
    assert "Interrupted: the tables are in" in " ".join(result.stderr.split())
    assert markdown.read_text() in result.stdout
    assert json.loads(data.read_text())[0]["notes"] == ["Incomplete: stopped after 1 of its rows."]


def test_a_bench_writes_json_alone_where_only_that_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(bench_passes, "bench_kernel", planted())
    assert run_bench("kernel", "--json", tmp_path / "kernel.json").exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["kernel.json"]


def test_the_options_of_size_reach_the_bench(monkeypatch):
    asked = []

    def measure(report, *arguments):
        asked.append(arguments)

    monkeypatch.setattr(bench_size, "bench_sizes", measure)
    options = ["--sizes", "500,900", "--place", "dask", "--unlabeled-pairs", 7]
    assert run_bench("size", *options, "--scheduler", "tcp://a:1").exit_code == 0
    assert asked == [("dask", [500, 900], 64, 7, "tcp://a:1")]


@pytest.mark.parametrize(
    ("sizes", "said"),
    [("ten", "'ten': write integers, such as 1000,10000"), ("900,50", "50: ten classes")],
)
def test_sizes_that_cannot_be_measured_are_answered_in_words(sizes, said):
    result = run_bench("size", "--sizes", sizes)
    assert result.exit_code == 2
    assert said in words(result.stderr)


def test_a_bench_that_fails_keeps_the_rows_it_has(tmp_path, monkeypatch):
    monkeypatch.setattr(bench_passes, "bench_kernel", planted(RuntimeError("out of luck")))
    result = run_bench("kernel", "--markdown", tmp_path / "table.md")
    assert result.exit_code
    assert "Incomplete" in (tmp_path / "table.md").read_text()


def test_a_bench_stopped_before_its_first_row_writes_nothing(tmp_path, monkeypatch):
    def stopped(report):
        raise KeyboardInterrupt

    monkeypatch.setattr(bench_passes, "bench_scaling", stopped)
    result = run_bench("scaling", "--markdown", tmp_path / "table.md")
    assert result.exit_code == 130
    assert "nothing was written" in " ".join(result.stderr.split())
    assert not list(tmp_path.iterdir())


def test_a_path_is_reported_row_by_row(monkeypatch):
    told, rows = [], []
    monkeypatch.setattr("evidence.bench.path.TASKS", {"iris": 10})
    monkeypatch.setattr("evidence.bench.path.REPEATS", 1)
    table = bench_path(Report(told.append, rows.append), seeds=(0,))
    assert told == ["iris, seed 0"]
    assert list(table.rows) == rows
    assert rows[0]["largest gap"] < 1e-6


def test_a_proof_is_reported_beside_the_certificate(monkeypatch):
    monkeypatch.setattr("evidence.bench.proof.TASKS", {"iris": 10})
    (row,) = bench_proof(Report(), seeds=(0,)).rows
    assert row["proven gap"] <= 1e-7
    assert 0.0 < row["proven gap"] <= 1.1 * row["certified gap"]


def test_certificates_of_two_m_steps_are_reported_with_their_cost(monkeypatch):
    monkeypatch.setattr("evidence.bench.proof.TASKS", {"iris": 10})
    monkeypatch.setattr("evidence.bench.proof.DIGITS", {})
    rows = bench_certificate(Report(), seeds=(0,)).rows
    assert [row["M-step"] for row in rows] == ["first", "second"]
    for row in rows:
        assert 0.0 < row["certified gap"] <= 1e-8
        ratio = row["certificate (ms)"] / row["pass (ms)"]
        assert row["certificate / pass"] == pytest.approx(ratio)


@pytest.mark.parametrize(
    ("measure", "column"),
    [
        (bench_proof, "proven gap"),
        (bench_path, "start"),
        (bench_m_steps.bench_first_m_steps, "ratio"),
    ],
)
def test_data_that_is_not_there_is_a_row_that_says_so(measure, column, monkeypatch, tmp_path):
    for room in ("proof", "path"):
        monkeypatch.setattr(f"evidence.bench.{room}.TASKS", {"ionosphere": 20})
    monkeypatch.setenv("SERAPH_CVX_DATA", str(tmp_path))
    tasks = (
        {"tasks": ["ionosphere"], "rivals": {}}
        if measure is bench_m_steps.bench_first_m_steps
        else {}
    )
    (row,) = measure(Report(), seeds=(0, 1), **tasks).rows
    assert row["task"] == "ionosphere"
    assert row[column].startswith("not measured: ")
    assert "ionosphere.csv" in row[column]


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


@pytest.fixture
def small_samplings(monkeypatch):
    """The benches of conic solvers on samplings of 20 points."""
    for room in (bench_conic, bench_statement):
        monkeypatch.setattr(room, "load_sampling", partial(load_sampling, n_points=20))
    monkeypatch.setattr(bench_statement, "DATA_SETS", ("iris",))


def test_a_whole_fit_is_timed_to_the_end_or_is_a_bound(small_samplings):
    """A limit of no seconds stops CLARABEL after its first iteration."""
    (whole,) = bench_conic.bench_whole_fit(Report(), "iris", time_limit=60.0).rows
    assert whole["CLARABEL iterations"] > 1
    assert whole["own iterations"] > 1
    assert whole["ratio"] == whole["CLARABEL (s)"] / whole["own (s)"]
    (cut,) = bench_conic.bench_whole_fit(Report(), "iris", time_limit=0.0).rows
    assert cut["CLARABEL iterations"] == 1
    assert (cut["CLARABEL (s)"][:2], cut["ratio"][:2]) == ("> ", "> ")


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

    class Server:
        def __init__(self, modules, environment):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        def run(self, function, name, seed, entrant, tol, limit, time_limit):
            asked.append((entrant.label, tol, limit))
            rung = LADDER[entrant.label][sum(a[0] == entrant.label for a in asked) - 1]
            return rung if isinstance(rung, Outcome) else Outcome("done", rung, "", rung[0])

    monkeypatch.setattr(bench_m_steps, "ForkServer", Server)
    rivals = {
        "conic": [Entrant(name, "", "module:function") for name in "ABCD"],
        "factor": [Entrant("E", "", "module:function")],
    }
    (row,) = bench_m_steps.bench_first_m_steps(
        Report(), ["iris"], (0,), time_limit=60.0, rivals=rivals
    ).rows
    own = row["fista to 1e-8 (s)"]
    assert (row["fastest conic"], row["conic (s)"], row["conic / fista"]) == ("B", 3.0, 3.0 / own)
    assert (row["fastest factor"], row["factor (s)"], row["ratio"]) == ("E", 0.25, 0.25 / own)
    assert 0.0 < row["certificate's share"] < 1.0
    rungs = [1e-5, 1e-6, 1e-7, 1e-8, 1e-9]
    expected = [("A", 1e-5, 60.0), *(("B", tol, 60.0) for tol in rungs[:2]), ("C", 1e-5, 3.0)]
    assert asked == [*expected, *(("D", tol, 3.0) for tol in rungs), ("E", 1e-5, 60.0)]


def test_a_rivals_run_is_graded_by_the_best_bound_known(small_samplings):
    (scs,) = entrants(["SCS/dual"])
    loose, tight = (bench_m_steps.solve_once("iris", 0, scs, tol, 30.0)[1] for tol in (1e-2, 1e-7))
    assert -1e-9 <= tight <= 1e-6 < loose


def test_an_own_solver_that_is_not_certified_is_no_measurement(small_samplings, monkeypatch):
    monkeypatch.setattr(
        bench_m_steps,
        "fista",
        lambda objective, **settings: SimpleNamespace(
            relative_gap=1e-7, seconds=1.0, certificate_seconds=0.1
        ),
    )
    with pytest.raises(RuntimeError, match="fista is not certified on iris, seed 3"):
        bench_m_steps.bench_first_m_steps(Report(), ["iris"], (3,), rivals={})


def test_compilation_is_told_as_ratios_to_ours(small_samplings, monkeypatch):
    done = Outcome("done", {"first": 6.0}, "", 7.0)
    monkeypatch.setattr(bench_statement, "run_isolated", lambda *a, **limits: done)
    (row,) = bench_statement.bench_compilation(Report()).rows
    ours = row["ours first (s)"]
    assert row["textbook, q Parameters (s)"] == 6.0
    assert row["first: q Parameters / ours"] == 6.0 / ours
    assert row["first: q constant / ours"] == row["textbook, q constant (s)"] / ours
    assert row["again: textbook / ours"] == row["textbook, q constant (s)"] / row["ours again (s)"]


def test_a_textbook_that_does_not_compile_in_time_is_a_bound(small_samplings):
    (row,) = bench_statement.bench_compilation(Report(), time_limit=0.05).rows
    assert re.fullmatch(r"> \d+ \(time limit\)", row["textbook, q Parameters (s)"])
    assert re.fullmatch(r"> \d+", row["first: q Parameters / ours"])


def test_answers_show_the_solvers_word_beside_the_truth(small_samplings):
    told = []
    rows = bench_statement.bench_answers(Report(told.append), tol=1e-6).rows
    labels = [
        "fista primal",
        *(f"{s} {f}" for s in ("CLARABEL", "SCS") for f in ("primal", "dual")),
    ]
    assert told == [f"iris: {label}" for label in labels]
    assert [f"{row['solver']} {row['formulation']}" for row in rows] == labels
    for row in rows:
        assert -1e-9 <= row["true gap"] <= row["proved gap"] + 1e-9
        assert (row["status"] == "certified") == (row["proved gap"] <= 1e-6)
        assert (row["compile (s)"] > 0.0) == (row["solver"] != "fista")


def test_the_best_lower_bound_is_below_every_value(small_samplings):
    sampling = load_sampling("iris", n_points=20)
    objective = MStepObjective(PairSet.from_labels(sampling.X, sampling.y))
    bound = bench_statement.best_lower_bound(objective)
    metric = bench_statement.solve_m_step(objective, tol=1e-6).metric
    other = certify(objective, metric)
    assert bound <= other.primal_value  # proven both; a computed value may be below the optimum
    assert other.dual_value <= bound + 1e-10 * max(1.0, bound)  # its gap, at most


def test_overhead_is_the_share_of_time_outside_the_solver(small_samplings):
    told = []
    rows = bench_statement.bench_overhead(Report(told.append), iterations=2).rows
    assert [row["data"] for row in rows] == ["iris (seed 4)", "wine (seed 0)"]
    assert told == [f"{d}: CLARABEL iteration {k} of 2" for d in ("iris", "wine") for k in (1, 2)]
    for row in rows:
        assert row["iterations"] == 2
        assert 0.0 < row["in the solver (s)"] < row["wall (s)"]
        share = (row["wall (s)"] - row["in the solver (s)"]) / row["wall (s)"]
        assert row["outside"] == pytest.approx(share)


def test_bench_refuses_an_unknown_section():
    assert run_bench("everything").exit_code == 2


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


def test_the_exponent_in_m_is_the_slope_of_the_times(monkeypatch):
    """Passes whose seconds are 2 m^1.5."""
    monkeypatch.setattr(bench_passes, "three_passes", lambda n, m: (2.0 * m**1.5, 0))
    table = bench_passes.bench_dimension(Report(), dimensions=(4, 8, 16), n=50)
    assert [(row["m"], row["n"]) for row in table.rows] == [(4, 50), (8, 50), (16, 50)]
    assert table.notes == ["Fitted exponent in m: 1.50."]


def test_passes_that_do_not_come_back_end_the_bench_with_their_reason(monkeypatch):
    gone = Outcome("crashed", None, "the process ended by signal 9", 1.0)
    monkeypatch.setattr(bench_passes, "run_isolated", lambda *arguments, **limits: gone)
    with pytest.raises(RuntimeError, match=r"n = 300: crashed\. the process ended by"):
        bench_passes.bench_scaling(Report(), sizes=(300,))


def test_a_large_fit_counts_its_evaluations():
    (row,) = bench_passes.bench_large_fit(Report(), n=700, m=4).rows
    assert row["status"] == "certified"
    assert row["evaluations"] > row["iterations"] > 1
    assert row["gap"] <= 1e-6


@pytest.mark.slow
def test_own_m_step_against_rivals():
    """CLARABEL does not get there in the time; L-BFGS-B does."""
    rivals = {"conic": entrants(["CLARABEL/dual"]), "factor": entrants(["L-BFGS-B"])}
    (row,) = bench_m_steps.bench_first_m_steps(
        Report(), tasks=("balance",), seeds=(0,), time_limit=0.5, rivals=rivals
    ).rows
    assert row["fista to 1e-8 (s)"] < 10.0
    assert row["conic (s)"] == "> 0.5"
    assert row["fastest factor"] == "L-BFGS-B/factor"
    assert row["ratio"] == row["factor / fista"] == row["factor (s)"] / row["fista to 1e-8 (s)"]


def test_ours_compiles_once_and_updates(canonicalized):
    """What is timed as "again" canonicalizes no expression tree anew."""
    times = bench_statement.time_ours("iris")
    assert times["first"] > 0.0
    assert times["again"] > 0.0
    assert len(canonicalized) == 1


def test_a_table_is_read_by_people_programs_and_pandas():
    table = ResultTable("T", [{"a": 1, "b": 0.5}, {"a": 2, "c": "x|y"}], ["note"])
    assert table.columns == ["a", "b", "c"]
    assert "| 2 |  | x\\|y |" in table.to_markdown()
    assert json.loads(table.to_json())["notes"] == ["note"]
    assert list(table.to_pandas().columns) == ["a", "b", "c"]


def test_startup_is_told_in_imports_of_numpy():
    rows = bench_startup(Report(), rounds=1).rows
    names = [row["process"] for row in rows]
    assert names == list(STARTS)
    assert rows[0]["imports of NumPy"] == 1.0
    assert all(0.0 < row["processor (s)"] < 60.0 for row in rows)
