"""The tabs below the pictures: formulas, the M-step and its convexity, solvers, Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

import numpy as np

from ...display.formulas import (
    CERTIFICATE,
    DESCENT,
    E_STEP,
    M_STEP_ONE_TERM,
    OBJECTIVE_MINIMIZED,
    PROBABILITY,
)
from ...display.symbols import prose
from ...solvers.solution import MStepSolution
from ..recipe import python_of
from ..solver_answers import answers_of, gaps_by_iteration
from ..state import ExplorerState
from ..stepwise_alternation import HalfStep
from .curves import draw_solver_gaps
from .statement_sheet import statement_sheet

TABS = ("Formulas", "Statement", "Solvers", "Python")

SHOWN = (PROBABILITY, M_STEP_ONE_TERM, E_STEP, DESCENT, OBJECTIVE_MINIMIZED, CERTIFICATE)


def sheet(state: ExplorerState, name: str, solver: str | None = None) -> str:
    """The content of a tab: HTML, for "Python" plain text.

    Parameters
    ----------
    state : ExplorerState
    name : one of TABS
    solver : str, optional
        Solver of the current M-step; by default none is run.
    """
    half_step = state.half_step
    if name == "Python":
        return python_of(state)
    if name == "Formulas":
        return formula_sheet()
    if half_step is None:
        return f"<p>{escape(state.trouble)}</p>"
    if name == "Statement":
        return statement_sheet(half_step)
    if solver is None:
        return (
            "<p>The page itself uses FISTA. Ask another solver to solve the current M-step: a "
            "certificate grades it. On 100 points CLARABEL takes about a second, SCS several.</p>"
        )
    if half_step.trouble:
        return f"<p>{escape(half_step.trouble)}</p>"
    return answer_table(answers_of(half_step, solver)) + solver_chart(half_step, solver)


def formula_sheet() -> str:
    """The formulas (8), (11), (10), J, (7) and the certificate, as MathML."""
    return "".join(
        f'<h2>{escape(formula.title)}</h2><div class="scrolled">{formula.mathml}</div>'
        f"<p>{prose(formula.where)}.</p>"
        for formula in SHOWN
    )


def solver_chart(half_step: HalfStep, solver: str) -> str:
    """The certified gap of FISTA, and of `solver` if it is of first order too, by iteration."""
    gaps = {name: gaps_by_iteration(half_step, name) for name in dict.fromkeys(("fista", solver))}
    shown = {name: found for name, found in gaps.items() if found}
    return f'<div data-value="gaps">{draw_solver_gaps(shown)}</div>'


def answer_table(answers: Sequence[MStepSolution]) -> str:
    """The HTML table of what each solver claims, and of what its answer is worth."""
    columns: dict[str, Callable[[MStepSolution], str]] = {
        "solver": lambda answer: answer.solver,
        "it says": lambda answer: answer.solver_status,
        "f(A)": lambda answer: f"{answer.value:.10g}",
        "relative gap, proved": lambda answer: f"{answer.relative_gap:.1e}",
        "referee": lambda answer: answer.status.value,
        "iterations": lambda answer: str(answer.iterations),
        "seconds": lambda answer: f"{answer.seconds:.3f}",
        "‖A - A of fista‖": lambda answer: _distance(answer, answers[0]),
    }
    rows = [list(columns), *([text(answer) for text in columns.values()] for answer in answers)]
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    notes = "".join(f"<p>{escape(a.solver)}: {escape(a.message)}</p>" for a in answers if a.message)
    return f'<div class="scrolled" data-value="answers"><table>{body}</table></div>{notes}'


def _distance(answer: MStepSolution, reference: MStepSolution) -> str:
    if answer.metric is None or reference.metric is None:
        return "no answer"
    return f"{np.linalg.norm(answer.metric - reference.metric):.1e}"
