"""`read_problem`: problems of CVXPY from the files of linear, quadratic and conic libraries."""

from __future__ import annotations

import gzip
import operator
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import cvxpy as cp
import numpy as np
import scipy

from .arithmetic import Array

INFINITE = 1e20
"""A bound of this size or more is none: HiGHS's and most programs' convention for these files."""

Named = TypeVar("Named", cp.Variable, cp.Constraint)


def read_problem(path: str | Path) -> cp.Problem:
    """Read a convex problem from a file of one of the formats of the field's libraries.

    ========== ==================================================================================
    ending     what is read
    ========== ==================================================================================
    .mps .qps  linear and quadratic programs, in free or fixed format, with RANGES, BOUNDS,
               OBJSENSE, QUADOBJ, QMATRIX and QSECTION
    .dat-s     SDPA's sparse format: minimize c'x subject to x_1 F_1 + ... + x_m F_m - F_0 >> 0
    .cbf       the Conic Benchmark Format: cones F, L=, L+, L-, Q, QR, EXP and POW, and PSD
    ========== ==================================================================================

    Each may be compressed by gzip, with .gz at the end of its name. The numbers are the doubles
    nearest to the file's; right sides of RANGES are rounded sums of two.

    Parameters
    ----------
    path : str or Path
        The file; its ending says the format.

    Returns
    -------
    cvxpy.Problem
        With few variables and constraints, whatever the size of the file, since CVXPY takes a
        thousand times longer for a constraint a row. A constraint's `label` says which part of
        the file it is, and `entry_names` of a variable or a constraint has the file's names of
        its entries, in their order; a format without names has numbers.

    Raises
    ------
    ValueError
        Where the file is wrong, or has integer variables or cones that are not read; with the
        line and a cure.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from seraph_cvx.proof import certify_problem, read_problem
    >>> text = '''NAME
    ... ROWS
    ...  N cost
    ...  G demand
    ... COLUMNS
    ...  coal cost 2 demand 1
    ...  wind cost 1 demand 1
    ... RHS
    ...  RHS demand 3
    ... BOUNDS
    ...  UP BND wind 2
    ... ENDATA'''
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "energy.mps"
    ...     _ = path.write_text(text)
    ...     problem = read_problem(path)
    >>> certificate = certify_problem(problem)
    >>> bool(certificate.lower <= 4.0 <= certificate.upper)
    True
    >>> for constraint in problem.constraints:
    ...     print(constraint.label, constraint.entry_names)
    rows at least ('demand',)
    upper bounds ('wind',)
    lower bounds ('coal', 'wind')
    """
    path = Path(path)
    ending = path.name.lower().removesuffix(".gz")
    for known, reader in READERS.items():
        if ending.endswith(known):
            return reader(_Text(path))
    raise ValueError(
        f"{path}: the ending must say the format: {', '.join(READERS)}, or one of these and .gz."
    )


class _Text:
    """The lines of a file, counted from 1, and errors that name one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        content = path.read_bytes()
        if path.suffix.lower() == ".gz":
            try:
                content = gzip.decompress(content)
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                raise ValueError(f"{path}: no whole gzip file ({error}): get it again.") from None
        self.lines = content.decode("latin-1").split("\n")

    def wrong(self, line: int, words: str) -> ValueError:
        """The error of a line."""
        return ValueError(f"{self.path}, line {line}: {words}")

    def number(self, line: int, text: str) -> float:
        """The number that a text of a line is."""
        return self.numbers(line, [text])[0]

    def numbers(self, line: int, texts: Iterable[str]) -> list[float]:
        """The numbers that the texts of a line are."""
        found = []
        for text in texts:
            try:
                value = float(text)
            except ValueError:
                value = np.nan
            if np.isnan(value) or "_" in text:
                raise self.wrong(line, f"{text!r} is no number: write it as 1.5 or -2e-3.")
            found.append(value)
        return found


def _named(thing: Named, names: Sequence[str], label: str = "") -> Named:
    """A variable or a constraint with the file's names of its entries, and a label."""
    thing.entry_names = tuple(names)
    return thing.set_label(label) if label else thing


def _numbered(numbers: Iterable[int]) -> list[str]:
    """The names of entries that have none."""
    return [str(k) for k in numbers]


# Linear and quadratic programs

ROWS = ("equations", "rows at most", "rows at least")
BOUNDS = ("fixed variables", "upper bounds", "lower bounds")


