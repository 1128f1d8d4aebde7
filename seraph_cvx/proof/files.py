"""`read_problem`: problems of CVXPY from the files of linear, quadratic and conic libraries."""

from __future__ import annotations

import gzip
import operator
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
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
    .lp        linear and quadratic programs in the LP format, by HiGHS
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
            return reader(_File(path))
    raise ValueError(
        f"{path}: the ending must say the format: {', '.join(READERS)}, or one of these and .gz."
    )


class _File:
    """The lines of a file, and errors that name the one that is read."""

    def __init__(self, path: Path) -> None:
        self.path, self.line = path, 0
        content = path.read_bytes()
        if path.suffix.lower() == ".gz":
            try:
                content = gzip.decompress(content)
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                raise ValueError(f"{path}: no whole gzip file ({error}): get it again.") from None
        self.lines = content.decode("latin-1").split("\n")

    def rows(self, comments: str) -> Iterator[str]:
        """The lines that are neither empty nor comments."""
        for number, line in enumerate(self.lines, 1):
            self.line = number
            if line.strip() and line.lstrip()[0] not in comments:
                yield line

    def wrong(self, words: str) -> ValueError:
        """The error of the line that is read."""
        return ValueError(f"{self.path}, line {self.line}: {words}")

    def numbers(self, texts: Iterable[str]) -> list[float]:
        """The numbers that words of the line are."""
        found = []
        for text in texts:
            try:
                found.append(float(text))
            except ValueError:
                found.append(np.nan)
            if np.isnan(found[-1]) or "_" in text:
                raise self.wrong(f"{text!r} is no number: write it as 1.5 or -2e-3.")
        return found


def _named(thing: Named, names: Iterable[object], label: str = "") -> Named:
    """A variable or a constraint with the file's names of its entries, and a label."""
    thing.entry_names = tuple(map(str, names))
    return thing.set_label(label) if label else thing


# Linear and quadratic programs


def _linear_problem(
    names: tuple[Sequence[str], Sequence[str]],
    c: Array,
    offset: float,
    maximize: bool,
    A: Any,
    P: Any,
    *ends: Array,
) -> cp.Problem:
    """Minimize or maximize c'x + x'Px/2 + offset; names and ends of rows, then of variables."""
    x = _named(cp.Variable(len(c), name="x"), names[1])
    objective = c @ x + offset
    if P.nnz:
        sign = -1.0 if maximize else 1.0
        objective += sign * cp.quad_form(x, cp.psd_wrap(sign * P)) / 2.0
    labels = (
        ("equations", "rows at most", "rows at least"),
        ("fixed variables", "upper bounds", "lower bounds"),
    )
    constraints = []
    for part, known, (low, high), kinds in zip((A, None), names, ends, labels, strict=True):
        equal = low == high
        choices = (
            (operator.eq, equal, low),
            (operator.le, ~equal & (high < INFINITE), high),
            (operator.ge, ~equal & (low > -INFINITE), low),
        )
        for label, (relation, chosen, end) in zip(kinds, choices, strict=True):
            at = np.flatnonzero(chosen)
            if len(at):
                entries = x[at] if part is None else part[at] @ x
                constraints.append(_named(relation(entries, end[at]), np.array(known)[at], label))
    return cp.Problem((cp.Maximize if maximize else cp.Minimize)(objective), constraints)


def _read_mps(file: _File) -> cp.Problem:
    """In free format, or in fixed format where names hold spaces."""
    try:
        return _MpsReader(file, str.split).problem()
    except ValueError as error:
        try:
            return _MpsReader(file, _split_in_columns).problem()
        except ValueError:
            raise error from None


def _split_in_columns(line: str) -> list[str]:
    """The fields of a line in fixed format, without those that are left out at its ends."""
    places = ((1, 3), (4, 12), (14, 22), (24, 36), (39, 47), (49, 61))
    fields = [line[first:last].strip() for first, last in places]
    used = [k for k, text in enumerate(fields) if text]
    return fields[used[0] : used[-1] + 1] if used else []


