"""The answers to problem set 1, which `fill_in.py` puts in the places of its TODOs."""

# ruff: noqa: F821 (data and imports are those of the problem set)


def nearest_metric():
    """P(B), a 2 x 2 list of whole numbers or `Fraction`s: 1.6 is not 8/5 to a computer."""
    # The eigenvalues are 2 and -3; the eigenvector of 2 is (2, 1)/sqrt(5).
    return [[Fraction(8, 5), Fraction(4, 5)], [Fraction(4, 5), Fraction(2, 5)]]


def state_projection(A, C):
    """Minimize the squared Frobenius distance to C over the metrics A, a symmetric variable."""
    return cp.Problem(cp.Minimize(cp.sum_squares(A - C)), [A >> 0])


def counterexample():
    """Metrics A and B, 2 x 2 lists, with A - B PSD and A^2 - B^2 not PSD."""
    return [[2, 1], [1, 1]], [[1, 0], [0, 0]]