@dataclass
class _Program:
    """Minimize or maximize c'x + x'Px/2 + offset, with bounds on rows and variables."""

    names: Sequence[str]
    row_names: Sequence[str]
    c: Array
    A: Any
    row_ends: tuple[Array, Array]
    ends: tuple[Array, Array]
    P: Any = None
    offset: float = 0.0
    maximize: bool = False

    def stated(self) -> cp.Problem:
        """The problem in CVXPY, its rows together by kind."""
        x = _named(cp.Variable(len(self.names), name="x"), self.names)
        objective = self.c @ x + self.offset
        if self.P is not None and self.P.nnz:
            sign = -1.0 if self.maximize else 1.0
            objective += sign * cp.quad_form(x, cp.psd_wrap(sign * self.P)) / 2.0
        rows = scipy.sparse.csr_array(self.A)
        constraints = [
            *_between(lambda at: rows[at] @ x, self.row_ends, ROWS, self.row_names),
            *_between(lambda at: x if len(at) == x.size else x[at], self.ends, BOUNDS, self.names),
        ]
        return cp.Problem((cp.Maximize if self.maximize else cp.Minimize)(objective), constraints)


def _between(
    part: Callable[[Array], Any],
    ends: tuple[Array, Array],
    labels: tuple[str, str, str],
    names: Sequence[str],
) -> Iterator[cp.Constraint]:
    """Constraints that keep entries between two ends: equations, upper ends, lower ends."""
    low, high = ends
    equal = low == high
    chosen = (equal, ~equal & (high < INFINITE), ~equal & (low > -INFINITE))
    compare = (operator.eq, operator.le, operator.ge)
    for label, mask, relation, end in zip(labels, chosen, compare, (low, high, low), strict=True):
        at = np.flatnonzero(mask)
        if len(at):
            yield _named(relation(part(at), end[at]), [names[i] for i in at.tolist()], label)


def _read_mps(text: _Text) -> cp.Problem:
    """In free format, or in fixed format where names hold spaces."""
    try:
        return _MpsReader(text, str.split).program().stated()
    except ValueError as error:
        try:
            return _MpsReader(text, _split_in_columns).program().stated()
        except ValueError:
            raise error from None


def _split_in_columns(line: str) -> list[str]:
    """The fields of a line in fixed format, without those that are left out at its ends."""
    ends = ((1, 3), (4, 12), (14, 22), (24, 36), (39, 47), (49, 61))
    fields = [line[first:last].strip() for first, last in ends]
    while fields and not fields[-1]:
        fields.pop()
    while fields and not fields[0]:
        del fields[0]
    return fields


