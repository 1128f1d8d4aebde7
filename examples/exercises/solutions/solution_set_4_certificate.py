"""The answers to problem set 4, which `fill_in.py` puts in the places of its TODOs."""

# ruff: noqa: F821 (data and imports are those of the problem set)


def longest_step():
    """The largest tau for which the mixture is PSD, as a `Fraction`."""
    return Fraction(1, 2)  # (6 - 3 tau)(3 - 5 tau) - 9 tau^2 = 6 tau^2 - 39 tau + 18


def state_longest_step(tau, anchor, slack):
    """The problem of the largest tau, a scalar variable; `anchor` and `slack` are arrays."""
    return cp.Problem(cp.Maximize(tau), [tau * slack + (1 - tau) * anchor >> 0, tau <= 1])


def looks_positive():
    """A symmetric 2 x 2 array, entries up to 2, not PSD, with a computed eigenvalue > 0."""
    for x in np.random.default_rng(0).uniform(0.1, 1.0, size=1000):
        matrix = np.array([[1.0, x], [x, x * x]])
        if np.linalg.eigvalsh(matrix)[0] > 0.0 and not is_psd(matrix):
            return matrix
    return None
