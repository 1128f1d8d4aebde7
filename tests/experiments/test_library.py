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
from library_check import inexact_products, judge_clarabel, linear_term_error
from typer.testing import CliRunner

from seraph_cvx import MStepObjective, PairSet, certify, cli, penalties
from seraph_cvx.certificate.proof import prove
from seraph_cvx.penalties import Diagonal, LinearConstraints, LogDet, Ridge
from seraph_cvx.race.conic_program import ConicProgram
from seraph_cvx.race.grading import data_checksum, reference_interval
from seraph_cvx.race.instances.listed import LIBRARY
from seraph_cvx.race.library.documents import READER
from seraph_cvx.race.library.export import ENDINGS, export_library
from seraph_cvx.race.library.instance_file import read_instance, to_arrays, to_bytes
from seraph_cvx.race.suite import InstanceSpec, suite

SMALL = [
    "onehot2-n8-l8-rounded-proj-w0.125-s0",
    "iris-n20-rounded-proj-w1-s0",
    "iris-n16-rounded-hyper-w1-s0-manifold0.25",
]
NASTIEST = list(LIBRARY)[28:]
"""Nearly unattained, collinear, badly scaled: whether CLARABEL solves one may hang on rounding."""


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("library")
    return folder, export_library(folder, [InstanceSpec.parse(name) for name in SMALL])


def whole(folder: Path) -> dict[str, bytes]:
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
    assert inexact_products(objective, program) == 0
    if not any(isinstance(block, LogDet) for block in objective.penalties):
        error = linear_term_error(objective, program)
        assert np.sum(np.abs(error * (L @ L.T))) <= 1e-10 * abs(lower)
    assert program.n_variables == entry["scalar_variables"]
    assert list(program.matrix_orders) == entry["psd_variables"]
    assert sum(kind == "EXP" for kind, _ in program.cones) == entry["exponential_cones"]
    assert len(objective.pairs.points) == entry["n_points"]


# The files


def test_small_instances_have_proven_intervals_and_exact_cone_programs(small):
    folder, entries = small
    assert [entry["instance"] for entry in entries] == SMALL
    for entry in entries:
        check_entry(folder, entry)


def test_clarabel_solves_the_small_ones_to_an_overlapping_interval(small):
    folder, entries = small
    for entry in entries:
        row = judge_clarabel(folder, entry)
        assert row["solved"], row
        assert row["overlaps"]
        assert row["value"] == pytest.approx(entry["upper"], rel=1e-6)


def test_a_wrong_interval_would_be_found(small):
    """The same checks, of an interval that was moved by a hundred-millionth."""
    folder, entries = small
    moved = {key: entries[1][key] * (1.0 + 1e-8) for key in ("lower", "upper")}
    with pytest.raises(AssertionError):
        check_entry(folder, entries[1] | moved)


def test_a_wrong_number_in_a_cone_program_would_be_found(small):
    folder, _ = small
    objective = read_instance(folder / f"{SMALL[1]}.npz")
    program = ConicProgram.of(objective, "similar")
    assert inexact_products(objective, program) == 0
    changed = np.nextafter(program.rows_matrix.value, np.inf)
    program.rows_matrix.value[:] = changed
    assert inexact_products(objective, program) == len(changed)


