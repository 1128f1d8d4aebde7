"""The answers to problem set 3, which `fill_in.py` puts in the places of its TODOs."""

# ruff: noqa: F821 (data and imports are those of the problem set)


def conjugate(p):
    """phi*(p) for a number p; np.inf where there is no largest value."""
    return p**2 / 4.0 - p if p >= 0.0 else np.inf  # 2 (1 + s) = p, so s = p/2 - 1


def state_dual(p):
    """The dual in the variable p, one number for each row of V; its first constraint is on M(p)."""
    entropy = cp.entr(p) + cp.entr(1 - p)
    M = V.T @ cp.diag(cp.multiply(c, p) - b) @ V + trace_weight * np.eye(2)
    return cp.Problem(cp.Maximize(c @ entropy - eta * (c @ p - np.sum(b))), [M >> 0])


def false_bound():
    """A vector p in [0, 1] with D(p) above the optimum by 1 or more."""
    return np.full(len(V), 1.0 / (1.0 + np.exp(eta)))
