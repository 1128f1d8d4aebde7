"""The symbols of the course: one letter, one meaning."""

from __future__ import annotations

from typing import NamedTuple


class Symbol(NamedTuple):
    """Letters in LaTeX, what they mean, and the chapter where they are first used."""

    latex: str
    meaning: str
    chapter: int


SYMBOLS = (
    Symbol("A", "a metric, a PSD matrix; with a star the optimal one", 1),
    Symbol("B, C", "other symmetric matrices", 1),
    Symbol(r"\alpha_i, u_i", "the eigenvalues of a matrix, and its orthonormal eigenvectors", 1),
    Symbol("P", "the projection onto the cone of metrics", 1),
    Symbol("I", "the identity matrix", 1),
    Symbol("L", "a factor of a metric, A = LL'", 1),
    Symbol(r"\theta", "a position on a line, from 0 at one point to 1 at another; a multiple", 1),
    Symbol("v, v_k", "a direction; the difference of the two points of pair k", 1),
    Symbol("f", "the function that is minimized, the M-step (11)", 1),
    Symbol("x, X", "a point; all points, as the rows of a matrix", 2),
    Symbol("m, n, N", "the numbers of features, of points, and of pairs", 2),
    Symbol("i, j, k", "numbers of points, of eigenvalues, or of other things; k of pairs", 2),
    Symbol("y", "the label of a pair: +1 similar, -1 dissimilar", 2),
    Symbol(r"\mathcal{S}, \mathcal{D}, \mathcal{U}", "similar, dissimilar, unlabeled pairs", 2),
    Symbol("p, p_k", "the probability that a pair is dissimilar; p(y): that its label is y", 2),
    Symbol(r"\eta", "the squared distance at which both labels are as likely", 2),
    Symbol("s, s_k", "the score of a pair: its squared distance less the threshold", 2),
    Symbol(r"\sigma", "the logistic function", 2),
    Symbol("e", "Euler's number", 2),
    Symbol("q", "the soft label of an unlabeled pair", 2),
    Symbol(r"\mu, \lambda, \nu", "the weights: of the unlabeled pairs, the trace, the manifold", 2),
    Symbol("c_k, b_k", "the weight of pair k; the part of it that counts as dissimilar", 2),
    Symbol(r"G, \beta", "the sums of b_k v_k v_k', and of b_k", 2),
    Symbol("R", "the matrix of the linear penalties", 2),
    Symbol(r"\Delta", "the Laplacian of a graph of neighbors", 2),
    Symbol(r"\mathcal{F}, \mathcal{L}", "what the paper maximizes: the M-step (11), and (7)", 2),
    Symbol("w", "half the width of a chord", 2),
    Symbol("H, H_a", "the entropy in nats; Renyi's of order a", 2),
    Symbol(r"\Lambda", "a Lagrangian", 3),
    Symbol("D", "the dual function, a lower bound", 3),
    Symbol("M", "the slack of the dual, PSD where p is feasible", 3),
    Symbol(r"\tau", "the step from an anchor toward p", 4),
    Symbol(r"\gamma_h, h", "what h roundings amount to; their number", 4),
    Symbol(r"\delta, F", "a shift, and a Cholesky factor, in a proof", 4),
    Symbol("t", "the number of a step of a method", 5),
    Symbol(r"\ell", "a bound on the curvature of f", 5),
    Symbol(r"Y_t, \omega_t", "FISTA's point with momentum, and its weights", 5),
    Symbol(r"\epsilon", "the weight of a barrier", 5),
    Symbol(r"\rho", "the number of columns of L", 5),
    Symbol("a", "the sharpness of the soft labels", 6),
    Symbol("J", "what the alternation descends", 6),
    Symbol("E_q", "the mean under the soft label q", 6),
    Symbol(r"\phi_1, \phi_2, \Phi", "losses of a labeled and of an unlabeled pair; their sum", 6),
    Symbol("K", "the linear part of that sum", 6),
    Symbol("x, f_0", "in chapters 7, 8 and 10 the variable of a general problem, and its cost", 7),
    Symbol("c, F, h", "there the data of a cone program: c'x is minimized with Fx at most h", 7),
    Symbol(r"\lambda, Z", "there the multiplier of a cone constraint; Z if it is a matrix", 7),
    Symbol("L, g", "there the Lagrangian, and the dual function", 7),
    Symbol("u, t", "there a change of h, and a bound on the cost", 7),
    Symbol(r"p^\star", "there the optimal value of a general problem", 7),
    Symbol(r"\mathcal{K}, \mathcal{K}^*", "a cone, and its dual cone", 7),
    Symbol(r"\xi, \chi", "a number and a point, explained where they are used", 7),
    Symbol(r"\mathcal{Q}, \mathcal{E}", "the second-order cone, the exponential cone", 8),
    Symbol(r"\kappa, \psi", "ADMM's penalty parameter, and its scaled multiplier", 9),
)
"""In the order of the course."""
