"""`seraph-cvx explain`: show why the M-step is convex."""

from __future__ import annotations

from typing import Any, Literal

from ..datasets import load_sampling
from ..display.formulas import DUAL
from ..display.proof_tree import draw_tree
from ..display.symbols import in_symbols
from ..model.m_step_objective import MStepObjective
from ..pairs.pair_set import PairSet
from .main import DEBUG, app, option
from .messages import answers_in_words, say, screen


@app.command(epilog="Example:  seraph-cvx explain --statement dual --data wine")
def explain(
    statement: Literal["primal", "dual", "textbook"] = option(
        "primal", "primal: equation (11); dual: maximum entropy; textbook: as printed."
    ),
    data: str = option("iris", "iris, wine, breast_cancer, balance or digits."),
    debug: bool = DEBUG,
) -> None:
    """Show why the M-step is convex, rule by rule.

    Prints its expression tree, with the rule at each node.
    """
    with answers_in_words():
        from ..m_step.explain import explain_convexity
        from ..m_step.statement import state_m_step, textbook_statement

        sampling = load_sampling(data, n_points=30)
        objective = MStepObjective(PairSet.from_labels(sampling.X, sampling.y))
        if statement == "textbook":
            problem = textbook_statement(objective)
        else:
            problem = state_m_step(objective, statement)
        proof = explain_convexity(problem)
        say(in_symbols(f"The M-step (11) of {objective.pairs}, {statement}:\n"))
        say(_headline(problem, statement), hang=9)
        say(f"\n{draw_tree(proof, screen.width if screen.is_terminal else None)}\n")
        verdict = "is" if proof.holds else "could not be shown to be"
        say(f"So the problem {verdict} convex, by the rules of disciplined convex programming.")


def _headline(problem: Any, statement: str) -> str:
    """The problem in its labels; the matrix inequality of the dual as a formula, not as numbers."""
    goal, subject, constraints = str(problem.format_labeled()).partition("\nsubject to ")
    if statement == "dual":
        constraints = DUAL.text.splitlines()[1]
    return in_symbols(" ".join(goal.split())) + subject + constraints
