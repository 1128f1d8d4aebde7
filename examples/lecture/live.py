"""What a solver claims of a student's problem, judged by proofs, and the page that says so."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha1
from html import escape
from io import StringIO
from time import perf_counter
from traceback import extract_tb
from typing import Any

import cvxpy as cp
import marimo as mo
import numpy as np
from cvxpy.error import SolverError
from drawing import BLACK, GRAY, GREEN, ORANGE, Panel, pictures
from lecture import ceiling, enclosure, floor

from seraph_cvx import certify_problem
from seraph_cvx.proof.rounding import down, up

CLAIMS = {"CLARABEL": 8, "SCS": 5, "CVXOPT": 6}
"""The digits that "optimal" stands for, by the default tolerance on the gap under CVXPY."""

MOST_DIGITS = 16
_DIGITS = "Digits claimed, and digits proved"
PROVED, REFUTED, NOT_YET, NO_CLAIM = "proved", "refuted", "not yet", "no claim"


def installed() -> list[str]:
    """The solvers that claims are asked of."""
    return [name for name in CLAIMS if name in cp.installed_solvers()]


# What a solver claims, and what is proved of it -----------------------------------------------


@dataclass(frozen=True, eq=False)
class Answer:
    """What a solver said of a problem, and what is proved of the problem and of its point.

    The error of the answer, which `error` encloses: how far the claimed value
    is from the optimal one, relative to max(1, |value|), or how far the point is from meeting the
    worst constraint, whichever is larger.
    """

    solver: str
    status: str
    value: float | None
    lower: float
    upper: float
    infeasible: bool
    unbounded: bool
    maximizes: bool
    violations: tuple[tuple[str, Any], ...]

    @property
    def claims_a_value(self) -> bool:
        return self.status.startswith("optimal") and self.value is not None

    @property
    def is_silent(self) -> bool:
        """Whether it claims nothing: the status says why."""
        is_verdict = self.status.removesuffix("_inaccurate") in ("infeasible", "unbounded")
        return not (self.claims_a_value or is_verdict)

    @property
    def is_proved_feasible(self) -> bool:
        return self.unbounded or math.isfinite(self.lower if self.maximizes else self.upper)

    @property
    def is_proved_bounded(self) -> bool:
        """That the objective has a bound, or no point to be evaluated at."""
        return self.infeasible or math.isfinite(self.upper if self.maximizes else self.lower)

    @property
    def value_error(self) -> tuple[float, float]:
        """Bounds on the relative distance of the claimed value from the optimal one."""
        value, size = self.value or 0.0, max(1.0, abs(self.value or 0.0))
        low = max(_excess(self.lower, value, size), _excess(value, self.upper, size))
        high = max(_excess(value, self.lower, size, up), _excess(self.upper, value, size, up))
        return low, high

    @property
    def violation(self) -> tuple[float, float]:
        """Bounds on the worst violation of a constraint at the solver's point."""
        unknown = (0.0, math.inf)
        found = [each if isinstance(each, tuple) else unknown for _, each in self.violations]
        return max((low for low, _ in found), default=0.0), max((h for _, h in found), default=0.0)

    @property
    def error(self) -> tuple[float, float]:
        """Bounds on the error: (0, inf) where nothing is known."""
        if self.claims_a_value:
            (low, high), (least, most) = self.value_error, self.violation
            return max(low, least), max(high, most)
        proved = {"infeasible": self.infeasible, "unbounded": self.unbounded}
        false = {"infeasible": self.is_proved_feasible, "unbounded": self.is_proved_bounded}
        said = self.status.removesuffix("_inaccurate")
        if said not in proved:
            return 0.0, math.inf
        return (math.inf if false[said] else 0.0), (0.0 if proved[said] else math.inf)

    @property
    def claimed_digits(self) -> int | None:
        """What "optimal" stands for; an answer that is called inaccurate claims no digits."""
        return CLAIMS[self.solver] if self.status == "optimal" else None

    @property
    def digits(self) -> tuple[float, float]:
        """How many digits are proved, and beyond how many the answer is refuted."""
        low, high = self.error
        return _digits(high), _digits(low)

    @property
    def own_verdict(self) -> str:
        """The verdict on what the solver itself claims, and on nothing beyond it."""
        if self.is_silent or (self.claims_a_value and self.claimed_digits is None):
            return NO_CLAIM
        return self.verdict(self.claimed_digits or 0)

    def verdict(self, digits: int) -> str:
        """Proved, refuted or not yet: that the error is at most 10 to the power -digits."""
        low, high = self.error
        if high <= Fraction(1, 10**digits):
            return PROVED
        return REFUTED if low > Fraction(1, 10**digits) else NOT_YET

    @property
    def reason(self) -> str:
        """One or two sentences in HTML: why the verdict is what it is."""
        if not self.claims_a_value:
            return f"{self.solver} {self._said_without_a_value()} {self._proved()}"
        said, digits = f"{self.solver} says {self.value:.9g}", self.claimed_digits
        if digits is None:
            return f"{said}, and calls that inaccurate: no digits are claimed. {self._proved()}"
        claim = f"{said} is optimal, and so claims {digits} digits. "
        low, high = self.value_error
        least, most = self.violation
        limit, word = 10.0**-digits, self.verdict(digits)
        if word == PROVED:
            why = f"Its value is off by at most {ceiling(high, 1)}, "
            why += f"its constraints by at most {ceiling(most, 1)}."
        elif self.infeasible and word == REFUTED:
            why = ""
        elif word == REFUTED:
            parts = [f"the value is off by at least {floor(low, 1)}"] * (low > limit)
            parts += [f"a constraint is violated by at least {floor(least, 1)}"] * (least > limit)
            why = f"But {' and '.join(parts)}."
        else:
            missing = [name for name, end in self._ends() if not math.isfinite(end)]
            parts = [f"there is no {' and no '.join(missing)} bound"] if missing else []
            if high > limit and not missing:
                parts.append(f"the value may be off by {ceiling(high, 1)}")
            parts += [f"a violation may be {ceiling(most, 1)}"] * (most > limit)
            why = f"Not enough is proved: {', and '.join(parts)}."
        return f"{claim}{why} {self._proved()}".replace("  ", " ")

    def _ends(self) -> list[tuple[str, float]]:
        return [("lower", self.lower), ("upper", self.upper)]

    def _said_without_a_value(self) -> str:
        said = escape(self.status.replace("_", " "))
        return f"claims nothing: {said}." if self.is_silent else f"says: {said}."

    def _proved(self) -> str:
        return f"Proved: {what_is_proved(self)}."


