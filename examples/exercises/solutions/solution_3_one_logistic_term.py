"""The answers to exercise 3, which `fill_in.py` puts in the places of its TODOs."""

# ruff: noqa: F821 (data and imports are those of the exercise)


def label_sums(q):
    """G = sum_k b_k v_k v_k' and beta = sum_k b_k; b is 1 if dissimilar, mu q(-1) if unlabeled."""
    b = mu * (1.0 - q)
    G = V_dissimilar.T @ V_dissimilar + V_unlabeled.T @ (b[:, None] * V_unlabeled)
    return G, len(V_dissimilar) + np.sum(b)


def one_term(A, G, beta):
    """sum_k c_k log(1 + e^{s_k}) - <G, A> + eta*beta + lambda tr(A)."""
    labeled = np.vstack([V_similar, V_dissimilar])
    logistic = np.sum(np.logaddexp(0.0, scores(labeled, A)))
    logistic += mu * np.sum(np.logaddexp(0.0, scores(V_unlabeled, A)))
    return logistic - np.sum(G * A) + eta * beta + trace_weight * np.trace(A)


def twin(q):
    """Soft labels in [0, 1], some of them 0.1 or more away from q, with the G and beta of q."""
    products = [V_unlabeled[:, i] * V_unlabeled[:, j] for i, j in ((0, 0), (0, 1), (1, 1))]
    conditions = np.vstack([*products, np.ones(len(q))])
    direction = np.linalg.svd(conditions)[2][-1]  # orthogonal to all four
    room = np.where(direction > 0.0, 1.0 - q, q) / np.maximum(np.abs(direction), 1e-12)
    return np.clip(q + np.min(room) * direction, 0.0, 1.0)
