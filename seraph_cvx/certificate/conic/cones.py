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

from ...numerics.checks import FloatArray, IntArray
from ...numerics.rounding import FUNCTION_ERROR, UNIT
from ...numerics.verified_psd import is_proven_positive_definite
from .program import Cone
from .solve import lower_triangle

BoolArray = np.ndarray
HALVINGS = 60
LEAST = 2.0**-1000


def _up(values: FloatArray) -> FloatArray:
    return np.nextafter(values, np.inf)


def _down(values: FloatArray) -> FloatArray:
    return np.nextafter(values, -np.inf)


def _low(center: FloatArray, width: FloatArray) -> FloatArray:
    """The lower ends of intervals, rounded down; without error where the width is zero."""
    return np.where(width == 0.0, center, _down(center - width))


def _high(center: FloatArray, width: FloatArray) -> FloatArray:
    """The upper ends of intervals, rounded up; without error where the width is zero."""
    return np.where(width == 0.0, center, _up(center + width))


class Blocks:
    """Blocks of one cone: `rows` has a row of indices for each."""

    kind = ""
    degree = 1.0

    def __init__(self, rows: IntArray, cones: Sequence[Cone]) -> None:
        self.rows = rows
        self.cones = cones

    def at(self, k: int) -> Blocks:
        """The block number k alone."""
        return type(self)(self.rows[k : k + 1], self.cones[k : k + 1])

    def contains(self, center: FloatArray, width: FloatArray, dual: bool) -> BoolArray:
        """Whether each box center +- width is proven to lie in K, or in K* if `dual`."""
        raise NotImplementedError

    def hessian(self, points: FloatArray) -> FloatArray:
        """The Hessian of a barrier of K at interior points, a matrix for each."""
        raise NotImplementedError

    def dual_metric(self, points: FloatArray) -> FloatArray:
        """The inverse Hessian of a barrier of K* at interior points."""
        raise NotImplementedError

    def interior(self, dual: bool) -> FloatArray:
        """A point well inside K or K*, for each block."""
        raise NotImplementedError

    def price(self, y: FloatArray) -> FloatArray:
        """The inner products e'y of the point e = interior(dual=False) with y in K*."""
        return np.asarray((self.interior(dual=False) * y).sum(axis=1))

    def dual_radius(self, points: FloatArray, slack: FloatArray) -> FloatArray:
        """For each point, the radius of a ball around all that is within `slack`, inside K*.

        Zero where none is proven.
        """
        radius = np.zeros(len(points))
        with np.errstate(all="ignore"):
            guess = 0.25 * np.abs(points).max(axis=1)
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

    def contains(self, center: FloatArray, width: FloatArray, dual: bool) -> BoolArray:
        return np.asarray((center - width >= 0.0).all(axis=1))  # the sign of a difference is exact

    def hessian(self, points: FloatArray) -> FloatArray:
        return 1.0 / np.square(points)[:, :, None]

    def dual_metric(self, points: FloatArray) -> FloatArray:
        return np.square(points)[:, :, None]

    def interior(self, dual: bool) -> FloatArray:
        return np.ones(self.rows.shape)

    def dual_radius(self, points: FloatArray, slack: FloatArray) -> FloatArray:
        return np.maximum(points[:, 0] - slack, 0.0) * (1.0 - 4.0 * UNIT)


