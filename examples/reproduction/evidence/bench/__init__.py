"""Measurements of our own speed."""
