"""A proven lower bound on the value of a conic program, from any approximate multipliers.

If y is in K* and A'y + Ph + c = 0 without error, then for every feasible x

    c'x + x'Px/2  >=  c'x + h'Px - h'Ph/2  =  -b'y + y's - h'Ph/2  >=  -b'y - h'Ph/2.

No solver's y satisfies the equation. Corrections in the metric of the barrier of K* make the
residual r = A'y + Ph + c as small as two doubles allow, without a proof. Then, with a ball of
radius g_k around each block of y proven inside K*, and G = diag(g),

    y* = y - G^2 A d,  h* = h - w d,  (A'G^2 A + wP) d = r

satisfies it, |G^-1 (y* - y)|^2 + w |d|_P^2 = r'd <= rho^2 = |Sr|^2 / lambda_min(S(..)S), and y* is
in K* if rho <= 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import scipy

from .arithmetic import (
    TINY,
    AccurateMatrix,
    Array,
    Enclosure,
    Pair,
    Vector,
    as_pair,
    dot,
    norm_above,
    power_of_two_below,
    two_sum,
)
from .cones import ConeProduct
from .exact import (
    SNAPS,
    inner_product,
    is_outside,
    is_small,
    matrix_product,
    nearby_solution,
    scaled_to_integers,
    snapped,
)
from .faces import Face
from .gram import Scaled
from .program import ConicProgram
from .rational import dependent_rows
from .rounding import UNIT, at_least, at_most, down
from .start import Start
from .steps import NotProven, Steps, climb, first_proof

CORRECTIONS, SMALL_RHO = 12, 2.0**-12

DEAD = (1e-8, 1e-5)
"""Blocks smaller than this, relatively, and than their partner in K may be zero; one try each."""


class DualProof(NamedTuple):
    """A proven lower bound, and the points y and h it is proven from.

    The exact multipliers are zero where y is; they are the nearer, the smaller `rho` is. With
    `faces`, y and its rows are those of the program that is restricted to these.
    """

    value: float
    y: Vector
    h: Vector | None
    rho: float = 0.0
    faces: tuple[Face, ...] = ()

    @property
    def zero_rows(self) -> list[int]:
        """The rows in which the multipliers are zero."""
        if isinstance(self.y, list):
            return [i for i, value in enumerate(self.y) if not value]
        return list(np.flatnonzero((self.y.high == 0.0) & (self.y.low == 0.0)).tolist())


@dataclass(frozen=True, eq=False)
class DualProver:
    """What the proofs of lower bounds of one conic program share.

    With a tolerance, slacks count as in K if s + tolerance * e is, and equations if they are met
    to within it: then y*'s >= -tolerance * f'|y*|, f = e in K and 1 in equations.
    """

    program: ConicProgram
    tolerance: float = 0.0

    @cached_property
    def cones(self) -> ConeProduct:
        """The cones, grouped."""
        return ConeProduct(self.program.cones)

    @cached_property
    def allowance(self) -> Array:
        """The vector tolerance * f."""
        f = self.cones.interior()
        f[self.cones.zero] = 1.0
        return self.tolerance * f

    @cached_property
    def _matrices(self) -> tuple[AccurateMatrix, AccurateMatrix | None]:
        P = self.program.P
        return AccurateMatrix(self.program.A), None if P is None else AccurateMatrix(P)

    @cached_property
    def _weight(self) -> float:
        """A power of two w for which A'A and wP are of one size."""
        P = self.program.P
        if P is None:
            return 0.0
        with np.errstate(all="ignore"):
            squares = float(np.square(self.program.A.data).sum()) or 1.0
            return float(power_of_two_below(squares / P.diagonal().sum()))

    @cached_property
    def uniform(self) -> Scaled:
        """The floor of S(A'A + wP)S, the same for every y; positive if it is proven regular."""
        return Scaled(self.program.A, self.program.P, self._weight)

    def residual(self, y: Pair, h: Pair | None) -> Enclosure:
        """Enclose A'y + Ph + c."""
        A, P = self._matrices
        r = A.transpose_times(y, self.program.c)
        return r if P is None or h is None else r.plus(*P.transpose_times(h))

    def prove(self, y: Pair, h: Pair | None, r: Enclosure) -> DualProof:
        """The lower bound from (y, h) with the residual r."""
        if not y.is_finite or not (h is None or h.is_finite):
            raise NotProven("the multipliers hold NaN or infinity")
        radii = self.cones.dual_radii(y.high, y.low)
        proper = radii[self.cones.proper]
        if not (proper > 0.0).all():
            row = int(self.cones.proper[np.flatnonzero(~(proper > 0.0))[0]])
            raise NotProven(f"y is not proven to be inside K* at row {row}")
        # Balls of one radius have a matrix that is the same for every y; then one for each block.
        radius = float(power_of_two_below(np.min(proper, initial=np.inf))) if proper.size else 1.0
        best = self._bound(y, h, r, self.uniform, self._weight, np.ones(len(radii)), radius)
        if best is None or best.rho > 0.25:
            largest = float(np.max(proper, initial=0.0)) or 1.0
            g = power_of_two_below(np.where(np.isfinite(radii), radii, largest))
            weight = self._weight * float(power_of_two_below(np.square(g).sum() / max(1, g.size)))
            N = scipy.sparse.csc_array(scipy.sparse.diags_array(g) @ self.program.A)
            other = self._bound(y, h, r, Scaled(N, self.program.P, weight), weight, g, 1.0)
            best = other if best is None or (other and other.value > best.value) else best
        if best is None:
            raise NotProven("the columns of A are not proven to be independent at y")
        return best

    def _bound(
        self,
        y: Pair,
        h: Pair | None,
        r: Enclosure,
        gram: Scaled,
        weight: float,
        g: Array,
        most: float,
    ) -> DualProof | None:
        """The bound with G = most * diag(g), if |Sr| / sqrt(floor) is below `most`."""
        if not (gram.floor > 0.0 and most > 0.0):
            return None
        with np.errstate(all="ignore"):
            length = norm_above(gram.scale * r.size + TINY)
            size = norm_above(g * (np.abs(self.program.b) + np.abs(self.allowance)))
        rho = length / math.sqrt(gram.floor) * (1.0 + 8.0 * UNIT)  # times `most`
        if not rho <= most * (1.0 - 2.0**-20):
            return None
        terms = [-dot(self.program.b, y)[1], -size * rho]
        if self.tolerance:  # f'|y|, |.| only in equations
            sign = np.ones(len(g))
            sign[self.cones.zero] = np.sign(y.high[self.cones.zero])
            terms.append(-dot(sign * self.allowance, y)[1])
        P = self._matrices[1]
        if P is not None and h is not None:  # (sqrt(q) + sqrt(w) rho)^2 / 2 with q = h'Ph
            q, step = quadratic_above(P, h), math.sqrt(weight) * rho
            terms += [-0.5 * q, -math.sqrt(q) * step * 1.001, -step * step]
        value = at_least(*terms)
        return DualProof(value, y, h, rho / most) if math.isfinite(value) else None

    def correct(self, y: Array, h: Array, weight: float) -> DualProof:
        """Correct approximate multipliers, and prove the best bound found on the way."""
        A, P, zero = self.program.A, self.program.P, self.cones.zero
        metric = self.cones.metric(y, dual=True)
        solver = metric.solver(A, zero, None if P is None else weight * P)
        if solver is None:
            raise NotProven("the columns of A are not independent at y")
        pair, bias = Pair.of(y), None if P is None else Pair.of(h)
        best, why = None, NotProven("the residual could not be made small enough")
        last = math.inf
        for k in range(CORRECTIONS):
            r = self.residual(pair, bias)
            size = float(np.max(self.uniform.scale * r.size, initial=0.0))
            if not math.isfinite(size):
                break
            is_slow = size > 0.5 * last or k == CORRECTIONS - 1
            if is_slow or size < 1e-20:
                try:
                    found = self.prove(pair, bias, r)
                    best = found if best is None or found.value > best.value else best
                except NotProven as error:
                    why = error
                if is_slow or (best is not None and best.rho < SMALL_RHO):
                    break
            last = size
            d, change = solver(r.high + r.low, np.zeros(A.shape[0]))
            pair = pair.plus(-change)
            bias = None if bias is None else bias.plus(-weight * d)
        if best is None:
            raise why
        return best


