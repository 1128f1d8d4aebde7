"""Every numbered formula of the paper, as it is printed: the first file to read.

Niu, Dai, Yamada and Sugiyama, "Information-theoretic semi-supervised metric learning via entropy
regularization", ICML 2012. Functions of plain arrays, without blocks, caches or checks; the rest of
the package computes the same numbers for many points, and its tests compare it with these.

    X        (n, m) points x_i
    S, D, U  (k, 2) index pairs: similar, dissimilar, unlabeled
    d        squared distances ||x_i - x_j||_A^2, one for each pair
    y        weak labels, +1 similar and -1 dissimilar
    A        (m, m) metric, symmetric positive semidefinite
    q        q(+1) of each pair of U; q(-1) is 1 - q
    eta, mu, lam, gamma, kappa   the paper's letters

The paper maximizes; :class:`seraph_cvx.MStepObjective` is minus (11), to be minimized.

Examples
--------
>>> import numpy as np
>>> X = np.array([[0.0], [0.2], [2.0]])
>>> S, D, U = np.array([[0, 1]]), np.array([[0, 2]]), np.array([[1, 2]])
>>> round(m_step(X, S, D, U, np.zeros(1), np.eye(1), mu=0.5, lam=1.0, eta=1.0), 6)
-1.423347
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.int64]


def differences(X: Array, pairs: Index) -> Array:
    """The differences x_i - x_j of Section 2.1, one row for each pair."""
    return X[pairs[:, 0]] - X[pairs[:, 1]]


def squared_distances(X: Array, pairs: Index, A: Array) -> Array:
    """The squared Mahalanobis distances of Section 2.1: (x_i - x_j)' A (x_i - x_j)."""
    V = differences(X, pairs)
    return np.asarray(np.sum((V @ A) * V, axis=1))


def entropy(p: Array) -> Array:
    """The entropy of Section 2.2 of a pair that is similar with probability p; 0 ln 0 = 0."""
    similar, dissimilar = (t * np.log(np.where(t > 0.0, t, 1.0)) for t in (p, 1.0 - p))
    return -(similar + dissimilar)


def maximum_entropy(p: Array, d: Array, y: Array, eta: float, gamma: float) -> float:
    """(1), with the least slack xi that its constraint allows, at any p(+1) of labeled pairs."""
    expected = p * feature(d, 1.0, eta) + (1.0 - p) * feature(d, -1.0, eta)
    xi = abs(np.sum(expected) - np.sum(feature(d, y, eta)))
    return float(np.sum(entropy(p)) - xi**2 / (2.0 * gamma))


def log_partition(d: Array, kappa: float, eta: float) -> Array:
    """The logarithm of Z in (2), the sum of exp(kappa f(y)) over y."""
    return np.logaddexp(kappa * feature(d, 1.0, eta), kappa * feature(d, -1.0, eta))


def maximum_entropy_solution(d: Array, y: Array | float, kappa: float, eta: float) -> Array:
    """(2): p(y) = exp(kappa f(y)) / Z, which is (5) for the feature (4)."""
    return np.exp(kappa * feature(d, y, eta) - log_partition(d, kappa, eta))


def maximum_entropy_dual(d: Array, y: Array, kappa: float, eta: float, gamma: float) -> float:
    """(3), to be minimized over A and kappa; d are the squared distances under A."""
    fit = np.sum(log_partition(d, kappa, eta) - kappa * feature(d, y, eta))
    return float(fit + gamma / 2.0 * kappa**2)


def feature(d: Array, y: Array | float, eta: float) -> Array:
    """(4): the feature function y/2 (||x - x'||_A^2 - eta)."""
    return y / 2.0 * (d - eta)


def log_model(d: Array, y: Array | float, kappa: float, eta: float) -> Array:
    """The logarithm of (5): -ln(1 + exp(-kappa y (||x - x'||_A^2 - eta)))."""
    return -np.logaddexp(0.0, -kappa * y * (d - eta))


def full_objective(
    X: Array, S: Index, D: Index, U: Index, A: Array, kappa: float,
    *, mu: float, lam: float, eta: float, gamma: float,
) -> float:  # fmt: skip
    """(6), to be maximized over A and kappa; with lam = 0 it is L_2, with mu = 0 too L_1."""
    similar, dissimilar, unlabeled = (squared_distances(X, pairs, A) for pairs in (S, D, U))
    fit = np.sum(log_model(similar, 1.0, kappa, eta)) + np.sum(
        log_model(dissimilar, -1.0, kappa, eta)
    )
    uncertainty = np.sum(entropy(np.exp(log_model(unlabeled, 1.0, kappa, eta))))
    return float(fit - gamma / 2.0 * kappa**2 - mu * uncertainty - lam * np.trace(A))


def simplified_objective(
    X: Array, S: Index, D: Index, U: Index, A: Array, *, mu: float, lam: float, eta: float
) -> float:
    """(7), to be maximized: the log-likelihood of labeled pairs, less entropy and trace."""
    uncertainty = np.sum(entropy(posterior(squared_distances(X, U, A), 1.0, eta)))
    return float(_log_likelihood(X, S, D, A, eta) - mu * uncertainty - lam * np.trace(A))


