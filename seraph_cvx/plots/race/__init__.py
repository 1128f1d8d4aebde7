"""The pictures of a race between solvers."""