def quadratic_above(P: AccurateMatrix, h: Pair) -> float:
    """An upper bound on h'Ph, for a PSD matrix P."""
    q = P.transpose_times(h)
    pair, size = Pair(*two_sum(q.high, q.low)), np.abs(h.high) + np.abs(h.low)
    above = [dot(h.high, pair)[1], dot(h.low, pair)[1], dot(size, Pair.of(q.error))[1]]
    return max(0.0, at_most(*above)) if all(map(math.isfinite, above)) else math.inf


def lower_bound(
    program: ConicProgram,
    start: Start,
    steps: Steps,
    target: float | None = None,
    tolerance: float = 0.0,
) -> DualProof | None:
    """The best lower bound that the rungs of the ladder prove, or None; `steps` says how."""
    if not start.is_finite:
        steps.append("lower bound: none, the start holds NaN or infinity")
        return None
    if target is None and program.P is None and not program.c.any():
        steps.append("lower bound: no objective, 0.0")
        return DualProof(0.0, Pair.of(np.zeros(len(program.b))), None)
    try:
        whole = _whole(program, tolerance)
    except NotProven as error:
        steps.append(f"lower bound: none, {error}")
        return None
    goal = program.value(start.x) if target is None else target
    rungs: list[tuple[str, Callable[[], DualProof]]] = [
        ("correction", lambda: _from_start(program, start, whole))
    ]
    alive = whole[1]
    for level in DEAD:
        fewer = _alive(whole[0].cones, start, whole[1], level)
        if len(fewer) < len(alive):
            alive = fewer
            rungs.append(("face", partial(_on_face, program, start, alive, tolerance)))
    rungs.append(("exact face", lambda: _exact_dual(program, start, alive, tolerance)))
    if program.is_polyhedral:
        del rungs[1:]
    return climb("lower", rungs, goal, start.is_final, steps)


