"""Evidence that an instance handed out is the instance: read back, rebuilt, solved, same value."""

from __future__ import annotations

import hashlib
import json
import warnings

import cvxpy as cp
import pytest
from cbf_reader import read_cbf
from penalized import BLOCKS, random_penalized

from seraph_cvx import MStepObjective, PairSet, certify
from seraph_cvx.numerics.psd_cone import project, symmetrize
from seraph_cvx.penalties import LinearConstraints
from seraph_cvx.race.cbf import write_cbf
from seraph_cvx.race.suite import InstanceSpec
from seraph_cvx.solvers.solution import OptimumNotAttained

NAMES = [
    "iris-n20-standard-hyper-w1-s0",
    "balance-n20-raw-proj-w0.1-s0",
    "wine-n16-standard-proj-w0.5-s1",
]
both_formulations = pytest.mark.parametrize("formulation", ["primal", "dual"])


def round_trip(instance, path, formulation, rel=1e-6, **options):
    """Written, read and solved again it has the certified value: the metric and the sidecar.

    The certificate judges, not the status of the conic solver.
    """
    sidecar = write_cbf(instance, path, formulation)
    assert sidecar == json.loads(path.with_suffix(".json").read_text())
    assert sidecar["file_sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert sidecar["upper"] - sidecar["lower"] <= 1e-8 * max(1.0, sidecar["upper"])
    program = read_cbf(path)
    problem, psd = program.to_cvxpy()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
        value = problem.solve(**({"solver": "CLARABEL"} | options))
    assert value == pytest.approx(sidecar["upper"], rel=rel)
    return project(symmetrize(program.metric(psd))) if psd else None, sidecar


@both_formulations
@pytest.mark.parametrize("name", NAMES)
def test_round_trip_read_back_rebuilt_solved_has_the_certified_value(tmp_path, name, formulation):
    path = tmp_path / "instance.cbf"
    # Clarabel fails on some of the duals
    scs = {"solver": "SCS", "eps_abs": 1e-8, "eps_rel": 1e-8} if formulation == "dual" else {}
    metric, sidecar = round_trip(InstanceSpec.parse(name), path, formulation, 1e-5, **scs)
    written, spec = path.read_bytes(), InstanceSpec.parse(sidecar["instance"])
    certificate = certify(spec.objective(), metric)
    assert sidecar["lower"] <= certificate.primal_value
    assert certificate.dual_value <= sidecar["upper"]
    assert certificate.primal_value == pytest.approx(sidecar["upper"], rel=1e-7)
    write_cbf(spec, path, formulation)
    assert path.read_bytes() == written


def test_an_unknown_formulation_ending_or_unattained_optimum_is_refused(tmp_path):
    objective = InstanceSpec.parse(NAMES[1]).objective()
    with pytest.raises(ValueError, match="formulation"):
        write_cbf(objective, tmp_path / "x.cbf", "textbook")
    pairs = PairSet.from_constraints([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]], [(0, 1)], [(0, 2)])
    with pytest.raises(OptimumNotAttained):
        write_cbf(MStepObjective(pairs, trace_weight=0.0, unlabeled_weight=0.0), tmp_path / "x.cbf")
    assert not list(tmp_path.iterdir())


def test_a_problem_of_ones_own_is_written_with_its_proven_interval(tmp_path):
    x, X = cp.Variable(3), cp.Variable((2, 2), PSD=True)
    value = cp.sum(cp.log(x)) - cp.norm(x) - cp.sum_squares(X - 1) + cp.sum(x)
    problem = cp.Problem(cp.Maximize(value + 7.0), [cp.sum(x) == 2, X[0, 1] <= -0.5])
    round_trip(problem, tmp_path / "x.cbf", "primal")
    powers = cp.Problem(cp.Minimize(cp.sum(cp.power(x, 2.5, approx=False)) + 1.0), [x >= 1])
    write_cbf(powers, tmp_path / "y.cbf")
    assert "POWCONES\n3 6\n2\n0.4\n0.6\n" in (tmp_path / "y.cbf").read_text()


# Penalties


@pytest.mark.slow
@both_formulations
@pytest.mark.parametrize("block", BLOCKS)
def test_round_trip_of_every_penalty_has_the_certified_value(tmp_path, block, formulation):
    objective, _, _ = random_penalized(block, 1)
    metric, sidecar = round_trip(objective, tmp_path / "x.cbf", formulation, 1e-7)
    if metric is None:  # a diagonal metric has no PSD cone
        assert block == "Diagonal"
    else:
        assert certify(objective, metric).relative_gap < 1e-4
    assert bool(sidecar["note"]) == any(
        isinstance(b, LinearConstraints) for b in objective.penalties
    )


# The command
