"""SERAPH and its relatives: the scikit-learn face."""
