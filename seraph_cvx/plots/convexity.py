"""Convexity to look at: the M-step's objective on a slice of the cone, and along a segment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm
from matplotlib.ticker import MaxNLocator, ScalarFormatter
from numpy.typing import ArrayLike

from ..model.m_step_objective import MStepObjective
from ..model.programs import SemiSupervisedObjective
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import check_metric
from .display import Display, Layout
from .style import (
    GRAY,
    LABEL_SIZE,
    PALETTE,
    SLIDE_WIDTH,
    draw_line,
    enlarge_text,
    legible,
    line_look,
    white_border,
    write,
)

CORNERS = ((0, 0), (1, 0), (0, 1))
"""Where the three metrics of a slice are."""
COLORS = "cividis"
N_LEVELS = 13
OUTSIDE = "#D9D9D9"
MARGIN = 0.3
"""The margin around the corners and paths, as a share of their extent."""
ROUNDING = 1e-9
"""How far above its chord a line still counts as below it, relative to the values."""


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

    Examples
    --------
    >>> import numpy as np
    >>> from seraph_cvx import MStepObjective, PairSet
    >>> from seraph_cvx.plots import SliceDisplay
    >>> pairs = PairSet.from_labels([[0.0, 1.0], [0.2, 3.0], [2.0, 2.0]], [0, 0, 1])
    >>> corners = {"0": np.zeros((2, 2)), "E": np.diag([1.0, 0.0]), "I": np.eye(2)}
    >>> paths = {"one step": [np.zeros((2, 2)), np.diag([3.0, 1.0])]}
    >>> display = SliceDisplay.from_result(MStepObjective(pairs), corners, paths, resolution=9)
    >>> display.paths["one step"][-1].round(6)
    array([2., 1.])
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
            Points per side of the grid, besides those through the corners, where the boundary of
            the cone may turn; f is evaluated at the square of it.
        """
        if resolution < 2:
            raise ValueError(f"resolution={resolution}: a grid has at least 2 points per side.")
        origin, directions = _span(objective, corners)
        positions: dict[str, FloatArray] = {}
        distances: dict[str, float] = {}
        for name, path in (paths or {}).items():
            moved = np.array([objective.check(A) - origin for A in path]).reshape(len(path), -1)
            basis = directions.reshape(2, -1)
            positions[name] = np.linalg.lstsq(basis.T, moved.T, rcond=None)[0].T
            off, size = (
                float(np.max(np.linalg.norm(part, axis=1)))
                for part in (moved - positions[name] @ basis, moved)
            )
            distances[name] = off / (size or 1.0)
        shown = np.vstack([CORNERS, *positions.values()])
        low, high = shown.min(axis=0), shown.max(axis=0)
        margin = MARGIN * (high - low)
        steps = np.linspace(low - margin, high + margin, resolution).T
        x, y = (np.union1d(along, [0.0, 1.0]) for along in steps)  # the corners are on the grid
        grid = origin + np.tensordot(np.stack(np.meshgrid(x, y), axis=-1), directions, axes=1)
        values = np.array([[objective.value(A) for A in row] for row in grid])
        eigenvalues = np.asarray(np.linalg.eigvalsh(grid)[:, :, 0], np.float64)
        first, second, third = corners
        return cls(x, y, values, eigenvalues, (first, second, third), positions, distances)

    def _draw(self, *axes: Axes) -> None:
        (ax,) = axes
        self._draw_values(ax)
        lowest = float(np.min(self.smallest_eigenvalues))
        if lowest < 0.0:
            where: Any = (self.x, self.y, self.smallest_eigenvalues)
            ax.contourf(*where, levels=[2.0 * lowest, 0.0], colors=[OUTSIDE])
            ax.contour(*where, levels=[0.0], colors=["black"], linewidths=2.5)
        ax.plot([], [], color="black", linewidth=2.5, label="boundary of the cone")
        ax.fill_between([], [], color=OUTSIDE, label="not PSD")
        names = [legible(name, 16) for name in self.corner_names]
        border = white_border(3.0)
        for corner, name in zip(CORNERS, names, strict=True):
            ax.plot(*corner, "o", markersize=8, color="white", markeredgecolor="black")
            write(ax, name, corner, (7, 7), size=LABEL_SIZE, weight="bold", path_effects=border)
        for k, (name, path) in enumerate(self.paths.items()):
            look, far = line_look(k + 1), 100.0 * self.distances[name]
            off = f" (up to {far:.0f} % off the slice)" if far > 1.0 else ""
            label = legible(name, 24) + off
            draw_line(ax, *path.T, path_effects=white_border(4.0), label=label, **look)
            ax.plot(*path[-1], "*", markersize=16, color=look["color"], markeredgecolor="white")
        ax.set(
            xlabel=f"position on the line from {names[0]} to {names[1]}",
            ylabel=f"position on the line from {names[0]} to {names[2]}",
            xlim=self.x[[0, -1]],
            ylim=self.y[[0, -1]],
        )

    def _draw_values(self, ax: Axes) -> None:
        """Draw filled contours, denser near the smallest value in the cone, as for a bowl."""
        size = float(np.max(np.abs(self.smallest_eigenvalues)))
        inside = self.values[self.smallest_eigenvalues >= -1e-12 * size]
        low, high = float(np.min(inside)), float(np.max(inside))
        levels = low + max(high - low, 1e-12 * abs(low)) * np.linspace(0.0, 1.0, N_LEVELS) ** 2
        colors = mpl.colormaps[COLORS].reversed()
        norm = BoundaryNorm(levels, colors.N)
        ax.contourf(
            self.x, self.y, self.values, levels=levels, cmap=colors, norm=norm, extend="both"
        )
        bar = self.figure_.colorbar(
            ScalarMappable(norm, colors),
            ax=ax,
            spacing="uniform",
            ticks=MaxNLocator(5, steps=[1, 2, 4, 5, 10]),
            format=ScalarFormatter(useOffset=False),
        )
        bar.minorticks_off()
        bar.set_label("f(A), eq. (11)")
        enlarge_text(bar.ax)

    def _layout(self) -> Layout:
        return Layout("A slice through the cone of metrics", 1, 1, 8.4, 6.6)


