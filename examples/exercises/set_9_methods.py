"""Problem set 9: methods with proofs.

The bound on the curvature of one pair on paper, a step of projected gradient as a problem in CVXPY,
and a step that is too long.
"""

import cvxpy as cp
import numpy as np

from seraph_cvx import MStepObjective, PairSet, certify_problem, paper


# %% TODO 1. By hand. The gradient of c ln(1 + e^{v'Av - eta}) in A is c sigma(s) vv'. Find the
# least ell such that it never changes by more than ell times the change of A (Frobenius norms).
def curvature_bound(v, c):
    """The Lipschitz constant ell of the gradient for one pair."""
    raise NotImplementedError(
        "TODO 1: how fast can sigma change with s, and how fast s with A? The Frobenius norm of "
        "vv' is the squared length of v; it comes in twice."
    )


def gradient(A, v, c, eta=1.0):
    """The gradient for one pair."""
    return c / (1.0 + np.exp(eta - v @ A @ v)) * np.outer(v, v)


rng = np.random.default_rng(9)
for v, c in ((np.array([1.0, 2.0]), 1.0), (np.array([0.3, -0.1]), 0.5), (np.ones(3), 2.0)):
    ell = curvature_bound(v, c)
    for A, B in rng.normal(size=(200, 2, len(v), len(v))) / (v @ v):
        change = gradient(A, v, c) - gradient(B, v, c)
        assert np.linalg.norm(change) <= ell * np.linalg.norm(A - B) * (1.0 + 1e-9)
    A = np.outer(v, v) / (v @ v) ** 2  # here s = 0
    change = gradient(A * 1.001, v, c) - gradient(A * 0.999, v, c)
    assert np.linalg.norm(change) >= 0.999 * ell * np.linalg.norm(0.002 * A)  # ell is the least
print("No change of the gradient is above ell times that of A, and one comes up to it.")

# %% The data: 8 points, five of known class. The bounds of the pairs add up to one for f.
X = rng.normal(size=(8, 2)) + np.repeat([[0.0, 0.0], [2.0, 0.0]], 4, axis=0)
pairs = PairSet.from_labels(X, [0, 0, 0, -1, 1, 1, -1, -1])
objective = MStepObjective(pairs, trace_weight=0.5)
V = paper.differences(X, np.vstack([pairs.similar, pairs.dissimilar, pairs.unlabeled]))
weights = np.repeat([1.0, objective.mu], [pairs.n_labeled, pairs.n_unlabeled])
ell = sum(curvature_bound(v, c) for v, c in zip(V, weights, strict=True))


def project(A):
    """The nearest metric."""
    eigenvalues, vectors = np.linalg.eigh((A + A.T) / 2.0)
    return (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T


# %% TODO 2. In CVXPY. The step A -> P(A - gradient/ell) minimizes a quadratic model of f over the
# cone: <gradient, C - A> + ell/2 |C - A|^2. State that.
def state_step(C, A, gradient, ell):
    """The problem in C, a symmetric variable, whose optimum is the next point of the method."""
    raise NotImplementedError(
        "TODO 2: A and the gradient are data; C is the variable. The inner product of two matrices "
        "is the sum of the products of their entries. C has to be a metric."
    )


for A in (np.zeros((2, 2)), np.eye(2), np.array([[4.0, 2.0], [2.0, 1.0]])):  # the last of rank 1
    slope, C = objective.gradient(A), cp.Variable((2, 2), symmetric=True)
    problem = state_step(C, A, slope, ell)
    assert problem.is_dcp()
    problem.solve(solver="CLARABEL")
    proved, move = certify_problem(problem), project(A - slope / ell) - A
    model = np.sum(slope * move) + ell / 2.0 * np.sum(move**2)
    assert proved.relative_gap <= 1e-6
    assert proved.lower - 1e-9 <= model <= proved.upper + 1e-9
    assert np.allclose(C.value, A + move, atol=1e-3)
    assert objective.value(A + move) <= objective.value(A) + model  # f is below its model
print("The projected step is the optimum of the model, and f falls at least as far.")


# %% TODO 3. Break it. "The gradient points downhill, so a longer step falls further."
def after(A, length):
    """f after a step of projected gradient."""
    return objective.value(project(A - length * objective.gradient(A)))


def too_long():
    """A metric A and two lengths: with the first f rises by 1 or more, with the second it falls."""
    raise NotImplementedError(
        "TODO 3: try multiples of 1/ell, from a metric where f is steep: is A = 0 one? The second "
        "length must be shorter than the first, and longer than 1/ell."
    )


A, long, short = too_long()
A = np.asarray(A, dtype=float)
assert np.linalg.eigvalsh(A)[0] >= -1e-12
assert 1.0 / ell < short < long
assert after(A, long) >= objective.value(A) + 1.0
assert after(A, short) < objective.value(A) - 0.01
for part in (0.01, 0.1, 0.5, 1.0):  # the control: up to 1/ell, f falls from everywhere
    assert after(A, part / ell) < objective.value(A)
print(f"From {objective.value(A):.3f}, {short:.3g} leads to {after(A, short):.3f}, down,")
print(f"and {long:.3g} to {after(A, long):.3f}, up.")
