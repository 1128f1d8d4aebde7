"""The pair posterior (8), its entropy and the soft label (10), as functions of the score s.

The score of a pair is s = ||x_i - x_j||_A^2 - eta: p(+1) = sigma(-s), p(-1) = sigma(s). Every
function is stable for any s and none overflows; all take arrays of any array API library.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..numerics.arrays import Array, fused_kernels, namespace

TINY = float(np.finfo(np.float64).tiny)
ALMOST_ONE = 1.0 - 2.0**-53


def posterior_similar(s: Array) -> Array:
    """The probability that a pair is similar: p(+1) = 1 / (1 + e^s), eq. (8)."""
    xp = namespace(s)
    decay = xp.exp(-xp.abs(s))
    return xp.where(s > 0.0, decay, 1.0) / (1.0 + decay)


def dissimilar_loss(s: Array) -> Array:
    """The loss of a dissimilar pair: -ln p(-1) = log(1 + e^{-s}), from eq. (8)."""
    xp = namespace(s)
    return xp.clip(-s, min=0.0) + xp.log1p(xp.exp(-xp.abs(s)))


def logistic_sums(d: Array, threshold: float) -> tuple[Any, Array]:
    """Sum log(1 + e^{-s}), and return each sigma(-s); `d` may be overwritten."""
    if kernels := fused_kernels(d):
        sums: tuple[Any, Array] = kernels.logistic(d, threshold)
        return sums
    s = d - threshold
    return namespace(s).sum(dissimilar_loss(s)), posterior_similar(s)


def soft_label_sums(d: Array, threshold: float, sharpness: float) -> tuple[Any, Any, Array]:
    """Sum the soft labels q (10) and H(q), and return each q; `d` may be overwritten."""
    if kernels := fused_kernels(d):
        sums: tuple[Any, Any, Array] = kernels.soft_label(d, threshold, sharpness)
        return sums
    xp, s = namespace(d), sharpness * (d - threshold)
    q = posterior_similar(s)
    return xp.sum(q), xp.sum(posterior_entropy(s)), q


def descent_sums(d: Array, threshold: float, sharpness: float) -> tuple[Any, Any]:
    """Sum :func:`sharpened_surprise` and :func:`posterior_entropy` over distances."""
    if kernels := fused_kernels(d):
        sums: tuple[Any, Any] = kernels.descent(d, threshold, sharpness)
        return sums
    xp, s = namespace(d), d - threshold
    return xp.sum(sharpened_surprise(s, sharpness)), xp.sum(posterior_entropy(s))


def posterior_entropy(s: Array) -> Array:
    """The entropy H(p) of the posterior, in nats: the unlabeled term of eq. (7)."""
    xp = namespace(s)
    size = xp.abs(s)
    decay = xp.exp(-size)
    return xp.log1p(decay) + size * (decay / (1.0 + decay))


def posterior_entropy_slope(s: Array) -> Array:
    """The derivative of the posterior's entropy: dH/ds = -s sigma(s) sigma(-s)."""
    return -s * posterior_variance(s)


def posterior_variance(s: Array) -> Array:
    """The variance of y under the posterior, over 4: sigma(s) sigma(-s)."""
    xp = namespace(s)
    decay = xp.exp(-xp.abs(s))
    return decay / (1.0 + decay) ** 2


def soft_label(s: Array, sharpness: float) -> Array:
    """The soft label q(+1) = sigma(-sharpness * s); with sharpness = 1 + mu it is eq. (10)."""
    return posterior_similar(sharpness * s)


def sharpened_surprise(s: Array, sharpness: float) -> Array:
    """The unlabeled term of J, minimized over the soft label.

    min_q E_q(-ln p) - H(q)/a = log(1 + e^{-|s|}) - log(1 + e^{-a|s|})/a with a = sharpness:
    (a - 1)/a times the Renyi entropy of order a (derived here, not in the paper).
    """
    xp = namespace(s)
    size = xp.abs(s)
    return xp.log1p(xp.exp(-size)) - xp.log1p(xp.exp(-sharpness * size)) / sharpness


def binary_entropy(p: Array) -> Array:
    """The entropy -p ln p - (1 - p) ln(1 - p) of a probability, accurate for every p in [0, 1]."""
    of_similar, of_dissimilar = negative_logs(p)
    return p * of_similar + (1.0 - p) * of_dissimilar


def negative_logs(p: Array) -> tuple[Array, Array]:
    """Compute -ln p and -ln(1 - p), at p = 0 and p = 1 as for the nearest double."""
    xp = namespace(p)
    inside = xp.clip(p, 0.0, ALMOST_ONE)
    return -xp.log(xp.clip(p, TINY, 1.0)), -xp.log1p(-inside)
