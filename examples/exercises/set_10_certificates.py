"""Problem set 10: certificates for any problem.

Bounds on two programs in exact fractions, a problem of your own with a certified optimum, and
an answer that looks better than the best one, until its certificate is read.
"""

from fractions import Fraction

import cvxpy as cp
import numpy as np

from seraph_cvx import certify_problem

# %% Two programs for TODO 1, and a feasible point of each. A linear one: minimize c'x subject to
# h - Fx >= 0; its last rows say x_1, x_2 >= 0.
c = [-4, -5]
F = [[1, 3], [2, 1], [-1, 0], [0, -1]]
h = [2, 3, 0, 0]
x = [Fraction(7, 5), Fraction(1, 5)]
assert all(h[i] - F[i][0] * x[0] - F[i][1] * x[1] >= 0 for i in range(4))
value = c[0] * x[0] + c[1] * x[1]

# A semidefinite one: minimize <C, A> over the metrics A with the trace 1.
C = [[2, 2], [2, 5]]
A = [[Fraction(4, 5), Fraction(-2, 5)], [Fraction(-2, 5), Fraction(1, 5)]]
semidefinite_value = sum(C[i][j] * A[i][j] for i in (0, 1) for j in (0, 1))


# %% TODO 1. By hand. Prove that no feasible point is better. If lam >= 0 and c + F'lam = 0, then
# c'x = -lam'Fx >= -lam'h. If C - xi I is PSD, then <C, A> >= xi tr(A) = xi.
def multipliers():
    """lam, a list of four, and the number xi: whole numbers or `Fraction`s, both bounds tight."""
    raise NotImplementedError(
        "TODO 1: which rows hold with equality at x? The others get the multiplier 0, and two "
        "equations in two unknowns are left. And for which xi is C - xi I just PSD?"
    )


lam, xi = multipliers()
lam, xi = [Fraction(number) for number in lam], Fraction(xi)
assert len(lam) == 4
assert min(lam) >= 0
left_over = [c[j] + sum(F[i][j] * lam[i] for i in range(4)) for j in (0, 1)]
assert left_over == [0, 0]
bound = -sum(h[i] * lam[i] for i in range(4))
assert bound == value
assert min(C[0][0] - xi, C[1][1] - xi) >= 0
assert (C[0][0] - xi) * (C[1][1] - xi) >= C[0][1] ** 2
assert xi == semidefinite_value
print(f"The optima are {value} and {xi}: proved in fractions, by anyone who can multiply.")


# %% TODO 2. In CVXPY. A problem of your own, not solved, and its optimal value by another way: a
# formula, geometry, a known result. Three unknowns or more, not linear and not quadratic.
def own_problem():
    """The problem, and its optimal value as a number."""
    raise NotImplementedError(
        "TODO 2: a norm, an entropy or a matrix that is PSD will do. How far is a point from a "
        "plane? Which distribution has the largest entropy? What is the least eigenvalue?"
    )


problem, expected = own_problem()
assert problem.is_dcp()
assert not problem.is_qp()
assert sum(variable.size for variable in problem.variables()) >= 3
assert problem.value is None  # not from a solver
proved = certify_problem(problem)
assert proved.relative_gap <= 1e-6
allowance = 1e-6 * max(1.0, abs(expected))
assert proved.lower - allowance <= expected <= proved.upper + allowance
print(f"Your problem: [{proved.lower:.9g}, {proved.upper:.9g}] holds the optimum, {expected:.9g}.")

# %% A thin lens: the points of the unit disc with x_1 >= 0.999. Its highest point is wanted.
x = cp.Variable(2)
lens = cp.Problem(cp.Maximize(100 * x[1]), [cp.norm(x) <= 1, x[0] >= 0.999])


def judged(point):
    """The certificate with a claimed answer in it, and the most that this violates a constraint."""
    x.value = np.asarray(point, dtype=float)
    certificate = certify_problem(lens)
    return certificate, max(high for _, (_, high) in certificate.point.violations)


# %% TODO 3. Break it. "No constraint is off by more than a millionth, and the value is higher: this
# is the better answer." Tamper with the honest one.
honest = np.array([0.999, np.sqrt(1.0 - 0.999**2) - 1e-9])


def tampered():
    """A point x, no constraint violated by more than 1e-6, with a value 1e-3 too good or more."""
    raise NotImplementedError(
        "TODO 3: both constraints give way a little. How high is the corner of a lens whose disc "
        "has the radius 1 + 1e-6, or whose edge is a millionth further to the left?"
    )


certificate, violation = judged(honest)
assert certificate.relative_gap <= 1e-6
assert violation <= 1e-12
assert abs(certificate.point.objective[0] - certificate.upper) <= 1e-5  # proved to be optimal
certificate, violation = judged(tampered())
assert violation <= 1e-6
assert certificate.point.objective[0] >= certificate.upper + 1e-3  # refuted: no such optimum
claimed = certificate.point.objective[0]
print(f"Claimed: {claimed:.5f}. Proved: no feasible point is above {certificate.upper:.5f}.")
