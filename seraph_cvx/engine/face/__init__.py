"""Passes over all pairs of points at a factor of the metric, strip by strip."""
