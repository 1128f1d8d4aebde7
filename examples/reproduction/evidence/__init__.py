"""Measurements: our own speed, and the paper's Section 5."""