class _MpsReader:
    """Reads an MPS or QPS file, each line by the method of its section."""

    def __init__(self, text: _Text, split: Callable[[str], list[str]]) -> None:
        self.text = text
        self.split = split
        self.line = 0
        self.maximize = False
        self.kinds: dict[str, str] = {}
        self.columns: dict[str, int] = {}
        self.entries: dict[tuple[str, int], float] = {}
        self.form: dict[tuple[int, int], float] = {}
        self.sets: dict[str, str] = {}
        self.right: dict[str, dict[str, float]] = {"RHS": {}, "RANGES": {}}
        self.lower: dict[str, float] = {}
        self.upper: dict[str, float] = {}

    def wrong(self, words: str) -> ValueError:
        """The error of the line that is read."""
        return self.text.wrong(self.line, words)

    def program(self) -> _Program:
        """The program that the file states."""
        section = ""
        for number, line in enumerate(self.text.lines, 1):
            self.line = number
            if not line.strip() or line.startswith("*"):
                continue
            if not line[0].isspace():
                section, *words = line.split()
                if section == "ENDATA":
                    return self._program()
                if section not in ("NAME", *SECTIONS):
                    raise self.wrong(
                        f"the section {section} is not read. Known are NAME, "
                        f"{', '.join(SECTIONS)} and ENDATA; a line of data begins with a space."
                    )
                if section == "OBJSENSE" and words:
                    self.read_sense(words, section)
            elif section in SECTIONS:
                SECTIONS[section](self, self.split(line.rstrip()), section)
            else:
                raise self.wrong("data before the section ROWS: delete the line.")
        raise self.wrong("the file ends before ENDATA: it is not whole, so get it again.")

    def read_sense(self, fields: list[str], _: str) -> None:
        """MIN or MAX."""
        if fields[0].upper()[:3] not in ("MIN", "MAX"):
            raise self.wrong(f"{fields[0]} is no sense of an objective: write MIN or MAX.")
        self.maximize = fields[0].upper().startswith("MAX")

    def read_row(self, fields: list[str], _: str) -> None:
        """A type and a name."""
        if len(fields) != 2 or fields[0].upper() not in ("N", "L", "G", "E"):
            raise self.wrong("a row is a type, N, L, G or E, and a name without spaces.")
        kind, name = fields
        if name in self.kinds:
            raise self.wrong(f"there is a row {name} before: give this one another name.")
        self.kinds[name] = kind.upper()

    def read_column(self, fields: list[str], _: str) -> None:
        """A name, and rows with numbers."""
        if "'MARKER'" in fields:
            if "'INTORG'" in fields:
                raise self.wrong("integer variables are not read: delete the lines with 'MARKER'.")
            return
        name = fields[0]
        column = self.columns.setdefault(name, len(self.columns))
        for row, value in self.pairs(fields[1:]):
            if (row, column) in self.entries:
                raise self.wrong(f"the column {name} has two entries in the row {row}: drop one.")
            self.entries[row, column] = value

    def pairs(self, fields: list[str]) -> Iterator[tuple[str, float]]:
        """The rows and the numbers of a line."""
        if not fields or len(fields) % 2:
            raise self.wrong("a name, then rows, each with a number, are expected.")
        for row, value in zip(fields[::2], fields[1::2], strict=True):
            if row not in self.kinds:
                raise self.wrong(f"there is no row {row}: declare it in the section ROWS.")
            yield row, self.text.number(self.line, value)

    def read_right(self, fields: list[str], section: str) -> None:
        """The name of a set, which may be left out, and rows with numbers."""
        named, found = len(fields) % 2, self.right[section]
        for row, value in self.pairs(fields[named:]):
            if self.is_first(section, fields[0] if named else "") and row in found:
                raise self.wrong(f"the row {row} has two numbers in {section}: drop one.")
            found.setdefault(row, value)

    def is_first(self, section: str, name: str) -> bool:
        """Whether a name is that of the first set of a section, the only one that counts."""
        return self.sets.setdefault(section, name) == name

    def read_bound(self, fields: list[str], section: str) -> None:
        """A type, the name of a set, which may be left out, a column and a number."""
        kind, rest, value = fields[0].upper(), fields[1:], 0.0
        if kind in ("BV", "LI", "UI", "SC"):
            raise self.wrong(f"a bound {kind} is of integer variables, which are not read.")
        if kind in ("UP", "LO", "FX") and len(rest) > 1:
            value = self.text.number(self.line, rest.pop())
        elif kind not in ("FR", "MI", "PL"):
            raise self.wrong("a bound is a type, UP, LO, FX, FR, MI or PL, a column and a number.")
        elif len(rest) > 1 and rest[1] not in self.columns:
            del rest[1:]
        name = rest[-1] if rest else ""
        if name not in self.columns or len(rest) > 2:
            raise self.wrong(f"there is no column {name}: its entries in COLUMNS come first.")
        if not self.is_first(section, rest[0] if len(rest) == 2 else ""):
            return
        if kind in ("LO", "FX", "FR", "MI"):
            self.lower[name] = value if kind in ("LO", "FX") else -np.inf
        if kind in ("UP", "FX", "FR", "PL"):
            self.upper[name] = value if kind in ("UP", "FX") else np.inf
        if kind == "UP" and value < 0.0 and name not in self.lower:
            raise self.wrong(
                f"{name} has a negative upper bound and no lower one, which some programs take as "
                "zero and others as minus infinity: write a line LO or MI before this one."
            )

    def read_form(self, fields: list[str], section: str) -> None:
        """Two columns and a number; QMATRIX has both triangles, the others one."""
        if len(fields) != 3 or not set(fields[:2]) <= self.columns.keys():
            raise self.wrong("an entry of a quadratic form is two columns and a number.")
        i, j = (self.columns[name] for name in fields[:2])
        value = self.text.number(self.line, fields[2])
        for place in {(i, j)} if section == "QMATRIX" else {(i, j), (j, i)}:
            if place in self.form:
                raise self.wrong(f"a second number for {fields[0]} and {fields[1]}: drop one.")
            self.form[place] = value

    def _program(self) -> _Program:
        """What has been read, as matrices."""
        costs = [name for name, kind in self.kinds.items() if kind == "N"]
        rows = [name for name, kind in self.kinds.items() if kind != "N"]
        if not costs or not self.columns:
            raise self.wrong("there is no row of type N for the objective, or no column: add it.")
        places, n = {name: i for i, name in enumerate(rows)}, len(self.columns)
        c, entries = np.zeros(n), {}
        for (row, column), value in self.entries.items():
            if row in places:
                entries[places[row], column] = value
            elif row == costs[0]:
                c[column] = value
        P = _sparse(self.form, (n, n))
        if (P != P.T).nnz:
            raise self.wrong("QMATRIX is not symmetric: write both triangles of it.")
        ends = np.array([self.row_ends(name) for name in rows]).reshape(-1, 2).T
        lower = [self.lower.get(name, 0.0) for name in self.columns]
        upper = [self.upper.get(name, np.inf) for name in self.columns]
        return _Program(
            list(self.columns),
            rows,
            c,
            _sparse(entries, (len(rows), n)),
            (ends[0], ends[1]),
            (np.array(lower), np.array(upper)),
            P,
            -self.right["RHS"].get(costs[0], 0.0),
            self.maximize,
        )

    def row_ends(self, name: str) -> tuple[float, float]:
        """The ends between which a row is kept."""
        right, kind = self.right["RHS"].get(name, 0.0), self.kinds[name]
        width = self.right["RANGES"].get(name, 0.0 if kind == "E" else np.inf)
        if kind == "E":
            return min(right, right + width), max(right, right + width)
        return (right, right + abs(width)) if kind == "G" else (right - abs(width), right)


