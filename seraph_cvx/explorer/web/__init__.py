"""The page in a browser: who is served, by what, and the part that runs there."""
