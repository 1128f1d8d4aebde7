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
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy

from ...numerics.checks import FloatArray, IntArray
from ...numerics.rounding import UNIT, at_least, at_most, down
from .arithmetic import (
    AccurateMatrix,
    Enclosure,
    Pair,
    dot,
    norm_above,
    power_of_two_below,
    two_sum,
)
from .cones import ConeProduct
from .exact import (
    SNAPS,
    dependent_columns,
    is_small,
    nearby_solution,
    outside,
    pair_of,
    product,
    snapped,
    times,
)
from .gram import Scaled, approximate_solver, inner_products
from .program import Cone, ConicProgram
from .solve import Start, solve

CORRECTIONS = 12
SMALL_RHO = 2.0**-12

ENOUGH = 2e-7
"""A bound this close to the value of the start, relatively, ends the search for a better one."""

ANCHORS = (1e-9, 1e-8, 1e-7)
DEAD = 1e-5

DEPTHS = (0.0, 1e-9, 1e-7, 1e-5, 1e-3)
"""How far points of first-order methods are moved into the cones, relatively, one try each."""


class DualProof(NamedTuple):
    """A proven lower bound, and the pairs y and h it is proven from.

    The exact multipliers y* are within `move` of y, and zero where y is.
    """

    value: float
    y: Pair
    h: Pair | None
    rho: float = 0.0
    move: float = 0.0
    needs_bounds: bool = False

    @property
    def zero_rows(self) -> list[int]:
        """The rows in which the multipliers are zero."""
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
    def allowance(self) -> FloatArray:
        """The vector tolerance * f."""
        f = self.cones.interior(dual=False)
        f[self.cones.zero] = 1.0
        return self.tolerance * f

    @cached_property
    def _A(self) -> AccurateMatrix:
        return AccurateMatrix(self.program.A)

    @cached_property
    def _P(self) -> AccurateMatrix | None:
        return None if self.program.P is None else AccurateMatrix(self.program.P)

    @cached_property
    def _weight(self) -> float:
        """A power of two w for which A'A and wP are of one size."""
        P = self.program.P
        if P is None:
            return 0.0
        squares = float(np.square(self.program.A.data).sum()) or 1.0
        return float(power_of_two_below(np.array([squares / float(P.diagonal().sum())]))[0])

    @cached_property
    def _uniform(self) -> Scaled:
        """The floor of S(A'A + wP)S, the same for every y."""
        return Scaled(self.program.A, self.program.P, self._weight)

    @property
    def has_independent_columns(self) -> bool:
        """Whether the columns of A and P together are proven independent."""
        return self._uniform.floor > 0.0

    def residual(self, y: Pair, h: Pair | None) -> Enclosure:
        """Enclose A'y + Ph + c."""
        r = self._A.transpose_times(y, self.program.c)
        if self._P is None or h is None:
            return r
        q = self._P.transpose_times(h)
        high, error = two_sum(r.high, q.high)
        low = r.low + q.low + error
        rounding = 4.0 * UNIT * (np.abs(r.low) + np.abs(q.low) + np.abs(error))
        return Enclosure(high, low, (r.error + q.error + rounding) * (1.0 + 8.0 * UNIT))

    def prove(self, y: Pair, h: Pair | None, r: Enclosure | None = None) -> DualProof | str:
        """The lower bound from (y, h), or why there is none."""
        if not y.is_finite or (h is not None and not h.is_finite):
            return "the multipliers hold NaN or infinity"
        r = self.residual(y, h) if r is None else r
        radii = self.cones.dual_radii(y.high, y.low)
        proper = radii[self.cones.proper]
        if not (proper > 0.0).all():
            row = int(self.cones.proper[np.flatnonzero(~(proper > 0.0))[0]])
            return f"y is not proven to be inside K* at row {row}"
        smallest = float(np.min(proper, initial=np.inf))
        best = self._prove_with(y, h, r, None, smallest if smallest < math.inf else 1.0)
        if best is None or best.rho > 0.25:
            other = self._prove_with(y, h, r, radii, 1.0)
            best = other if best is None or (other and other.value > best.value) else best
        return best or "the columns of A are not proven to be independent at y"

    def _prove_with(
        self, y: Pair, h: Pair | None, r: Enclosure, radii: FloatArray | None, radius: float
    ) -> DualProof | None:
        """The bound with balls of one radius, or of `radii` (then `radius` is 1)."""
        A, P, b = self.program.A, self.program.P, self.program.b
        radius = float(power_of_two_below(np.array([radius]))[0])
        f = np.abs(b) + np.abs(self.allowance)
        gram, weight, Gb, g_max = self._uniform, self._weight, norm_above(f), 1.0
        if radii is not None:
            proper = radii[self.cones.proper]
            free = float(np.max(proper, initial=0.0)) or 1.0
            g = power_of_two_below(np.where(np.isfinite(radii), radii, free))
            N = scipy.sparse.csc_array(scipy.sparse.diags_array(g) @ A)
            weight *= (
                float(power_of_two_below(np.array([np.square(g).mean()]))[0]) if g.size else 1.0
            )
            gram = Scaled(N, P, weight)
            Gb, g_max = norm_above(g * f), float(g.max(initial=0.0))
        if not (gram.floor > 0.0 and radius > 0.0):
            return None
        with np.errstate(all="ignore"):
            length = norm_above(gram.scale * r.size)
        rho = length / math.sqrt(gram.floor) * (1.0 + 8.0 * UNIT)  # times the radius
        if not rho <= radius * (1.0 - 2.0**-20):
            return None
        terms = [-dot(b, y)[1], -Gb * rho]
        if self.tolerance:
            terms.append(-self._tolerance_cost(y))
        if P is not None and self._P is not None and h is not None:
            # (sqrt(q) + sqrt(w) rho)^2 / 2 with q = h'Ph
            q = quadratic_above(self._P, h)
            step = math.sqrt(weight) * rho
            terms += [-0.5 * q, -math.sqrt(q) * step * 1.001, -step * step]
        value = at_least(*terms)
        if not math.isfinite(value):
            return None
        return DualProof(value, y, h, rho / radius, g_max * rho * (1.0 + 8.0 * UNIT))

    def _tolerance_cost(self, y: Pair) -> float:
        """An upper bound on tolerance * f'|y|, |.| only in equations."""
        sign = np.ones(len(y.high))
        sign[self.cones.zero] = np.sign(y.high[self.cones.zero])
        return dot(sign * self.allowance, y)[1]

    def correct(self, y: FloatArray, h: FloatArray | None, weight: float) -> DualProof | str:
        """Correct approximate multipliers, and prove the best bound found on the way."""
        A, P = self.program.A, self.program.P
        W = self.cones.metric(y, dual=True)
        zero = np.zeros(self.cones.n_rows)
        diagonal = W.diagonal()
        zero[self.cones.zero] = max(1.0, float(diagonal.max(initial=0.0)))
        W = W + scipy.sparse.diags_array(zero)
        WA = scipy.sparse.csc_array(W @ A)
        M = inner_products(A, WA)
        if P is not None:
            M = M + weight * P if scipy.sparse.issparse(M) else M + (weight * P).toarray()
        solver = approximate_solver(M)
        if solver is None:
            return "the columns of A are not independent at y"
        pair, bias = Pair.of(y), None if P is None or h is None else Pair.of(h)
        best: DualProof | str = "the residual could not be made small enough"
        last = math.inf
        for _ in range(CORRECTIONS):
            r = self.residual(pair, bias)
            size = float(np.max(self._uniform.scale * r.size, initial=0.0))
            if not math.isfinite(size):
                break
            if size > 0.1 * last or size < 1e-20:
                found = self.prove(pair, bias, r)
                if isinstance(found, str):
                    best = found if isinstance(best, str) else best
                elif isinstance(best, str) or found.value > best.value:
                    best = found
                if size > 0.5 * last or (not isinstance(best, str) and best.rho < SMALL_RHO):
                    break
            last = size
            d = solver(r.value)
            pair = pair.plus(-(WA @ d))
            if bias is not None:
                bias = bias.plus(-weight * d)
        return best


