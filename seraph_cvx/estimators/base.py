"""What SERAPH and its relatives share: the parameters, and the learning from pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..certificate import Certificate
from ..engine.distances import Factor, as_factor
from ..engine.passes import Limit
from ..fit.alternation import Iteration, run_alternation
from ..m_step.solve import MStepSolver
from ..model.m_step_objective import MStepObjective
from ..model.posterior import posterior_similar
from ..numerics.checks import FloatArray, check_number
from ..numerics.psd_cone import numerical_rank
from ..pairs.pair_set import PairSet
from ..solvers.not_certified import NotCertified
from ..solvers.solution import Status
from .evidence import describe_outcome, matching_threshold, mix_with_reference
from .mahalanobis import MahalanobisTransformer
from .settings import RECOMMENDED, Setting, find_setting

if TYPE_CHECKING:
    from ..penalties.penalty import Penalty
    from .watching import FitWatch


@dataclass(eq=False, repr=False)
class Parameters:
    """The parameters of SERAPH; apart from scikit-learn's classes, or mypy would accept any."""

    unlabeled_weight: float | str = RECOMMENDED.unlabeled_weight
    trace_weight: float | str = RECOMMENDED.trace_weight
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
    laplacian_weight: float = 0.0
    laplacian_neighbors: int = 7
    identity_share: float | str = RECOMMENDED.identity_share
    accelerate: bool = True
    penalties: Sequence[Penalty] = ()
    reference: str = RECOMMENDED.reference
    correlation_weight: float | str = RECOMMENDED.correlation_weight
    time_limit: float | None = None
    callback: Callable[[Iteration, FloatArray], object] | None = None
    on_interrupt: str = "raise"
    setting: str | None = None