def log_posterior(d: Array, y: Array | float, eta: float) -> Array:
    """The logarithm of (8): -ln(1 + exp(y (||x - x'||_A^2 - eta)))."""
    return -np.logaddexp(0.0, y * (d - eta))


def posterior(d: Array, y: Array | float, eta: float) -> Array:
    """(8): the probability 1 / (1 + exp(y (||x - x'||_A^2 - eta))) of the label y."""
    return np.exp(log_posterior(d, y, eta))


def simplified_parameters(
    A: Array, kappa: float, *, lam: float, eta: float
) -> tuple[Array, float, float]:
    """Theorem 2: the metric, lam and eta of (7) and (8) that equal those of (6) for kappa < 0."""
    return -kappa * A, lam / -kappa, -kappa * eta


def e_step_objective(q: Array, d: Array, *, mu: float, eta: float) -> Array:
    """(9), to be minimized over q(+1): KL(q || p) + mu E_q[-ln p]."""
    surprise = -(q * log_posterior(d, 1.0, eta) + (1.0 - q) * log_posterior(d, -1.0, eta))
    return -entropy(q) + (1.0 + mu) * surprise


def e_step(d: Array, *, mu: float, eta: float) -> Array:
    """(10): the minimizer q(+1) of (9), proportional to p(y)^(1 + mu)."""
    powers = [(1.0 + mu) * log_posterior(d, y, eta) for y in (1.0, -1.0)]
    return np.exp(powers[0] - np.logaddexp(*powers))


def m_step(
    X: Array, S: Index, D: Index, U: Index, q: Array, A: Array,
    *, mu: float, lam: float, eta: float,
) -> float:  # fmt: skip
    """(11), to be maximized over A: minus the function that this package minimizes."""
    d = squared_distances(X, U, A)
    expected = q * log_posterior(d, 1.0, eta) + (1.0 - q) * log_posterior(d, -1.0, eta)
    return float(_log_likelihood(X, S, D, A, eta) + mu * np.sum(expected) - lam * np.trace(A))


def m_step_gradient(
    X: Array, S: Index, D: Index, U: Index, q: Array, A: Array,
    *, mu: float, lam: float, eta: float,
) -> Array:  # fmt: skip
    """The gradient of (11), as it is printed below it."""
    gradient = -lam * np.eye(len(A))
    ones = np.ones
    for pairs, y, weight in (
        (S, 1.0, ones(len(S))), (D, -1.0, ones(len(D))), (U, 1.0, mu * q), (U, -1.0, mu * (1.0 - q))
    ):  # fmt: skip
        V = differences(X, pairs)
        w = weight * y * (1.0 - posterior(squared_distances(X, pairs, A), y, eta))
        gradient -= (V.T * w) @ V
    return gradient


def lipschitz_bound(X: Array, S: Index, D: Index, U: Index, *, mu: float, lam: float) -> float:
    """(12): a Lipschitz constant of (11) in the Frobenius norm."""
    squares = np.sum((X[:, None] - X) ** 2, axis=2)
    return float((len(S) + len(D) + mu * len(U)) * np.max(squares) + lam * X.shape[1])


def posterior_regularization(
    X: Array, S: Index, D: Index, U: Index, A: Array, kappa: float,
    *, mu: float, eta: float, gamma: float,
) -> float:  # fmt: skip
    """(13): L_1 less mu times the expectation of g = -ln p over U; it equals L_2."""
    d = squared_distances(X, U, A)
    expected = -sum(
        np.exp(log_p) * log_p for log_p in (log_model(d, y, kappa, eta) for y in (1.0, -1.0))
    )
    labeled = full_objective(X, S, D, U, A, kappa, mu=0.0, lam=0.0, eta=eta, gamma=gamma)
    return labeled - mu * float(np.sum(expected))


def soft_posterior_regularization(
    X: Array, S: Index, D: Index, U: Index, q: Array, A: Array, kappa: float,
    *, mu: float, eta: float, gamma: float,
) -> float:  # fmt: skip
    """(14) at one q, with the least slacks: L_1 less KL(q || p) less mu E_q[g] over U."""
    d = squared_distances(X, U, A)
    surprise = -(q * log_model(d, 1.0, kappa, eta) + (1.0 - q) * log_model(d, -1.0, kappa, eta))
    labeled = full_objective(X, S, D, U, A, kappa, mu=0.0, lam=0.0, eta=eta, gamma=gamma)
    return labeled - float(np.sum(-entropy(q) + (1.0 + mu) * surprise))


def mixed_norm(W: Array) -> float:
    """The (2,1)-norm of (15): the sum of the norms of the rows of W."""
    return float(np.sum(np.linalg.norm(W, axis=1)))


def _log_likelihood(X: Array, S: Index, D: Index, A: Array, eta: float) -> float:
    """The sum of ln p(y) of (8) over the labeled pairs."""
    similar = log_posterior(squared_distances(X, S, A), 1.0, eta)
    return float(np.sum(similar) + np.sum(log_posterior(squared_distances(X, D, A), -1.0, eta)))