def quadratic_above(P: AccurateMatrix, h: Pair) -> float:
    """An upper bound on h'Ph, for a PSD matrix P."""
    q = P.transpose_times(h)
    pair = Pair(*two_sum(q.high, q.low))
    size = np.abs(h.high) + np.abs(h.low)
    above = [
        dot(h.high, pair)[1],
        dot(h.low, pair)[1],
        dot(size, Pair.of(q.error))[1],
    ]
    return max(0.0, at_most(*above)) if all(map(math.isfinite, above)) else math.inf


def lower_bound(
    program: ConicProgram,
    start: Start,
    bounds: FloatArray | None,
    steps: list[str],
    target: float | None = None,
    tolerance: float = 0.0,
) -> DualProof | None:
    """The best lower bound that the rungs of the ladder prove, or None; `steps` says how."""
    if target is None and program.P is None and not program.c.any():
        steps.append("lower bound: no objective, 0.0")
        return DualProof(0.0, Pair.of(np.zeros(len(program.b))), None)
    prepared = _prepare(program, np.arange(len(program.b)), tolerance)
    goal = program.value(start.x) if target is None else target
    best: DualProof | None = None
    why = []

    def tried(name: str, found: DualProof | str) -> bool:
        """Keep the better bound; whether it is good enough."""
        nonlocal best
        if isinstance(found, str):
            why.append(f"{name}: {found}")
            steps.append("WHY " + why[-1])
        elif best is None or found.value > best.value:
            best = found
            steps.append(f"lower bound: {name}, {found.value!r}")
        return best is not None and goal - best.value <= ENOUGH * max(1.0, abs(goal))

    rungs: list[tuple[str, Callable[[], DualProof | str]]] = []
    if isinstance(prepared, str):
        why.append(prepared)
    else:
        alive = _alive(prepared[0].cones, start, prepared[1])
        rungs.append(("correction", lambda: _from_start(program, start, prepared)))
        if len(alive) < len(prepared[1]):
            face = lambda: _from_start(program, start, _prepare(program, alive, tolerance))  # noqa: E731
            rungs.append(("face", face))
        rungs.append(("anchor", lambda: _anchored(program, prepared, goal)))
        rungs.append(("exact face", lambda: _exact_dual(program, start, alive, tolerance)))
    for name, attempt in rungs:
        if tried(name, attempt()) or (best is not None and start.solver != "CLARABEL"):
            return best
    if bounds is not None:
        tried("bounds on the variables", _with_bounds(program, bounds, tolerance))
    if best is None:
        steps.append("lower bound: none; " + "; ".join(why))
    return best