FORMS = ("QUADOBJ", "QSECTION", "QMATRIX")
"""Sections of quadratic forms: two with one triangle of the matrix, and one with both."""


class _MpsReader:
    """Reads an MPS or QPS file, each line by the method of its section."""

    def __init__(self, file: _File, split: Callable[[str], list[str]]) -> None:
        self.file, self.split = file, split
        self.maximize = False
        self.kinds: dict[str, str] = {}
        self.columns: dict[str, int] = {}
        # by row, and column or set
        self.values: dict[str, dict[tuple[str, str], float]] = {"COLUMNS": {}}
        self.ends: dict[str, dict[str, float]] = {"low": {}, "high": {}}
        self.bound_set: str | None = None

    def problem(self) -> cp.Problem:
        """The problem that the file states."""
        section = "NAME"
        for line in self.file.rows("*"):
            words = line.split()
            if line[0].isspace() and section != "NAME":
                SECTIONS[section](self, self.split(line), section)
            elif words[0] == "ENDATA":
                return self.stated()
            elif words[0] in ("NAME", *SECTIONS):
                section = words[0]
                if section == "OBJSENSE" and words[1:]:
                    self.read_sense(words[1:], section)
            else:
                raise self.file.wrong(
                    f"{words[0]} is no section that is read: NAME, {', '.join(SECTIONS)}, ENDATA. "
                    "Lines of data begin with a space."
                )
        raise self.file.wrong("the file ends before ENDATA: it is not whole, so get it again.")

    def read_sense(self, fields: list[str], _: str) -> None:
        """MIN or MAX."""
        self.maximize = fields[0].upper().startswith("MAX")

    def require(self, holds: bool, words: str) -> None:
        """Raise the error of the line unless something holds."""
        if not holds:
            raise self.file.wrong(words)

    def read_row(self, fields: list[str], _: str) -> None:
        """A type and a name."""
        is_row = len(fields) == 2 and fields[0] in ("N", "L", "G", "E")
        self.require(is_row, "a row is a type, N, L, G or E, and a name without spaces.")
        self.require(fields[1] not in self.kinds, f"there is a row {fields[1]} before: rename it.")
        self.kinds[fields[1]] = fields[0]

    def read_values(self, fields: list[str], section: str) -> None:
        """The name of a column or a set (which may be left out), and rows with numbers.

        In the sections of quadratic forms these are rows of their matrix: columns of the program.
        """
        if "'MARKER'" in fields:
            self.require("'INTORG'" not in fields, "integer variables: delete lines of 'MARKER'.")
            return
        found, named = self.values.setdefault(section, {}), len(fields) % 2
        name, pairs = fields[0] if named else "", fields[named:]
        if section == "COLUMNS":
            self.columns.setdefault(name, len(self.columns))
        for row, value in zip(pairs[::2], self.file.numbers(pairs[1::2]), strict=True):
            is_known = {row, name} <= self.columns.keys() if section in FORMS else row in self.kinds
            self.require(is_known, f"there is no {row} or {name}: declare it before.")
            self.require((row, name) not in found, f"{name} has two numbers for {row}: drop one.")
            found[row, name] = value

    def read_bound(self, fields: list[str], _: str) -> None:
        """A type, the name of a set (which may be left out), a column and a number."""
        kind, *rest = fields
        known = "UP, LO, FX, FR, MI and PL; integer variables are not read."
        self.require(kind in BOUNDS, f"{kind} is no type of bounds: these are {known}")
        value = self.file.numbers([rest.pop()])[0] if kind in ("UP", "LO", "FX") else np.inf
        named = len(rest) > 1 and rest[1] in self.columns
        name = rest[named] if rest else ""
        self.require(name in self.columns, f"there is no column {name}: its entries come before.")
        if self.bound_set is None:
            self.bound_set = rest[0] if named else ""
        if self.bound_set != (rest[0] if named else ""):
            return  # only the first set counts
        for side, sign in BOUNDS[kind]:
            self.ends[side][name] = sign * value
        self.require(
            kind != "UP" or value >= 0.0 or name in self.ends["low"],
            f"{name} has a negative upper bound and no lower one, which is taken as 0 or as minus "
            "infinity, depending on the program: write a line LO or MI before this one.",
        )

    def stated(self) -> cp.Problem:
        """The problem that has been read."""
        costs = [name for name, kind in self.kinds.items() if kind == "N"]
        rows = {
            name: k for k, name in enumerate(n for n, kind in self.kinds.items() if kind != "N")
        }
        self.require(bool(costs and self.columns), "a row of type N or columns are missing.")
        c = [self.values["COLUMNS"].get((costs[0], name), 0.0) for name in self.columns]
        entries = {at: v for at, v in self.values["COLUMNS"].items() if at[0] in rows}
        P = scipy.sparse.csr_array((len(c), len(c)))
        for section in FORMS:
            Q = _sparse(self.values.get(section, {}), self.columns, self.columns)
            if section != "QMATRIX":  # one triangle
                Q = Q + (Q.T - scipy.sparse.diags_array(Q.diagonal()))
            self.require(not (Q != Q.T).nnz, "the quadratic form has numbers on one side only.")
            P = P + Q
        sets = [self.values.get(section, {}) for section in ("RHS", "RANGES")]
        right, ranges = (
            {row: value for (row, name), value in found.items() if name == next(iter(found))[1]}
            for found in sets
        )
        row_ends = [
            _row_ends(self.kinds[row], right.get(row, 0.0), ranges.get(row)) for row in rows
        ]
        ends = [
            (self.ends["low"].get(k, 0.0), self.ends["high"].get(k, np.inf)) for k in self.columns
        ]
        return _linear_problem(
            (list(rows), list(self.columns)),
            np.array(c),
            -right.get(costs[0], 0.0),
            self.maximize,
            _sparse(entries, rows, self.columns),
            P,
            np.array(row_ends).reshape(-1, 2).T,
            np.array(ends).T,
        )