class BaseSERAPH(Parameters, MahalanobisTransformer):
    """The learning itself, for whatever gives the pairs: each `fit` calls `_minimize`."""

    certificate_: Certificate | None
    history_: list[Any]
    status_: Status
    n_iter_: int
    table_: dict[str, Any]

    def _minimize(self, pairs: PairSet) -> tuple[FloatArray, list[Warning]]:
        """Learn the metric from pairs; return its components, and what `fit` should warn of."""
        first = self._first_m_step(pairs)
        with self._watched(first.limit) as watch:
            learn = self._descend if self.algorithm == "direct" else self._alternate
            found, message = learn(first, watch)
            if watch is not None:
                watch.end(message, self.status_, self.n_iter_)
        for name in ("m_step_metric_", "m_step_factor_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if first.is_wide:  # the factor is smaller
            self.m_step_factor_ = as_factor(found).L
        else:
            self.m_step_metric_ = np.asarray(found)
        if self.certificate_ is not None:
            self.certificate_ = self.certificate_.alone()
        L = self._mix(first)
        if not self.status_.reached_tolerance:
            return L, [NotCertified(message)]
        useless = describe_outcome(first, L)
        return L, [UserWarning(useless)] if useless else []

    def _first_m_step(self, pairs: PairSet) -> MStepObjective:
        """Check the parameters, and make the M-step that a fit begins with."""
        if not isinstance(self.penalties, list | tuple):
            raise TypeError(
                f"penalties={self.penalties!r} is no list of penalties: write them in a list, as "
                "in penalties=[Ridge(0.1)]."
            )
        if self.algorithm == "direct":
            self._require_direct(pairs)
        elif self.algorithm != "em":
            raise ValueError(f'algorithm={self.algorithm!r} is not known: use "em" or "direct".')
        manifold_term = None
        if check_number(self.laplacian_weight, "laplacian_weight", 0.0) > 0.0:
            from ..penalties import manifold_term as term_of

            manifold_term = term_of(pairs.points, self.laplacian_weight, self.laplacian_neighbors)
        return self._setting().first_m_step(
            pairs, self.algorithm, self.threshold, manifold_term, self.n_jobs, tuple(self.penalties)
        )

    def _setting(self) -> Setting:
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

    def _require_direct(self, pairs: PairSet) -> None:
        """Refuse what algorithm="direct" has no use for, and a spread that it cannot compute with.

        It works in the unit of the features, with sums of their fourth powers.
        """
        if self.callback is not None and not hasattr(self.callback, "progress"):
            raise ValueError(
                'callback is for the M-steps of algorithm="em"; algorithm="direct" has none: '
                "leave it out."
            )
        spread = float(np.max(pairs.feature_ranges))
        largest = float(np.finfo(np.float64).max) ** 0.2  # so that sums of fourth powers fit
        if spread and not 1.0 / largest <= spread <= largest:
            raise ValueError(
                f'algorithm="direct" works in the unit of the features; their spread {spread:.2g} '
                "has a fourth power that is no number: divide X by a constant, or use "
                'algorithm="em".'
            )

    def _watched(self, limit: Limit) -> AbstractContextManager[FitWatch | None]:
        """A context in which the fit is shown, handed to the callback, and may be interrupted."""
        if not self.verbose and self.callback is None and self.on_interrupt == "raise":
            return nullcontext()
        from .watching import watched

        return watched(limit, self.verbose, self.callback, self.on_interrupt)

    def _alternate(
        self, first: MStepObjective, watch: FitWatch | None
    ) -> tuple[FloatArray | Factor, str]:
        """Alternate from the first M-step on; return the metric, and what was not reached."""
        solver = MStepSolver(
            self.solver,
            allow_unattained=self.allow_unattained,
            watch=None if watch is None else watch.step,
        )
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
        self.certificate_ = run.m_step.certificate
        self.history_, self.status_, self.n_iter_ = run.history, run.status, len(run.history)
        return run.m_step.found, run.message

    def _descend(
        self, first: MStepObjective, watch: FitWatch | None
    ) -> tuple[FloatArray | Factor, str]:
        """Descend (7) itself; return the metric, and what was not reached, in words."""
        from ..fit.direct import minimize_directly

        direct = minimize_directly(
            first,
            tol=self.tol,
            max_iter=5_000 if self.max_iter is None else self.max_iter,
            time_limit=self.time_limit,
            watch=None if watch is None else watch.step,
        )
        self.certificate_ = None
        self.history_, self.status_, self.n_iter_ = direct.values, direct.status, direct.iterations
        return direct.found, direct.message

    def _mix(self, first: MStepObjective) -> FloatArray:
        """Keep the learned metric with its share of the reference, and a threshold for it.

        Returns the rows of all components.
        """
        F = self.__dict__.get("m_step_factor_")
        found = self.m_step_metric_ if F is None else Factor(F)
        mixed = mix_with_reference(self._setting(), found, first)
        L, points = self._keep_metric(mixed), first.pairs.points
        self.threshold_ = float(np.sqrt(self.threshold))
        if mixed is not found:
            learned = points @ as_factor(found).L
            self.threshold_ = matching_threshold(learned, points @ L.T, self.threshold)
        return L

    @property
    def is_mixed_(self) -> bool:
        """Whether `metric_` is a mixture, not the certified metric of the last M-step."""
        if "factor_" in self.__dict__:
            return not np.array_equal(self.factor_, self.m_step_factor_)
        return not np.array_equal(self.metric_, self.m_step_metric_)

    @property
    def m_step_rank_(self) -> int:
        """The numerical rank of the metric of the last M-step."""
        F = self.__dict__.get("m_step_factor_")
        return numerical_rank(self.m_step_metric_ if F is None else F.T @ F)

    @cached_property
    def m_step_metric_(self) -> FloatArray:
        """The metric A of the last M-step; formed from `m_step_factor_` if only that is stored."""
        return self._made_of("m_step_factor_", "m_step_metric_")

    @property
    def m_step_objective_(self) -> MStepObjective:
        """The last M-step, which `certificate_` is about."""
        certificate = self.certificate_
        if certificate is None or certificate.objective is None:
            raise AttributeError(
                "m_step_objective_ is the M-step of a certificate, and this fit has none: "
                'algorithm="direct" has no M-steps, and a time limit may leave no time to certify '
                "one."
            )
        return certificate.objective

    def predict_pair_proba(self, pairs: ArrayLike) -> FloatArray:
        """The probability that each pair is similar, eq. (8) with the distance of `pair_distance`.

        p(+1 | x, x') = 1 / (1 + exp(d(x, x')^2 - t^2)), t = `threshold_`.

        It is at least 1/2 exactly where `predict_pairs` predicts +1. With identity_share=0 this is
        p of the paper's model, with A and eta.

        Parameters
        ----------
        pairs : (k, 2, m) array_like
        """
        distances, threshold = self.pair_distance(pairs), self.threshold_
        # the sign is exact; below a negative threshold no probability is as large as 1/2
        scores = (distances - threshold) * (distances + abs(threshold))
        return np.asarray(posterior_similar(scores))