def _span(
    objective: MStepObjective, corners: Mapping[str, ArrayLike]
) -> tuple[FloatArray, FloatArray]:
    """The origin A_0, and the directions A_1 - A_0, A_2 - A_0 as a (2, m, m) array."""
    if len(corners) != 3:
        raise ValueError(f"A slice is spanned by 3 matrices, but {len(corners)} were given.")
    origin, *others = (objective.check(A) for A in corners.values())
    directions = np.array(others) - origin
    lengths = np.linalg.norm(directions, axis=(1, 2), keepdims=True)
    unit = (directions / np.where(lengths > 0.0, lengths, 1.0)).reshape(2, -1)
    if np.linalg.matrix_rank(unit, tol=1e-6) < 2:
        first, second, third = corners
        several = objective.pairs.n_features > 1
        cure = "choose another third one" if several else "use SegmentDisplay"
        raise ValueError(
            f"The matrices {first!r}, {second!r} and {third!r} lie on one line, which spans no "
            f"slice: {cure}."
        )
    return origin, directions


@dataclass(eq=False)
class SegmentDisplay(Display):
    """Show the M-step's function between two metrics, below its chord.

    t -> f(A_0 + t(A_1 - A_0)) of eq. (11), below its chord; and (7), which need not be.

    Parameters
    ----------
    positions : (k,) array
        t, from 0 to 1.
    convex_values, paper_values : (k,) arrays
        f of the M-step and the objective (7), both as minimizations.

    Examples
    --------
    >>> from seraph_cvx import MStepObjective, PairSet
    >>> from seraph_cvx.plots import SegmentDisplay
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> display = SegmentDisplay.from_result(MStepObjective(pairs), [[0.0]], [[3.0]]).plot()
    >>> display.excess(display.convex_values) <= 1e-12
    True
    """

    positions: FloatArray
    convex_values: FloatArray
    paper_values: FloatArray

    @classmethod
    def from_result(
        cls, objective: MStepObjective, start: ArrayLike, end: ArrayLike, n_points: int = 101
    ) -> Self:
        """Evaluate f and (7) at `n_points` equal steps from A_0 to A_1.

        Parameters
        ----------
        objective : MStepObjective
            Gives f, and (7) of the same pairs and weights.
        start, end : (m, m) array_like
            A_0 and A_1, positive semidefinite.
        n_points : int
            At least 2.
        """
        m = objective.pairs.n_features
        A, B = check_metric(start, m, "start"), check_metric(end, m, "end")
        if n_points < 2:
            raise ValueError(f"n_points={n_points}: a segment has at least its two ends.")
        paper = SemiSupervisedObjective(objective)
        positions = np.linspace(0.0, 1.0, n_points)
        matrices = [A + t * (B - A) for t in positions]
        values = (np.array([f.value(A) for A in matrices]) for f in (objective, paper))
        return cls(positions, *values)

    def chord(self, values: FloatArray) -> FloatArray:
        """The chord (1 - t) g(0) + t g(1), which is never below a convex function g.

        Examples
        --------
        >>> import numpy as np
        >>> values = np.array([1.0, 0.0, 3.0])
        >>> SegmentDisplay(np.array([0.0, 0.5, 1.0]), values, values).chord(values)
        array([1., 2., 3.])
        """
        return np.asarray((1.0 - self.positions) * values[0] + self.positions * values[-1])

    def excess(self, values: FloatArray) -> float:
        """The most that g exceeds its chord, relative to the largest |g|: at most 0 if g is convex.

        Examples
        --------
        >>> import numpy as np
        >>> values = np.array([0.0, 2.0, 0.0])
        >>> SegmentDisplay(np.array([0.0, 0.5, 1.0]), values, values).excess(values)
        1.0
        """
        above = float(np.max(values - self.chord(values)))
        return above / max(float(np.max(np.abs(values))), np.finfo(np.float64).tiny)

    def _draw(self, *axes: Axes) -> None:
        t = self.positions
        for ax, values, color, name, y_label in (
            (axes[0], self.convex_values, PALETTE[0], "M-step (11)", "f(A), eq. (11)"),
            (axes[1], self.paper_values, PALETTE[1], "Objective (7)", "objective (7)"),
        ):
            chord, verdict = self.chord(values), "below its chord"
            ax.plot(t, chord, color=GRAY, linestyle="--", linewidth=2, label="chord")
            ax.plot(t, values, color=color, linewidth=2.5)
            ax.plot(t[[0, -1]], values[[0, -1]], "o", color=color, markersize=8)
            if self.excess(values) > ROUNDING:
                verdict = "above its chord"
                ax.fill_between(
                    t,
                    chord,
                    values,
                    where=values > chord,
                    color=PALETTE[4],
                    alpha=0.5,
                    linewidth=0,
                    label="above the chord: not convex",
                )
            ax.set(title=f"{name}: {verdict}", ylabel=y_label)
            ax.set_xlabel("t, from A₀ (left) to A₁ (right)")
            ax.grid(alpha=0.3)

    def _layout(self) -> Layout:
        return Layout("Along the segment A₀ + t(A₁ − A₀)", 1, 2, SLIDE_WIDTH, 4.6)
