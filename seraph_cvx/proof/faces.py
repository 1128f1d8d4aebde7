"""Faces of the PSD cone on which all multipliers lie, as programs that have an interior.

A column without cost whose matrix F in a PSD block is semidefinite says <F, Y> = 0 of multipliers
Y: then Y = V Z V', V a basis of the null space of F. That is the multiplier of another program,
in which S >= 0 reads V'SV >= 0. It has all feasible points of the first, so its lower bounds are
those of the first, whatever V is: only V'SV has to be exact.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import flint
import numpy as np
import scipy

from .arithmetic import Array
from .cones import ConeProduct
from .program import ConicProgram, lower_triangle
from .rational import rationals
from .start import Start

MOST_RANK = 20
"""Of F, whose rows are solved for in rationals: in the libraries' problems it is 1."""

SMALL = 1e-9
"""Eigenvalues of F below this share of the largest count as zero; a wrong V is of no use, only."""

MOST_WHOLE = 2**53
"""Doubles hold all integers up to this one."""

LENGTHS = 12
"""Steps along a face's column, each four times the last: far beyond, sums lose what they need."""


class Face(NamedTuple):
    """The PSD block that begins at a row, and V: multiples of unit vectors in the rows `kept`.

    A step along the `column`, with its sign, adds a semidefinite matrix to the slack.
    """

    row: int
    column: int
    sign: float
    V: Any  # scipy.sparse.csr_array of integers
    kept: Array

    def as_json(self) -> dict[str, Any]:
        """The face as a certificate file has it: the entries of V, row by row."""
        entries = self.V.tocoo()
        columns = [list(map(int, part)) for part in (entries.row, entries.col, entries.data)]
        shape = {"row": self.row, "side": self.V.shape[0], "order": self.V.shape[1]}
        return shape | dict(zip(("i", "j", "value"), columns, strict=True))


def on_faces(program: ConicProgram, start: Start) -> tuple[ConicProgram, Start, tuple[Face, ...]]:
    """The program whose PSD blocks are those of faces, with a start for it."""
    faces: list[Face] = []
    quadratic = np.zeros(len(program.c), dtype=bool)
    if program.P is not None:
        quadratic = np.diff(program.P.indptr) > 0
    has_matrices = any(cone.kind == "psd" for cone in program.cones)
    for j in np.flatnonzero(has_matrices & (program.c == 0.0) & ~quadratic).tolist():
        found = _face_of_column(program, j)
        if found is not None and all(face.row != found.row for face in faces):
            smaller = restricted(program, found)
            if smaller is not None:
                faces.append(found)
                program, start = smaller, _restricted_start(start, found)
    return program, start, tuple(faces)


def lifted(program: ConicProgram, faces: tuple[Face, ...], start: Start) -> Start:
    """The point of the restricted program in the first one, far along the columns of its faces."""
    cones, x = ConeProduct(program.cones), start.x.copy()
    step = max(1.0, float(np.abs(x).max(initial=0.0)))
    for _ in range(LENGTHS):
        s = program.b - program.A @ x
        s[cones.zero] = 0.0
        if cones.holds(s, dual=False):
            break
        for face in faces:
            x[face.column] += face.sign * step
        step *= 4.0
    return start._replace(x=x, s=s)


def _face_of_column(program: ConicProgram, j: int) -> Face | None:
    """The face that the equation of a column implies, or None."""
    A = program.A
    span = slice(A.indptr[j], A.indptr[j + 1])
    rows, data = A.indices[span], A.data[span]
    if not rows.size:
        return None
    ends = np.cumsum([cone.rows for cone in program.cones])
    k = int(np.searchsorted(ends, rows.min(), side="right"))
    cone, first = program.cones[k], int(ends[k]) - program.cones[k].rows
    if cone.kind != "psd" or rows.max() >= ends[k]:
        return None
    i, k = (index[rows - first] for index in lower_triangle(cone.side))
    used = np.unique(i[i == k])
    if not (np.isin(i, used).all() and np.isin(k, used).all()):
        return None  # a semidefinite matrix has no entries beside a zero on the diagonal
    F = np.zeros((used.size, used.size))
    i, k = np.searchsorted(used, i), np.searchsorted(used, k)
    F[i, k] = F[k, i] = data
    sizes = np.linalg.eigvalsh(F)
    least, largest = sizes[0], sizes[-1]
    rank = int((np.abs(sizes) > SMALL * max(-least, largest)).sum())
    if min(-least, largest) > SMALL * max(-least, largest) or rank > MOST_RANK:
        return None
    sign = -1.0 if largest > -least else 1.0  # slack is b - Ax
    space = _null_space(F, used, rank, cone.side)
    return None if space is None else Face(first, j, sign, *space)


