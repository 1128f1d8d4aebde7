"""The answers to problem set 7, which `fill_in.py` puts in the places of its TODOs."""

# ruff: noqa: F821 (data and imports are those of the problem set)


def dual_function(lam):
    """g(lam), the infimum over all x; -np.inf where there is no lower bound."""
    if lam < 0.0:
        return -np.inf
    if lam == 0.0:
        return 0.0
    return 3.0 * lam - lam * np.log(lam) - lam**2 / 2.0  # at x_1 = ln lam, x_2 = lam


def state_both(C):
    """The problem in a variable A, and its dual in the multipliers lam of the diagonal."""
    A, lam = cp.Variable(C.shape, PSD=True), cp.Variable(len(C))
    problem = cp.Problem(cp.Minimize(cp.sum(cp.multiply(C, A))), [cp.diag(A) == 1])
    return problem, cp.Problem(cp.Maximize(cp.sum(lam)), [C - cp.diag(lam) >> 0])


def program_with_a_gap():
    """C, [B_0, B_1] and [d_0, d_1] of whole numbers, the two values 3 or more apart."""
    C = np.diag([3, 0, 0])
    B_0 = np.diag([0, 1, 0])  # A_11 = 0, so A_12 = 0, ...
    B_1 = np.array([[1, 0, 0], [0, 0, 1], [0, 1, 0]])  # ... and A_00 + 2 A_12 = 1 leaves A_00 = 1
    return C, [B_0, B_1], [0, 1]
