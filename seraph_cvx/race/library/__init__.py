"""A library of M-steps from easy to nasty, each with a proven interval of its optimal value."""
