"""What chapter 10 needs: solvers' claims judged by proofs, and a dual point that you can drag."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from fractions import Fraction
from hashlib import sha1
from html import escape
from io import StringIO
from time import perf_counter
from traceback import extract_tb
from typing import Any, NamedTuple

import cvxpy as cp
import marimo as mo
import numpy as np
from cvxpy.error import SolverError
from lecture import BLUE, GRAY, GREEN, ORANGE, panel, pictures
from matplotlib.figure import Figure

from seraph_cvx import certify_problem
from seraph_cvx.certificate.conic.point import ATTRIBUTES
from seraph_cvx.numerics.rounding import down, up

CLAIMS = {"CLARABEL": 8, "SCS": 5, "CVXOPT": 6}
"""The digits that "optimal" stands for, by the default tolerance on the gap under CVXPY."""

MOST_DIGITS = 16
PROVED, REFUTED, NOT_YET = "proved", "refuted", "not yet"
COLORS = {PROVED: GREEN, REFUTED: ORANGE, NOT_YET: GRAY}


class Example(NamedTuple):
    """A problem to certify: its optimal value where one knows it, and the code of a student."""

    name: str
    why: str
    truth: float | None
    code: str


WELL_POSED = (
    Example(
        "A linear program",
        "Two products, three limits.",
        11.0,
        """z = cp.Variable(2, nonneg=True)
problem = cp.Problem(
    cp.Maximize(3 * z[0] + 2 * z[1]),
    [z[0] + z[1] <= 4, z[0] + 3 * z[1] <= 6, z[0] <= 3],
)""",
    ),
    Example(
        "A point in a disk",
        "The point of a disk that is closest to a point outside.",
        3.0,
        """z = cp.Variable(2)
problem = cp.Problem(cp.Minimize(cp.norm(z - [3, 4])), [cp.norm(z) <= 2])""",
    ),
    Example(
        "Maximum entropy",
        "A die whose mean is 4.5.",
        None,
        """z = cp.Variable(6)
problem = cp.Problem(
    cp.Maximize(cp.sum(cp.entr(z))),
    [cp.sum(z) == 1, np.arange(1, 7) @ z == 4.5],
)""",
    ),
    Example(
        "The smallest trace",
        "The problem of section 10.2.",
        1.5,
        """A = cp.Variable((3, 3), PSD=True)
problem = cp.Problem(
    cp.Minimize(cp.trace(A)),
    [A[0, 1] + A[1, 2] == 1, A[0, 2] == 0.5],
)""",
    ),
)

GALLERY = (
    Example(
        "No interior",
        "A zero on the diagonal of a PSD matrix makes its whole row zero. So the feasible set is a "
        "single matrix, without an interior, and the optimal value is 0. But a diagonal entry of "
        "10⁻¹⁰ would permit 10⁻⁵ beside it: an error in the constraint comes back as its square "
        "root.",
        0.0,
        """A = cp.Variable((2, 2), PSD=True)
problem = cp.Problem(cp.Maximize(A[0, 1]), [A[1, 1] == 0, A[0, 0] == 1])""",
    ),
    Example(
        "No interior, exponential cone",
        "The left side of the constraint is at least 2, and equal to 2 at 0 only. So 0 is the one "
        "feasible point, and a violation too small to notice moves *z* by its square root.",
        0.0,
        """z = cp.Variable()
problem = cp.Problem(cp.Minimize(z), [cp.exp(z) + cp.exp(-z) <= 2])""",
    ),
    Example(
        "Unattained",
        "The constraint says *z*₁ > 0 and *z*₂ ≥ 1/*z*₁. The infimum is 0, and no point has that "
        "value: a solver walks toward infinity until it loses patience. The proof does not mind, "
        "since it needs a point for each bound, not an optimal one.",
        0.0,
        """z = cp.Variable(2)
problem = cp.Problem(cp.Minimize(z[0]), [cp.bmat([[z[0], 1], [1, z[1]]]) >> 0])""",
    ),
    Example(
        "Positive gap",
        "The first equation makes the second row of *A* zero, so that the second equation says "
        "that the objective is 1. But no multiplier proves more than 0: the dual slack has a zero "
        "on its diagonal too, and that forces the multiplier of the second equation, which is "
        "the bound, to be 0.",
        1.0,
        """A = cp.Variable((3, 3), PSD=True)