SECTIONS: dict[str, Callable[[_MpsReader, list[str], str], None]] = {
    "OBJSENSE": _MpsReader.read_sense,
    "ROWS": _MpsReader.read_row,
    "COLUMNS": _MpsReader.read_column,
    "RHS": _MpsReader.read_right,
    "RANGES": _MpsReader.read_right,
    "BOUNDS": _MpsReader.read_bound,
    **dict.fromkeys(("QUADOBJ", "QMATRIX", "QSECTION"), _MpsReader.read_form),
}
"""The method for the lines of each section of an MPS file."""


def _sparse(entries: dict[tuple[int, int], float], shape: tuple[int, int]) -> Any:
    """A matrix of entries by their places."""
    values = np.fromiter(entries.values(), np.float64, len(entries))
    places = np.array(list(entries), dtype=np.int64).reshape(-1, 2)
    return scipy.sparse.csr_array((values, (places[:, 0], places[:, 1])), shape=shape)


class _Table:
    """Lines that each hold some indices and then a number."""

    def __init__(
        self, text: _Text, rows: list[tuple[int, list[str]]], names: Sequence[str]
    ) -> None:
        self.text, self.names = text, names
        self.lines = [line for line, _ in rows]
        for line, words in rows:
            if len(words) != len(names) + 1:
                raise text.wrong(line, f"{', '.join(names)} and a number are expected.")
        numbers = [text.numbers(line, words) for line, words in rows]
        self.numbers = np.array(numbers, dtype=np.float64).reshape(-1, len(names) + 1)
        self.values = self.numbers[:, -1]

    def require(self, holds: Array, words: str) -> None:
        """Raise the error of the first line for which something does not hold."""
        if not holds.all():
            raise self.text.wrong(self.lines[int(np.argmin(holds))], words)

    def index(self, name: str, low: int, high: Any) -> Array:
        """A column of indices, each from `low` to `high`, which may differ from line to line."""
        found = self.numbers[:, self.names.index(name)]
        inside = (found >= low) & (found <= high) & (found == np.floor(found))
        self.require(inside, f"there is no {name} of this number: it was not declared.")
        return found.astype(np.int64)

    def require_once(self, *indices: Array) -> None:
        """Raise an error where two lines have the same indices."""
        _, first = np.unique(np.array(indices), axis=1, return_index=True)
        is_first = np.zeros(len(self.lines), dtype=bool)
        is_first[first] = True
        self.require(is_first, "this entry has a number in another line: drop one of them.")

    def matrices(
        self, which: Array, orders: Array, outer: Array, count: int, low: int = 0
    ) -> list[Any]:
        """For each symmetric matrix, a row with its entries for each value of an outer index.

        A negative order is that of a diagonal matrix, of which only the diagonal is kept.
        """
        i, j = (
            self.index(k, low, np.abs(orders)[which] - 1 + low) - low for k in ("row", "column")
        )
        self.require((i == j) | (orders[which] > 0), "the block is diagonal: so are its entries.")
        self.require_once(which, outer, np.minimum(i, j), np.maximum(i, j))
        off = np.flatnonzero(i != j)
        at = np.concatenate([np.arange(len(i)), off])
        place = np.concatenate([i, j[off]])
        place += np.concatenate([j, i[off]]) * np.maximum(orders, 0)[which[at]]
        found = []
        for number, order in enumerate(orders.tolist()):
            own = which[at] == number
            entries = (self.values[at[own]], (outer[at[own]], place[own]))
            size = order**2 if order > 0 else -order
            found.append(scipy.sparse.csr_array(entries, shape=(count, size)))
        return found


