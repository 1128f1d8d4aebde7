"""The page of the nine traps: what solvers said of a problem just now, and what is proved."""

from __future__ import annotations

from collections.abc import Sequence

import marimo as mo
from drawing import PROGRAM, pictures
from failures import GALLERY, Example
from lecture import ceiling, floor
from live import Answer, ask_all, draw_digits, installed, what_is_proved
from pages import code_block, heading, plain, raw

TITLE = "Nine traps for solvers"
LEAD = """
Each problem is convex, passes CVXPY's rules and fits in a few lines. The answers below are those of
the solvers with their default tolerances, when this page was made; every proof accounts for all
rounding errors. Each card has a link of its own, the # after its title.

In the pictures the green digits of an answer are proved, the gray ones are open, and the orange
ones are claimed and refuted. The upright mark shows how many digits "optimal" claims, by the
solver's own tolerance; the verdict is about that claim. The error of an answer is that of its
value, relative where the value is above 1, or the worst violation of a constraint, whichever is
larger.
[Chapter 10](chapter10.html) explains why solvers fail like this and how the proofs work;
[the guide](../guide/certify-any-problem.html) shows the call that makes them.
"""
CODE = """import cvxpy as cp
from seraph_cvx import certify_problem

{}
print(certify_problem(problem))"""
HEAD = ("solver", "says", "verdict", "value", "error ≥", "error ≤")


def failures_page() -> str:
    """The page, in reStructuredText."""
    asked = [(name, {}) for name in installed()]
    cards = [
        write_card(f"{number} {example.name}", example, ask_all(example.code, asked))
        for number, example in enumerate(GALLERY, start=1)
    ]
    return heading(TITLE) + raw(plain(mo.md(LEAD).text)) + "".join(cards) + raw(PROGRAM)


def write_card(title: str, example: Example, answers: Sequence[Answer]) -> str:
    """The problem, what solvers say of it, what is proved, and a picture of both."""
    rows = [row(answer) for answer in answers]
    table = "".join(f"<tr><td>{'</td><td>'.join(cells)}</td></tr>" for cells in rows)
    picture = pictures("Digits", draw_digits("Digits claimed and proved", answers)).body
    return (
        heading(title, 2)
        + raw(plain(mo.md(example.why).text))
        + code_block(CODE.format(example.code))
        + raw(
            f"<table><thead><tr><th>{'</th><th>'.join(HEAD)}</th></tr></thead><tbody>{table}"
            f"</tbody></table><p><b>Proved:</b> {what_is_proved(answers[0])}.</p>{picture}"
        )
    )


def row(answer: Answer) -> tuple[str, ...]:
    """What a solver says, and by how much that is wrong."""
    said = answer.status.replace("_", " ")
    if answer.is_silent:
        return answer.solver, said, "no claim", "", "", ""
    low, high = answer.error
    value = f"{answer.value:.9g}".replace("-", "−") if answer.claims_a_value else ""
    return answer.solver, said, answer.own_verdict, value, floor(low, 1), ceiling(high, 1)