problem = cp.Problem(
    cp.Minimize(A[0, 0]),
    [A[1, 1] == 0, A[0, 0] + 2 * A[1, 2] == 1],
)""",
    ),
    Example(
        "Badly scaled",
        "Coefficients from 10⁻⁶ to 10⁶. A tolerance that is relative to the largest number in "
        "sight demands nothing of the small ones.",
        999000.001,
        """z = cp.Variable(3, nonneg=True)
problem = cp.Problem(
    cp.Minimize(1e6 * z[0] + z[1] + 1e-6 * z[2]),
    [cp.sum(z) >= 1e6, 1e6 * z[0] + z[1] >= 1, z[2] <= 1e3],
)""",
    ),
    Example(
        "Barely infeasible",
        "In the unit disk the sum of both coordinates is at most the square root of 2, which is "
        "1.41421 and less than 1.4143. How close that is to feasible depends on whose tolerance, "
        "and in whose scaling.",
        math.inf,
        """z = cp.Variable(2)
problem = cp.Problem(cp.Minimize(cp.sum(z)), [cp.norm(z) <= 1, cp.sum(z) >= 1.4143])""",
    ),
    Example(
        "Weakly infeasible",
        "A zero on the diagonal with a 1 beside it: no *z* is feasible. But with 10⁻⁹ instead of "
        "the zero a large *z* would be, so the problem is infeasible without a ray that proves it; "
        "what can be proved is a lower bound as high as you like.",
        math.inf,
        """z = cp.Variable()
problem = cp.Problem(cp.Minimize(z), [cp.bmat([[z, 1], [1, 0]]) >> 0])""",
    ),
    Example(
        "Unbounded along a ray",
        "The first coordinate can fall forever and nothing holds it. A feasible point and a ray "
        "of descent prove it.",
        -math.inf,
        """z = cp.Variable(2)
problem = cp.Problem(cp.Minimize(z[0] - cp.log(z[1])))""",
    ),
    Example(
        "Unbounded, slowly",
        "The logarithm has no bound, but it grows more slowly than any linear function. So no ray "
        "proves it; but every answer is refuted by a better point.",
        math.inf,
        """z = cp.Variable()
