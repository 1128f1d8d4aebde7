"""Claims on the algorithm: convexity, gradients, duality, descent, complexity."""
