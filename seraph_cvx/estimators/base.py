"""What SERAPH and its relatives share: the parameters, and the learning from pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ..engine.distances import Factor, as_factor
from ..engine.passes import OutOfTime
from ..fit.alternation import SECONDS_TO_FINISH, Iteration, run_alternation
from ..m_step.solve import MStepSolver, warn_of_new_meaning
from ..model.m_step_objective import MStepObjective
from ..model.posterior import posterior_similar
from ..numerics.arrays import to_host
from ..numerics.checks import FloatArray, check_number
from ..numerics.psd_cone import numerical_rank
from ..pairs.labeled_pairs import ClassLabels
from ..pairs.pair_set import PairSet
from ..solvers.not_certified import NotCertified
from ..solvers.solution import Status
from .evidence import LeaveOneOut, describe_features, describe_outcome, leave_one_out
from .mahalanobis import MahalanobisTransformer
from .settings import RECOMMENDED, Setting, find_setting, matching_threshold

if TYPE_CHECKING:
    from ..certificate import Certificate
    from ..certificate.sampling import SamplingReport
    from ..penalties.penalty import Penalty
    from .watching import FitWatch

CONIC: dict[str, tuple[Any, ...]] = {
    "solver_options": (None, {}),
    "polish": (False,),
    "formulation": ("primal",),
}
"""What is passed to conic solvers alone, and the values by which it is not."""

MODERATE = 1e60
"""The fourth power of a spread up to this, and of its inverse, is a number."""


@dataclass(eq=False, repr=False)
class Weights:
    """The weights of SERAPH's objective, which SERAPHCV chooses itself."""

    unlabeled_weight: float | str = RECOMMENDED.unlabeled_weight
    trace_weight: float | str = RECOMMENDED.trace_weight


@dataclass(eq=False, repr=False)
class FitParameters:
    """The parameters that SERAPH, its relatives and SERAPHCV have in common."""

    threshold: float = 1.0
    sharpness: float | None = RECOMMENDED.sharpness
    algorithm: str = "em"
    solver: Any = "newton"
    tol: float = 1e-6
    m_step_tol: float = 1e-8
    max_iter: int | None = None
    n_components: int | None = None
    allow_unattained: bool = False
    n_jobs: int | None = None
    verbose: int = 0
    random_state: Any = None
    laplacian_weight: float = 0.0
    laplacian_neighbors: int = 7
    laplacian_kernel: str = "heat"
    laplacian_normalised: bool = False
    identity_share: float | str = RECOMMENDED.identity_share
    unlabeled_pairs: int | None = None
    accelerate: bool = True
    penalties: Sequence[Penalty] = ()
    reference: str = RECOMMENDED.reference
    correlation_weight: float | str = RECOMMENDED.correlation_weight
    time_limit: float | None = None
    callback: Callable[[Iteration, FloatArray], object] | None = None
    on_interrupt: str = "raise"
    solver_options: Mapping[str, Any] | None = None
    formulation: str = "primal"
    polish: bool = False

    def _warn_of_solver(self, stacklevel: int) -> None:
        """Warn where the name of the solver, if one is used, has a new meaning."""
        if self.algorithm != "direct":
            warn_of_new_meaning(self.solver, stacklevel=stacklevel + 1)

    def _manifold_term(self, points: FloatArray) -> FloatArray | None:
        nu = check_number(self.laplacian_weight, "laplacian_weight", 0.0)
        if nu == 0.0:
            return None
        from ..penalties import manifold_term

        graph = self.laplacian_neighbors, self.laplacian_kernel, self.laplacian_normalised
        return manifold_term(points, nu, *graph)


@dataclass(eq=False, repr=False)
class Parameters(FitParameters, Weights):  # Weights are the first fields
    """The parameters of SERAPH; apart from scikit-learn's classes, or mypy would accept any."""

    setting: str | None = None