def test_every_file_has_its_checksum_and_the_json_those_of_data_and_program(small):
    folder, entries = small
    files = whole(folder)
    sums = dict(
        reversed(line.split("  ", 1)) for line in files.pop("SHA256SUMS").decode().splitlines()
    )
    assert sums == {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    names = {f"{name}{ending}" for name in SMALL for ending in ENDINGS}
    assert set(files) == names | {"README.md", "library.md"}
    for entry in entries:
        assert json.loads(files[f"{entry['instance']}.json"]) == entry
        assert entry["npz_sha256"] == sums[f"{entry['instance']}.npz"]
        assert entry["cbf_sha256"] == sums[f"{entry['instance']}.cbf"]


def test_the_code_in_the_readme_prints_the_optimal_value(small, monkeypatch, capsys):
    folder, entries = small
    monkeypatch.chdir(folder)
    text = (folder / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert blocks[0] == READER
    assert sum(map(bool, READER.splitlines())) == 10
    exec(compile("".join(blocks), "README.md", "exec"), {})
    shown = re.search(r"np\.load\(\"(.*)\.optimum\.npy", blocks[1])
    (entry,) = [entry for entry in entries if entry["instance"] == shown[1]]
    assert float(capsys.readouterr().out) == pytest.approx(entry["upper"], rel=1e-12)


# An export goes on where it was interrupted


def test_an_interrupted_export_goes_on_and_ends_with_the_same_files(small, tmp_path):
    specs = [InstanceSpec.parse(name) for name in SMALL]

    def interrupt(entry, number, total, made):
        if number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_library(tmp_path, specs, interrupt)
    assert not (tmp_path / f"{SMALL[2]}.json").exists()
    told = []
    entries = export_library(tmp_path, specs, lambda *facts: told.append(facts))
    assert [(facts[1], facts[2], facts[3]) for facts in told] == [
        (1, 3, False),
        (2, 3, False),
        (3, 3, True),
    ]
    assert entries == small[1]
    assert whole(tmp_path) == whole(small[0])


@pytest.mark.parametrize("ending", [".npz", ".json"])
def test_a_changed_or_missing_file_is_made_again(small, tmp_path, ending):
    specs = [InstanceSpec.parse(name) for name in SMALL[:2]]
    for name, content in whole(small[0]).items():
        (tmp_path / name).write_bytes(content)
    damaged = tmp_path / f"{SMALL[0]}{ending}"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    (tmp_path / f"{SMALL[1]}{ending}").unlink()
    made = []
    export_library(tmp_path, specs, lambda *facts: made.append(facts[3]))
    assert made == [True, True]
    assert damaged.read_bytes() == (small[0] / damaged.name).read_bytes()


def test_another_definition_under_the_same_name_is_made_again(small, tmp_path, monkeypatch):
    """Files of another version agree with their checksums, but not with the instance."""
    for name, content in whole(small[0]).items():
        (tmp_path / name).write_bytes(content)
    spec = InstanceSpec.parse(SMALL[0])
    other = MStepObjective(PairSet.from_labels(*spec.points()), trace_weight=0.25)
    monkeypatch.setattr(InstanceSpec, "objective", lambda self: other)
    made = []
    (entry,) = export_library(tmp_path, [spec], lambda *facts: made.append(facts[3]))
    assert made == [True]
    assert entry["trace_weight"] == 0.25


def test_an_optimum_that_cannot_be_proved_so_closely_is_refused_in_words(tmp_path, monkeypatch):
    monkeypatch.setattr("seraph_cvx.race.library.proof.WIDEST", 1e-17)
    with pytest.raises(ValueError, match=rf"{SMALL[1]} could be proved to a relative width of"):
        export_library(tmp_path, [InstanceSpec.parse(SMALL[1])])
    assert list(tmp_path.iterdir()) == []


# All instances, as they are defined


@pytest.fixture(scope="module")
def objectives():
    return {spec.name: spec.objective() for spec in suite("full")}


def test_the_library_has_what_was_promised(objectives):
    assert len(objectives) == len(LIBRARY) == 40
    specs = suite("full")
    assert [InstanceSpec.parse(spec.name) for spec in specs] == specs
    assert all(objective.attains_optimum for objective in objectives.values())
    assert {spec.data for spec in specs} >= {"iris", "wine", "breast_cancer", "digits", "balance"}
    assert {spec.setting for spec in specs} == {"none", "post", "proj", "hyper"}
    words = {re.sub(r"[\d.]", "", spec.penalty) for spec in specs} - {""}
    offered = [vars(penalties)[name] for name in penalties.__all__]
    blocks = [kind for kind in offered if isinstance(kind, type)]
    blocks = [kind for kind in blocks if issubclass(kind, penalties.Penalty)]
    short = {"LinearConstraints": "linear"}
    names = {short.get(kind.__name__, kind.__name__.lower()) for kind in blocks}
    assert words == names - {"penalty"}


def test_the_reader_agrees_with_the_objective_on_every_instance(objectives):
    value = reader()
    for name, objective in objectives.items():
        m = objective.pairs.n_features
        spread = max(1.0, float(np.max(np.abs(objective.pairs.points))))
        A = np.eye(m) if name.endswith("diagonal") else np.eye(m) + np.full((m, m), 0.5 / m)
        A *= 0.01 / spread
        found = value(io.BytesIO(to_bytes(to_arrays(objective))), A)
        assert np.isfinite(objective.value(A))
        assert found == pytest.approx(objective.value(A), rel=1e-12), name


def test_every_instance_is_read_back_from_its_arrays_to_the_last_bit(objectives):
    for name, objective in objectives.items():
        read = read_instance(io.BytesIO(to_bytes(to_arrays(objective))))
        assert data_checksum(read) == data_checksum(objective), name
        for one, other in zip(to_arrays(read).values(), to_arrays(objective).values(), strict=True):
            np.testing.assert_array_equal(one, other)


def test_the_committed_table_has_these_instances_and_intervals(objectives, repository):
    folder = repository / "examples" / "solver-comparison"
    path = folder / "library.md"
    assert path.stat().st_size <= 15_000
    lines = path.read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if re.match(r"\| \w+-n\d", line)]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert [row[0] for row in rows] == list(objectives)
    ranks = {int(row[4]) for row in rows}
    assert {1, 2, 3, 4, 5, 6, 8, 12, 16, 20} <= ranks
    for row in rows:
        objective = objectives[row[0]]
        assert [int(row[1]), int(row[2])] == list(objective.pairs.points.shape)
        assert row[5] == LIBRARY[row[0]]
        assert 0.0 <= float(row[7]) - float(row[6]) <= 1e-9 * float(row[6])
        content = to_bytes(to_arrays(objective))
        assert row[8] == hashlib.sha256(content).hexdigest()[:12], row[0]
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert f"```python\n{READER}```" in readme


def test_the_committed_intervals_hold_at_other_matrices(objectives, repository):
    """No certified value is below a lower bound, and no certified bound above an upper one."""
    text = (repository / "examples/solver-comparison/library.md").read_text(encoding="utf-8")
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) < 9 or cells[1] not in objectives:
            continue
        objective = objectives[cells[1]]
        found = certify(objective, 0.01 * np.eye(objective.pairs.n_features))
        assert found.dual_value <= float(cells[8])
        assert found.primal_value >= float(cells[7])


