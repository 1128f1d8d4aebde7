"""The sliders: what each is called, what it does, where it stops, and when it does nothing."""

from __future__ import annotations

from dataclasses import dataclass

from .point_sets import DRAWN
from .snapshot import Snapshot
from .stepwise_alternation import TRACE_WEIGHTS


@dataclass(frozen=True)
class Slider:
    """A slider of the page.

    Attributes
    ----------
    label : str
        Its name, with the letter of the formulas.
    note : str
        What it does, in a sentence.
    stops : tuple of float
        The values that it takes.
    """

    label: str
    note: str
    stops: tuple[float, ...]


def _tenths(first: int, last: int) -> tuple[float, ...]:
    return tuple(k / 10 for k in range(first, last + 1))


SEEDS = tuple(range(20))

SLIDERS = {
    "weight_factor": Slider(
        "unlabeled weight μ",
        "In units of #(S ∪ D) / #U: at 1 all unlabeled pairs weigh as much as the labeled ones, "
        "at 0 only the labels count.",
        _tenths(0, 50),
    ),
    "trace_weight": Slider(
        "trace weight λ",
        "The price of tr A. The higher, the smaller the metric and its rank, down to A = 0.",
        TRACE_WEIGHTS,
    ),
    "threshold": Slider(
        "threshold η",
        "The squared distance at which similar and dissimilar are equally likely. "
        "The higher, the larger the metric.",
        _tenths(1, 50),
    ),
    "own_sharpness": Slider(
        "sharpness a",
        "How sure the E-step's soft labels are: the higher a, the nearer q is to 0 or 1.",
        _tenths(5, 50),
    ),
}
"""The sliders, by the name of their value in :class:`Settings`."""


OF_UNLABELED = ("weight_factor", "paper_sharpness", "own_sharpness")
"""The controls that act on unlabeled pairs alone."""


def why_off(now: Snapshot, name: str) -> str:
    """The reason why a control does nothing at the moment; empty where it does something.

    Examples
    --------
    >>> why_off(Snapshot(), "own_sharpness"), why_off(Snapshot(), "trace_weight")
    ("Off: the sharpness is the paper's, a = 1 + μ.", '')
    """
    if name == "seed":
        return "Off: you draw these points yourself." if now.source == DRAWN else ""
    if name not in OF_UNLABELED or now.half_step is None:
        return ""
    if now.half_step.objective.pairs.n_unlabeled == 0:
        return "Off: no pair is unlabeled, so there is nothing to weigh or to guess."
    if name != "weight_factor" and now.settings.weight_factor == 0.0:
        return "Off: at μ = 0 the soft labels do not count."
    if name == "own_sharpness" and now.settings.paper_sharpness:
        return "Off: the sharpness is the paper's, a = 1 + μ."
    return ""
