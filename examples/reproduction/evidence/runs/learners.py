"""SERAPH in the paper's four settings, computed in the ways that the paper leaves open; and rivals.

Each function goes from points X with few labels y (-1 = unknown) to L, the (k, m) components of
the learned metric L'L.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seraph_cvx.estimators.seraph import SERAPH
from seraph_cvx.estimators.settings import find_setting
from seraph_cvx.fit.alternation import alternate
from seraph_cvx.fit.direct import minimize_directly
from seraph_cvx.fit.steps import StepKind, alternation_steps
from seraph_cvx.m_step.solve import MStepSolver
from seraph_cvx.model.m_step_objective import MStepObjective
from seraph_cvx.model.semi_supervised import descent_values
from seraph_cvx.numerics.checks import FloatArray
from seraph_cvx.numerics.psd_cone import factor
from seraph_cvx.pairs.pair_set import PairSet
from seraph_cvx.solvers.not_certified import NotCertified

from .early_stopping import stop_early

UNATTAINED_M_STEPS, UNATTAINED_STEPS, UNATTAINED_TOL = 20, 300, 1e-4
"""Limits where lambda = 0: M-steps, the steps of each, the fall of J that ends a run."""


def learn_baseline(
    module: str, name: str, X: FloatArray, y: NDArray[Any], seed: int = 0, **parameters: Any
) -> FloatArray:
    """Fit a linear transformer and return its matrix L, by the columns of z(I) - z(0)."""
    model = getattr(import_module(module), name)(**parameters)
    if "random_state" in model.get_params():
        model.set_params(random_state=seed)
    model.fit(X, y)
    m = X.shape[1]
    return np.asarray((model.transform(np.eye(m)) - model.transform(np.zeros((1, m)))).T)


def learn_by_em(
    setting: str,
    X: FloatArray,
    y: NDArray[Any],
    seed: int = 0,
    sharpness: float | None = None,
    max_iter: int | None = None,
) -> FloatArray:
    """Learn by the paper's EM-like scheme (Section 2.4), in one of its four settings."""
    pairs = PairSet.from_labels(X, y)
    mu, weight = find_setting(setting).weights(pairs)
    if weight == 0.0:
        return factor(_alternate_unattained(pairs, mu))
    with warnings.catch_warnings():
        if max_iter is not None:
            warnings.simplefilter("ignore", NotCertified)  # stopped on purpose
        run = alternate(
            pairs,
            mu,
            weight,
            sharpness=sharpness,
            max_iter=500 if max_iter is None else max_iter,
            accelerate=False,
        )
    if run.metric is None:
        raise RuntimeError(run.message)
    return factor(run.metric)


def _alternate_unattained(pairs: PairSet, mu: float) -> FloatArray:
    """Alternate with lambda = 0, each M-step cut off, until J hardly falls."""
    first = MStepObjective(pairs, unlabeled_weight=mu, trace_weight=0.0)
    solver = MStepSolver(max_iter=UNATTAINED_STEPS, allow_unattained=True)
    run = alternation_steps(first, solver, tolerance=lambda: 1e-8)
    m_steps = (step for step in run if step.kind is StepKind.M_STEP)
    last = np.inf
    for step in islice(m_steps, UNATTAINED_M_STEPS):
        if step.metric is None or step.solution is None:
            reason = "" if step.solution is None else step.solution.message
            raise RuntimeError(f"An M-step without an optimum failed: {reason}")
        metric = step.metric
        value = descent_values(step.objective, metric)[0]
        if last - value <= UNATTAINED_TOL * max(1.0, abs(value)):
            break
        last = value
    return metric


def learn_by_early_stopping(
    setting: str, X: FloatArray, y: NDArray[Any], seed: int = 0
) -> FloatArray:
    """Learn by gradient projection on (7), stopped early; see `stop_early`."""
    pairs = PairSet.from_labels(X, y)
    mu, weight = find_setting(setting).weights(pairs)
    return factor(stop_early(pairs, mu, weight).metric)


def learn_directly(X: FloatArray, y: NDArray[Any], seed: int = 0) -> FloatArray:
    """Learn a stationary point of (7) in the setting hyper, from A = I."""
    solution = minimize_directly(PairSet.from_labels(X, y), start=np.eye(X.shape[1]))
    solution.warn_unless_stationary(stacklevel=2)
    return factor(solution.metric)


def learn_as_recommended(X: FloatArray, y: NDArray[Any], seed: int = 0) -> FloatArray:
    """Learn by the recommended settings, the same for all data; chosen on separate samplings."""
    return np.asarray(SERAPH().fit(X, y).components_)