def _null_space(F: Array, used: Array, rank: int, side: int) -> tuple[Any, Array] | None:
    """Integer vectors that F of a rank is orthogonal to, and the rows where they are alone.

    None where doubles do not hold them, or F is singular in the rows that are not alone.
    """
    order = scipy.linalg.qr(F, mode="r", pivoting=True)[1]
    pivots, rest = order[:rank], order[rank:]
    V = scipy.sparse.eye_array(side, format="lil")
    if rest.size:
        tables = [
            flint.fmpq_mat(rank, len(columns), rationals(F[np.ix_(pivots, columns)].ravel()))
            for columns in (pivots, rest)
        ]
        if not rank or not tables[0].det():
            return None
        weights = tables[0].solve(tables[1])
        for k, column in enumerate(used[rest].tolist()):
            values = [weights[i, k] for i in range(rank)]
            scale = math.lcm(*(int(value.q) for value in values))
            entries = [scale, *(int(-scale * value.p // value.q) for value in values)]
            if max(map(abs, entries)) >= MOST_WHOLE:
                return None
            V[[column, *used[pivots].tolist()], column] = entries
    kept = np.setdiff1d(np.arange(side), used[pivots])
    return scipy.sparse.csr_array(V.tocsr()[:, kept]), kept


def restricted(program: ConicProgram, face: Face) -> ConicProgram | None:
    """The program in which V'SV >= 0 stands for S >= 0; None where a sum would be rounded."""
    side = face.V.shape[0]
    end = face.row + side * (side + 1) // 2
    T, block = _congruence(face), slice(face.row, end)
    A, largest = program.A.tocsr(), int(np.diff(T.indptr).max(initial=0))
    for values in (A[block].data, program.b[block]):
        if not _sums_are_exact(values, largest * float(abs(T.data).max(initial=0.0))):
            return None
    cones, first = [], 0
    for cone in program.cones:
        smaller = cone._replace(rows=T.shape[0]) if first == face.row else cone
        cones += [smaller] if smaller.rows else []
        first += cone.rows
    return replace(
        program,
        A=scipy.sparse.vstack([A[: face.row], T @ A[block], A[end:]]),
        b=np.concatenate([program.b[: face.row], T @ program.b[block], program.b[end:]]),
        cones=tuple(cones),
    )


def _congruence(face: Face) -> Any:
    """The map S -> V'SV of lower triangles."""
    side, few = face.V.shape
    i, j = lower_triangle(side)
    place = np.zeros((side, side), dtype=np.int64)
    place[i, j] = place[j, i] = np.arange(i.size)
    p, q = lower_triangle(few)
    product = scipy.sparse.kron(face.V.T, face.V.T, format="csr")[p * few + q].tocoo()
    entries = product.data, (product.row, place.ravel()[product.col])
    return scipy.sparse.csr_array(entries, shape=(p.size, i.size))


def _sums_are_exact(values: Array, factor: float) -> bool:
    """Whether sums of integer multiples, of this size in all, of some doubles are not rounded."""
    mantissas, powers = np.frexp(values[values != 0.0])
    if not mantissas.size:
        return True
    whole = np.ldexp(mantissas, 53).astype(np.int64)
    spare = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    lowest = int((powers - 53 + spare).min())
    return factor < math.ldexp(MOST_WHOLE, lowest - int(powers.max()))


def _restricted_start(start: Start, face: Face) -> Start:
    """The start of the restricted program: V'SV, and the Z with VZV' nearest in the kept rows."""
    side, few = face.V.shape
    end = face.row + side * (side + 1) // 2
    i, j = lower_triangle(side)
    p, q = lower_triangle(few)
    place = np.zeros((side, side), dtype=np.int64)
    place[i, j] = place[j, i] = np.arange(i.size)
    scale = face.V[face.kept].diagonal()
    Z = start.y[face.row : end][place[face.kept[p], face.kept[q]]] / (scale[p] * scale[q])
    S = _congruence(face) @ start.s[face.row : end]
    s, y = (
        np.concatenate([old[: face.row], new, old[end:]])
        for old, new in ((start.s, S), (start.y, Z))
    )
    return start._replace(s=s, y=y)
