"""Evidence that an instance handed out is the instance: read back, rebuilt, solved, same value."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from cbf_reader import read_cbf, read_sidecar
from conic_to_cvxpy import rebuild
from instances import random_objective
from penalized import BLOCKS, random_penalized
from typer.testing import CliRunner

from seraph_cvx import MStepObjective, PairSet, certify, cli, state_m_step
from seraph_cvx.numerics.psd_cone import project, symmetrize
from seraph_cvx.penalties import Diagonal, LogDet, Ridge, Sparse, UpperBound
from seraph_cvx.race.cbf import to_cbf, write_cbf
from seraph_cvx.race.conic_program import ConicProgram
from seraph_cvx.race.sparse_entries import SparseEntries
from seraph_cvx.race.suite import InstanceSpec
from seraph_cvx.solvers.solution import OptimumNotAttained

NAMES = [
    "iris-n20-standard-hyper-w1-s0",
    "balance-n20-raw-proj-w0.1-s0",
    "wine-n16-standard-proj-w0.5-s1",
]
FORMULATIONS = ["primal", "dual"]


def solve(program):
    """The value a conic solver finds, and the metric; Clarabel fails on some of the duals.

    Whether it calls its last steps accurate depends on the processor: the certificate judges.
    """
    problem, matrices, feasible = rebuild(program)
    if matrices:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
            value = problem.solve(solver="CLARABEL")
    else:
        value = problem.solve(solver="SCS", eps_abs=1e-8, eps_rel=1e-8)
    return float(value), matrices[0].value if matrices else feasible[0].dual_value


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("name", NAMES)
def test_round_trip_read_back_rebuilt_solved_has_the_certified_value(tmp_path, name, formulation):
    spec = InstanceSpec.parse(name)
    path = tmp_path / "instance.cbf"
    write_cbf(spec, path, formulation)
    sidecar = read_sidecar(path)
    objective = InstanceSpec(**sidecar["spec"]).objective()
    value, metric = solve(read_cbf(path))
    certificate = certify(objective, project(symmetrize(metric)))
    assert sidecar["lower"] <= certificate.primal_value
    assert certificate.dual_value <= sidecar["upper"]
    assert sidecar["upper"] - sidecar["lower"] <= 1e-8 * max(1.0, sidecar["upper"])
    assert certificate.primal_value == pytest.approx(sidecar["upper"], rel=1e-7)
    assert value == pytest.approx(sidecar["upper"], rel=1e-5)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_what_is_read_is_what_was_written_to_the_last_bit(tmp_path, formulation):
    objective = InstanceSpec.parse(NAMES[0]).objective()
    written = ConicProgram.of(objective, formulation)
    path = tmp_path / "x.cbf"
    path.write_text(to_cbf(written, ["two", "comments"]))
    read = read_cbf(path)
    assert read.formulation == formulation
    for field in vars(written):
        one, other = getattr(written, field), getattr(read, field)
        if isinstance(one, SparseEntries):
            np.testing.assert_array_equal(one.index, other.index)
            np.testing.assert_array_equal(one.value, other.value)
        else:
            assert one == other


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # values judge, not words
@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_soft_labels_and_threshold_reach_the_file(formulation):
    """No default in it: the rebuilt program has the value of CVXPY's own statement."""
    X = np.random.default_rng(0).normal(size=(10, 3))
    pairs = PairSet.from_labels(X, [0, 0, 1, 1, 2, *[-1] * 5])
    q = np.random.default_rng(1).random(pairs.n_unlabeled)
    objective = MStepObjective(pairs, q, unlabeled_weight=0.7, trace_weight=0.3, threshold=2.5)
    expected = state_m_step(objective, formulation).solve(solver="CLARABEL")
    value, metric = solve(ConicProgram.of(objective, formulation))
    assert value == pytest.approx(expected, rel=1e-6)
    assert certify(objective, project(symmetrize(metric))).relative_gap < 1e-5


def test_a_program_without_a_constant_is_written_without_one_and_read_back(tmp_path):
    """eta*beta = 0 where no pair pulls the metric up; A = 0 is then optimal, at N log(1 + 1/e)."""
    pairs = PairSet.from_constraints([[0.0], [1.0], [3.0]], [(0, 1), (0, 2)], [])
    objective = MStepObjective(pairs, unlabeled_weight=0.0)
    text = to_cbf(ConicProgram.of(objective))
    assert "OBJBCOORD" not in text
    path = tmp_path / "x.cbf"
    path.write_text(text)
    value, _ = solve(read_cbf(path))
    assert value == pytest.approx(2.0 * np.log1p(np.exp(-1.0)), rel=1e-6)


