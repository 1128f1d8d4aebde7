"""The tab of the current M-step: its formula, its numbers, and why it is convex, typeset."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from ...display.formulas import M_STEP_ONE_TERM, typeset
from ...display.mathml import to_mathml
from ...display.symbols import prose
from ..stepwise_alternation import HalfStep

if TYPE_CHECKING:
    from ...m_step.explain import ConvexityProof

ROLES = ("objective ", "constraint ")
"""How a proof begins the name of a part of the problem."""


def statement_sheet(half_step: HalfStep) -> str:
    """The current M-step (11), the numbers in it, and the DCP proof that it is convex.

    Examples
    --------
    >>> from seraph_cvx.explorer.snapshot import Snapshot
    >>> html = statement_sheet(Snapshot().half_step)
    >>> html.count("<h2>"), "<pre" in html
    (3, False)
    """
    from ...m_step.explain import explain_convexity
    from ...m_step.statement import state_m_step

    proof = explain_convexity(state_m_step(half_step.objective))
    return (
        '<div class="scrolled" data-value="statement">'
        f"<h2>{escape(M_STEP_ONE_TERM.title)}</h2>{M_STEP_ONE_TERM.mathml}"
        f"<p>{prose(M_STEP_ONE_TERM.where)}.</p>"
        f"<h2>The numbers of this scene</h2>{_numbers(half_step)}"
        f"<h2>Why it is convex, rule by rule</h2>{_listed(_node(proof, set()))}</div>"
    )


def _numbers(half_step: HalfStep) -> str:
    objective, pairs = half_step.objective, half_step.objective.pairs
    (a, b), (_, d) = objective.label_matrix.tolist()
    values = {
        r"\# \mathcal{S}": f"{pairs.n_similar}",
        r"\# \mathcal{D}": f"{pairs.n_labeled - pairs.n_similar}",
        r"\# \mathcal{U}": f"{pairs.n_unlabeled}",
        r"\mu": f"{objective.mu:.4g}",
        r"\lambda": f"{objective.trace_weight:g}",
        r"\eta": f"{objective.threshold:g}",
        r"\beta": f"{objective.label_total:.4g}",
        "G": f"({a:.4g}, {b:.4g}; {b:.4g}, {d:.4g})",
    }
    shown = (f"{to_mathml(name, inline=True)} = {text}" for name, text in values.items())
    return f"<p>{', &ensp;'.join(shown)}</p>"


def _listed(items: str) -> str:
    return f"<ul>{items}</ul>"


def _node(node: ConvexityProof, shown: set[str]) -> str:
    """A node of the proof and those below it; what is below an expression is shown once."""
    role = next((role for role in ROLES if node.expression.startswith(role)), "")
    below = ""
    if node.children and node.expression in shown:
        below = ", as above"
    elif node.children:
        shown.add(node.expression)
        below = _listed("".join(_node(child, shown) for child in node.children))
    formula = typeset(node.expression.removeprefix(role))
    rule = f"<b>{escape(node.curvature.lower())}</b> ({escape(node.rule)})"
    return f"<li>{role}{formula}: {rule}{below}</li>"
