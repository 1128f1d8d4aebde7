"""The points and the names of the instances in the library."""
