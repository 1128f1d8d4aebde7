"""Runs of Section 5: methods, cells, in parallel and resumable."""
