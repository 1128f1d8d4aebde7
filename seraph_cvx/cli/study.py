"""`seraph-cvx explain`: show why the M-step, or a problem of one's own, is convex."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ..datasets import load_sampling
from ..display.proof_tree import draw_tree
from ..display.symbols import in_symbols
from ..model.m_step_objective import MStepObjective
from ..pairs.pair_set import PairSet
from .main import DEBUG, app, argument, option
from .messages import answers_in_words, say, screen
from .problems import PROBLEM, read_problem

if TYPE_CHECKING:
    from ..m_step.explain import ConvexityProof


@app.command(
    epilog="""\b
Examples:
  seraph-cvx explain --statement dual --data wine
  seraph-cvx explain portfolio.py:problem"""
)
def explain(
    problem: str | None = argument(
        None, f"Instead of the M-step: {PROBLEM}", metavar="[FILE.py:NAME|FILE]"
    ),
    statement: Literal["primal", "dual", "textbook"] = option(
        "primal", "primal: equation (11); dual: maximum entropy; textbook: as printed."
    ),
    data: str = option("iris", "iris, wine, breast_cancer, balance or digits."),
    debug: bool = DEBUG,
) -> None:
    """Show why the M-step, or a problem of yours, is convex, rule by rule.

    Prints its expression tree, with the rule at each node, and chords that refute convexity.
    """
    with answers_in_words():
        from ..m_step.explain import explain_convexity
        from ..m_step.statement import state_m_step, textbook_statement

        if problem is not None:
            say(_tree(explain_convexity(read_problem(problem))))
            return
        sampling = load_sampling(data, n_points=30)
        objective = MStepObjective(PairSet.from_labels(sampling.X, sampling.y))
        if statement == "textbook":
            m_step = textbook_statement(objective)
        else:
            m_step = state_m_step(objective, statement)
        proof = explain_convexity(m_step)
        say(in_symbols(f"The M-step (11) of {objective.pairs}, {statement}:\n"))
        goal, subject, constraints = str(m_step.format_labeled()).partition("\nsubject to ")
        if statement == "dual":  # its matrix inequality as a formula, not as numbers
            constraints = in_symbols("M(p) = sum_k c_k p_k v_k v_k^⊤ - G + R ⪰ 0")
        say(in_symbols(" ".join(goal.split())) + subject + constraints, hang=9)
        say(f"\n{_tree(proof)}")


def _tree(proof: ConvexityProof) -> str:
    """The tree of a proof, and its verdict."""
    tree = draw_tree(proof, screen.width if screen.is_terminal else None)
    verdict = "is" if proof.holds else "could not be shown to be"
    rules = "by the rules of disciplined convex programming"
    return f"{tree}\n\nSo the problem {verdict} convex, {rules}."
