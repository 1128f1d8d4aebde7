"""What is shown as pixels: the posterior (8) of pairs and of the plane, and 1-NN regions."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np

from ...model.posterior import posterior_similar, soft_label
from ...numerics.checks import FloatArray
from ..neighbors import nearest_labels
from ..scene import Scene
from ..stepwise_alternation import HalfStep

GRID = 50
"""Squares of the plane's heat map along each side."""

TINTS = ((0, 114, 178), (213, 94, 0), (0, 158, 115))
"""The colors of the classes; the first one is also that of p = 1, while p = 0 is transparent:
that suits light and dark pages."""

REGIONS = 100
"""Squares of the decision regions along each side."""

PALE = 70.0
"""The opacity of a decision region, of 255."""


def pair_heat(scene: Scene, half_step: HalfStep) -> FloatArray:
    """The posterior of each pair and, below the diagonal, the label that f has for it, (n, n).

    Above the diagonal p(+1) = sigma(eta - v'Av), eq. (8), and on it p(+1) at v = 0. Below it 1 for
    a similar pair, 0 for a dissimilar one, and for an unlabeled one the soft label (10): q(+1) = 0
    at the start, later that of the previous metric.
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
    """The posterior (8) of the chosen point with each position of the plane, (50, 50)."""
    v = _places(scene, GRID) - scene.X[scene.chosen]
    distances = np.einsum("ijk,kl,ijl->ij", v, half_step.metric, v)
    return np.asarray(posterior_similar(distances - half_step.objective.threshold))


def as_image(probabilities: FloatArray) -> str:
    """Encode probabilities as a picture in a ``data:`` URL: a deeper tint is nearer to 1."""
    pixels = np.empty((*probabilities.shape, 4))
    pixels[..., :3] = TINTS[0]
    pixels[..., 3] = 255.0 * probabilities
    return _data_url(pixels)


def region_image(scene: Scene, metric: FloatArray) -> str:
    """Encode the 1-NN decision regions of the window as a picture in a ``data:`` URL.

    Each place has the pale color of the class of its nearest labeled point.
    """
    found = nearest_labels(scene, metric, _places(scene, REGIONS).reshape(-1, 2))
    pixels = np.full((REGIONS, REGIONS, 4), PALE)
    pixels[..., :3] = np.array(TINTS)[found].reshape(REGIONS, REGIONS, 3)
    return _data_url(pixels)


def encode_png(pixels: FloatArray) -> bytes:
    r"""Encode an (h, w, 4) array of red, green, blue and opacity, 0 to 255, as a PNG file."""
    rows = np.round(pixels).astype(np.uint8)
    height, width = rows.shape[:2]
    lines = b"".join(b"\0" + row.tobytes() for row in rows)
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines, 1)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )


def _data_url(pixels: FloatArray) -> str:
    return "data:image/png;base64," + base64.b64encode(encode_png(pixels)).decode()


def _places(scene: Scene, n: int) -> FloatArray:
    """The centers of n x n squares of the window, from the upper left, (n, n, 2)."""
    steps = scene.width * ((np.arange(n) + 0.5) / n - 0.5)
    across, up = np.meshgrid(scene.center[0] + steps, scene.center[1] - steps)
    return np.stack([across, up], axis=-1)


def _squared_distances(X: FloatArray, A: FloatArray) -> FloatArray:
    v = X[:, None, :] - X[None, :, :]
    return np.asarray(np.einsum("ijk,kl,ijl->ij", v, A, v))