def test_a_program_without_exponential_cones_is_rebuilt_too(tmp_path):
    """min tr(X) subject to X_11 - 2 >= 0: a hand-written file; the optimum is 2."""
    parts = ["VER\n3", "OBJSENSE\nMIN", "PSDVAR\n1\n2", "VAR\n1 1\nF 1", "CON\n1 1\nL+ 1"]
    parts += ["OBJFCOORD\n2\n0 0 0 1.0\n0 1 1 1.0", "FCOORD\n1\n0 0 0 0 1.0"]
    path = tmp_path / "x.cbf"
    path.write_text("\n\n".join([*parts, "BCOORD\n1\n0 -2.0"]) + "\n")
    value, metric = solve(read_cbf(path))
    assert value == pytest.approx(2.0, abs=1e-6)
    np.testing.assert_allclose(metric, np.diag([2.0, 0.0]), atol=1e-5)


def test_a_changed_file_is_found_out(tmp_path):
    path = tmp_path / "x.cbf"
    write_cbf(InstanceSpec.parse(NAMES[1]), path)
    path.write_bytes(path.read_bytes().replace(b"-1.0", b"-2.0", 1))
    with pytest.raises(ValueError, match="checksum"):
        read_sidecar(path)


def test_the_same_spec_gives_the_same_file(tmp_path):
    one, other = tmp_path / "a.cbf", tmp_path / "b.cbf"
    for path in (one, other):
        write_cbf(InstanceSpec.parse(NAMES[0]), path, "dual")
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("VER\n3", "VER\n1", "version 3"),
        ("F 135", "L+ 135", "free scalar variables"),
        ("EXP 3", "POWER 3", "POWER"),
        ("OBJSENSE\n", "INT\n1\n0\n\nOBJSENSE\n", "INT"),
        ("CON\n315 91", "CON\n315 90", "announces"),
        ("\nBCOORD\n", "\nBCOORD\n1", "announced"),
    ],
)
def test_what_the_reader_does_not_know_is_said(tmp_path, old, new, words):
    path = tmp_path / "x.cbf"
    objective = InstanceSpec.parse("iris-n20-standard-proj-w1-s0").objective()
    text = to_cbf(ConicProgram.of(objective))
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ValueError, match=words):
        read_cbf(path)


def test_an_unknown_formulation_ending_or_unattained_optimum_is_refused(tmp_path):
    objective = InstanceSpec.parse(NAMES[1]).objective()
    with pytest.raises(ValueError, match="formulation"):
        ConicProgram.of(objective, "textbook")
    with pytest.raises(ValueError, match=r"\.cbf"):
        write_cbf(objective, tmp_path / "x.txt")
    pairs = PairSet.from_constraints([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]], [(0, 1)], [(0, 2)])
    with pytest.raises(OptimumNotAttained):
        write_cbf(MStepObjective(pairs, trace_weight=0.0, unlabeled_weight=0.0), tmp_path / "x.cbf")


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_mosek_reads_the_file_and_finds_what_was_written(tmp_path, formulation):
    """Reading needs no license; solving would."""
    mosek = pytest.importorskip("mosek", reason="MOSEK is not installed: pip install Mosek")
    path = tmp_path / "x.cbf"
    write_cbf(InstanceSpec.parse(NAMES[0]), path, formulation)
    program = read_cbf(path)
    with mosek.Env() as environment, environment.Task() as task:
        task.readdata(str(path))
        assert task.getnumvar() == program.n_variables
        orders = [task.getdimbarvarj(j) for j in range(task.getnumbarvar())]
        assert tuple(orders) == program.matrix_orders
        assert task.getcfix() == program.objective_constant
        maximize = task.getobjsense() == mosek.objsense.maximize
        assert maximize == (program.sense == "MAX")
        kinds = [task.getdomaintype(task.getaccdomain(k)) for k in range(task.getnumacc())]
        exponential = sum(kind == mosek.domaintype.primal_exp_cone for kind in kinds)
        assert exponential == sum(kind == "EXP" for kind, _ in program.cones)
        semidefinite = sum(kind == mosek.domaintype.svec_psd_cone for kind in kinds)
        assert semidefinite == len(program.psd_orders)


