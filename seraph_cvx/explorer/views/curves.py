"""The curves of the page: J and (7) after each half-step, and how the certified gap closes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...display.page import Chart, Curve, to_svg
from ..stepwise_alternation import HalfStep

HALF_STEPS = "half-steps (odd: M-step, even: E-step)"
SMALLEST = 1e-16
"""A smaller gap is drawn here: a logarithmic axis has no 0."""


def draw_course(history: Sequence[HalfStep]) -> tuple[str, str]:
    """Plot J and (7) after each half-step; the start, often far above, only if it is alone."""
    shown = history[1:] or history
    steps = [float(half_step.number) for half_step in shown]
    J = Curve("J", steps, [half_step.descent_value for half_step in shown])
    paper = Curve("-L", steps, [half_step.paper_objective for half_step in shown])
    return (
        to_svg(Chart("J(q, A): no half-step raises it", HALF_STEPS, "J", [J])),
        to_svg(Chart("-ℒ(A) of (7): it may rise", HALF_STEPS, "-ℒ", [paper])),
    )


def draw_gaps(history: Sequence[HalfStep]) -> str:
    """Plot the certified gap after each half-step: an M-step closes it, an E-step opens it.

    The line joins all half-steps; the second curve shows the M-steps alone.
    """
    after = {
        "after the E-step": [half_step for half_step in history if half_step.number % 2 == 0],
        "after the M-step": [half_step for half_step in history if half_step.number % 2],
    }
    curves = [
        Curve(
            name,
            [float(half_step.number) for half_step in half_steps],
            [max(SMALLEST, half_step.certificate.relative_gap) for half_step in half_steps],
        )
        for name, half_steps in after.items()
        if half_steps
    ]
    return to_svg(Chart("Certified gap", HALF_STEPS, "relative gap", curves, log_y=True))


def draw_solver_gaps(gaps: Mapping[str, Sequence[tuple[int, float]]]) -> str:
    """Plot the certified gap of solvers against their iterations, both on logarithmic axes."""
    curves = [
        Curve(name, [max(1.0, step) for step, _ in found], [max(SMALLEST, gap) for _, gap in found])
        for name, found in gaps.items()
    ]
    title = "Certified gap of a run stopped early"
    return to_svg(Chart(title, "iterations", "relative gap", curves, log_x=True, log_y=True))
