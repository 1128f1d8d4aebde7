"""The answers to exercise 5, which `fill_in.py` puts in the places of its TODOs."""

# ruff: noqa: F821 (data and imports are those of the exercise)


def falling_direction():
    """A unit vector u with v'u = 0 for each similar v, and v'u != 0 for a dissimilar one."""
    return np.linalg.svd(V_similar)[2][-1]  # two similar pairs in R^3 leave one direction free


def critical_trace_weight():
    """The smallest lambda >= 0 for which A = 0 is optimal."""
    taken = 1.0 / (1.0 + np.exp(eta))  # p(-1) = sigma(-eta) of every pair at A = 0
    everything = V_similar.T @ V_similar + V_dissimilar.T @ V_dissimilar
    pull = V_dissimilar.T @ V_dissimilar - taken * everything
    return max(0.0, np.linalg.eigvalsh(pull)[-1])
