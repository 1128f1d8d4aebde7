"""Claims on the model: maximum entropy, its dual, posterior regularization."""
