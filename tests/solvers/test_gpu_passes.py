"""Evidence: passes over all pairs on a GPU are those of NumPy."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import numpy_kernels
import pytest
from evidence.measuring import gaussian_classes

from seraph_cvx import SERAPH, MStepObjective, PairSet, solve_m_step
from seraph_cvx.engine import gpu as gpu_engine
from seraph_cvx.engine.distances import Layout
from seraph_cvx.engine.gpu import GpuPairs
from seraph_cvx.engine.passes import AllPairs, LossTerms
from seraph_cvx.model import pair_program
from seraph_cvx.model.posterior import LOGISTIC, EntropyLoss, SharpenedLoss
from seraph_cvx.pairs.labeled_pairs import ClassLabels

LOSSES = [LOGISTIC, SharpenedLoss(2.0), SharpenedLoss(1.5), EntropyLoss()]


@pytest.fixture
def kernels(monkeypatch):
    """NumPy in the place of a GPU."""
    monkeypatch.setattr(gpu_engine, "cuda_kernels", lambda x, module: numpy_kernels)
    monkeypatch.setattr(pair_program, "cuda_kernels", lambda x, module: numpy_kernels)


def instance(loss, n=30, m=7, rho=3, n_labeled=6, seed=0):
    """Points, a factor, two directions, the pairs on the host and on a device."""
    rng = np.random.default_rng(seed)
    X, L, D = rng.normal(size=(n, m)), rng.normal(size=(m, rho)), rng.normal(size=(m, rho))
    labels = ClassLabels(np.arange(n_labeled), np.arange(n_labeled) % 2)
    host = AllPairs(X, Layout(n, labels), LossTerms(loss, 0.0, 0.3, LOGISTIC), 1.2).at(L)
    pairs = GpuPairs(X, n_labeled, loss, LOGISTIC, 0.3, 1.2)
    return X, L, D, host, pairs


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("n_labeled", [0, 1, 6, 30])
def test_a_pass_has_the_sums_and_slopes_of_the_host(kernels, loss, n_labeled):
    _, L, _, host, pairs = instance(loss, n_labeled=n_labeled)
    found = pairs.pass_at(L)
    np.testing.assert_allclose(found.total, host.total, rtol=1e-12)
    np.testing.assert_allclose(found.half_gradient, host.half_gradient, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found.gradient, host.gradient, rtol=1e-10, atol=1e-10)
    if isinstance(loss, SharpenedLoss):
        np.testing.assert_allclose(found.excess, host.excess, rtol=1e-10, atol=1e-10)
    else:
        assert np.isnan(found.excess)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_second_derivatives_are_those_of_the_host_in_single_precision(kernels, loss):
    _, L, D, host, pairs = instance(loss)
    found = pairs.pass_at(L)
    product = host.hessian_product(D)
    np.testing.assert_allclose(found.hessian_product(D), product, atol=1e-4 * np.abs(product).max())


def test_a_gradient_of_many_features_is_summed_in_parts(kernels, monkeypatch):
    _, L, _, host, pairs = instance(LOGISTIC)
    monkeypatch.setattr(gpu_engine, "GRADIENT_COLUMNS", 3)
    np.testing.assert_allclose(pairs.pass_at(L).gradient, host.gradient, rtol=1e-10, atol=1e-10)


def test_some_points_stand_for_all_where_these_are_many(kernels, monkeypatch):
    _, L, D, _, pairs = instance(LOGISTIC, n=400, n_labeled=8)
    L *= 0.1  # so that no few pairs count for most
    everything = pairs.pass_at(L)
    assert pairs.few is pairs
    monkeypatch.setattr(gpu_engine, "FEW_POINTS", 260)
    some = replace(pairs).few  # `few` is kept
    assert (some.n_labeled, len(some.X)) == (8, 268)
    np.testing.assert_allclose(some.counts.sum(), 400)
    exact, estimate = everything.hessian_product(D), some.pass_at(L).hessian_product(D)
    assert np.abs(estimate - exact).max() < 0.3 * np.abs(exact).max()


def test_a_fit_by_the_device_is_the_fit_of_the_host(kernels, monkeypatch):
    """By arrays of array-api-strict, which DeviceSums takes to be on a device."""
    import array_api_strict

    X, y = gaussian_classes(120, 3)
    passes = []
    whole_pass = GpuPairs.pass_at

    def pass_at(pairs, L):
        passes.append(L.shape)
        return whole_pass(replace(pairs, X=np.asarray(pairs.X)), L)

    monkeypatch.setattr(GpuPairs, "pass_at", pass_at)
    objective = MStepObjective(PairSet.from_labels(array_api_strict.asarray(X), y))
    found = solve_m_step(objective)
    plain = solve_m_step(MStepObjective(PairSet.from_labels(X, y)))
    assert passes
    assert found.certificate.relative_gap <= 1e-8
    np.testing.assert_allclose(found.metric, plain.metric, atol=1e-5)


COMPARED = """
import sys

import numpy as np
import torch

import numpy_kernels
from seraph_cvx.numerics.cuda import bounds, pair_passes as kernels
from seraph_cvx.numerics.cuda.pair_range import BoundedPairs, PairRange
from seraph_cvx.engine.distances import distance_sides

