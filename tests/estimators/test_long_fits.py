"""Evidence: a long fit can be watched, limited and interrupted, and says how it ended."""

from __future__ import annotations

import re
import signal
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from interrupts import ctrl_c

from seraph_cvx import SERAPH, KernelSERAPH, NotCertified, Status
from seraph_cvx.datasets import load_sampling
from seraph_cvx.display import progress_line
from seraph_cvx.penalties import Sparse
from seraph_cvx.solvers.newton import FactorSearch

SAMPLING = load_sampling("iris", n_points=50)
X, Y = SAMPLING.X, SAMPLING.y

SLOW_MACHINE = 3.0
"""Other tests run beside these: a second may take so many."""


def assert_certified_as_it_says(model, X):
    """Its metric is finite, and its certificate bounds what it says of that metric."""
    assert np.all(np.isfinite(model.transform(X)))
    assert 1e-8 < model.certificate_.relative_gap < np.inf
    factor = model.certificate_.factor
    np.testing.assert_allclose(factor @ factor.T, model.m_step_metric_, atol=1e-9)


# The time limit


@pytest.mark.parametrize("kind", [SERAPH, KernelSERAPH])
def test_a_time_limit_ends_a_fit_with_the_best_metric_and_its_certificate(kind):
    with pytest.warns(NotCertified, match="status time_limit .*raise time_limit"):
        model = kind(time_limit=1e-6).fit(X, Y)
    assert model.status_ is Status.TIME_LIMIT
    assert_certified_as_it_says(model, X)


@pytest.mark.parametrize("accelerate", [True, False])
def test_a_time_limit_is_for_all_m_steps_together(accelerate):
    def dawdle(iteration, metric):
        time.sleep(0.06)

    model = SERAPH("ratio", 1.0, sharpness=None, accelerate=accelerate, time_limit=0.2)
    clock = time.perf_counter()
    with pytest.warns(NotCertified, match="status time_limit"):
        model.set_params(callback=dawdle, tol=1e-15).fit(X, Y)
    assert time.perf_counter() - clock < 5.0
    assert 1 <= model.n_iter_ <= 4
    assert model.history_[-1].descent_value <= model.history_[0].descent_value


# Ctrl-C


def press_ctrl_c(monkeypatch, *at_steps):
    """Ctrl-C is pressed before these passes of Newton's method."""
    at, calls = FactorSearch._at, []

    def pressing(self, L):
        calls.append(1)
        if len(calls) in at_steps:
            signal.raise_signal(signal.SIGINT)
        return at(self, L)

    monkeypatch.setattr(FactorSearch, "_at", pressing)


@pytest.mark.parametrize("at_step", [1, 4])
@pytest.mark.parametrize("mu", [0.0, "full"])
def test_ctrl_c_keeps_the_best_metric_where_asked_to(monkeypatch, mu, at_step):
    """Also within the first M-step, which with mu = 0 is the only one."""
    press_ctrl_c(monkeypatch, at_step)
    handler = signal.getsignal(signal.SIGINT)
    with pytest.warns(NotCertified, match="status interrupted"):
        model = SERAPH(mu, on_interrupt="keep").fit(X, Y)
    assert model.status_ is Status.INTERRUPTED
    assert_certified_as_it_says(model, X)
    assert np.any(model.metric_)
    assert signal.getsignal(signal.SIGINT) is handler


def raise_interrupt():
    raise KeyboardInterrupt


@pytest.mark.parametrize("second", [lambda: signal.raise_signal(signal.SIGINT), raise_interrupt])
def test_a_second_ctrl_c_raises_at_once(second):
    def press_twice(*_):
        signal.raise_signal(signal.SIGINT)
        second()

    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        SERAPH(on_interrupt="keep", callback=press_twice).fit(X, Y)
    assert signal.getsignal(signal.SIGINT) is handler


def large_fit(n, **given):
    """Points of five classes, 30 of them labeled, and a model that would take long to fit them."""
    rng = np.random.default_rng(0)
    classes = rng.integers(5, size=n)
    points = 0.5 * rng.normal(size=(5, 12))[classes] + rng.normal(size=(n, 12))
    labels = np.where(np.arange(n) < 30, classes, -1)
    return SERAPH(tol=1e-13, on_interrupt="keep", **given), points, labels


