"""The answers to exercise 1, which `fill_in.py` puts in the places of its TODOs."""

# ruff: noqa: F821 (data and imports are those of the exercise)


def surprise(label, s):
    """-ln p(label) for each score, as a CVXPY expression; `label` is +1 or -1."""
    return cp.logistic(label * s)


def m_step_loss(A):
    """-F(A): labeled pairs, mu times the unlabeled ones weighed by q, lambda tr(A)."""
    labeled = cp.sum(surprise(1, scores(V_similar, A))) + cp.sum(
        surprise(-1, scores(V_dissimilar, A))
    )
    s = scores(V_unlabeled, A)
    unlabeled = q @ surprise(1, s) + (1.0 - q) @ surprise(-1, s)
    return labeled + mu * unlabeled + trace_weight * cp.trace(A)


def counterexample():
    """Two PSD matrices between which objective_7 bulges upwards."""
    metrics = [t * np.eye(2) for t in np.linspace(0.0, 4.0, 41)]
    values = [objective_7(metric) for metric in metrics]
    bulge = {
        (i, j): values[(i + j) // 2] - (values[i] + values[j]) / 2.0
        for i in range(41)
        for j in range(i + 2, 41, 2)
    }
    i, j = max(bulge, key=bulge.get)
    return metrics[i], metrics[j]