problem = cp.Problem(cp.Maximize(cp.log(z)))""",
    ),
)
EXAMPLES = {example.name: example.code for example in (*WELL_POSED, *GALLERY)}


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
    problem: cp.Problem
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

    def verdict(self, digits: int) -> str:
        """Proved, refuted or not yet: that the error is at most 10 to the power -digits."""
        low, high = self.error
        if high <= Fraction(1, 10**digits):
            return PROVED
        return REFUTED if low > Fraction(1, 10**digits) else NOT_YET

    def reason(self, digits: int) -> str:
        """One or two sentences in HTML: why the verdict is what it is."""
        if not self.claims_a_value:
            return f"{self.solver} {self._said_without_a_value()} {self._proved()}"
        claim = f"{self.solver} claims {self.value:.9g} ({escape(self.status)}). "
        low, high = self.value_error
        least, most = self.violation
        limit, word = 10.0**-digits, self.verdict(digits)
        if word == PROVED:
            why = f"Its value is off by at most {_ceiling(high)}, "
            why += f"its constraints by at most {_ceiling(most)}."
        elif self.infeasible and word == REFUTED:
            why = ""
        elif word == REFUTED:
            parts = [f"the value is off by at least {_floor(low)}"] * (low > limit)
            parts += [f"a constraint is violated by at least {_floor(least)}"] * (least > limit)
            why = f"But {' and '.join(parts)}."
        else:
            missing = [name for name, end in self._ends() if not math.isfinite(end)]
            parts = [f"there is no {' and no '.join(missing)} bound"] if missing else []
            if high > limit and not missing:
                parts.append(f"the value may be off by {_ceiling(high)}")
            parts += [f"a violation may be {_ceiling(most)}"] * (most > limit)
            why = f"Not enough is proved: {', and '.join(parts)}."
        return f"{claim}{why} {self._proved()}".replace("  ", " ")

    def _ends(self) -> list[tuple[str, float]]:
        return [("lower", self.lower), ("upper", self.upper)]

    def _said_without_a_value(self) -> str:
        said = escape(self.status.replace("_", " "))
        return f"claims nothing: {said}." if self.is_silent else f"says: {said}."

    def _proved(self) -> str:
        return f"Proved: {enclosure(self)}."


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


def enclosure(answer: Answer) -> str:
    """What is proved of the optimal value, in words."""
    if answer.infeasible or answer.unbounded:
        return "no point is feasible" if answer.infeasible else "the objective has no bound"
    low, high = answer.lower, answer.upper
    if math.isfinite(low) and math.isfinite(high):
        return f"the optimal value is in [{_floor(low, 10)}, {_ceiling(high, 10)}]"
    if math.isfinite(low):
        return f"the optimal value is at least {_floor(low, 10)}"
    if math.isfinite(high):
        return f"the optimal value is at most {_ceiling(high, 10)}"
    return "nothing"


def _floor(value: float, digits: int = 1) -> str:
    """So many digits of a number, rounded down."""
    return f"{float(Context(digits, ROUND_FLOOR).create_decimal(value)) + 0.0:.{digits}g}"


def _ceiling(value: float, digits: int = 1) -> str:
    """So many digits of a number, rounded up."""
    return f"{float(Context(digits, ROUND_CEILING).create_decimal(value)) + 0.0:.{digits}g}"


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
        proof.program.maximize, problem, () if proof.point is None else proof.point.violations,
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


def draw_digits(title: str, answers: Sequence[Answer]) -> Figure:
    """For each solver the digits that are proved, open and refuted, and those it claims."""
    figure, ax = panel(title, "digits", "")
    for row, answer in enumerate(answers):
        proved, open_ = answer.digits
        if answer.is_silent:
            ax.text(0.3, row, answer.status, va="center", fontsize=12)
            continue
        ends = [0.0, proved, open_, float(MOST_DIGITS)]
        for color, start, end in zip((GREEN, GRAY, ORANGE), ends, ends[1:], strict=False):
            ax.barh(row, max(end - start, 0.0), left=start, height=0.5, color=color, alpha=0.75)
        if answer.claimed_digits is not None:
            ax.plot([answer.claimed_digits] * 2, [row - 0.36, row + 0.36], color="black")
        ax.text(0.2, row - 0.33, answer.status.replace("_", " "), va="bottom", fontsize=11)
    ax.set_yticks(range(len(answers)), [answer.solver for answer in answers])
    ax.set_xlim(0, MOST_DIGITS)
    ax.set_xticks(range(0, MOST_DIGITS + 1, 4))
    ax.set_ylim(len(answers) - 0.4, -0.75)
    return figure


class Slice(NamedTuple):
    """A curve of which the constraint permits what is above, and a point at x = 0."""

    kind: str
    x: np.ndarray
    edge: np.ndarray
    point: float
    labels: tuple[str, str]


def draw_violation(answer: Answer) -> Figure | None:
    """The constraint that the solver's point violates most, cut along a plane, if one is."""
    if not (answer.claims_a_value and answer.violations):
        return None
    judged = [
        (bounds, constraint)
        for (_, bounds), constraint in zip(
            answer.violations, _constraints(answer.problem), strict=True
        )
        if isinstance(bounds, tuple)
    ]
    (low, _), constraint = max(judged, key=lambda each: each[0], default=((0.0, 0.0), None))
    if low == 0.0:
        return None
    with np.errstate(all="ignore"):
        cut = _cut(answer.problem, constraint, low)
    figure, ax = panel(f"{cut.kind}: violated by {_floor(low, 2)}", *cut.labels)
    ax.title.set_fontsize(12)
    ax.plot(cut.x, cut.edge, color=BLUE)
    if cut.kind == "Equation":
        ax.set_xticks([])
    else:
        ax.fill_between(cut.x, cut.edge, np.nanmax(cut.edge), color=BLUE, alpha=0.15, linewidth=0)
    ax.plot([0, 0], [float(np.interp(0.0, cut.x, cut.edge)), cut.point], color=ORANGE)
    ax.plot(0, cut.point, "o", color=ORANGE, markersize=11)
    ax.ticklabel_format(style="sci", scilimits=(-3, 4), useOffset=True)
    return figure


def _constraints(problem: cp.Problem) -> Iterator[Any]:
    """The constraints and the attributes of variables, in the order of a report."""
    yield from problem.constraints
    for variable in problem.variables():
        for kind in ATTRIBUTES:
            if variable.attributes[kind]:
                yield variable, kind


