"""The methods of Section 5: from points X with few labels y to the factor L of a metric L'L.

The paper does not say where its iterations stop, so its SERAPH rows are computed in several ways:
at convergence, early-stopped, on objective (7) itself, with sharper soft labels.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import islice
from typing import Any

import numpy as np

from seraph_cvx import SERAPH, MStepObjective, NotCertified, PairSet, alternate
from seraph_cvx.estimators.settings import PAPER_SETTINGS, find_setting
from seraph_cvx.fit.alternation import alternation_steps
from seraph_cvx.fit.direct import minimize_directly
from seraph_cvx.m_step.solve import MStepSolver
from seraph_cvx.model.m_step_objective import SemiSupervisedObjective, descent_values
from seraph_cvx.numerics.arrays import one_blas_thread
from seraph_cvx.numerics.psd_cone import factor, project, symmetrize

FIRST_STEP = 0.1
"""The t-th step of early stopping is FIRST_STEP * m / sqrt(t) long."""

HALVINGS = 30
"""A step is halved at most this often: then it is too small to matter."""

UNATTAINED_M_STEPS, UNATTAINED_STEPS, UNATTAINED_TOL = 20, 300, 1e-4
"""Limits where lambda = 0: M-steps, the steps of each, the fall of J that ends a run."""

CHOICES: dict[str, dict[str, Any]] = {"GDM": {"ridge": 1.0}}
"""What was chosen of the rivals' open parameters: GDM's problem is unbounded without a ridge;
of 0.001 to 100 this one did best on samplings 5300 to 5309, which no table uses."""


@dataclass(frozen=True, eq=False)
class EarlyStopped:
    """The metric, (7) at each step, and why it ended: small step, no descent or step limit."""

    metric: Any
    values: list[float]
    stopped_by: str


def stop_early(
    pairs: PairSet,
    unlabeled_weight: float | str = "ratio",
    trace_weight: float = 1.0,
    smallest_move: float = 1e-3,
    max_steps: int = 200,
) -> EarlyStopped:
    """Descend (7) by gradient projection from m/(m+1) I until A moves by less than `smallest_move`.

    A <- P(A - 0.1 m / sqrt(t) * g / ||g||_F), g the gradient; a step that raises (7) is halved.
    Stopped early it regularizes, also where (7) has no optimum: the metric stays near its start.
    """
    objective = SemiSupervisedObjective(
        MStepObjective(pairs, unlabeled_weight=unlabeled_weight, trace_weight=trace_weight)
    )
    m = pairs.n_features
    A = m / (m + 1.0) * np.eye(m)
    with one_blas_thread():
        value, gradient = objective.value_and_gradient(A)
        values = [value]
        while len(values) <= max_steps:
            size = float(np.linalg.norm(gradient))
            length = FIRST_STEP * m / np.sqrt(len(values)) / size if size else 0.0
            for _ in range(HALVINGS if size else 0):
                trial = project(symmetrize(A - length * gradient))
                value, gradient_there = objective.value_and_gradient(trial)
                if value <= values[-1]:
                    break
                length /= 2.0
            else:
                return EarlyStopped(A, values, "no descent")
            move = float(np.linalg.norm(trial - A))
            A, gradient = trial, gradient_there
            values.append(value)
            if move <= smallest_move:
                return EarlyStopped(A, values, "small step")
    return EarlyStopped(A, values, "step limit")


def learn_baseline(name: str, X, y, seed: int = 0, **parameters: Any):
    """Fit a rival of the paper and return its matrix L."""
    rivals = import_module("rivals")  # here, as the gallery reads this file without their folder
    model = getattr(rivals, name)(**parameters)
    if "random_state" in model.get_params():
        model.set_params(random_state=seed)
    return model.fit(X, y).components_


def learn_by_em(setting: str, X, y, seed: int = 0, sharpness=None, max_iter: int | None = None):
    """Learn by the paper's EM-like scheme (Section 2.4), in one of its four settings."""
    pairs = PairSet.from_labels(X, y)
    first = find_setting(setting).first_m_step(pairs)
    mu, weight = first.mu, first.trace_weight
    if weight == 0.0:
        return factor(_alternate_unattained(pairs, mu))
    limits = {"sharpness": sharpness, "max_iter": 500 if max_iter is None else max_iter}
    with warnings.catch_warnings():
        if max_iter is not None:
            warnings.simplefilter("ignore", NotCertified)  # stopped on purpose
        run = alternate(pairs, mu, weight, accelerate=False, **limits)
    if run.metric is None:
        raise RuntimeError(run.message)
    return factor(run.metric)


