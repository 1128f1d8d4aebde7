"""The pictures of a race, drawn from its rows."""

from __future__ import annotations

from matplotlib.figure import Figure

from ...race.race_table import Race
from .marks import FLOOR
from .profile import plot_performance_profile, times_to_target
from .said_against_true import plot_said_against_true
from .work_precision import plot_work_precision

__all__ = [
    "FLOOR",
    "draw_race",
    "plot_performance_profile",
    "plot_said_against_true",
    "plot_work_precision",
    "times_to_target",
]


def draw_race(race: Race) -> dict[str, Figure]:
    """Draw all pictures of a race, by name.

    Examples
    --------
    >>> row = dict(instance="iris", solver="SCS", formulation="dual", tol=1e-3, claims=True)
    >>> row |= dict(true_gap=1e-4, proved_gap=1e-2, total_seconds=0.5)
    >>> list(draw_race(Race("A race", [row], races=[{"time_limit": 5.0}])))
    ['work-precision', 'performance-profile', 'said-against-true']
    """
    return {
        "work-precision": plot_work_precision(race.rows, time_limit=race.time_limit),
        "performance-profile": plot_performance_profile(race.rows, time_limit=race.time_limit),
        "said-against-true": plot_said_against_true(race.rows),
    }
