"""Readers of linear and quadratic programs: MPS and QPS files, and the LP format.

They are read here and not by HiGHS, whose readers leave out what they do not expect: a constant on
the left of a row, a term that is there twice, numbers below 1e-9, what follows the 4 of 4D0.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import scipy

from .file_lines import FileLines, named, put, to_number

INFINITE = 1e20
"""A bound of this size or more is none: the convention of most programs for these files."""

Ends = list[float | None]
"""The low and the high end of a row or of a column, None where it is not stated."""


class _Program:
    """A linear or quadratic program, by the names of its rows, the objective too, and columns."""

    def __init__(self) -> None:
        self.maximize, self.offset, self.objective = False, 0.0, ""
        self.rows: dict[str, Ends] = {}
        self.columns: dict[str, Ends] = {}
        self.entries: dict[tuple[str, str], float] = {}
        self.form: dict[tuple[str, str], float] = {}

    def put(self, row: str, column: str, value: float) -> None:
        """State an entry of a row, once, of a column that may be new."""
        put(self.entries, (row, column), value)
        self.columns.setdefault(column, [None, None])

    def bound(self, column: str, *ends: float | None) -> None:
        """State bounds of a column, each once; a ValueError where they may mean two things."""
        stated = self.columns[column]
        for side, end in enumerate(ends):
            if end is not None and stated[side] is not None:
                raise ValueError
            stated[side] = stated[side] if end is None else end
        if stated[0] is None and (stated[1] or 0.0) < 0.0:
            raise ValueError

    def problem(self) -> cp.Problem:
        """The problem in CVXPY, with one constraint for all rows of a kind."""
        x = named(cp.Variable(len(self.columns), name="x"), self.columns)
        A = _sparse(self.entries, self.rows, self.columns)
        objective = A[[list(self.rows).index(self.objective)]].toarray()[0] @ x + self.offset
        if self.form:
            sign = -1.0 if self.maximize else 1.0
            P = _sparse(self.form, self.columns, self.columns)
            objective += sign * cp.quad_form(x, cp.psd_wrap(sign * P)) / 2.0
        constraints = []
        for matrix, stated, default, *labels in (
            (A, self.rows, -np.inf, "equations", "rows at most", "rows at least"),
            (
                scipy.sparse.eye_array(x.size, format="csr"),
                *(self.columns, 0.0, "fixed variables", "upper bounds", "lower bounds"),
            ),
        ):
            low = np.array([default if end is None else end for end, _ in stated.values()])
            high = np.array([np.inf if end is None else end for _, end in stated.values()])
            names, equal = np.array(list(stated)), low == high
            for label, relation, end, chosen in zip(
                labels,
                (operator.eq, operator.le, operator.ge),
                (low, high, low),
                (equal, ~equal & (high < INFINITE), ~equal & (low > -INFINITE)),
                strict=True,
            ):
                if chosen.any():
                    constraint = relation(matrix[chosen] @ x, end[chosen])
                    constraints.append(named(constraint, names[chosen], label))
        return cp.Problem((cp.Maximize if self.maximize else cp.Minimize)(objective), constraints)


def _sparse(
    entries: dict[tuple[str, str], float], rows: Iterable[str], columns: Iterable[str]
) -> Any:
    """The matrix of entries by the names of their rows and columns."""
    row, column = ({name: k for k, name in enumerate(names)} for names in (rows, columns))
    places = [row[i] for i, _ in entries], [column[j] for _, j in entries]
    shape = len(row), len(column)
    return scipy.sparse.csr_array((list(entries.values()), places), shape=shape, dtype=np.float64)


# MPS and QPS

FORM = "two columns from above and a number; the form is of the objective"
SECTIONS = {
    "NAME": "a name; data begin with a space, after a heading such as ROWS",
    "OBJSENSE": "MIN or MAX",
    "ROWS": "a type, N, L, G or E, and a name that no other row has",
    "COLUMNS": "a column and rows from above, each once for the column, with numbers such as 1.5; "
    "integer variables are not read: delete the lines of 'MARKER' to have the relaxation",
    "RHS": "the name of a set and rows from above, each once, with numbers such as 1.5",
    "RANGES": "the name of a set and rows from above, not of type N, each once, with numbers",
    "BOUNDS": "UP, LO, FX, FR, MI or PL, the name of a set, a column from above and a number: each "
    "end once, and a negative upper bound after a lower one, for which some programs take 0 and "
    "others minus infinity; integer variables are not read",
    "QUADOBJ": f"{FORM}, of which only one triangle is written",
    "QSECTION": f"{FORM}, of which only one triangle is written",
    "QMATRIX": f"{FORM}, of which both triangles are written",
    "ENDATA": "the end of a file with a row of type N, columns, and symmetric forms",
}
"""What is in the lines of each section of an MPS file."""

BOUNDS = {"UP": (0, 1), "LO": (1, 0), "FX": (1, 1), "FR": (-1, 1), "MI": (-1, 0), "PL": (0, 1)}
"""The ends, low and high, of each type of bounds, with the sign of the number or of infinity."""

FIXED = re.compile(" (..) (.{8})  (.{8})  (.{12})   (.{8})  (.{12})")
"""The fields of a line in fixed format."""


def read_mps(path: Path) -> cp.Problem:
    """Read an MPS file in free format, or in fixed format where names hold spaces."""
    file = FileLines(path, "*")
    try:
        return _MpsReader(file, str.split).problem()
    except ValueError as error:
        try:
            return _MpsReader(file, _fixed_fields).problem()
        except ValueError:
            raise error from None


def _fixed_fields(line: str) -> list[str]:
    """The fields of a line in fixed format, without those that are left out at its ends."""
    match = FIXED.fullmatch(line.rstrip().ljust(61))
    return "\n".join(map(str.strip, match.groups())).strip("\n").split("\n") if match else []


class _MpsReader:
    """Reads an MPS or QPS file; a line that is wrong is a LookupError or a ValueError inside."""

    def __init__(self, file: FileLines, split: Callable[[str], list[str]]) -> None:
        self.file, self.split, self.program = file, split, _Program()
        self.kinds: dict[str, str] = {}
        self.values: dict[str, dict[str, float]] = {"RHS": {}, "RANGES": {}}
        self.sets: dict[str, str] = {}

    def problem(self) -> cp.Problem:
        """The problem that the file states."""
        section = "NAME"
        for line in self.file.lines():
            heading, *words = line.split()
            is_data = line[0].isspace()
            section = section if is_data else heading
            try:
                if section == "ENDATA":
                    self.finish()
                    break
                if is_data or (section == "OBJSENSE" and words):
                    self.read(section, self.split(line) if is_data else words)
                elif section.startswith("Q") and words not in ([], [self.program.objective]):
                    raise ValueError
                elif section not in SECTIONS:
                    raise LookupError
            except (LookupError, ValueError):
                cure = SECTIONS.get(section, f"not read; what is: {', '.join(SECTIONS)}")
                raise self.file.wrong(f"a line of {section} is {cure}.") from None
        else:
            raise self.file.wrong("the file ends before ENDATA: it is not whole, so get it again.")
        return self.program.problem()

    def read(self, section: str, fields: list[str]) -> None:
        """Read a line of data."""
        if section == "OBJSENSE":
            senses = ("MIN", "MINIMIZE", "MAX", "MAXIMIZE")
            self.program.maximize = senses.index(fields[0].upper()) > 1
        elif section == "ROWS":
            kind, name = fields
            put(self.kinds, name, kind)
            if kind not in ("N", "L", "G", "E"):
                raise ValueError
            if kind == "N" and not self.program.objective:
                self.program.objective = name
        elif section == "BOUNDS":
            self.read_bound(*fields)
        elif "'INTEND'" not in fields:
            # the name of a set may be left out
            name, pairs = (fields[0], fields[1:]) if len(fields) % 2 else ("", fields)
            for row, text in zip(pairs[::2], pairs[1::2], strict=True):
                self.read_value(section, name, row, to_number(text))

    def read_value(self, section: str, name: str, row: str, value: float) -> None:
        """Read a number of a column or a set, and of a row, or of two columns."""
        program = self.program
        known = program.columns if section.startswith("Q") else self.kinds
        if row not in known:
            raise LookupError
        if section == "COLUMNS":
            program.put(row, name, value)
        elif section == "RHS" or (section == "RANGES" and self.kinds[row] != "N"):
            if self.counts(section, name):
                put(self.values[section], row, value)
        elif name in program.columns:
            for place in {(row, name), (row, name) if section == "QMATRIX" else (name, row)}:
                put(program.form, place, value)
        else:
            raise LookupError

    def counts(self, section: str, name: str) -> bool:
        """Whether a set is the first one of its section, which alone counts."""
        first = self.sets.setdefault(section, name)
        if (name == "") != (first == ""):
            raise ValueError
        return name == first

    def read_bound(self, kind: str, *fields: str) -> None:
        """Read the type of a bound and what follows; the name of a set may be left out."""
        has_number = kind in ("UP", "LO", "FX")
        value = to_number(fields[-1]) if has_number else np.inf
        rest = fields[: len(fields) - has_number]
        is_named = len(rest) > 1 and rest[1] in self.program.columns
        ends = [sign * value if sign else None for sign in BOUNDS[kind]]
        if rest[is_named] not in self.program.columns:
            raise LookupError
        if self.counts("BOUNDS", rest[0] if is_named else ""):
            self.program.bound(rest[is_named], *ends)

    def finish(self) -> None:
        """State the ends of the rows, and look at what only the whole file shows."""
        program, right, ranges = self.program, self.values["RHS"], self.values["RANGES"]
        form = program.form
        is_symmetric = all(form.get((j, i)) == form[i, j] for i, j in form)
        if not (program.objective and program.columns and is_symmetric):
            raise ValueError
        program.offset = -right.get(program.objective, 0.0)
        for row, kind in self.kinds.items():
            end, width = right.get(row, 0.0), ranges.get(row, 0.0 if kind == "E" else np.inf)
            ends: dict[str, Ends] = {
                "E": [end + min(width, 0.0), end + max(width, 0.0)],
                "L": [end - abs(width), end],
                "G": [end, end + abs(width)],
                "N": [None, None],
            }
            program.rows[row] = ends[kind]


# The LP format

NAME = r"[^][\s\-+*/^:<>=\d.](?:[^][\s\-+*^:<>=]|\[[^][\s]*\])*"
AMOUNT = r"(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?(?=[\s<>=]|$)"
TERM = rf"(?:{AMOUNT}[^\S\n]+)?{NAME}"
PRODUCT = rf"{TERM}\s*(?:\^\s*2|\*\s*{NAME})\s*"
SUM, FORM = (rf"[-+]?\s*{part}(?:\s*[-+]\s*{part})*" for part in (TERM, PRODUCT))
GROUPED_TERM = re.compile(rf"([-+]?)\s*({AMOUNT})?\s*({NAME})", re.IGNORECASE)
GROUPED_PRODUCT = re.compile(rf"{GROUPED_TERM.pattern}\s*(?:\^\s*2|\*\s*({NAME}))", re.IGNORECASE)
END = rf"[-+]?\s*(?:{AMOUNT}|infinity|inf)"
RELATION = "[<>]=?|=[<>]?"
"""Names, which may have indices as in x[1,2], and what is made of them and of numbers."""

HEADING, OBJECTIVE_LINE, ROW_LINE, BOUND_LINE = (
    re.compile(rf"(?:{part})[^\S\n]*\n\s*", re.IGNORECASE)
    for part in (
        r"(?P<minimize>minimi[sz]e|minimum|min)|(?P<maximize>maximi[sz]e|maximum|max)"
        r"|(?P<rows>subject\s+to|such\s+that|s\.?t\.?)|(?P<bounds>bounds?)|(?P<end>end)"
        "|(?P<integers>generals?|gen|integers?|int|binary|binaries|bin|semi-continuous|semis?|sos)",
        rf"(?:{NAME}\s*:)?\s*({SUM})?\s*([-+]?\s*{AMOUNT})?"
        rf"\s*(?:\+?\s*\[\s*({FORM})\]\s*/\s*2)?\s*([-+]\s*{AMOUNT})?",
        rf"(?:({NAME})\s*:)?\s*(?:({END})\s*({RELATION}))?\s*({SUM})\s*({RELATION})\s*({END})",
        rf"(?:({END})\s*({RELATION}))?\s*({NAME})\s*(?:({RELATION})\s*({END})|(free))?",
    )
)
"""The statements of the LP format, each of which ends with its line."""

SENSES = ("minimize", "maximize")
STATEMENTS = {
    **dict.fromkeys(
        (*SENSES, "objective"),
        "the objective is such as 'cost: 2 x - y + 5 + [ x ^2 - 4 x * y ] / 2'.",
    ),
    "rows": "a row is such as 'r: 2 x - y <= 4', on a line of its own, with every variable once, a "
    "name that is not taken and constants on the right.",
    "bounds": "bounds are such as 'x <= 4' or '-1 <= x <= 1' or 'x free', on a line of their own, "
    "each end once, and a negative upper bound after a lower one, for which some programs take 0 "
    "and others minus infinity.",
    "integers": "integer variables are not read: delete them here to have the relaxation.",
    "end": "a heading is expected, such as Minimize in the first line; the last one is End.",
}
"""What is in the sections of the LP format."""

SIDES = {"<": (1,), ">": (0,), "=": (0, 1)}
"""The ends, low or high, that a number after a relation is."""


def read_lp(path: Path) -> cp.Problem:
    """Read a file in the LP format."""
    return _LpReader(FileLines(path, "\\")).problem()


class _LpReader:
    """Reads a file in the LP format; a wrong statement is a LookupError or a ValueError inside."""

    def __init__(self, file: FileLines) -> None:
        self.file, self.program = file, _Program()
        self.text = "\n".join(line.partition("\\")[0] for line in file.lines()).lstrip() + "\n"
        self.program.rows[self.program.objective] = [None, None]
        self.place = self.line = 0

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Read a statement, if the next one is of this kind."""
        found = pattern.match(self.text, self.place)
        if found:
            self.file.at, self.place = self.line, found.end()
            self.line += self.text.count("\n", *found.span())
        return found

    def problem(self) -> cp.Problem:
        """The problem that the file states."""
        section, program = "", self.program
        while self.place < len(self.text):
            self.file.at = self.line
            try:
                if heading := self.take(HEADING):
                    if section == "end" or (heading.lastgroup in SENSES) != (section == ""):
                        raise ValueError
                    section = str(heading.lastgroup)
                    program.maximize |= section == "maximize"
                elif section == "rows":
                    self.read_row(*self.groups(ROW_LINE))
                elif section == "bounds":
                    self.read_bound(*self.groups(BOUND_LINE))
                elif section in SENSES:
                    self.read_objective(*self.groups(OBJECTIVE_LINE))
                    section = "objective"
                else:
                    raise ValueError
            except (LookupError, ValueError):
                raise self.file.wrong(STATEMENTS.get(section, STATEMENTS["end"])) from None
        if section != "end" or not program.columns:
            raise self.file.wrong("End is missing, or there are no variables: get it again.")
        return program.problem()

    def groups(self, pattern: re.Pattern[str]) -> tuple[str, ...]:
        """The parts of the next statement; a ValueError where it is not of this kind."""
        found = self.take(pattern)
        if found is None:
            raise ValueError
        return found.groups("")

    def read_objective(self, terms: str, before: str, form: str, after: str) -> None:
        """Read a sum, a quadratic form, and a constant before or after it."""
        if before and after:
            raise ValueError
        program = self.program
        self.read_sum(program.objective, terms)
        program.offset = to_number("".join((before or after or "0").split()))
        for sign, amount, name, other in GROUPED_PRODUCT.findall(form):
            value, other = to_number(sign + (amount or "1")), other or name
            for column in (name, other):
                program.columns.setdefault(column, [None, None])
            places = {(name, other), (other, name)}
            for place in places:
                put(program.form, place, value / len(places))

    def read_sum(self, row: str, terms: str) -> None:
        """Read the terms of a row."""
        for sign, amount, name in GROUPED_TERM.findall(terms):
            self.program.put(row, name, to_number(sign + (amount or "1")))

    def read_row(self, name: str, left: str, less: str, terms: str, more: str, right: str) -> None:
        """Read a sum between numbers."""
        name = name or f"R{len(self.program.rows)}"
        put(self.program.rows, name, _ends(left, less, more, right))
        self.read_sum(name, terms)

    def read_bound(self, left: str, less: str, name: str, more: str, right: str, free: str) -> None:
        """Read a variable between numbers."""
        ends = [-np.inf, np.inf] if free else _ends(left, less, more, right)
        if ends == [None, None]:
            raise ValueError
        self.program.bound(name, *ends)


def _ends(left: str, less: str, more: str, right: str) -> Ends:
    """The low and the high end of what is between two numbers, each None where it is not there."""
    ends: Ends = [None, None]
    flipped = less.translate(str.maketrans("<>", "><"))
    for relation, number in ((flipped, left), (more, right)):
        for side in SIDES[relation.strip("=") or "="] if relation else ():
            if ends[side] is not None:
                raise ValueError
            ends[side] = float("".join(number.split()))
    return ends
