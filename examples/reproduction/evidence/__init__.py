"""What the programs of this folder are made of; they import seraph_cvx, which needs none of it."""
