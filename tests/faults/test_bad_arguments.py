"""Failure paths: an argument of the wrong kind gets a sentence that names it, by every function."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from instances import random_objective, random_pairs

from seraph_cvx import (
    SERAPH,
    LabeledKFold,
    LabeledOnly,
    PairSet,
    Status,
    alternate,
    known_accuracy,
    solve_m_step,
    state_m_step,
)

X = np.array([[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0], [0.2, 5.0], [1.9, 4.0]])
Y = np.array([0, 0, 1, 1, -1, -1])

FUNCTIONS = {
    "solve_m_step": lambda **settings: solve_m_step(random_objective(0, "hyper"), **settings),
    "alternate": lambda **settings: alternate(random_pairs(0), **settings),
    "SERAPH.fit": lambda **settings: SERAPH(**settings).fit(X, Y),
}
BAD = {
    "no solver": ({"solver": None}, TypeError, "solver=None is neither the name of a solver"),
    "a number as solver": ({"solver": 3}, TypeError, "solver=3 is neither"),
    "a list as solver": ({"solver": ["SCS"]}, TypeError, r"solver=\['SCS'\] is neither"),
    "a class as solver": ({"solver": PairSet}, TypeError, "is neither the name of a solver"),
    "tol in words": ({"tol": "1e-8"}, TypeError, "tol must be a number, not '1e-8'"),
    "tol in bytes": ({"tol": b"1"}, TypeError, "tol must be a number, not b'1'"),
    "tol in an array": ({"tol": np.array([1e-8])}, TypeError, "tol must be a number, not array"),
    "no tol": ({"tol": None}, TypeError, "tol must be a number, not None"),
    "tol not a number": ({"tol": np.nan}, ValueError, "tol=nan is out of range"),
    "an enormous tol": ({"tol": 10**400}, ValueError, "tol=inf is out of range"),
    "max_iter nan": ({"max_iter": np.nan}, ValueError, "max_iter=nan is out of range"),
    "max_iter 2.5": ({"max_iter": 2.5}, ValueError, r"max_iter=2\.5 is not an integer"),
    "max_iter 0": ({"max_iter": 0}, ValueError, "max_iter=0 is out of range: it must be >= 1"),
    "max_iter in words": ({"max_iter": "9"}, TypeError, "max_iter must be a number, not '9'"),
}
FORMULATION = 'formulation=\'triple\' is not known: use "primal" or "dual"'


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_failure_path_a_bad_setting_is_named_by_every_function(function, case):
    settings, kind, words = BAD[case]
    with pytest.raises(kind, match=words):
        FUNCTIONS[function](**settings)


def test_failure_path_a_misspelled_parameter_is_named_with_its_class():
    words = "SERAPH has no parameter 'tolerance_'"
    with pytest.raises(TypeError, match=words):
        SERAPH(tolerance_=3)
    with pytest.raises(TypeError, match=r"'treshold'\. Did you mean 'threshold'"):
        SERAPH(treshold=3)


@pytest.mark.parametrize("function", ["alternate", "SERAPH.fit"])
@pytest.mark.parametrize("value", ["1e-8", None, np.nan, 0.0])
def test_failure_path_a_bad_m_step_tol_is_named_before_anything_is_solved(function, value):
    with pytest.raises((TypeError, ValueError), match="m_step_tol"):
        FUNCTIONS[function](m_step_tol=value)


@pytest.mark.parametrize("solver", ["newton", "projected-gradient", "CLARABEL"])
@pytest.mark.parametrize("function", ["solve_m_step", "alternate"])
def test_failure_path_a_formulation_that_is_none_is_refused_whatever_the_solver(function, solver):
    with pytest.raises(ValueError, match=FORMULATION):
        FUNCTIONS[function](solver=solver, formulation="triple")


@pytest.mark.parametrize(
    "tol", [1, np.float32(1e-3), np.float64(1e-3), np.int64(1), Fraction(1, 9)]
)
def test_a_tolerance_may_be_any_kind_of_number(tol):
    assert solve_m_step(random_objective(0, "hyper"), tol=tol).status is Status.CERTIFIED
    assert alternate(random_pairs(0), tol=tol, m_step_tol=tol).status is Status.CERTIFIED
    assert SERAPH(tol=tol, m_step_tol=tol).fit(X, Y).status_ is Status.CERTIFIED


@pytest.mark.parametrize("max_iter", [500, 500.0, np.int32(500), np.float64(500.0)])
def test_a_whole_number_of_iterations_may_be_of_any_kind(max_iter):
    assert alternate(random_pairs(0), max_iter=max_iter).status is Status.CERTIFIED


# Masked arrays: what is hidden is missing, and must not be read

MASKED = np.ma.array(X, mask=np.zeros(X.shape, dtype=bool))
MASKED[4, 1] = MASKED[5, 0] = np.ma.masked
HIDDEN = np.ma.array(Y, mask=[0, 0, 0, 0, 0, 1])
PAIRS = np.ma.array([[0, 1], [2, 3]], mask=[[0, 0], [0, 1]])
CONFIDENCE = np.ma.array([1.0, 2.0], mask=[1, 0])
HIDDEN_LABEL = r"y\[5\] is masked .*mark an unknown label by -1"
constrain, fit = PairSet.from_constraints, SERAPH().fit
READERS_OF_LABELS = PairSet.from_labels, fit, LabeledOnly().fit
MASKS = [
    (r"X\[4, 1\] is masked \(2 such entries in all\): remove", PairSet.from_labels, MASKED, Y),
    (r"X\[4, 1\] is masked", constrain, MASKED, [(0, 1)], [(0, 2)]),
    (r"X\[4, 1\] is masked", fit, MASKED, Y),
    *((HIDDEN_LABEL, use, X, HIDDEN) for use in READERS_OF_LABELS),
    (HIDDEN_LABEL, lambda: known_accuracy(LabeledOnly().fit(X, Y), X, HIDDEN)),
    (HIDDEN_LABEL, lambda: next(LabeledKFold(2).split(X, HIDDEN))),
    (HIDDEN_LABEL, fit, X, HIDDEN, [(0, 1)]),
    *(
        (rf"`{name}`\[1, 1\] is masked \(1 such entry in all\): leave out", use, X, *given)
        for name, pairs in (("similar", (PAIRS, [(0, 2)])), ("dissimilar", ([(0, 1)], PAIRS)))
        for use, given in ((constrain, pairs), (fit, (None, *pairs)))
    ),
    (r"`similar_confidence`\[0\] is masked", fit, X, None, PAIRS.data, [(0, 2)], CONFIDENCE),
    ("`similar_confidence` is masked", constrain, X, [(0, 1)], [(0, 2)], np.ma.masked),
]


@pytest.mark.parametrize("case", MASKS)
def test_failure_path_what_is_masked_is_refused_by_its_place(case):
    reason, use, *arguments = case
    with pytest.raises(ValueError, match=reason):
        use(*arguments)


def test_failure_path_a_problem_of_cvxpy_is_no_m_step():
    objective = random_objective(0, "hyper")
    with pytest.raises(TypeError, match=r"not Problem: .*certify_problem\(problem\)"):
        solve_m_step(state_m_step(objective))


def test_solver_names_may_be_in_any_case():
    objective = random_objective(0, "hyper")
    assert solve_m_step(objective, "Newton").solver == "newton"
    assert solve_m_step(objective, "Clarabel", tol=1e-4).solver == "CLARABEL"
    assert alternate(random_pairs(0), solver="NEWTON").history[1].kind == "descent"
