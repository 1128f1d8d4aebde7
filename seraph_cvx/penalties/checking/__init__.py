"""What :func:`seraph_cvx.penalties.check_penalty` tests, and at which matrices."""