SECTIONS: dict[str, Callable[[_MpsReader, list[str], str], None]] = {
    "OBJSENSE": _MpsReader.read_sense,
    "ROWS": _MpsReader.read_row,
    **dict.fromkeys(("COLUMNS", "RHS", "RANGES", *FORMS), _MpsReader.read_values),
    "BOUNDS": _MpsReader.read_bound,
}
"""The method for the lines of each section of an MPS file."""

BOUNDS = {
    "UP": [("high", 1.0)],
    "LO": [("low", 1.0)],
    "FX": [("low", 1.0), ("high", 1.0)],
    "FR": [("low", -1.0), ("high", 1.0)],
    "MI": [("low", -1.0)],
    "PL": [("high", 1.0)],
}
"""The ends that each type of bounds is of, and the sign of the number or of infinity there."""


def _row_ends(kind: str, right: float, width: float | None) -> tuple[float, float]:
    """The ends of a row of an MPS file, whose range has a width; where it has none, no range."""
    if kind == "E":
        return right + min(width or 0.0, 0.0), right + max(width or 0.0, 0.0)
    size = np.inf if width is None else abs(width)
    return (right - size, right) if kind == "L" else (right, right + size)


def _sparse(entries: dict[tuple[str, str], float], rows: Any, columns: Any) -> Any:
    """A matrix of entries by the names of their rows and columns, which have indices."""
    places = [rows[i] for i, _ in entries], [columns[j] for _, j in entries]
    shape = (len(rows), len(columns))
    return scipy.sparse.csr_array((list(entries.values()), places), shape=shape, dtype=np.float64)


