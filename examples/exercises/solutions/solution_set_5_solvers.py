"""The answers to problem set 5, which `fill_in.py` puts in the places of its TODOs."""

# ruff: noqa: F821 (data and imports are those of the problem set)


def barrier_weight(A):
    """The epsilon > 0 for which the number A is on the central path."""
    return A * (trace_weight - 1.0 / (1.0 + np.exp(A - eta)))


def state_central_path(A, epsilon):
    """The problem whose optimum is the point of the central path."""
    return cp.Problem(cp.Minimize(loss(A) - epsilon * cp.log_det(A)))


def looks_done():
    """A PSD matrix where f hardly falls, although the certified relative gap is 0.1 or more."""
    return np.eye(2)
