"""The cones of a conic program: metrics of their barriers, and proofs that a box is inside.

Blocks of one kind and size are handled together, as rows of an array. A metric guides a correction
and proves nothing. A proof takes intervals: the worst corner of the box, rounded outward, with the
error of each function added; exp and log are trusted to `FUNCTION_ERROR` units, as everywhere in
this package. Every cone is closed, so that equality is membership.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy

from .arithmetic import Array, norm_above
from .metric import Metric, PsdMap
from .program import Cone, lower_triangle
from .rounding import FUNCTION_ERROR, UNIT
from .verified_psd import is_proven_positive_definite

HALVINGS = 60

MOST_SIDE = 24
"""PSD blocks up to this order have arrays as metrics: 300 rows, 0.7 MB."""

MOST_ROWS = 30
"""Larger second-order cones have a diagonal and a line as metrics."""

# Smaller numbers, whose quotients and halves underflow, are zero or in no box that is proven.
LEAST = 2.0**-1000


def _up(values: Array) -> Array:
    return np.nextafter(values, np.inf)


def _low(center: Array, width: Array) -> Array:
    """The lower ends of intervals, rounded down; without error where the width is zero."""
    return np.where(width == 0.0, center, np.nextafter(center - width, -np.inf))


def _high(center: Array, width: Array) -> Array:
    """The upper ends of intervals, rounded up; without error where the width is zero."""
    return np.where(width == 0.0, center, _up(center + width))


def _is_faint(values: Array) -> Array:
    """Entries that are not zero, and so small that their halves may underflow."""
    return np.asarray((values != 0.0) & (np.abs(values) < LEAST))


class Blocks:
    """Blocks of one cone: `rows` has a row of indices for each."""

    kind = ""

    def __init__(self, rows: Array, cones: Sequence[Cone]) -> None:
        self.rows, self.cones = rows, cones

    @property
    def degree(self) -> int:
        """The degree of the barrier of a block, which is logarithmically homogeneous."""
        return int(self.rows.shape[1])

    def at(self, k: int) -> Blocks:
        """The block number k alone."""
        return type(self)(self.rows[k : k + 1], self.cones[k : k + 1])

    def contains(self, center: Array, width: Array, dual: bool) -> Array:
        """Whether each box center +- width is proven to lie in K, or in K* if `dual`."""
        raise NotImplementedError

    def metric(self, points: Array, dual: bool) -> Array:
        """A root B, with BB' the Hessian of a barrier of K at points of K; or, of K*, its inverse.

        Here both come from a linear map to K of K*, and the Hessian N at a point of K in
        coordinates E in which nothing cancels near the boundary.
        """
        turn = self._to_primal(len(points))
        E, N = self._frame((turn @ points[:, :, None])[:, :, 0] if dual else points)
        good = np.asarray(np.isfinite(E * N).all(axis=(1, 2)))
        E[~good] = N[~good] = np.eye(E.shape[1])
        d, V = np.linalg.eigh(N)
        d = np.sqrt(np.maximum(d, 1e-15 * d[:, -1:]))[:, None, :]
        if dual:
            root = np.linalg.solve(turn, E) @ (V / d)
        else:
            root = np.linalg.pinv(E, rcond=1e-200).transpose(0, 2, 1) @ (V * d)
        return np.where(good[:, None, None], root, 0.0)

    def _to_primal(self, count: int) -> Array:
        raise NotImplementedError

    def _frame(self, points: Array) -> tuple[Array, Array]:
        raise NotImplementedError

    def interior(self) -> Array:
        """A point well inside both K and K*, for each block."""
        raise NotImplementedError

    def dual_radius(self, points: Array, slack: Array) -> Array:
        """For each point, the radius of a ball around all that is within `slack`, inside K*.

        Zero where none is proven.
        """
        radius, guess = np.zeros(len(points)), 0.25 * np.abs(points).max(axis=1)
        for _ in range(HALVINGS):
            width = np.repeat(_up(guess + slack)[:, None], points.shape[1], axis=1)
            inside = self.contains(points, width, True) & (radius == 0.0) & (guess > 0.0)
            radius[inside] = guess[inside]
            if (radius > 0.0).all():
                break
            guess *= 0.5
        return radius


class Nonnegative(Blocks):
    """Rows that are nonnegative; each is a block."""

    kind = "nonnegative"

    def contains(self, center: Array, width: Array, dual: bool) -> Array:
        return (center >= width)[:, 0]

    def metric(self, points: Array, dual: bool) -> Array:
        return (points if dual else 1.0 / points)[:, :, None]

    def interior(self) -> Array:
        return np.ones(self.rows.shape)

    def dual_radius(self, points: Array, slack: Array) -> Array:
        return np.asarray(np.maximum(points[:, 0] - slack, 0.0) * (1.0 - 4.0 * UNIT))


class SecondOrder(Blocks):
    """|(s_1, ..., s_d)| <= s_0; self-dual."""

    kind = "second_order"
    degree = 2

    def contains(self, center: Array, width: Array, dual: bool) -> Array:
        return np.asarray(_low(center[:, 0], width[:, 0]) >= self._length(center, width))

    @staticmethod
    def _length(center: Array, width: Array) -> Array:
        """An upper bound on the lengths of the vectors (s_1, ..., s_d) in a box."""
        tail = _high(np.abs(center[:, 1:]), width[:, 1:])
        if tail.shape[1] > MOST_ROWS:  # a point is as near to the boundary as a rounded sum is off
            return np.array([norm_above(each) for each in tail])
        largest = tail.max(axis=1, initial=0.0)
        power = np.frexp(largest)[1]
        squares = np.square(np.ldexp(tail, -power[:, None])).sum(axis=1)
        length = np.sqrt(squares) * (1.0 + (tail.shape[1] + 16) * UNIT)
        length = _up(np.ldexp(length, power))
        # A vector along an axis has its length without error.
        return np.asarray(np.where(np.count_nonzero(tail, axis=1) <= 1, largest, length))

    def metric(self, points: Array, dual: bool) -> Array:
        # W = yy' - half J is half V^2, V = [[w_0, w_1'], [w_1, I + w_1 w_1' / (1 + w_0)]] with
        # w = y / sqrt(2 half); the Hessian is V^2 / half, V as with Js for y.
        J, half = self._reflected(points)
        w = (points if dual else points * J) / np.sqrt(2.0 * half)
        w[:, 0] += 1.0
        V = w[:, :, None] * w[:, None, :] / w[:, :1, None]
        V[:, 0] = V[:, :, 0] = w
        V[:, 0, 0] -= 2.0
        return np.asarray((V + np.eye(len(J))) * np.sqrt(half if dual else 1.0 / half)[:, :, None])

    def diagonal_and_line(self, points: Array, dual: bool) -> tuple[Array, Array]:
        """D and z, for each point, with D + zz' the form of which the metric is a root."""
        J, half = self._reflected(points)
        D, line = (-half * J, points) if dual else (-J / half, points * J / half)
        good = np.all(np.isfinite(D * line), axis=1)[:, None]
        return np.where(good, D, 0.0), np.where(good, line, 0.0)

    @staticmethod
    def _reflected(points: Array) -> tuple[Array, Array]:
        """The diagonal of J, and half of y'Jy for each point y."""
        J = -np.ones(points.shape[1])
        J[0] = 1.0
        length = np.linalg.norm(points[:, 1:], axis=1)
        return J, 0.5 * ((points[:, 0] - length) * (points[:, 0] + length))[:, None]

    def interior(self) -> Array:
        point = np.zeros(self.rows.shape)
        point[:, 0] = 1.0
        return point

    def dual_radius(self, points: Array, slack: Array) -> Array:
        # A point of the cone is (y_0 - |y_1|) / sqrt(2) from the boundary; 0.7071 is below.
        length = self._length(points, np.zeros(points.shape))
        depth = 0.7071 * np.nextafter(points[:, 0] - length, -np.inf) - _up(slack)
        return np.asarray(np.where(depth >= LEAST, depth, 0.0))


