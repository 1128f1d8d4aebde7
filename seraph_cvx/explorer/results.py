"""The results that stay: a row for each run, whatever happens to the scene afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..numerics.psd_cone import numerical_rank
from .link import changes_of
from .point_sets import DRAWN, scene_named
from .snapshot import Snapshot
from .stepwise_alternation import HalfStep

COLUMNS: dict[str, Callable[[Snapshot, HalfStep], str]] = {
    "data": lambda now, _: _data_in_words(now),
    "labels": lambda now, _: str(sum(label >= 0 for label in now.scene.labels)),
    "μ": lambda _, done: f"{done.objective.mu:.3g}",
    "λ": lambda now, _: f"{now.settings.trace_weight:g}",
    "η": lambda now, _: f"{now.settings.threshold:g}",
    "a": lambda _, done: f"{done.objective.soft_labeling.sharpness:.3g}",
    "1-NN error before": lambda now, _: str(now.error_before or "–"),
    "after": lambda now, _: str(now.error_after or "–"),
    "certified gap": lambda _, done: f"{done.certificate.relative_gap:.0e}",
    "rank": lambda _, done: str(numerical_rank(done.metric)),
    "J": lambda _, done: f"{done.descent_value:.6g}",
    "M-steps": lambda _, done: str((done.number + 1) // 2),
}
"""What is kept of a run, in words."""


@dataclass(frozen=True)
class Result:
    """What a run came to, a text for each of :data:`COLUMNS`, and the snapshot that shows it."""

    snapshot: Snapshot
    cells: tuple[str, ...]


def result_of(now: Snapshot) -> Result | None:
    """The row of a snapshot; None where no M-step was made.

    Examples
    --------
    >>> result_of(Snapshot(position=1)).cells[:2]
    ('stripes, seed 0', '12')
    """
    half_step = now.half_step
    if half_step is None or half_step.number == 0:
        return None
    now = replace(now, scene=replace(now.scene, chosen=0))  # it changes pictures only
    return Result(now, tuple(text(now, half_step) for text in COLUMNS.values()))


def _data_in_words(now: Snapshot) -> str:
    kept, added = changes_of(now)
    if now.source == DRAWN:
        return f"{len(added)} points of your own"
    n_removed = len(scene_named(now.source, now.seed).points) - len(kept)
    changes = {"added": len(added), "removed": n_removed}
    words = [f"{count} {verb}" for verb, count in changes.items() if count]
    return ", ".join([now.source, f"seed {now.seed}", *words])
