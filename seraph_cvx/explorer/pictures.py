"""The page's pictures: planes, 1-NN regions, the posterior of the pairs, and curves, as SVG."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..display.page import Chart, Curve, templates, to_svg
from ..model.posterior import posterior_similar, soft_label
from ..numerics.checks import FloatArray, IntArray
from ..numerics.psd_cone import symmetric_root, symmetrize
from .alternation import HalfStep
from .scene import SIDE, Scene, nearest_labels, neighbor_error

LONGEST = 20.0
"""A radius of an ellipse is cut at this many windows: a flat ellipse looks like a strip."""
FLAT = 1e-12
"""A metric whose largest eigenvalue is below this has no ellipse: everything is near."""
PLANE_SQUARES, REGION_SQUARES = 50, 100
"""Squares along each side of the plane's heat map, and of the decision regions."""
TINTS = ((0, 114, 178), (213, 94, 0), (0, 158, 115))
"""The colors of the classes; the first one is also that of p = 1, while p = 0 is transparent:
that suits light and dark pages."""
PALE = 70.0
"""The opacity of a decision region, of 255."""
SMALLEST_GAP = 1e-16
"""A smaller gap is drawn here: a logarithmic axis has no 0."""


@cache
def html() -> Any:
    """The macros of panels.html, without the white space between its tags."""
    source = Path(__file__).with_name("panels.html").read_text(encoding="utf-8")
    source = re.sub(r"(?<=[>}])\s*\n\s*(?=[<{])", "", source)
    return templates().from_string(source).module


def draw_plane(scene: Scene, half_step: HalfStep | None) -> str:
    """Draw the points, v'Av = 1 and v'Av = eta around the chosen one, and p(+1) as a shade."""
    shade, outlines = "", {}
    if half_step is not None:
        eta = half_step.objective.threshold
        shade = as_image(plane_heat(scene, half_step))
        for kind, level in {"unit": 1.0, **({} if eta == 1.0 else {"even": eta})}.items():
            outline = ellipse(half_step.metric, level, LONGEST * scene.width)
            outlines[kind] = scene.to_screen(scene.X[scene.chosen] + outline)
    return str(html().plane(_marks(scene, scene.X), shade, outlines))


def draw_regions(scene: Scene, metric: FloatArray) -> str:
    """Draw the 1-NN regions under a metric, the true classes, and a cross on what is wrong."""
    shade = region_image(scene, metric) if np.any(scene.y >= 0) and metric.any() else ""
    error = neighbor_error(scene, metric)
    wrong = () if error is None else error.wrong
    return str(html().regions(_marks(scene, scene.X), shade, wrong))


def draw_learned(scene: Scene, half_step: HalfStep) -> str:
    """Draw the points A^{1/2} x_i, whose Euclidean distances are the learned ones."""
    Z = scene.X @ symmetric_root(half_step.metric)
    around = Z[scene.chosen] + ellipse(np.eye(2), 1.0, LONGEST)
    view = scene.showing(np.vstack([Z, around]), margin=1.1)
    return str(html().learned(_marks(view, Z), view.to_screen(around)))


def draw_pairs(scene: Scene, half_step: HalfStep) -> str:
    """Draw `pair_heat` in the order of the first principal coordinate under the metric."""
    order = principal_order(scene.X @ symmetric_root(half_step.metric))
    heat = pair_heat(scene, half_step)
    first, second = np.sort(np.stack(np.meshgrid(order, order)), axis=0)
    above = np.tri(len(order), dtype=bool).T
    ordered = np.where(above, heat[first, second], heat[second, first])
    return str(html().pairs(as_image(ordered), scene.y[order].tolist()))


def draw_curves(
    title: str, across: str, up: str, curves: Mapping[str, Sequence[Any]], **log: bool
) -> str:
    """Plot curves through points (x, y); gaps, on a logarithmic axis, not below `SMALLEST_GAP`."""
    drawn = []
    for name, points in curves.items():
        if points:
            x, y = np.array(points, dtype=np.float64).T
            drawn.append(Curve(name, x, np.maximum(y, SMALLEST_GAP) if log else y))
    return to_svg(Chart(title, across, up, drawn, **log))


