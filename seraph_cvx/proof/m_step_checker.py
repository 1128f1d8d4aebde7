"""Checks the certificate of an M-step: its two bounds, pair by pair, in balls.

With s_k = v_k'Av_k - eta, c_k the weight of pair k, and q_k its label +1 (1, 0 or a soft label):

    F(A)    = sum_k c_k [log(1 + e^{-s_k}) + q_k s_k] + <R, A> + sum_j P_j(A)
    D(r, Z) = sum_k c_k [H(r_k) + eta (r_k - q_k)] - sum_j P_j*(Z_j)

and D(r, Z) <= F(A) for every PSD A, all r in [0, 1]^N and Z_j with S = R + sum_k c_k (q_k - r_k)
v_k v_k' + sum_j Z_j PSD. A file proves the upper bound by a factor L of A, and the lower one by a
point on the way from r = 0 ("one") or r = q ("labels"), both with Z = 0, to r_k = 1 / (1 + e^{s_k})
at a factor, with given Z_j. Pairs of points of two different groups have r_k = 0. Nothing is
imported but python-flint, and the numbers and matrices of the other checker.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from .checker_arithmetic import Malformed, dot, fields, flint, is_psd, number, numbers

BITS = (256, 1024)  # of the balls; the second where the first do not decide
PENALTIES = {
    "quadratic": "weight prior",
    "log_det": "weight inverse",
    "off_diagonal": "limit",
    "trace_bound": "bound",
}


def check_m_step(content: Any, progress: Callable[[str], object]) -> tuple[Any, Any, Any]:
    """The claim of a file, and lower and upper bounds on the optimum that it proves."""
    data, claim, primal, dual = fields(content, "m_step claim primal dual", "format version")
    low, high = (None if end is None else number(end) for end in fields(claim, "lower upper"))
    for bits in BITS:
        with flint.ctx.workprec(bits):
            lower, upper = _bounds(MStep(data), primal, dual, progress)
        if (low is None or lower >= low) and (high is None or upper <= high):
            break
    return claim, lower, upper


class MStep:
    """The M-step of a file: its points, which pairs count, with which weights and labels."""

    def __init__(self, data: Any) -> None:
        points, similar, dissimilar, confidence, mu, eta, a, *others = fields(
            data,
            "points similar dissimilar confidence unlabeled_weight threshold sharpness "
            "soft_labels previous_factor previous_metric trace_weight manifold_term penalties",
            words="the M-step has to have",
        )
        soft, factor, metric, trace_weight, term, penalties = others
        self.points = [numbers(row, len(points[0])) for row in points]
        self.X = flint.arb_mat(self.points)
        n, m = self.n, self.m = self.X.nrows(), self.X.ncols()
        self.mu, self.eta, self.sharpness = map(_nonnegative, (mu, eta, a))
        self.R = _identity(m) * _nonnegative(trace_weight)
        if term is not None:
            self.R += _symmetric(term, m)
        self.penalties = [Penalty(given, m) for given in penalties]
        pairs = _pairs(similar + dissimilar, n)
        weights = len(pairs) * [1] if confidence is None else numbers(confidence, len(pairs))
        if not all(weight > 0 for weight in weights):
            raise Malformed("a confidence is not positive")
        self.labeled = {
            pair: (flint.arb(weight), flint.arb(int(k < len(similar))))
            for k, (pair, weight) in enumerate(zip(pairs, weights, strict=True))
        }
        n_unlabeled = math.comb(n, 2) - len(pairs)
        if sum(value is not None for value in (soft, factor, metric)) > 1:
            raise Malformed("there is more than one source of soft labels")
        self.soft = None if soft is None else numbers(soft, n_unlabeled)
        if self.soft is not None and not all(0 <= q <= 1 for q in self.soft):
            raise Malformed("a soft label is no probability")
        self.previous: Distances | None = None
        if factor is not None:
            self.previous = Distances(self.X * _matrix(factor, m))
        if metric is not None:
            self.previous = Distances(self.X, self.X * _symmetric(metric, m))

    def pairs(self) -> Iterator[tuple[int, list[tuple[int, Any, Any]]]]:
        """For each point i the pairs (i, j), j > i, that count: j, c and q."""
        soft, mu, zero = iter(self.soft or ()), flint.arb(self.mu), flint.arb(0)
        for i in range(self.n):
            row = []
            for j in range(i + 1, self.n):
                known = self.labeled.get((i, j))
                if known is not None:
                    row.append((j, *known))
                    continue
                q = zero if self.soft is None else flint.arb(next(soft))
                if self.mu:
                    if self.previous is not None:
                        q = _sigma(self.sharpness * (self.eta - self.previous.row(i)[j]))
                    row.append((j, mu, q))
            yield i, row


class Distances:
    """Squared distances (u_i - u_j)'(v_i - v_j) of points, where u_i'v_j = u_j'v_i."""

    def __init__(self, U: Any, V: Any = None) -> None:
        self.U, self.V = U.tolist(), (U if V is None else V).transpose()
        other = self.V.transpose().tolist()
        self.squares = [dot(u, v) for u, v in zip(self.U, other, strict=True)]
        self.known: tuple[int, list[Any]] = (-1, [])

    def row(self, i: int) -> list[Any]:
        """Those from point i; the last ones are kept."""
        if self.known[0] != i:
            products = zip(
                self.squares, (flint.arb_mat([self.U[i]]) * self.V).entries(), strict=True
            )
            self.known = i, [self.squares[i] + square - 2 * product for square, product in products]
        return self.known[1]


