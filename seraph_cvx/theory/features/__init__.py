"""Claims on other features of the distance."""
