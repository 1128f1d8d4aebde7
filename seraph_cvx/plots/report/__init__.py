"""The HTML report of a fit."""
