"""Races between solvers, graded independently of them, and instances to export."""
