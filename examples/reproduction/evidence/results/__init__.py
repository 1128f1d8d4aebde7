"""The results of the runs: tables, figures, and whether they are as good as the paper's."""
