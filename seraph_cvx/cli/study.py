"""`seraph-cvx explain`: why the convex program is one."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from ..datasets import load_sampling
from ..display.formulas import DUAL
from ..display.proof_tree import draw_tree
from ..display.symbols import in_symbols
from ..model.m_step_objective import MStepObjective
from ..pairs.pair_set import PairSet
from .main import Debug, app
from .report import answers_in_words, say, screen


class Statement(StrEnum):
    """The problems that can be explained."""

    PRIMAL = "primal"
    DUAL = "dual"
    TEXTBOOK = "textbook"


@app.command(epilog="Example:  seraph-cvx explain --statement dual --data wine")
def explain(
    statement: Annotated[
        Statement,
        typer.Option(help="primal: equation (11); dual: maximum entropy; textbook: as printed."),
    ] = Statement.PRIMAL,
    data: Annotated[
        str, typer.Option(help="iris, wine, breast_cancer, balance or digits.")
    ] = "iris",
    debug: Debug = False,
) -> None:
    """Show why the M-step is convex, rule by rule.

    Prints its expression tree, with the rule at each node.
    """
    with answers_in_words():
        from ..m_step.explain import explain_convexity
        from ..m_step.statement import state_m_step, textbook_statement

        sampling = load_sampling(data, n_points=30)
        objective = MStepObjective(PairSet.from_labels(sampling.X, sampling.y))
        problem = (
            textbook_statement(objective)
            if statement is Statement.TEXTBOOK
            else state_m_step(objective, statement.value)
        )
        say(in_symbols(f"The M-step (11) of {objective.pairs}, {statement.value}:\n"))
        say(_headline(problem, statement), hang=9)
        proof = explain_convexity(problem)
        say(f"\n{draw_tree(proof, screen.width if screen.is_terminal else None)}\n")
        verdict = "is" if proof.holds else "could not be shown to be"
        say(f"So the problem {verdict} convex, by the rules of disciplined convex programming.")


def _headline(problem: Any, statement: Statement) -> str:
    """The problem in its labels; the matrix inequality of the dual as a formula, not as numbers."""
    goal, subject, rest = str(problem.format_labeled()).partition("\nsubject to ")
    goal = in_symbols(" ".join(goal.split()))
    return goal + subject + (DUAL.text.splitlines()[1] if statement is Statement.DUAL else rest)
