"""Why a CVXPY problem is convex: its expression tree, with the rule that applies at each node."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import cvxpy as cp
import scipy
from cvxpy.atoms.affine.add_expr import AddExpression
from cvxpy.atoms.affine.binary_operators import BinaryOperator
from cvxpy.atoms.affine.unary_operators import NegExpression
from cvxpy.atoms.quad_form import QuadForm
from cvxpy.constraints.zero import Equality
from cvxpy.transforms.indicator import indicator
from cvxpy.transforms.partial_optimize import PartialProblem

from ..proof.chord import Chord, refute_function, refute_set
from ..proof.program import matrix_of_form, subexpressions, unproven_promise
from ..proof.quadratic import is_proven_psd

MOST_SHOWN = 60
"""Characters of a formula that are shown as they are."""


@dataclass(frozen=True)
class ConvexityProof:
    """A node of the proof that a problem is convex, with the nodes below it.

    Attributes
    ----------
    expression : str
        The label of the expression if it has one, else its atom and shape.
    curvature, sign : str
        As CVXPY derives them: CONVEX, CONCAVE, AFFINE, CONSTANT or UNKNOWN; NONNEGATIVE, ...
    rule : str
        The rule of disciplined convex programming that derives the curvature from the children's.
    children : tuple of ConvexityProof
    refutation : Chord or None
        For an objective or constraint to which no rule applies, two points between which it is
        proven not to be convex; None if the question is open.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from seraph_cvx import explain_convexity
    >>> proof = explain_convexity(cp.Problem(cp.Minimize(cp.square(cp.Variable(name="x")))))
    >>> proof.holds, [node.curvature for node in proof.walk()]
    (True, ['CONVEX', 'CONVEX', 'AFFINE'])
    """

    expression: str
    curvature: str
    sign: str
    rule: str
    children: tuple[ConvexityProof, ...] = ()
    refutation: Chord | None = None

    @property
    def holds(self) -> bool:
        """Whether the proof succeeds: no node has an unknown curvature."""
        return all(node.curvature != "UNKNOWN" for node in self.walk())

    def walk(self) -> Iterator[ConvexityProof]:
        """Yield the node and all nodes below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def __str__(self) -> str:
        from ..display.proof_tree import draw_tree

        return draw_tree(self)

    def _repr_html_(self) -> str:
        from ..display.cards import convexity_card

        return convexity_card(self)


def explain_convexity(problem: cp.Problem) -> ConvexityProof:
    """Prove a problem convex by the rules of DCP, node by node, or look for a refutation.

    A problem is convex if it minimizes a convex function over a convex set; the rules check both.
    Where no rule applies, a search looks for two points between which convexity fails, with
    rigorous bounds on every value; if it finds none, the question stays open.

    Parameters
    ----------
    problem : cvxpy.Problem
        Any problem, for example ``state_m_step(objective)``.

    Returns
    -------
    ConvexityProof
        The root; ``print`` shows the tree, ``walk()`` yields the nodes, ``holds`` is the verdict.

    Examples
    --------
    >>> x = cp.Variable(name="x")
    >>> print(explain_convexity(cp.Problem(cp.Minimize(cp.logistic(2 * x)), [x >= 1])))
    problem: CONVEX (minimizes a convex function over a convex set)
    ├─ objective logistic: CONVEX, NONNEGATIVE (logistic is convex and nondecreasing: of an affine
    │  │    argument it is convex)
    │  └─ 2.0 * x: AFFINE (a constant times an affine expression)
    │     ├─ 2.0: CONSTANT, NONNEGATIVE (a number)
    │     └─ x: AFFINE (a variable)
    └─ constraint 1.0 ≤ x: CONVEX (affine on both sides)
    >>> explain_convexity(cp.Problem(cp.Minimize(cp.sqrt(x)))).children[0].refutation is None
    False
    """
    goal = problem.objective.args[0]
    sign, is_right, rule = 1.0, goal.is_convex(), "minimizes a convex function over a convex set"
    if isinstance(problem.objective, cp.Maximize):
        sign, is_right = -1.0, goal.is_concave()
        rule = "maximizes a concave function over a convex set"
    objective = _explain(goal, "objective ")
    if not (is_right and objective.holds):
        objective = _settled(objective, refute_function(goal, sign, problem.constraints))
    parts = [objective, *map(_explain_constraint, problem.constraints)]
    return _verdict("problem", is_right and all(part.holds for part in parts), rule, parts)


