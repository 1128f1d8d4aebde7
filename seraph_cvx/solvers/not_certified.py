"""The warning of a result that is less accurate than was asked for.

It has its own file because it is a kind of scikit-learn's `ConvergenceWarning`: scikit-learn
is imported where the warning is issued or named, and not by ``import seraph_cvx``.
"""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning


class NotCertified(ConvergenceWarning):  # type: ignore[misc]
    """The returned result has a larger duality gap, or is less stationary, than was asked for."""