Prepared = tuple["DualProver", IntArray, IntArray]


def _prepare(program: ConicProgram, rows: IntArray, tolerance: float) -> Prepared | str:
    """A prover of the rows and columns that matter if y is zero outside of `rows`."""
    part = reduced(program, rows, np.arange(len(program.c)))
    kept, columns = presolve(part)
    rows, small = rows[kept], reduced(part, kept, columns)
    prover = DualProver(small, tolerance)
    if not prover.has_independent_columns:
        stacked = small.A if small.P is None else scipy.sparse.vstack([small.A, small.P])
        found = dependent_columns(scipy.sparse.csc_array(stacked), small.c)
        if found is not None and found.line is not None:
            return "the objective falls along a line that no row sees"
        if found is not None:
            columns = columns[found.kept]
            prover = DualProver(reduced(program, rows, columns), tolerance)
    return prover, rows, columns


def _from_start(
    program: ConicProgram, start: Start, prepared: Prepared | str, shift: float = 0.0
) -> DualProof | str:
    """Correct the multipliers of a start, moved by `shift` into K*; zero in the other rows."""
    if isinstance(prepared, str):
        return prepared
    prover, rows, columns = prepared
    y, x, s = start.y[rows], start.x[columns], start.s[rows]
    if shift:
        y = y + shift * prover.cones.interior(dual=True)
    mu = max(center(prover.cones, y, s), 1e-14)
    found: DualProof | str = ""
    for depth in DEPTHS[: 1 if start.solver == "CLARABEL" else None]:
        inner = y
        if depth:
            inner = prover.cones.pushed(y, depth * max(1.0, float(np.abs(y).max())), dual=True)
        found = prover.correct(inner, x, mu)
        if not isinstance(found, str):
            break
    if isinstance(found, str):
        return found
    full = Pair.of(np.zeros(len(program.b)))
    full.high[rows], full.low[rows] = found.y
    h = None
    if found.h is not None:
        h = Pair.of(np.zeros(len(program.c)))
        h.high[columns], h.low[columns] = found.h
    return found._replace(y=full, h=h)


