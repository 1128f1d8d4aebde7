"""The M-step (11) as CVXPY problems, to be read along with the paper.

Primal      minimise    sum_k c_k log(1 + e^{s_k}) - <G, A> + eta*beta + lambda*tr(A)
            over        A PSD
Dual        maximise    sum_k c_k H(p_k) - eta*(sum_k c_k p_k - beta)
            subject to  M(p) = sum_k c_k p_k v_k v_k' - G + lambda*I PSD
Textbook    minimise    -F(A), word for word: two logistic terms for each unlabeled pair

with s_k = v_k' A v_k - eta. The soft labels reach the first two only through one matrix and one
number, G and beta of the unlabeled pairs: these and lambda are their Parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray, IntArray
from ..numerics.psd_cone import symmetrise
from ..penalties.penalty import Penalty

Formulation = Literal["primal", "dual", "textbook"]


@dataclass(frozen=True)
class MStepStatement:
    """A CVXPY problem for one M-step, which can be updated to the next one.

    Attributes
    ----------
    problem : cvxpy.Problem
        Its value is f.
    formulation : str
    """

    problem: cp.Problem
    formulation: Formulation
    _metric_of: Any

    def update(self, objective: MStepObjective) -> None:
        """Set the Parameters to another M-step of the same pairs, mu and eta."""
        values = _parameter_values(objective, self.formulation)
        for name, parameter in self.problem.param_dict.items():
            parameter.value = values[name]

    @property
    def metric(self) -> FloatArray | None:
        """The solver's matrix as it is, neither symmetrised nor projected."""
        value = self._metric_of()
        return None if value is None else np.asarray(value, dtype=np.float64)


def state_m_step(objective: MStepObjective, formulation: str = "primal") -> cp.Problem:
    """State an M-step in CVXPY.

    min f(A) over A PSD, eq. (11), or its maximum-entropy dual, as a ``cvxpy.Problem``.

    Parameters
    ----------
    objective : MStepObjective
    formulation : "primal" or "dual"

    Returns
    -------
    cvxpy.Problem
        DCP and DPP; its value is f at the optimum. ``problem.format_labeled()`` reads like (11).

    Examples
    --------
    >>> from seraph_cvx import MStepObjective, PairSet, state_m_step
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> problem = state_m_step(MStepObjective(pairs))
    >>> problem.is_dcp(dpp=True)
    True
    >>> print(problem.format_labeled())
    minimize sum_SD log(1 + e^s) + (-sum_D s) + mu sum_U log(1 + e^s) + (-<G, A>) + eta beta
             + lambda tr(A)
    >>> round(float(problem.solve(solver="CLARABEL")), 4)
    2.7589
    """
    return build_statement(objective, formulation).problem


def textbook_statement(
    objective: MStepObjective, soft_labels_as_parameters: bool = True
) -> cp.Problem:
    """State an M-step in CVXPY as the paper prints it.

    min -F(A), word for word eq. (11): -ln p(y) of each labeled pair, -q(y) ln p(y) for each y.

    It has one logistic term for each y = +1, -1 of an unlabeled pair, and the soft labels pair by
    pair, as Parameters or as constants. It serves for teaching and for comparison: it has the
    optimum of :func:`state_m_step` and is slower to compile by orders of magnitude.

    Examples
    --------
    >>> from seraph_cvx import MStepObjective, PairSet
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> print(textbook_statement(MStepObjective(pairs)).format_labeled())
    minimize -sum_S ln p(+1) + -sum_D ln p(-1) + -mu sum_U q(+1) ln p(+1)
             + -mu sum_U q(-1) ln p(-1) + lambda tr(A)
    """
    A = cp.Variable((objective.pairs.n_features,) * 2, PSD=True, name="A")
    eta, mu = objective.threshold, objective.mu

    def scores(rows: IntArray) -> cp.Expression:
        scores = pair_matrix(objective, rows) @ _distinct_entries(A) - eta
        return scores.set_label("s = v'Av - eta")

    pairs, c = objective.pairs, objective.pairs.labeled_weights
    near, far = c[: len(pairs.similar)], c[len(pairs.similar) :]
    weight = "" if pairs.confidence is None else "c "
    terms: list[cp.Expression] = []
    if len(near):
        surprise = near @ cp.logistic(scores(pairs.similar))
        terms.append(surprise.set_label(f"-sum_S {weight}ln p(+1)"))
    if len(far):
        surprise = far @ cp.logistic(-scores(pairs.dissimilar))
        terms.append(surprise.set_label(f"-sum_D {weight}ln p(-1)"))
    if mu > 0.0:
        s, q = scores(objective.pairs.unlabeled), soft_label_vector(objective)
        near, far = q, 1.0 - q  # q(+1) and q(-1)
        if soft_labels_as_parameters:
            near = cp.Parameter(q.shape, nonneg=True, name="q(+1)", value=q)
            far = cp.Parameter(q.shape, nonneg=True, name="q(-1)", value=1.0 - q)
        similar = mu * cp.sum(cp.multiply(near, cp.logistic(s)))
        dissimilar = mu * cp.sum(cp.multiply(far, cp.logistic(-s)))
        terms.append(similar.set_label("-mu sum_U q(+1) ln p(+1)"))
        terms.append(dissimilar.set_label("-mu sum_U q(-1) ln p(-1)"))
    terms.append((objective.trace_weight * cp.trace(A)).set_label("lambda tr(A)"))
    if objective.manifold_term is not None:
        terms.append(_manifold(objective.manifold_term, _distinct_entries(A)))
    penalties, constraints = _penalties(objective, A)
    return cp.Problem(cp.Minimize(_add(terms + penalties)), constraints)


