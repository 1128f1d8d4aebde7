"""Evidence: the same input gives the same bits, in any process; threads change rounding at most."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from seraph_cvx import (
    SERAPH,
    KernelSERAPH,
    NotCertified,
)
from seraph_cvx.datasets import load_sampling
from seraph_cvx.estimators import base

MODELS = {
    "em": SERAPH(),
    "hyper": SERAPH(setting="hyper"),
    "direct": SERAPH(algorithm="direct"),
    "kernel": KernelSERAPH(setting="hyper"),
}


@pytest.fixture(scope="module")
def samplings():
    return [load_sampling(name, n_points=30, seed=1) for name in ("iris", "wine")]


def bits(model, sampling):
    """All that a fit learns in numbers: the metric, and where the fit has one its certificate."""
    fitted = type(model)(**model.get_params(deep=False)).fit(sampling.X, sampling.y)
    certificate = getattr(fitted, "certificate_", None)
    bounds = certificate and (certificate.primal_value, certificate.dual_value)
    factor = certificate and certificate.factor.tobytes()
    return fitted.metric_.tobytes(), bounds, factor


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_repeated_is_the_same_to_the_last_bit(name, samplings):
    for sampling in samplings:
        assert bits(MODELS[name], sampling) == bits(MODELS[name], sampling)


def test_a_fit_leaves_the_callers_random_numbers_and_points_alone(samplings):
    X = samplings[0].X.copy()
    np.random.seed(0)  # noqa: NPY002
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    for model in MODELS.values():
        bits(model, samplings[0])
    assert np.random.random() == expected  # noqa: NPY002
    np.testing.assert_array_equal(X, samplings[0].X)


FRESH = """
from seraph_cvx import SERAPH
from seraph_cvx.datasets import load_sampling
sampling = load_sampling("wine", n_points=30, seed=1)
for model in SERAPH(), SERAPH(algorithm="direct"):
    print(model.fit(sampling.X, sampling.y).metric_.tobytes().hex())
"""


def run_python(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def read_metrics(lines):
    return [np.frombuffer(bytes.fromhex(line)) for line in lines]


@pytest.fixture(scope="module")
def with_two_threads():
    """The lines of a fresh process with two threads of BLAS: its metrics, and `OVERLAPPING`."""
    threads = {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
    return run_python(FRESH + OVERLAPPING, **threads).splitlines()


@pytest.mark.slow
def test_a_fresh_process_gives_the_same_bits_and_two_threads_of_blas_change_rounding_at_most(
    samplings, with_two_threads
):
    """The hash seed is another."""
    fresh = read_metrics(run_python(FRESH, OMP_NUM_THREADS="1", PYTHONHASHSEED="1").split())
    with threadpool_limits(1):
        here = [bits(MODELS[name], samplings[1])[0] for name in ("em", "direct")]
    assert here == [metric.tobytes() for metric in fresh]
    for one, two in zip(fresh, read_metrics(with_two_threads[:-1]), strict=True):
        np.testing.assert_allclose(two, one, rtol=0.0, atol=1e-9 * np.max(np.abs(one)))


@pytest.mark.parametrize("algorithm", ["em", "direct"])
def test_two_jobs_change_rounding_at_most(algorithm):
    sampling = load_sampling("wine", n_points=178, seed=1)
    one, two = (
        SERAPH(algorithm=algorithm, n_jobs=n_jobs).fit(sampling.X, sampling.y).metric_
        for n_jobs in (1, 2)
    )
    np.testing.assert_allclose(two, one, rtol=0.0, atol=1e-9 * np.max(np.abs(one)))


@pytest.mark.parametrize(
    "name",
    MODELS,
)
def test_fits_in_two_threads_at_once_are_those_of_one_after_the_other(name, samplings):
    """Also where the other thread runs another algorithm."""
    models = [MODELS[name], MODELS["direct"]]
    sequential = [bits(model, sampling) for model in models for sampling in samplings]
    with ThreadPoolExecutor(2) as threads:
        pending = [threads.submit(bits, model, s) for model in models for s in samplings]
        assert [one.result() for one in pending] == sequential


def test_what_follows_the_alternation_is_on_one_thread_of_blas_too(samplings, monkeypatch):
    """Or it would sum in another order while another fit holds BLAS to one thread."""
    mix, threads = base.mix_with_reference, set()

    def watched(*given, **more):
        libraries = ThreadpoolController().select(user_api="blas").info()
        threads.update(library["num_threads"] for library in libraries)
        return mix(*given, **more)

    monkeypatch.setattr(base, "mix_with_reference", watched)
    with threadpool_limits(2, user_api="blas"):
        bits(MODELS["em"], samplings[0])
    assert threads == {1}


OVERLAPPING = """
import threading
from concurrent.futures import ThreadPoolExecutor
import numpy, scipy.linalg
from threadpoolctl import ThreadpoolController
from seraph_cvx.numerics.arrays import one_blas_thread

def threads_of_blas():
    libraries = ThreadpoolController().select(user_api="blas").info()
    return {library["num_threads"] for library in libraries}

first_is_in, second_is_in, first_is_out = (threading.Event() for _ in range(3))

def first():
    with one_blas_thread():
        first_is_in.set()
        second_is_in.wait(30)
    first_is_out.set()

def second():
    first_is_in.wait(30)
    with one_blas_thread():
        second_is_in.set()
        first_is_out.wait(30)
        return threads_of_blas()

before = threads_of_blas()
with ThreadPoolExecutor(2) as pool:
    pool.submit(first)
    print(before == {2}, pool.submit(second).result() == {1}, threads_of_blas() == before)
"""


@pytest.mark.slow
def test_one_blas_thread_is_lifted_by_the_last_that_leaves(with_two_threads):
    """The first to enter leaves first: it may not lift the limit of the other, nor keep it."""
    has_two, held, lifted = with_two_threads[-1].split()
    if has_two == "False":
        pytest.skip("BLAS has one thread, whatever it is told: this process is held to one core")
    assert held == "True"
    assert lifted == "True"


def test_an_uncertified_fit_warns_in_every_thread(samplings):
    """A warning of one thread is not lost because another thread fits at the same time."""
    model = SERAPH(max_iter=1)

    def warned(sampling):
        with pytest.raises(NotCertified):
            bits(model, sampling)
        return True

    with warnings.catch_warnings():
        warnings.simplefilter("error", NotCertified)
        with ThreadPoolExecutor(2) as threads:
            assert all(threads.map(warned, samplings * 2))
