"""Sums over all pairs of points: by threads, on a device, or of a sample."""
