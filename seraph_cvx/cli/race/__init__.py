"""The commands about the race of solvers: `compare` and `export`."""
