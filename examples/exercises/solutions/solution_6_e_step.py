"""The answers to exercise 6, which `fill_in.py` puts in the places of its TODOs."""

# ruff: noqa: F821 (data and imports are those of the exercise)


def state_e_step(q):
    """The convex problem (9) in the variable q, which has a row (q(+1), q(-1)) a pair."""
    divergence = cp.sum(cp.rel_entr(q, P))
    surprise = cp.sum(cp.multiply(q, -np.log(P)))
    return cp.Problem(cp.Minimize(divergence + mu * surprise), [cp.sum(q, axis=1) == 1])


def closed_form(P):
    """q(y) in terms of p(y) and mu, a row a pair."""
    power = P ** (1.0 + mu)
    return power / np.sum(power, axis=1, keepdims=True)


def optimal_value(P):
    """The minimum of (9), summed over the pairs, without q."""
    return -np.sum(np.log(np.sum(P ** (1.0 + mu), axis=1)))
