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

from ...estimators.seraph import SERAPH
from ...estimators.settings import find_setting
from ...fit.alternation import alternate
from ...fit.direct import minimize_directly
from ...fit.steps import StepKind, alternation_steps
from ...m_step.solve import MStepSolver
from ...model.m_step_objective import MStepObjective
from ...model.semi_supervised import descent_values
from ...numerics.checks import FloatArray
from ...numerics.psd_cone import factor
from ...pairs.pair_set import PairSet
from ...solvers.not_certified import NotCertified
from .early_stopping import stop_early

UNATTAINED_M_STEPS, UNATTAINED_STEPS, UNATTAINED_TOL = 20, 300, 1e-4
"""Limits where lambda = 0: M-steps, the steps of each, the fall of J that ends a run."""


def learn_baseline(
    module: str, name: str, X: FloatArray, y: NDArray[Any], seed: int = 0, **parameters: Any
) -> FloatArray:
    """Fit a linear transformer and return its matrix L, by the columns of z(I) - z(0).

    Examples
    --------
    >>> X, y = np.array([[0.0], [0.2], [2.0], [2.3]]), np.array([0, 0, 1, -1])
    >>> learn_baseline("seraph_cvx.baselines.euclidean", "Euclidean", X, y)
    array([[1.]])
    """
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
    """Learn by the paper's EM-like scheme (Section 2.4), in one of its four settings.

    Parameters
    ----------
    setting : "none", "post", "proj" or "hyper"
    X, y, seed
        Points, classes (-1 unknown); nothing is random.
    sharpness : float, optional
        The sharpness of the E-step; None is the paper's 1 + mu.
    max_iter : int, optional
        Stop after this many iterations on purpose; by default it runs to convergence.

    Notes
    -----
    With lambda = 0 ("none", "post") an M-step may have no optimum, so that nothing converges: the
    M-steps are then cut off after 300 FISTA steps, and the scheme after 20 M-steps.

    Examples
    --------
    >>> X, y = np.array([[0.0], [0.2], [2.0], [2.3]]), np.array([0, 0, 1, -1])
    >>> learn_by_em("hyper", X, y).round(3)
    array([[0.947]])
    """
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
    """Learn by gradient projection on (7), stopped early; see :func:`.early_stopping.stop_early`.

    Examples
    --------
    >>> X, y = np.array([[0.0], [0.2], [2.0], [2.3]]), np.array([0, 0, 1, -1])
    >>> learn_by_early_stopping("hyper", X, y).shape
    (1, 1)
    """
    pairs = PairSet.from_labels(X, y)
    mu, weight = find_setting(setting).weights(pairs)
    return factor(stop_early(pairs, mu, weight).metric)


def learn_directly(X: FloatArray, y: NDArray[Any], seed: int = 0) -> FloatArray:
    """Learn a stationary point of (7) in the setting hyper, from A = I.

    Examples
    --------
    >>> X, y = np.array([[0.0], [0.2], [2.0], [2.3]]), np.array([0, 0, 1, -1])
    >>> learn_directly(X, y).shape
    (1, 1)
    """
    solution = minimize_directly(PairSet.from_labels(X, y), start=np.eye(X.shape[1]))
    solution.warn_unless_stationary(stacklevel=2)
    return factor(solution.metric)


def learn_as_recommended(X: FloatArray, y: NDArray[Any], seed: int = 0) -> FloatArray:
    """Learn by the recommended settings, the same for all data; chosen on separate samplings.

    The defaults of SERAPH: EM at convergence with sharpness 2 and the full unlabeled weight, a
    trace weight that follows the unit of the features, and a share of the identity.

    Examples
    --------
    >>> X, y = np.array([[0.0], [0.2], [2.0], [2.3]]), np.array([0, 0, 1, -1])
    >>> learn_as_recommended(X, y).shape
    (1, 1)
    """
    return np.asarray(SERAPH().fit(X, y).components_)
