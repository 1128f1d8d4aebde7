"""Families of CVXPY problems made from an M-step: with parts added, or changed behind its back.

What was added is written down twice, as CVXPY takes it and as the judge does. A changed problem has
to be refused, or its bounds have to hold for the problem as it is stated.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace

import cvxpy as cp
import numpy as np
from stress_blocks import Ceiling, Divergence, Equations, OffDiagonalSum, Quadratic
from stress_closed import optimum_of_one_feature
from stress_extremes import labels
from stress_instances import Instance, decades, some_metric
from stress_judge import given

from seraph_cvx import MStepObjective, PairSet, certify_problem, state_m_step


@dataclass
class Added:
    """Parts of a problem, each as CVXPY and the judge know it."""

    terms: list = field(default_factory=list)
    constraints: list = field(default_factory=list)
    trace_weights: list = field(default_factory=list)
    matrices: list = field(default_factory=list)
    blocks: list = field(default_factory=list)
    constants: list = field(default_factory=list)

    def to(self, found):
        """An M-step as given, with these parts."""
        return replace(
            found,
            trace_weights=(*found.trace_weights, *self.trace_weights),
            terms=(*found.terms, *self.matrices),
            blocks=(*found.blocks, *self.blocks),
            constants=(*found.constants, *self.constants),
        )


def add_trace(rng, A, added, scale):
    weight = float(decades(rng, -3, 1)) / scale
    added.terms.append(weight * cp.trace(A))
    added.trace_weights.append(weight)


def add_linear(rng, A, added, scale):
    m = A.shape[0]
    F = rng.normal(size=(m, m + 1))
    B = F @ F.T / scale
    B = (B + B.T) / 2.0
    added.terms.append(cp.sum(cp.multiply(B, A)))
    added.matrices.append(B)


def add_squares(rng, A, added, scale):
    weight = float(decades(rng, -2, 2)) / scale**2
    prior = np.diag(rng.normal(size=A.shape[0])) * scale
    if rng.random() < 0.3:
        prior = 0.0 * prior
    added.terms.append(weight * cp.sum_squares(A - prior))
    added.blocks.append(Quadratic(2.0 * weight, prior))


def add_absolute_values(rng, A, added, scale):
    weight = float(decades(rng, -2, 1)) / scale
    added.terms.append(weight * cp.norm1(A))
    added.blocks.append(OffDiagonalSum(weight))
    added.trace_weights.append(weight)


def add_log_det(rng, A, added, scale):
    weight = float(decades(rng, -2, 1))
    added.terms.append(-weight * cp.log_det(A))
    added.blocks.append(Divergence(weight))


def add_constants(rng, A, added, scale):
    """Numbers that cancel: their exact sum counts."""
    large = float(rng.choice([1e6, 1e8, 3.0**20]))
    numbers = [large, 0.1, -large, float(rng.normal())]
    for number in rng.permutation(numbers).tolist():
        added.terms.append(cp.Constant(number))
        added.constants.append(number)


def bound_trace(rng, A, added, scale):
    bound = scale * float(decades(rng, -1, 1))
    added.constraints.append(cp.trace(A) <= bound)
    added.blocks.append(equations([np.eye(A.shape[0])], [bound], False))


def bound_from_above(rng, A, added, scale):
    bound = np.diag(scale * decades(rng, -1, 1, size=A.shape[0]))
    added.constraints.append(A << bound)
    added.blocks.append(Ceiling(bound))


def bound_diagonal(rng, A, added, scale):
    least = scale * float(decades(rng, -3, -1))
    added.constraints.append(cp.diag(A) >= least)
    m = A.shape[0]
    added.blocks.append(equations([-np.diag(row) for row in np.eye(m)], m * [-least], False))


def make_entry_zero(rng, A, added, scale):
    if A.shape[0] == 1:
        return bound_trace(rng, A, added, scale)
    B = np.zeros(A.shape)
    B[0, 1] = B[1, 0] = 0.5
    added.constraints.append(A[0, 1] == 0)
    added.blocks.append(equations([B], [0.0], True))
    return None


def equations(matrices, bounds, is_equality):
    return Equations(np.array(matrices), np.array(bounds, dtype=float), is_equality)


PARTS = [
    add_trace,
    add_linear,
    add_squares,
    add_absolute_values,
    add_log_det,
    add_constants,
    bound_trace,
    bound_from_above,
    bound_diagonal,
    make_entry_zero,
]


def drawn_m_step(rng, most_features=3):
    """Pairs and settings of an ordinary M-step, and the size of its metrics."""
    n, m = int(rng.integers(3, 7)), int(rng.integers(1, most_features + 1))
    size = 1.0 if rng.random() < 0.5 else float(decades(rng, -3, 3))
    X = rng.normal(size=(n, m)) * size
    pairs = PairSet.from_labels(X, labels(rng, n))
    settings = {
        "trace_weight": size**2 * float(decades(rng, -3, 0)),
        "unlabeled_weight": [0.0, "ratio", float(decades(rng, -2, 0))][rng.integers(3)],
        "threshold": [1.0, float(decades(rng, -1, 1))][rng.integers(2)],
    }
    source = rng.integers(3)
    if source == 0:
        settings["previous_metric"] = some_metric(rng, pairs)
    elif source == 1:
        settings["soft_labels"] = rng.random(pairs.n_unlabeled)
    return pairs, settings, 1.0 / size**2


def certifier(problem, A, is_solved):
    """Certifies the problem at a metric, or at a solver's answer."""

    def make(objective, metric):
        if is_solved:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                problem.solve(solver="CLARABEL")
        else:
            A.save_value(metric)
        return certify_problem(problem, objective)

    return make