def _settled(node: ConvexityProof, chord: Chord | None) -> ConvexityProof:
    """A node to which no rule applies, with the chord that refutes it, if there is one."""
    verdict = "not settled: no chord was found that refutes it" if chord is None else str(chord)
    rule = node.rule if node.curvature == "UNKNOWN" else "a part of it is not proven"
    return replace(node, curvature="UNKNOWN", rule=f"{rule}; {verdict}", refutation=chord)


def _verdict(
    name: str, is_convex: bool, rule: str, children: Iterable[ConvexityProof]
) -> ConvexityProof:
    curvature, rule = ("CONVEX", rule) if is_convex else ("UNKNOWN", "no DCP rule applies")
    return ConvexityProof(name, curvature, "", rule, tuple(children))


def _explain(expression: Any, prefix: str = "") -> ConvexityProof:
    if isinstance(expression, cp.Problem):  # of partial_optimize
        return explain_convexity(expression)
    if isinstance(expression, cp.constraints.constraint.Constraint):  # of indicator
        return _explain_constraint(expression)
    children = () if _is_leaf(expression) else tuple(map(_explain, _parts(expression)))
    unseen = () if children else subexpressions(expression)  # of a constant
    doubts = [_doubt(expression), *(_doubt(node) for node, _ in unseen)]
    doubt = max(doubts, key=len)
    rule, curvature = _rule(expression), "UNKNOWN" if doubt else str(expression.curvature)
    return ConvexityProof(
        prefix + _name(expression), curvature, str(expression.sign), doubt or rule, children
    )


def _parts(expression: Any) -> list[Any]:
    """The arguments, and the function inside of a perspective."""
    if isinstance(expression, cp.perspective):
        return [*expression.args, expression.f]
    if isinstance(expression, QuadForm) and isinstance(expression.args[1], cp.psd_wrap):
        return [expression.args[0], *expression.args[1].args]  # `_doubt` looks at the matrix
    return list(expression.args)


def _doubt(node: Any) -> str:
    """Why the curvature that CVXPY derives is not proven; empty where it is."""
    if isinstance(node, cp.Variable):
        for kind in ("boolean", "integer"):
            if node.attributes[kind]:
                return f"{_article(kind)} variable, whose values are no convex set"
    if isinstance(node, cp.constraints.FiniteSet):
        return "a finite set of values is no convex set"
    if isinstance(node, QuadForm):
        P = matrix_of_form(node)
        kind, sign = ("PSD", 1.0) if node.is_atom_convex() else ("NSD", -1.0)
        if P is not None and not is_proven_psd(scipy.sparse.csc_array(sign * P)):
            return f"its matrix is assumed to be {kind}, and not proven to be"
    return unproven_promise(node)


def _explain_constraint(constraint: Any) -> ConvexityProof:
    label, children = getattr(constraint, "label", None), [*map(_explain, constraint.args)]
    if isinstance(constraint, cp.PSD):
        name = label or f"{children[0].expression} PSD"
        rule = "a PSD matrix inequality in an affine expression"
    else:
        is_affine = all(arg.is_affine() for arg in constraint.args)
        rule = "affine on both sides" if is_affine else "convex <= concave"
        name = label or _readable(str(constraint.format_labeled()))
        if not label and ("\n" in name or len(name) > MOST_SHOWN):
            sign = "==" if isinstance(constraint, Equality) else "<="
            name = f" {sign} ".join(_name(arg) for arg in constraint.args)
        if is_affine and not label and all(map(_holds, constraint.args)):
            children = []  # the name is the formula itself
    if doubt := _doubt(constraint):
        return ConvexityProof(f"constraint {name}", "UNKNOWN", "", doubt, tuple(children))
    holds = constraint.is_dcp() and all(map(_holds, constraint.args))
    node = _verdict(f"constraint {name}", holds, rule, children)
    return node if holds else _settled(node, refute_set(constraint))


def _holds(expression: Any) -> bool:
    """Whether no part of an expression is in doubt."""
    return not any(_doubt(node) for node, _ in subexpressions(expression))


