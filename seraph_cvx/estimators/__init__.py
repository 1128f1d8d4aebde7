"""SERAPH and its relatives as scikit-learn estimators."""
