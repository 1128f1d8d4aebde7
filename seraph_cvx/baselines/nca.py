"""Neighborhood components analysis (NCA), by scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NeighborhoodComponentsAnalysis

from ..numerics.checks import encode_labels
from ..numerics.psd_cone import symmetrize
from ..pairs.pair_set import PairSet
from .rival import Rival


class NCA(Rival):
    """Maximize the expected accuracy of a stochastic nearest-neighbor rule (NCA).

    max_L sum_i p_i, p_i = sum_{j: y_j = y_i} e^{-||L(x_i - x_j)||^2} / sum_{j != i} of the same.

    Goldberger, Roweis, Hinton and Salakhutdinov, "Neighborhood components analysis", NIPS 2004:
    the expected leave-one-out accuracy of a stochastic nearest-neighbor rule. The sums run over
    the points of known class; the others are not used, and constraints on pairs are an error.
    A = L'L with L square, found by :class:`sklearn.neighbors.NeighborhoodComponentsAnalysis`; the
    objective is not concave, so A is a local optimum that depends on `init`.

    Parameters
    ----------
    n_components : int, optional
        Rows of `components_`: the widest directions of A, which is always m x m. (It is not
        scikit-learn's parameter of that name, which makes L itself smaller.)
    init, max_iter, tol, random_state
        As in scikit-learn; a square L starts from the identity by default.

    Attributes
    ----------
    metric_, components_, n_features_in_
        See :class:`~seraph_cvx.estimators.mahalanobis.MahalanobisTransformer`.
    n_iter_ : int
        As scikit-learn counts. When `max_iter` ends the search, scikit-learn is silent;
        this class issues a ConvergenceWarning.

    Examples
    --------
    >>> X = [[0.0, 0.1], [0.1, 2.3], [2.0, 0.2], [2.1, 2.0], [0.2, 1.2], [1.9, 1.0]]
    >>> model = NCA().fit(X, [0, 0, 1, 1, -1, -1])
    >>> near, far = model.pair_distance([[X[0], X[1]], [X[0], X[2]]])
    >>> bool(near < far)
    True
    """

    _refusal = (
        "NCA learns from the classes of points and cannot use `similar` and "
        "`dissimilar`: give class labels y alone, or use LDM, MFDA, GDM or ITML."
    )

    def __init__(
        self,
        n_components: int | None = None,
        init: Any = "auto",
        max_iter: int = 200,
        tol: float = 1e-5,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _learn(self, pairs: PairSet, y: ArrayLike | None) -> list[Warning]:
        known, classes = encode_labels(np.asarray(y).reshape(-1), pairs.n_points)
        if not len(pairs.dissimilar):
            raise ValueError(
                f"All {len(known)} points of known class are of one class: NCA has nothing to tell "
                "apart. Give the class of points of at least two classes."
            )
        nca = NeighborhoodComponentsAnalysis(
            init=self.init,
            max_iter=self.max_iter,
            tol=self.tol,
            random_state=self.random_state,
        ).fit(pairs.points[known], classes)
        self.n_iter_ = int(nca.n_iter_)
        self._keep_metric(symmetrize(nca.components_.T @ nca.components_))
        if self.n_iter_ <= self.max_iter:  # scikit-learn counts the start as the first
            return []
        return [
            ConvergenceWarning(
                f"NCA stopped after max_iter={self.max_iter} iterations: raise max_iter or tol."
            )
        ]
