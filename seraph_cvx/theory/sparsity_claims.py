"""Checks of claims on sparsity: the mixed norm (15), and posterior and projection sparsity."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .. import paper
from ..certificate import Certificate
from ..fit.direct import DirectSolution, minimize_directly
from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import numerical_rank
from .claim import ClaimUndecided, Evidence
from .claim_data import ClaimData, certified


def check_mixed_norm(data: ClaimData) -> Evidence:
    """Check that ||V A V'||_(2,1) >= tr(A), with equality at the eigenvectors of A; eq. (15)."""
    rng, m = data.random(10), data.pairs.n_features
    traces, at_basis, at_random = [], [], []
    for A in (data.metric, *data.random_metrics(claim=10, count=4)):
        B = A / max(float(np.trace(A)), 1e-300)  # trace 1, or A = 0
        traces.append(np.trace(B))
        at_basis.append(_rotated_norm(B, np.linalg.eigh(B)[1].T))
        rotations = np.linalg.qr(rng.normal(size=(40, m, m)))[0]
        at_random.append([_rotated_norm(B, V) for V in rotations])
    trace = np.array(traces)
    return Evidence(
        {
            "at the eigenbasis, against the trace": (np.abs(at_basis - trace), 1e-10),
            "below the trace at a rotation": (trace[:, None] - at_random, 1e-10),
        },
    )


def _rotated_norm(B: FloatArray, V: FloatArray) -> float:
    return paper.mixed_norm(V @ B @ V.T)


def supervised(data: ClaimData, trace_weight: float) -> Certificate:
    """Minimize (7) with mu = 0, which is convex."""
    return certified(replace(data, trace_weight=trace_weight, unlabeled_weight=0.0).objective())


def check_sparsity(data: ClaimData) -> Evidence:
    """Check the unlabeled posterior's entropy against mu, and A's trace and rank against lambda."""
    critical = replace(data, unlabeled_weight=0.0).objective().critical_trace_weight
    if critical == 0.0:
        raise ClaimUndecided("The labels alone are best served by the zero metric, at any lambda.")
    shares = np.array([1e-3, 1e-2, 0.03, 0.1, 0.3, 0.6, 0.95, 1.001])
    without = [supervised(data, critical * share) for share in shares]

    def descend(k: int, factor: float) -> DirectSolution:
        """Find a stationary point of (7), no higher than the k-th supervised metric."""
        weights = {"unlabeled_weight": factor * data.mu, "trace_weight": critical * shares[k]}
        m_step = MStepObjective(data.pairs, threshold=data.threshold, **weights)
        return minimize_directly(m_step, start=without[k].metric, tol=1e-5, max_iter=400)

    factors = (0.3, 1.0, 3.0, 10.0)  # times the paper's mu
    metrics = [[without[k].metric, *(descend(k, f).metric for f in factors)] for k in (0, 3)]
    entropies = np.array([[np.mean(data.unlabeled_entropies(A)) for A in row] for row in metrics])
    traces = np.array([np.trace(run.metric) for run in without])
    scale = max(traces[0], 1e-300)
    ranks = [_rank(without[k].metric, scale) for k in (0, -2)]
    return Evidence(
        {
            "entropy above that of mu = 0": ((entropies - entropies[:, :1]) / np.log(2.0), 1e-6),
            "share of the entropy left at the best mu": (
                np.min(entropies[0]) / max(entropies[0, 0], 1e-12),
                0.999,
            ),
            "largest rise of the trace with lambda": (np.diff(traces) / scale, 1e-6),
            "trace at the critical lambda": (traces[-1] / scale, 1e-6),
            "rank near the critical lambda above that of a small one": (
                ranks[1] - ranks[0],
                0.0,
            ),
            "largest gap of a supervised metric": ([run.relative_gap for run in without], 1e-6),
        },
    )


def _rank(A: FloatArray, scale: float) -> int:
    """The number of eigenvalues above 1e-4 of the largest; 0 if A is practically zero."""
    return numerical_rank(A, 1e-4) if np.trace(A) > 1e-9 * scale else 0
