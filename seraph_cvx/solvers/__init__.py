"""Minimization over the cone of PSD matrices: first-order methods, Newton on a face, stopping."""
