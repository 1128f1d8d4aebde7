"""What the page says: where the alternation stands, what is wrong, and what to try next."""

from __future__ import annotations

from html import escape

import numpy as np

from ..point_sets import DRAWN
from ..scene import MOST_POINTS
from ..state import ExplorerState
from ..stepwise_alternation import STANDSTILL

AFTERWARDS = {
    "stripes": "press Reset, then Step ▶, and watch the metric find the direction across the "
    "stripes; or move λ to 70 and run: the metric shrinks, and turns the wrong way",
    "Gaussians": "move μ to 0, so that only the labels count, and run: do the errors in the table "
    "differ?",
    "two moons": "compare with the stripes: a linear metric cannot unroll the moons, and the best "
    "one looks along a single direction; certified is not the same as useful",
    "rings": "move the seed and run: no linear metric separates rings, and the certificate never "
    "said so; it is about f, not about the error",
    "iris (2 components)": "move the seed and run: with twelve labels the gain hangs on the draw",
    "wine (2 components)": "move η to 5 and run: the metric grows; does the error follow?",
    DRAWN: "add a point of each class far away, run, and see whether the metric turns",
}
"""What to try when a run has come to its end, by the name of the scene."""


def announce(state: ExplorerState) -> str:
    """The HTML of the half-step counter, the errors, the next thing to try, and messages."""
    words = "".join(
        f'<p class="warning" data-value="words">{escape(text)}</p>' for text in words_on(state)
    )
    before, after = state.error_before, state.error_after
    errors = ""
    if before is not None and after is not None:
        errors = f' <span data-value="errors">· 1-NN error {before} → <b>{after}</b></span>'
    return (
        f'<b data-value="position">{escape(position_of(state))}</b>{errors}'
        f'{words}<p class="try" data-value="try">{escape(next_to_try(state))}</p>'
    )


def position_of(state: ExplorerState) -> str:
    """The counter as text: the half-steps done, and the name of the last."""
    half_step = state.half_step
    return (
        "no alternation" if half_step is None else f"half-step {half_step.number}: {half_step.name}"
    )


def next_to_try(state: ExplorerState) -> str:
    """A sentence that says what to try next."""
    if state.half_step is None:
        what = "add points and label two or more of them, or press Undo"
    elif words_on(state):
        what = "do as the message says, or press Undo or Restore the data"
    elif state.position == 0:
        what = (
            "press Step ▶. The first M-step counts every unlabeled pair as dissimilar, and its gap "
            "closes"
        )
    elif has_come_to_rest(state):
        what = AFTERWARDS[state.source]
    elif state.half_step.number % 2:
        what = (
            "press Step ▶. The E-step guesses the labels of the unlabeled pairs anew, from this "
            "metric: the gap opens, for the problem is another one"
        )
    else:
        what = "press Step ▶. The M-step closes the gap again; or press Run to the end"
    return f"Try next: {what.removesuffix('?')}{'?' if what.endswith('?') else '.'}"


def has_come_to_rest(state: ExplorerState) -> bool:
    """Whether the last M-step lowered J so little that the alternation is at its end."""
    history = state.history
    if len(history) < 3 or history[-1].number % 2 == 0:
        return False
    before, now = history[-2].descent_value, history[-1].descent_value
    return before - now <= STANDSTILL * max(1.0, abs(now))


def words_on(state: ExplorerState) -> list[str]:
    """Messages on what is wrong or worth knowing, with the remedy."""
    half_step = state.half_step
    words = [text for text in (state.words, state.trouble) if text]
    if len(state.scene.points) >= MOST_POINTS:
        words.append(f"The plane is full: it takes no more than {MOST_POINTS} points.")
    if half_step is None:
        return words
    if len({label for label in state.scene.labels if label >= 0}) == 1:
        words.append(
            "Only one class is known, so no labeled pair is to be kept apart: label points of "
            "another class."
        )
    if not np.ptp(state.scene.X, axis=0).any():
        words.append("All points are equal: every distance is 0 under every metric. Add others.")
    elif not half_step.metric.any():
        critical = half_step.objective.critical_trace_weight
        words.append(f"The metric is 0, for λ is not below {critical:.4g}: move it to the left.")
    return words