def _anchored(program: ConicProgram, prepared: Prepared, target: float) -> DualProof | str:
    """Solve with c + eps A'e, e inside K*: then y + eps e is inside, at a loss of eps e's."""
    prover, rows, _ = prepared
    e = np.zeros(len(program.b))
    e[rows] = prover.cones.interior(dual=True)
    best: DualProof | str = "no solution of the shifted program"
    for share in ANCHORS:
        shift = share * max(1.0, abs(target))
        found = solve(replace(program, c=program.c + shift * (program.A.T @ e)))
        if not found.is_finite:
            continue
        proof = _from_start(program, found, prepared, shift)
        if not isinstance(proof, str):
            return proof
        best = proof
    return best


def _exact_dual(
    program: ConicProgram, start: Start, alive: IntArray, tolerance: float
) -> DualProof | str:
    """Solve A'y + Ph + c = 0 in fractions, with y = 0 where it is nearly so and s is not."""
    if not is_small(program.A, program.P):
        return "too large for fractions"
    cones = ConeProduct(program.cones)
    allowance, zero = DualProver(program, tolerance).allowance, set(cones.zero.tolist())
    y0 = np.zeros(len(program.b))
    y0[alive] = start.y[alive]
    best = None
    for bits in SNAPS:
        h = snapped(start.x, bits) if program.P is not None else None
        f = [-Fraction(v) for v in program.c.tolist()]
        if h is not None:
            f = [a - q for a, q in zip(f, times(program.P, h), strict=True)]
        E = scipy.sparse.csc_array(program.A.tocsr()[alive].T)
        weights = np.abs(y0[alive]) + 1e-9 * max(1.0, float(np.abs(y0).max(initial=0.0)))
        found = nearby_solution(E, f, y0[alive], weights, bits)
        if found is None:
            continue
        y = [Fraction(0)] * len(program.b)
        for i, value in zip(alive.tolist(), found, strict=True):
            y[i] = value
        missing = outside(cones, y, dual=True)
        if missing:
            continue
        sizes = [abs(v) if i in zero else v for i, v in enumerate(y)]
        value = -product(program.b, y) - product(allowance, sizes)
        if h is not None:
            value -= (
                sum((a * b for a, b in zip(h, times(program.P, h), strict=True)), Fraction(0)) / 2
            )
        if best is None or down(value) > best.value:
            best = DualProof(down(value), pair_of(y), None if h is None else pair_of(h))
    return best or "no exact solution near y is inside K*"


def _alive(cones: ConeProduct, start: Start, rows: IntArray) -> IntArray:
    """Those of the rows, whose cones are given, in which y is not nearly zero."""
    y, s, dead = start.y[rows], start.s[rows], np.zeros(len(rows), dtype=bool)
    largest = 1.0 + float(np.abs(y).max(initial=0.0))
    for group in cones.groups:
        y_size, s_size = (np.abs(v[group.rows]).max(axis=1) for v in (y, s))
        dead[group.rows[(y_size < s_size) & (y_size < DEAD * largest)]] = True
    return rows[~dead]