class SecondOrder(Blocks):
    """|(s_1, ..., s_d)| <= s_0; self-dual."""

    kind = "second_order"

    def contains(self, center: FloatArray, width: FloatArray, dual: bool) -> BoolArray:
        return np.asarray(_low(center[:, 0], width[:, 0]) >= self._length(center, width))

    @staticmethod
    def _length(center: FloatArray, width: FloatArray) -> FloatArray:
        """An upper bound on the lengths of the vectors (s_1, ..., s_d) in a box."""
        tail = _high(np.abs(center[:, 1:]), width[:, 1:])
        if not tail.shape[1]:
            return np.zeros(len(tail))
        power = np.frexp(tail.max(axis=1))[1]
        scaled = np.ldexp(tail, -power[:, None])
        squares = np.square(scaled).sum(axis=1)
        relative = 1.0 + (tail.shape[1] + 16) * UNIT
        length = np.sqrt(squares) * relative
        # A vector along an axis has its length without error.
        alone = np.count_nonzero(tail, axis=1) <= 1
        return np.where(alone, tail.max(axis=1), np.ldexp(length, power))

    def hessian(self, points: FloatArray) -> FloatArray:
        J = _lorentz(points.shape[1])
        det, Js = _determinant(points), points * J
        return (
            4.0 * Js[:, :, None] * Js[:, None, :] / np.square(det)[:, None, None]
            - 2.0 * np.diag(J) / det[:, None, None]
        )

    def dual_metric(self, points: FloatArray) -> FloatArray:
        J, det = _lorentz(points.shape[1]), _determinant(points)
        return points[:, :, None] * points[:, None, :] - 0.5 * det[:, None, None] * np.diag(J)

    def interior(self, dual: bool) -> FloatArray:
        point = np.zeros(self.rows.shape)
        point[:, 0] = 1.0
        return point

    def dual_radius(self, points: FloatArray, slack: FloatArray) -> FloatArray:
        # The distance of a point of the cone from its boundary is (y_0 - |y_1|) / sqrt(2).
        length = self._length(points, np.zeros(points.shape))
        return np.maximum(0.7071 * _down(points[:, 0] - length) - _up(slack), 0.0)


def _lorentz(d: int) -> FloatArray:
    J = -np.ones(d)
    J[0] = 1.0
    return J


def _determinant(points: FloatArray) -> FloatArray:
    length = np.linalg.norm(points[:, 1:], axis=1)
    return (points[:, 0] - length) * (points[:, 0] + length)


class Semidefinite(Blocks):
    """PSD matrices, as lower triangles; a dual vector has the matrix with half its off-diagonals.

    So the inner product of vectors is that of matrices.
    """

    kind = "psd"

    def __init__(self, rows: IntArray, cones: Sequence[Cone]) -> None:
        super().__init__(rows, cones)
        self.side = cones[0].side
        self.degree = float(self.side)
        self.i, self.j = lower_triangle(self.side)
        self.halves = np.where(self.i == self.j, 1.0, 0.5)

    def matrices(self, points: FloatArray, dual: bool) -> FloatArray:
        """The symmetric matrices of vectors."""
        full = np.zeros((len(points), self.side, self.side))
        full[:, self.i, self.j] = full[:, self.j, self.i] = points * (self.halves if dual else 1.0)
        return full

    def contains(self, center: FloatArray, width: FloatArray, dual: bool) -> BoolArray:
        matrices, widths = self.matrices(center, dual), self.matrices(width, dual)
        # A symmetric V with |V| <= H entry by entry has V >= -diag(H 1).
        errors = widths.sum(axis=2) * (1.0 + (self.side + 2) * UNIT)
        return np.array([_is_psd(M, e) for M, e in zip(matrices, errors, strict=True)], dtype=bool)

    def hessian(self, points: FloatArray) -> FloatArray:
        matrices = self.matrices(points, dual=False)
        return self._kronecker(np.linalg.pinv(matrices, rcond=1e-16, hermitian=True))

    def dual_metric(self, points: FloatArray) -> FloatArray:
        return self._kronecker(self.matrices(points, dual=True))

    def _kronecker(self, Z: FloatArray) -> FloatArray:
        """The matrix of V -> ZVZ from the coordinates of K to those of K*."""
        i, j, twice = self.i, self.j, 1.0 / self.halves
        W = Z[:, i][:, :, i] * Z[:, j][:, :, j] + Z[:, i][:, :, j] * Z[:, j][:, :, i]
        return np.asarray(W * (0.5 * twice[:, None] * twice))

    def interior(self, dual: bool) -> FloatArray:
        return np.broadcast_to((self.i == self.j).astype(np.float64), self.rows.shape).copy()

    def dual_radius(self, points: FloatArray, slack: FloatArray) -> FloatArray:
        # A perturbation v of the vector changes the matrix by at most |v| in the Frobenius norm.
        radius = np.zeros(len(points))
        for k, Y in enumerate(self.matrices(points, dual=True)):
            if not np.isfinite(Y).all():
                continue
            least = float(np.linalg.eigvalsh(Y)[0])
            for share in (0.9, 0.5, 0.1):
                error = np.full(self.side, _up(share * least + slack[k]))
                if least > 0.0 and is_proven_positive_definite(Y, error):
                    radius[k] = share * least
                    break
        return radius


