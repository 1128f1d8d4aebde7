"""Named weights of SERAPH: the paper's four settings, and the recommended one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray
from ..numerics.psd_cone import shrink
from ..pairs.pair_set import PairSet
from ..penalties.penalty import Penalty

AUTO_TRACE_SHARE = 0.02
"""The trace weight "auto", as a share of the one above which the labeled pairs give A = 0."""


class Setting(NamedTuple):
    """A setting: mu, lambda, the sharpness of the soft labels, and the share of the identity."""

    unlabeled_weight: float | str
    trace_weight: float | str
    sharpness: float | None = None
    identity_share: float = 0.0

    def weights(
        self,
        pairs: PairSet,
        algorithm: str = "em",
        threshold: float = 1.0,
        manifold_term: FloatArray | None = None,
    ) -> tuple[float, float]:
        """The weights mu of the M-steps (or of (7), for "direct") and lambda, as numbers.

        Examples
        --------
        >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0], [2.3]], [0, 0, 1, -1])
        >>> mu, trace_weight = PAPER_SETTINGS["hyper"].weights(pairs)
        >>> mu, trace_weight
        (1.0, 1.0)
        """
        m_step = self.first_m_step(pairs, algorithm, threshold, manifold_term)
        return m_step.mu, m_step.trace_weight

    def first_m_step(
        self,
        pairs: PairSet,
        algorithm: str = "em",
        threshold: float = 1.0,
        manifold_term: FloatArray | None = None,
        n_jobs: int | None = None,
        penalties: Sequence[Penalty] = (),
    ) -> MStepObjective:
        """The M-step that a fit in this setting starts with, its weights as numbers.

        The trace weight "auto" is chosen as if there were no penalties.
        """
        mu, weight, a = self.unlabeled_weight, self.trace_weight, self.sharpness
        if mu == "full":
            mu = pairs.resolve_unlabeled_weight("ratio")
            if algorithm == "em":
                if a is None or not a > 1.0:
                    raise ValueError(
                        f'unlabeled_weight="full" needs sharpness > 1, not {a!r}: the soft labels '
                        "of a sharpness a leave (a - 1)/a of the weight."
                    )
                mu *= a / (a - 1.0)
        labeled_only = MStepObjective(
            pairs,
            unlabeled_weight=0.0,
            threshold=threshold,
            n_jobs=n_jobs,
            manifold_term=manifold_term,
        )
        if weight == "auto":
            weight = AUTO_TRACE_SHARE * labeled_only.critical_trace_weight or 1.0
        if isinstance(weight, str):
            raise ValueError(f'trace_weight={weight!r}: give a number or "auto".')
        return replace(
            labeled_only,
            unlabeled_weight=mu,
            trace_weight=weight,
            sharpness=a,
            penalties=penalties,
        )

    def metric_of(self, A: FloatArray, pairs: PairSet) -> FloatArray:
        """Mix a learned metric with the identity: (1 - alpha) A + alpha c I.

        Examples
        --------
        >>> import numpy as np
        >>> pairs = PairSet.from_labels([[0.0, 1.0], [1.0, 0.0]], [0, 1])
        >>> Setting(0.0, 1.0, identity_share=0.5).metric_of(np.diag([2.0, 0.0]), pairs)
        array([[1.5, 0. ],
               [0. , 0.5]])
        """
        if not self.identity_share:
            return A
        centred = pairs.points - pairs.points.mean(axis=0)
        return shrink(A, self.identity_share, centred.T @ centred)


PAPER_SETTINGS = {
    "none": Setting(0.0, 0.0),
    "post": Setting("ratio", 0.0),
    "proj": Setting(0.0, 1.0),
    "hyper": Setting("ratio", 1.0),
}
"""The paper's four settings, by their names in it."""

RECOMMENDED = Setting("full", "auto", 2.0, 0.3)
"""The defaults of SERAPH, chosen on samplings of the paper's tasks that no table uses."""


def find_setting(name: str) -> Setting:
    """Look up one of the paper's settings by its name."""
    if name not in PAPER_SETTINGS:
        raise ValueError(f"setting={name!r} is not known: use one of {', '.join(PAPER_SETTINGS)}.")
    return PAPER_SETTINGS[name]