def _read_lp(file: _File) -> cp.Problem:
    """By HiGHS, which must not leave anything out."""
    import highspy

    def parsed(lines: Sequence[str]) -> tuple[Any, str]:
        """The model of some lines, or None; and what HiGHS says of entries that it ignores."""
        highs = highspy.Highs()  # type: ignore[no-untyped-call]
        highs.setOptionValue("log_to_console", False)
        with tempfile.TemporaryDirectory() as folder:
            copy, log = Path(folder) / "problem.lp", Path(folder) / "log"
            copy.write_text("\n".join(lines), encoding="latin-1")
            highs.setOptionValue("log_file", str(log))
            status = highs.readModel(str(copy))
            said = [line for line in log.read_text().splitlines() if "ignored" in line]
        return (None if status == highspy.HighsStatus.kError else highs.getModel()), " ".join(said)

    model, ignored = parsed(file.lines)
    if model is None:
        readable, file.line = 0, len(file.lines)
        while file.line - readable > 1:  # a file that is cut off where it is right can be read
            middle = (readable + file.line) // 2
            if parsed([*file.lines[:middle], "end"])[0] is None:
                file.line = middle
            else:
                readable = middle
        raise file.wrong("HiGHS cannot read on from here: compare it with the LP format.")
    lp, form = model.lp_, model.hessian_
    if ignored or len(lp.integrality_):
        raise file.wrong(ignored or "integer variables are not read: delete their sections.")
    m, n = lp.num_row_, lp.num_col_
    entries = lp.a_matrix_
    A = scipy.sparse.csc_array((entries.value_, entries.index_, entries.start_), shape=(m, n))
    P = scipy.sparse.csc_array((n, n))
    if form.dim_:
        lower = scipy.sparse.csc_array((form.value_, form.index_, form.start_), shape=(n, n))
        P = lower + scipy.sparse.tril(lower, -1).T
    return _linear_problem(
        (lp.row_names_, lp.col_names_),
        np.array(lp.col_cost_),
        lp.offset_,
        lp.sense_ == highspy.ObjSense.kMaximize,
        A.tocsr(),
        P,
        np.array([lp.row_lower_, lp.row_upper_]),
        np.array([lp.col_lower_, lp.col_upper_]),
    )


# Semidefinite and conic programs


class _Table:
    """Lines that each hold some indices and then a number."""

    def __init__(self, file: _File, names: Sequence[str]) -> None:
        self.file, self.names = file, names
        self.lines: list[int] = []
        self.numbers: list[list[float]] = []

    def add(self, words: list[str]) -> None:
        """Take the line that is read."""
        if len(words) != len(self.names) + 1:
            raise self.file.wrong(f"{', '.join(self.names)} and a number are expected.")
        self.lines.append(self.file.line)
        self.numbers.append(self.file.numbers(words))

    @property
    def values(self) -> Array:
        """The numbers at the ends of the lines."""
        return np.array([row[-1] for row in self.numbers])

    def require(self, holds: Array, words: str) -> None:
        """Raise the error of the first line for which something does not hold."""
        if not holds.all():
            self.file.line = self.lines[int(np.argmin(holds))]
            raise self.file.wrong(words)

    def index(self, name: str, low: int, high: Any) -> Array:
        """A column of indices, each from `low` to `high`, which may differ from line to line."""
        place = self.names.index(name)
        found = np.array([row[place] for row in self.numbers])
        inside = (found >= low) & (found <= high) & (found == np.floor(found))
        self.require(inside, f"there is no {name} of this number: it was not declared.")
        return found.astype(np.int64)

    def matrix(self, rows: Array, columns: Array, shape: tuple[int, int]) -> Any:
        """The sparse matrix with the numbers at these places, each of which is there once."""
        _, first = np.unique(rows * shape[1] + columns, return_index=True)
        is_first = np.isin(np.arange(len(rows)), first)
        self.require(is_first, "this entry has a number in another line: drop one of them.")
        return scipy.sparse.csr_array((self.values, (rows, columns)), shape=shape)

    def squares(self, which: Array, orders: Array, outer: Array, count: int, low: int) -> list[Any]:
        """For each symmetric matrix, a row with its entries for each value of an outer index.

        A negative order is that of a diagonal matrix, of which only the diagonal is kept.
        """
        last = np.abs(orders)[which] - 1 + low
        i, j = (self.index(name, low, last) - low for name in ("row", "column"))
        self.require((i == j) | (orders[which] > 0), "the block is diagonal: so are its entries.")
        sizes = np.where(orders > 0, orders**2, -orders)
        begins, steps = np.cumsum(sizes) - sizes, np.maximum(orders, 0)[which]
        below = begins[which] + np.maximum(i, j) + np.minimum(i, j) * steps
        shape = (count, int(sizes.sum()))
        lower = self.matrix(outer, below, shape).tocoo()
        above = begins[which] + np.minimum(i, j) + np.maximum(i, j) * steps
        off = i != j
        upper = scipy.sparse.csr_array((self.values[off], (outer[off], above[off])), shape=shape)
        both = (lower + upper).tocsc()
        return [both[:, k : k + size].tocsr() for k, size in zip(begins, sizes, strict=True)]