# SDPA's sparse format


def _read_sdpa(text: _Text) -> cp.Problem:
    """Minimize c'x subject to x_1 F_1 + ... + x_m F_m - F_0 PSD, block by block."""
    unbraced = str.maketrans("{}(),", "     ")
    lines = [(k, line.translate(unbraced).split()) for k, line in enumerate(text.lines, 1)]
    rows = iter([row for row in lines if row[1] and row[1][0][0] not in '"*'])

    def take(count: int, what: str) -> list[float]:
        """So many numbers of the lines that come next."""
        found: list[float] = []
        while len(found) < count:
            line, words = next(rows, (len(lines), []))
            if not words:
                raise text.wrong(line, f"the file ends before {what}: get it again.")
            found += text.numbers(line, words[: count - len(found)])
        return found

    m, n_blocks = (int(take(1, f"the number of {what}")[0]) for what in ("variables", "blocks"))
    orders = np.array(take(n_blocks, "the sizes of the blocks"), dtype=np.int64)
    if m < 1 or not orders.all():
        raise text.wrong(1, "a variable is needed, and blocks must not be empty.")
    x = _named(cp.Variable(m, name="x"), _numbered(range(1, m + 1)))
    objective = cp.Minimize(np.array(take(m, "the objective")) @ x)
    table = _Table(text, list(rows), ("matrix", "block", "row", "column"))
    which, outer = table.index("block", 1, n_blocks) - 1, table.index("matrix", 0, m)
    constraints = []
    for number, F in enumerate(table.matrices(which, orders, outer, m + 1, low=1)):
        order = int(orders[number])
        slack = F[1:].T @ x - F[[0]].toarray()[0]
        constraint = _is_psd(slack, order) if order > 0 else slack >= 0
        names = _numbered(range(1, abs(order) + 1))
        constraints.append(_named(constraint, names, f"block {number + 1}"))
    return cp.Problem(objective, constraints)


def _is_psd(entries: Any, order: int) -> cp.Constraint:
    """The constraint that a symmetric matrix of these entries is PSD."""
    return cp.reshape(entries, (order, order), order="F") >> 0


# The Conic Benchmark Format

COORDINATES = {
    "OBJFCOORD": ("PSD variable", "row", "column"),
    "OBJACOORD": ("variable",),
    "FCOORD": ("constraint", "PSD variable", "row", "column"),
    "ACOORD": ("constraint", "variable"),
    "BCOORD": ("constraint",),
    "HCOORD": ("PSD constraint", "variable", "row", "column"),
    "DCOORD": ("PSD constraint", "row", "column"),
}
"""The indices of each list of entries in a CBF file."""


