"""Pictures of experiments: Figures 1 to 3 of the paper, and mean ranks of methods."""
