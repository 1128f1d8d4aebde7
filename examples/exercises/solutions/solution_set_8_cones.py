"""The answers to problem set 8, which `fill_in.py` puts in the places of its TODOs."""

# ruff: noqa: F821 (data and imports are those of the problem set)


def in_dual_cone(lam):
    """Whether lam, three whole numbers, is in the dual cone."""
    return np.all(np.cumsum(lam) >= 0)  # the cone is spanned by (1, 0, 0), (1, 1, 0), (1, 1, 1)


def logistic_constraints(s, xi):
    """Constraints without cp.logistic that hold, for some further variables, if xi is so large."""
    first, second, one = cp.Variable(s.shape), cp.Variable(s.shape), np.ones(s.shape)
    return [
        cp.ExpCone(-xi, one, first),
        cp.ExpCone(s - xi, one, second),
        first + second <= 1,
    ]


def nearly_in_the_cone():
    """Points (xi, q, p) and (xi, q, p): the first one bad, the second one near it and feasible."""
    return (1.62, 0.1, 1e-13), (1.62, 0.1, 1e-8)
