"""Whole fits: the alternation of E-steps and M-steps, direct descent, regularization paths."""
