"""The M-step (11) as CVXPY problems, to be read along with the paper.

Primal      minimize    sum_k c_k log(1 + e^{s_k}) - <G, A> + eta*beta + lambda*tr(A)
            over        A PSD
Dual        maximize    sum_k c_k H(p_k) - eta*(sum_k c_k p_k - beta)
            subject to  M(p) = sum_k c_k p_k v_k v_k' - G + lambda*I PSD
Textbook    minimize    -F(A), as printed: two logistic terms for each unlabeled pair

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
from ..model.posterior import e_step
from ..numerics.checks import FloatArray, IntArray
from ..numerics.psd_cone import symmetrize

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
        """The solver's matrix as it is, neither symmetrized nor projected."""
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


def textbook_statement(objective: MStepObjective) -> cp.Problem:
    """State an M-step in CVXPY as the paper prints it.

    min -F(A), exactly as in eq. (11): -ln p(y) of each labeled pair, -q(y) ln p(y) for each y.

    It has one logistic term for each y = +1, -1 of an unlabeled pair, and the soft labels pair by
    pair, as constants. It serves for teaching and for comparison: it has the optimum of
    :func:`state_m_step` and takes longer to compile.

    Examples
    --------
    >>> from seraph_cvx import MStepObjective, PairSet
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> print(textbook_statement(MStepObjective(pairs)).format_labeled())
    minimize -sum_S ln p(+1) + -sum_D ln p(-1) + -mu sum_U q(+1) ln p(+1)
             + -mu sum_U q(-1) ln p(-1) + lambda tr(A)
    """
    pairs, mu, c = objective.pairs, objective.mu, objective.pairs.labeled_weights
    A = cp.Variable((pairs.n_features,) * 2, PSD=True, name="A")
    entries = _Entries(objective)
    weight = "" if pairs.confidence is None else "c "
    terms: list[cp.Expression] = []
    if len(pairs.similar):
        surprise = c[: len(pairs.similar)] @ cp.logistic(entries.scores(A, pairs.similar))
        terms.append(surprise.set_label(f"-sum_S {weight}ln p(+1)"))
    if len(pairs.dissimilar):
        surprise = c[len(pairs.similar) :] @ cp.logistic(-entries.scores(A, pairs.dissimilar))
        terms.append(surprise.set_label(f"-sum_D {weight}ln p(-1)"))
    if mu > 0.0:
        s, q = entries.scores(A, pairs.unlabeled), objective.soft_labels
        if q is None and objective.previous_metric is not None:
            letters = (mu, objective.threshold, objective.sharpness)
            q = e_step(pairs, objective.previous_metric, *letters)
        q = np.zeros(pairs.n_unlabeled) if q is None else q
        for y, scores, label in (("+1", s, q), ("-1", -s, 1.0 - q)):
            surprise = mu * cp.sum(cp.multiply(label, cp.logistic(scores)))
            terms.append(surprise.set_label(f"-mu sum_U q({y}) ln p({y})"))
    return _minimize(objective, A, terms, objective.trace_weight, entries)


def build_statement(objective: MStepObjective, formulation: str) -> MStepStatement:
    """Build the statement of :func:`state_m_step`, which can be updated."""
    if formulation == "primal":
        return _primal(objective)
    if formulation == "dual":
        return _dual(objective)
    raise ValueError(f'formulation={formulation!r} is not known: use "primal" or "dual".')


def _primal(objective: MStepObjective) -> MStepStatement:
    pairs, eta, mu = objective.pairs, objective.threshold, objective.mu
    m, n_similar = pairs.n_features, len(pairs.similar)
    entries, parameters = _Entries(objective), _parameters(objective, "primal")
    A = cp.Variable((m, m), PSD=True, name="A")
    c, weight = pairs.labeled_weights, "" if pairs.confidence is None else "c "
    surprise = c @ cp.logistic(entries.scores(A, pairs.labeled))
    terms = [surprise.set_label(f"sum_SD {weight}log(1 + e^s)")]
    if len(pairs.dissimilar):
        dissimilar = c[n_similar:] @ entries.scores(A, pairs.dissimilar)
        terms.append((-dissimilar).set_label(f"(-sum_D {weight}s)"))
    if mu > 0.0:
        surprise = mu * cp.sum(cp.logistic(entries.scores(A, pairs.unlabeled)))
        terms.append(surprise.set_label("mu sum_U log(1 + e^s)"))
        terms.append((-(parameters["G"] @ entries.of(A))).set_label("(-<G, A>)"))
        terms.append((eta * parameters["beta"]).set_label("eta beta"))
    problem = _minimize(objective, A, terms, parameters["lambda"], entries)
    return MStepStatement(problem, "primal", lambda: A.value)


def _minimize(
    objective: MStepObjective,
    A: cp.Variable,
    terms: list[cp.Expression],
    trace_weight: Any,
    entries: _Entries,
) -> cp.Problem:
    """The problem with these terms, the trace, the manifold term and the penalties."""
    terms = [*terms, (trace_weight * cp.trace(A)).set_label("lambda tr(A)")]
    if objective.manifold_term is not None:
        graded = (entries.of(objective.manifold_term) * entries.multiplicity) @ entries.of(A)
        terms.append(graded.set_label("nu <X'LX, A>"))
    constraints: list[cp.Constraint] = []
    for j, block in enumerate(objective.penalties):
        label = block.formula or block.name
        weight = cp.Parameter(nonneg=True, name=_weight_name(j), value=block.weight)
        term = block.expression(A, weight)
        if not isinstance(term, int | float):
            terms.append(term.set_label(label))
        constraints += [constraint.set_label(label) for constraint in block.constraints(A, weight)]
    return cp.Problem(cp.Minimize(_add(terms)), constraints)