def _is_leaf(expression: Any) -> bool:
    return not expression.args or expression.is_constant()


def _name(expression: Any) -> str:
    label = getattr(expression, "label", None)
    if label:
        return str(label)
    if _is_leaf(expression):
        if expression.size > 1 and not isinstance(expression, cp.Parameter | cp.Variable):
            return f"array{_shape(expression)}"
        return _readable(str(expression.name()))
    text = str(expression)
    is_short = expression.size == 1 and len(text) <= 40 and "\n" not in text
    if is_short and isinstance(expression, BinaryOperator | AddExpression | NegExpression):
        return _readable(text)
    return f"{_atom(expression)}{_shape(expression)}"


def _readable(text: str) -> str:
    """CVXPY's text with numbers at four digits, and the names of two atoms as one writes them."""
    text = re.sub(r"\d+\.\d{4,}(?:e[-+]?\d+)?", lambda found: f"{float(found[0]):.4g}", text)
    text = re.sub(r"diag_mat\((\w+), 0\)", r"diag(\1)", text)
    return re.sub(r"quad_over_lin\((\w+), 1\.0, None, False\)", r"||\1||^2", text)


def _atom(expression: Any) -> str:
    names = {
        "AddExpression": "sum of terms",
        "NegExpression": "minus",
        "MulExpression": "product",
        "Sum": "sum",
        "Trace": "trace",
        "diag_mat": "diagonal",
        "diag_vec": "diagonal matrix",
        "index": "selection",
        "special_index": "selection",
        "Promote": "repetition",
    }
    kind = type(expression).__name__
    if kind == "quad_over_lin" and expression.args[1].is_constant():
        return "sum of squares"
    return names.get(kind, kind)


def _shape(expression: Any) -> str:
    return "" if expression.size == 1 else f" ({' x '.join(map(str, expression.shape))})"


def _rule(expression: Any) -> str:
    if isinstance(expression, cp.Variable):
        known = {
            "PSD": "a PSD variable (its domain is the convex cone)",
            "nonneg": "a nonnegative variable",
            "symmetric": "a symmetric variable",
        }
        kinds = (rule for kind, rule in known.items() if expression.attributes.get(kind))
        return next(kinds, "a variable")
    if isinstance(expression, cp.Parameter):
        return "a parameter"
    if isinstance(expression, indicator):
        return "the indicator function of a convex set is convex"
    if isinstance(expression, PartialProblem):
        return "the optimum over some variables, of a problem that is convex in all of them"
    if _is_leaf(expression):
        return "a number" if expression.size == 1 else "numbers"
    if not (expression.is_convex() or expression.is_concave()):
        return "no DCP rule applies"
    if isinstance(expression, AddExpression):
        curvatures = {str(arg.curvature).lower() for arg in expression.args} - {"constant"}
        return f"a sum of {' and '.join(sorted(curvatures)) or 'constant'} terms"
    if isinstance(expression, NegExpression):
        return f"minus {_article(expression.args[0])} expression"
    if isinstance(expression, BinaryOperator):
        factor, other = sorted(expression.args, key=lambda arg: not arg.is_constant())
        sign = str(factor.sign).lower()
        is_signed = sign in ("nonnegative", "nonpositive") and other.curvature != "AFFINE"
        factor_name = f"a {sign} constant" if is_signed else "a constant"
        return f"{factor_name} times {_article(other)} expression"
    return _composition_rule(expression)


def _composition_rule(expression: Any) -> str:
    """The composition rule: f(g) is convex if f is, and monotone as g's curvature requires."""
    kind = _atom(expression)
    if expression.is_atom_affine():
        return f"{kind} is linear: it keeps the curvature of what is inside"
    shape, monotone = "convex" if expression.is_atom_convex() else "concave", ""
    for word, test in (("decreasing", expression.is_incr), ("increasing", expression.is_decr)):
        if not monotone and all(map(test, range(len(expression.args)))):
            monotone = f" and non{word}"
    inside = " and ".join(dict.fromkeys(_article(arg) for arg in expression.args))
    return f"{kind} is {shape}{monotone}: of {inside} argument it is {shape}"


def _article(expression: Any) -> str:
    word = str(getattr(expression, "curvature", expression)).lower()
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"
