"""Problem set 8: cones, and what a solver is given.

A dual cone on paper, the logistic term in exponential cones, and a point that a solver would call
feasible, although the constraint that you meant is far from true.
"""

from itertools import product

import cvxpy as cp
import numpy as np

from seraph_cvx import MStepObjective, PairSet, certify, certify_problem, paper

# %% The cone of TODO 1: falling sequences of three numbers, x_1 >= x_2 >= x_3 >= 0.
whole = list(product(range(6), repeat=3))
cone = np.array([x for x in whole if x[0] >= x[1] >= x[2]])


# %% TODO 1. By hand. The dual cone has every lam with lam'x >= 0 for all x of the cone.
def in_dual_cone(lam):
    """Whether lam, three whole numbers, is in the dual cone."""
    raise NotImplementedError(
        "TODO 1: every falling sequence is a sum of multiples >= 0 of three simple ones. Which? "
        "So how many inequalities does lam have to meet?"
    )


for lam in product(range(-3, 4), repeat=3):
    assert bool(in_dual_cone(lam)) == bool(np.all(cone @ lam >= 0))
print(f"Three inequalities decide what {len(cone)} points of the cone say.")


# %% TODO 2. In CVXPY. xi >= ln(1 + e^s) by exponential cones, as a solver is given it. In CVXPY,
# cp.ExpCone(x, y, z) means y e^{x/y} <= z, for vectors entry by entry.
def logistic_constraints(s, xi):
    """Constraints without cp.logistic that hold, for some further variables, if xi is so large."""
    raise NotImplementedError(
        "TODO 2: ln(1 + e^s) <= xi is the same as e^{-xi} + e^{s - xi} <= 1. Give each of the two "
        "exponentials a variable that is not below it."
    )


rng = np.random.default_rng(8)
X = rng.normal(size=(7, 2)) + np.repeat([[0.0, 0.0], [2.0, 0.0]], [4, 3], axis=0)
pairs = PairSet.from_labels(X, [0, 0, 0, -1, 1, 1, -1])
objective = MStepObjective(pairs, trace_weight=0.5)
V = paper.differences(X, np.vstack([pairs.similar, pairs.dissimilar, pairs.unlabeled]))
counts = [len(pairs.similar), len(pairs.dissimilar), pairs.n_unlabeled]
c, b = (np.repeat([similar, 1.0, objective.mu], counts) for similar in (1.0, 0.0))
A, xi = cp.Variable((2, 2), PSD=True), cp.Variable(len(V))
s = cp.sum(cp.multiply(V @ A, V), axis=1) - objective.threshold
constraints = logistic_constraints(s, xi)
problem = cp.Problem(cp.Minimize(c @ xi - b @ s + 0.5 * cp.trace(A)), constraints)
assert problem.is_dcp()
assert not any(atom.__name__ in ("logistic", "log_sum_exp", "exp") for atom in problem.atoms())
problem.solve(solver="CLARABEL")
proved, judged = certify_problem(problem), certify(objective, A.value)
assert proved.relative_gap <= 1e-6
assert proved.lower <= judged.primal_value + 1e-9
assert judged.dual_value <= proved.upper + 1e-9
assert judged.relative_gap <= 1e-3
print(f"{len(V)} logistic terms in cones: the optimum is {proved.upper:.6f}, as of the M-step.")


# %% A relative entropy in the exponential cone: q ln(q/p) <= xi means that (-xi, q, p) is in it. A
# solver stops if its point is within 1e-8 of the cone. How wrong may the inequality still be?
def violation(xi, q, p):
    """By how much q ln(q/p) exceeds xi."""
    return q * np.log(q / p) - xi


for move in product((-1e-8, 1e-8), repeat=3):  # the control: in the middle of things, not much
    assert violation(*np.add((0.0, 0.5, 0.5), move)) <= 1e-7


# %% TODO 3. Break it. "A residual of 1e-8 in the cone is a violation of about 1e-8."
def nearly_in_the_cone():
    """Points (xi, q, p) and (xi, q, p): the first one bad, the second one near it and feasible."""
    raise NotImplementedError(
        "TODO 3: for which p does ln(q/p) change much when p changes by 1e-8? Choose the feasible "
        "point first, with p of that size, and then take away nearly all of p."
    )


bad, good = (np.asarray(point, dtype=float) for point in nearly_in_the_cone())
assert min(*bad[1:], *good[1:]) > 0.0
assert violation(*good) <= 0.0
assert np.linalg.norm(bad - good) <= 1e-8
assert violation(*bad) >= 0.1
print(f"At most 1e-8 from the cone, and the inequality is violated by {violation(*bad):.2f}.")
