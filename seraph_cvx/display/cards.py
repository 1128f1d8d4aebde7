"""The cards that notebooks show for results, drawn from the results' own attributes.

One sign throughout: f, J and (7) are minimized, and a card that shows f says once that f = -F.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..numerics.checks import counted
from .formulas import (
    CERTIFICATE,
    DESCENT,
    M_STEP_ONE_TERM,
)
from .notebook import Tone, card, gap_in_words, tone_of_gap
from .proof_tree import draw_tree
from .result_table import ResultTable

SIGN = "Here f = -F is minimized; the paper maximizes F in (11)."


def certificate_card(certificate: Any) -> str:
    """Show the gap that a certificate bounds."""
    return card(
        "Certificate",
        f"relative gap {certificate.relative_gap:.1e}",
        tone_of_gap(certificate.relative_gap),
        _bounds_in_words(certificate),
        [CERTIFICATE],
        [SIGN],
        {"duality gap": certificate.duality_gap, "dual point": certificate.dual_point},
    )


def _bounds_in_words(certificate: Any, otherwise: str = "") -> str:
    if certificate is None:
        return otherwise
    return gap_in_words(certificate.dual_value, certificate.primal_value)


def solution_card(solution: Any) -> str:
    """Show what a solver returned for an M-step, and its certificate."""
    metric, certificate = solution.metric, solution.certificate
    bounds = _bounds_in_words(certificate, "There is no certificate.")
    return card(
        "MStepSolution",
        *_status(solution.status),
        f"{bounds} {solution.message}".rstrip(),
        [M_STEP_ONE_TERM, CERTIFICATE],
        [SIGN],
        {
            "metric": "none" if metric is None else f"{len(metric)} x {len(metric)}",
            "trace": "" if metric is None else float(np.trace(metric)),
            "relative gap": solution.relative_gap,
            "solver": solution.solver,
            "status of the solver": solution.solver_status,
            "iterations": solution.iterations,
            "seconds": solution.seconds,
        },
    )


def _status(status: Any) -> tuple[str, Tone]:
    """The words and the tone of a status."""
    tones = {"certified": Tone.GOOD, "failed": Tone.BAD}
    return status.value.replace("_", " "), tones.get(status.value, Tone.CAUTION)


def convexity_card(proof: Any) -> str:
    """Show the proof that a problem is convex, rule by rule."""
    return card(
        "ConvexityProof",
        "convex, by the rules of DCP" if proof.holds else "not shown to be convex",
        Tone.GOOD if proof.holds else Tone.BAD,
        "Each line has an expression, its curvature and sign, and the rule of disciplined convex "
        "programming by which they follow from the lines below it.",
        tree=draw_tree(proof),
    )


def alternation_card(run: Any) -> str:
    """Show what an alternation reached, its certificate, and all its iterations."""
    history, certificate, words = run.history, run.m_step.certificate, []
    if len(history) > 1:
        first, last = history[0].descent_value, history[-1].descent_value
        words.append(
            f"J fell from {first:.6g} to {last:.6g} in {counted(len(history), 'iteration')}."
        )
    if certificate is not None:
        words.append(_bounds_in_words(certificate))
        words.append("That is about the last M-step: the alternation as a whole is not convex.")
    rows = [
        {
            "iteration": step.number,
            "step": step.kind,
            "J": f"{step.descent_value:.6f}",
            "(7)": f"{step.paper_objective:.6f}",
            "relative gap": step.relative_gap if step.relative_gap < np.inf else "not certified",
            "rank": step.rank,
            "trace": step.trace,
            "seconds": step.seconds,
        }
        for step in history
    ]
    return card(
        "Alternation",
        *_status(run.status),
        " ".join([*words, run.message]).strip(),
        [DESCENT, CERTIFICATE],
        [f"{SIGN} J and (7) are minimized too."],
        table=ResultTable("Iterations", rows),
    )
