"""Every picture, drawn from results, never computing them."""

from .fit import plot_fit
from .path import plot_path

__all__ = ["plot_fit", "plot_path"]
