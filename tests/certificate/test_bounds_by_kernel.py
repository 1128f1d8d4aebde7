"""Evidence: the bounds that one kernel of a GPU makes are those of the sweep, and as true."""

from __future__ import annotations

from operator import attrgetter

import array_api_strict
import numpy as np
import numpy_kernels
import pytest
from evidence.measuring import gaussian_classes
from flint import ctx
from high_precision import BITS, differences, exact, forms

from seraph_cvx import MStepObjective, PairSet, certify
from seraph_cvx.certificate.pair_bounds import bound_pairs
from seraph_cvx.engine import device
from seraph_cvx.model.label_bounds import _low_rank_bounds
from seraph_cvx.proof.rounding import FUSED_ROUNDINGS

M = 5


class Kernels:
    """NumPy in the place of a GPU, which notes what it was asked for."""

    def __init__(self):
        self.kinds = []

    def weighted_bounds(self, sides, width, labels, Z, pairs):
        self.kinds.append(pairs.kind)
        found = numpy_kernels.weighted_bounds(sides, width, labels, Z, pairs)
        return tuple(array_api_strict.asarray(part) for part in found)


@pytest.fixture
def kernels(monkeypatch):
    stand_in = Kernels()
    monkeypatch.setattr(device, "cuda_kernels", lambda x, module: stand_in)
    return stand_in


def instance(soft, moved=array_api_strict.asarray, n=130, **settings):
    X, y = gaussian_classes(n, M)
    P = np.random.default_rng(1).normal(size=(M, 2)) * 0.4
    labels = {"previous_metric": P @ P.T} if soft else {}
    return MStepObjective(PairSet.from_labels(moved(X), y), **labels, **settings)


L = np.random.default_rng(2).normal(size=(M, 3)) * 0.4


def of_spread(bounds):
    return bounds.dual_error.spread[0]


ALIKE = "primal_value tangent_value toward_one toward_labels labels.value labels.total"


@pytest.mark.parametrize("soft", [False, True])
def test_the_sums_are_those_of_the_sweep(kernels, soft):
    found = bound_pairs(instance(soft), L)
    plain = bound_pairs(instance(soft, np.asarray), L)
    assert set(kernels.kinds) == ({"soft labels", "labels alone"} if soft else {"no labels"})
    for part in map(attrgetter, [*ALIKE.split(), "labels.soft_least"]):
        np.testing.assert_allclose(part(found), part(plain), rtol=1e-10)
    for part in (attrgetter("dual_matrix"), attrgetter("labels.matrix"), of_spread):
        mine, other = part(found), part(plain)
        np.testing.assert_allclose(mine, other, atol=1e-12 * np.abs(other).max())
    assert found.dual_error.chain >= 3 * 130 + FUSED_ROUNDINGS


@pytest.mark.parametrize("settings", [{"threshold": 6.0}, {"sharpness": 8.0}], ids=str)
def test_a_large_threshold_is_left_to_the_sweep(kernels, settings):
    objective = instance(True, **settings)
    found, plain = bound_pairs(objective, L), bound_pairs(instance(True, np.asarray, **settings), L)
    assert not kernels.kinds
    np.testing.assert_allclose(found.primal_value, plain.primal_value, rtol=1e-11)


def test_a_certificate_by_the_kernel_encloses_the_optimum_of_the_host(kernels):
    A = L @ L.T
    found, plain = certify(instance(True), A), certify(instance(True, np.asarray), A)
    assert kernels.kinds
    assert found.dual_value <= plain.dual_value < plain.primal_value <= found.primal_value
    np.testing.assert_allclose(found.dual_value, plain.dual_value, rtol=1e-9)


@pytest.mark.parametrize("scale", [1.0, 1e8])
def test_distances_by_a_factor_of_a_metric_enclose_those_of_the_metric(scale):
    """Points of which one feature is large, and the metric small in it."""
    rng = np.random.default_rng(0)
    unit = np.array([scale, 1.0, 1.0, 1.0, 1.0])
    X, F = rng.normal(size=(12, M)) * unit, rng.normal(size=(M, 2)) / unit[:, None]
    P = F @ F.T
    bounds = _low_rank_bounds(P)
    assert bounds is not None
    left, right, width = bounds.sides(X)
    lower = (left @ right.T)[0, 1:]
    upper = lower + width[0] + width[1:]
    of_listed = bounds.on_differences(X[1:] - X[0])
    with ctx.workprec(BITS):
        true = forms(differences(X, [(j, 0) for j in range(1, 12)]), exact(P))
        for d, low, high in zip(true, np.maximum(of_listed, lower), upper, strict=True):
            assert float(low) <= d <= float(high)
    assert np.all(upper - lower < 1e-10 * np.maximum(1.0, [*map(float, true)]) * M)


def test_a_metric_that_has_no_such_factor_is_taken_as_it_is():
    P = np.diag([2.0, 1.0, 0.0, 0.0, 0.0])
    assert _low_rank_bounds(P) is not None
    assert _low_rank_bounds(np.diag([2.0, 1.0, 1.0, 0.0, 0.0])) is None  # too many columns
    assert _low_rank_bounds(P - np.diag([0.0, 0.0, 0.1, 0.0, 0.0])) is None  # not PSD
