"""The answers to problem set 9, which `fill_in.py` puts in the places of its TODOs."""

# ruff: noqa: F821 (data and imports are those of the problem set)


def curvature_bound(v, c):
    """The Lipschitz constant ell of the gradient for one pair."""
    return c * np.sum(v**2) ** 2 / 4.0  # sigma changes by at most 1/4 of s, and |vv'| = |v|^2


def state_step(C, A, gradient, ell):
    """The problem in C, a symmetric variable, whose optimum is the next point of the method."""
    model = cp.sum(cp.multiply(gradient, C - A)) + ell / 2.0 * cp.sum_squares(C - A)
    return cp.Problem(cp.Minimize(model), [C >> 0])


def too_long():
    """A metric A and two lengths: with the first f rises by 1 or more, with the second it falls."""
    return np.zeros((2, 2)), 100.0 / ell, 2.0 / ell