class Semidefinite(Blocks):
    """PSD matrices, as lower triangles; a dual vector has the matrix with half its off-diagonals.

    So the inner product of vectors is that of matrices.
    """

    kind = "psd"

    def __init__(self, rows: Array, cones: Sequence[Cone]) -> None:
        super().__init__(rows, cones)
        self.side = cones[0].side
        self.i, self.j = lower_triangle(self.side)
        self.halves = np.where(self.i == self.j, 1.0, 0.5)

    @property
    def degree(self) -> int:
        return self.side

    def matrices(self, points: Array, dual: bool) -> Array:
        """The symmetric matrices of vectors."""
        full = np.zeros((len(points), self.side, self.side))
        full[:, self.i, self.j] = full[:, self.j, self.i] = points * (self.halves if dual else 1.0)
        return full

    def contains(self, center: Array, width: Array, dual: bool) -> Array:
        # A symmetric V with |V| <= H entry by entry has V >= -diag(H 1). Halves may underflow.
        errors = self.matrices(width, dual).sum(axis=2) * (1.0 + (self.side + 2) * UNIT)
        pairs = zip(self.matrices(center, dual), errors, strict=True)
        inside = np.array([_is_psd(matrix, error) for matrix, error in pairs], dtype=bool)
        return inside & ~_is_faint(center).any(axis=1)

    def metric(self, points: Array, dual: bool) -> Array:
        # V -> LVL' from coordinates that are orthonormal to those of K*, LL' = Y or S^-1.
        matrices, i, j = self.matrices(points, dual), self.i, self.j
        d, V = np.linalg.eigh(np.where(np.isfinite(matrices), matrices, 0.0))
        d = np.sqrt(np.maximum(d, 0.0 if dual else 1e-16 * np.abs(d[:, -1:])))[:, None, :]
        L = V * d if dual else V / d
        B = L[:, i][:, :, i] * L[:, j][:, :, j] + L[:, i][:, :, j] * L[:, j][:, :, i]
        return np.asarray(B * (0.5 / self.halves[:, None] / np.sqrt(self.halves)))

    def maps(self, points: Array, dual: bool) -> list[PsdMap]:
        """The same metrics as maps of matrices."""
        matrices = map(_positive, self.matrices(points, dual))
        roots = matrices if dual else map(np.linalg.inv, matrices)
        return [PsdMap(rows, T, self.i, self.j) for rows, T in zip(self.rows, roots, strict=True)]

    def interior(self) -> Array:
        return np.broadcast_to((self.i == self.j).astype(np.float64), self.rows.shape).copy()

    def dual_radius(self, points: Array, slack: Array) -> Array:
        # A perturbation v of the vector changes the matrix by at most |v| in the Frobenius norm.
        radius = np.zeros(len(points))
        for k, Y in enumerate(self.matrices(points, dual=True)):
            least = float(np.linalg.eigvalsh(Y)[0]) if np.isfinite(Y).all() else 0.0
            for share in (0.9, 0.5, 0.1) if least > LEAST else ():
                error = _up(np.full(self.side, share * least + slack[k]))
                if is_proven_positive_definite(Y, error):
                    radius[k] = share * least
                    break
        return radius


