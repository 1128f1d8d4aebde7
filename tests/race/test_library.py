"""Evidence that each instance of the library has the optimal value that its files say."""

from __future__ import annotations

import hashlib
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from cbf_reader import read_cbf
from command_line import run
from library_check import check_numbers, judge_clarabel

from seraph_cvx import MStepObjective, PairSet, certify, penalties
from seraph_cvx.certificate.proof import prove
from seraph_cvx.penalties import Diagonal, LinearConstraints, LogDet, Ridge
from seraph_cvx.race import library
from seraph_cvx.race.grading import data_checksum, reference_interval
from seraph_cvx.race.instances import LIBRARY
from seraph_cvx.race.library import (
    ENDINGS,
    READER,
    export_library,
    read_instance,
    to_arrays,
    to_bytes,
)
from seraph_cvx.race.suite import InstanceSpec, suite

SMALL = [
    "onehot2-n8-l8-rounded-proj-w0.125-s0",
    "iris-n20-rounded-proj-w1-s0",
    "iris-n16-rounded-hyper-w1-s0-manifold0.25",
]
SPECS = [InstanceSpec.parse(name) for name in SMALL]
NASTIEST = list(LIBRARY)[28:]
"""Nearly unattained, collinear, badly scaled: whether CLARABEL solves one may hang on rounding."""


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("library")
    return folder, export_library(folder, SPECS)


@pytest.fixture(scope="module")
def objectives():
    return {spec.name: spec.objective() for spec in suite("full")}


@pytest.fixture(scope="module")
def table(repository):
    """The rows of the committed table."""
    text = (repository / "examples/solver-comparison/library.md").read_text(encoding="utf-8")
    assert len(text) <= 15_000
    lines = [line for line in text.splitlines() if re.match(r"\| \w+-n\d", line)]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


def contents_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def reader():
    scope: dict = {}
    exec(compile(READER, "the reader", "exec"), scope)
    return scope["value"]


def check_entry(folder: Path, entry: dict) -> None:
    """The interval is narrow, proved again from the files, and holds for the cone program."""
    name, lower, upper = entry["instance"], entry["lower"], entry["upper"]
    assert 0.0 <= upper - lower <= 1e-9 * abs(lower)
    objective = read_instance(folder / f"{name}.npz")
    L = np.load(folder / f"{name}.optimum.npy", allow_pickle=False)
    again = prove(objective, L @ L.T)
    assert max(lower, again.dual_value) <= min(upper, again.primal_value)
    assert again.primal_value - again.dual_value <= 1e-9 * abs(lower)
    assert reader()(folder / f"{name}.npz", L @ L.T) == pytest.approx(upper, rel=1e-9)
    program = read_cbf(folder / f"{name}.cbf")
    error = check_numbers(objective, program, L @ L.T)
    assert error <= 1e-10 * abs(lower)
    assert len(program.cost) == entry["scalar_variables"]
    assert program.psd_orders == entry["psd_constraints"]
    assert sum(kind == "EXP" for kind, _ in program.cones) == entry["exponential_cones"]
    assert len(objective.pairs.points) == entry["n_points"]


# The files


def test_small_instances_have_proven_intervals_and_exact_cone_programs_that_clarabel_solves(small):
    folder, entries = small
    assert [entry["instance"] for entry in entries] == SMALL
    for entry in entries:
        check_entry(folder, entry)
        row = judge_clarabel(folder, entry)
        assert row["solved"], row
        assert row["overlaps"]
        assert row["value"] == pytest.approx(entry["upper"], rel=1e-6)


