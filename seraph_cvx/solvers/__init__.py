"""Minimization over the cone of PSD matrices: Newton on a factor, gradient steps, stopping."""