class DualPoint:
    """The point (r, Z) of a file, with its matrix R + sum_j Z_j and its - sum_j P_j*(Z_j)."""

    def __init__(self, given: Any, m_step: MStep) -> None:
        factor, anchor, step, groups, multipliers = fields(
            given, "factor anchor step groups multipliers", words="dual has to have"
        )
        self.step, self.is_toward_one, self.groups = number(step), anchor == "one", groups
        if anchor not in ("one", "labels") or not 0 <= self.step <= 1:
            raise Malformed("the dual point is no step from r = 0 or r = q")
        if groups is not None and (len(groups) != m_step.n or {*map(type, groups)} != {int}):
            raise Malformed("groups has to have an integer for each point")
        self.eta, self.is_within_groups = m_step.eta, True
        self.distances = Distances(m_step.X * _matrix(factor, m_step.m))
        self.S, self.value = m_step.R, flint.arb(0)
        for penalty, Z in zip(m_step.penalties, multipliers, strict=True):
            matrix, conjugate = penalty.dual(Z, self.step)
            self.S, self.value = self.S + matrix, self.value - conjugate

    def off(self, i: int, j: int, q: Any) -> Any:
        """By how much q_k is more than r_k, which is exactly zero where the step is."""
        is_apart = self.groups is not None and self.groups[i] != self.groups[j]
        r = flint.arb(0) if is_apart else _sigma(self.eta - self.distances.row(i)[j])
        off = q - self.step * r if self.is_toward_one else self.step * (q - r)
        self.is_within_groups &= not is_apart or off.is_zero()
        return off

    def is_feasible(self, m_step: MStep, weights: Any, degrees: list[Any]) -> bool:
        """Whether S is proved PSD, given the rows w_ij = c (q - r) times X, and their sums.

        Where R and Z are zero, S is C'TC with its part T of independent features, by which the
        others are exact in all pairs of a group, so that it is PSD where T is. That needs r = q in
        all other pairs.
        """
        crossed = m_step.X.transpose() * flint.arb_mat(weights)
        scaled = [[w * x for x in row] for w, row in zip(degrees, m_step.points, strict=True)]
        S = self.S + m_step.X.transpose() * flint.arb_mat(scaled) - crossed - crossed.transpose()
        kept: Any = range(m_step.m)
        is_plain = not m_step.penalties and all(v.is_zero() for v in m_step.R.entries())
        if is_plain and self.is_within_groups:
            first: dict[int, list[Any]] = {}
            groups = zip(self.groups or m_step.n * [0], m_step.points, strict=True)
            links = [
                [a - b for a, b in zip(point, first.setdefault(group, point), strict=True)]
                for group, point in groups
            ]
            reduced, rank = flint.fmpq_mat(links).rref()
            kept = [next(j for j in kept if reduced[k, j] != 0) for k in range(rank)]
        return _is_psd(flint.arb_mat([[S[i, j] for j in kept] for i in kept]))


def _bounds(
    m_step: MStep, primal: Any, dual: Any, progress: Callable[[str], object]
) -> tuple[Any, Any]:
    """D at the dual point and F at the primal one, infinite where these are not feasible."""
    lower, upper = flint.arb("-inf"), flint.arb("inf")
    point, near = None, None
    if primal is not None:
        (factor,) = fields(primal, "factor", words="primal has to have")
        L = _matrix(factor, m_step.m)
        near, A = Distances(m_step.X * L), L * L.transpose()
        upper = sum((P.value(A) for P in m_step.penalties), (m_step.R * A).trace())
    if dual is not None:
        point = DualPoint(dual, m_step)
        lower = point.value
        if near is not None and dual["factor"] == factor:
            point.distances = near
    products, degrees = [], m_step.n * [flint.arb(0)]
    for i, row in m_step.pairs():
        if i and i % 500 == 0:
            progress(f"checked the pairs of {i} of {m_step.n} points")
        weights = m_step.n * [flint.arb(0)]
        for j, c, q in row:
            if near is not None:
                s = near.row(i)[j] - m_step.eta
                upper += c * (q * s - _sigma(s).log())
            if point is not None:
                off = point.off(i, j, q)
                lower += c * (_entropy(q - off) - m_step.eta * off)
                weights[j] = c * off
                degrees[i] += weights[j]
                degrees[j] += weights[j]
        products.append((flint.arb_mat([weights]) * m_step.X).entries())
    if point is not None and not point.is_feasible(m_step, products, degrees):
        lower = flint.arb("-inf")
    return lower, upper


