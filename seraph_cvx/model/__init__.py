"""The paper's functions: the posterior (8), soft labels (10), the M-step (11), (7) and J."""
