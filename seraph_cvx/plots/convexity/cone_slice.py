"""The M-step's objective on a slice of the cone, with the paths of solvers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from ...model.m_step_objective import MStepObjective
from ...numerics.checks import FloatArray
from ..display import Display
from ..style import LABEL_SIZE, PALETTE, enlarge_text, legible, line_look

COLORS = "cividis"
N_LEVELS = 13
OUTSIDE = "#D9D9D9"
MARGIN = 0.3
"""The margin around the corners and paths, as a share of their extent."""


@dataclass(eq=False)
class SliceDisplay(Display):
    """Show the M-step's function and the PSD cone on a plane through three metrics.

    (x, y) -> f(A_0 + x(A_1 - A_0) + y(A_2 - A_0)) of eq. (11), and where that matrix is PSD.

    The corners A_0, A_1, A_2 are at (0, 0), (1, 0) and (0, 1). Iterates are projected onto the
    slice, in the Frobenius norm; the legend says how far from it they were.

    Parameters
    ----------
    x, y : (k,) arrays
        The grid.
    values : (k, k) array
        f, row by row of y; inside the cone and out.
    smallest_eigenvalues : (k, k) array
        The smallest eigenvalue of each matrix on the grid, which is 0 on the boundary of the cone.
    corner_names : (str, str, str)
    paths : dict of str to (n_iterates, 2) arrays
        Coordinates of the projected iterates.
    distances : dict of str to float
        The largest distance of an iterate from the slice, relative to its distance from A_0.
    """

    x: FloatArray
    y: FloatArray
    values: FloatArray
    smallest_eigenvalues: FloatArray
    corner_names: tuple[str, str, str]
    paths: dict[str, FloatArray] = field(default_factory=dict)
    distances: dict[str, float] = field(default_factory=dict)

    @classmethod
    def from_result(
        cls,
        objective: MStepObjective,
        corners: Mapping[str, ArrayLike],
        paths: Mapping[str, Sequence[ArrayLike]] | None = None,
        resolution: int = 61,
    ) -> Self:
        """Compute f and the smallest eigenvalue on a grid, and the coordinates of the iterates.

        Parameters
        ----------
        objective : MStepObjective
        corners : mapping of str to (m, m) array_like
            Three, by name, not on one line: for example zero, optimum, identity.
        paths : mapping of str to sequences of (m, m) array_like, optional
            The iterates of solvers, by name.
        resolution : int
            Points a side of the grid, besides those through the corners, where the boundary of
            the cone may turn; f is evaluated at the square of it.

        Examples
        --------
        >>> import numpy as np
        >>> from seraph_cvx import MStepObjective, PairSet
        >>> from seraph_cvx.plots import SliceDisplay
        >>> pairs = PairSet.from_labels([[0.0, 1.0], [0.2, 3.0], [2.0, 2.0]], [0, 0, 1])
        >>> corners = {"0": np.zeros((2, 2)), "E": np.diag([1.0, 0.0]), "I": np.eye(2)}
        >>> paths = {"one step": [np.zeros((2, 2)), np.diag([3.0, 1.0])]}
        >>> display = SliceDisplay.from_result(MStepObjective(pairs), corners, paths, resolution=9)
        >>> display.paths["one step"]
        array([[0., 0.],
               [2., 1.]])
        """
        names, origin, directions = _span(objective, corners)
        checked = {
            name: np.array([objective.check(A) for A in path])
            for name, path in (paths or {}).items()
        }
        positions = {name: _project(path, origin, directions) for name, path in checked.items()}
        distances = {
            name: _distance(path, origin, directions, positions[name])
            for name, path in checked.items()
        }
        if resolution < 2:
            raise ValueError(f"resolution={resolution}: a grid has at least 2 points a side.")
        x, y = _grid(np.vstack([[[0, 0], [1, 0], [0, 1]], *positions.values()]), resolution)
        plane = np.stack(np.meshgrid(x, y), axis=-1)
        grid = origin + np.tensordot(plane, directions, axes=1)
        values = [[objective.value(A) for A in row] for row in grid]
        eigenvalues = np.linalg.eigvalsh(grid)[:, :, 0].astype(np.float64)
        return cls(x, y, np.array(values), eigenvalues, names, positions, distances)

    def _draw(self, axes: Sequence[Axes]) -> None:
        (ax,) = axes
        self._draw_values(ax)
        self._draw_cone(ax)
        handles: list[Artist] = [
            Line2D([], [], color="black", linewidth=2.5, label="boundary of the cone"),
            Patch(color=OUTSIDE, label="not PSD"),
        ]
        self._draw_corners(ax)
        handles += [self._draw_path(ax, k, name) for k, name in enumerate(self.paths)]
        first, second, third = (legible(name, 16) for name in self.corner_names)
        ax.set_xlabel(f"from {first} (0) to {second} (1)")
        ax.set_ylabel(f"from {first} (0) to {third} (1)")
        ax.set_xlim(self.x[0], self.x[-1])
        ax.set_ylim(self.y[0], self.y[-1])
        self._add_legend(handles)

    def _draw_values(self, ax: Axes) -> None:
        """Draw filled contours, denser near the smallest value in the cone, as for a bowl."""
        size = float(np.max(np.abs(self.smallest_eigenvalues)))
        inside = self.values[self.smallest_eigenvalues >= -1e-12 * size]
        low, high = float(np.min(inside)), float(np.max(inside))
        levels = low + max(high - low, 1e-12 * abs(low)) * np.linspace(0.0, 1.0, N_LEVELS) ** 2
        colors = mpl.colormaps[COLORS].reversed()
        norm = BoundaryNorm(levels, colors.N)
        look: dict[str, Any] = {"levels": levels, "cmap": colors, "norm": norm}
        ax.contourf(self.x, self.y, self.values, extend="both", **look)
        scale = ScalarMappable(norm, colors)
        ticks, form = _round_ticks(low, high)
        bar = self.figure_.colorbar(scale, ax=ax, ticks=ticks, spacing="uniform", format=form)
        bar.minorticks_off()
        bar.set_label("f(A), eq. (11)")
        enlarge_text(bar.ax)

    def _draw_cone(self, ax: Axes) -> None:
        """Shade where the smallest eigenvalue is negative, and draw the boundary."""
        lowest = min(float(np.min(self.smallest_eigenvalues)), 0.0)
        if lowest == 0.0:
            return
        where: Any = (self.x, self.y, self.smallest_eigenvalues)
        ax.contourf(*where, levels=[2.0 * lowest, 0.0], colors=[OUTSIDE])
        ax.contour(*where, levels=[0.0], colors=["black"], linewidths=2.5)

    def _draw_path(self, ax: Axes, k: int, name: str) -> Line2D:
        path = self.paths[name]
        look = line_look(k + 1, len(path))
        border = [withStroke(linewidth=4.0, foreground="white")]
        ax.plot(*path.T, path_effects=border, **look)
        ax.plot(*path[-1], marker="*", markersize=16, color=look["color"], markeredgecolor="white")
        label = legible(name, 24)
        if self.distances[name] > 0.01:
            label += f" (up to {100.0 * self.distances[name]:.0f} % off the slice)"
        return Line2D([], [], label=label, **look)

    def _draw_corners(self, ax: Axes) -> None:
        border = [withStroke(linewidth=3.0, foreground="white")]
        positions = ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0))
        for position, name in zip(positions, self.corner_names, strict=True):
            ax.plot(*position, marker="o", markersize=8, color="white", markeredgecolor="black")
            ax.annotate(
                legible(name, 16),
                position,
                xytext=(7, 7),
                textcoords="offset points",
                fontsize=LABEL_SIZE,
                fontweight="bold",
                color=PALETTE[-1],
                path_effects=border,
            )

    def _title(self) -> str:
        return "A slice through the cone of metrics"

    def _size(self) -> tuple[float, float]:
        return 8.4, 6.6


def _round_ticks(low: float, high: float) -> tuple[list[float], str]:
    """A few round numbers from low to high, and a format with as many decimals as they need.

    >>> _round_ticks(1.881, 17.43)
    ([4.0, 8.0, 12.0, 16.0], '%.0f')
    """
    ticks = MaxNLocator(nbins=5, steps=[1, 2, 4, 5, 10]).tick_values(low, high)
    decimals = max(0, -int(np.floor(np.log10(ticks[1] - ticks[0]) + 1e-9)))
    form = f"%.{decimals}f" if max(abs(low), abs(high)) < 1e5 else "%.4g"
    return [float(tick) for tick in ticks if low <= tick <= high], form


def _span(
    objective: MStepObjective, corners: Mapping[str, ArrayLike]
) -> tuple[tuple[str, str, str], FloatArray, FloatArray]:
    """The names, the origin A_0, and the directions A_1 - A_0, A_2 - A_0 as a (2, m, m) array."""
    if len(corners) != 3:
        raise ValueError(f"A slice is spanned by 3 matrices, but {len(corners)} were given.")
    first, second, third = corners
    matrices = [objective.check(A) for A in corners.values()]
    directions = np.array(matrices[1:]) - matrices[0]
    lengths = np.linalg.norm(directions, axis=(1, 2))
    if np.all(lengths > 0.0):
        cosine = float(np.sum(directions[0] * directions[1]) / np.prod(lengths))
        if abs(cosine) < 1.0 - 1e-12:
            return (first, second, third), matrices[0], directions
    cure = "choose another third one" if objective.pairs.n_features > 1 else "use SegmentDisplay"
    raise ValueError(
        f"The matrices {first!r}, {second!r} and {third!r} lie on one line, which spans no slice: "
        f"{cure}."
    )


def _project(path: FloatArray, origin: FloatArray, directions: FloatArray) -> FloatArray:
    """Project metrics to the slice, in the Frobenius norm: their coordinates."""
    basis = directions.reshape(2, -1).T
    moved = (path - origin).reshape(len(path), -1).T
    return np.asarray(np.linalg.lstsq(basis, moved, rcond=None)[0].T)


def _distance(
    path: FloatArray, origin: FloatArray, directions: FloatArray, positions: FloatArray
) -> float:
    moved = path - origin
    left = moved - np.tensordot(positions, directions, axes=1)
    size = float(np.max(np.linalg.norm(moved, axis=(1, 2))))
    return float(np.max(np.linalg.norm(left, axis=(1, 2)))) / size if size > 0.0 else 0.0


def _grid(positions: FloatArray, resolution: int) -> tuple[FloatArray, FloatArray]:
    """A grid of equal steps around all positions, and the lines through the corners."""
    low, high = positions.min(axis=0), positions.max(axis=0)
    room = MARGIN * (high - low)
    x, y = np.linspace(low - room, high + room, resolution).T
    return np.union1d(x, [0.0, 1.0]), np.union1d(y, [0.0, 1.0])
