"""The answers to exercise 7, which `fill_in.py` puts in the places of its TODOs."""

# ruff: noqa: F821 (data and imports are those of the exercise)


def objective_7(A):
    """labeled_part(A) + mu sum_U H(p)."""
    near, far = surprises(pairs.unlabeled, A)
    return labeled_part(A) + mu * np.sum(np.exp(-near) * near + np.exp(-far) * far)


def descent(q, A):
    """J(q, A); q is q(+1) of each unlabeled pair."""
    near, far = surprises(pairs.unlabeled, A)
    expected_surprise = q * near + (1.0 - q) * far
    return labeled_part(A) + mu * np.sum(expected_surprise - entropy(q) / (1.0 + mu))
