"""The M-step (11): its CVXPY statements, many solvers, one certificate."""