Prepared = tuple[DualProver, Array, Array]


@lru_cache(maxsize=2)  # the same for every start
def _whole(program: ConicProgram, tolerance: float) -> Prepared:
    return _prepare(program, np.arange(len(program.b)), tolerance)


def _prepare(program: ConicProgram, rows: Array, tolerance: float) -> Prepared:
    """A prover of the rows and columns that matter if y is zero outside of `rows`."""
    part = reduced(program, rows, np.arange(len(program.c)))
    kept, columns = presolve(part)
    rows, small = rows[kept], reduced(part, kept, columns)
    prover = DualProver(small, tolerance)
    if not prover.uniform.floor > 0.0:
        stacked = small.A if small.P is None else scipy.sparse.vstack([small.A, small.P])
        found = dependent_rows(stacked.T, small.c)
        if found.contradictions:
            raise NotProven("the objective falls along a line that no row sees")
        if len(found.kept) < len(columns):
            columns = columns[found.kept]
            prover = DualProver(reduced(program, rows, columns), tolerance)
    return prover, rows, columns


def _from_start(
    program: ConicProgram, start: Start, prepared: Prepared, shift: float = 0.0
) -> DualProof:
    """Correct the multipliers of a start, moved by `shift` into K*; zero in the other rows."""
    prover, rows, columns = prepared
    cones, s = prover.cones, start.s[rows]
    y = start.y[rows] + shift * cones.interior()
    mu = max(abs(float(y[cones.proper] @ s[cones.proper])) / cones.degree, 1e-14)

    def corrected(depth: float) -> DualProof:
        depth *= max(1.0, float(np.abs(y).max(initial=0.0)))
        inside = cones.pushed(y, depth, dual=True) if depth else y
        return prover.correct(inside, start.x[columns], mu)

    found = first_proof(partial(corrected, depth) for depth in start.depths)
    h = None if found.h is None else as_pair(found.h).spread(columns, len(program.c))
    return found._replace(y=as_pair(found.y).spread(rows, len(program.b)), h=h)


def _on_face(program: ConicProgram, start: Start, alive: Array, tolerance: float) -> DualProof:
    """Correct the multipliers with zeros outside of the rows that are alive."""
    return _from_start(program, start, _prepare(program, alive, tolerance))


def _exact_dual(program: ConicProgram, start: Start, alive: Array, tolerance: float) -> DualProof:
    """Solve A'y + Ph + c = 0 in fractions, with y = 0 outside of the rows that are alive."""
    if not is_small(program.A, program.P):
        raise NotProven("too large for fractions")
    prover = DualProver(program, tolerance)
    E = scipy.sparse.csc_array(program.A.tocsr()[alive].T)
    near, zero = start.y[alive], set(prover.cones.zero.tolist())
    weights = np.abs(near) + 1e-9 * max(1.0, float(np.abs(near).max(initial=0.0)))
    best: DualProof | None = None
    for bits in SNAPS:
        f, h, q = [-Fraction(v) for v in program.c.tolist()], None, Fraction(0)
        if program.P is not None:
            h = snapped(start.x, bits)
            Ph = matrix_product(program.P, h)
            f, q = [a - b for a, b in zip(f, Ph, strict=True)], inner_product(h, Ph)
        found = nearby_solution(E, f, near, weights, bits)
        y = [Fraction(0)] * len(program.b)
        for i, value in zip(alive.tolist(), found or (), strict=bool(found)):
            y[i] = value
        if program.P is None and not program.c.any():  # any multiple proves the same
            y = scaled_to_integers(y)
        if found is None or is_outside(prover.cones, y, dual=True):
            continue
        sizes = [abs(v) if i in zero else v for i, v in enumerate(y)]
        value = -inner_product(program.b.tolist(), y) - q / 2
        value -= inner_product(prover.allowance.tolist(), sizes)
        if best is None or down(value) > best.value:
            best = DualProof(down(value), as_pair(y), None if h is None else as_pair(h))
    if best is None:
        raise NotProven("no exact solution near y is inside K*")
    return best


