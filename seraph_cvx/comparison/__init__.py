"""Solvers raced against a referee that trusts none of them, and instances for their authors."""