def _cut(problem: cp.Problem, constraint: Any, size: float) -> Slice:
    """Cut a constraint along a plane through the values of the variables."""
    kind = constraint[1] if isinstance(constraint, tuple) else type(constraint).__name__
    if kind in ("PSD", "NSD"):
        matrix = (constraint if isinstance(constraint, tuple) else constraint.args)[0].value
        values = np.linalg.eigvalsh((matrix + matrix.T) / 2) * (1 if kind == "PSD" else -1)
        least, largest = min(values), max(max(values), 1e-300)
        b = np.linspace(-1, 1, 81) * np.sqrt(3 * size * largest)
        return Slice("PSD cone", b, b**2 / largest, least, ("entry beside", "diagonal entry"))
    if kind == "Equality":
        off = (constraint.args[0] - constraint.args[1]).value
        point = float(off.flat[np.argmax(np.abs(off))]) if np.ndim(off) else float(off)
        return Slice("Equation", np.array([-1.0, 1.0]), np.zeros(2), point, ("", "left − right"))
    if kind == "Inequality":
        left, right = constraint.args
        if type(left).__name__.startswith("Pnorm") and left.size == 1 and float(left.p) == 2.0:
            norm, bound = float(left.value), float(right.value)
            b = np.linspace(-1, 1, 81) * np.sqrt(8 * size * max(norm, size))
            labels = ("across", "bound on the norm")
            return Slice("Second-order cone", b, np.hypot(norm, b), bound, labels)
        return _line(problem, left - right, size)
    body = constraint[0] if isinstance(constraint, tuple) else constraint.args[0]
    return _line(problem, -body if kind in ("nonneg", "pos", "NonNeg") else body, size)


EXPONENTIAL = {"exp", "log", "entr", "logistic", "log_sum_exp", "kl_div", "rel_entr", "log1p"}


def _line(problem: cp.Problem, excess: Any, size: float) -> Slice:
    """The worst entry of what must not be positive, along the line on which it grows fastest."""
    variables = problem.variables()
    kept = [variable.value for variable in variables]
    start = np.concatenate([np.ravel(value, order="F") for value in kept]).astype(float)
    worst = int(np.argmax(excess.value)) if excess.size > 1 else 0

    def at(z: np.ndarray) -> float:
        ends = np.cumsum([variable.size for variable in variables])[:-1]
        for variable, part in zip(variables, np.split(z, ends), strict=True):
            variable.save_value(part.reshape(variable.shape, order="F"))
        return float(np.ravel(excess.value)[worst])

    try:
        steps = 1e-6 * np.maximum(1.0, np.abs(start))
        slope = np.array(
            [
                (at(start + step * unit) - at(start - step * unit)) / (2 * step)
                for step, unit in zip(steps, np.eye(len(start)), strict=True)
            ]
        )
        slope = np.nan_to_num(slope)
        length = float(np.linalg.norm(slope)) or 1.0
        x = np.linspace(-1, 1, 41) * 3 * size / length
        edge = np.array([at(start + each * slope / length) for each in x])
    finally:
        for variable, value in zip(variables, kept, strict=True):
            variable.save_value(value)
    atoms = {atom.__name__ for atom in excess.atoms()}
    kind = "Exponential cone" if atoms & EXPONENTIAL else "Half-space" if excess.is_affine() else ""
    return Slice(kind or "Convex set", x, edge, 0.0, ("along the steepest line", "left − right"))


# The live page --------------------------------------------------------------------------------


HOW_TO_START = """
This part is live: you type, and Python answers. A page without Python cannot do that. Start it
with `marimo run examples/lecture/chapter10.py`; section 10.6 has the answers for the gallery.
"""


def when_live(output: Any) -> Any:
    """What a cell shows where Python runs beside the page; nothing in an exported one."""
    return output if mo.running_in_notebook() else None


def key(code: str, solver: str, digits: int) -> str:
    """A name for a question, by which a test finds its answer on the page."""
    return sha1(f"{code}|{solver}|{digits}".encode()).hexdigest()[:12]


def live_answer(code: str, solver: str, digits: int) -> mo.Html:
    """The page's answer, or where no Python runs beside the page, how to start it."""
    return answer_html(code, solver, digits) if mo.running_in_notebook() else mo.md(HOW_TO_START)


