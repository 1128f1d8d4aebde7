"""Evidence that a problem handed out is the problem: read back, solved, same value."""

from __future__ import annotations

import hashlib
import json
import warnings

import cvxpy as cp
import numpy as np
import pytest
from command_line import assert_answered_in_words, run, words

from seraph_cvx import MStepObjective, PairSet, certify, certify_problem
from seraph_cvx.numerics.psd_cone import project, symmetrize
from seraph_cvx.proof import read_problem
from seraph_cvx.race.cbf import write_cbf
from seraph_cvx.race.suite import InstanceSpec
from seraph_cvx.solvers.solution import OptimumNotAttained

NAMES = [
    "iris-n20-standard-hyper-w1-s0",
    "balance-n20-raw-proj-w0.1-s0",
    "wine-n16-standard-proj-w0.5-s1",
]
both_formulations = pytest.mark.parametrize("formulation", ["primal", "dual"])


def round_trip(instance, path, formulation="primal", rel=1e-6, **options):
    """Written, read and solved again it has the certified value: the problem and the sidecar.

    The certificate judges, not the status of the conic solver.
    """
    sidecar = write_cbf(instance, path, formulation)
    assert sidecar == json.loads(path.with_suffix(".json").read_text())
    assert sidecar["file_sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert sidecar["upper"] - sidecar["lower"] <= 1e-8 * max(1.0, abs(sidecar["upper"]))
    problem = read_problem(path)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
        value = problem.solve(**({"solver": "CLARABEL"} | options))
    assert value == pytest.approx(sidecar["upper"], rel=rel)
    return problem, sidecar


def metric_of(problem, sidecar):
    """The first matrix of the primal; of the dual a multiplier of a matrix of its order."""
    psd = [c for c in problem.constraints if isinstance(c, cp.constraints.PSD)]
    if not psd:
        return None
    if sidecar["formulation"] == "primal":
        return project(symmetrize(psd[0].args[0].value))
    *_, last = (c for c in psd if c.shape[0] == sidecar["n_features"])  # log det has others before
    return project(symmetrize(last.dual_value))


@both_formulations
@pytest.mark.parametrize("name", NAMES)
def test_round_trip_read_back_solved_has_the_certified_value(tmp_path, name, formulation):
    path = tmp_path / "instance.cbf"
    # Clarabel fails on some of the duals
    scs = {"solver": "SCS", "eps_abs": 1e-8, "eps_rel": 1e-8} if formulation == "dual" else {}
    problem, sidecar = round_trip(InstanceSpec.parse(name), path, formulation, 1e-5, **scs)
    written, spec = path.read_bytes(), InstanceSpec.parse(sidecar["instance"])
    certificate = certify(spec.objective(), metric_of(problem, sidecar))
    assert sidecar["lower"] <= certificate.primal_value
    assert certificate.dual_value <= sidecar["upper"]
    assert certificate.primal_value == pytest.approx(sidecar["upper"], rel=1e-7)
    write_cbf(spec, path, formulation)
    assert path.read_bytes() == written


def test_an_unknown_formulation_ending_or_unattained_optimum_is_refused(tmp_path):
    objective = InstanceSpec.parse(NAMES[1]).objective()
    with pytest.raises(ValueError, match="formulation"):
        write_cbf(objective, tmp_path / "x.cbf", "textbook")
    with pytest.raises(ValueError, match=r"must end in \.cbf"):
        write_cbf(objective, tmp_path / "x.json")
    with pytest.raises(TypeError, match=r"must be a cvxpy\.Problem"):
        write_cbf(3, tmp_path / "x.cbf")
    pairs = PairSet.from_constraints([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]], [(0, 1)], [(0, 2)])
    with pytest.raises(OptimumNotAttained):
        write_cbf(MStepObjective(pairs, trace_weight=0.0, unlabeled_weight=0.0), tmp_path / "x.cbf")
    assert not list(tmp_path.iterdir())


# Problems of one's own


def test_a_problem_with_every_cone_is_the_same_when_read_back(tmp_path):
    x, X = cp.Variable(3), cp.Variable((3, 3), PSD=True)
    C = np.arange(9.0).reshape(3, 3)
    value = cp.sum(cp.log(x)) - cp.norm(x) - cp.sum_squares(X - C) + x[0]
    power = cp.PowCone3D(x[0], x[1], 2 * x[2], 0.2)  # active: 5 log(x_3) pulls
    constraints = [cp.sum(x) == 2, X[0, 1] <= -0.5, power, cp.Variable() == 1]
    problem = cp.Problem(cp.Maximize(value + 5 * cp.log(x[2]) + 7.0), constraints)
    _, sidecar = round_trip(problem, tmp_path / "x.cbf")
    text = (tmp_path / "x.cbf").read_text()
    assert {"L=", "L+", "Q", "EXP", "@0:POW"} <= set(text.split())
    assert "PSDCON\n1\n3\n" in text
    again = certify_problem(read_problem(tmp_path / "x.cbf"))
    assert max(again.lower, sidecar["lower"]) <= min(again.upper, sidecar["upper"])
    assert again.relative_gap < 1e-6


def test_power_cones_of_many_rows_and_problems_without_an_optimum_are_written(tmp_path):
    x = cp.Variable(3, nonneg=True)
    cone = cp.PowConeND(x, cp.Variable() + 2, [0.5, 0.3, 0.2])
    write_cbf(cp.Problem(cp.Minimize(cp.sum(x)), [cone]), tmp_path / "x.cbf")
    text = (tmp_path / "x.cbf").read_text()
    assert "POWCONES\n1 3\n3\n0.5\n0.3\n0.2\n" in text
    assert "\n@0:POW 4\n" in text
    infeasible = write_cbf(cp.Problem(cp.Minimize(x[0]), [x <= -1]), tmp_path / "y.cbf")
    assert infeasible["lower"] is infeasible["upper"] is None
    assert "no point is feasible" in infeasible["claim"]
    assert certify_problem(read_problem(tmp_path / "y.cbf")).lower == np.inf


def test_the_command_writes_a_problem_of_a_file_and_an_m_step(tmp_path):
    file, path = tmp_path / "own.py", tmp_path / "own.cbf"
    file.write_text(
        "import cvxpy as cp\nx = cp.Variable()\nproblem = cp.Problem(cp.Minimize(cp.exp(x) - x))\n"
        "integer = cp.Problem(cp.Minimize(cp.Variable(integer=True)))\n"
    )
    answer = run(f"export {file}:problem --cbf", path)
    assert answer.exit_code == 0, answer.output
    low, high = json.loads(words(answer.output).partition("lies in ")[2].partition(", proved")[0])
    assert low <= 1.0 <= high <= low + 1e-7
    assert read_problem(path).solve(solver="CLARABEL") == pytest.approx(1.0)
    for name in (path, NAMES[1]):  # a file that is read, and an M-step
        answer = run(f"export {name} --cbf", tmp_path / "again.cbf")
        assert answer.exit_code == 0, answer.output
        sidecar = json.loads((tmp_path / "again.json").read_text())
        assert f"[{sidecar['lower']}, {sidecar['upper']}]" in words(answer.output)
    refused = run(f"export {file}:integer --cbf", tmp_path / "z.cbf")
    assert_answered_in_words(refused, ["Integer or boolean variables"])
    assert not (tmp_path / "z.cbf").exists()
