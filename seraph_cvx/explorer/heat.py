"""The posterior (8) as numbers and as pixels: of every pair, and of the plane."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np

from ..model.posterior import posterior_similar, soft_label
from ..numerics.checks import FloatArray
from .scene import Scene
from .stepwise_alternation import HalfStep

GRID = 50
"""Squares of the plane's heat map along each side."""

TINT = (0, 114, 178)
"""The colour of p = 1; p = 0 is transparent, so that it suits light and dark pages."""


def pair_heat(scene: Scene, half_step: HalfStep) -> FloatArray:
    """The posterior of each pair and, below the diagonal, the label that f has for it, (n, n).

    Above the diagonal p(+1) = sigma(eta - v'Av), eq. (8), and on it p(+1) at v = 0. Below it 1 for
    a similar pair, 0 for a dissimilar one, and for an unlabeled one the soft label (10): q(+1) = 0
    at the start, later that of the previous metric.

    Examples
    --------
    >>> from seraph_cvx.explorer.state import ExplorerState
    >>> state = ExplorerState()
    >>> heat = pair_heat(state.scene, state.half_step)
    >>> heat.shape, float(heat[20, 10])
    ((100, 100), 0.0)
    """
    objective, y = half_step.objective, scene.y
    heat = posterior_similar(_squared_distances(scene.X, half_step.metric) - objective.threshold)
    labels = np.zeros_like(heat)
    if objective.previous_metric is not None:
        s = _squared_distances(scene.X, objective.previous_metric) - objective.threshold
        labels = soft_label(s, objective.soft_labeling.sharpness)
    known = (y >= 0)[:, None] & (y >= 0)[None, :]
    labels = np.where(known, y[:, None] == y[None, :], labels)
    return np.asarray(np.where(np.tri(len(y), k=-1, dtype=bool), labels, heat))


def plane_heat(scene: Scene, half_step: HalfStep) -> FloatArray:
    """The posterior (8) of the chosen point with each position of the plane, (50, 50).

    Examples
    --------
    >>> from seraph_cvx.explorer.state import ExplorerState
    >>> state = ExplorerState()
    >>> bool(plane_heat(state.scene, state.half_step).max() <= 1.0)
    True
    """
    steps = scene.width * ((np.arange(GRID) + 0.5) / GRID - 0.5)
    across, up = np.meshgrid(scene.centre[0] + steps, scene.centre[1] - steps)
    v = np.stack([across, up], axis=-1) - scene.X[scene.chosen]
    distances = np.einsum("ijk,kl,ijl->ij", v, half_step.metric, v)
    return np.asarray(posterior_similar(distances - half_step.objective.threshold))


def as_image(probabilities: FloatArray) -> str:
    """Encode probabilities as a picture in a ``data:`` URL: the deeper the tint, the nearer to 1.

    Examples
    --------
    >>> as_image(np.eye(2))[:22]
    'data:image/png;base64,'
    """
    pixels = np.empty((*probabilities.shape, 4))
    pixels[..., :3] = TINT
    pixels[..., 3] = 255.0 * probabilities
    return "data:image/png;base64," + base64.b64encode(encode_png(pixels)).decode()


def encode_png(pixels: FloatArray) -> bytes:
    r"""Encode an (h, w, 4) array of red, green, blue and opacity, 0 to 255, as a PNG file.

    Examples
    --------
    >>> encode_png(np.zeros((1, 1, 4)))[:8]
    b'\x89PNG\r\n\x1a\n'
    """
    rows = np.round(pixels).astype(np.uint8)
    height, width = rows.shape[:2]
    lines = b"".join(b"\0" + row.tobytes() for row in rows)
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines, 1)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )


def _squared_distances(X: FloatArray, A: FloatArray) -> FloatArray:
    v = X[:, None, :] - X[None, :, :]
    return np.asarray(np.einsum("ijk,kl,ijl->ij", v, A, v))
