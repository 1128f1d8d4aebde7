"""The command about the exercises: `check-exercise`."""