def _dual(objective: MStepObjective) -> MStepStatement:
    if objective.penalties:
        raise NotImplementedError(
            f"The dual statement takes no penalties, and this M-step has "
            f'{list(objective.penalties)}: use formulation="primal".'
        )
    pairs, eta, mu = objective.pairs, objective.threshold, objective.mu
    m, c = pairs.n_features, pairs.labeled_weights
    entries, parameters = _Entries(objective), _parameters(objective, "dual")
    weight = "" if pairs.confidence is None else "c "

    p = cp.Variable(pairs.n_labeled, name="p")
    excess = p - (np.arange(pairs.n_labeled) >= len(pairs.similar)).astype(np.float64)
    terms = [
        (c @ (cp.entr(p) + cp.entr(1 - p))).set_label(f"sum_SD {weight}H(p)"),
        (-eta * (c @ excess)).set_label(f"(-eta sum_SD ({weight}p - b))"),
    ]
    vector = (entries.outer_products(pairs.labeled) * c[:, None]).T @ excess
    vector += parameters["lambda"] * entries.of(np.eye(m))
    if objective.manifold_term is not None:
        vector += entries.of(objective.manifold_term)
    if mu > 0.0:
        p_unlabeled = cp.Variable(pairs.n_unlabeled, name="p_unlabeled")
        entropy = mu * cp.sum(cp.entr(p_unlabeled) + cp.entr(1 - p_unlabeled))
        terms.append(entropy.set_label("mu sum_U H(p)"))
        terms.append((-eta * mu * cp.sum(p_unlabeled)).set_label("(-eta mu sum_U p)"))
        terms.append((eta * parameters["beta"]).set_label("eta beta"))
        products = entries.outer_products(pairs.unlabeled)
        vector += mu * (products.T @ p_unlabeled) - parameters["G"]
    M = cp.reshape(_duplication(m) @ vector, (m, m), order="C").set_label("M(p)")
    feasible = cp.PSD(M).set_label("M(p) PSD")
    problem = cp.Problem(cp.Maximize(_add(terms)), [feasible])
    return MStepStatement(problem, "dual", lambda: feasible.dual_value)  # its multiplier


def _weight_name(number: int) -> str:
    return f"w{number + 1}"


def _add(terms: list[cp.Expression]) -> cp.Expression:
    return sum(terms[1:], terms[0])


class _Entries:
    """The distinct entries of a symmetric matrix.

    `multiplicity` is how often each is in the matrix.
    """

    def __init__(self, objective: MStepObjective) -> None:
        self.points, self.threshold = objective.pairs.points, objective.threshold
        self.i, self.j = np.triu_indices(objective.pairs.n_features)
        self.multiplicity: FloatArray = np.where(self.i == self.j, 1.0, 2.0)

    def of(self, matrix: Any) -> Any:
        """The entries of a matrix, or of a CVXPY expression."""
        found = matrix[self.i, self.j]
        return found.set_label("entries of A") if isinstance(matrix, cp.Variable) else found

    def outer_products(self, rows: IntArray) -> FloatArray:
        """The entries of v v', one row per pair."""
        V = self.points[rows[:, 0]] - self.points[rows[:, 1]]
        return V[:, self.i] * V[:, self.j]

    def scores(self, A: cp.Variable, rows: IntArray) -> cp.Expression:
        """The scores v'Av - eta of pairs."""
        distances = (self.outer_products(rows) * self.multiplicity) @ self.of(A)
        return (distances - self.threshold).set_label("s = v'Av - eta")


def _duplication(m: int) -> sp.csr_array:
    """The matrix that maps the distinct entries of a symmetric matrix to all m^2 of them."""
    i, j = np.triu_indices(m)
    distinct = np.empty((m, m), dtype=np.int64)
    distinct[i, j] = distinct[j, i] = np.arange(len(i))
    return sp.eye_array(len(i), format="csr")[distinct.ravel()]


def _parameters(objective: MStepObjective, formulation: Formulation) -> dict[str, cp.Parameter]:
    """The Parameters that every statement has, by name."""
    values = _parameter_values(objective, formulation)
    return {
        name: cp.Parameter(np.shape(values[name]), name=name, value=values[name], nonneg=is_nonneg)
        for name, is_nonneg in (("lambda", True), ("G", False), ("beta", False))
    }


def _parameter_values(objective: MStepObjective, formulation: Formulation) -> dict[str, Any]:
    """The values of the Parameters: lambda, and G and beta of the unlabeled pairs."""
    entries, mu = _Entries(objective), objective.mu
    labeled = objective.moments.labeled
    unlabeled = objective.pair_moment - labeled - mu * objective.soft_label_matrix
    G = entries.of(symmetrize(unlabeled))
    return {
        "lambda": objective.trace_weight,
        "G": G * entries.multiplicity if formulation == "primal" else G,
        "beta": mu * (objective.pairs.n_unlabeled - objective.soft_label_sums.total),
        **{_weight_name(j): block.weight for j, block in enumerate(objective.penalties)},
    }