class _CbfReader:
    """Reads the parts of a CBF file, and states the problem."""

    def __init__(self, text: _Text) -> None:
        self.text = text
        lines = enumerate(text.lines, 1)
        self.rows = iter([(k, s.split()) for k, s in lines if s.strip() and s[0] != "#"])
        self.line = 1
        self.part = ""
        self.sense = cp.Minimize
        self.orders: dict[str, list[int]] = {"PSDVAR": [], "PSDCON": []}
        self.cones: dict[str, list[tuple[str, int]]] = {"VAR": [], "CON": []}
        self.powers: list[list[float]] = []
        self.tables = {part: _Table(text, [], names) for part, names in COORDINATES.items()}
        self.offset = 0.0

    def wrong(self, words: str) -> ValueError:
        """The error of the line that is read."""
        return self.text.wrong(self.line, words)

    def words(self) -> list[str]:
        """The words of the line that comes next."""
        self.line, words = next(self.rows, (self.line, []))
        if not words:
            raise self.wrong(f"the file ends inside of {self.part}: it is not whole, get it again.")
        return words

    def number(self) -> float:
        """The number of the line that comes next."""
        words = self.words()
        return self.text.number(self.line, words[0])

    def integers(self, count: int = 1) -> list[int]:
        """The integers of the line that comes next, none negative."""
        words = self.words()
        if len(words) != count or not all(word.isdecimal() for word in words):
            raise self.wrong(f"integers are expected in this line of {self.part}: {count}.")
        return list(map(int, words))

    def problem(self) -> cp.Problem:
        """The problem that the file states."""
        for line, words in self.rows:
            self.line, self.part = line, words[0]
            self.read_part()
        return self.stated()

    def read_part(self) -> None:
        """Read the part whose name has just been read."""
        part = self.part
        if part == "VER":
            self.integers()
        elif part == "OBJSENSE":
            senses = {"MIN": cp.Minimize, "MAX": cp.Maximize}
            word = self.words()[0]
            if word not in senses:
                raise self.wrong(f"OBJSENSE is MIN or MAX, not {word}.")
            self.sense = senses[word]
        elif part in self.orders:
            self.orders[part] = [self.integers()[0] for _ in range(self.integers()[0])]
        elif part in self.cones:
            self.read_cones()
        elif part == "POWCONES":
            for _ in range(self.integers(2)[0]):
                self.powers.append([self.number() for _ in range(self.integers()[0])])
        elif part in COORDINATES:
            rows = [(self.words(), self.line)[::-1] for _ in range(self.integers()[0])]
            self.tables[part] = _Table(self.text, rows, COORDINATES[part])
        elif part == "OBJBCOORD":
            self.offset = self.number()
        elif part == "INT":
            raise self.wrong("integer variables are not read: delete INT to have the relaxation.")
        else:
            raise self.wrong(
                f"the part {part} is not read. Known are VER, OBJSENSE, PSDVAR, PSDCON, VAR, CON, "
                f"POWCONES, OBJBCOORD, {', '.join(COORDINATES)}."
            )

    def read_cones(self) -> None:
        """Read the cones of the variables or of the constraints."""
        size, count = self.integers(2)
        found = self.cones[self.part]
        for _ in range(count):
            kind, rows, *_ = *self.words(), ""
            power = [k for k in range(len(self.powers)) if kind == f"@{k}:POW"]
            least = {"F": 0, "L=": 0, "L+": 0, "L-": 0, "Q": 1, "QR": 2, "EXP": 3}.get(kind)
            exact = 3 if kind == "EXP" else len(self.powers[power[0]]) + 1 if power else None
            if not rows.isdecimal() or (least is None and exact is None):
                raise self.wrong(
                    f"{kind} {rows} is no cone that is read: F, L=, L+, L-, Q, QR, EXP and "
                    "@k:POW, whose exponents are declared before, and the number of its rows."
                )
            if int(rows) != exact if exact else int(rows) < (least or 0):
                raise self.wrong(f"a cone {kind} cannot have {rows} rows.")
            found.append((kind, int(rows)))
        if sum(rows for _, rows in found) != size:
            raise self.wrong(f"the cones of {self.part} do not have {size} rows together.")

    def stated(self) -> cp.Problem:
        """The problem in CVXPY, cones of one kind and size together."""
        n, m = (sum(rows for _, rows in self.cones[part]) for part in ("VAR", "CON"))
        x: Any = _named(cp.Variable(n, name="x"), _numbered(range(n))) if n else None
        orders = np.array(self.orders["PSDVAR"], dtype=np.int64)
        squares = [cp.Variable((k, k), symmetric=True, name=f"X{j}") for j, k in enumerate(orders)]
        A = self.matrix("ACOORD", m, n)
        b = self.matrix("BCOORD", m).toarray()[0]
        F = self.matrices("FCOORD", "PSD variable", orders, "constraint", m)

        def affine(linear: Any, forms: list[Any], constant: Any) -> Any:
            """An affine expression of all variables."""
            terms = [form @ cp.vec(X, order="F") for form, X in zip(forms, squares, strict=True)]
            return sum(terms, constant if x is None else linear @ x + constant)

        c = self.matrix("OBJACOORD", n)
        costs = self.matrices("OBJFCOORD", "PSD variable", orders)
        objective = affine(c, costs, np.array([self.offset]))
        constraints = [
            _named(X >> 0, _numbered(range(X.shape[0])), f"PSD variable {j}")
            for j, X in enumerate(squares)
        ]
        constraints += self.in_cones("VAR", lambda at: x[at])
        constraints += self.in_cones(
            "CON", lambda at: affine(A[at], [form[at] for form in F], b[at])
        )
        orders = np.array(self.orders["PSDCON"], dtype=np.int64)
        H = self.matrices("HCOORD", "PSD constraint", orders, "variable", n)
        D = self.matrices("DCOORD", "PSD constraint", orders)
        for k, order in enumerate(orders.tolist()):
            entries = H[k].T @ x + D[k].toarray()[0]
            named = _named(_is_psd(entries, order), _numbered(range(order)), f"PSD constraint {k}")
            constraints.append(named)
        return cp.Problem(self.sense(cp.sum(objective)), constraints)

    def matrix(self, part: str, *sizes: int) -> Any:
        """The matrix of a list of entries; of one index, a matrix with one row."""
        table = self.tables[part]
        pairs = zip(COORDINATES[part], sizes, strict=True)
        places = [table.index(name, 0, size - 1) for name, size in pairs]
        table.require_once(*places)
        if len(sizes) == 1:
            places, sizes = [np.zeros_like(places[0]), *places], (1, *sizes)
        return scipy.sparse.csr_array((table.values, tuple(places)), shape=sizes)

    def matrices(
        self, part: str, name: str, orders: Array, outer: str = "", count: int = 1
    ) -> list[Any]:
        """The symmetric matrices of a list of entries, a row for each value of an outer index."""
        table = self.tables[part]
        which = table.index(name, 0, len(orders) - 1)
        rows = table.index(outer, 0, count - 1) if outer else np.zeros_like(which)
        return table.matrices(which, orders, rows, count)

    def in_cones(self, part: str, rows: Callable[[Array], Any]) -> Iterator[cp.Constraint]:
        """The constraints that the rows of a part are in its cones."""
        groups: dict[tuple[str, int], list[Array]] = {}
        first = 0
        for kind, size in self.cones[part]:
            group = (kind, 0 if kind[0] == "L" else size)
            groups.setdefault(group, []).append(np.arange(first, first + size))
            first += size
        what = "variables" if part == "VAR" else "constraints"
        for (kind, size), places in groups.items():
            if kind != "F":
                at = np.array(places).T if size else np.concatenate(places)
                names = at[0] if size else at
                yield _named(self.in_cone(kind, rows, at), _numbered(names), f"{what} in {kind}")

    def in_cone(self, kind: str, rows: Callable[[Array], Any], at: Array) -> cp.Constraint:
        """The constraint that the rows of each column of `at` are in a cone."""
        if kind in ("L=", "L+", "L-"):
            return {"L=": operator.eq, "L+": operator.ge, "L-": operator.le}[kind](rows(at), 0)
        if kind == "EXP":
            return cp.ExpCone(rows(at[2]), rows(at[1]), rows(at[0]))
        if kind.endswith("POW"):
            alpha = self.powers[int(kind[1:-4])]
            shares = np.array(alpha) / sum(alpha)
            if len(alpha) == 2:
                return cp.PowCone3D(rows(at[0]), rows(at[1]), rows(at[2]), shares[0])
            W = cp.reshape(rows(at[:-1].ravel(order="F")), at[:-1].shape, order="F")
            return cp.PowConeND(W, rows(at[-1]), np.outer(shares, np.ones(at.shape[1])), axis=0)
        is_rotated = kind == "QR"  # 2uv = (u + v/2)^2 - (u - v/2)^2, without rounding
        places = at[1 + is_rotated :]
        top = rows(at[0])
        parts = []
        if is_rotated:
            half = rows(at[1]) / 2.0
            parts = [cp.reshape(top - half, (1, at.shape[1]), order="F")]
            top += half
        if len(places):
            parts.append(cp.reshape(rows(places.ravel(order="F")), places.shape, order="F"))
        return cp.SOC(top, cp.vstack(parts), axis=0) if parts else top >= 0


READERS: dict[str, Callable[[_Text], cp.Problem]] = {
    ".mps": _read_mps,
    ".qps": _read_mps,
    ".dat-s": _read_sdpa,
    ".cbf": lambda text: _CbfReader(text).problem(),
}
"""What reads the files with each ending."""