rng = np.random.default_rng(0)
numpy_kernels.TILE = 64

def moved(x):
    return torch.asarray(x, device=sys.argv[1])

def assert_close(mine, other, tol):
    other = np.asarray(other)
    atol = tol * np.abs(other).max()
    np.testing.assert_allclose(np.asarray(mine.cpu()), other, atol=atol, rtol=0)

for n, rho, first in [(70, 3, 0), (150, 5, 40), (130, 14, 64)]:
    Y, E, X = (rng.normal(size=(n, k)) * 0.6 for k in (rho, rho, 20))
    sides, plain = kernels.sides(moved(Y), 1.0), numpy_kernels.sides(Y, 1.0)
    single = kernels.single(sides)
    Z, plain_Z = kernels.padded([moved(X)]), numpy_kernels.padded([X])
    own, one = np.sum(Y * E, axis=1), np.ones(n)
    e = [E, -own, *[0.0 * one] * (plain[0].shape[1] - rho - 2), one]
    direction = kernels.padded([moved(c) for c in e], single=True)
    counts = rng.uniform(1.0, 2.0, size=n)
    weights, plain_weights = kernels.counted(moved(counts)), numpy_kernels.counted(counts)
    sharpened = [("sharpened", a) for a in (2.0, 1.5, 1.000001)]
    for kind, a in [("logistic", 1.0), *sharpened, ("entropy", 1.0)]:
        pairs = PairRange(n, first, kind, a, weight=0.3)
        both = [pairs, PairRange(first, 0, "logistic", 1.0)] if first else [pairs]
        parts = [kernels.loaded(part, sides[0]) for part in both]
        sums, found = kernels.gradients(sides, parts, rho + 1)
        plain_sums, other = numpy_kernels.gradients(plain, both, rho + 1)
        # NumPy subtracts numbers that are equal to six digits, and has as many fewer right
        tol = 1e-9 if 1.0 < a < 1.1 else 1e-12
        total, excess = kernels.totals(parts, sums.cpu())
        plain_total, plain_excess = numpy_kernels.totals(both, plain_sums)
        np.testing.assert_allclose(total, plain_total, rtol=tol)
        if kind == "sharpened":
            np.testing.assert_allclose(excess, plain_excess, rtol=tol)
        assert_close(found[:n, : rho + 1], other[:n, : rho + 1], tol)
        upper = numpy_kernels.upper_product(plain, plain_Z, both)
        assert_close(kernels.upper_product(sides, Z, parts), upper, tol)
        found = kernels.hessian_products(single, direction, weights, parts, rho)
        plain_e = numpy_kernels.padded(e)
        other = numpy_kernels.hessian_products(plain, plain_e, plain_weights, both, rho)
        for columns in (slice(0, rho), slice(-1, None)):
            assert_close(found[0][:n, columns], other[0][:n, columns], 3e-3)
        assert_close(found[1][:n, : rho + 1], other[1][:n, : rho + 1], 3e-3)
        uncounted = kernels.hessian_products(single, direction, None, parts, rho)[1]
        other = numpy_kernels.hessian_products(plain, plain_e, None, both, rho)[1]
        assert_close(uncounted[:n, : rho + 1], other[:n, : rho + 1], 3e-3)

for n, rho, first, k in [(70, 3, 0, 20), (150, 20, 40, 64)]:
    Y, P, Z = (rng.normal(size=(n, c)) * 0.4 for c in (rho, 2, k))
    width = rng.uniform(0.0, 1e-3, size=n)
    of_points, of_labels = (
        distance_sides(W, W, np.sum(W * W, axis=1) - width) for W in (Y, P)
    )
    numbers = (1.0, 0.99, 1.3, 600.0, 1.0 + 1e-14, 1.0 - 1e-14)
    for kind in ("no labels", "soft labels", "labels alone"):
        pairs = BoundedPairs(n, first, kind, numbers)
        labels = of_labels if kind == "soft labels" else None
        plain = (of_points, width, labels, Z)
        on_gpu = [p if p is None else [moved(x) for x in p] for p in (of_points, labels)]
        found = bounds.weighted_bounds(on_gpu[0], moved(width), on_gpu[1], moved(Z), pairs)
        for mine, other in zip(found, numpy_kernels.weighted_bounds(*plain, pairs)):
            assert_close(mine, other, 1e-13)
"""


@pytest.fixture
def gpu():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("triton", reason="triton is not installed")
    if not torch.cuda.is_available():
        pytest.skip("there is no CUDA GPU")
    return torch


def test_the_kernels_are_the_formulas(gpu):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", COMPARED, "cuda"], check=True, env=environment)


def test_a_fit_on_a_gpu_is_the_fit_of_the_host(gpu):
    X, y = gaussian_classes(700, 8)
    on_device = SERAPH().fit(gpu.asarray(X, device="cuda"), y)
    plain = SERAPH().fit(X, y)
    assert on_device.certificate_.relative_gap <= 1e-8
    np.testing.assert_allclose(on_device.m_step_metric_, plain.m_step_metric_, atol=1e-5)