def _read_sdpa(file: _File) -> cp.Problem:
    """Minimize c'x subject to x_1 F_1 + ... + x_m F_m - F_0 PSD, block by block."""
    unbraced = str.maketrans("{}(),", "     ")
    rows = (line.translate(unbraced).split() for line in file.rows('"*'))

    def take(count: int, what: str) -> list[float]:
        """So many numbers of the lines that come next."""
        found: list[float] = []
        while len(found) < count:
            words = next(rows, None)
            if words is None:
                raise file.wrong(f"the file ends before {what}: get it again.")
            found += file.numbers(words[: count - len(found)])
        return found

    m, n_blocks = (int(take(1, f"the number of {what}")[0]) for what in ("variables", "blocks"))
    orders = np.array(take(n_blocks, "the sizes of the blocks"), dtype=np.int64)
    if m < 1 or not orders.all():
        raise file.wrong("a variable is needed, and blocks must not be empty.")
    x = _named(cp.Variable(m, name="x"), range(1, m + 1))
    objective = cp.Minimize(np.array(take(m, "the objective")) @ x)
    table = _Table(file, ("matrix", "block", "row", "column"))
    for words in rows:
        table.add(words)
    which, outer = table.index("block", 1, n_blocks) - 1, table.index("matrix", 0, m)
    constraints = []
    for number, F in enumerate(table.squares(which, orders, outer, m + 1, 1)):
        order = int(orders[number])
        slack = F[1:].T @ x - F[[0]].toarray()[0]
        constraint = _is_psd(slack, order) if order > 0 else slack >= 0
        names = range(1, abs(order) + 1)
        constraints.append(_named(constraint, names, f"block {number + 1}"))
    return cp.Problem(objective, constraints)


