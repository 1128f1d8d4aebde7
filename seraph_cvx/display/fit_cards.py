"""The cards that notebooks show for fits: an alternation, its iterations, a fitted estimator."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..numerics.psd_cone import numerical_rank
from .cards import SIGN, SIGN_OF_J, dual_point_note, tone_of_status
from .formulas import CERTIFICATE, DESCENT
from .notebook import Tone, card, facts, gap_in_words, grid, note, tone_of_gap
from .result_table import ResultTable

OF_A = "The certificate is about A, the matrix of the last M-step."
MIXED = (
    "Distances and transform use metric_: A mixed with a reference after the fit, since few labels "
    "say nothing about the directions that A leaves out. No certificate is about the mixture."
)
NOT_MIXED = "Distances and transform use this A itself."
SIGN_OF_SEVEN = "It is minimized here: (7) is the negative of what the paper maximizes."


def iteration_card(step: Any) -> str:
    """Show one iteration of an alternation."""
    is_certified = bool(np.isfinite(step.relative_gap))
    return card(
        f"Iteration {step.number}",
        f"relative gap {step.relative_gap:.1e}" if is_certified else f"{step.kind}, not certified",
        tone_of_gap(step.relative_gap) if is_certified else Tone.PLAIN,
        "",
        [DESCENT],
        note(SIGN_OF_J),
        facts(_of_iteration(step)),
    )


def alternation_card(run: Any) -> str:
    """Show what an alternation reached, its certificate, and all its iterations."""
    words = f"{_fall(run.history)} " if run.history else ""
    certificate = run.m_step.certificate
    if certificate is not None:
        words += (
            f"{gap_in_words(certificate.dual_value, certificate.primal_value)} That is about the "
            "last M-step: the alternation as a whole is not convex."
        )
    return card(
        "Alternation",
        *tone_of_status(run.status),
        f"{words} {run.message}".strip(),
        [DESCENT, CERTIFICATE],
        note(f"{SIGN} J and (7) are minimized too."),
        "" if certificate is None else dual_point_note(certificate),
        grid(ResultTable("Iterations", [_of_iteration(step) for step in run.history])),
    )


def _fall(history: Any) -> str:
    first, last, n = history[0].descent_value, history[-1].descent_value, len(history)
    return f"J fell from {first:.6g} to {last:.6g} in {n} iterations." if n > 1 else ""


def _of_iteration(step: Any) -> dict[str, Any]:
    is_certified = bool(np.isfinite(step.relative_gap))
    return {
        "iteration": step.number,
        "step": step.kind,
        "J": f"{step.descent_value:.6f}",
        "(7)": f"{step.paper_objective:.6f}",
        "relative gap": step.relative_gap if is_certified else "not certified",
        "rank": step.rank,
        "trace": step.trace,
        "seconds": step.seconds,
    }


def estimator_card(model: Any) -> str:
    """Show status, gap, ranks and J of a fitted estimator."""
    certificate, m = model.certificate_, len(model.metric_)
    is_mixed = not np.array_equal(model.metric_, model.m_step_metric_)
    words = "There is no certificate: (7), which was descended, is not convex."
    if certificate is not None:
        words = f"{gap_in_words(certificate.dual_value, certificate.primal_value)} {OF_A}"
    found = {
        "relative gap": "" if certificate is None else certificate.relative_gap,
        **_last_values(model.history_),
        "rank of A (m_step_metric_)": f"{numerical_rank(model.m_step_metric_)} of {m}",
        "rank of metric_": f"{numerical_rank(model.metric_)} of {m}",
        "iterations": model.n_iter_,
    }
    return card(
        f"{type(model).__name__}, fitted",
        *tone_of_status(model.status_),
        f"{words} {MIXED if is_mixed else NOT_MIXED}",
        [],
        note(SIGN_OF_SEVEN if certificate is None else SIGN),
        facts(found),
    )


def _last_values(history: Any) -> dict[str, str]:
    """J and (7) after the last iteration; (7) alone where that was descended."""
    if not history:
        return {}
    if isinstance(history[-1], float):
        return {"(7)": f"{history[-1]:.6f}"}
    last = history[-1]
    return {"J": f"{last.descent_value:.6f}", "(7)": f"{last.paper_objective:.6f}"}
