"""`seraph-cvx bench`: our speed, and how good the defaults are."""