class Penalty:
    """A penalty P of the file: its value at a metric, and its conjugate."""

    def __init__(self, content: Any, m: int) -> None:
        readers: dict[str, Callable[[Any], Any]] = {
            **dict.fromkeys(("weight", "bound"), _nonnegative),
            **dict.fromkeys(("prior", "inverse"), lambda given: _symmetric(given, m)),
            "limit": lambda given: None if given is None else _nonnegative(given),
        }
        self.kind, self.m, names = content["kind"], m, PENALTIES[content["kind"]]
        given = zip(names.split(), fields(content, names, "kind"), strict=True)
        self.given = {name: readers[name](value) for name, value in given}
        if self.given.get("weight", 1) == 0:
            raise Malformed("a weight is zero")
        if self.kind == "log_det" and not _log_det(self.given["inverse"]).is_finite():
            raise Malformed("the inverse of a prior is not proved positive definite")

    def value(self, A: Any) -> Any:
        """P(A), or infinity where A is not proved to satisfy the constraint."""
        infinity, zero = flint.arb("inf"), flint.arb(0)
        match self.kind, *self.given.values():
            case "quadratic", weight, prior:
                return weight / 2 * sum(x * x for x in (A - prior).entries())
            case "log_det", weight, Q:
                return weight * ((A * Q).trace() - _log_det(A) - _log_det(Q) - self.m)
            case "off_diagonal", limit:
                size = sum(map(abs, _off_diagonal(A)), zero)
                return zero if size.is_zero() else infinity if limit is None else limit * size
        return zero if A.trace() <= self.given["bound"] else infinity

    def dual(self, given: Any, step: Any) -> tuple[Any, Any]:
        """Z = step times what is given, and P*(Z), infinite where it is not proved finite."""
        infinity, zero = flint.arb("inf"), flint.arb(0)
        if self.kind == "trace_bound":
            nu = step * numbers(given, 1)[0]
            return _identity(self.m) * nu, nu * self.given["bound"] if nu >= 0 else infinity
        Z = _symmetric(given, self.m) * step
        match self.kind, *self.given.values():
            case "quadratic", weight, prior:
                return Z, (Z * prior).trace() + sum(x * x for x in Z.entries()) / (2 * weight)
            case "log_det", weight, Q:
                return Z, weight * (_log_det(Q) - _log_det(Q - Z * (1 / weight)))
        limit = self.given["limit"]
        is_finite = all(Z[i, i].is_zero() for i in range(self.m))
        is_finite = is_finite and (limit is None or all(abs(x) <= limit for x in _off_diagonal(Z)))
        return Z, zero if is_finite else infinity


def _pairs(content: Any, n: int) -> list[tuple[int, int]]:
    """Different pairs (i, j) of points, i < j."""
    pairs = [tuple(row) for row in content]
    if not all(len(p) == 2 and {*map(type, p)} == {int} and 0 <= p[0] < p[1] < n for p in pairs):
        raise Malformed("a pair does not consist of two points in order")
    if len(set(pairs)) < len(pairs):
        raise Malformed("a pair is there twice")
    return pairs


def _matrix(content: Any, n_rows: int) -> Any:
    """A matrix of the file as balls, with so many rows."""
    rows = [numbers(row, len(content[0])) for row in content]
    if len(rows) != n_rows:
        raise Malformed("a matrix has another number of rows than its place asks for")
    return flint.arb_mat(n_rows, len(rows[0]), [value for row in rows for value in row])


def _symmetric(content: Any, m: int) -> Any:
    """A symmetric matrix of order m."""
    if any(len(row) != m for row in content) or content != [*map(list, zip(*content, strict=True))]:
        raise Malformed("a matrix is not symmetric, or not of the order of the features")
    return _matrix(content, m)


def _nonnegative(text: Any) -> Any:
    """A number that is not negative."""
    if not number(text) >= 0:
        raise Malformed("a weight, a limit, the threshold or the sharpness is negative")
    return number(text)


def _identity(m: int) -> Any:
    """The identity of order m."""
    return flint.arb_mat([[int(i == j) for j in range(m)] for i in range(m)])


def _is_psd(matrix: Any) -> bool:
    """Whether a symmetric matrix of balls is proved PSD."""
    table = matrix.tolist()
    return is_psd([{j: v for j, v in enumerate(row) if not v.is_zero()} for row in table])


def _log_det(matrix: Any) -> Any:
    """The logarithm of the determinant; minus infinity if it is not proved positive definite."""
    det = matrix.det()
    return det.log() if det > 0 and _is_psd(matrix) else flint.arb("-inf")


def _off_diagonal(matrix: Any) -> list[Any]:
    """The entries off the diagonal."""
    return [v for i, row in enumerate(matrix.tolist()) for j, v in enumerate(row) if i != j]


def _sigma(t: Any) -> Any:
    """1 / (1 + e^-t), sharp for every t."""
    small = (t if t < 0 else -t).exp()
    return (small if t < 0 else 1) / (1 + small)


def _entropy(r: Any) -> Any:
    """H(r) from below, in nats: a part of it that is not proved positive counts as 0."""
    return sum((-x * x.log() for x in (r, 1 - r) if x > 0), flint.arb(0))
