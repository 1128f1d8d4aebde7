"""What the page shows, as functions of its state: controls, messages, panels, tabs, Python code."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from ..display.formulas import (
    CERTIFICATE,
    DESCENT,
    E_STEP,
    M_STEP_ONE_TERM,
    OBJECTIVE_MINIMIZED,
    PROBABILITY,
    typeset,
)
from ..display.mathml import to_mathml
from ..display.page import templates
from ..display.symbols import prose
from ..solvers.solution import MStepSolution
from .alternation import SOLVERS, HalfStep, ask_solver, gaps_by_iteration
from .pictures import draw_curves, draw_learned, draw_pairs, draw_plane, draw_regions, html
from .scene import DRAWN, MOST_POINTS
from .state import CONTROLS, ExplorerState, link_of

if TYPE_CHECKING:
    from ..m_step.explain import ConvexityProof

TABS = ("Formulas", "Statement", "Solvers", "Python")


def view_of(state: ExplorerState) -> dict[str, Any]:
    """Everything that follows from the state, in one message to the browser."""
    return {
        "controls": controls_of(state),
        "panels": panels_of(state),
        "link": link_of(state),
        "heard": state.heard,
        "tabs": TABS,
        "solvers": SOLVERS,
    }


def controls_of(state: ExplorerState) -> list[dict[str, Any]]:
    """The controls in the order of the page; `off` says why one does nothing."""
    half_step, controls = state.half_step, []
    for name, control in CONTROLS.items():
        at = control.options.index(getattr(state.settings, name))
        shown = {"range": control.options, "check": ("on", "off")}.get(control.kind)
        text = "" if shown is None else str(shown[at]).removesuffix(".0")
        if name == "weight_factor" and half_step is not None:
            text += f" → {half_step.objective.mu:.3g}"
        more = {"value": control.page_values[at], "text": text, "off": state.why_off(name)}
        if name == "source" and state.settings.source == DRAWN:
            more["note"] = "Your own points and labels: no true classes are known to judge by."
        controls.append({"name": name, **control._asdict(), **more})
    return controls


def messages_on(state: ExplorerState) -> list[str]:
    """Messages on what is wrong or worth knowing, with the remedy."""
    half_step = state.half_step
    messages = [text for text in (state.message, state.trouble) if text]
    if len(state.scene.points) >= MOST_POINTS:
        messages.append(f"The plane is full: it takes no more than {MOST_POINTS} points.")
    if half_step is None:
        return messages
    if len(np.unique(state.scene.y[state.scene.y >= 0])) == 1:
        messages.append(
            "Only one class is known, so no labeled pair is to be kept apart: label points of "
            "another class."
        )
    if not np.ptp(state.scene.X, axis=0).any():
        messages.append("All points are equal: every distance is 0 under every metric. Add others.")
    elif not half_step.metric.any():
        critical = half_step.objective.critical_trace_weight
        messages.append(f"The metric is 0, for λ is not below {critical:.4g}: move it to the left.")
    return messages


# The panels

HALF_STEPS = "half-steps (odd: M-step, even: E-step)"


def panels_of(state: ExplorerState) -> str:
    """Write the panels in the order of the page, a section each, whose class is its name."""
    scene, half_step, history = state.scene, state.half_step, state.history
    pictures = {"plane": draw_plane(scene, half_step)}
    if half_step is not None:
        gaps = [(step.number, step.certificate.relative_gap) for step in history]
        curves = {"after the E-step": gaps[::2], "after the M-step": gaps[1::2]}
        shown = history[1:] or history  # the start is often far above
        J = [(step.number, step.descent_value) for step in shown]
        L = [(step.number, step.paper_objective) for step in shown]
        pictures |= {
            "before": draw_regions(scene, np.eye(2)),
            "after": draw_regions(scene, half_step.metric),
            "learned": draw_learned(scene, half_step),
            "pairs": draw_pairs(scene, half_step),
            "gaps": draw_curves("Certified gap", HALF_STEPS, "relative gap", curves, log_y=True),
            "descent": draw_curves("J(q, A): no half-step raises it", HALF_STEPS, "J", {"J": J}),
            "paper": draw_curves("-ℒ(A) of (7): it may rise", HALF_STEPS, "-ℒ", {"-L": L}),
        }
    return str(html().panels(state, pictures, messages_on(state), link_of(state)))


# The tabs below the pictures

FORMULAS = (PROBABILITY, M_STEP_ONE_TERM, E_STEP, DESCENT, OBJECTIVE_MINIMIZED, CERTIFICATE)
ASK = (
    "The page itself uses newton. Ask another solver to solve the current M-step: a certificate "
    "grades it. On 100 points CLARABEL takes about a second, SCS several."
)
SYMBOLS = (
    *(r"\# \mathcal{S}", r"\# \mathcal{D}", r"\# \mathcal{U}", r"\mu", r"\lambda"),
    *(r"\eta", r"\beta", "G"),
)
"""Of the numbers in a statement."""
ROLES = ("objective ", "constraint ")
"""How a proof begins the name of a part of the problem."""


def sheet(state: ExplorerState, name: str, solver: str | None = None) -> str:
    """The content of a tab: HTML, for "Python" plain text; by default no solver is run."""
    half_step = state.half_step
    if name == "Python":
        return python_of(state)
    if name == "Formulas":
        return str(html().formulas([(shown, prose(shown.where)) for shown in FORMULAS]))
    if half_step is None:
        return str(html().paragraph(state.trouble))
    if name == "Statement":
        return statement_sheet(half_step)
    if solver is None:
        return str(html().paragraph(ASK))
    if half_step.trouble:
        return str(html().paragraph(half_step.trouble))
    names = list(dict.fromkeys(("newton", solver)))
    answers = [ask_solver(half_step, name) for name in names]
    distances = [distance_between(answer, answers[0]) for answer in answers]
    curves = {name: gaps_by_iteration(half_step, name) for name in names}
    title = "Certified gap of a run stopped early"
    chart = draw_curves(title, "iterations", "relative gap", curves, log_x=True, log_y=True)
    return str(html().answers(list(zip(answers, distances, strict=True)), chart))


def distance_between(answer: MStepSolution, reference: MStepSolution) -> str:
    """How far two solvers' metrics are from each other."""
    if answer.metric is None or reference.metric is None:
        return "no answer"
    return f"{np.linalg.norm(answer.metric - reference.metric):.1e}"


