"""What SERAPH and its relatives share: the parameters, and the learning from pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..certificate import Certificate
from ..fit.alternation import Iteration, run_alternation
from ..fit.direct import minimize_directly
from ..m_step.solve import MStepSolver
from ..model.m_step_objective import MStepObjective
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
from .outcome import describe_outcome
from .reference import matching_threshold
from .settings import RECOMMENDED, Setting, find_setting
from .watching import FitWatch, watched

if TYPE_CHECKING:
    from ..certificate.sampling import SamplingReport

CONIC: dict[str, Callable[[Any], bool]] = {
    "solver_options": bool,
    "polish": bool,
    "formulation": lambda formulation: formulation != "primal",
}
"""What is passed to conic solvers alone, and whether a value of it asks for something."""

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
        time_limit: float | None = None,
        callback: Callable[[Iteration, FloatArray], object] | None = None,
        on_interrupt: str = "raise",
        solver_options: Mapping[str, Any] | None = None,
        formulation: str = "primal",
        polish: bool = False,
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
        self.time_limit = time_limit
        self.callback = callback
        self.on_interrupt = on_interrupt
        self.solver_options = solver_options
        self.formulation = formulation
        self.polish = polish

    def predict_pair_proba(self, pairs: ArrayLike) -> FloatArray:
        """The probability that each pair is similar, eq. (8) with the distance of `pair_distance`.

        p(+1 | x, x') = 1 / (1 + exp(d(x, x')^2 - t^2)), t = `threshold_`.

        It is at least 1/2 where `predict_pairs` says +1, and only there. With identity_share=0 this
        is p of the paper's model, with A and eta.

        Parameters
        ----------
        pairs : (k, 2, m) array_like
        """
        return similar_probability(self.pair_distance(pairs), self.threshold_)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        """What notebooks show: scikit-learn's box and, once fitted, a card beside it."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:
            bundle["text/html"] = self._with_card(bundle["text/html"])
        return bundle

    def _repr_html_inner(self) -> str:
        """What `_repr_html_` shows, where scikit-learn draws its box at all."""
        return self._with_card(super()._repr_html_inner())

    def _with_card(self, box: str) -> str:
        from ..display.fit_cards import estimator_card
        from ..display.notebook import beside

        return beside(box, estimator_card(self)) if hasattr(self, "status_") else box

    def _learn(self, pairs: PairSet) -> list[Warning]:
        """Fit the metric to the pairs; return what `fit` should warn of, as it was not reached."""
        if self.algorithm not in ("em", "direct"):
            raise ValueError(f'algorithm={self.algorithm!r} is not known: use "em" or "direct".')
        blocks = self._check_penalties()
        if self.algorithm == "direct":
            self._refuse_settings_of_em()
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
        self.sampling_: SamplingReport | None = None
        with watched(self.verbose, self.callback, self.on_interrupt) as watch:
            learn = self._descend if self.algorithm == "direct" else self._alternate
            message = learn(first, watch)
            watch.end(self.status_, self.n_iter_)
        self._mix(self.m_step_metric_, pairs)
        warnings: list[Warning] = [NotCertified(message)] if message else []
        if self.status_.reached_tolerance:
            doubt = describe_outcome(first, self.metric_)
            warnings += [UserWarning(doubt)] if doubt else []
        return warnings

    def _descend(self, first: MStepObjective, watch: FitWatch) -> str:
        """Descend (7) itself; return what was not reached, in words."""
        direct = minimize_directly(
            first.pairs,
            unlabeled_weight=first.mu,
            trace_weight=first.trace_weight,
            threshold=self.threshold,
            tol=self.tol,
            max_iter=5_000 if self.max_iter is None else self.max_iter,
            n_jobs=self.n_jobs,
            manifold_term=first.manifold_term,
            penalties=first.penalties,
            time_limit=self.time_limit,
            watch=watch.step,
        )
        self._keep(direct.metric, None, direct.values, direct.iterations, direct.status)
        return direct.message

    def _alternate(self, first: MStepObjective, watch: FitWatch) -> str:
        """Alternate from the first M-step on; return what was not reached, in words."""
        pairs = first.pairs
        solver = MStepSolver(
            self.solver,
            formulation=self.formulation,
            solver_options=self.solver_options,
            polish=self.polish,
            allow_unattained=self.allow_unattained,
            watch=watch.step,
        )
        for name, is_given in CONIC.items():
            if is_given(getattr(self, name)):
                solver.require_conic_for(name)
        run = run_alternation(
            first,
            solver,
            tol=self.tol,
            m_step_tol=self.m_step_tol,
            max_iter=500 if self.max_iter is None else self.max_iter,
            callback=watch.iteration,
            accelerate=self.accelerate,
            time_limit=self.time_limit,
        )
        if run.metric is None:
            raise RuntimeError(run.message)
        certificate, status, message = run.m_step.certificate, run.status, run.message
        if pairs.drawn is not None:
            from ..certificate.sampling import certify_in_full

            report = certify_in_full(run.objective, run.metric, self.m_step_tol)
            self.sampling_, certificate = report, report.certificate
            if status is Status.CERTIFIED and certificate.relative_gap > self.m_step_tol:
                status, message = Status.INACCURATE, self._gap_of_sample(certificate.relative_gap)
        self._keep(run.metric, certificate, run.history, len(run.history), status)
        return "" if status.reached_tolerance else message

    def _mix(self, metric: FloatArray, pairs: PairSet) -> None:
        """Keep the learned metric with its share of the reference, and a threshold for it."""
        self._keep_metric(self._chosen().metric_of(metric, pairs, self.threshold))
        self.threshold_ = matching_threshold(pairs.points, metric, self.metric_, self.threshold)

    def _judge(self, pairs: PairSet) -> None:
        """Keep what the labels and features at hand say about the fit."""
        labels = pairs.labels
        self.leave_one_out_ = None
        if isinstance(labels, ClassLabels):
            self.leave_one_out_ = leave_one_out(
                pairs.points[labels.members], labels.classes, self.metric_
            )
        self.data_notes_ = describe_features(pairs.points, getattr(self, "feature_names_in_", None))

    def _refuse_settings_of_em(self) -> None:
        """Refuse what only the M-steps of algorithm="em" know."""
        for name, is_given in {**CONIC, "callback": bool}.items():
            if is_given(getattr(self, name)):
                raise ValueError(
                    f'{name} is for the M-steps of algorithm="em"; algorithm="direct" has none: '
                    "leave it out."
                )

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
        """The setting that is named, or else the one that the parameters for weights describe."""
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


def similar_probability(distances: FloatArray, threshold: float) -> FloatArray:
    """The probability of (8) that pairs at these distances are similar; 1/2 at the threshold.

    Below a negative threshold there is no distance, and no probability is as large as 1/2.

    Examples
    --------
    >>> similar_probability(np.array([0.0, 1.0, 2.0]), 1.0).round(3)
    array([0.731, 0.5  , 0.047])
    """
    scores = (distances - threshold) * (distances + abs(threshold))  # the sign is exact
    return np.asarray(posterior_similar(scores))