def test_every_file_has_its_checksum_and_the_json_those_of_data_and_program(small):
    folder, entries = small
    files = contents_of(folder)
    lines = files.pop("SHA256SUMS").decode().splitlines()
    sums = {name: value for value, _, name in (line.partition("  ") for line in lines)}
    assert sums == {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    names = {f"{name}{ending}" for name in SMALL for ending in ENDINGS}
    assert set(files) == names | {"README.md", "library.md"}
    for entry in entries:
        assert json.loads(files[f"{entry['instance']}.json"]) == entry
        for ending in ("npz", "cbf"):
            assert entry[f"{ending}_sha256"] == sums[f"{entry['instance']}.{ending}"]


def test_the_code_in_the_readme_prints_the_optimal_value(small, monkeypatch, capsys):
    folder, entries = small
    monkeypatch.chdir(folder)
    text = (folder / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert blocks[0] == READER
    assert sum(map(bool, READER.splitlines())) == 10
    exec(compile("".join(blocks), "README.md", "exec"), {})
    upper = {entry["instance"]: entry["upper"] for entry in entries}
    shown = re.search(r"np\.load\(\"(.*)\.optimum\.npy", blocks[1])
    assert float(capsys.readouterr().out) == pytest.approx(upper[shown[1]], rel=1e-12)


def test_a_large_instance_has_no_cone_program_and_is_not_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr(library, "MOST_ENTRIES", 10)
    made = []
    for _ in range(2):
        (entry,) = export_library(tmp_path, SPECS[:1], lambda *call: made.append(call[-1]))
    assert made == [True, False]
    assert "cbf_sha256" not in entry
    assert {path.suffix for path in tmp_path.iterdir()} == {".npz", ".npy", ".json", ".md", ""}
    assert SMALL[0] in (tmp_path / "library.md").read_text()


# An export goes on where it was interrupted


def test_an_interrupted_export_goes_on_and_ends_with_the_same_files(small, tmp_path):
    calls = []

    def listen(entry, *call):
        calls.append(call)
        if len(calls) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_library(tmp_path, SPECS, listen)
    assert not (tmp_path / f"{SMALL[2]}.json").exists()
    assert export_library(tmp_path, SPECS, listen) == small[1]
    assert calls[2:] == [(1, 3, False), (2, 3, False), (3, 3, True)]
    assert contents_of(tmp_path) == contents_of(small[0])


def test_changed_missing_and_other_files_are_made_again(small, tmp_path, monkeypatch):
    """Those of another version agree with their checksums, but not with the instance."""
    for name, content in contents_of(small[0]).items():
        (tmp_path / name).write_bytes(content)
    damaged = tmp_path / f"{SMALL[0]}.npz"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    (tmp_path / f"{SMALL[1]}.json").unlink()
    made = []
    export_library(tmp_path, SPECS[:2], lambda *call: made.append(call[3]))
    assert contents_of(small[0]).items() >= {damaged.name: damaged.read_bytes()}.items()
    other = MStepObjective(PairSet.from_labels(*SPECS[0].points()), trace_weight=0.25)
    monkeypatch.setattr(InstanceSpec, "objective", lambda self: other)
    (entry,) = export_library(tmp_path, SPECS[:1], lambda *call: made.append(call[3]))
    assert entry["trace_weight"] == 0.25
    assert made == [True, True, True]


def test_an_optimum_that_cannot_be_proved_so_closely_is_refused_in_words(tmp_path, monkeypatch):
    monkeypatch.setattr("seraph_cvx.race.library.LARGEST_WIDTH", 1e-17)
    with pytest.raises(ValueError, match=rf"{SMALL[1]} could be proved to a relative width of"):
        export_library(tmp_path, SPECS[1:2])
    assert list(tmp_path.iterdir()) == []


# All instances, as they are defined


def test_every_instance_has_an_optimum_and_every_penalty_an_instance(objectives):
    assert all(objective.attains_optimum for objective in objectives.values())
    words = {re.sub(r"[\d.]", "", InstanceSpec.parse(name).penalty) for name in objectives} - {""}
    offered = {name.lower().removesuffix("constraints") for name in penalties.__all__}
    assert words == offered - {"penalty", "penaltyreport", "check_penalty", "manifold_term"}


def test_every_instance_is_read_back_from_its_arrays_and_has_the_readers_value(objectives):
    for name, objective in objectives.items():
        m = objective.pairs.n_features
        content = to_bytes(to_arrays(objective))
        read = read_instance(io.BytesIO(content))
        assert data_checksum(read) == data_checksum(objective), name
        assert to_bytes(to_arrays(read)) == content
        A = np.eye(m) if name.endswith("diagonal") else np.eye(m) + np.full((m, m), 0.5 / m)
        A *= 0.01 / max(1.0, float(np.max(np.abs(objective.pairs.points))))
        value = objective.value(A)
        assert np.isfinite(value)
        assert reader()(io.BytesIO(content), A) == pytest.approx(value, rel=1e-12), name


def test_the_committed_table_has_these_instances_and_intervals(objectives, table, repository):
    assert [row[0] for row in table] == list(objectives) == list(LIBRARY)
    assert len(LIBRARY) == 40
    assert {1, 2, 3, 4, 5, 6, 8, 12, 16, 20} <= {int(row[4]) for row in table}
    for name, n, m, _, _, why, lower, upper, checksum in table:
        objective = objectives[name]
        assert (int(n), int(m)) == objective.pairs.points.shape
        assert why == LIBRARY[name]
        assert 0.0 <= float(upper) - float(lower) <= 1e-9 * float(lower)
        content = to_bytes(to_arrays(objective))
        assert checksum == hashlib.sha256(content).hexdigest()[:12], name
        # weak duality at another matrix
        certificate = certify(objective, 0.01 * np.eye(objective.pairs.n_features))
        assert certificate.dual_value <= float(upper)
        assert certificate.primal_value >= float(lower)
    readme = (repository / "examples/solver-comparison/README.md").read_text(encoding="utf-8")
    assert f"```python\n{READER}```" in readme


@pytest.mark.parametrize("has_flint", [True, False])
def test_a_race_measures_from_an_interval_as_narrow_as_the_librarys(
    objectives, monkeypatch, has_flint
):
    """On the first one rounding leaves the certificate of the very optimum a gap of 0.2."""
    if not has_flint:
        monkeypatch.setattr("seraph_cvx.race.grading.find_spec", lambda name: None)
    lower, upper = reference_interval(objectives["wine-n12-skewed12-proj-w1-s0"])
    assert (0.0 <= upper - lower <= 2e-9 * upper) if has_flint else upper - lower > 0.1 * upper
    lower, upper = reference_interval(objectives["iris-n20-rounded-proj-w1-s0"])
    assert 0.0 <= upper - lower <= 2e-9 * upper


# What has a place in a file, and what has none


def test_soft_labels_of_a_metric_and_other_penalties_are_refused_in_words():
    class Mine(Ridge):
        """A block of a user."""

    pairs = PairSet.from_labels([[0.0], [0.25], [2.0], [2.5]], [0, 0, 1, -1])
    cases = [
        ("soft_labels=e_step", {"previous_metric": np.eye(1)}),
        ("one Ridge alone", {"penalties": [Ridge(1.0), Ridge(2.0)]}),
        *(
            ("no place in the files", {"penalties": [block]})
            for block in (
                LinearConstraints(np.eye(1), equal=1.0),
                LogDet(1.0, prior=np.eye(1)),
                Mine(1.0),
            )
        ),
    ]
    for words, parameters in cases:
        with pytest.raises(ValueError, match=words):
            to_arrays(MStepObjective(pairs, **parameters))


def test_confidences_and_several_penalties_are_kept():
    points = [[0.0, 1.0], [0.25, 0.5], [2.0, 0.0], [1.0, 1.0]]
    pairs = PairSet.from_constraints(points, [(0, 1)], [(0, 2), (1, 2)], 0.5, [0.25, 2.0])
    objective = MStepObjective(pairs, penalties=[Ridge(1.0), Diagonal()], threshold=2.0)
    read = read_instance(io.BytesIO(to_bytes(to_arrays(objective))))
    np.testing.assert_array_equal(read.pairs.labeled_weights, [0.5, 0.25, 2.0])
    assert read.penalties == (Ridge(1.0, prior=np.zeros((2, 2))), Diagonal())
    assert read.value(np.eye(2)) == objective.value(np.eye(2))
    assert read.mu == objective.mu > 0.0


# The command


def test_export_of_a_suite_says_what_it_wrote_and_keeps_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for arguments in (["--suite", "full"], [SMALL[0], "--cbf", "x.cbf", "--suite", "full"]):
        result = run("export", *arguments)  # neither of its two forms, or both
        assert result.exit_code == 2
        assert "--suite full with --out DIR" in " ".join(result.output.split())
    assert list(tmp_path.iterdir()) == []
    arguments = ["export", "--suite", "tiny", "--out", "library"]
    assert "2 instances; 0 were there already" in run(*arguments).output
    before = contents_of(tmp_path / "library")
    assert "0 instances; 2 were there already" in run(*arguments).output
    assert contents_of(tmp_path / "library") == before


# The whole library


@pytest.mark.slow
def test_the_whole_library_is_proved_and_clarabel_agrees_where_it_can(tmp_path):
    """But for digits, whose 64 features take it as long as all others; `.ci/library` has all."""
    entries = export_library(tmp_path)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 5_000_000
    for entry in entries:
        check_entry(tmp_path, entry)
        if entry["instance"] == "digits-n10-raw-proj-w100-s0":
            continue
        row = judge_clarabel(tmp_path, entry)
        assert row["solved"] or row["instance"] in NASTIEST
        assert row["overlaps"] in (True, None)
        if row["solved"]:
            assert row["value"] == pytest.approx(entry["upper"], rel=1e-5)
