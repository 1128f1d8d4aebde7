"""Exercise 5: the two ends of the trace weight: no optimum at 0, nothing but zero when it is large.

With lambda = 0 the M-step usually has no optimum: f falls forever along some direction. With
lambda large the optimum is A = 0, and an eigenvalue says from where on.
"""

import numpy as np

from seraph_cvx import MStepObjective, OptimumNotAttained, PairSet, seraph_path, solve_m_step
from seraph_cvx.paper import differences

# %% The data: 8 points in R^3, two similar and three dissimilar pairs; the rest is not used.
rng = np.random.default_rng(4)
X = rng.normal(size=(8, 3))
pairs = PairSet.from_constraints(X, similar=[(0, 1), (2, 3)], dissimilar=[(0, 4), (1, 5), (2, 6)])
V_similar, V_dissimilar = differences(X, pairs.similar), differences(X, pairs.dissimilar)
eta = 1.0
without_trace = MStepObjective(pairs, unlabeled_weight=0.0, trace_weight=0.0)


# %% TODO 1. f(A) = sum_S log(1 + e^s) + sum_D log(1 + e^{-s}). Stretch the metric along a direction
# that no similar pair has a part in: the first sum stays, the second falls, and never stops.
def falling_direction():
    """A unit vector u with v'u = 0 for each similar v, and v'u != 0 for a dissimilar one."""
    raise NotImplementedError(
        "TODO 1: which subspace do the conditions v'u = 0 describe, and which factorization "
        "of V_similar has a basis of it?"
    )


u = falling_direction()
assert np.isclose(np.linalg.norm(u), 1.0)
values = [without_trace.value(t * np.outer(u, u)) for t in (0.0, 1.0, 3.0, 10.0, 30.0)]
assert np.all(np.diff(values) < 0.0)
assert not without_trace.attains_optimum
refusal = None
try:
    solve_m_step(without_trace)
except OptimumNotAttained as error:
    refusal = error
assert refusal is not None
assert np.isclose(abs(refusal.direction @ u), 1.0)
print(f"lambda = 0: f falls along u as {np.round(values, 3)}; it has no optimum.")


# %% TODO 2. At A = 0 every score is -eta. A = 0 is optimal if no direction D PSD has a negative
# slope <gradient, D>, so if the gradient at 0 is PSD. Solve that for lambda.
def critical_trace_weight():
    """The smallest lambda >= 0 for which A = 0 is optimal."""
    raise NotImplementedError(
        "TODO 2: write down the gradient at A = 0, where every pair has the same p. What "
        "does lambda do to its eigenvalues, and which of them decides?"
    )


critical = critical_trace_weight()
assert np.isclose(critical, without_trace.critical_trace_weight)
above, below = (
    solve_m_step(without_trace.with_trace_weight(factor * critical)).metric
    for factor in (1.01, 0.99)
)
assert np.trace(above) == 0.0
assert np.trace(below) > 1e-4
print(f"lambda >= {critical:.4f}: the metric is zero; just below it is not.")

# %% Between the two ends the metric grows. Its trace never falls with lambda; its rank may.
path = seraph_path(pairs, unlabeled_weight=0.0, n_weights=8)
traces = [point.trace for point in path]
assert traces[0] == 0.0
assert np.all(np.diff(traces) > 0.0)
print(f"lambda from {critical:.3f} downwards: traces {np.round(traces, 2)}, ranks {path.ranks}")
