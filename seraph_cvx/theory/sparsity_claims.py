"""Checks of claims on sparsity: the mixed norm (15), and posterior and projection sparsity."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from .. import paper
from ..display.page import Chart, Curve
from ..fit.direct import DirectSolution, minimize_directly
from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import numerical_rank, symmetrize
from .claim import Check, ClaimUndecided, Evidence
from .claim_data import ClaimData, certified, distances, metric_of, shannon_entropy

SWEEPS = 6


def check_mixed_norm(data: ClaimData) -> Evidence:
    """Check that ||V A V'||_(2,1) >= tr(A), with equality at the eigenvectors of A; eq. (15)."""
    rng, m = data.random(10), data.pairs.n_features
    at_basis, below, descended, random_values, paths = [], [0.0], [], [], []
    for A in (data.metric, *data.random_metrics(claim=10, count=4)):
        B = A / max(float(np.trace(A)), 1e-300)  # trace 1, or A = 0
        trace, basis = float(np.trace(B)), np.linalg.eigh(B)[1].T
        at_basis.append(abs(paper.mixed_norm(basis @ B @ basis.T) - trace))
        for _ in range(40):
            V = np.linalg.qr(rng.normal(size=(m, m)))[0]
            random_values.append(paper.mixed_norm(V @ B @ V.T))
            below.append(trace - random_values[-1])
        paths.append(_descend(symmetrize(V @ B @ V.T)))
        below.append(trace - min(paths[-1]))
        descended.append(paths[-1][-1] - trace)
    return Evidence(
        [
            Check("at the eigenbasis, against the trace", max(at_basis), 1e-10),
            Check("below the trace at a rotation", max(below), 1e-10),
            Check("where the descent ends, above the trace", max(descended), 1e-2),
        ],
        numbers={
            "rotations tried": len(random_values),
            "largest mixed norm at a random rotation, trace = 1": max(random_values),
            "least one at a random rotation": min(random_values),
            "where the descents end, at most": 1.0 + max(descended),
        },
        charts=[
            Chart(
                "A descent over rotations ends at the trace",
                "sweep over all planes",
                "mixed norm / trace",
                [
                    Curve("mixed norm", range(SWEEPS + 1), paths[0]),
                    Curve("trace", [0, SWEEPS], [1.0, 1.0]),
                ],
            )
        ],
    )


def _descend(W: FloatArray) -> list[float]:
    """Lower the mixed norm by sweeps of plane rotations, each the best of a few angles."""
    values = [paper.mixed_norm(W)]
    for sweep in range(SWEEPS):
        for plane in combinations(range(len(W)), 2):
            W = _best_rotation(W, list(plane), np.pi / 4.0 / 2.0**sweep)
        values.append(paper.mixed_norm(W))
    return values


def _best_rotation(W: FloatArray, plane: list[int], widest: float) -> FloatArray:
    """Rotate W in a plane by the best of the angles 0, +-widest, and Jacobi's own."""
    i, j = plane
    jacobi = 0.5 * np.arctan2(2.0 * W[i, j], W[i, i] - W[j, j])
    candidates = [W]
    for angle in (jacobi, widest, -widest):
        c, s = np.cos(angle), np.sin(angle)
        rotation = np.array([[c, s], [-s, c]])
        rotated = W.copy()
        rotated[plane] = rotation @ rotated[plane]
        rotated[:, plane] = rotated[:, plane] @ rotation.T
        candidates.append(rotated)
    return min(candidates, key=paper.mixed_norm)


def unlabeled_entropy(data: ClaimData, A: FloatArray) -> float:
    """The mean of H(p) over the unlabeled pairs, in nats: at most ln 2."""
    return float(np.mean(shannon_entropy(distances(data.unlabeled, A), data.threshold)))


def supervised(data: ClaimData, trace_weight: float) -> tuple[FloatArray, float]:
    """Minimize (7) with mu = 0, which is convex: the metric, and its certified relative gap."""
    solution = certified(_labeled(data, trace_weight))
    return metric_of(solution), solution.relative_gap


