"""Evidence: the same fit on arrays of another library."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import array_api_strict
import numpy as np
import pytest
from instances import random_objective, random_psd

import seraph_cvx.engine.device
import seraph_cvx.numerics.arrays
import seraph_cvx.numerics.cuda
from seraph_cvx import (
    SERAPH,
    MStepObjective,
    PairSet,
    Status,
    certify,
)
from seraph_cvx.model.m_step_objective import SemiSupervisedObjective, descent_values


def libraries():
    """array-api-strict always, torch where it is installed."""
    yield pytest.param(array_api_strict.asarray, id="array-api-strict")
    try:
        import torch
    except ImportError:
        return
    yield pytest.param(torch.asarray, id="torch")


@pytest.fixture(params=libraries())
def moved(request):
    """Takes an array of NumPy to another library."""
    return request.param


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(seraph_cvx.engine.device, "DEVICE_BLOCK", 32)


def few_classes(n=120, m=4, seed=0, n_labels=20):
    rng = np.random.default_rng(seed)
    classes = rng.integers(3, size=n)
    X = rng.normal(size=(3, m))[classes] * 1.5 + rng.normal(size=(n, m))
    y = np.full(n, -1)
    known = rng.choice(n, n_labels, replace=False)  # anywhere, so that labeled pairs lie anywhere
    y[known] = classes[known]
    return X, y


def confident_objective():
    similar, dissimilar = [(0, 1), (2, 90)], [(3, 4), (5, 60), (7, 100)]
    confidences = {"similar_confidence": [0.5, 2.0], "dissimilar_confidence": 3.0}
    pairs = PairSet.from_constraints(few_classes()[0], similar, dissimilar, **confidences)
    return MStepObjective(pairs)


OBJECTIVES = {
    **{
        f"{setting}, {q}": partial(random_objective, 3, setting, q=q, n=70, m=4)
        for setting in ("post", "proj", "hyper", "other")
        for q in ("start", "streamed")
    },
    "confidences": confident_objective,
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_sum_is_the_same_in_another_library(moved, small_blocks, name):
    on_numpy = OBJECTIVES[name]()
    device_array = moved(np.array(on_numpy.pairs.points))
    on_device = replace(on_numpy, pairs=replace(on_numpy.pairs, device_array=device_array))
    A = random_psd(np.random.default_rng(0), 4, size=2.0)
    L, D = np.linalg.cholesky(A)[:, :2], np.linalg.cholesky(A)[:, 1:3]
    attributes = ("pair_moment", "recession_matrix", "recession_total", "smoothness_bound")
    sums = {
        "value": (1e-13, lambda objective: objective.value(A)),
        "descent": (1e-13, lambda objective: descent_values(objective, A)),
        "gradient": (1e-10, lambda objective: objective.gradient(A)),
        "of (7)": (1e-10, lambda o: SemiSupervisedObjective(o).value_and_gradient(A)[1]),
        "product": (1e-9, lambda objective: objective.program.at(L).hessian_product(D)),
        "bound": (1e-11, lambda objective: certify(objective, A).dual_value),
        **{one: (1e-11, lambda objective, one=one: getattr(objective, one)) for one in attributes},
    }
    for one, (tolerance, sum_of) in sums.items():
        mine, other = sum_of(on_numpy), sum_of(on_device)
        atol = 0.0 if tolerance == 1e-13 else tolerance
        np.testing.assert_allclose(other, mine, rtol=tolerance, atol=atol, err_msg=one)
        assert type(other) is type(mine)
    assert certify(on_numpy, A).dual_point == certify(on_device, A).dual_point


@pytest.mark.parametrize("setting", [None, pytest.param("hyper", marks=pytest.mark.slow)])
def test_a_fit_in_another_library_is_the_same_to_rounding(moved, small_blocks, setting):
    X, y = few_classes()
    on_numpy, on_device = (
        SERAPH(setting=setting).fit(*given) for given in ((X, y), (moved(X), moved(y)))
    )
    assert on_device.status_ is Status.CERTIFIED
    assert on_device.n_iter_ == on_numpy.n_iter_
    np.testing.assert_allclose(
        on_device.metric_, on_numpy.metric_, rtol=0, atol=1e-10 * on_numpy.metric_.max()
    )
    transformed = on_device.transform(moved(X))
    assert type(transformed) is type(moved(X))
    expected = X @ on_device.components_.T
    np.testing.assert_allclose(np.asarray(transformed), expected, rtol=1e-12, atol=1e-12)
