"""Evidence: certificates of fits hold by other code, and changed ones are not accepted."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command_line import run
from instances import SETTINGS, paper_m_step, random_objective
from m_step_stress import PENALTIES, judged, value

from seraph_cvx import SERAPH, MStepObjective, PairSet, certify, check_certificate, solve_m_step
from seraph_cvx.penalties import Ridge

POINTS = [[0.0], [0.2], [2.0], [2.3]]


@pytest.fixture
def check(tmp_path):
    def check(content, progress=None):
        path = tmp_path / "certificate.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return check_certificate(path, progress)

    return check


@pytest.mark.parametrize(
    "seed", [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (3, 4, 5))]
)
def test_files_of_fits_hold_and_changed_ones_say_nothing_false(seed):
    row = judged(seed, mutants=3)
    assert row["files"] == 2
    assert row["rejected"] == row["false files accepted"] == 0


@pytest.mark.parametrize("q", ["start", "random", "streamed"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_bounds_of_the_checker_enclose_those_of_the_paper(check, setting, q):
    objective = random_objective(0, setting, q=q)
    A = solve_m_step(objective, tol=1e-9, allow_unattained=True).metric
    certificate = certify(objective, A)
    content = json.loads(certificate.to_json())
    found = check(content)
    assert found.reasons == ()
    assert certificate.dual_value - 1e-9 <= found.lower <= found.upper <= certificate.primal_value
    exact, _ = paper_m_step(objective, certificate.metric)
    assert found.upper == pytest.approx(exact, rel=1e-12)
    assert value(content, certificate.factor) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("name", PENALTIES)
def test_the_bounds_of_every_penalty_hold(check, name):
    rng = np.random.default_rng(3)
    pairs = PairSet.from_labels(rng.normal(size=(14, 3)), [0, 0, 0, 1, 1, 1] + 8 * [-1])
    objective = MStepObjective(pairs, penalties=[PENALTIES[name](rng, 3)])
    certificate = solve_m_step(objective, tol=1e-6).certificate
    found = check(certificate.to_json())
    assert found.reasons == ()
    assert found.upper - found.lower <= 1e-5 * max(1.0, abs(found.upper))
    content = json.loads(certificate.to_json())
    content["claim"]["lower"] = (found.upper + 1e-9).hex()
    assert not check(content).valid


def changed(keys, entry):
    content = json.loads(certify(MStepObjective(PairSet.from_labels(POINTS, [0, 0, 1, -1])),
                                 [[0.9227]]).to_json())  # fmt: skip
    *way, last = keys
    place = content
    for key in way:
        place = place[key]
    place[last] = entry
    return content


@pytest.mark.parametrize(
    ("keys", "entry"),
    [
        (("version",), 2),
        (("more",), 1),
        (("claim", "infeasible"), False),
        (("m_step", "points", 0), []),
        (("m_step", "similar"), [[0, 1], [0, 1]]),
        (("m_step", "similar"), [[1, 0]]),
        (("m_step", "similar"), [[0, 1]] * 2),
        (("m_step", "dissimilar", 0), [0, 1]),
        (("m_step", "confidence"), [(-1.0).hex()] * 3),
        (("m_step", "unlabeled_weight"), (-1.0).hex()),
        (("m_step", "trace_weight"), 1.0),
        (("m_step", "trace_weight"), (-1.0).hex()),
        (("m_step", "soft_labels"), [(1.5).hex()] * 3),
        (("m_step", "manifold_term"), [[(-1.0).hex()]]),
        (("m_step", "penalties"), [{"kind": "own"}]),
        (("m_step", "penalties"), [{"kind": "quadratic", "weight": (0.0).hex(), "prior": []}]),
        (("dual", "step"), (1.0 + 2.0**-40).hex()),
        (("dual", "step"), (-1.0).hex()),
        (("dual", "anchor"), "two"),
        (("dual", "groups"), [0, 1]),
        (("dual", "groups"), [0, 1, True, 0]),
        (("dual", "multipliers"), [[[(0.0).hex()]]]),
        (("dual", "factor"), [[(0.1).hex()]]),
        (("dual",), None),
        (("primal", "factor"), [[(0.1).hex()]]),
        (("primal",), None),
    ],
)
def test_a_changed_file_is_rejected(check, keys, entry):
    assert check(changed(("version",), 1)).valid
    assert not check(changed(keys, entry)).valid


def test_a_dual_point_that_is_not_feasible_proves_nothing(check):
    """Without a trace weight and with r = sigma(-s) at zero, the matrix has the wrong sign."""
    pairs = PairSet.from_constraints(POINTS, [(0, 3)], [(0, 1)])
    objective = MStepObjective(pairs, unlabeled_weight=0.0, trace_weight=0.0)
    content = json.loads(certify(objective, [[1.0]]).to_json())
    assert check(content).valid
    content["dual"] |= {"anchor": "one", "step": (1.0).hex(), "factor": [[(1e3).hex()]]}
    content["m_step"]["similar"], content["m_step"]["dissimilar"] = [], [[0, 1], [0, 3]]
    content["dual"]["factor"] = [[(0.0).hex()]]
    assert check(content).lower is None


def test_pairs_between_groups_that_count_leave_no_feature_out(check):
    """S is indefinite, but positive in the only feature in which points of one group differ."""
    points = [[0.0, 0.0], [1.0, 1.0], [5.0, 0.0], [6.0, 0.0]]
    pairs = PairSet.from_constraints(points, [(2, 3)], [(0, 1)], [1.0], [1.3])
    objective = MStepObjective(pairs, unlabeled_weight=0.0, trace_weight=0.0)
    content = json.loads(certify(objective, np.eye(2)).to_json())
    zero = [[(0.0).hex()], [(0.0).hex()]]
    step = {"factor": zero, "anchor": "one", "step": (1.0).hex(), "groups": [0, 0, 1, 2]}
    content["dual"] |= step
    content["claim"]["lower"] = (0.5).hex()  # the infimum is log(1 + 1/e) = 0.31
    assert not check(content).valid
    assert check(content).lower is None


@pytest.mark.slow
def test_many_points_are_checked_with_progress(check):
    rng, said = np.random.default_rng(0), []
    labels = np.r_[np.arange(10) % 2, np.full(530, -1)]
    objective = MStepObjective(PairSet.from_labels(rng.normal(size=(540, 2)), labels))
    assert check(certify(objective, np.eye(2)).to_json(), said.append).valid
    assert said == ["checked the pairs of 500 of 540 points"]


def test_a_penalty_of_ones_own_is_refused_by_name():
    class Own(Ridge):
        """Another formula may be meant, whatever it inherits."""

    pairs = PairSet.from_labels(POINTS, [0, 0, 1, -1])
    certificate = certify(MStepObjective(pairs, penalties=[Own(0.5)]), [[0.5]])
    with pytest.raises(TypeError, match="a class of your own"):
        certificate.to_json()


def test_a_fit_without_a_certificate_has_no_m_step():
    model = SERAPH(algorithm="direct", max_iter=2000).fit(POINTS, [0, 0, 1, -1])
    with pytest.raises(AttributeError, match="this fit has none"):
        model.m_step_objective_  # noqa: B018


def test_the_commands_write_and_check_a_proof(tmp_path):
    rows = np.random.default_rng(0).normal(size=(12, 2)).tolist()
    lines = ["a,b,kind", *(f"{a},{b},{k % 2 if k < 6 else ''}" for k, (a, b) in enumerate(rows))]
    table, proof = tmp_path / "table.csv", tmp_path / "proof.json"
    table.write_text("\n".join(lines))
    answer = run(f"fit {table} --label kind --proof", proof)
    assert answer.exit_code == 0, answer.output
    assert run("check", proof).exit_code == 0
    content = json.loads(proof.read_text())
    content["claim"]["lower"] = content["claim"]["upper"]
    content["claim"]["upper"] = (float.fromhex(content["claim"]["upper"]) * 1.1).hex()
    proof.write_text(json.dumps(content))
    assert run("check", proof).exit_code == 1
    answer = run(f"fit {table} --label kind --algorithm direct --proof", proof)
    assert answer.exit_code == 2