def _with_bounds(program: ConicProgram, bounds: FloatArray, tolerance: float) -> DualProof | str:
    """Pay |r_j| B_j for the residual in columns with |x_j| <= B_j, and correct the others."""
    if program.P is not None:
        return "not with a quadratic objective"
    known = np.isfinite(bounds)
    # The multipliers of the program with these bounds as rows are the best to start from.
    box = scipy.sparse.eye_array(len(program.c), format="csr")[np.flatnonzero(known)]
    limits = np.tile(bounds[known], 2)
    boxed = replace(
        program,
        A=scipy.sparse.vstack([program.A, box, -box]),
        b=np.concatenate([program.b, limits]),
        cones=(*program.cones, Cone("nonnegative", len(limits))),
    )
    start, m = solve(boxed), len(program.b)
    start = start._replace(s=start.s[:m], y=start.y[:m])
    if not start.is_finite:
        return "no solution of the program with these bounds"
    free = reduced(program, np.arange(len(program.b)), np.flatnonzero(~known))
    prover = DualProver(free, tolerance)
    found = _from_start(free, start._replace(x=start.x[~known]), (prover, *_everything(free)))
    if isinstance(found, str):
        return found
    paid = program.A[:, np.flatnonzero(known)]
    r = AccurateMatrix(paid).transpose_times(found.y, program.c[known])
    lengths = np.array([norm_above(np.abs(paid[:, [j]].data)) for j in range(paid.shape[1])])
    price = dot(bounds[known], Pair.of(r.size))[1]
    price += dot(bounds[known], Pair.of(lengths))[1] * found.move
    return found._replace(value=at_least(found.value, -price), needs_bounds=True)


def _everything(program: ConicProgram) -> tuple[IntArray, IntArray]:
    return np.arange(len(program.b)), np.arange(len(program.c))


def presolve(program: ConicProgram) -> tuple[IntArray, IntArray]:
    """Rows and columns that remain for lower bounds; y = 0 in the other rows is no loss.

    A column without cost whose entries, of one sign, are all in nonnegative rows forces y = 0
    there; a column that nothing sees says nothing; equal columns with equal cost say it twice.
    """
    A, n = program.A, len(program.c)
    costless = program.c == 0.0
    if program.P is not None:
        costless &= np.diff(program.P.indptr) == 0
    nonnegative = np.zeros(len(program.b), dtype=bool)
    for start, cone in program.rows_of("nonnegative"):
        nonnegative[start : start + cone.rows] = True
    signs, columns_of = A.copy(), np.ones(n, dtype=bool)
    signs.data = np.sign(signs.data)
    rows = np.ones(len(program.b), dtype=bool)
    while True:
        live = rows.astype(np.float64)
        count = abs(signs).T @ live
        one_sign = np.abs(signs.T @ live) == count
        proper = abs(signs).T @ (live * nonnegative) == count
        forced = columns_of & costless & one_sign & proper & (count > 0)
        if not forced.any():
            break
        columns_of &= ~forced
        rows &= ~(abs(signs) @ forced.astype(np.float64) > 0)
    columns_of &= ~(costless & (count == 0))
    kept, seen = [], set()
    live_A = scipy.sparse.csc_array(scipy.sparse.diags_array(rows.astype(np.float64)) @ A)
    live_A.eliminate_zeros()
    for j in np.flatnonzero(columns_of):
        part = slice(live_A.indptr[j], live_A.indptr[j + 1])
        key = (live_A.indices[part].tobytes(), live_A.data[part].tobytes(), program.c[j])
        if program.P is not None and program.P.indptr[j] != program.P.indptr[j + 1]:
            key = (*key, j)
        if key not in seen:
            seen.add(key)
            kept.append(j)
    return np.flatnonzero(rows), np.array(kept, dtype=np.int64)


def center(cones: ConeProduct, y: FloatArray, s: FloatArray) -> float:
    """The mean y's over the degree of the barrier: the mu of an interior-point method."""
    proper = cones.proper
    return abs(float(y[proper] @ s[proper])) / max(cones.degree, 1.0)


def reduced(program: ConicProgram, rows: FloatArray, columns: FloatArray) -> ConicProgram:
    """The program with some columns, and the rows of some whole blocks (or nonnegative rows)."""
    kept = np.zeros(len(program.b), dtype=bool)
    kept[rows] = True
    cones, start = [], 0
    for cone in program.cones:
        count = int(kept[start : start + cone.rows].sum())
        if count and count < cone.rows and cone.kind not in ("zero", "nonnegative"):
            raise ValueError("Only whole blocks can be left out.")
        if count:
            cones.append(cone._replace(rows=count))
        start += cone.rows
    P: Any = program.P
    if P is not None:
        P = P[:, columns][columns]
    A = program.A.tocsr()[np.flatnonzero(kept)].tocsc()[:, columns]
    return ConicProgram(A, program.b[kept], program.c[columns], P, tuple(cones))
