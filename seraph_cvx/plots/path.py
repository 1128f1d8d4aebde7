"""A regularisation path: rank, trace and objective as the trace weight falls."""

from __future__ import annotations

import os

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ..path import SeraphPath
from .style import GREY, PALETTE, new_figure

SEEN = 1e-6
"""Eigenvalues below this share of the largest on the path are not drawn."""


def plot_path(
    path: SeraphPath, file: str | os.PathLike[str] | None = None, title: str = ""
) -> Figure:
    """Draw the eigenvalues of A(lambda), its rank, and f with its certified gap, against lambda.

    Parameters
    ----------
    path : SeraphPath
        Of :func:`seraph_cvx.seraph_path`.
    file : path, optional
        Also save the picture here; the ending chooses the format.
    title : str

    Returns
    -------
    matplotlib.figure.Figure
        Three panels; lambda falls from left to right, as the path was walked.

    Examples
    --------
    >>> from seraph_cvx import PairSet, seraph_path
    >>> from seraph_cvx.plots import plot_path
    >>> X = [[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0], [0.2, 5.0], [1.9, 4.0]]
    >>> path = seraph_path(PairSet.from_labels(X, [0, 0, 1, 1, -1, -1]), n_weights=5)
    >>> [ax.get_title() for ax in plot_path(path).axes]
    ['Eigenvalues of the metric', 'Its rank', 'Certified gap']
    """
    figure = new_figure(12, 4.0, title or "Regularisation path")
    spectrum, rank, gap = figure.subplots(1, 3)
    weights = path.trace_weights
    eigenvalues = np.array([np.linalg.eigvalsh(metric)[::-1] for metric in path.metrics])
    seen = eigenvalues > SEEN * max(float(eigenvalues.max()), np.finfo(np.float64).tiny)
    for k in range(int(seen.any(axis=0).sum())):
        spectrum.plot(
            weights[seen[:, k]],
            eigenvalues[seen[:, k], k],
            color=PALETTE[k % len(PALETTE)],
            marker="o",
            markersize=4,
        )
    spectrum.set_title("Eigenvalues of the metric")
    spectrum.set_ylabel("eigenvalue of A")
    spectrum.set_yscale("log")
    rank.step(weights, path.ranks, where="mid", color=PALETTE[0], linewidth=2)
    rank.plot(weights, path.ranks, "o", color=PALETTE[0], markersize=4)
    rank.set_title("Its rank")
    rank.set_ylabel("rank of A")
    rank.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=6, min_n_ticks=1))
    gaps = [max(point.certificate.relative_gap, 1e-12) for point in path]
    gap.plot(weights, gaps, color=PALETTE[1], marker="s", markersize=4)
    gap.set_title("Certified gap")
    gap.set_ylabel("relative duality gap")
    gap.set_yscale("log")
    for ax in (spectrum, rank, gap):
        if np.all(weights > 0.0):
            ax.set_xscale("log")
        ax.invert_xaxis()
        ax.axvline(path.critical_trace_weight, color=GREY, linestyle=":", linewidth=1.5)
        ax.set_xlabel("trace weight (dotted: the critical one)")
        ax.grid(alpha=0.3)
    if file is not None:
        figure.savefig(file)
    return figure