def answer_html(code: str, solver: str, digits: int) -> mo.Html:
    """The answer: a word, the reasons, the digits, and the violated cone drawn."""
    clock = perf_counter()
    try:
        answer = ask(code, solver)
    except Unanswerable as wrong:
        body = f"<p><b>No answer.</b> {escape(str(wrong))}</p>"
    else:
        word = answer.verdict(digits)
        color = {PROVED: "#15803d", REFUTED: "#c2410c", NOT_YET: "#57534e"}[word]
        if answer.is_silent:
            word = "no claim"
        proved, _ = answer.digits
        claimed = "none" if answer.claimed_digits is None else answer.claimed_digits
        cone = draw_violation(answer)
        figures = [draw_digits("Digits: proved, open, refuted", [answer]), cone]
        body = (
            f'<p><b class="word" style="color:{color};font-size:1.3em">{word.capitalize()}.</b> '
            f"{answer.reason(digits)}</p>"
            f"<p>Digits claimed: <b>{claimed}</b>. Digits proved: <b>{math.floor(proved)}</b>. "
            f"{'No constraint is proved to be violated. ' if cone is None else ''}"
            f"Answered in {perf_counter() - clock:.1f} s.</p>"
            f"{pictures([figure for figure in figures if figure is not None])}"
        )
    return mo.Html(
        f'<div class="answer" role="status" data-asked="{key(code, solver, digits)}">{body}</div>'
    )


# A dual point to drag -------------------------------------------------------------------------