WAYS = {
    "accelerated": {},
    "as in the paper": {"accelerate": False},
    "multipliers": {"penalties": [Sparse(0.1)]},
    "direct": {"algorithm": "direct"},
    "threads": {"n_jobs": 2},
}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_ctrl_c_at_any_moment_of_a_long_fit_keeps_a_metric_within_two_seconds(way):
    for seconds in (0.02, 0.3, 1.5):
        model, points, labels = large_fit(4_000, **WAYS[way])
        with ctrl_c(seconds) as pressed, warnings.catch_warnings():
            warnings.simplefilter("ignore", NotCertified)
            try:
                model.fit(points, labels)
                ended = time.perf_counter()
            except KeyboardInterrupt:  # while X was checked, or just when the fit had ended
                assert getattr(model, "status_", None) is not Status.INTERRUPTED
                continue
        if model.status_ is not Status.INTERRUPTED:
            assert not pressed
            break
        assert ended - pressed[0] < 2.0 * SLOW_MACHINE
        assert np.all(np.isfinite(model.transform(points[:5])))
        assert np.any(model.metric_)


@pytest.mark.parametrize("way", WAYS)
def test_a_time_limit_holds_inside_a_pass(way):
    """The first pass over so many pairs takes longer; what is kept may have no certificate."""
    model, points, labels = large_fit(3_000, **WAYS[way])
    clock = time.perf_counter()
    with pytest.warns(NotCertified, match="time"):
        model.set_params(time_limit=0.05).fit(points, labels)
    assert time.perf_counter() - clock < 2.0 * SLOW_MACHINE
    assert model.status_ is Status.TIME_LIMIT
    assert np.any(model.metric_)
    later = model.set_params(time_limit=None, tol=1e-2, m_step_tol=1e-2, max_iter=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertified)
        assert later.fit(points[:300], labels[:300]).n_iter_ >= 1  # the limit is gone


def interrupt_at_two(iteration, metric):
    if iteration.number == 2:
        raise_interrupt()


def in_a_thread(function):
    """Run a function in another thread, which signals do not reach."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(function).result()


@pytest.mark.parametrize("where", [lambda fit: fit(), in_a_thread], ids=["main", "thread"])
@pytest.mark.parametrize("accelerate", [True, False])
def test_an_interrupt_in_the_callback_is_treated_as_one_in_a_step(accelerate, where):
    model = SERAPH(accelerate=accelerate, callback=interrupt_at_two)
    with pytest.raises(KeyboardInterrupt):
        where(lambda: model.fit(X, Y))
    assert not hasattr(model, "metric_")
    model.set_params(on_interrupt="keep")
    with pytest.warns(NotCertified, match="status interrupted"):
        where(lambda: model.fit(X, Y))
    assert (model.status_, model.n_iter_) == (Status.INTERRUPTED, 2)
    assert_certified_as_it_says(model, X)


# The callback


# The line of progress


def test_without_a_terminal_there_is_a_plain_line_for_each_iteration(capsys, monkeypatch):
    SERAPH().fit(X, Y)
    assert capsys.readouterr() == ("", "")
    model = SERAPH(verbose=1).fit(X, Y)
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert len(lines) == model.n_iter_ + 1
    assert lines[0].startswith("[SERAPH] iteration 1, M-step: J = ")
    assert lines[-1].startswith(f"[SERAPH] certified after {model.n_iter_} iterations")
    monkeypatch.setattr(progress_line, "SELDOM", 0.0)
    SERAPH(0.0, verbose=1).fit(X, Y)
    assert "[SERAPH] iteration 1, step 3: " in capsys.readouterr().err


class Listener:
    """A callback that is told what is running, too."""

    def __init__(self):
        self.heard = []

    def __call__(self, iteration, metric):
        self.heard.append(f"done {iteration.number}")

    def progress(self, text):
        self.heard.append(re.search(r"iteration \d+", text).group())


def test_a_callback_with_progress_is_told_what_is_running_between_blocks_of_pairs():
    listener = Listener()
    model = SERAPH(callback=listener).fit(X, Y)
    for number in range(1, model.n_iter_ + 1):
        running = listener.heard[: listener.heard.index(f"done {number}")]
        assert running.count(f"iteration {number}") >= 2  # not only once a step
    heard = len(listener.heard)
    model.set_params(callback=None).fit(X, Y)
    assert len(listener.heard) == heard


# What rounding allows


# A metric of no use


ONE_CLASS = np.where(np.arange(50) < 5, 0, -1)


@pytest.mark.parametrize(
    ("settings", "supervision", "words"),
    [
        ({"trace_weight": 1e9}, {}, r"zero.*too large .*below \d+.*trace_weight=\"auto\""),
        ({"setting": "hyper", "laplacian_weight": 1e9}, {}, "zero.*or another penalty is too"),
        ({"unlabeled_weight": 0.0}, {"y": None, "similar": [(0, 1)]}, "zero.*pairs are similar"),
        ({}, {"y": ONE_CLASS}, "Of doubtful use: all known points are of one class"),
    ],
)
def test_a_metric_of_no_use_is_reported_with_its_cause(settings, supervision, words):
    with pytest.warns(UserWarning, match=words):
        model = SERAPH(**settings).fit(**{"X": X, "y": Y} | supervision)
    assert np.any(model.transform(X)) == words.startswith("Of doubtful")