def check_sparsity(data: ClaimData) -> Evidence:
    """Check the unlabeled posterior's entropy against mu, and A's trace and rank against lambda."""
    critical = _labeled(data, data.trace_weight).critical_trace_weight
    if critical == 0.0:
        raise ClaimUndecided("The labels alone are best served by the zero metric, at any lambda.")
    shares = np.array([1e-3, 1e-2, 0.03, 0.1, 0.3, 0.6, 0.95, 1.001])
    metrics, gaps = zip(*(supervised(data, critical * share) for share in shares), strict=True)
    traces = np.trace(metrics, axis1=1, axis2=2)
    ranks = [_rank(A, traces[0]) for A in metrics]
    factors = np.array([0.3, 1.0, 3.0, 10.0])

    def descend(mu: float, k: int) -> DirectSolution:
        """Find a stationary point of (7), no higher than the k-th supervised metric."""
        return minimize_directly(
            data.pairs,
            mu,
            critical * shares[k],
            data.threshold,
            start=metrics[k],
            tol=1e-5,
            max_iter=400,
        )

    small, large = ([descend(mu, k) for mu in factors * data.mu] for k in (0, 3))
    strong = [descend(factors[-1] * data.mu, k) for k in range(len(shares))]
    ranks_strong = [_rank(run.metric, traces[0]) for run in strong]
    entropies = [
        [unlabeled_entropy(data, A) for A in (metrics[k], *(run.metric for run in runs))]
        for k, runs in ((0, small), (3, large))
    ]
    rises = np.max(entropies, axis=1) - np.array(entropies)[:, 0]
    scale = max(traces[0], 1e-300)
    settings = {
        "none": (entropies[0][0], ranks[0]),
        "post": (entropies[0][-1], _rank(small[-1].metric, traces[0])),
        "proj": (entropies[1][0], ranks[3]),
        "hyper": (entropies[1][-1], _rank(large[-1].metric, traces[0])),
    }
    return Evidence(
        [
            Check("entropy above that of mu = 0", np.max(rises) / np.log(2.0), 1e-6),
            Check(
                "share of the entropy left at the best mu",
                min(entropies[0]) / max(entropies[0][0], 1e-12),
                0.999,
            ),
            Check(
                "largest rise of the trace with lambda",
                max(0.0, *np.diff(traces)) / scale,
                1e-6,
            ),
            Check("trace at the critical lambda", traces[-1] / scale, 1e-6),
            Check(
                "rank near the critical lambda above that of a small one",
                max(0, ranks[-2] - ranks[0]),
                0.0,
            ),
            Check("largest gap of a supervised metric", max(gaps), 1e-6),
        ],
        numbers={
            "critical lambda": critical,
            "rank at 0.001 of it": ranks[0],
            "rank at 0.95 of it": ranks[-2],
            "largest stationarity of (7), mu > 0": max(
                run.stationarity for run in (*small, *large, *strong)
            ),
            **{
                f"{name}: entropy, rank": f"{entropy:.3f} nats, {rank}"
                for name, (entropy, rank) in settings.items()
            },
        },
        charts=[
            Chart(
                "Posterior sparsity: entropy against mu",
                "mu / the paper's mu",
                "mean entropy on U, nats",
                [
                    Curve("small lambda (post)", [0.0, *factors], entropies[0]),
                    Curve("large lambda (hyper)", [0.0, *factors], entropies[1]),
                ],
            ),
            Chart(
                "Projection sparsity: rank against lambda",
                "lambda / critical lambda",
                "rank of A",
                [Curve("mu = 0", shares, ranks), Curve("ten times mu", shares, ranks_strong)],
                log_x=True,
            ),
        ],
    )


def _labeled(data: ClaimData, trace_weight: float) -> MStepObjective:
    return MStepObjective(
        data.pairs, unlabeled_weight=0.0, trace_weight=trace_weight, threshold=data.threshold
    )


def _rank(A: FloatArray, largest_trace: float) -> int:
    """The number of eigenvalues above 1e-4 of the largest; 0 if A is practically zero."""
    return numerical_rank(A, 1e-4) if np.trace(A) > 1e-9 * largest_trace else 0
