"""Claims on the two kinds of sparsity."""
