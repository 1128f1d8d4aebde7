"""Exercise 6: the E-step (10) is the optimum of (9): Theorem 3, by a solver and by hand.

The soft labels should be near the posterior p but more certain than it: minimize over distributions
q the sum KL(q || p) + mu E_q[-ln p]. That is convex, and its optimum is known.
"""

import cvxpy as cp
import numpy as np

from seraph_cvx import PairSet, e_step, paper

# %% The data: the posterior (8) of every unlabeled pair, a row (p(+1), p(-1)) for each.
rng = np.random.default_rng(5)
X = rng.normal(size=(10, 2))
pairs = PairSet.from_labels(X, [0, 0, 1, 1, *[-1] * 6])
metric, mu, eta = np.array([[0.8, 0.2], [0.2, 0.5]]), 0.7, 1.0
d = paper.squared_distances(X, pairs.unlabeled, metric)
P = np.column_stack([paper.posterior(d, y, eta) for y in (1.0, -1.0)])


# %% TODO 1. State (9), summed over all pairs, in CVXPY. `cvxpy.rel_entr(q, p)` is q ln(q/p).
def state_e_step(q):
    """The convex problem (9) in the variable q, which has a row (q(+1), q(-1)) a pair."""
    raise NotImplementedError(
        "TODO 1: the KL divergence is a sum of relative entropies. What kind of function of "
        "q is the other term, since P is data? And what makes a row a distribution?"
    )


variable = cp.Variable(P.shape, nonneg=True)
problem = state_e_step(variable)
assert problem.is_dcp()
problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
assert np.allclose(np.sum(variable.value, axis=1), 1.0)


# %% TODO 2. Theorem 3. Set the derivative of q ln(q/p) - mu q ln p + (multiplier) q to zero.
def closed_form(P):
    """q(y) in terms of p(y) and mu, a row a pair."""
    raise NotImplementedError(
        "TODO 2: solve for ln q first. The multiplier belongs to the row, not to the label: "
        "so what can it do to q, and what decides its value?"
    )


assert np.allclose(closed_form(P), variable.value, atol=1e-7)
assert np.allclose(closed_form(P)[:, 0], e_step(pairs, metric, unlabeled_weight=mu, threshold=eta))
print(f"The solver's q and p^(1+mu)/Z agree on {len(P)} pairs; e_step returns the same.")


# %% TODO 3. Put q back into (9). What is left is a function of p alone, and it is not mu times the
# Shannon entropy of p, as one might guess from (7).
def optimal_value(P):
    """The minimum of (9), summed over the pairs, without q."""
    raise NotImplementedError(
        "TODO 3: insert ln q of TODO 2, normalization included, and collect the terms in ln "
        "p. What is left that does not depend on y?"
    )


shannon = -mu * np.sum(P * np.log(P))
assert np.isclose(optimal_value(P), problem.value, rtol=1e-6)
assert optimal_value(P) < 0.95 * shannon
print(f"Minimum of (9): {problem.value:.4f} = mu times the Renyi entropy of order 1 + mu,")
print(f"not mu times the Shannon entropy, {shannon:.4f}.")
