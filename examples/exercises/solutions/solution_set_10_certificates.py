"""The answers to problem set 10, which `fill_in.py` puts in the places of its TODOs."""

# ruff: noqa: F821 (data and imports are those of the problem set)


def multipliers():
    """lam, a list of four, and the number xi: whole numbers or `Fraction`s, both bounds tight."""
    return [Fraction(6, 5), Fraction(7, 5), 0, 0], 1  # the eigenvalues of C are 1 and 6


def own_problem():
    """The problem, and its optimal value as a number."""
    point, normal, height = np.array([3.0, -1.0, 2.0]), np.array([1.0, 2.0, 2.0]), 11.0
    x = cp.Variable(3)
    problem = cp.Problem(cp.Minimize(cp.norm(x - point)), [normal @ x == height])
    return problem, abs(normal @ point - height) / np.linalg.norm(normal)


def tampered():
    """A point x, no constraint violated by more than 1e-6, with a value 1e-3 too good or more."""
    corner = 0.999 - 0.9e-6
    return corner, np.sqrt((1.0 + 0.9e-6) ** 2 - corner**2)