def build_statement(objective: MStepObjective, formulation: str) -> MStepStatement:
    """Build the statement of :func:`state_m_step`, which can be updated."""
    if formulation == "primal":
        return _primal(objective)
    if formulation == "dual":
        return _dual(objective)
    raise ValueError(f'formulation={formulation!r} is not known: use "primal" or "dual".')


def _primal(objective: MStepObjective) -> MStepStatement:
    pairs, eta, mu = objective.pairs, objective.threshold, objective.mu
    m = pairs.n_features
    values = _parameter_values(objective, "primal")
    A = cp.Variable((m, m), PSD=True, name="A")
    entries = _distinct_entries(A)

    def scores(rows: IntArray) -> cp.Expression:
        return (pair_matrix(objective, rows) @ entries - eta).set_label("s = v'Av - eta")

    c, weight = pairs.labeled_weights, "" if pairs.confidence is None else "c "
    surprise = c @ cp.logistic(scores(pairs.labeled))
    terms = [surprise.set_label(f"sum_SD {weight}log(1 + e^s)")]
    if len(pairs.dissimilar):
        dissimilar = c[len(pairs.similar) :] @ scores(pairs.dissimilar)
        terms.append((-dissimilar).set_label(f"(-sum_D {weight}s)"))
    if mu > 0.0:
        G = cp.Parameter(m * (m + 1) // 2, name="G", value=values["G"])
        beta = cp.Parameter(name="beta", value=values["beta"])
        surprise = mu * cp.sum(cp.logistic(scores(pairs.unlabeled)))
        terms.append(surprise.set_label("mu sum_U log(1 + e^s)"))
        terms.append((-(G @ entries)).set_label("(-<G, A>)"))
        terms.append((eta * beta).set_label("eta beta"))
    trace_weight = cp.Parameter(nonneg=True, name="lambda", value=values["lambda"])
    terms.append((trace_weight * cp.trace(A)).set_label("lambda tr(A)"))
    if objective.manifold_term is not None:
        terms.append(_manifold(objective.manifold_term, entries))
    penalties, constraints = _penalties(objective, A)
    problem = cp.Problem(cp.Minimize(_add(terms + penalties)), constraints)
    return MStepStatement(problem, "primal", lambda: A.value)


def _dual(objective: MStepObjective) -> MStepStatement:
    pairs, eta, mu = objective.pairs, objective.threshold, objective.mu
    m, n_similar = pairs.n_features, len(pairs.similar)
    values = _parameter_values(objective, "dual")
    c, weight = pairs.labeled_weights, "" if pairs.confidence is None else "c "
    is_dissimilar = (np.arange(pairs.n_labeled) >= n_similar).astype(np.float64)

    p = cp.Variable(pairs.n_labeled, name="p")
    terms = [(c @ (cp.entr(p) + cp.entr(1 - p))).set_label(f"sum_SD {weight}H(p)")]
    off = -eta * (c @ (p - is_dissimilar))
    terms.append(
        off.set_label("(-eta sum_SD (p - b))" if not weight else "(-eta sum_SD (c p - b))")
    )
    trace_weight = cp.Parameter(nonneg=True, name="lambda", value=values["lambda"])
    entries = (_outer_products(objective, pairs.labeled) * c[:, None]).T @ (p - is_dissimilar)
    entries += trace_weight * np.eye(m)[np.triu_indices(m)]
    if objective.manifold_term is not None:
        entries += objective.manifold_term[np.triu_indices(m)]
    if mu > 0.0:
        G = cp.Parameter(m * (m + 1) // 2, name="G", value=values["G"])
        beta = cp.Parameter(name="beta", value=values["beta"])
        p_unlabeled = cp.Variable(pairs.n_unlabeled, name="p_unlabeled")
        entropy = mu * cp.sum(cp.entr(p_unlabeled) + cp.entr(1 - p_unlabeled))
        terms.append(entropy.set_label("mu sum_U H(p)"))
        terms.append((-eta * mu * cp.sum(p_unlabeled)).set_label("(-eta mu sum_U p)"))
        terms.append((eta * beta).set_label("eta beta"))
        entries += mu * (_outer_products(objective, pairs.unlabeled).T @ p_unlabeled) - G
    M = cp.reshape(_duplication(m) @ entries, (m, m), order="C").set_label("M(p)")
    name, constraints = "M(p) PSD", []
    for j, block in enumerate(objective.penalties):
        part = block.dual_terms(m, _weight(block, j))
        M, name = M + part.matrix, "M(p) + Z PSD"
        constraints += part.constraints
        if not isinstance(part.conjugate, float):
            terms.append((-part.conjugate).set_label(f"(-P*(Z) of {block.name})"))
    feasible = cp.PSD(M).set_label(name)  # its multiplier is the metric
    problem = cp.Problem(cp.Maximize(_add(terms)), [feasible, *constraints])
    return MStepStatement(problem, "dual", lambda: feasible.dual_value)


def _penalties(
    objective: MStepObjective, A: cp.Variable
) -> tuple[list[cp.Expression], list[cp.Constraint]]:
    """State the penalties: terms of the objective, and constraints."""
    terms: list[cp.Expression] = []
    constraints: list[cp.Constraint] = []
    for j, block in enumerate(objective.penalties):
        weight, label = _weight(block, j), block.formula or block.name
        term = block.expression(A, weight)
        if not isinstance(term, int | float):
            terms.append(term.set_label(label))
        constraints += [constraint.set_label(label) for constraint in block.constraints(A, weight)]
    return terms, constraints


def _weight(block: Penalty, number: int) -> cp.Parameter:
    """The weight of a penalty as a Parameter, which `MStepStatement.update` sets."""
    return cp.Parameter(nonneg=True, name=_weight_name(number), value=block.weight)


def _weight_name(number: int) -> str:
    return f"w{number + 1}"


def _manifold(term: FloatArray, entries: cp.Expression) -> cp.Expression:
    """State the manifold term <nu*X'LX, A>."""
    m = len(term)
    weights = term[np.triu_indices(m)] * _multiplicity(m)
    return (weights @ entries).set_label("nu <X'LX, A>")


def _add(terms: list[cp.Expression]) -> cp.Expression:
    return sum(terms[1:], terms[0])


def pair_matrix(objective: MStepObjective, rows: IntArray) -> FloatArray:
    """The (k, m(m+1)/2) matrix that maps the distinct entries of A to squared distances v'Av."""
    return _outer_products(objective, rows) * _multiplicity(objective.pairs.n_features)


def _outer_products(objective: MStepObjective, rows: IntArray) -> FloatArray:
    """The distinct entries of v v', one row per pair: a (k, m(m+1)/2) matrix."""
    V = objective.pairs.points[rows[:, 0]] - objective.pairs.points[rows[:, 1]]
    i, j = np.triu_indices(objective.pairs.n_features)
    return np.asarray(V[:, i] * V[:, j])


def _distinct_entries(A: cp.Variable) -> cp.Expression:
    return A[np.triu_indices(A.shape[0])].set_label("entries of A")


def _multiplicity(m: int) -> FloatArray:
    i, j = np.triu_indices(m)
    return np.where(i == j, 1.0, 2.0)


def _duplication(m: int) -> sp.csr_array:
    """The matrix that maps the distinct entries of a symmetric matrix to all m^2 of them."""
    i, j = np.triu_indices(m)
    distinct = np.empty((m, m), dtype=np.int64)
    distinct[i, j] = distinct[j, i] = np.arange(len(i))
    ones, everything = np.ones(m * m), np.arange(m * m)
    return sp.csr_array((ones, (everything, distinct.ravel())), shape=(m * m, len(i)))


def _parameter_values(objective: MStepObjective, formulation: Formulation) -> dict[str, Any]:
    """The values of the Parameters: lambda, and G and beta of the unlabeled pairs."""
    m, mu = objective.pairs.n_features, objective.mu
    labeled = objective.moments.labeled
    unlabeled = objective.pair_moment - labeled - mu * objective.soft_label_matrix
    G = symmetrise(unlabeled)[np.triu_indices(m)]
    return {
        "lambda": objective.trace_weight,
        "G": G * _multiplicity(m) if formulation == "primal" else G,
        "beta": mu * (objective.pairs.n_unlabeled - objective.soft_label_sums.total),
        **{_weight_name(j): block.weight for j, block in enumerate(objective.penalties)},
    }


def soft_label_vector(objective: MStepObjective) -> FloatArray:
    """The soft labels as a vector, one per row of ``pairs.unlabeled``, for the textbook."""
    from ..model.e_step import e_step

    if objective.soft_labels is not None:
        return objective.soft_labels
    if objective.previous_metric is None:
        return np.zeros(objective.pairs.n_unlabeled)
    return e_step(
        objective.pairs,
        objective.previous_metric,
        objective.mu,
        objective.threshold,
        objective.sharpness,
    )