def _alive(cones: ConeProduct, start: Start, rows: Array, level: float) -> Array:
    """Those of the rows, whose cones are given, in which y is not nearly zero."""
    # In an exponential block y with u = 0 needs v, w >= 0 only: rows of their own.
    y, s, dead = np.abs(start.y[rows]), np.abs(start.s[rows]), np.zeros(len(rows), dtype=bool)
    small = level * (1.0 + float(y.max(initial=0.0)))
    for group in cones.groups:
        y_size, s_size = (v[group.rows].max(axis=1) for v in (y, s))
        dead[group.rows[(y_size < s_size) & (y_size < small)]] = True
        if group.kind == "exponential":
            split = group.rows[y[group.rows[:, 0]] < small]
            dead[split] |= (y[split] < small) & ((y[split] < s[split]) | (split == split[:, :1]))
    return rows[~dead]


def presolve(program: ConicProgram) -> tuple[Array, Array]:
    """Rows and columns that remain for lower bounds; y = 0 in the other rows is no loss.

    A column without cost whose entries, of one sign, are all in nonnegative rows forces y = 0
    there; a column that nothing sees says nothing; equal columns with equal cost say it twice.
    """
    A, P, n = program.A, program.P, len(program.c)
    quadratic = np.zeros(n, dtype=bool) if P is None else np.diff(P.indptr) > 0
    costless = (program.c == 0.0) & ~quadratic
    kinds = np.repeat([c.kind for c in program.cones], [c.rows for c in program.cones])
    nonnegative = (kinds == "nonnegative").astype(np.float64)
    rows, columns = np.ones(len(program.b)), np.ones(n, dtype=bool)
    signs = A.copy()
    signs.data = np.sign(signs.data)
    while True:
        count = abs(signs).T @ rows
        forced = columns & costless & (np.abs(signs.T @ rows) == count) & (count > 0)
        forced &= abs(signs).T @ (rows * nonnegative) == count
        if not forced.any():
            break
        columns &= ~forced
        rows[abs(signs) @ forced.astype(np.float64) > 0] = 0.0
    columns &= ~(costless & (count == 0))
    kept: dict[Any, int] = {}
    live = scipy.sparse.csc_array(scipy.sparse.diags_array(rows) @ A)
    live.eliminate_zeros()
    for j in np.flatnonzero(columns).tolist():
        part = slice(live.indptr[j], live.indptr[j + 1])
        entries = live.indices[part].tobytes(), live.data[part].tobytes()
        kept.setdefault((entries, program.c[j], j if quadratic[j] else -1), j)
    return np.flatnonzero(rows), np.array(list(kept.values()), dtype=np.int64)


def reduced(program: ConicProgram, rows: Array, columns: Array) -> ConicProgram:
    """The program with some columns, and the rows of some whole blocks (or nonnegative rows).

    For lower bounds: (0, v, w) is in the dual of the exponential cone iff v, w >= 0.
    """
    if len(rows) == len(program.b) and len(columns) == len(program.c):
        return program
    kept = np.zeros(len(program.b), dtype=bool)
    kept[rows] = True
    cones, start = [], 0
    for cone in program.cones:
        count = int(kept[start : start + cone.rows].sum())
        kind = "nonnegative" if cone.kind == "exponential" and count < 3 else cone.kind
        if count and count < cone.rows and kind not in ("zero", "nonnegative"):
            raise ValueError("Only whole blocks can be left out.")
        if kind != cone.kind and kept[start]:
            raise ValueError("Of an exponential block u is left out first.")
        cones += [cone._replace(kind=kind, rows=count)] if count else []
        start += cone.rows
    P = None if program.P is None else program.P[:, columns][columns]
    A = program.A.tocsr()[np.flatnonzero(kept)].tocsc()[:, columns]
    return ConicProgram(A, program.b[kept], program.c[columns], P, tuple(cones))