def _alternate_unattained(pairs, mu):
    """Alternate with lambda = 0, where M-steps may have no optimum: each is cut off."""
    first = MStepObjective(pairs, unlabeled_weight=mu, trace_weight=0.0)
    solver = MStepSolver(max_iter=UNATTAINED_STEPS, allow_unattained=True)
    m_steps = alternation_steps(first, solver, tolerance=lambda: 1e-8)
    last = np.inf
    for step in islice(m_steps, UNATTAINED_M_STEPS):
        if step.metric is None:
            reason = "" if step.solution is None else step.solution.message
            raise RuntimeError(f"An M-step without an optimum failed: {reason}")
        metric = step.metric
        value = descent_values(step.objective, metric)[0]
        if last - value <= UNATTAINED_TOL * max(1.0, abs(value)):
            break
        last = value
    return metric


def learn_by_early_stopping(setting: str, X, y, seed: int = 0):
    """Learn by gradient projection on (7), stopped early."""
    pairs = PairSet.from_labels(X, y)
    first = find_setting(setting).first_m_step(pairs)
    return factor(stop_early(pairs, first.mu, first.trace_weight).metric)


def learn_directly(X, y, seed: int = 0):
    """Learn a stationary point of (7) in the setting hyper, from A = I."""
    m_step = MStepObjective(PairSet.from_labels(X, y))
    solution = minimize_directly(m_step, start=np.eye(X.shape[1]))
    if solution.message:
        warnings.warn(solution.message, NotCertified, stacklevel=2)
    return factor(solution.metric)


def learn_as_recommended(X, y, seed: int = 0):
    """Learn by the defaults of SERAPH, which were chosen on separate samplings."""
    return SERAPH().fit(X, y).components_


@dataclass(frozen=True)
class Method:
    """A method of Table 2: learn(X, y, seed) is L, `paper_row` the row it is compared with."""

    name: str
    title: str
    learn: Callable[..., Any]
    paper_row: str | None = None


RIVALS = ("Euclidean", "GDM", "NCA", "LMNN", "ITML", "LDM", "MFDA")
LEARN_HYPER = partial(learn_by_em, "hyper")

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        *(
            Method(t.lower(), t, partial(learn_baseline, t, **CHOICES.get(t, {})), t.upper())
            for t in RIVALS
        ),
        *(
            Method(f"{how}-{s}", f"SERAPH {s}{words}", partial(learn, s), f"SERAPH_{s}")
            for how, words, learn in (
                ("seraph", "", learn_by_em),
                ("early", ", early", learn_by_early_stopping),
            )
            for s in PAPER_SETTINGS
        ),
        *(
            Method(name, title, learn, "SERAPH_hyper")
            for name, title, learn in (
                ("three-steps", "SERAPH hyper, 3 EM steps", partial(LEARN_HYPER, max_iter=3)),
                ("direct", "SERAPH hyper, direct", learn_directly),
                ("sharp", "SERAPH hyper, sharpness 2", partial(LEARN_HYPER, sharpness=2.0)),
                ("recommended", "recommended", learn_as_recommended),
            )
        ),
    )
}
"""The methods by name: the eleven rows of Table 2, then other ways to compute them."""


def find_method(name: str) -> Method:
    """Look up a method by its name; ``name=module:function`` is one of your own."""
    own, _, path = name.partition("=")
    if not path:
        if name not in METHODS:
            raise ValueError(
                f"There is no method {name!r}; the known ones are {', '.join(METHODS)}. Write "
                "name=module:function for one of your own."
            )
        return METHODS[name]
    module, _, function = path.partition(":")
    if not module or not function or own in METHODS:
        raise ValueError(
            f"{name!r}: write name=module:function, the name not one of {', '.join(METHODS)}."
        )
    try:
        return Method(own, own, getattr(import_module(module), function))
    except (ImportError, AttributeError) as error:
        where = "" if "" in sys.path else " (is its folder on the Python path?)"
        raise ValueError(f"{name!r} cannot be imported: {error}{where}.") from None


def method_title(name: str) -> str:
    """The title of a method in tables and pictures; for a user's own method its name."""
    return METHODS[name].title if name in METHODS else name
