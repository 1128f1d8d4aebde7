"""Claim 10: the mixed norm (15) against the trace of (6)."""

from __future__ import annotations

import numpy as np

from ...display.chart import Chart, Curve
from ...numerics.checks import FloatArray
from ...numerics.psd_cone import symmetrize
from ..claim import Check, Claim, ClaimResult
from ..claim_data import ClaimData

SWEEPS = 6

CLAIM = Claim(
    number=10,
    name="(15) is (6): the mixed norm is the trace",
    place="Section 3, (15)",
    statement="Over all rotations V the mixed norm of W = V A V' is least at the eigenvectors of "
    "A, where it is the trace.",
    formula=r"\min_{V \in \mathcal{O}^m} \|V A V^\top\|_{(2,1)} = \operatorname{tr}(A) , \quad"
    r" \|W\|_{(2,1)} = \sum_{k} (\sum_{k'} W_{k,k'}^2)^{1/2} \geq \sum_{k} W_{k,k}",
    evidence="The mixed norm at the eigenbasis, at random rotations, and along a descent over "
    "rotations, one plane at a time, from random starts; for the learned metric and random ones.",
)


def mixed_norm(W: FloatArray) -> float:
    """The mixed norm ||W||_(2,1) = sum_k (sum_k' W_kk'^2)^(1/2)."""
    return float(np.sum(np.sqrt(np.sum(np.square(W), axis=1))))


def check_mixed_norm(setting: ClaimData) -> ClaimResult:
    """Check that ||V A V'||_(2,1) >= tr(A), with equality at the eigenvectors of A; eq. (15)."""
    rng, m = setting.random(10), setting.pairs.n_features
    metrics = [setting.metric, *setting.random_metrics(claim=10, count=4)]
    at_basis, below, descended, random_values = 0.0, 0.0, 0.0, []
    path: list[float] = []
    for A in metrics:
        B = A / max(float(np.trace(A)), 1e-300)  # trace 1, or A = 0
        trace = float(np.trace(B))
        V = np.linalg.eigh(B)[1].T
        at_basis = max(at_basis, abs(mixed_norm(V @ B @ V.T) - trace))
        for _ in range(40):
            V = np.linalg.qr(rng.normal(size=(m, m)))[0]
            random_values.append(mixed_norm(V @ B @ V.T))
            below = max(below, trace - random_values[-1])
        values = _descend(symmetrize(V @ B @ V.T))
        path = path or values
        below = max(below, trace - min(values))
        descended = max(descended, values[-1] - trace)
    return ClaimResult(
        CLAIM,
        [
            Check("at the eigenbasis, against the trace", at_basis, 1e-10),
            Check("below the trace at a rotation", max(0.0, below), 1e-10),
            Check("where the descent ends, above the trace", descended, 1e-2),
        ],
        numbers={
            "rotations tried": len(random_values),
            "largest mixed norm at a random rotation, trace = 1": max(random_values),
            "least one at a random rotation": min(random_values),
            "where the descents end, at most": 1.0 + descended,
        },
        charts=[
            Chart(
                "A descent over rotations ends at the trace",
                "sweep over all planes",
                "mixed norm / trace",
                [
                    Curve("mixed norm", list(map(float, range(len(path)))), path),
                    Curve("trace", [0.0, float(len(path) - 1)], [1.0, 1.0]),
                ],
            )
        ],
    )


def _descend(W: FloatArray) -> list[float]:
    """Lower the mixed norm by sweeps of plane rotations, each the best of a few angles."""
    m, values = len(W), [mixed_norm(W)]
    for sweep in range(SWEEPS):
        for i in range(m - 1):
            for j in range(i + 1, m):
                W = _best_rotation(W, i, j, np.pi / 4.0 / 2.0**sweep)
        values.append(mixed_norm(W))
    return values


def _best_rotation(W: FloatArray, i: int, j: int, widest: float) -> FloatArray:
    """Rotate W in the plane (i, j) by the best of the angles 0, +-widest, and Jacobi's own."""
    jacobi = 0.5 * float(np.arctan2(2.0 * W[i, j], W[i, i] - W[j, j]))
    best, least = W, mixed_norm(W)
    for angle in (jacobi, widest, -widest):
        c, s = np.cos(angle), np.sin(angle)
        turned = W.copy()
        turned[[i, j]] = np.array([[c, s], [-s, c]]) @ turned[[i, j]]
        turned[:, [i, j]] = turned[:, [i, j]] @ np.array([[c, -s], [s, c]])
        value = mixed_norm(turned)
        if value < least:
            best, least = turned, value
    return best
