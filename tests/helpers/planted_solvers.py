"""Solvers that hang, crash, lie or fill the memory: each run of a race imports this in its process.

So it imports little: a file of tests would bring all that tests need, for each run anew.
"""

from __future__ import annotations

import os
import signal
import time
from types import SimpleNamespace

import numpy as np
from instances import random_psd

from seraph_cvx.race.attempt import Attempt

MIB = 2**20


def hang(objective, tol, time_limit):
    while True:
        time.sleep(0.1)


def crash(objective, tol, time_limit):
    os.kill(os.getpid(), signal.SIGSEGV)


def leave(objective, tol, time_limit):
    os._exit(3)


def lie(objective, tol, time_limit):
    """ "optimal" at a random PSD point."""
    m = objective.pairs.n_features
    return Attempt(random_psd(np.random.default_rng(0), m, 50.0), "optimal", claims=True)


def hoard(objective, tol, time_limit):
    kept = []
    while True:
        kept.append(np.ones(MIB))


def fail(objective, tol, time_limit):
    raise RuntimeError("license not found")


def indefinite(objective, tol, time_limit):
    m = objective.pairs.n_features
    return Attempt(np.diag([1.0] * (m - 1) + [-0.25]), "optimal", claims=True)


def not_a_number(objective, tol, time_limit):
    return Attempt(np.full((4, 4), np.nan), "optimal", claims=True)


def wrong_shape(objective, tol, time_limit):
    return Attempt(np.eye(7), "optimal", claims=True)


def nothing(objective, tol, time_limit):
    return Attempt(None, "infeasible", claims=False)


def not_a_matrix(objective):
    return "optimal"


def forge(objective, tol, time_limit):
    """Bends the referee of its own process: the one that grades sits in another."""
    import seraph_cvx.solvers.solution as grading

    grading.certify = lambda *_: SimpleNamespace(primal_value=0.0, dual_value=0.0, relative_gap=0.0)
    return lie(objective, tol, time_limit)


def noisy(objective, tol, time_limit):
    os.write(1, b"to stdout\n")
    os.write(2, b"to stderr\n")
    return lie(objective, tol, time_limit)


PLANTED = [
    *("hang", "crash", "leave", "lie", "hoard", "fail", "indefinite", "not_a_number"),
    *("wrong_shape", "nothing", "not_a_matrix", "forge", "noisy"),
]
