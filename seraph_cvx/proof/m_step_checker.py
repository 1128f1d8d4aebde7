"""Checks the certificate of an M-step: its two bounds, pair by pair, in balls.

With s_k = v_k'Av_k - eta, c_k the weight of pair k, and q_k its label +1 (1, 0 or a soft label):

    F(A)    = sum_k c_k [log(1 + e^{-s_k}) + q_k s_k] + <R, A> + sum_j P_j(A)
    D(r, Z) = sum_k c_k [H(r_k) + eta (r_k - q_k)] - sum_j P_j*(Z_j)

and D(r, Z) <= F(A) for every PSD A, all r in [0, 1]^N and Z_j with S = R + sum_k c_k (q_k - r_k)
v_k v_k' + sum_j Z_j PSD. The file names a factor L, at which r_k = 1 / (1 + e^{s_k}), and a step
from r = 0 ("one"), or from r = q ("labels"), toward it. Pairs of points in two different groups
have r_k = 0. Nothing is imported but python-flint, and the algebra of the other checker.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from .checker_arithmetic import Malformed, Row, fields, flint, is_psd, number, numbers

BITS = (256, 1024)  # of the balls; the second where the first do not decide
BLOCK = 64  # points whose pairs are held at a time: 8 MB for 5,000 points
PRIME = 2**61 - 1  # any large one will do
PENALTIES = {
    "Ridge": "weight prior",
    "LogDet": "weight inverse",
    "TraceBound": "weight",
    "Diagonal": "",
    "Sparse": "weight",
    "LinearConstraints": "matrices bounds is_equality tolerance",
}
Silent = Callable[[str], object]


def check_m_step(content: Any, progress: Silent) -> tuple[Any, Any, Any]:
    """The claim of a file, and lower and upper bounds on the optimum that it proves."""
    data, claim, primal, dual = fields(content, "m_step claim primal dual", "format version")
    low, high = (None if end is None else number(end) for end in fields(claim, "lower upper"))
    lower, upper = -flint.arb("inf"), flint.arb("inf")
    for bits in BITS:
        with flint.ctx.workprec(bits):
            m_step = MStep(data)
            if dual is not None and not (low is not None and lower >= low):
                lower = m_step.dual_value(dual, progress)
            if primal is not None and not (high is not None and upper <= high):
                (L,) = fields(primal, "factor")
                upper = m_step.value(_matrix(L, m_step.m), progress)
        if (low is None or lower >= low) and (high is None or upper <= high):
            break
    return claim, lower, upper


class MStep:
    """The M-step of a file: which pairs count, with which weights and labels."""

    def __init__(self, data: Any) -> None:
        names = (
            "points labels drawn unlabeled_weight threshold sharpness soft_labels previous_factor "
            "previous_metric trace_weight manifold_term penalties"
        )
        points, labels, drawn, mu, eta, sharpness, soft, factor, metric, *others = fields(
            data, names, words="the M-step has to have"
        )
        self.points = [numbers(row, len(points[0])) for row in points]
        self.X = flint.arb_mat(self.points)
        self.n, self.m = self.X.nrows(), self.X.ncols()
        self.mu, self.eta, self.sharpness = map(_nonnegative, (mu, eta, sharpness))
        trace_weight, term, penalties = others
        self.R = _identity(self.m) * _nonnegative(trace_weight)
        if term is not None:
            self.R += _symmetric(term, self.m)
        self.blocks = [_block(block, self.m) for block in penalties]
        self.labeled, n_labeled = _labeled(labels, self.n)
        n_unlabeled = self.n * (self.n - 1) // 2 - n_labeled
        self.drawn = None if drawn is None else set(_pairs(drawn, self.n))
        if self.drawn is not None:
            if not self.drawn or any(self.labeled(*pair) for pair in self.drawn):
                raise Malformed("no pair is drawn, or one that is labeled")
            self.mu = self.mu * n_unlabeled / len(self.drawn)
        if sum(value is not None for value in (soft, factor, metric)) > 1:
            raise Malformed("there is more than one source of soft labels")
        self.soft = None if soft is None else numbers(soft, n_unlabeled)
        if self.soft is not None and not all(0 <= q <= 1 for q in self.soft):
            raise Malformed("a soft label is no probability")
        self.previous: Any = None  # U and V with (u_i - u_j)'(v_i - v_j) the squared distance
        if factor is not None:
            self.previous = 2 * [(self.X * _matrix(factor, self.m)).tolist()]
        if metric is not None:
            self.previous = [self.X.tolist(), (self.X * _symmetric(metric, self.m)).tolist()]

    def rows(self, progress: Silent) -> Iterator[tuple[int, list[tuple[int, Any, Any]]]]:
        """For each point i the pairs (i, j), j > i, that count: j, c and q."""
        soft = iter(self.soft or ())
        for i in range(self.n):
            if i and i % (8 * BLOCK) == 0:
                progress(f"checked the pairs of {i} of {self.n} points")
            row = []
            for j in range(i + 1, self.n):
                known = self.labeled(i, j)
                if known:
                    row.append((j, *known))
                    continue
                q = flint.arb(0 if self.soft is None else next(soft))
                if not self.mu or not (self.drawn is None or (i, j) in self.drawn):
                    continue
                if self.previous is not None:
                    U, V = self.previous
                    q = _sigma(self.sharpness * (self.eta - _product(U, V, i, j)))
                row.append((j, flint.arb(self.mu), q))
            yield i, row

    def value(self, L: Any, progress: Silent) -> Any:
        """F(LL'), or infinity where LL' is not proved feasible."""
        A = L * L.transpose()
        total = (self.R * A).trace() + sum(block.value(A) for block in self.blocks)
        Y = (self.X * L).tolist()
        for i, row in self.rows(progress):
            for j, c, q in row:
                s = _product(Y, Y, i, j) - self.eta
                total += c * (_softplus(-s) + q * s)
        return total

    def dual_value(self, dual: Any, progress: Silent) -> Any:
        """D(r, Z), or minus infinity where S is not proved PSD."""
        factor, anchor, step, groups, given = fields(dual, "factor anchor step groups multipliers")
        step = flint.arb(number(step))
        if anchor not in ("one", "labels") or not 0 <= step <= 1:
            raise Malformed("the dual point is no step from r = 0 or r = q")
        if groups is not None and (len(groups) != self.n or {*map(type, groups)} != {int}):
            raise Malformed("groups has to have an integer for each point")
        if len(given) != len(self.blocks):
            raise Malformed("there is not one multiplier for each penalty")
        Y = (self.X * _matrix(factor, self.m)).tolist()
        total, S, is_plain = flint.arb(0), self.R, all(v.is_zero() for v in self.R.entries())
        for block, Z in zip(self.blocks, given, strict=True):
            Z, conjugate = block.dual(_symmetric(Z, self.m) * step)
            is_plain = is_plain and all(v.is_zero() for v in Z.entries())
            S, total = S + Z, total - conjugate
        moment = _Moment(self.X)
        for i, row in self.rows(progress):
            weights = {}
            for j, c, q in row:
                apart = groups is not None and groups[i] != groups[j]
                r = flint.arb(0) if apart else _sigma(self.eta - _product(Y, Y, i, j))
                off = q - step * r if anchor == "one" else step * (q - r)
                r = q - off
                total += c * (_entropy(r) - self.eta * off)
                if not off.is_zero():
                    weights[j] = c * off
            moment.add(i, weights)
        S = S + moment.matrix()
        kept = moment.independent(self.points) if is_plain else range(self.m)
        rows = [{b: S[i, j] for b, j in enumerate(kept) if not S[i, j].is_zero()} for i in kept]
        return total if is_psd(rows) else -flint.arb("inf")


class _Moment:
    """The sum of w_ij (x_i - x_j)(x_i - x_j)', some rows of weights after the other."""

    def __init__(self, X: Any) -> None:
        self.X, n = X, X.nrows()
        self.degrees, self.roots = [flint.arb(0)] * n, list(range(n))
        self.block: list[list[Any]] = []
        self.crossed = flint.arb_mat(X.ncols(), X.ncols())

    def add(self, i: int, weights: Row) -> None:
        """Add the pairs of point i with later ones."""
        for j, w in weights.items():
            self.degrees[i] += w
            self.degrees[j] += w
            first, second = sorted((self._root(i), self._root(j)))
            self.roots[second] = first
        n = len(self.degrees)
        self.block.append([weights.get(j, 0) for j in range(n)])
        if len(self.block) == BLOCK or i == n - 1:
            rows = self.X.tolist()[i + 1 - len(self.block) : i + 1]
            self.crossed += flint.arb_mat(rows).transpose() * (flint.arb_mat(self.block) * self.X)
            self.block = []

    def matrix(self) -> Any:
        """The sum itself: X'DX - X'WX."""
        scaled = zip(self.degrees, self.X.tolist(), strict=True)
        D = flint.arb_mat([[degree * x for x in row] for degree, row in scaled])
        return self.X.transpose() * D - self.crossed - self.crossed.transpose()

    def independent(self, points: list[list[Any]]) -> Any:
        """Features of which the others are exact combinations, in all pairs that were added.

        The sum is C'TC with its part T of these features, so that it is PSD where T is.
        """
        roots = [self._root(i) for i in range(len(points))]
        links = [[a - b for a, b in zip(points[i], points[r], strict=True)]
                 for i, r in enumerate(roots) if i != r]  # fmt: skip
        if not links:
            return range(0)
        scales = [math.lcm(*(int(v.q) for v in column)) for column in zip(*links, strict=True)]
        whole = flint.fmpz_mat(
            [[int(v * s) for v, s in zip(row, scales, strict=True)] for row in links]
        )
        reduced, rank = flint.nmod_mat(whole, PRIME).rref()
        if rank < whole.rank():
            return range(len(scales))
        table = reduced.tolist()[:rank]
        return [next(j for j, v in enumerate(row) if int(v)) for row in table]

    def _root(self, i: int) -> int:
        """The first point that pairs connect with this one."""
        while self.roots[i] != i:
            self.roots[i] = i = self.roots[self.roots[i]]
        return i


class _Block:
    """A penalty P of the file: its value at a metric, and its conjugate."""

    def __init__(self, kind: str, given: dict[str, Any]) -> None:
        self.kind, self.given = kind, given

    def value(self, A: Any) -> Any:
        """P(A), or infinity where A is not proved to satisfy the constraint."""
        infinity, zero = flint.arb("inf"), flint.arb(0)
        match self.kind, *self.given.values():
            case "Ridge", weight, prior:
                return weight / 2 * sum(x * x for x in (A - prior).entries())
            case "LogDet", weight, Q:
                det = _det(A)
                if det is None:
                    return infinity
                return weight * ((A * Q).trace() - det.log() - Q.det().log() - A.nrows())
            case "TraceBound", weight:
                return zero if A.trace() <= weight else infinity
            case ("Diagonal",):
                return zero if all(x.is_zero() for x in _off_diagonal(A)) else infinity
            case "Sparse", weight:
                return weight * sum(map(abs, _off_diagonal(A)))
        parts = ((e, (B * A).trace() - t) for B, t, e in self._equations())
        is_met = all(off <= e and (off >= -e or not self.given["is_equality"]) for e, off in parts)
        return zero if is_met else infinity

    def dual(self, Z: Any) -> tuple[Any, Any]:
        """A matrix near Z and its conjugate P*, infinite where that is not proved to be finite."""
        infinity, zero, m = flint.arb("inf"), flint.arb(0), Z.nrows()
        match self.kind, *self.given.values():
            case "Ridge", weight, prior:
                return Z, (Z * prior).trace() + sum(x * x for x in Z.entries()) / (2 * weight)
            case "LogDet", weight, Q:
                det = _det(Q - Z * (1 / weight))
                return Z, infinity if det is None else weight * (Q.det().log() - det.log())
            case "TraceBound", weight:
                nu = Z[0, 0] if Z[0, 0] >= 0 else zero
                return _identity(m) * nu, nu * weight
            case ("Diagonal",) | ("Sparse", _):
                limit = self.given.get("weight", infinity)
                is_finite = all(Z[i, i].is_zero() for i in range(m))
                is_finite = is_finite and all(abs(x) <= limit for x in _off_diagonal(Z))
                return Z, zero if is_finite else infinity
        parts = list(self._equations())
        gram = flint.arb_mat([[(B * C).trace() for C, *_ in parts] for B, *_ in parts])
        nu = gram.solve(flint.arb_mat([[(B * Z).trace()] for B, *_ in parts])).mid().entries()
        if not self.given["is_equality"]:
            nu = [x if x >= 0 else zero for x in nu]
        near = sum((B * x for x, (B, *_) in zip(nu, parts, strict=True)), Z * 0)
        return near, sum(x * t + abs(x) * e for x, (_, t, e) in zip(nu, parts, strict=True))

    def _equations(self) -> Iterator[tuple[Any, Any, Any]]:
        """B_i, t_i, and e_i, by which <B_i, A> <= t_i, or = t_i, may be off."""
        for B, t in zip(self.given["matrices"], self.given["bounds"], strict=True):
            length = sum((x * x for x in B.entries()), flint.arb(0)).sqrt()
            yield B, t, self.given["tolerance"] * (abs(t) + length)


def _block(content: Any, m: int) -> _Block:
    """A penalty of the file, with its numbers as balls."""
    kind = content["kind"]
    names = fields(content, PENALTIES[kind], "kind")
    given: dict[str, Any] = dict(zip(PENALTIES[kind].split(), names, strict=True))
    for name, value in given.items():
        if name in ("weight", "tolerance"):
            given[name] = flint.arb(_nonnegative(value))
        elif name == "matrices":
            given[name] = [_symmetric(B, m) for B in value]
        elif name == "bounds":
            given[name] = [flint.arb(t) for t in numbers(value, len(given["matrices"]))]
        elif name != "is_equality":
            given[name] = _symmetric(value, m)
        elif type(value) is not bool:
            raise Malformed("is_equality has to be true or false")
    if kind in ("Ridge", "LogDet") and not given["weight"] > 0:
        raise Malformed("the weight of a penalty is not positive")
    if kind == "LogDet" and _det(given["inverse"]) is None:
        raise Malformed("the inverse of a prior is not proved positive definite")
    return _Block(kind, given)


def _labeled(content: Any, n: int) -> tuple[Callable[[int, int], Any], int]:
    """The weight and label of a labeled pair, as a function of its points; how many there are."""
    if "members" in content:
        members, classes = fields(content, "members classes")
        group = dict(zip(members, classes, strict=True))
        if len(group) < len(members) or {*map(type, members), *map(type, classes)} - {int}:
            raise Malformed("a member is there twice, or is no integer")
        if not all(0 <= i < n for i in group):
            raise Malformed("a member is no point")
        one, zero = flint.arb(1), flint.arb(0)

        def of_classes(i: int, j: int) -> Any:
            """By the classes of both."""
            known = i in group and j in group
            return (one, one if group[i] == group[j] else zero) if known else None

        return of_classes, math.comb(len(group), 2)
    similar, dissimilar, confidence = fields(content, "similar dissimilar confidence")
    pairs = _pairs(similar + dissimilar, n)
    weights = len(pairs) * [1] if confidence is None else numbers(confidence, len(pairs))
    if not all(weight > 0 for weight in weights):
        raise Malformed("a confidence is not positive")
    known = {
        pair: (flint.arb(weight), flint.arb(int(k < len(similar))))
        for k, (pair, weight) in enumerate(zip(pairs, weights, strict=True))
    }
    return lambda i, j: known.get((i, j)), len(known)


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
    return flint.arb_mat(n_rows, len(rows[0]) if rows else 0, [v for row in rows for v in row])


def _symmetric(content: Any, m: int) -> Any:
    """A symmetric matrix of order m."""
    rows = [numbers(row, m) for row in content]
    if len(rows) != m or any(rows[i][j] != rows[j][i] for i in range(m) for j in range(i)):
        raise Malformed("a matrix is not symmetric, or not of the order of the features")
    return flint.arb_mat(rows)


def _nonnegative(text: Any) -> Any:
    """A number that is not negative."""
    if not number(text) >= 0:
        raise Malformed("a weight, the threshold or the sharpness is negative")
    return number(text)


def _identity(m: int) -> Any:
    """The identity of order m."""
    return flint.arb_mat([[int(i == j) for j in range(m)] for i in range(m)])


def _rows(matrix: Any) -> list[Row]:
    """The rows of a matrix, without its zeros."""
    table = matrix.tolist()
    return [{j: v for j, v in enumerate(row) if not v.is_zero()} for row in table]


def _det(matrix: Any) -> Any:
    """The determinant of a matrix that is proved positive definite; None of any other."""
    det = matrix.det()
    return det if det > 0 and is_psd(_rows(matrix)) else None


def _off_diagonal(matrix: Any) -> list[Any]:
    """The entries off the diagonal."""
    return [v for i, row in enumerate(matrix.tolist()) for j, v in enumerate(row) if i != j]


def _product(U: list[list[Any]], V: list[list[Any]], i: int, j: int) -> Any:
    """(u_i - u_j)'(v_i - v_j)."""
    u, v, other_u, other_v = U[i], V[i], U[j], V[j]
    return sum(((u[a] - other_u[a]) * (v[a] - other_v[a]) for a in range(len(u))), flint.arb(0))


def _softplus(t: Any) -> Any:
    """log(1 + e^t), sharp for every t."""
    return t + (-t).exp().log1p() if t > 0 else t.exp().log1p()


def _sigma(t: Any) -> Any:
    """1 / (1 + e^-t), sharp for every t."""
    if t < 0:
        small = t.exp()
        return small / (1 + small)
    return 1 / (1 + (-t).exp())


def _entropy(r: Any) -> Any:
    """H(r) from below, in nats: a part of it that is not proved positive counts as 0."""
    return sum((-x * x.log() for x in (r, 1 - r) if x > 0), flint.arb(0))
