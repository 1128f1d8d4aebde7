"""Evidence: multipliers on a face of the PSD cone prove bounds, which the checker finds again."""

from __future__ import annotations

import json
from copy import deepcopy
from functools import cache

import cvxpy as cp
import numpy as np
import pytest

from seraph_cvx.proof import certify_problem
from seraph_cvx.proof.checker import check_certificate

N = 5
TOLERANCE = 0.01


def partition(*seeds):
    """Problems as in graph partitioning, side by side: all multipliers Y have <ee', Y> = 0."""
    value, constraints = 0, []
    for seed in seeds:
        F = np.random.default_rng(seed).integers(-4, 5, size=(N, N))
        x, t = cp.Variable(N), cp.Variable()
        value += cp.sum(x)
        constraints.append(cp.diag(x) + t * np.ones((N, N)) - (F + F.T) >> 0)
    return cp.Problem(cp.Minimize(value), constraints)


@cache
def certified(*seeds):
    return certify_problem(partition(*seeds))


@pytest.fixture
def check(tmp_path):
    def check(content):
        path = tmp_path / "certificate.json"
        path.write_text(json.dumps(content))
        return check_certificate(path)

    return check


def content_of(*seeds):
    return json.loads(certified(*seeds).to_json())


@pytest.mark.parametrize("seeds", [(0,), (1,), (2,), (0, 1)])
def test_a_bound_on_faces_is_proved_and_checked(check, seeds):
    certificate, content = certified(*seeds), content_of(*seeds)
    assert certificate.relative_gap < 1e-6
    assert len(content["dual"]["faces"]) == len(seeds)
    assert [face["row"] for face in content["dual"]["faces"]] == [0, 10][: len(seeds)]
    found = check(content)
    assert found.reasons == ()
    assert found.lower == pytest.approx(certificate.lower, rel=1e-12)
    assert found.upper == pytest.approx(certificate.upper, rel=1e-12)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_tolerance_is_one_of_the_whole_block(check, seed):
    """S >= -t I moves x to x - t, so the optimum by N t, and says V'SV >= -t V'V, not -t I."""
    optimum = certified(seed).upper - N * TOLERANCE
    assert certify_problem(partition(seed), tolerance=TOLERANCE).lower <= optimum
    content = content_of(seed) | {"tolerance": TOLERANCE.hex()}
    assert not check(content).valid
    content["claim"]["lower"] = (optimum - 1e-4).hex()
    content["claim"]["upper"] = None
    found = check(content)
    assert found.valid
    assert optimum - 1e-4 <= found.lower <= optimum


def identity(row, side, order):
    entries = list(range(order))
    shape = {"row": row, "side": side, "order": order}
    return shape | {"i": entries, "j": entries, "value": order * [1]}


def test_faces_count_rows_of_the_program_before_them(check):
    content = content_of(0, 1)
    content["dual"]["faces"].append(identity(0, N - 1, N - 1))
    assert check(content).valid
    content["dual"]["faces"].append(identity(15, N, N))
    assert not check(content).valid


def test_a_face_without_columns_leaves_its_block_out(check):
    """Its multiplier is zero: minimize x with x >= 1 and tI - F >= 0."""
    x, t = cp.Variable(), cp.Variable()
    constraints = [x >= 1, t * np.eye(2) >> np.ones((2, 2))]
    certificate = certify_problem(cp.Problem(cp.Minimize(x), constraints))
    assert 1.0 - 1e-9 <= certificate.lower <= 1.0 <= certificate.upper <= 1.0 + 1e-9
    content = json.loads(certificate.to_json())
    assert check(content).valid
    row = next(size for kind, size in content["program"]["cones"] if kind == "nonnegative")
    content["dual"] = {"y": [(1.0).hex()], "h": None, "zero_rows": []}
    content["dual"]["faces"] = [identity(row, 2, 0)]
    found = check(content)
    assert found.valid
    assert found.lower == 1.0


@pytest.mark.parametrize(
    ("keys", "entry"),
    [
        (("faces",), []),
        (("faces",), None),
        (("faces",), {}),
        (("faces", 0), []),
        (("faces", 0, "row"), 1),
        (("faces", 0, "row"), False),
        (("faces", 0, "row"), -15),
        (("faces", 0, "side"), 4),
        (("faces", 0, "side"), float(N)),
        (("faces", 0, "order"), 3),
        (("faces", 0, "order"), 6),
        (("faces", 0, "order"), -1),
        (("faces", 0, "i", 0), N),
        (("faces", 0, "i", 0), -1),
        (("faces", 0, "i", 0), True),
        (("faces", 0, "j", 0), 4),
        (("faces", 0, "j", 0), 1),
        (("faces", 0, "j"), [0]),
        (("faces", 0, "value", 0), (-1.0).hex()),
        (("faces", 0, "value", 0), True),
        (("faces", 0, "value"), 9 * [1]),
        (("faces", 0, "more"), 0),
    ],
)
def test_a_face_that_is_malformed_is_rejected(check, keys, entry):
    content = content_of(0)
    assert check(content).valid
    *way, last = keys
    place = content["dual"]
    for key in way:
        place = place[key]
    place[last] = entry
    assert not check(content).valid


@pytest.mark.parametrize("k", range(8))
@pytest.mark.parametrize("change", [-2, -1, 1, 10**30])
def test_no_matrix_of_a_face_proves_more_than_the_truth(check, k, change):
    content, optimum = content_of(0), certified(0).upper
    content["dual"]["faces"][0]["value"][k] += change
    content["claim"]["lower"] = (optimum + 1e-9).hex()
    found = check(content)
    assert not found.valid
    assert found.lower is None or found.lower <= optimum


def test_other_points_and_claims_prove_no_more_than_the_truth(check):
    rng, optimum = np.random.default_rng(0), certified(0).upper
    for _ in range(40):
        content = deepcopy(content_of(0))
        for k in rng.integers(len(content["dual"]["y"]), size=2):
            content["dual"]["y"][k] = float(rng.normal()).hex()
        content["claim"]["lower"] = (optimum + 1e-9).hex()
        found = check(content)
        assert not found.valid
        assert found.lower is None or found.lower <= optimum


@pytest.mark.parametrize("point", ["primal", "ray_dual", "ray_primal"])
def test_only_the_dual_point_may_be_on_faces(check, point):
    content = content_of(0)
    content["ray_dual"] = {"y": 15 * [(0.0).hex()]}
    content["ray_primal"] = {"x": 6 * [(0.0).hex()]}
    assert check(content).valid
    content[point]["faces"] = []
    assert not check(content).valid