def ellipse(A: FloatArray, level: float, longest: float) -> FloatArray:
    """The points of {v: v'Av = level}, with radii cut at `longest`; none if A = 0."""
    eigenvalues, vectors = np.linalg.eigh(symmetrize(A))
    if eigenvalues[-1] <= FLAT:
        return np.empty((0, 2))
    radii = np.sqrt(level / np.maximum(eigenvalues, level / longest**2))
    angle = np.linspace(0.0, 2.0 * np.pi, 96, endpoint=False)
    return np.asarray((np.column_stack([np.cos(angle), np.sin(angle)]) * radii) @ vectors.T)


def principal_order(Z: FloatArray) -> IntArray:
    """Order the points by their first principal coordinate."""
    centered = Z - Z.mean(axis=0)
    direction = np.linalg.eigh(centered.T @ centered)[1][:, -1]
    direction = direction * (1.0 if direction[np.argmax(np.abs(direction))] > 0.0 else -1.0)
    return np.argsort(centered @ direction, kind="stable")


def _marks(scene: Scene, X: FloatArray) -> list[Any]:
    """Where the points at X are on the screen, their labels and classes, and which is chosen."""
    return [
        (*position, point.label, point.true_class, k == scene.chosen)
        for k, (position, point) in enumerate(zip(scene.to_screen(X), scene.points, strict=True))
    ]


# What is shown as pixels


def pair_heat(scene: Scene, half_step: HalfStep) -> FloatArray:
    """The posterior (8) of each pair and, below the diagonal, its label or soft label in f."""
    objective, y = half_step.objective, scene.y
    v = scene.X[:, None, :] - scene.X[None, :, :]
    heat = posterior_similar(_scores(v, half_step.metric, objective.threshold))
    labels = np.zeros_like(heat)
    if objective.previous_metric is not None:
        s = _scores(v, np.asarray(objective.previous_metric), objective.threshold)
        labels = soft_label(s, objective.soft_labeling.sharpness)
    known = (y >= 0)[:, None] & (y >= 0)[None, :]
    labels = np.where(known, y[:, None] == y[None, :], labels)
    return np.asarray(np.where(np.tri(len(y), k=-1, dtype=bool), labels, heat))


def plane_heat(scene: Scene, half_step: HalfStep) -> FloatArray:
    """The posterior (8) of the chosen point with each position of the plane, (50, 50)."""
    v = _places(scene, PLANE_SQUARES) - scene.X[scene.chosen]
    s = _scores(v, half_step.metric, half_step.objective.threshold)
    return np.asarray(posterior_similar(s))


def as_image(probabilities: FloatArray) -> str:
    """Encode probabilities as a picture in a ``data:`` URL: a deeper tint is nearer to 1."""
    return _data_url(np.full((*probabilities.shape, 3), TINTS[0]), 255.0 * probabilities)


def region_image(scene: Scene, metric: FloatArray) -> str:
    """Encode the 1-NN decision regions of the window: each place in the pale color of its class."""
    shape = REGION_SQUARES, REGION_SQUARES
    classes = nearest_labels(scene, metric, _places(scene, REGION_SQUARES).reshape(-1, 2))
    return _data_url(np.array(TINTS)[classes].reshape(*shape, 3), np.full(shape, PALE))


def encode_png(pixels: FloatArray) -> bytes:
    """Encode an (h, w, 4) array of red, green, blue and opacity, 0 to 255, as a PNG file."""
    rows = np.round(pixels).astype(np.uint8)
    height, width = rows.shape[:2]
    lines = b"".join(b"\0" + row.tobytes() for row in rows)
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines, 1)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )


def _data_url(colors: Any, opacity: FloatArray) -> str:
    content = encode_png(np.dstack([colors, opacity]))
    return "data:image/png;base64," + base64.b64encode(content).decode()


def _places(scene: Scene, n: int) -> FloatArray:
    """The centers of n x n squares of the window, from the upper left, (n, n, 2)."""
    steps = SIDE * (np.arange(n) + 0.5) / n
    return scene.to_plane(np.stack(np.meshgrid(steps, steps), axis=-1))


def _scores(v: FloatArray, A: FloatArray, threshold: float) -> FloatArray:
    """The scores v'Av - eta of differences v, an (h, w, 2) array."""
    return np.asarray(np.einsum("ijk,kl,ijl->ij", v, A, v)) - threshold
