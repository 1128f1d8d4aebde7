"""The cards that notebooks show for results, drawn from the results' own attributes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .formulas import (
    CERTIFICATE,
    CRITICAL_TRACE_WEIGHT,
    DESCENT,
    M_STEP,
    M_STEP_ONE_TERM,
    PROBABILITY,
)
from .notebook import Tone, card, facts, gap_in_words, grid, tone_of_gap


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
        "mu by ratio": pairs.resolve_unlabeled_weight("ratio"),
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
        "unlabeled weight mu": objective.mu,
        "trace weight lambda": objective.trace_weight,
        "threshold eta": objective.threshold,
        "manifold term": "" if objective.manifold_term is None else "yes",
        "penalties": ", ".join(map(repr, objective.penalties)),
        "soft labels": f"{source}; sharpness {objective.sharpness:.4g}" if objective.mu else "",
        "critical trace weight": known.get("critical_trace_weight", ""),
    }
    words = repr(objective.pairs)
    return card("MStepObjective", verdict, tone, words, [M_STEP_ONE_TERM], facts(parameters))


def certificate_card(certificate: Any) -> str:
    """Show the gap that a certificate bounds."""
    verdict = f"relative gap {certificate.relative_gap:.1e}"
    found = {"duality gap": certificate.duality_gap, "dual point": certificate.dual_point}
    return _gap_card("Certificate", verdict, certificate, found)


def proof_card(proof: Any) -> str:
    """Show the gap that was proven in ball arithmetic."""
    verdict = f"proven relative gap {proof.relative_gap:.1e}"
    found = {"duality gap": proof.duality_gap, "dual point": proof.dual_point}
    return _gap_card("Proof", verdict, proof, found | {"bits": proof.precision})


def _gap_card(name: str, verdict: str, bounds: Any, found: dict[str, Any]) -> str:
    return card(
        name,
        verdict,
        tone_of_gap(bounds.relative_gap),
        gap_in_words(bounds.dual_value, bounds.primal_value),
        [CERTIFICATE],
        facts(found),
    )


def solution_card(solution: Any) -> str:
    """Show what a solver returned for an M-step, and its certificate."""
    tones = {"certified": Tone.GOOD, "failed": Tone.BAD}
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
        solution.status.value.replace("_", " "),
        tones.get(solution.status.value, Tone.CAUTION),
        f"{words} {solution.message}".rstrip(),
        [M_STEP, CERTIFICATE],
        facts(found),
    )


def path_card(path: Any) -> str:
    """Show the points of a regularisation path in a table."""
    certified = sum(point.status.value == "certified" for point in path.points)
    critical, words = path.critical_trace_weight, f"From the largest {path.axis} down."
    if np.isfinite(critical):
        words = (
            f"From the critical trace weight, {critical:.6g}, of the first M-step on, the metric "
            "is zero."
        )
    return card(
        "SeraphPath",
        f"{certified} of {len(path)} points certified",
        Tone.GOOD if certified == len(path) else Tone.CAUTION,
        words,
        [DESCENT if path.algorithm == "em" else M_STEP, CRITICAL_TRACE_WEIGHT],
        grid(path.to_table()),
    )