def _excess(
    large: float, small: float, size: float, rounded: Callable[[Fraction], float] = down
) -> float:
    """How far a number is above another, relative to a size: exactly, then rounded one way."""
    if large <= small:
        return 0.0
    if math.isinf(large) or math.isinf(small):
        return math.inf
    return rounded((Fraction(large) - Fraction(small)) / Fraction(size))


def _digits(error: float) -> float:
    return float(min(MOST_DIGITS, max(0.0, -math.log10(error)))) if error > 0.0 else MOST_DIGITS


def what_is_proved(answer: Answer) -> str:
    """What is proved of the optimal value, in words."""
    if answer.infeasible or answer.unbounded:
        return "no point is feasible" if answer.infeasible else "the objective has no bound"
    low, high = answer.lower, answer.upper
    if math.isfinite(low) and math.isfinite(high):
        return f"the optimal value is in {enclosure(low, high, 10)}"
    if math.isfinite(low):
        return f"the optimal value is at least {floor(low, 10)}"
    if math.isfinite(high):
        return f"the optimal value is at most {ceiling(high, 10)}"
    return "nothing"


class Unanswerable(Exception):
    """What is wrong with the code of a student, in one sentence."""


def read_problem(code: str) -> cp.Problem:
    """Run the code of a student and take its `problem`; what is wrong is said in a sentence."""
    names: dict[str, Any] = {"cp": cp, "np": np}
    try:
        with redirect_stdout(StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(code, "<your code>", "exec"), names)
    except SyntaxError as error:
        raise Unanswerable(f"Line {error.lineno} is not Python: {error.msg}.") from error
    except (Exception, SystemExit) as error:
        calls = extract_tb(error.__traceback__)
        lines = [call.lineno for call in calls if call.filename == "<your code>"]
        place = f"Line {lines[-1]} stops" if lines else "The code stops"
        raise Unanswerable(f"{place} with {_one_line(error)}") from error
    problem = names.get("problem")
    if not isinstance(problem, cp.Problem):
        raise Unanswerable("The code does not define `problem = cp.Problem(...)`.")
    if not problem.variables():
        raise Unanswerable("The problem has no variable.")
    if not problem.is_dcp():
        raise Unanswerable(
            "CVXPY's rules do not show that the problem is convex (it is not DCP), and a bound "
            "from a dual would prove nothing about it."
        )
    return problem


def _one_line(error: BaseException) -> str:
    first = next(iter(str(error).strip().splitlines()), "").rstrip(".")
    return f"{type(error).__name__}: {first}." if first else f"{type(error).__name__}."


