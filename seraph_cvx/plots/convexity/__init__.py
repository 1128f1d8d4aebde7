"""Pictures of convexity and duality: a segment, a slice through the cone, the two bounds."""
