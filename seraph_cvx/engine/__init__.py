"""Sums over all pairs of points: by threads, on a device, on a cluster, or of a sample."""
