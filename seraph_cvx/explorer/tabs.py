"""The tabs below the pictures: statement and convexity, the solvers' answers, formulas, Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

import numpy as np

from ..display.formulas import CERTIFICATE, DESCENT, E_STEP, M_STEP_ONE_TERM, OBJECTIVE, PROBABILITY
from ..solvers.solution import MStepSolution
from .recipe import python_of
from .state import ExplorerState, ask_solver
from .stepwise_alternation import HalfStep

SOLVERS = ("fista", "projected-gradient", "CLARABEL", "SCS")

SCROLLED = "overflow:auto;max-height:30rem;font-size:.8rem;line-height:1.35"

SHOWN = (PROBABILITY, M_STEP_ONE_TERM, E_STEP, DESCENT, OBJECTIVE, CERTIFICATE)


def heading(text: str, level: int = 1) -> str:
    """A heading that marimo does not take into its outline, which would cover the panels.

    Examples
    --------
    >>> heading("A & B")
    '<div role="heading" aria-level="1" style="font-size:1.4rem">A &amp; B</div>'
    """
    style = "font-weight:600;margin:.8rem 0 .3rem" if level > 1 else "font-size:1.4rem"
    return f'<div role="heading" aria-level="{level}" style="{style}">{escape(text)}</div>'


def grid(*elements: object) -> str:
    """Lay controls out side by side, as many as fit.

    Examples
    --------
    >>> grid("<b>1</b>").count("<div")
    2
    """
    layout = "display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:0 1.4rem"
    boxes = "".join(f'<div style="align-self:center">{element}</div>' for element in elements)
    return f'<div style="{layout}">{boxes}</div>'


def sheet(state: ExplorerState, name: str, solver: str | None = None) -> str:
    """The content of a tab: HTML, for "Python" plain text.

    Parameters
    ----------
    state : ExplorerState
    name : "Statement", "Solvers", "Formulas" or "Python"
    solver : str, optional
        Solver of the current M-step; by default none is run.

    Examples
    --------
    >>> sheet(ExplorerState(), "Python").splitlines()[2]
    'import numpy as np'
    """
    half_step = state.half_step
    if name == "Python":
        return python_of(state)
    if name == "Formulas":
        return formula_sheet()
    if half_step is None:
        return f"<p>{escape(state.trouble)}</p>"
    if name == "Statement":
        text = escape(statement_sheet(half_step))
        return f'<pre data-value="statement" style="{SCROLLED}">{text}</pre>'
    if solver is None:
        return (
            "<p>The page itself uses FISTA. Ask another solver to solve the current M-step: a "
            "certificate grades it. On 100 points CLARABEL takes about a second, SCS several.</p>"
        )
    if half_step.trouble:
        return f"<p>{escape(half_step.trouble)}</p>"
    return answer_table(answers_of(half_step, solver))


def statement_sheet(half_step: HalfStep) -> str:
    """The current M-step (11) as CVXPY reads it, and the DCP proof of its convexity.

    Examples
    --------
    >>> print(statement_sheet(ExplorerState().half_step).splitlines()[0][:46])
    minimize sum_SD log(1 + e^s) + (-sum_D s) + mu
    """
    from ..m_step.explain import explain_convexity
    from ..m_step.statement import state_m_step

    problem = state_m_step(half_step.objective)
    proof = explain_convexity(problem)
    return f"{problem.format_labeled()}\n\n{proof}"


def formula_sheet() -> str:
    """The formulas (8), (11), (10), J, (7) and the certificate, as MathML.

    Examples
    --------
    >>> formula_sheet().count('role="heading"')
    6
    """
    return "".join(
        heading(formula.title, 2) + f"{formula.mathml}<p>{escape(formula.where)}.</p>"
        for formula in SHOWN
    )


def answers_of(half_step: HalfStep, solver: str) -> list[MStepSolution]:
    """Solve the current M-step by FISTA, from scratch, and by `solver` if it is another one.

    Raises
    ------
    OptimumNotAttained
        Where this M-step has no optimum.

    Examples
    --------
    >>> [answer.solver for answer in answers_of(ExplorerState().half_step, "projected-gradient")]
    ['fista', 'projected-gradient']
    """
    return [ask_solver(half_step, name) for name in dict.fromkeys(("fista", solver))]


def answer_table(answers: Sequence[MStepSolution]) -> str:
    """The HTML table of what each solver claims, and of what its answer is worth.

    Examples
    --------
    >>> answer_table(answers_of(ExplorerState().half_step, "fista")).count("<tr>")
    2
    """
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
    style = "padding:.15rem 1.2rem .15rem 0;white-space:nowrap"
    body = "".join(
        "<tr>" + "".join(f'<td style="{style}">{escape(cell)}</td>' for cell in row) + "</tr>"
        for row in rows
    )
    notes = "".join(f"<p>{escape(a.solver)}: {escape(a.message)}</p>" for a in answers if a.message)
    return f'<div data-value="answers" style="{SCROLLED}"><table>{body}</table></div>{notes}'


def _distance(answer: MStepSolution, reference: MStepSolution) -> str:
    if answer.metric is None or reference.metric is None:
        return "no answer"
    return f"{np.linalg.norm(answer.metric - reference.metric):.1e}"
