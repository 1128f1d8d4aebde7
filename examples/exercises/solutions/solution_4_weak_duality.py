"""The answers to exercise 4, which `fill_in.py` puts in the places of its TODOs."""

# ruff: noqa: F821 (data and imports are those of the exercise)


def dual_value(p):
    """D(p) = sum_k c_k H(p_k) - eta*(sum_k c_k p_k - beta), with beta = sum_k b_k."""
    return c @ entropy(p) - eta * (c @ p - np.sum(b))


def dual_matrix(p):
    """M(p) = sum_k (c_k p_k - b_k) v_k v_k' + lambda I."""
    return V.T @ ((c * p - b)[:, None] * V) + trace_weight * np.eye(3)


def feasible(p):
    """tau*p + (1 - tau)*1 with the largest tau in [0, 1] that is feasible."""
    anchor = dual_matrix(np.ones(len(p)))
    eigenvalues, vectors = np.linalg.eigh(anchor)
    root = vectors / np.sqrt(eigenvalues)
    steepest = np.linalg.eigvalsh(root.T @ (anchor - dual_matrix(p)) @ root)[-1]
    tau = 1.0 / max(1.0, steepest)
    return tau * p + (1.0 - tau)