def test_export_writes_both_files_and_says_the_interval(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = NAMES[1]
    result = CliRunner().invoke(cli.app, ["export", name, "--cbf", "x.cbf", "--formulation=dual"])
    assert result.exit_code == 0, result.output
    sidecar = json.loads((tmp_path / "x.json").read_text())
    assert sidecar["instance"] == name
    assert sidecar["formulation"] == "dual"
    assert f"{sidecar['upper']:.12g}" in result.output
    assert read_cbf("x.cbf").psd_orders == (4,)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nonsense", "--cbf", "x.cbf"], "not the name of an instance"),
        ([NAMES[1], "--cbf", "x.mps"], "must end in .cbf"),
    ],
)
def test_export_answers_bad_input_in_words(tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli.app, ["export", *arguments])
    assert result.exit_code == 2
    assert words in " ".join(result.output.split())
    assert list(tmp_path.iterdir()) == []


# Penalties


@pytest.mark.slow
@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("block", BLOCKS)
def test_round_trip_of_every_penalty_has_the_certified_value(tmp_path, block, formulation):
    objective, _, _ = random_penalized(block, 1)
    path = tmp_path / "x.cbf"
    write_cbf(objective, path, formulation)
    sidecar = read_sidecar(path)
    problem, matrices, feasible = rebuild(read_cbf(path))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
        value = problem.solve(solver="CLARABEL")
    metric = matrices[0].value if matrices else feasible[0].dual_value
    assert value == pytest.approx(sidecar["upper"], rel=1e-7)
    assert sidecar["upper"] - sidecar["lower"] <= 1e-8 * max(1.0, sidecar["upper"])
    certificate = certify(objective, project(symmetrize(metric)))
    assert certificate.relative_gap < 1e-4
    assert sidecar["penalties"] == [repr(penalty) for penalty in objective.penalties]
    assert bool(sidecar["note"]) == (block == "equal")
    index = read_cbf(path).objective_matrix.index  # no entry twice
    assert len(index) == len({tuple(row) for row in index.tolist()})


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_several_penalties_are_written_into_one_file(tmp_path, formulation):
    prior = np.diag([1.0, 0.5, 2.0])
    blocks = [LogDet(0.5), Ridge(2.0, prior=prior), UpperBound(2.0 * np.eye(3)), Sparse(0.1)]
    objective = random_objective(3, "hyper", n=12, m=3, penalties=blocks)
    sidecar = write_cbf(objective, tmp_path / "x.cbf", formulation)
    program = read_cbf(tmp_path / "x.cbf")
    value = rebuild(program)[0].solve(solver="CLARABEL")
    assert value == pytest.approx(sidecar["upper"], rel=1e-7)
    text = (tmp_path / "x.cbf").read_text()
    assert "# with LogDet(0.5)\n# with Ridge(2, prior=...)" in text
    for cone in ("L+", "QR", "EXP"):
        assert cone in {kind for kind, _ in program.cones}


def test_penalties_of_one_feature_are_written_too(tmp_path):
    pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    blocks = [Diagonal(), Sparse(1.0), LogDet(0.5), Ridge(0.5)]
    objective = MStepObjective(pairs, penalties=blocks)
    for formulation in FORMULATIONS:
        sidecar = write_cbf(objective, tmp_path / "x.cbf", formulation)
        value = rebuild(read_cbf(tmp_path / "x.cbf"))[0].solve(solver="CLARABEL")
        assert value == pytest.approx(sidecar["upper"], rel=1e-6)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_failure_path_a_penalty_of_ones_own_class_is_not_exported(tmp_path, formulation):
    class Mine(Ridge):
        pass

    objective = random_objective(0, "hyper", penalties=[Mine(1.0)])
    with pytest.raises(ValueError, match=r"Ridge\(1\) cannot be exported: .*get_problem_data"):
        write_cbf(objective, tmp_path / "x.cbf", formulation)
    assert not list(tmp_path.iterdir())


def test_an_instance_with_a_penalty_is_exported_by_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "iris-n20-standard-hyper-w1-s0-sparse3"
    result = CliRunner().invoke(cli.app, ["export", name, "--cbf", "x.cbf"])
    assert result.exit_code == 0, result.output
    sidecar = read_sidecar(tmp_path / "x.cbf")
    assert InstanceSpec(**sidecar["spec"]).name == name
    assert sidecar["penalties"] == ["Sparse(3)"]