def _positive(matrix: Array) -> Array:
    """The matrix, or a positive definite one near it."""
    finite = np.where(np.isfinite(matrix), matrix, 0.0)
    try:
        np.linalg.cholesky(finite)
    except np.linalg.LinAlgError:
        d, V = np.linalg.eigh(finite)
        return np.asarray(V * np.maximum(d, max(1e-15 * d[-1], LEAST)) @ V.T)
    return finite


def _is_psd(matrix: Array, error: Array) -> bool:
    """Whether matrix - diag(error) is proven PSD; rows without entries are left out."""
    kept = (matrix != 0.0).any(axis=1) | (error != 0.0)
    matrix, error = matrix[np.ix_(kept, kept)], error[kept]
    if not np.count_nonzero(matrix - np.diag(matrix.diagonal())):
        return bool((matrix.diagonal() >= error).all())
    finite = np.isfinite(matrix).all() and np.isfinite(error).all()
    return bool(finite) and is_proven_positive_definite(matrix, error)


class Exponential(Blocks):
    """The closure of v e^(u/v) <= w, v > 0; K* that of -u e^(v/u) <= e w, u < 0."""

    kind = "exponential"

    def contains(self, center: Array, width: Array, dual: bool) -> Array:
        # (u, v, w) is in K* iff w >= -u exp(v/u - 1): as for K, with -u for v and -v for u, a
        # convex function of the pair that grows with -v. So the worst corners are two.
        low, high = _low(center, width), _high(center, width)
        a, b_low, b_high, w = high[:, 0], low[:, 1], high[:, 1], low[:, 2]
        if dual:
            a, b_low, b_high = -low[:, 1], -high[:, 0], -low[:, 0]
        on_face = (b_low == 0.0) & (b_high == 0.0) & (a <= 0.0) & (w >= 0.0)
        inside = b_low > 0.0
        for b in (b_low, b_high):
            t = a / b
            size = np.abs(t) + 2.0
            value = b * np.maximum(np.exp(t - 1.0 if dual else t), LEAST)
            value = _up(value * (1.0 + (8.0 * size + FUNCTION_ERROR + 8) * UNIT))
            value = np.maximum(value, LEAST)  # above what underflows
            is_one = (a == 0.0) & (not dual)  # e^0 without error
            inside &= (np.where(is_one, b, value) <= w) & (size < 2.0**40)
        return np.asarray(inside | on_face)

    def _to_primal(self, count: int) -> Array:
        turn = np.array([[0.0, -1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, np.e]])
        return np.tile(turn, (count, 1, 1))

    def _frame(self, points: Array) -> tuple[Array, Array]:
        # The barrier is -log(psi) - log(w) - log(v), psi = v log(w/v) - u. In the coordinates
        # (d psi / psi, dv / v, dw / w) its Hessian is 1 and I + (v / psi) (1, -1)(1, -1)'.
        u, v, w = points.T
        psi, slope = v * np.log(w / v) - u, np.log(w / v) - 1.0
        E, N = np.zeros((2, len(points), 3, 3))
        E[:, 0] = np.stack([-psi, slope * v, v], axis=1)
        E[:, 1, 1], E[:, 2, 2], N[:, 0, 0] = v, w, 1.0
        N[:, 1, 1] = N[:, 2, 2] = 1.0 + v / psi
        N[:, 1, 2] = N[:, 2, 1] = -v / psi
        return E, N

    def interior(self) -> Array:
        return np.tile([-1.0, 1.0, 1.0], (len(self.rows), 1))


