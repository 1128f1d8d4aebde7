"""Sums over pairs on the device of a user's array."""