class BaseSERAPH(Parameters, MahalanobisTransformer):
    """The learning itself, for whatever gives the pairs."""

    _follows_units = True  # the trace penalty does
    table_: dict[str, Any]

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        similar: ArrayLike | None = None,
        dissimilar: ArrayLike | None = None,
        similar_confidence: ArrayLike | None = None,
        dissimilar_confidence: ArrayLike | None = None,
    ) -> Self:
        """Learn the metric from X and class labels, constraints on pairs, or both.

        Parameters
        ----------
        X : (n, m) array_like
            An array of another library than NumPy (torch, CuPy, ...) has the sums over unlabeled
            pairs made by that library, on its device; what is learned is NumPy arrays in any case.
        y : (n,) array_like, optional
            Class labels; unknown are -1, NaN, None and pandas' NA.
        similar, dissimilar : (k, 2) array_like of int, optional
            Constraints: rows (i, j) of indices into X. They are indices into *this* X: where
            cross-validation removes rows they would refer to other points, so cross-validate
            constraints with :class:`~seraph_cvx.PairSERAPH`.
        similar_confidence, dissimilar_confidence : float or (k,) array_like, optional
            c_k > 0: how much each constraint counts; 1 by default, as a pair of class labels does.
        """
        self._warn_of_solver(stacklevel=2)
        confidences = similar_confidence, dissimilar_confidence
        return self._fit_pairs(X, y, similar, dissimilar, *confidences, stacklevel=2)

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
        from ..display.cards import estimator_card
        from ..display.notebook import beside

        return beside(box, estimator_card(self)) if hasattr(self, "status_") else box

    def _minimize(self, pairs: PairSet) -> tuple[FloatArray, list[Warning]]:
        """Fit the metric to the pairs; return all its components, and what `fit` should warn of."""
        self.sampling_: SamplingReport | None = None
        with self._watching() as watch:
            first = self._first_m_step(pairs)
            if watch is not None:
                watch.attach(first.limit)
            if watch is not None and self.verbose:
                from .forecast import forecast

                watch.announce(forecast(pairs, first.mu == 0.0, self.unlabeled_pairs))
            learn = self._descend if self.algorithm == "direct" else self._alternate
            found, message = learn(first, watch)
            if watch is not None:
                watch.end(message, self.status_, self.n_iter_)
        self._keep_m_step(found, first.is_wide)
        L = self._mix(first)
        if not self.status_.reached_tolerance:
            return L, [NotCertified(message)]
        useless = describe_outcome(first, L)
        return L, [UserWarning(useless)] if useless else []

    def _first_m_step(self, pairs: PairSet) -> MStepObjective:
        """Check the parameters, and make the M-step that a fit begins with."""
        if self.algorithm not in ("em", "direct"):
            raise ValueError(f'algorithm={self.algorithm!r} is not known: use "em" or "direct".')
        penalties = self._check_penalties()
        if self.algorithm == "direct":
            unused = CONIC if hasattr(self.callback, "progress") else {**CONIC, "callback": (None,)}
            for name in self._given(unused):
                raise ValueError(
                    f'{name} is for the M-steps of algorithm="em"; algorithm="direct" has none: '
                    "leave it out."
                )
            _refuse_spread(pairs.feature_ranges)
        term = self._manifold_term(pairs.points)
        if self.unlabeled_pairs is not None:
            pairs = pairs.sampled(self.unlabeled_pairs, self.random_state)
        return self._chosen_setting.first_m_step(
            pairs, self.algorithm, self.threshold, term, self.n_jobs, penalties
        )

    def _watching(self) -> AbstractContextManager[FitWatch | None]:
        """A context in which the fit is shown, handed to the callback, and may be interrupted."""
        if not self.verbose and self.callback is None and self.on_interrupt == "raise":
            return nullcontext()
        from .watching import watched

        return watched(self.verbose, self.callback, self.on_interrupt)

    def _descend(
        self, first: MStepObjective, watch: FitWatch | None
    ) -> tuple[FloatArray | Factor, str]:
        """Descend (7) itself; return the metric, and what was not reached, in words."""
        from ..fit.direct import descend_directly

        direct = descend_directly(
            first,
            tol=self.tol,
            max_iter=5_000 if self.max_iter is None else self.max_iter,
            time_limit=self.time_limit,
            watch=None if watch is None else watch.step,
        )
        self.certificate_: Certificate | None = None
        self.history_: list[Any] = direct.values
        self.status_, self.n_iter_ = direct.status, direct.iterations
        return direct.found, direct.message

    def _alternate(
        self, first: MStepObjective, watch: FitWatch | None
    ) -> tuple[FloatArray | Factor, str]:
        """Alternate from the first M-step on; return the metric, and what was not reached."""
        solver = MStepSolver(
            self.solver,
            formulation=self.formulation,
            solver_options=self.solver_options,
            polish=self.polish,
            allow_unattained=self.allow_unattained,
            watch=None if watch is None else watch.step,
        )
        for name in self._given(CONIC):
            solver.require_conic_for(name)
        run = run_alternation(
            first,
            solver,
            tol=self.tol,
            m_step_tol=self.m_step_tol,
            max_iter=500 if self.max_iter is None else self.max_iter,
            callback=None if watch is None else watch.iteration,
            accelerate=self.accelerate,
            time_limit=self.time_limit,
        )
        if run.m_step.found is None:
            raise RuntimeError(run.message)
        certificate, status, message = run.m_step.certificate, run.status, run.message
        if first.pairs.drawn is not None:
            certificate = self._certify_in_full(run.objective, np.asarray(run.metric), status)
            gap = np.inf if certificate is None else certificate.relative_gap
            if certificate is None and first.limit.is_interrupted:
                status = Status.INTERRUPTED
                message = "Interrupted before the certificate over all pairs was computed."
            elif status is Status.CERTIFIED and gap > self.m_step_tol:
                status = Status.INACCURATE
                message = (
                    f"Learned from {self.unlabeled_pairs} unlabeled pairs: over all pairs the "
                    f"certified relative gap is {gap:.2g}, more than m_step_tol="
                    f"{self.m_step_tol:.2g}. Draw more pairs for a smaller one, or set m_step_tol "
                    "to what is enough."
                )
        self.certificate_, self.history_, self.status_ = certificate, run.history, status
        self.n_iter_ = len(run.history)
        return run.m_step.found, message

    def _certify_in_full(
        self, objective: MStepObjective, metric: FloatArray, status: Status
    ) -> Certificate | None:
        """The certificate over all pairs of a metric that was learned from some of them."""
        from ..certificate.sampling import certify_in_full

        is_over = status in (Status.TIME_LIMIT, Status.INTERRUPTED)
        try:
            report = certify_in_full(
                objective, metric, self.m_step_tol, SECONDS_TO_FINISH if is_over else np.inf
            )
        except OutOfTime:
            return None
        self.sampling_ = report
        return report.certificate

    def _keep_m_step(self, found: FloatArray | Factor, is_wide: bool) -> None:
        """Keep the metric of the last M-step; its factor, where that is smaller."""
        for name in ("m_step_metric_", "m_step_factor_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if is_wide:
            self.m_step_factor_ = as_factor(found).L
        else:
            self.m_step_metric_ = np.asarray(found)

    def _mix(self, first: MStepObjective) -> FloatArray:
        """Keep the learned metric with its share of the reference, and a threshold for it.

        Returns the rows of all components.
        """
        F = self.__dict__.get("m_step_factor_")
        found = self.m_step_metric_ if F is None else Factor(F)
        mixed = self._chosen_setting.mix_with_reference(found, first)
        L, points = self._keep_metric(mixed), first.pairs.points
        self.threshold_ = float(np.sqrt(self.threshold))
        if mixed is not found:
            learned = points @ as_factor(found).L
            self.threshold_ = matching_threshold(learned, points @ L.T, self.threshold)
        return L

    @property
    def is_mixed_(self) -> bool:
        """Whether `metric_` is a mixture: not that of the last M-step, which is certified."""
        names = ("factor_", "m_step_factor_")
        if "factor_" not in self.__dict__:
            names = ("metric_", "m_step_metric_")
        return not np.array_equal(*(getattr(self, name) for name in names))

    @property
    def m_step_rank_(self) -> int:
        """The numerical rank of the metric of the last M-step."""
        F = self.__dict__.get("m_step_factor_")
        return numerical_rank(self.m_step_metric_ if F is None else F.T @ F)

    @cached_property
    def m_step_metric_(self) -> FloatArray:
        """The metric A of the last M-step; made of `m_step_factor_` where only that is kept."""
        return self._made_of("m_step_factor_", "m_step_metric_")

    def _keep_evidence(self, pairs: PairSet, y: ArrayLike | None, L: FloatArray) -> None:
        """Keep the labeled points, and what they and the features say about the fit."""
        self.leave_one_out_: LeaveOneOut | None = None
        self.labeled_points_ = self.labels_ = None
        if isinstance(pairs.labels, ClassLabels):
            known, codes = pairs.labels.members, pairs.labels.classes
            self.labeled_points_ = pairs.points[known]
            self.leave_one_out_ = leave_one_out(self.labeled_points_, codes, L)
            labels = np.ravel(np.asarray(to_host(y)))[known]
            self.labels_ = labels if labels.dtype.kind in "biuf" else labels.astype(object)
        self.data_notes_ = describe_features(pairs.points, getattr(self, "feature_names_in_", None))

    def _given(self, settings: Mapping[str, tuple[Any, ...]]) -> list[str]:
        """Those of the parameters that have none of these values."""
        return [name for name, defaults in settings.items() if getattr(self, name) not in defaults]

    def _check_penalties(self) -> tuple[Penalty, ...]:
        """The penalties as a tuple of blocks."""
        if not isinstance(self.penalties, list | tuple):
            raise TypeError(
                f"penalties={self.penalties!r} is no list of penalties: write them in a list, as "
                "in penalties=[Ridge(0.1)]."
            )
        return tuple(self.penalties)

    @property
    def _chosen_setting(self) -> Setting:
        """The setting that is named, or else the one that the parameters for weights describe."""
        if self.setting is not None:
            return find_setting(self.setting)
        return Setting(*(getattr(self, name) for name in Setting._fields))


def _refuse_spread(feature_ranges: FloatArray) -> None:
    spread = float(np.max(feature_ranges))
    if spread and not 1.0 / MODERATE <= spread <= MODERATE:
        raise ValueError(
            f'algorithm="direct" works in the unit of the features; their spread {spread:.2g} has '
            'a fourth power that is no number: divide X by a constant, or use algorithm="em".'
        )


def similar_probability(distances: FloatArray, threshold: float) -> FloatArray:
    """The probability of (8) that pairs at these distances are similar; 1/2 at the threshold.

    Below a negative threshold there is no distance, and no probability is as large as 1/2.
    """
    scores = (distances - threshold) * (distances + abs(threshold))  # the sign is exact
    return np.asarray(posterior_similar(scores))