def _is_psd(matrix: FloatArray, error: FloatArray) -> bool:
    """Whether matrix - diag(error) is proven PSD; rows without entries are left out."""
    kept = (matrix != 0.0).any(axis=1) | (error != 0.0)
    matrix, error = matrix[np.ix_(kept, kept)], error[kept]
    if not np.count_nonzero(matrix - np.diag(matrix.diagonal())):
        return bool((matrix.diagonal() >= error).all())
    return bool(np.isfinite(matrix).all() and np.isfinite(error).all()) and (
        is_proven_positive_definite(matrix, error)
    )


class Exponential(Blocks):
    """The closure of v e^(u/v) <= w, v > 0; K* that of -u e^(v/u) <= e w, u < 0."""

    kind = "exponential"
    degree = 3.0

    def contains(self, center: FloatArray, width: FloatArray, dual: bool) -> BoolArray:
        # (u, v, w) is in K* iff w >= -u exp(v/u - 1): as for K, with -u for v and -v for u, a
        # convex function of the pair that grows with -v. So the worst corners are two.
        low, high = _low(center, width), _high(center, width)
        if dual:
            a, b_low, b_high, shift = -low[:, 1], -high[:, 0], -low[:, 0], -1.0
        else:
            a, b_low, b_high, shift = high[:, 0], low[:, 1], high[:, 1], 0.0
        w = low[:, 2]
        on_face = (b_low == 0.0) & (b_high == 0.0) & (a <= 0.0) & (w >= 0.0)
        inside = b_low > 0.0
        with np.errstate(all="ignore"):
            for b in (b_low, b_high):
                t = a / b
                size = np.abs(t) + 2.0
                value = b * np.maximum(np.exp(t + shift), LEAST)
                value = _up(value * (1.0 + (8.0 * size + FUNCTION_ERROR + 8) * UNIT))
                inside &= np.where((t == 0.0) & (a == 0.0) & (not dual), b, value) <= w
                inside &= size < 2.0**40
        return inside | on_face

    def hessian(self, points: FloatArray) -> FloatArray:
        u, v, w = points.T
        with np.errstate(all="ignore"):
            ratio = np.log(w / v)
            psi = v * ratio - u
            gradient = np.stack([-np.ones_like(u), ratio - 1.0, v / w], axis=1)
            H = gradient[:, :, None] * gradient[:, None, :] / np.square(psi)[:, None, None]
            H[:, 1, 1] += 1.0 / (v * psi) + 1.0 / (v * v)
            H[:, 1, 2] -= 1.0 / (w * psi)
            H[:, 2, 1] -= 1.0 / (w * psi)
            H[:, 2, 2] += v / (w * w * psi) + 1.0 / (w * w)
        return H

    def dual_metric(self, points: FloatArray) -> FloatArray:
        # (u, v, w) in K* iff (-v, -u, e w) in K, where the Hessian is that of -log(psi) - log(w) -
        # log(v), psi = v log(w/v) - u. In the coordinates (change of psi, dv/v, dw/w) it is
        # 1/psi^2 and I + (v/psi) (1, -1)(1, -1)', so that nothing cancels near the boundary.
        v, u, w = -points[:, 0], -points[:, 1], np.e * points[:, 2]
        psi = v * np.log(w / v) - u
        k = v / psi
        inner = np.zeros((len(points), 3, 3))
        inner[:, 0, 0] = psi * psi
        inner[:, 1, 1] = inner[:, 2, 2] = (1.0 + k) / (1.0 + 2.0 * k)
        inner[:, 1, 2] = inner[:, 2, 1] = k / (1.0 + 2.0 * k)
        E = np.zeros((len(points), 3, 3))  # from these to (du, dv, dw), then to the dual point
        E[:, 1] = np.stack([np.ones_like(v), -(np.log(w / v) - 1.0) * v, -v], axis=1)
        E[:, 0, 1] = -v
        E[:, 2, 2] = w / np.e
        return np.asarray(E @ inner @ E.transpose(0, 2, 1))

    def interior(self, dual: bool) -> FloatArray:
        return np.tile([-1.0, 1.0, 1.0], (len(self.rows), 1))


