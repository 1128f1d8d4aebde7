"""The cards that notebooks show for results, drawn from the results' own attributes.

One sign throughout: f, J and (7) are minimized, and a card that shows f says once that f = -F.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..numerics.checks import counted
from ..numerics.psd_cone import numerical_rank
from .formulas import (
    CERTIFICATE,
    DESCENT,
    M_STEP_ONE_TERM,
)
from .notebook import Tone, card, gap_in_words, tone_of_gap
from .proof_tree import draw_tree
from .result_table import ResultTable

SIGN = "Here f = -F is minimized; the paper maximizes F in (11)."
SIGN_OF_J = "Here J is minimized, and (7) is the negative of what the paper maximizes."

SIGN_OF_SEVEN = "Here (7) is minimized: the negative of what the paper maximizes."
OF_A = "The certificate is about A, the matrix of the last M-step."
MIXED = (
    "Distances and transform use metric_: A mixed with a reference after the fit, since few labels "
    "say nothing about the directions that A leaves out. No certificate is about the mixture."
)
ABSTAINED = (
    "Distances and transform use the Euclidean metric instead: held-out labels do not show that A "
    "helps."
)
NOT_MIXED = "Distances and transform use this A itself."

_LINE = (
    "The dual value D(p) is concave: between two points it is nowhere below the straight line that "
    'joins its values there. So a bound at both ends gives one at every point in between ("by '
    'concavity").'
)
DUAL_POINTS = {
    "gradient": "p = sigma(s), the probabilities of this metric itself: M(p) is the gradient of f "
    "there, and it is PSD.",
    "toward p = 1": "sigma(s), moved toward p = 1 until M(p) is PSD, as it is at p = 1 for all "
    f"data. {_LINE}",
    "toward p = b/c": "sigma(s), moved toward the labels p = b/c until M(p) is PSD, as it is "
    f"there, where M(p) = R. {_LINE}",
    "p = 1": "p = 1, where M(p) is PSD for all data.",
    "p = b/c": "the labels themselves, p = b/c, where M(p) = R is PSD.",
}
"""Which point of the dual a bound is of, in words."""


def certificate_card(certificate: Any) -> str:
    """Show the gap that a certificate bounds."""
    return card(
        "Certificate",
        f"relative gap {certificate.relative_gap:.1e}",
        tone_of_gap(certificate.relative_gap),
        _bounds_in_words(certificate),
        [CERTIFICATE],
        [SIGN, *_projection_note(certificate), *_dual_point_note(certificate)],
        {"duality gap": certificate.duality_gap, "dual point": certificate.dual_point},
    )


def _bounds_in_words(certificate: Any, otherwise: str = "") -> str:
    if certificate is None:
        return otherwise
    return gap_in_words(certificate.dual_value, certificate.primal_value)


def _projection_note(certificate: Any) -> list[str]:
    """That the certificate is about the projection of A, if it is."""
    if not certificate.projected_by:
        return []
    distance = f"{certificate.projected_by:.1e}"
    return [f"A was not positive semidefinite: this is about its projection, {distance} from A."]


def _dual_point_note(certificate: Any) -> list[str]:
    """Which point of the dual the lower bound is of, and why it may be; nothing if unknown."""
    explanation = DUAL_POINTS.get(getattr(certificate, "dual_point", ""))
    return [f"The dual point: {explanation}"] if explanation else []


def solution_card(solution: Any) -> str:
    """Show what a solver returned for an M-step, and its certificate."""
    metric, certificate = solution.metric, solution.certificate
    bounds = _bounds_in_words(certificate, "There is no certificate.")
    return card(
        "MStepSolution",
        *_status(solution.status),
        f"{bounds} {solution.message}".rstrip(),
        [M_STEP_ONE_TERM, CERTIFICATE],
        [SIGN, *_dual_point_note(certificate)],
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


def _of_iteration(step: Any) -> dict[str, Any]:
    is_certified = bool(np.isfinite(step.relative_gap))
    return {
        "iteration": step.number,
        "step": step.kind,
        **_values_of(step),
        "relative gap": step.relative_gap if is_certified else "not certified",
        "rank": step.rank,
        "trace": step.trace,
        "seconds": step.seconds,
    }


def _values_of(step: Any) -> dict[str, str]:
    return {"J": f"{step.descent_value:.6f}", "(7)": f"{step.paper_objective:.6f}"}


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
    return card(
        "Alternation",
        *_status(run.status),
        " ".join([*words, run.message]).strip(),
        [DESCENT, CERTIFICATE],
        [f"{SIGN} J and (7) are minimized too.", *_dual_point_note(certificate)],
        table=ResultTable("Iterations", [_of_iteration(step) for step in history]),
    )


def estimator_card(model: Any) -> str:
    """Show status, gap, ranks and J of a fitted estimator."""
    certificate, history = model.certificate_, model.history_
    L, m = model.components_, model.components_.shape[1]
    ranks = {"rank of A (m_step_metric_)": f"{model.m_step_rank_} of {m}"}
    if model.n_components is None:
        ranks["rank of metric_"] = f"{numerical_rank(L @ L.T)} of {m}"
    values: dict[str, Any] = {"relative gap": getattr(certificate, "relative_gap", "")}
    if history:  # (7) alone where that was descended
        last = history[-1]
        values |= {"(7)": f"{last:.6f}"} if isinstance(last, float) else _values_of(last)
    words = ["There is no certificate: the fit ended before one was computed."]
    if model.algorithm == "direct":
        words = ["There is no certificate: (7), which was descended, is not convex."]
    if certificate is not None:
        words = [_bounds_in_words(certificate), OF_A]
    is_euclidean = getattr(model, "abstained_", False)
    words.append(ABSTAINED if is_euclidean else MIXED if model.is_mixed_ else NOT_MIXED)
    return card(
        f"{type(model).__name__}, fitted",
        *_status(model.status_),
        " ".join(words),
        notes=[SIGN_OF_SEVEN if certificate is None else SIGN],
        facts=values | ranks | {"iterations": model.n_iter_},
    )
