"""Claim 14: posterior sparsity, projection sparsity, and the two together (Section 3)."""

from __future__ import annotations

import numpy as np

from ...display.chart import Chart, Curve
from ...fit.direct import DirectSolution, minimize_directly
from ...model.m_step_objective import MStepObjective
from ...numerics.checks import FloatArray
from ...numerics.psd_cone import numerical_rank
from ..claim import Check, Claim, ClaimResult, ClaimUndecided
from ..claim_data import ClaimData, certified, scores, shannon_entropy

CLAIM = Claim(
    number=14,
    name="Posterior sparsity and projection sparsity",
    place="Section 3; the hyper-sparsity of Sections 2.3 and 6",
    statement="A positive mu lowers the entropy of the unlabeled posterior, a larger lambda the "
    "trace and with it the rank of A; how the two act on each other is shown, not judged.",
    formula=r"\mu > 0 \Rightarrow \sum_{\mathcal{U}} H(p_{ij}^{A_\mu}) \leq \sum_{\mathcal{U}}"
    r" H(p_{ij}^{A_0}) , \quad \lambda' > \lambda \Rightarrow \operatorname{tr}(A_{\lambda'})"
    r" \leq \operatorname{tr}(A_\lambda)",
    evidence="(7) by direct descent from the certified supervised metric, for rising mu; the "
    "certified supervised metric for rising lambda, up to the critical lambda where it must be "
    "zero; and the four settings none, post, proj, hyper side by side.",
)


def unlabeled_entropy(setting: ClaimData, A: FloatArray) -> float:
    """The mean of H(p) over the unlabeled pairs, in nats: at most ln 2."""
    return float(np.mean(shannon_entropy(scores(setting.unlabeled, A, setting.threshold))))


def supervised(setting: ClaimData, trace_weight: float) -> tuple[FloatArray, float]:
    """Minimize (7) with mu = 0, which is convex: the metric, and its certified relative gap."""
    solution = certified(_labeled(setting, trace_weight))
    return setting.metric_of(solution), solution.relative_gap


def semi_supervised(
    setting: ClaimData, mu: float, trace_weight: float, start: FloatArray
) -> DirectSolution:
    """Find a stationary point of (7), in at most 400 steps, with no higher value than `start`."""
    return minimize_directly(
        setting.pairs, mu, trace_weight, setting.threshold, start=start, tol=1e-5, max_iter=400
    )


def check_sparsity(setting: ClaimData) -> ClaimResult:
    """Check the unlabeled posterior's entropy against mu, and A's trace and rank against lambda."""
    critical = _labeled(setting, setting.trace_weight).critical_trace_weight
    if critical == 0.0:
        raise ClaimUndecided("The labels alone are best served by the zero metric, at any lambda.")
    lambdas = critical * np.array([1e-3, 1e-2, 0.03, 0.1, 0.3, 0.6, 0.95, 1.001])
    along = [supervised(setting, float(value)) for value in lambdas]
    traces = [float(np.trace(A)) for A, _ in along]
    ranks = [_rank(A, traces[0]) for A, _ in along]
    low, high = (0, along[0][0]), (3, along[3][0])
    factors = np.array([0.3, 1.0, 3.0, 10.0])
    entropies, descents = {}, []
    for name, (k, start) in {"small": low, "large": high}.items():
        found = [
            semi_supervised(setting, float(mu), float(lambdas[k]), start)
            for mu in factors * setting.mu
        ]
        descents += found
        metrics = [start, *(run.metric for run in found)]
        entropies[name] = [unlabeled_entropy(setting, A) for A in metrics]
        if name == "small":
            post = metrics[-1]
        else:
            hyper = metrics[-1]
    strong = float(factors[-1]) * setting.mu
    with_strong_mu = [
        semi_supervised(setting, strong, float(value), A)
        for value, (A, _) in zip(lambdas, along, strict=True)
    ]
    descents += with_strong_mu
    with_mu = [_rank(run.metric, traces[0]) for run in with_strong_mu]
    mus = [0.0, *map(float, factors)]
    rises = [max(values) - values[0] for values in entropies.values()]
    trace_rises = np.diff(traces) / max(traces[0], 1e-300)
    return ClaimResult(
        CLAIM,
        [
            Check("entropy above that of mu = 0", max(rises) / np.log(2.0), 1e-6),
            Check(
                "share of the entropy left at the best mu",
                min(entropies["small"]) / max(entropies["small"][0], 1e-12),
                0.999,
            ),
            Check("largest rise of the trace with lambda", max(0.0, *trace_rises), 1e-6),
            Check("trace at the critical lambda", traces[-1] / max(traces[0], 1e-300), 1e-6),
            Check("rank near the critical lambda above that of a small one", _above(ranks), 0.0),
            Check("largest gap of a supervised metric", max(gap for _, gap in along), 1e-6),
        ],
        numbers={
            "critical lambda": critical,
            "rank at 0.001 of it": ranks[0],
            "rank at 0.95 of it": ranks[-2],
            "largest stationarity of (7), mu > 0": max(run.stationarity for run in descents),
            "none: entropy, rank": _show(entropies["small"][0], ranks[0]),
            "post: entropy, rank": _show(entropies["small"][-1], _rank(post, traces[0])),
            "proj: entropy, rank": _show(entropies["large"][0], ranks[3]),
            "hyper: entropy, rank": _show(entropies["large"][-1], _rank(hyper, traces[0])),
        },
        charts=[
            Chart(
                "Posterior sparsity: entropy against mu",
                "mu / the paper's mu",
                "mean entropy on U, nats",
                [
                    Curve("small lambda (post)", mus, entropies["small"]),
                    Curve("large lambda (hyper)", mus, entropies["large"]),
                ],
            ),
            Chart(
                "Projection sparsity: rank against lambda",
                "lambda / critical lambda",
                "rank of A",
                [
                    Curve("mu = 0", list(lambdas / critical), list(map(float, ranks))),
                    Curve("ten times mu", list(lambdas / critical), list(map(float, with_mu))),
                ],
                log_x=True,
            ),
        ],
    )


def _labeled(setting: ClaimData, trace_weight: float) -> MStepObjective:
    return MStepObjective(
        setting.pairs,
        unlabeled_weight=0.0,
        trace_weight=trace_weight,
        threshold=setting.threshold,
    )


def _rank(A: FloatArray, largest_trace: float) -> int:
    """The number of eigenvalues above 1e-4 of the largest; 0 if A is practically zero."""
    return numerical_rank(A, 1e-4) if np.trace(A) > 1e-9 * largest_trace else 0


def _above(ranks: list[int]) -> float:
    return float(max(0, ranks[-2] - ranks[0]))


def _show(entropy: float, rank: int) -> str:
    return f"{entropy:.3f} nats, {rank}"