class Power(Blocks):
    """|w| <= prod u_i^alpha_i, u >= 0; K* the same with u_i / alpha_i. The alphas sum to 1."""

    kind = "power"

    def __init__(self, rows: IntArray, cones: Sequence[Cone]) -> None:
        super().__init__(rows, cones)
        given = np.array([cone.exponents for cone in cones])
        if given.shape[1] == 1:
            given = np.concatenate([given, 1.0 - given], axis=1)
        self.alpha = given / given.sum(axis=1, keepdims=True)
        self.degree = float(rows.shape[1])
        # 1 - alpha, the sum (of nonnegative numbers) and the quotient: a few roundings each.
        self.relative = (rows.shape[1] + 8) * UNIT

    def contains(self, center: FloatArray, width: FloatArray, dual: bool) -> BoolArray:
        # The product grows with each u_i: the worst corner has the least u and the largest |w|.
        u = _low(center[:, :-1], width[:, :-1])
        w = _high(np.abs(center[:, -1]), width[:, -1])
        valid = (self.alpha > 0.0).all(axis=1) & (self.alpha < 1.0).all(axis=1)
        flat = (u >= 0.0).all(axis=1) & (w == 0.0)
        with np.errstate(all="ignore"):
            logs = np.log(u / self.alpha if dual else u)
            terms = self.alpha * logs
            size = np.abs(terms).sum(axis=1) + np.abs(np.log(w)) + 1.0
            slack = size * (FUNCTION_ERROR + 4) * UNIT + 4.0 * self.relative * (size + 1.0)
            inside = (u > 0.0).all(axis=1) & (terms.sum(axis=1) - np.log(w) >= slack)
        return (inside & np.isfinite(size) | flat) & valid

    def hessian(self, points: FloatArray) -> FloatArray:
        u, w, a, d = points[:, :-1], points[:, -1], self.alpha, points.shape[1]
        with np.errstate(all="ignore"):
            phi = np.exp(2.0 * (a * np.log(u)).sum(axis=1))
            psi = phi - w * w
            slope = 2.0 * a * phi[:, None] / u
            gradient = np.concatenate([slope, -2.0 * w[:, None]], axis=1)
            H = gradient[:, :, None] * gradient[:, None, :] / np.square(psi)[:, None, None]
            H[:, :-1, :-1] -= slope[:, :, None] * slope[:, None, :] / (phi * psi)[:, None, None]
            diagonal = np.arange(d - 1)
            H[:, diagonal, diagonal] += slope / (u * psi[:, None]) + (1.0 - a) / (u * u)
            H[:, -1, -1] += 2.0 / psi
        return H

    def dual_metric(self, points: FloatArray) -> FloatArray:
        # At (u_i / alpha_i, w), a point of K. With q = (change of psi) / psi in place of w, as
        # psi = phi - w^2, phi = prod u_i^(2 alpha_i), nothing cancels near the boundary; with
        # |w| far from it, w itself.
        a, w = self.alpha, points[:, -1]
        u = points[:, :-1] / a
        k, d = points.shape
        phi = np.exp(2.0 * (a * np.log(u)).sum(axis=1))
        root = np.sqrt(phi)
        psi = (root - np.abs(w)) * (root + np.abs(w))
        near = w * w > 0.1 * phi
        ww = np.where(near, w * w, phi)
        H, E, i = np.zeros((k, d, d)), np.zeros((k, d, d)), np.arange(d - 1)
        H[:, :-1, :-1] = (2.0 * phi / ww - 2.0 * phi / psi)[:, None, None] * (
            a[:, :, None] * a[:, None, :]
        )
        H[:, i, i] += (2.0 * phi / psi)[:, None] * a + (1.0 - a)
        H[:, :-1, -1] = H[:, -1, :-1] = -(phi / ww)[:, None] * a
        H[:, -1, -1] = 1.0 + psi / (2.0 * ww)
        E[:, i, i] = u * a
        E[:, -1, :-1] = (phi / w)[:, None] * a
        E[:, -1, -1] = -psi / (2.0 * w)
        far = ~near
        if far.any():
            scale = np.concatenate([u, root[:, None]], axis=1)
            plain = self.hessian(np.concatenate([u, w[:, None]], axis=1))
            H[far] = (scale[:, :, None] * plain * scale[:, None, :])[far]
            E[far] = (scale * np.concatenate([a, np.ones((k, 1))], axis=1))[far, :, None] * np.eye(
                d
            )
        good = np.isfinite(H).all(axis=(1, 2)) & np.isfinite(E).all(axis=(1, 2))
        H[~good], E[~good] = np.eye(d), 0.0
        return np.asarray(E @ np.linalg.pinv(H, rcond=1e-15, hermitian=True) @ E.transpose(0, 2, 1))

    def interior(self, dual: bool) -> FloatArray:
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
        self.zero = np.zeros(0, dtype=np.int64)
        self.n_rows = sum(cone.rows for cone in cones)
        grouped: dict[tuple[str, int], list[tuple[int, Cone]]] = {}
        start = 0
        for cone in cones:
            if cone.kind == "zero":
                self.zero = np.concatenate([self.zero, np.arange(start, start + cone.rows)])
            elif cone.kind == "nonnegative":
                rows = [(start + k, cone) for k in range(cone.rows)]
                grouped.setdefault(("nonnegative", 1), []).extend(rows)
            elif cone.rows:
                grouped.setdefault((cone.kind, cone.rows), []).append((start, cone))
            start += cone.rows
        self.groups: list[Blocks] = []
        for (kind, size), members in grouped.items():
            rows = np.array([first for first, _ in members])[:, None] + np.arange(size)
            self.groups.append(KINDS[kind](rows, [cone for _, cone in members]))
        self.proper = np.setdiff1d(np.arange(self.n_rows), self.zero)
        self.degree = sum(group.degree * len(group.rows) for group in self.groups)

    def interior(self, dual: bool) -> FloatArray:
        """A point well inside K or K*; zero on the zero cone."""
        point = np.zeros(self.n_rows)
        for group in self.groups:
            point[group.rows] = group.interior(dual)
        return point

    def pushed(self, point: FloatArray, depth: float, dual: bool) -> FloatArray:
        """The point, moved so far into each cone that a box of this half-width fits around it."""
        moved, e = point.copy(), self.interior(dual)
        for group in self.groups:
            rows, step = group.rows, depth
            for _ in range(HALVINGS):
                width = np.full(rows.shape, 0.5 * depth)
                out = ~group.contains(moved[rows], width, dual)
                if not out.any():
                    break
                moved[rows[out]] += step * e[rows[out]]
                step *= 2.0
        return moved

    def dual_radii(self, high: FloatArray, low: FloatArray) -> FloatArray:
        """For each row the radius of a ball in K* around its block; infinite on the zero cone."""
        radii = np.full(self.n_rows, np.inf)
        for group in self.groups:
            slack = np.abs(low[group.rows]).sum(axis=1) * (1.0 + group.rows.shape[1] * UNIT)
            radii[group.rows] = group.dual_radius(high[group.rows], slack)[:, None]
        return radii

    def outside(self, center: FloatArray, width: FloatArray, dual: bool = False) -> list[str]:
        """The blocks whose box center +- width is not proven to lie in the cone, in words."""
        missing = []
        for group in self.groups:
            rows = group.rows
            inside = group.contains(center[rows], width[rows], dual)
            missing += [f"{group.kind} block at row {rows[k, 0]}" for k in np.flatnonzero(~inside)]
        return missing

    def metric(self, point: FloatArray, dual: bool) -> scipy.sparse.csc_array:
        """The metric at a point as a sparse matrix; zero on the zero cone and where undefined."""
        data, row, column = [np.zeros(0)], [self.zero[:0]], [self.zero[:0]]
        for group in self.groups:
            rows = group.rows
            with np.errstate(all="ignore"):
                values = (group.dual_metric if dual else group.hessian)(point[rows])
            data.append(np.where(np.isfinite(values), values, 0.0).ravel())
            row.append(np.repeat(rows, rows.shape[1], axis=1).ravel())
            column.append(np.tile(rows, (1, rows.shape[1])).ravel())
        entries = np.concatenate(data), (np.concatenate(row), np.concatenate(column))
        return scipy.sparse.csc_array(entries, shape=(self.n_rows, self.n_rows))