@pytest.mark.parametrize("name", ["wine-n12-skewed12-proj-w1-s0", "iris-n20-rounded-proj-w1-s0"])
def test_a_race_measures_from_an_interval_as_narrow_as_the_librarys(objectives, name):
    """On the first one rounding leaves the certificate of the very optimum a gap of 0.2."""
    lower, upper = reference_interval(objectives[name])
    assert 0.0 <= upper - lower <= 2e-9 * upper


def test_without_python_flint_a_race_measures_from_the_certificate(objectives, monkeypatch):
    monkeypatch.setattr("seraph_cvx.race.grading.find_spec", lambda name: None)
    lower, upper = reference_interval(objectives["wine-n12-skewed12-proj-w1-s0"])
    assert upper - lower > 0.1 * upper


# What has no place in a file


def test_soft_labels_of_a_metric_and_other_penalties_are_refused_in_words():
    pairs = PairSet.from_labels([[0.0], [0.25], [2.0], [2.5]], [0, 0, 1, -1])
    with pytest.raises(ValueError, match="soft_labels=e_step"):
        to_arrays(MStepObjective(pairs, previous_metric=np.eye(1)))
    equal = LinearConstraints(np.eye(1), equal=1.0)
    for block in (equal, LogDet(1.0, prior=np.eye(1))):
        with pytest.raises(ValueError, match="no place in the files"):
            to_arrays(MStepObjective(pairs, penalties=[block]))
    with pytest.raises(ValueError, match="one Ridge alone"):
        to_arrays(MStepObjective(pairs, penalties=[Ridge(1.0), Ridge(2.0)]))


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
    arguments = ["export", "--suite", "tiny", "--out", "library"]
    first = CliRunner().invoke(cli.app, arguments)
    assert first.exit_code == 0, first.output
    assert "2 instances; 0 were there already" in first.output
    before = whole(tmp_path / "library")
    second = CliRunner().invoke(cli.app, arguments)
    assert "0 instances; 2 were there already" in second.output
    assert whole(tmp_path / "library") == before


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--suite", "full"],
        [SMALL[0]],
        [SMALL[0], "--out", "library"],
        [SMALL[0], "--cbf", "x.cbf", "--suite", "full"],
    ],
)
def test_export_of_neither_or_both_is_answered_in_words(tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli.app, ["export", *arguments])
    assert result.exit_code == 2
    assert "--suite full with --out DIR" in " ".join(result.output.split())
    assert list(tmp_path.iterdir()) == []


# The whole library


@pytest.mark.slow
def test_the_whole_library_is_proved_and_clarabel_agrees_where_it_can(tmp_path):
    """About half a minute; `.ci/library` prints the rows."""
    entries = export_library(tmp_path)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 5_000_000
    rows = []
    for entry in entries:
        check_entry(tmp_path, entry)
        rows.append(judge_clarabel(tmp_path, entry))
    assert {row["instance"] for row in rows if not row["solved"]} <= set(NASTIEST)
    for row, entry in zip(rows, entries, strict=True):
        assert row["overlaps"] in (True, None)
        if row["solved"]:
            assert row["value"] == pytest.approx(entry["upper"], rel=1e-5)