def ask(code: str, solver: str, **options: Any) -> Answer:
    """Let a solver answer a student's problem, and prove what can be proved."""
    problem = read_problem(code)
    status, value = "it failed", None
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            problem.solve(solver=solver, **options)
            status, value = str(problem.status), problem.value
        except SolverError as error:
            status = "it failed" if "failed" in str(error) else "it cannot take this problem"
        except Exception as error:  # a solver's own code, such as a division by zero
            status = f"it stopped with {type(error).__name__}"
        try:
            proof = certify_problem(problem)
        except Exception as error:
            raise Unanswerable(f"No certificate: {str(error).strip().splitlines()[0]}") from error
    value = None if value is None or not np.isfinite(value) else float(value)
    return Answer(
        solver, status, value, proof.lower, proof.upper, proof.infeasible, proof.unbounded,
        proof.program.maximize, () if proof.point is None else proof.point.violations,
    )  # fmt: skip


def ask_all(code: str, asked: Sequence[tuple[str, dict[str, Any]]]) -> list[Answer]:
    """The answers of solvers with options, judged by the best bounds that any of them led to."""
    answers = [ask(code, solver, **options) for solver, options in asked]
    settled = next((each for each in answers if each.infeasible or each.unbounded), None)
    best = {
        "lower": max(each.lower for each in answers) if settled is None else settled.lower,
        "upper": min(each.upper for each in answers) if settled is None else settled.upper,
        "infeasible": settled is not None and settled.infeasible,
        "unbounded": settled is not None and settled.unbounded,
    }
    return [replace(answer, **best) for answer in answers]


# Pictures -------------------------------------------------------------------------------------


def draw_digits(title: str, answers: Sequence[Answer]) -> Panel:
    """For each solver the digits that are proved, and of those that it claims the refuted ones."""
    rows = dict(enumerate(answers))
    panel = Panel(
        title,
        ("digits", 0, MOST_DIGITS),
        ("", len(rows) - 0.4, -0.75),
        names={GREEN: "proved", GRAY: "open", ORANGE: "refuted", BLACK: "claimed"},
        ticks={"y": {row: answer.solver for row, answer in rows.items()}},
        alt="; ".join(
            f"{answer.solver} says {answer.status}: {answer.own_verdict}" for answer in answers
        ),
    )
    for row, answer in rows.items():
        panel.write(0.2, row - 0.33, answer.status.replace("_", " "))
        (proved, refuted), claimed = answer.digits, answer.claimed_digits or 0
        if answer.is_silent:
            proved = refuted = 0.0
        for color, start, end in (
            (GREEN, 0.0, proved),
            (GRAY, proved, refuted),
            (ORANGE, refuted, float(claimed)),
        ):
            panel.bar((start, max(start, end)), (row - 0.25, row + 0.25), color)
        panel.bar((claimed - 0.1, claimed), (row - 0.36, row + 0.36), BLACK)
    return panel


# The live page --------------------------------------------------------------------------------


HOW_TO_START = """
This part is live: you type, and Python answers. A page without Python cannot do that. Start it
with `marimo run examples/lecture/chapter10.py`; section 10.6 has the answers for the gallery.
"""


def when_live(output: Any) -> Any:
    """What a cell shows where Python runs beside the page; nothing in an exported one."""
    return output if mo.running_in_notebook() else None


def key(code: str, solver: str) -> str:
    """A name for a question, by which a test finds its answer on the page."""
    return sha1(f"{code}|{solver}".encode()).hexdigest()[:12]


def live_answer(code: str, solver: str) -> mo.Html:
    """The page's answer, or where no Python runs beside the page, how to start it."""
    return answer_html(code, solver) if mo.running_in_notebook() else mo.md(HOW_TO_START)


def answer_html(code: str, solver: str) -> mo.Html:
    """The answer: a word on the solver's own claim, the reasons, and the digits."""
    clock = perf_counter()
    try:
        answer = ask(code, solver)
    except Unanswerable as wrong:
        body = f"<p><b>No answer.</b> {escape(str(wrong))}</p>"
    else:
        word = answer.own_verdict
        color = {PROVED: "#15803d", REFUTED: "#c2410c"}.get(word, "#57534e")
        proved, _ = answer.digits
        claimed = "none" if answer.claimed_digits is None else answer.claimed_digits
        body = (
            f'<p><b class="word" style="color:{color};font-size:1.3em">{word.capitalize()}.</b> '
            f"{answer.reason}</p>"
            f"<p>Digits claimed: <b>{claimed}</b>. Digits proved: <b>{math.floor(proved)}</b>. "
            f"{'' if answer.violation[0] else 'No constraint is proved to be violated. '}"
            f"Answered in {perf_counter() - clock:.1f} s.</p>"
            f"{pictures(_DIGITS, draw_digits(_DIGITS, [answer])).text}"
        )
    return mo.Html(
        f'<div class="answer" role="status" data-asked="{key(code, solver)}">{body}</div>'
    )
