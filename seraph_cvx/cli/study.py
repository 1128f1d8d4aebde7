"""`seraph-cvx explain`: why the convex program is one."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from ..datasets import load_sampling
from ..display.formulas import DUAL
from ..model.m_step_objective import MStepObjective
from ..pairs.pair_set import PairSet
from .main import Debug, app
from .report import answers_in_words, say


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
        say(f"The M-step (11) of {objective.pairs}, {statement.value}:\n")
        say(problem.format_labeled() if statement is not Statement.DUAL else _headline(problem))
        proof = explain_convexity(problem)
        say(f"\n{proof}\n")
        verdict = "is" if proof.holds else "could not be shown to be"
        say(f"So the problem {verdict} convex, by the rules of disciplined convex programming.")


def _headline(problem: object) -> str:
    """Print the dual without the numbers of its matrix inequality."""
    text = problem.format_labeled()  # type: ignore[attr-defined]
    goal = str(text).partition("\nsubject to ")[0]
    return f"{goal}\nsubject to {DUAL.ascii.splitlines()[1]}"
