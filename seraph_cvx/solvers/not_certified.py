"""The warning of a result that is less accurate than was asked for.

It has its own file because it is a kind of scikit-learn's `ConvergenceWarning`: scikit-learn
is imported where the warning is issued or named, and not by ``import seraph_cvx``.
"""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning


class NotCertified(ConvergenceWarning):  # type: ignore[misc]
    """The result has a larger duality gap, or is less stationary, than was asked for.

    Examples
    --------
    >>> import warnings
    >>> from seraph_cvx import MStepObjective, NotCertified, PairSet, solve_m_step
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", NotCertified)  # an error, not a warning
    ...     solve_m_step(MStepObjective(pairs), max_iter=1)
    Traceback (most recent call last):
    ...
    seraph_cvx.solvers.not_certified.NotCertified: M-step by newton: iteration_limit ...
    """
