"""Evidence: sums and products that claim to be accurate are so, against exact arithmetic."""

from __future__ import annotations

from importlib import import_module

import array_api_strict
import numpy as np
import pytest
from flint import arb, ctx
from high_precision import (
    BITS,
    differences,
    exact,
    forms,
    is_within,
)

from seraph_cvx import MStepObjective, PairSet
from seraph_cvx.engine.distances import block_distances
from seraph_cvx.numerics.accurate_sums import (
    _cut,
    accurate_product,
    exact_difference,
    product_chain,
    short_product,
    short_totals,
    totals_chain,
)
from seraph_cvx.numerics.arrays import to_host
from seraph_cvx.proof.rounding import UNIT, gamma


@pytest.fixture(autouse=True)
def _many_bits():
    with ctx.workprec(BITS):
        yield


def assert_within(product, sizes, true, count):
    """No entry is off by more than gamma of its size."""
    assert is_within(exact(product) - true, exact(sizes) * arb(gamma(count)))


def one_and_dust(count):
    """1 and many numbers too small to change it one by one: a sum in sequence loses them all."""
    x = np.full(count, UNIT / 2.0)
    x[0] = 1.0
    return x, 1 + (count - 1) * arb(UNIT) / 2


@pytest.mark.parametrize("count", [1, 15, 16, 17, 33, 250, 256, 257, 4905, 100_003])
def test_no_number_goes_through_more_additions_than_are_counted(count):
    x, true = one_and_dust(count)
    for found, chain in [
        (short_totals([x])[0], totals_chain),
        (short_totals([x] * 17)[-1], totals_chain),
        (short_totals([array_api_strict.asarray(x)])[0], totals_chain),
        (short_product(x[None, :], np.ones((count, 1)))[0, 0], product_chain),
    ]:
        assert abs(arb(float(found)) - true) <= gamma(chain(count)) * true


@pytest.mark.parametrize("seed", range(20))
def test_a_difference_and_its_rest_are_exact(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, 30)) * 10.0 ** rng.uniform(-12, 12, (2, 30))
    high, low = exact_difference(a, b)
    assert exact(high) + exact(low) == exact(a) - exact(b)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("library", ["numpy", "array_api_strict"])
def test_an_accurate_product_is_off_by_no_more_than_it_says(library, seed):
    """Features of all scales, a point far out, a basis that undoes the scales."""
    asarray = import_module(library).asarray
    rng = np.random.default_rng(seed)
    n, m, k = 4, int(rng.integers(1, 40)), 3
    scale = 10.0 ** rng.uniform(-9, 9, m) * (seed % 3 > 0) + (seed % 3 == 0)
    given = rng.normal(size=(n, m)) * scale
    if seed % 2:
        given[0, 0] = 1e8
    T = rng.normal(size=(m, k)) / scale[:, None]
    shift = np.median(given, axis=0)
    parts = exact_difference(asarray(given), asarray(shift))
    product, sizes = map(to_host, accurate_product(*parts, T))
    moved = differences([*given, shift], [(i, n) for i in range(n)])
    assert_within(product, sizes, moved * exact(T), m + 4)
    plain = np.abs(given - shift) @ np.abs(T)
    assert np.all(sizes <= 2.5 * plain)
    if seed % 3 == 0 and m > 8:
        assert np.median(sizes / plain) < 0.2


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("coarse", ["points", "basis", "high"])
def test_a_product_in_which_all_cancels_is_off_by_no_more_than_it_says(coarse, seed):
    """One factor has few bits, and all the error is in products with the rest of the other."""
    rng = np.random.default_rng(seed)
    few, many = rng.integers(-(2**20), 2**20, 300).astype(float), rng.uniform(0.7, 0.8, 300)
    many *= rng.choice([-1.0, 1.0], 300)
    many -= few * (many @ few) / (few @ few)
    x, t = (few, many) if coarse == "points" else (many, few)
    parts = [x[None], np.zeros((1, 300))]
    found = accurate_product(*parts[:: -1 if coarse == "high" else 1], t[:, None])
    assert_within(*found, exact(x) * exact(t).transpose(), 304)


@pytest.mark.parametrize("m", [15, 63, 255])
def test_leading_parts_are_multiplied_without_a_rounding(m):
    """All products are 1 above multiples of 4: with a bit more, each addition would lose that 1."""
    X = np.full((8, m), 2.0 ** ((54 - m.bit_length()) // 2) - 3.0)
    assert_within(*accurate_product(X, np.zeros_like(X), X.T), exact(X) * exact(X.T), m + 4)


def test_an_accurate_product_of_many_rows_is_made_in_runs_of_them():
    """Of more rows than medians are taken of, and than are multiplied at a time."""
    rng = np.random.default_rng(0)
    X, T = rng.normal(size=(5_000, 4)), rng.normal(size=(4, 3))
    for n in (0, 1_500, 3_000, 5_000):
        product, sizes = accurate_product(X[:n], np.zeros((n, 4)), T)
        assert product.shape == sizes.shape == (n, 3)
        np.testing.assert_allclose(product, X[:n] @ T, rtol=0, atol=1e-14)
    unchanged, _ = accurate_product(X, np.zeros_like(X), np.eye(4)[:, :3])
    np.testing.assert_array_equal(unchanged, X[:, :3])


def test_rows_of_the_smallest_numbers_are_cut_without_an_overflow():
    tiny = np.array([[5e-324, 0.0], [1e-310, 2e-309], [0.0, 0.0]])
    lead, rest = _cut(tiny, 1, 25)
    np.testing.assert_array_equal(lead + rest, tiny)


@pytest.mark.parametrize("sharpness", [0.3, 1.01, 2.0, 50.0])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3, 1e9])
def test_soft_labels_are_enclosed(sharpness, size):
    """From labels near 1 to labels that vanish."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3)) * [1.0, 1e-3, 1e2]
    root = rng.normal(size=(3, 3)) * np.sqrt(size)
    pairs = PairSet.from_constraints(X, [(0, 1)], [(0, 2)])
    objective = MStepObjective(pairs, previous_metric=root @ root.T, sharpness=sharpness)
    enclosure = objective.label_enclosure
    (bounds,) = enclosure.distances(with_upper=True)
    batch = next(objective.geometry.dual_sums.layout.blocks)
    lower, upper = block_distances(objective.sums.points, bounds)(batch)
    least, most = enclosure.least(batch, upper), enclosure.most(batch, lower)
    true = forms(differences(X, pairs.unlabeled), exact(objective.previous_metric))
    labels = [1 / (1 + (arb(sharpness) * (d - 1)).exp()) for d in true]
    for q, low, high in zip(labels, least.tolist(), most.tolist(), strict=True):
        assert low <= q <= high
    assert np.all(most - least <= 1e-9) or size * sharpness > 10.0
