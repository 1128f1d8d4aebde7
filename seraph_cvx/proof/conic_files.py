"""Readers of semidefinite and conic programs: SDPA's sparse format and the Conic Benchmark Format.

Both state their problem by one matrix [M, b], whose rows Mx + b are put into cones many at a time.
"""

from __future__ import annotations

import math
import operator
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import scipy

from .arithmetic import Array
from .file_lines import FileLines, Table, named, to_number


class _AffineRows:
    """The rows Mx + b of a matrix [M, b], which is stated by its entries."""

    def __init__(self, x: cp.Variable, entries: list[tuple[Array, Array, Array]], n: int) -> None:
        row, column, value = map(np.concatenate, zip(*entries, strict=True))
        M = scipy.sparse.csc_array((value, (row, column)), shape=(n, x.size + 1))
        self.x, self.M, self.b = x, M[:, :-1].tocsr(), M[:, [-1]].toarray()[:, 0]

    def __getitem__(self, at: Array) -> Any:
        """The rows at these places, as a vector or as a matrix."""
        places = at.ravel(order="F")
        found = self.M[places] @ self.x + self.b[places]
        return found if at.ndim == 1 else cp.reshape(found, at.shape, order="F")

    def psd(self, begin: int, order: int) -> cp.Constraint:
        """The constraint that the rows from `begin` on are the lower triangle of a PSD matrix."""
        return self[begin + _triangle(*np.indices((order, order)))] >> 0


def _triangle(i: Array, j: Array) -> Array:
    """The place of an entry of a symmetric matrix among those of its lower triangle, by rows."""
    high = np.maximum(i, j)
    place: Array = high * (high + 1) // 2 + np.minimum(i, j)
    return place


def _begins(sizes: Any) -> Array:
    """Where each of some blocks begins, and the last one ends."""
    return np.cumsum([0, *sizes], dtype=np.int64)


