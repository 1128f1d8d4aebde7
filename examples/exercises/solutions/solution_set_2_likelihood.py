"""The answers to problem set 2, which `fill_in.py` puts in the places of its TODOs."""

# ruff: noqa: F821 (data and imports are those of the problem set)


def curvature(s, mu):
    """phi''(s), for an array of scores s."""
    p = 1.0 / (1.0 + np.exp(-s))
    # The slope of H(sigma(s)) is -s p (1 - p), and p (1 - p) has the slope p (1 - p) (1 - 2p).
    return p * (1.0 - p) * (1.0 + mu * (s * (2.0 * p - 1.0) - 1.0))


def state_m_step(A):
    """The problem of minimizing f over the variable A, which is PSD."""
    scores = cp.sum(cp.multiply(V @ A, V), axis=1) - eta
    linear = trace_weight * cp.trace(A) - cp.sum(cp.multiply(G, A)) + eta * beta
    return cp.Problem(cp.Minimize(c @ cp.logistic(scores) + linear))


def counterexample():
    """Two 2 x 2 factors between which f(LL') is above its chord, by 0.1 or more."""
    L = np.diag([1.0, 0.0])
    return L, -L  # the same metric, better than A = 0, which is the metric of the middle