def statement_sheet(half_step: HalfStep) -> str:
    """The current M-step (11), the numbers in it, and the DCP proof that it is convex."""
    from ..m_step.explain import explain_convexity
    from ..m_step.statement import state_m_step

    objective = half_step.objective
    symbols = [to_mathml(symbol, inline=True) for symbol in SYMBOLS]
    proof = _proof_item(explain_convexity(state_m_step(objective)), set())
    explanation = prose(M_STEP_ONE_TERM.where)
    return str(html().statement(M_STEP_ONE_TERM, explanation, objective, symbols, proof))


def _proof_item(node: ConvexityProof, shown: set[str]) -> str:
    """A node of the proof and those below it; what is below an expression is shown once."""
    role = next((role for role in ROLES if node.expression.startswith(role)), "")
    below = ""
    if node.children and node.expression in shown:
        below = ", as above"
    elif node.children:
        shown.add(node.expression)
        below = f"<ul>{''.join(_proof_item(child, shown) for child in node.children)}</ul>"
    formula = typeset(node.expression.removeprefix(role))
    rule = f"<b>{escape(node.curvature.lower())}</b> ({escape(node.rule)})"
    return f"<li>{role}{formula}: {rule}{below}</li>"


# The Python code that reproduces a state of the page


def python_of(state: ExplorerState) -> str:
    """Python code that makes the steps of the page, to the last digit."""
    half_step = state.half_step
    if half_step is None:
        return f"# {state.trouble}\n"
    plain = templates().overlay(autoescape=False, trim_blocks=True, lstrip_blocks=True)
    recipe = plain.get_template("explorer/recipe.txt")
    positions = _filled(f"[{point.across!r}, {point.up!r}]" for point in state.scene.points)
    labels = _filled(map(str, state.scene.y))
    values = {"state": state, "half_step": half_step, "positions": positions, "labels": labels}
    return str(recipe.render(values)) + "\n"


def _filled(items: Iterable[str]) -> str:
    """Indented lines of items between commas."""
    return textwrap.indent(textwrap.fill(", ".join(items), 96), "    ")