class Power(Blocks):
    """|w| <= prod u_i^alpha_i, u >= 0; K* the same with u_i / alpha_i. The alphas sum to 1."""

    kind = "power"

    def __init__(self, rows: Array, cones: Sequence[Cone]) -> None:
        super().__init__(rows, cones)
        given = np.array([cone.exponents for cone in cones])
        if given.shape[1] == 1:
            given = np.concatenate([given, 1.0 - given], axis=1)
        self.alpha = given / given.sum(axis=1, keepdims=True)
        # 1 - alpha, the sum (of nonnegative numbers) and the quotient: a few roundings each.
        self.relative = (rows.shape[1] + 8) * UNIT

    def contains(self, center: Array, width: Array, dual: bool) -> Array:
        # The product grows with each u_i: the worst corner has the least u and the largest |w|.
        u, w = _low(center[:, :-1], width[:, :-1]), _high(np.abs(center[:, -1]), width[:, -1])
        flat = (u >= 0.0).all(axis=1) & (w == 0.0)
        terms = self.alpha * np.log(u / self.alpha if dual else u)
        size = np.abs(terms).sum(axis=1) + np.abs(np.log(w)) + 1.0
        slack = size * (FUNCTION_ERROR + 4) * UNIT + 4.0 * self.relative * (size + 1.0)
        inside = (u >= LEAST).all(axis=1) & (terms.sum(axis=1) - np.log(w) >= slack)
        valid = ((self.alpha > 0.0) & (self.alpha < 1.0)).all(axis=1)
        return np.asarray(((inside & np.isfinite(size)) | flat) & valid)

    def _to_primal(self, count: int) -> Array:
        scale = np.concatenate([1.0 / self.alpha, np.ones((count, 1))], axis=1)
        return scale[:, :, None] * np.eye(scale.shape[1])

    def _frame(self, points: Array) -> tuple[Array, Array]:
        # The barrier is -log(psi) - sum (1 - alpha_i) log u_i, psi = prod u_i^(2 alpha_i) - w^2.
        # Coordinates: du_i / u_i, and d psi / psi where |w| is large, else dw over its largest.
        a, u, (k, d) = self.alpha, points[:, :-1], points.shape
        root = np.exp((a * np.log(u)).sum(axis=1))
        t = points[:, -1] / root
        rest = (1.0 - np.abs(t)) * (1.0 + np.abs(t))  # psi / root^2
        near = t * t > 0.1
        tt, i = np.where(near, t * t, 1.0), np.arange(d - 1)
        E, N = np.zeros((2, k, d, d))
        N[:, i, i] = 2.0 * a / rest[:, None] + 1.0 - a
        E[:, i, i], aa = u, a[:, :, None] * a[:, None, :]
        factor = np.where(near, 2.0 / tt - 2.0 / rest, 4.0 * t * t / np.square(rest))
        N[:, :-1, :-1] += factor[:, None, None] * aa
        corner = np.where(near, -1.0 / tt, -4.0 * t / np.square(rest))[:, None] * a
        N[:, :-1, -1] = N[:, -1, :-1] = corner
        flat = 2.0 / rest + 4.0 * t * t / np.square(rest)
        N[:, -1, -1] = np.where(near, 1.0 + 0.5 * rest / tt, flat)
        E[:, -1, :-1] = np.where(near, root / t, 0.0)[:, None] * a
        E[:, -1, -1] = np.where(near, -0.5 * root * rest / t, root)
        return E, N

    def interior(self) -> Array:
        point = np.ones(self.rows.shape)
        point[:, -1] = 0.0
        return point


