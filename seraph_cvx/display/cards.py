"""The cards that notebooks show for results, drawn from the results' own attributes.

One sign throughout: f, J and (7) are minimized, and a card that shows f says once that f = -F.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .formulas import (
    CERTIFICATE,
    CRITICAL_TRACE_WEIGHT,
    DESCENT,
    M_STEP_ONE_TERM,
    PROBABILITY,
)
from .notebook import Tone, card, facts, gap_in_words, grid, note, tone_of_gap
from .proof_tree import tree_html
from .result_table import ResultTable
from .symbols import in_symbols, space_of

SIGN = "All is minimized here: f = -F, the negative of the F that the paper maximizes in (11)."
SIGN_OF_J = "All is minimized here: J, and (7) as the negative of what the paper maximizes."

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


def pair_set_card(pairs: Any) -> str:
    """Show how many pairs of each kind there are."""
    counts = {"similar": pairs.n_similar, "dissimilar": pairs.n_labeled - pairs.n_similar}
    missing = [f"no {kind} pair" for kind, count in counts.items() if not count]
    total = pairs.n_labeled + pairs.n_unlabeled
    c = pairs.confidence
    sizes = {
        "points": pairs.n_points,
        "features": pairs.n_features,
        **counts,
        "unlabeled": pairs.n_unlabeled,
        "μ by ratio": pairs.resolve_unlabeled_weight("ratio"),
        "confidence": "" if c is None else f"{c.min():g} to {c.max():g}",
    }
    return card(
        "PairSet",
        missing[0] if missing else "similar and dissimilar pairs",
        Tone.CAUTION if missing else Tone.GOOD,
        f"{pairs.n_labeled} of {total} pairs are labeled ({pairs.n_labeled / total:.2%}).",
        [PROBABILITY],
        facts(sizes),
    )


def sampling_card(sampling: Any) -> str:
    """Show how many points and labels a sampling has, class by class."""
    n, m = sampling.X.shape
    known = sampling.y[sampling.labeled]
    rows = [
        {
            "class": label,
            "labeled": int(np.sum(known == label)),
            "test points": int(np.sum(sampling.y_test == label)),
        }
        for label in np.unique(np.concatenate([known, sampling.y_test])).tolist()
    ]
    unseen = [row["class"] for row in rows if not row["labeled"]]
    return card(
        f"Sampling of {sampling.name}",
        f"no label of class {unseen[0]}" if unseen else "every class has a label",
        Tone.CAUTION if unseen else Tone.GOOD,
        f"{n} points in {space_of(m)}, {len(known)} of them labeled; the others have the label −1.",
        [],
        grid(ResultTable("Classes", rows)),
    )


def objective_card(objective: Any) -> str:
    """Show what is already known of an M-step, without summing anything."""
    verdict, tone = "whether it has an optimum: ask attains_optimum", Tone.PLAIN
    known = vars(objective)
    if objective.trace_weight > 0.0 or "falling_direction" in known:
        attained = objective.attains_optimum
        verdict = "convex, with an optimum" if attained else "convex, but without an optimum"
        tone = Tone.GOOD if attained else Tone.BAD
    source = "q(-1) = 1, the paper's start" if objective.soft_labels is None else "given"
    source = source if objective.previous_metric is None else "of a previous metric, streamed"
    parameters = {
        "unlabeled weight μ": objective.mu,
        "trace weight λ": objective.trace_weight,
        "threshold η": objective.threshold,
        "manifold term": "" if objective.manifold_term is None else "yes",
        "penalties": ", ".join(map(repr, objective.penalties)),
        "soft labels": f"{source}; sharpness {objective.sharpness:.4g}" if objective.mu else "",
        "critical trace weight": known.get("critical_trace_weight", ""),
    }
    return card(
        "MStepObjective",
        verdict,
        tone,
        in_symbols(repr(objective.pairs)),
        [M_STEP_ONE_TERM],
        note(SIGN),
        facts(parameters),
    )


def certificate_card(certificate: Any) -> str:
    """Show the gap that a certificate bounds."""
    verdict = f"relative gap {certificate.relative_gap:.1e}"
    return _gap_card("Certificate", verdict, certificate)


def proof_card(proof: Any) -> str:
    """Show the gap that was proven in ball arithmetic."""
    verdict = f"proven relative gap {proof.relative_gap:.1e}"
    return _gap_card("Proof", verdict, proof, bits=proof.precision)


def _gap_card(name: str, verdict: str, bounds: Any, **more: Any) -> str:
    found = {"duality gap": bounds.duality_gap, "dual point": bounds.dual_point, **more}
    return card(
        name,
        verdict,
        tone_of_gap(bounds.relative_gap),
        gap_in_words(bounds.dual_value, bounds.primal_value),
        [CERTIFICATE],
        note(SIGN),
        facts(found) + dual_point_note(bounds),
    )


def dual_point_note(bounds: Any) -> str:
    """Say in small print which point of the dual the lower bound is of, and why it may be."""
    words = DUAL_POINTS.get(bounds.dual_point)
    return note(f"The dual point: {words}") if words else ""


def solution_card(solution: Any) -> str:
    """Show what a solver returned for an M-step, and its certificate."""
    metric, certificate = solution.metric, solution.certificate
    found = {
        "metric": "none" if metric is None else f"{len(metric)} x {len(metric)}",
        "trace": "" if metric is None else float(np.trace(metric)),
        "relative gap": solution.relative_gap,
        "solver": solution.solver,
        "its own word": solution.solver_status,
        "iterations": solution.iterations,
        "seconds": solution.seconds,
    }
    words = "There is no certificate." if certificate is None else ""
    if certificate is not None:
        words = gap_in_words(certificate.dual_value, certificate.primal_value)
    return card(
        "MStepSolution",
        *tone_of_status(solution.status),
        f"{words} {solution.message}".rstrip(),
        [M_STEP_ONE_TERM, CERTIFICATE],
        note(SIGN),
        facts(found) + ("" if certificate is None else dual_point_note(certificate)),
    )


def tone_of_status(status: Any) -> tuple[str, Tone]:
    """The words and the tone of a status."""
    tones = {"certified": Tone.GOOD, "failed": Tone.BAD}
    return status.value.replace("_", " "), tones.get(status.value, Tone.CAUTION)


def path_card(path: Any) -> str:
    """Show the points of a regularization path in a table."""
    certified = sum(point.status.value == "certified" for point in path.points)
    critical, words = path.critical_trace_weight, f"From the largest {path.axis} down."
    if np.isfinite(critical):
        words = (
            f"From the critical trace weight, {critical:.6g}, of the first M-step on, the metric "
            "is zero."
        )
    is_em = path.algorithm == "em"
    return card(
        "SeraphPath",
        f"{certified} of {len(path)} points certified",
        Tone.GOOD if certified == len(path) else Tone.CAUTION,
        words,
        [DESCENT if is_em else M_STEP_ONE_TERM, CRITICAL_TRACE_WEIGHT],
        note(SIGN_OF_J if is_em else SIGN),
        grid(path.to_table()),
    )


def convexity_card(proof: Any) -> str:
    """Show the proof that a problem is convex, rule by rule."""
    return card(
        "ConvexityProof",
        "convex, by the rules of DCP" if proof.holds else "not shown to be convex",
        Tone.GOOD if proof.holds else Tone.BAD,
        "Each line has an expression, its curvature and sign, and the rule of disciplined convex "
        "programming by which they follow from the lines below it.",
        [],
        tree_html(proof),
    )