DRAG_STYLE = """
.drag { display: flex; flex-wrap: wrap; gap: .5rem 1.5rem; align-items: center; }
.drag svg { flex: 1 1 18rem; min-width: 0; max-width: 27rem; font: 14px system-ui, sans-serif; }
.drag div { flex: 1 1 18rem; min-width: 0; max-width: 27rem; }
.drag svg text { fill: currentColor; }
.drag .inside { fill: #93c5fd; fill-opacity: .45; stroke: #1f5fa8; stroke-width: 2; }
.drag .axis { stroke: currentColor; stroke-opacity: .35; }
.drag .level { stroke: #1f5fa8; stroke-dasharray: 6 4; }
.drag .best { stroke: currentColor; stroke-opacity: .6; stroke-dasharray: 2 4; }
.drag .cut { stroke: #c2410c; stroke-width: 2.5; }
.drag .point { cursor: grab; touch-action: none; } .drag .grip { fill-opacity: 0; }
.drag .dot { fill: #15803d; stroke: #fff; stroke-width: 2; }
.drag .refuted .dot { fill: #c2410c; }
.drag .point:focus-visible { outline: 3px solid #1f5fa8; }
.drag label { display: block; font-weight: 600; margin: .3rem 0; }
.drag input { display: block; width: 100%; margin: .2rem 0; }
.drag output { display: block; min-height: 7em; margin: .4rem 0; }
"""
DRAG_BODY = """
<div class="drag">
<svg viewBox="0 0 400 400" role="group"
 aria-label="The plane of the two multipliers; the shaded set is feasible">
<line class="axis" x1="10" y1="200" x2="390" y2="200"></line>
<line class="axis" x1="200" y1="10" x2="200" y2="390"></line>
<path class="inside" d="M 80 320 L 320 320 Q 200 -160 80 320 Z"></path>
<line class="best"></line><line class="level"></line><line class="cut"></line>
<text x="378" y="190">ζ₁</text><text x="208" y="22">ζ₂</text>
<text x="316" y="216">1</text><text x="72" y="216">−1</text><text x="208" y="76">1</text>
<text x="208" y="338">−1</text><text x="296" y="180">3/2</text>
<g class="point" tabindex="0" role="application"
 aria-label="The dual point; arrow keys move it by 1/64, with Shift by 1/8">
<circle class="grip" r="24"></circle><circle class="dot" r="9"></circle></g>
</svg>
<div>
<label>ζ₁ = <span></span><input type="range" min="-96" max="96" step="1" value="16"></label>
<label>ζ₂ = <span></span><input type="range" min="-96" max="96" step="1" value="16"></label>
<output aria-live="polite"></output>
</div>
</div>
"""
DRAG_SCRIPT = """
for (const drag of document.querySelectorAll(".drag")) {
  const svg = drag.querySelector("svg"), point = drag.querySelector(".point");
  const inputs = [...drag.querySelectorAll("input")], names = [...drag.querySelectorAll("span")];
  const answer = drag.querySelector("output"), most = 96;
  const words = (number) => String(number).replace("-", "\\u2212");
  const line = (name, ends) => {
    const drawn = drag.querySelector(name);
    drawn.style.display = ends ? "" : "none";
    if (!ends) return;
    ["x1", "y1", "x2", "y2"].forEach((side, k) =>
      drawn.setAttribute(side, k % 2 ? 200 - 120 * ends[k] : 200 + 120 * ends[k]));
  };
  const show = () => {
    // The point is (a/64, b/64); every number below is a whole number, so nothing is rounded.
    const [a, b] = inputs.map((input) => input.valueAsNumber);
    const flat = 2 * (64 + b) * 64;                    // 4096 v'Mv for v = (1, 0, -1)
    const bent = 2 * (4096 - 64 * b - 2 * a * a);      // 4096 v'Mv for v = (1, 2a/64, 1)
    const inside = flat >= 0 && bent >= 0, bound = 2 * a + b, worst = Math.min(flat, bent);
    const x = a / 64, y = b / 64, z = words(bound / 64);
    point.setAttribute("transform", `translate(${200 + 120 * x} ${200 - 120 * y})`);
    point.classList.toggle("refuted", !inside);
    line(".best", [-0.05, 1.6, 1.6, -1.7]);
    line(".level", inside ? [x - 0.6, y + 1.2, x + 0.6, y - 1.2] : null);
    if (inside) line(".cut", null);
    else if (worst === flat) line(".cut", [-1.6, -1, 1.6, -1]);
    else {  // the tangent of the parabola at x, within the window
      const at = (t) => 1 + 2 * x * x - 4 * x * t, half = Math.min(1, 1.2 / (1 + 4 * Math.abs(x)));
      line(".cut", [x - half, at(x - half), x + half, at(x + half)]);
    }
    names.forEach((name, k) => { name.textContent = words([x, y][k]); });
    inputs.forEach((input, k) => input.setAttribute("aria-valuetext", words([x, y][k])));
    const v = worst === flat ? "(1, 0, \\u22121)" : `(1, ${words(2 * x)}, 1)`;
    const [word, why] = !inside
      ? ["Refuted.", `M(ζ) is not PSD: v = ${v} has v\\u1d40Mv = ${words(worst / 4096)}. `
        + "This point proves nothing; the orange line separates it from all feasible ones."]
      : bound === 96 ? ["Proved.", "The smallest trace is exactly 1.5."]
      : ["Proved:", `no feasible A has a trace below ${z}. `
        + `Not yet: whether any has one between ${z} and 1.5.`];
    const strong = document.createElement("b");
    strong.textContent = word;
    answer.replaceChildren(strong, ` ${why}`);
    Object.assign(answer.dataset, { inside, bound: bound / 64, worst: worst / 4096 });
  };
  const move = (a, b) => {
    [a, b].forEach((to, k) => { inputs[k].value = Math.max(-most, Math.min(most, to)); });
    show();
  };
  const follow = (event) => {
    const box = svg.getBoundingClientRect(), scale = 400 / box.width;
    const across = (event.clientX - box.left) * scale, down = (event.clientY - box.top) * scale;
    move(Math.round((across - 200) / 120 * 64), Math.round((200 - down) / 120 * 64));
  };
  svg.addEventListener("pointerdown", (event) => {
    point.focus();
    svg.setPointerCapture(event.pointerId);
    follow(event);
    event.preventDefault();
  });
  svg.addEventListener("pointermove", (event) => {
    if (svg.hasPointerCapture(event.pointerId)) follow(event);
  });
  point.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    if (!way[event.key]) return;
    const [a, b] = inputs.map((input) => input.valueAsNumber), by = event.shiftKey ? 8 : 1;
    move(a + by * way[event.key][0], b + by * way[event.key][1]);
    event.preventDefault();
    event.stopPropagation();
  });
  inputs.forEach((input) => input.addEventListener("input", show));
  show();
}
"""


FRAME_SCRIPT = """
const fit = () => { frameElement.style.height = `${document.body.scrollHeight + 8}px`; };
if (window.frameElement) { addEventListener("resize", fit); fit(); }
"""


class Drag(mo.Html):
    """The dual of the smallest trace: a plane in which a point is dragged.

    A notebook runs no script of a cell, so that it is a page of its own there, in a frame.
    """

    def __init__(self) -> None:
        body = "body { margin: 0; font: 16px/1.5 system-ui, sans-serif; background: #fff; }"
        script = f"<script>{DRAG_SCRIPT}{FRAME_SCRIPT}</script>"
        page = f"<style>{body}{DRAG_STYLE}</style>{DRAG_BODY}{script}"
        super().__init__(
            f'<iframe title="Drag a dual point" srcdoc="{escape(page, quote=True)}" '
            'style="width:100%;height:400px;border:0"></iframe>'
        )

    def offline_html(self, positions: int) -> str:
        """The same in a page of its own; it has no slider with positions."""
        return f"<style>{DRAG_STYLE}</style>{DRAG_BODY}<script>{DRAG_SCRIPT}</script>"