KINDS = {
    "nonnegative": Nonnegative,
    "second_order": SecondOrder,
    "psd": Semidefinite,
    "exponential": Exponential,
    "power": Power,
    "power_nd": Power,
}


class ConeProduct:
    """The product of all cones, its blocks grouped by kind and size."""

    def __init__(self, cones: Sequence[Cone]) -> None:
        kinds = np.repeat([cone.kind for cone in cones], [cone.rows for cone in cones])
        self.n_rows = len(kinds)
        self.zero, self.proper = np.flatnonzero(kinds == "zero"), np.flatnonzero(kinds != "zero")
        grouped: dict[tuple[str, int], list[tuple[int, Cone]]] = {}
        start = 0
        for cone in cones:
            if cone.kind == "nonnegative":
                rows = [(start + k, cone) for k in range(cone.rows)]
                grouped.setdefault((cone.kind, 1), []).extend(rows)
            elif cone.kind != "zero" and cone.rows:
                grouped.setdefault((cone.kind, cone.rows), []).append((start, cone))
            start += cone.rows
        self.groups: list[Blocks] = []
        for (kind, size), members in grouped.items():
            first = np.array([start for start, _ in members])
            found = KINDS[kind](first[:, None] + np.arange(size), [cone for _, cone in members])
            self.groups.append(found)
        self.degree = max(1.0, float(sum(len(group.rows) * group.degree for group in self.groups)))

    def interior(self) -> Array:
        """A point well inside K and K*; zero on the zero cone."""
        point = np.zeros(self.n_rows)
        for group in self.groups:
            point[group.rows] = group.interior()
        return point

    def pushed(self, point: Array, depth: float, dual: bool) -> Array:
        """The point, moved so far into each cone that a box of half that width fits around it."""
        moved, e, step = point.copy(), self.interior(), depth
        for _ in range(HALVINGS):
            out = ~self._inside(moved, np.full(self.n_rows, 0.5 * depth), dual)
            if not out.any():
                break
            moved[out] += step * e[out]
            step *= 2.0
        return moved

    def dual_radii(self, high: Array, low: Array) -> Array:
        """For each row the radius of a ball in K* around its block; infinite on the zero cone."""
        radii = np.full(self.n_rows, np.inf)
        with np.errstate(all="ignore"):
            for group in self.groups:
                slack = np.abs(low[group.rows]).sum(axis=1) * (1.0 + group.rows.shape[1] * UNIT)
                radii[group.rows] = group.dual_radius(high[group.rows], slack)[:, None]
        return radii

    def _inside(self, center: Array, width: Array, dual: bool) -> Array:
        """For each row whether the box of its block is proven to be inside."""
        inside = np.ones(self.n_rows, dtype=bool)
        with np.errstate(all="ignore"):
            for group in self.groups:
                rows = group.rows
                inside[rows] = group.contains(center[rows], width[rows], dual)[:, None]
        return inside

    def first_outside(self, center: Array, width: Array) -> str:
        """A block whose box center +- width is not proven to lie in K, in words; or nothing."""
        out = np.flatnonzero(~self._inside(center, width, False))
        return f"the block at row {out[0]}" if out.size else ""

    def holds(self, point: Array, dual: bool) -> bool:
        """Whether a point is proven to be inside K, or K*."""
        return bool(self._inside(point, np.zeros(self.n_rows), dual).all())

    def metric(self, point: Array, dual: bool) -> Metric:
        """The metrics of all blocks; zero where undefined, and on the zero cone."""
        data, row, column = [np.zeros(0)], [self.zero[:0]], [self.zero[:0]]
        maps: list[PsdMap] = []
        D, lines, count = np.zeros(self.n_rows), [(np.zeros(0), self.zero[:0], self.zero[:0])], 0
        for group in self.groups:
            rows = group.rows
            if isinstance(group, Semidefinite) and group.side > MOST_SIDE:
                maps += group.maps(point[rows], dual)
                continue
            if isinstance(group, SecondOrder) and rows.shape[1] > MOST_ROWS:
                with np.errstate(all="ignore"):
                    D[rows], line = group.diagonal_and_line(point[rows], dual)
                places = np.repeat(np.arange(count, count + len(rows)), rows.shape[1])
                lines.append((line.ravel(), rows.ravel(), places))
                count += len(rows)
                continue
            with np.errstate(all="ignore"):
                values = group.metric(point[rows], dual)
            data.append(np.where(np.isfinite(values), values, 0.0).ravel())
            row.append(np.repeat(rows, rows.shape[1], axis=1).ravel())
            column.append(np.tile(rows, (1, rows.shape[1])).ravel())
        entries = np.concatenate(data), (np.concatenate(row), np.concatenate(column))
        small = scipy.sparse.csc_array(entries, shape=(self.n_rows, self.n_rows))
        values, *at = map(np.concatenate, zip(*lines, strict=True))
        Z = scipy.sparse.csc_array((values, tuple(at)), shape=(self.n_rows, count))
        return Metric(small, tuple(maps), D, Z)