def read_sdpa(path: Path) -> cp.Problem:
    """Minimize c'x subject to x_1 F_1 + ... + x_m F_m - F_0 PSD, block by block."""
    file = FileLines(path, '"*')
    unbraced = str.maketrans("{}(),", "     ")
    file.rows = [(number, line.translate(unbraced)) for number, line in file.rows]

    def header(count: int, is_size: bool = True) -> Array:
        """So many numbers of the next lines; what follows the last one is a comment."""
        found: list[float] = []
        while len(found) < count:
            words = file.words()[: count - len(found)]
            try:
                found += map(to_number, words)
                if is_size and (0.0 in found or any(size % 1.0 for size in found)):
                    raise ValueError
            except ValueError:
                raise file.wrong(
                    "a file begins with the number of variables, the number of blocks, their "
                    "orders, all integers but 0, and the objective with numbers such as 1.5."
                ) from None
        return np.array(found, dtype=np.int64 if is_size else np.float64)

    m, n_blocks = header(1)[0], header(1)[0]
    orders = header(n_blocks)
    x = named(cp.Variable(m, name="x"), range(1, m + 1))
    objective = cp.Minimize(header(m, is_size=False) @ x)
    table = Table(file, ("matrix", "block", "row", "column"), len(file.rows) - file.at - 1)
    matrix, block = table.index("matrix", 0, m), table.index("block", 1, n_blocks)
    i, j = (table.index(name, 1, abs(orders)[block]) for name in ("row", "column"))
    is_diagonal = orders < 0
    table.require(~is_diagonal[block] | (i == j), "the block is diagonal: so are its entries.")
    begins = _begins(np.where(is_diagonal, -orders, orders * (orders + 1) // 2))
    place = begins[block] + np.where(is_diagonal[block], i, _triangle(i, j))
    table.require_once(place, matrix)
    # F_0 is subtracted, and is the last column here
    value = np.where(matrix == 0, -table.columns[-1], table.columns[-1])
    rows = _AffineRows(x, [(place, (matrix - 1) % (m + 1), value)], begins[-1])
    constraints = []
    for k, order in enumerate(map(int, orders)):
        entries = np.arange(begins[k], begins[k + 1])
        constraint = rows.psd(begins[k], order) if order > 0 else rows[entries] >= 0
        constraints.append(named(constraint, range(1, abs(order) + 1), f"block {k + 1}"))
    return cp.Problem(objective, constraints)


PARTS = ("CON", "PSDCON", "VAR", "PSDVAR")
"""The parts of a CBF file that declare blocks of rows, in the order of the rows here."""

COORDINATES = {
    "OBJFCOORD": ("PSDVAR", "row", "column"),
    "OBJACOORD": ("VAR",),
    "OBJBCOORD": (),
    "FCOORD": ("CON", "PSDVAR", "row", "column"),
    "ACOORD": ("CON", "VAR"),
    "BCOORD": ("CON",),
    "HCOORD": ("PSDCON", "VAR", "row", "column"),
    "DCOORD": ("PSDCON", "row", "column"),
}
"""The indices of each list of entries: of rows or matrices that these parts declare."""

SIZES = {
    **dict.fromkeys(("F", "L=", "L+", "L-", "Q"), (1, math.inf)),
    "QR": (2, math.inf),
    "EXP": (3, 3),
}
"""The least and the largest number of rows of each cone."""


def read_cbf(path: Path) -> cp.Problem:
    """Read a file in the Conic Benchmark Format."""
    return _CbfReader(FileLines(path, "#")).problem()


class _CbfReader:
    """Reads the parts of a CBF file, and states the problem.

    Its variable is x and then the lower triangle of each PSD variable. The rows are the objective,
    the constraints, the lower triangle of each PSD constraint, and the entries of the variable.
    """

    def __init__(self, file: FileLines) -> None:
        self.file, self.sense = file, ""
        self.blocks: dict[str, list[tuple[str, int]]] = {part: [] for part in PARTS}
        self.powers: list[list[float]] = []
        self.tables: dict[str, Table] = {}

    def problem(self) -> cp.Problem:
        """The problem that the file states."""
        seen: set[str] = set()
        while self.file.at + 1 < len(self.file.rows):
            part = self.file.words()[0]
            if part in seen:
                raise self.file.wrong(f"{part} is there twice: drop one of them.")
            seen.add(part)
            self.read(part)
        if not self.sense or not seen & {"VAR", "PSDVAR"}:
            raise self.file.wrong("the file has no OBJSENSE or no variables: get it again.")
        begins, first = dict[str, Array](), 1  # the rows where the blocks of each part begin
        for part, blocks in self.blocks.items():
            sizes = [k * (k + 1) // 2 if kind == "PSD" else k for kind, k in blocks]
            begins[part] = first + _begins(sizes)
            first = begins[part][-1]
        return self.stated(begins)

    def integers(self, count: int = 1) -> list[int]:
        """The integers of the next line, none negative."""
        words = self.file.words()
        if len(words) != count or not all(map(str.isdecimal, words)):
            raise self.file.wrong(f"{count} integers are expected in this line.")
        return list(map(int, words))

    def read(self, part: str) -> None:
        """Read the part whose first line has been read."""
        if part == "VER":
            self.integers()
        elif part == "OBJSENSE":
            self.sense = self.file.words()[0]
            if self.sense not in ("MIN", "MAX"):
                raise self.file.wrong("OBJSENSE is MIN or MAX.")
        elif part in ("CON", "VAR"):
            self.read_cones(part)
        elif part in self.blocks:
            count = self.integers()[0]
            self.blocks[part] = [("PSD", self.integers()[0]) for _ in range(count)]
        elif part == "POWCONES":
            for _ in range(self.integers(2)[0]):
                exponents = Table(self.file, (), self.integers()[0])
                self.powers.append(list(exponents.columns[0]))
        elif part in COORDINATES:
            count = 1 if part == "OBJBCOORD" else self.integers()[0]
            self.tables[part] = Table(self.file, COORDINATES[part], count)
        else:
            raise self.file.wrong(
                f"{part} is no part that is read. Integer variables (INT) are not either: delete "
                "the part to have the relaxation."
            )

    def read_cones(self, part: str) -> None:
        """Read the cones of the variables or of the constraints, and the numbers of their rows."""
        powers = [f"@{k}:POW" for k, exponents in enumerate(self.powers) if len(exponents) == 2]
        sizes = SIZES | dict.fromkeys(powers, (3, 3))
        total, count = self.integers(2)
        for _ in range(count):
            kind, *words = self.file.words()
            least, largest = sizes.get(kind, (0, 0))
            size = int(words[0]) if len(words) == 1 and words[0].isdecimal() else 0
            if not least <= size <= largest or not size:
                raise self.file.wrong(
                    f"{' '.join([kind, *words])} is no cone that is read: F, L=, L+, L-, Q, QR, "
                    "EXP and @k:POW, whose two exponents come before, each with as many rows as it "
                    "can have."
                )
            self.blocks[part].append(("L+" if (kind, size) == ("Q", 1) else kind, size))
        if sum(size for _, size in self.blocks[part]) != total:
            raise self.file.wrong(f"the cones of {part} do not have {total} rows together.")

    def places(
        self, table: Table, all_begins: dict[str, Array], parts: tuple[str, ...], none: int
    ) -> Array:
        """The rows that the lines of a table are about, by its index of one of these parts."""
        place: Array = np.full(table.columns.shape[1], none)
        for part in set(parts) & set(table.names):
            begins = all_begins[part]
            if part.startswith("PSD"):
                block = table.index(part, 0, len(begins) - 2)
                orders = np.array([order for _, order in self.blocks[part]], dtype=np.int64)
                i, j = (table.index(name, 0, orders[block] - 1) for name in ("row", "column"))
                place = begins[block] + _triangle(i, j)
            else:
                place = begins[0] + table.index(part, 0, begins[-1] - begins[0] - 1)
        return place

    def stated(self, begins: dict[str, Array]) -> cp.Problem:
        """The problem in CVXPY."""
        first, end = begins["VAR"][0], begins["PSDVAR"][-1]
        names = [str(k) for k in range(begins["VAR"][-1] - first)]
        for k, (_, order) in enumerate(self.blocks["PSDVAR"]):
            names += [f"{k}[{i},{j}]" for i in range(order) for j in range(i + 1)]
        x = named(cp.Variable(end - first, name="x"), names)
        own = np.arange(x.size)
        entries = [(first + own, own, np.ones(x.size))]
        for table in self.tables.values():
            row = self.places(table, begins, PARTS[:2], 0)
            column = self.places(table, begins, PARTS[2:], end)  # a constant is after all variables
            table.require_once(row, column)
            value = table.columns[-1]
            if "PSDVAR" in table.names:  # <F, X> has the entries off the diagonal twice
                i, j = table.columns[-3:-1]
                value = np.where(i == j, value, 2.0 * value)
            entries.append((row, column - first, value))
        rows = _AffineRows(x, entries, end)
        sense = cp.Minimize if self.sense == "MIN" else cp.Maximize
        constraints: list[cp.Constraint] = []
        for part in PARTS:
            groups: dict[tuple[str, int], list[Array]] = {}
            for k, (kind, size) in enumerate(self.blocks[part]):
                begin = begins[part][k]
                if kind == "PSD":
                    is_psd = rows.psd(begin, size)
                    constraints.append(named(is_psd, range(size), f"{part} {k}"))
                elif kind != "F":
                    width = 1 if kind[0] == "L" else size
                    places = np.arange(begin, begin + size).reshape(-1, width)
                    groups.setdefault((kind, width), []).append(places)
            for (kind, _), group in groups.items():
                at = np.vstack(group).T
                is_in = self.in_cone(kind, rows, at)
                constraints.append(named(is_in, at[0] - begins[part][0], f"{part} {kind}"))
        return cp.Problem(sense(cp.sum(rows[np.array([0])])), constraints)

    def in_cone(self, kind: str, rows: _AffineRows, at: Array) -> cp.Constraint:
        """The constraint that the rows of each column of `at` are in a cone."""
        if kind[0] == "L":
            return {"L=": operator.eq, "L+": operator.ge, "L-": operator.le}[kind](rows[at[0]], 0)
        if kind == "Q":
            return cp.SOC(rows[at[0]], rows[at[1:]], axis=0)
        if kind == "QR":  # 2uv = (u + v/2)^2 - (u - v/2)^2, without rounding
            u, half = rows[at[0]], rows[at[1]] / 2.0
            rest = [rows[at[2:]]] if len(at) > 2 else []
            return cp.SOC(u + half, cp.vstack([u - half, *rest]), axis=0)
        first, second, third = map(rows.__getitem__, at)
        if kind == "EXP":
            return cp.ExpCone(third, second, first)
        left, right = self.powers[int(kind[1:-4])]
        return cp.PowCone3D(first, second, third, left / (left + right))