def judged(found, optimum_known=True):
    if optimum_known and found.given.points.shape[1] == 1:
        return replace(found, optimum=optimum_of_one_feature(found.given))
    return found


def added_to(rng):
    """One to three parts that are understood, at any metric or at a solver's answer."""
    pairs, settings, scale = drawn_m_step(rng)
    objective = MStepObjective(pairs, **settings)
    statement = state_m_step(objective)
    A, added = statement.variables()[0], Added()
    for k in rng.permutation(len(PARTS))[: int(rng.integers(1, 4))]:
        PARTS[k](rng, A, added, scale)
    goal = statement.objective.expr
    for term in added.terms:
        goal = goal + term
    problem = cp.Problem(cp.Minimize(goal), statement.constraints + added.constraints)
    found = Instance(
        objective,
        added.to(given(pairs, **settings)),
        certify=certifier(problem, A, is_solved=rng.random() < 0.15),
        can_be_solved=False,
    )
    return judged(found)


# Changed behind the objective's back


def slightly(rng, x):
    """x changed by 1e-13 to 1e-6 of itself."""
    return x * (1.0 + float(rng.choice([-1.0, 1.0]) * decades(rng, -13, -6)))


def other_points(rng, pairs, settings):
    X = np.array(pairs.points)
    i, a = rng.integers(len(X)), rng.integers(X.shape[1])
    X[i, a] = slightly(rng, X[i, a])
    return replace(pairs, points=X), settings


def other_number(name):
    def change(rng, pairs, settings):
        value = given(pairs, **settings).mu if name == "unlabeled_weight" else settings[name]
        return pairs, settings | {name: slightly(rng, value)}

    return change


def other_soft_labels(rng, pairs, settings):
    rest = {key: value for key, value in settings.items() if key != "previous_metric"}
    q = rng.random(pairs.n_unlabeled)
    return pairs, rest | {"soft_labels": q}


CHANGES = [
    other_points,
    other_number("trace_weight"),
    other_number("threshold"),
    other_number("unlabeled_weight"),
    other_soft_labels,
]


def of_another_objective(rng):
    """The problem of an objective that differs by very little from the one it is certified for."""
    pairs, settings, _ = drawn_m_step(rng, most_features=2)
    change = CHANGES[rng.integers(len(CHANGES))]
    other_pairs, other_settings = change(rng, pairs, settings)
    problem = state_m_step(MStepObjective(other_pairs, **other_settings))
    A = problem.variables()[0]
    found = Instance(
        MStepObjective(pairs, **settings),
        given(other_pairs, **other_settings),
        certify=certifier(problem, A, is_solved=False),
        can_be_solved=False,
    )
    return judged(found)


def terms_of(expression):
    """The terms of a sum, nested or not."""
    if type(expression).__name__ != "AddExpression":
        return [expression]
    return [term for arg in expression.args for term in terms_of(arg)]


def without_a_term(rng, terms):
    gone = int(rng.integers(len(terms)))
    return [term for k, term in enumerate(terms) if k != gone]


def with_a_sign_flipped(rng, terms):
    k = int(rng.integers(len(terms)))
    return [-term if i == k else term for i, term in enumerate(terms)]


def with_a_term_twice(rng, terms):
    """The first is a sum of logistic functions."""
    return [*terms, terms[0]]


def doubled(rng, terms):
    return [2.0 * term for term in terms]


def damaged(rng):
    """A term dropped, doubled or with its sign flipped: nothing but an error will do."""
    pairs, settings, _ = drawn_m_step(rng, most_features=2)
    objective = MStepObjective(pairs, **settings)
    statement = state_m_step(objective)
    kinds = [without_a_term, with_a_sign_flipped, with_a_term_twice, doubled]
    change = kinds[rng.integers(len(kinds))]
    terms = change(rng, terms_of(statement.objective.expr))
    problem = cp.Problem(cp.Minimize(sum(terms[1:], terms[0])), statement.constraints)
    A = statement.variables()[0]

    def make(objective, metric):
        A.save_value(metric)
        certificate = certify_problem(problem, objective)
        raise AssertionError(f"{change.__name__} is certified: {certificate}")

    return Instance(objective, given(pairs, **settings), certify=make, can_be_solved=False)


def unbounded(rng):
    """A linear term with an eigenvalue of -1e-14 to -1e-9, that no trace weight makes up for.

    Whatever is said of it, some huge metric has a smaller value.
    """
    pairs, settings, scale = drawn_m_step(rng)
    m = pairs.n_features
    settings["trace_weight"] = 0.0
    turn = np.linalg.qr(rng.normal(size=(m, m)))[0]
    spectrum = decades(rng, -1, 1, size=m)
    spectrum[0] = -float(decades(rng, -14, -9))
    B = (turn * spectrum) @ turn.T / scale
    B = (B + B.T) / 2.0
    objective = MStepObjective(pairs, **settings)
    statement = state_m_step(objective)
    A = statement.variables()[0]
    goal = statement.objective.expr + cp.sum(cp.multiply(B, A))
    problem = cp.Problem(cp.Minimize(goal), statement.constraints)
    found = given(pairs, **settings)
    return Instance(
        objective,
        replace(found, terms=(B,)),
        certify=certifier(problem, A, is_solved=False),
        can_be_solved=False,
    )


def changed_problems(rng):
    """Problems that are not what the objective says, in one of several ways."""
    kinds = [of_another_objective, damaged, unbounded]
    return kinds[rng.choice(3, p=[0.6, 0.2, 0.2])](rng)


PROBLEMS = {
    "added to a problem": added_to,
    "changed problems": changed_problems,
}
