"""One M-step (11), many solvers, one referee."""
