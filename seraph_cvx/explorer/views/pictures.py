"""The page's pictures as SVG, drawn without any library: planes, regions, the pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...numerics.checks import FloatArray, IntArray
from ...numerics.psd_cone import symmetrize
from ..neighbors import neighbor_error
from ..scene import SIDE, Scene
from ..stepwise_alternation import HalfStep
from .heat import as_image, pair_heat, plane_heat, region_image

LONGEST = 20.0
"""A radius of an ellipse is cut at this many windows: a flat ellipse looks like a strip."""

FLAT = 1e-12
"""A metric whose largest eigenvalue is below this has no ellipse: everything is near."""

RIM = 34.0
"""The margin for the labels and the titles of the axes at the picture of the pairs."""

BARS = 20.0
"""Where in that margin the labels begin."""


def draw_plane(scene: Scene, half_step: HalfStep | None) -> str:
    """Draw the points, the unit ellipse of the chosen one, and the posterior with it as a shade.

    The ellipse is {v: v'Av = 1}. If eta is not 1, {v: v'Av = eta}, where p(+1) = 1/2, is drawn too.
    """
    parts = []
    if half_step is not None:
        x, eta = scene.X[scene.chosen], half_step.objective.threshold
        parts.append(_image(as_image(plane_heat(scene, half_step)), 0.0, SIDE, "smooth"))
        levels = {"unit": 1.0} if eta == 1.0 else {"unit": 1.0, "even": eta}
        for kind, level in levels.items():
            outline = ellipse(half_step.metric, level, LONGEST * scene.width)
            if len(outline):
                parts.append(_polygon(scene.to_screen(x + outline), kind))
    parts += _marks(scene.to_screen(scene.X), scene.labels, scene.chosen)
    parts.append('<text x="388" y="392" class="end">x₁ →</text>')
    parts.append('<text x="18" y="20">x₂ ↑</text>')
    return _square(parts, "the plane: click to label or add points")


def draw_regions(scene: Scene, metric: FloatArray) -> str:
    """Draw the 1-NN regions under a metric, the true classes, and a cross on what is wrong.

    Points without a label are dots in the color of their true class, if that is known.
    """
    positions, truth = scene.to_screen(scene.X), scene.truth
    parts = []
    if np.any(scene.y >= 0) and metric.any():
        parts.append(_image(region_image(scene, metric), 0.0, SIDE, "sharp"))
    for k in np.flatnonzero((scene.y < 0) & (truth >= 0)).tolist():
        x, y = positions[k]
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.6" class="class{truth[k]}"></circle>')
    error = neighbor_error(scene, metric)
    for k in () if error is None else error.wrong:
        x, y = positions[k]
        cross = f"M{x - 6:.1f},{y - 6:.1f}l12,12m0,-12l-12,12"
        parts.append(f'<path d="{cross}" class="wrong"></path>')
    shown = np.flatnonzero((scene.y >= 0) | (truth < 0))
    parts += _marks(positions[shown], scene.y[shown].tolist())
    return _square(parts, "the classes by the nearest labeled point")


def draw_learned(scene: Scene, half_step: HalfStep) -> str:
    """Draw the points A^{1/2} x_i, whose Euclidean distances are learned ones, and a unit circle.

    The root is the symmetric one, so that the picture is turned as little as possible.
    """
    Z = scene.X @ square_root(half_step.metric)
    around = Z[scene.chosen] + ellipse(np.eye(2), 1.0, LONGEST)
    everything = np.vstack([Z, around])
    low, high = everything.min(axis=0), everything.max(axis=0)
    across, up = (low + high) / 2.0
    view = Scene(center=(float(across), float(up)), width=1.1 * float(np.max(high - low)))
    parts = [_polygon(view.to_screen(around), "unit")]
    parts += _marks(view.to_screen(Z), scene.labels, scene.chosen)
    return _square(parts, "the points under the learned metric")


def draw_pairs(scene: Scene, half_step: HalfStep) -> str:
    """Draw the posterior (8) of each pair above the diagonal, and its label in the M-step below.

    The points are in the order of their first principal coordinate under the metric; those with a
    label have a mark at the rim.
    """
    order = principal_order(scene.X @ square_root(half_step.metric))
    heat = pair_heat(scene, half_step)
    first, second = np.sort(np.stack(np.meshgrid(order, order)), axis=0)
    i, j = np.indices(heat.shape)
    ordered = np.where(j >= i, heat[first, second], heat[second, first])
    side = SIDE - RIM - 1.0
    parts = [_image(as_image(ordered), RIM, side, "sharp")]
    square = side / len(order)
    for k, point in enumerate(order):
        label = scene.labels[point]
        if label >= 0:
            parts.append(_bar(RIM + k * square, BARS, square, RIM - BARS - 2.0, f"class{label}"))
            parts.append(_bar(BARS, RIM + k * square, RIM - BARS - 2.0, square, f"class{label}"))
    parts.append(_bar(RIM, RIM, side, side, "frame"))
    middle = RIM + side / 2.0
    parts.append(f'<text x="{middle}" y="14">point j, along A →</text>')
    parts.append(f'<text x="{-middle}" y="14" transform="rotate(-90)">← point i, along A</text>')
    parts.append(
        f'<line x1="{RIM}" y1="{RIM}" x2="{RIM + side}" y2="{RIM + side}" class="diagonal"></line>'
    )
    return _svg(parts, "the posterior of every pair")


def ellipse(A: FloatArray, level: float, longest: float) -> FloatArray:
    """The points of the ellipse {v: v'Av = level}; none if A = 0.

    Its radii sqrt(level / eigenvalue) are cut at `longest`.
    """
    eigenvalues, vectors = np.linalg.eigh(symmetrize(A))
    if eigenvalues[-1] <= FLAT:
        return np.empty((0, 2))
    radii = np.sqrt(level / np.maximum(eigenvalues, level / longest**2))
    angle = np.linspace(0.0, 2.0 * np.pi, 96, endpoint=False)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    return np.asarray((circle * radii) @ vectors.T)


def square_root(A: FloatArray) -> FloatArray:
    """The symmetric PSD square root A^{1/2} of a PSD matrix."""
    eigenvalues, vectors = np.linalg.eigh(symmetrize(A))
    return np.asarray((vectors * np.sqrt(np.maximum(eigenvalues, 0.0))) @ vectors.T)


def principal_order(Z: FloatArray) -> IntArray:
    """Order the points by their first principal coordinate."""
    centered = Z - Z.mean(axis=0)
    direction = np.linalg.eigh(centered.T @ centered)[1][:, -1]
    direction = direction * (1.0 if direction[np.argmax(np.abs(direction))] > 0.0 else -1.0)
    return np.argsort(centered @ direction, kind="stable")


def _marks(positions: FloatArray, labels: Sequence[int], chosen: int = -1) -> list[str]:
    """Mark unknown labels by dots, classes by discs, squares, triangles, the chosen by a ring."""
    parts = []
    for k in np.argsort(labels, kind="stable").tolist():  # those with a label come on top
        (x, y), label = positions[k], labels[k]
        if k == chosen:
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="10" class="chosen"></circle>')
        if label < 0:
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.6" class="unknown"></circle>')
        elif label == 0:
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" class="class0"></circle>')
        elif label == 1:
            parts.append(_bar(x - 5.5, y - 5.5, 11.0, 11.0, "class1"))
        else:
            corners = np.array([[0.0, -7.5], [6.8, 5.0], [-6.8, 5.0]])
            parts.append(_polygon(positions[k] + corners, "class2"))
    return parts


def _image(picture: str, at: float, side: float, kind: str) -> str:
    return (
        f'<image x="{at}" y="{at}" width="{side}" height="{side}" class="{kind}" '
        f'preserveAspectRatio="none" href="{picture}"></image>'
    )


def _bar(x: float, y: float, width: float, height: float, kind: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'class="{kind}"></rect>'
    )


def _polygon(positions: FloatArray, kind: str) -> str:
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in positions)
    return f'<polygon points="{corners}" class="{kind}"></polygon>'


def _square(parts: Sequence[str], title: str) -> str:
    return _svg([*parts, _bar(0.5, 0.5, SIDE - 1.0, SIDE - 1.0, "frame")], title)


def _svg(parts: Sequence[str], title: str) -> str:
    opening = f'<svg viewBox="0 0 {SIDE:g} {SIDE:g}" role="img" aria-label="{title}">'
    return "".join([opening, *parts, "</svg>"])
