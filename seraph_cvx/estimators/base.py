"""What SERAPH and its relatives share: the parameters, and the learning from pairs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ..certificate import Certificate
from ..certificate.sampling import certify_in_full
from ..fit.alternation import Iteration, run_alternation
from ..fit.direct import minimise_directly
from ..m_step.solve import MStepSolver
from ..model.posterior import posterior_similar
from ..numerics.arrays import to_host
from ..numerics.checks import FloatArray, check_number
from ..pairs.labeled_pairs import ClassLabels
from ..pairs.pair_set import PairSet
from ..penalties.manifold import manifold_term
from ..penalties.penalty import Penalty
from ..solvers.not_certified import NotCertified
from ..solvers.solution import Status
from .evidence import describe_features, leave_one_out
from .mahalanobis import MahalanobisTransformer
from .settings import RECOMMENDED, Setting, find_setting

MODERATE = 1e60
"""The fourth power of a spread up to this, and of its inverse, is a number."""


class BaseSERAPH(MahalanobisTransformer):
    """The parameters of SERAPH, and the learning itself, for whatever gives the pairs."""

    def __init__(
        self,
        unlabeled_weight: float | str = RECOMMENDED.unlabeled_weight,
        trace_weight: float | str = RECOMMENDED.trace_weight,
        threshold: float = 1.0,
        sharpness: float | None = RECOMMENDED.sharpness,
        algorithm: str = "em",
        solver: Any = "fista",
        tol: float = 1e-6,
        m_step_tol: float = 1e-8,
        max_iter: int | None = None,
        n_components: int | None = None,
        allow_unattained: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
        laplacian_weight: float = 0.0,
        laplacian_neighbors: int = 7,
        laplacian_kernel: str = "heat",
        laplacian_normalised: bool = False,
        identity_share: float | str = RECOMMENDED.identity_share,
        setting: str | None = None,
        unlabeled_pairs: int | None = None,
        accelerate: bool = True,
        penalties: Sequence[Penalty] = (),
        reference: str = RECOMMENDED.reference,
        correlation_weight: float | str = RECOMMENDED.correlation_weight,
    ) -> None:
        self.unlabeled_weight = unlabeled_weight
        self.trace_weight = trace_weight
        self.threshold = threshold
        self.sharpness = sharpness
        self.algorithm = algorithm
        self.solver = solver
        self.tol = tol
        self.m_step_tol = m_step_tol
        self.max_iter = max_iter
        self.n_components = n_components
        self.allow_unattained = allow_unattained
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.laplacian_weight = laplacian_weight
        self.laplacian_neighbors = laplacian_neighbors
        self.laplacian_kernel = laplacian_kernel
        self.laplacian_normalised = laplacian_normalised
        self.identity_share = identity_share
        self.setting = setting
        self.unlabeled_pairs = unlabeled_pairs
        self.accelerate = accelerate
        self.penalties = penalties
        self.reference = reference
        self.correlation_weight = correlation_weight

    def predict_pair_proba(self, pairs: ArrayLike) -> FloatArray:
        """The probability that each pair is similar, eq. (8).

        p(+1 | x, x') = 1 / (1 + exp(||x - x'||_A^2 - eta)).

        Parameters
        ----------
        pairs : (k, 2, m) array_like

        Returns
        -------
        (k,) array
            The probability that the two points are of one class under the learned A, whole as it
            is (`n_components` and `identity_share` do not enter). p(-1) is one minus it.
        """
        check_is_fitted(self)
        V = self._pair_differences(pairs)
        squares = np.einsum("ki,ij,kj->k", V, self.m_step_metric_, V)
        return np.asarray(posterior_similar(squares - self.threshold))

    def _learn(self, pairs: PairSet) -> list[Warning]:
        """Fit the metric to the pairs; return what `fit` should warn of, as it was not reached."""
        if self.algorithm not in ("em", "direct"):
            raise ValueError(f'algorithm={self.algorithm!r} is not known: use "em" or "direct".')
        blocks = self._check_penalties()
        if self.algorithm == "direct":
            _refuse_spread(pairs.points)
        nu = check_number(self.laplacian_weight, "laplacian_weight", 0.0)
        term = None
        if nu > 0.0:
            term = manifold_term(
                pairs.points,
                nu,
                self.laplacian_neighbors,
                self.laplacian_kernel,
                self.laplacian_normalised,
            )
        if self.unlabeled_pairs is not None:
            pairs = pairs.sampled(self.unlabeled_pairs, self.random_state)
        chosen = self._chosen()
        first = chosen.first_m_step(
            pairs, self.algorithm, self.threshold, term, self.n_jobs, blocks
        )
        if self.algorithm == "direct":
            direct = minimise_directly(
                pairs,
                unlabeled_weight=first.mu,
                trace_weight=first.trace_weight,
                threshold=self.threshold,
                tol=self.tol,
                max_iter=5_000 if self.max_iter is None else self.max_iter,
                n_jobs=self.n_jobs,
                manifold_term=first.manifold_term,
                penalties=first.penalties,
            )
            self.sampling_ = None
            self._keep(direct.metric, None, direct.values, direct.iterations, direct.status)
            self._mix(direct.metric, pairs)
            return [NotCertified(direct.message)] if direct.message else []
        run = run_alternation(
            first,
            MStepSolver(self.solver, allow_unattained=self.allow_unattained),
            tol=self.tol,
            m_step_tol=self.m_step_tol,
            max_iter=500 if self.max_iter is None else self.max_iter,
            callback=_show if self.verbose else None,
            accelerate=self.accelerate,
        )
        if run.metric is None:
            raise RuntimeError(run.message)
        certificate, status, message = run.m_step.certificate, run.status, run.message
        self.sampling_ = None
        if pairs.drawn is not None:
            self.sampling_ = certify_in_full(run.objective, run.metric, self.m_step_tol)
            certificate = self.sampling_.certificate
            if status is Status.CERTIFIED and certificate.relative_gap > self.m_step_tol:
                status, message = Status.INACCURATE, self._gap_of_sample(certificate.relative_gap)
        self._keep(run.metric, certificate, run.history, len(run.history), status)
        self._mix(run.metric, pairs)
        return [NotCertified(message)] if message else []

    def _mix(self, metric: FloatArray, pairs: PairSet) -> None:
        """Keep the learned metric with its share of the reference."""
        self._keep_metric(self._chosen().metric_of(metric, pairs, self.threshold))

    def _judge(self, pairs: PairSet) -> None:
        """Keep what the labels and features at hand say about the fit."""
        labels = pairs.labels
        self.leave_one_out_ = None
        if isinstance(labels, ClassLabels):
            self.leave_one_out_ = leave_one_out(
                pairs.points[labels.members], labels.classes, self.metric_
            )
        self.data_notes_ = describe_features(pairs.points, getattr(self, "feature_names_in_", None))

    def _check_penalties(self) -> tuple[Penalty, ...]:
        """The penalties as a tuple of blocks."""
        if not isinstance(self.penalties, list | tuple):
            raise TypeError(
                f"penalties={self.penalties!r} is no list of penalties: write them in a list, as "
                "in penalties=[Ridge(0.1)]."
            )
        return tuple(self.penalties)

    def _gap_of_sample(self, full_gap: float) -> str:
        """Say that the gap over all pairs is wider than was asked for."""
        return (
            f"Learned from {self.unlabeled_pairs} unlabeled pairs: over all pairs the certified "
            f"relative gap is {full_gap:.2g}, more than m_step_tol={self.m_step_tol:.2g}. Draw "
            "more pairs for a smaller one, or set m_step_tol to what is enough."
        )

    def _keep_labeled(self, pairs: PairSet, y: ArrayLike | None) -> None:
        """Keep the points of known class with their labels, by which others can be classified."""
        self.labeled_points_ = self.labels_ = None
        if y is not None and isinstance(pairs.labels, ClassLabels):
            known = pairs.labels.members
            labels = np.ravel(np.asarray(to_host(y)))[known]
            self.labeled_points_ = pairs.points[known]
            self.labels_ = labels if labels.dtype.kind in "biuf" else labels.astype(object)

    def _chosen(self) -> Setting:
        """What the four parameters say, or the setting where one is named."""
        if self.setting is not None:
            return find_setting(self.setting)
        return Setting(
            self.unlabeled_weight,
            self.trace_weight,
            self.sharpness,
            self.identity_share,
            self.reference,
            self.correlation_weight,
        )

    def _keep(
        self,
        metric: FloatArray,
        certificate: Certificate | None,
        history: list[Any],
        n_iter: int,
        status: Status,
    ) -> None:
        self.m_step_metric_ = metric
        self.threshold_ = float(
            np.sqrt(self.threshold)
        )  # a pair at this distance is as likely as not
        self.certificate_ = certificate
        self.history_ = history
        self.n_iter_ = n_iter
        self.status_ = status


def _refuse_spread(points: FloatArray) -> None:
    spread = float(np.max(np.ptp(points, axis=0)))
    if spread and not 1.0 / MODERATE <= spread <= MODERATE:
        raise ValueError(
            f'algorithm="direct" works in the unit of the features; their spread {spread:.2g} has '
            'a fourth power that is no number: divide X by a constant, or use algorithm="em".'
        )


def _show(iteration: Iteration, metric: FloatArray) -> None:
    gap = "" if np.isinf(iteration.relative_gap) else f", gap {iteration.relative_gap:.1e}"
    sys.stderr.write(
        f"[SERAPH] iteration {iteration.number}, {iteration.kind}: "
        f"J = {iteration.descent_value:.8g}, rank {iteration.rank}{gap}\n"
    )