def _is_psd(entries: Any, order: int) -> cp.Constraint:
    """The constraint that a symmetric matrix of these entries is PSD."""
    return cp.reshape(entries, (order, order), order="F") >> 0


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

    def __init__(self, file: _File) -> None:
        self.file = file
        self.rows = (line.split() for line in file.rows("#"))
        self.part = ""
        self.sense = "MIN"
        self.offset = 0.0
        self.orders: dict[str, list[int]] = {"PSDVAR": [], "PSDCON": []}
        self.cones: dict[str, list[tuple[str, int]]] = {"VAR": [], "CON": []}
        self.powers: list[list[float]] = []
        self.tables = {part: _Table(file, names) for part, names in COORDINATES.items()}

    def problem(self) -> cp.Problem:
        """The problem that the file states."""
        for words in self.rows:
            self.part = words[0]
            if self.part not in PARTS:
                raise self.file.wrong(
                    f"{self.part} is no part that is read: {', '.join(PARTS)}. Integer variables "
                    "(INT) are not: delete the part to have the relaxation."
                )
            PARTS[self.part](self)
        return self.stated()

    def words(self) -> list[str]:
        """The words of the line that comes next."""
        words = next(self.rows, None)
        if words is None:
            raise self.file.wrong(f"the file ends inside of {self.part}: get it again.")
        return words

    def integers(self, count: int = 1) -> list[int]:
        """The integers of the line that comes next, none negative."""
        words = self.words()
        if len(words) != count or not all(word.isdecimal() for word in words):
            raise self.file.wrong(f"{self.part} has {count} integers in this line.")
        return list(map(int, words))

    def number(self) -> float:
        """The number of the line that comes next."""
        return self.file.numbers(self.words()[:1])[0]

    def read_sense(self) -> None:
        """MIN or MAX."""
        self.sense = self.words()[0]
        if self.sense not in ("MIN", "MAX"):
            raise self.file.wrong(f"OBJSENSE is MIN or MAX, not {self.sense}.")

    def read_offset(self) -> None:
        """The constant of the objective."""
        self.offset = self.number()

    def read_orders(self) -> None:
        """The orders of PSD variables or constraints."""
        self.orders[self.part] = [self.integers()[0] for _ in range(self.integers()[0])]

    def read_powers(self) -> None:
        """The exponents of power cones."""
        for _ in range(self.integers(2)[0]):
            self.powers.append([self.number() for _ in range(self.integers()[0])])

    def read_table(self) -> None:
        """A list of entries."""
        for _ in range(self.integers()[0]):
            self.tables[self.part].add(self.words())

    def read_cones(self) -> None:
        """The cones of the variables or of the constraints."""
        size, count = self.integers(2)
        sizes = {"EXP": 3} | {f"@{k}:POW": 3 for k, a in enumerate(self.powers) if len(a) == 2}
        for _ in range(count):
            kind, rows, *_ = *self.words(), ""
            known = kind in sizes or kind in ("F", "L=", "L+", "L-", "Q", "QR")
            if not known or not rows.isdecimal():
                raise self.file.wrong(
                    f"{kind} {rows} is no cone that is read: F, L=, L+, L-, Q, QR, EXP and @k:POW, "
                    "whose two exponents come before, each with the number of its rows."
                )
            if int(rows) != sizes.get(kind, int(rows)) or int(rows) < kind.count("Q") + (
                kind == "QR"
            ):
                raise self.file.wrong(f"a cone {kind} cannot have {rows} rows.")
            self.cones[self.part].append((kind, int(rows)))
        if sum(rows for _, rows in self.cones[self.part]) != size:
            raise self.file.wrong(f"the cones of {self.part} do not have {size} rows together.")

    def stated(self) -> cp.Problem:
        """The problem in CVXPY, cones of one kind and size together."""
        n, m = (sum(rows for _, rows in self.cones[part]) for part in ("VAR", "CON"))
        x: Any = _named(cp.Variable(n, name="x"), range(n)) if n else None
        orders = self.orders["PSDVAR"]
        squares = [cp.Variable((k, k), symmetric=True, name=f"X{j}") for j, k in enumerate(orders)]

        def affine(linear: Any, forms: list[Any], constant: Array) -> Any:
            """An affine expression of all variables."""
            terms = [form @ cp.vec(X, order="F") for form, X in zip(forms, squares, strict=True)]
            return sum(terms, constant if x is None else linear @ x + constant)

        A, b = self.matrix("ACOORD", m, n), self.matrix("BCOORD", m, 1).toarray()[:, 0]
        F = self.squares("FCOORD", "PSDVAR", m)
        cost = self.matrix("OBJACOORD", n, 1).T
        value = affine(cost, self.squares("OBJFCOORD", "PSDVAR"), np.array([self.offset]))
        constraints = [
            _named(X >> 0, range(k), f"PSD variable {j}")
            for j, (X, k) in enumerate(zip(squares, orders, strict=True))
        ]
        constraints += self.in_cones("VAR", lambda at: x[at])
        constraints += self.in_cones(
            "CON", lambda at: affine(A[at], [form[at] for form in F], b[at])
        )
        parts = self.squares("HCOORD", "PSDCON", n), self.squares("DCOORD", "PSDCON")
        orders = self.orders["PSDCON"]
        for k, (order, H, D) in enumerate(zip(orders, *parts, strict=True)):
            entries = H.T @ x + D.toarray()[0]
            constraints.append(_named(_is_psd(entries, order), range(order), f"PSD constraint {k}"))
        sense = cp.Minimize if self.sense == "MIN" else cp.Maximize
        return cp.Problem(sense(cp.sum(value)), constraints)

    def matrix(self, part: str, rows: int, columns: int) -> Any:
        """The matrix of a list of entries; of one index, a column."""
        table = self.tables[part]
        pairs = zip(table.names, (rows, columns), strict=False)
        i, j, *_ = *(table.index(name, 0, size - 1) for name, size in pairs), np.int64(0)
        return table.matrix(i, j + np.zeros_like(i), (rows, columns))

    def squares(self, part: str, declared: str, count: int = 1) -> list[Any]:
        """The symmetric matrices of a list of entries, a row for each value of another index."""
        table, orders = self.tables[part], np.array(self.orders[declared], dtype=np.int64)
        name = "PSD variable" if declared == "PSDVAR" else "PSD constraint"
        which = table.index(name, 0, len(orders) - 1)
        others = [other for other in table.names if other in ("variable", "constraint")]
        rows = [table.index(other, 0, count - 1) for other in others]
        return table.squares(which, orders, rows[0] if rows else np.zeros_like(which), count, 0)

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
                yield _named(self.in_cone(kind, rows, at), names, f"{what} in {kind}")

    def in_cone(self, kind: str, rows: Callable[[Array], Any], at: Array) -> cp.Constraint:
        """The constraint that the rows of each column of `at` are in a cone."""
        if kind[0] == "L":
            return {"L=": operator.eq, "L+": operator.ge, "L-": operator.le}[kind](rows(at), 0)
        if kind == "EXP":
            return cp.ExpCone(rows(at[2]), rows(at[1]), rows(at[0]))

        def together(at: Array) -> Any:
            return cp.reshape(rows(at.ravel(order="F")), at.shape, order="F")

        if kind.endswith("POW"):
            first, second = self.powers[int(kind[1:-4])]
            return cp.PowCone3D(rows(at[0]), rows(at[1]), rows(at[2]), first / (first + second))
        top, rest = rows(at[0]), [together(at[1:])] if len(at) > 1 else []
        if kind == "QR":  # 2uv = (u + v/2)^2 - (u - v/2)^2, without rounding
            half = rows(at[1]) / 2.0
            rest = [cp.reshape(top - half, (1, at.shape[1]), order="F")]
            rest += [together(at[2:])] if len(at) > 2 else []
            top += half
        return cp.SOC(top, cp.vstack(rest), axis=0) if rest else top >= 0


PARTS: dict[str, Callable[[_CbfReader], object]] = {
    "VER": _CbfReader.integers,
    "OBJSENSE": _CbfReader.read_sense,
    "OBJBCOORD": _CbfReader.read_offset,
    **dict.fromkeys(("PSDVAR", "PSDCON"), _CbfReader.read_orders),
    "POWCONES": _CbfReader.read_powers,
    **dict.fromkeys(("VAR", "CON"), _CbfReader.read_cones),
    **dict.fromkeys(COORDINATES, _CbfReader.read_table),
}
"""The method for each part of a CBF file."""

READERS: dict[str, Callable[[_File], cp.Problem]] = {
    ".mps": _read_mps,
    ".qps": _read_mps,
    ".lp": _read_lp,
    ".dat-s": _read_sdpa,
    ".cbf": lambda file: _CbfReader(file).problem(),
}
"""What reads the files with each ending."""
