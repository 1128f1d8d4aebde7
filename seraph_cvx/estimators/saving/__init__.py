"""Saves models to files, without pickle."""
