"""Choosing parameters by cross-validation on labeled points."""
