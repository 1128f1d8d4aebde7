"""Optima that are known: of one feature by bisection, of two points in closed form; as balls."""

from __future__ import annotations

from flint import arb, ctx
from stress_blocks import OffDiagonalSum, OffDiagonalZero
from stress_judge import Judge
from stress_numbers import PRECISIONS, ball_sigmoid, ball_softplus, balls

LARGEST_EXPONENT = 7000
"""Bisection looks for a minimizer between 2^-7000 and 2^7000."""

SHARP = 1e-20
"""A relative radius of the optimum that is small enough."""

BISECTIONS, MOST_BISECTIONS = 100, 800
"""Of the last factor of two: so many at a time, until the optimum is sharp."""


def optimum_of_one_feature(source):
    """The infimum of F over a >= 0 for points with one feature: by the sign of F', in balls.

    Infinite where no a is feasible; None where balls do not tell.
    """
    judge = source if isinstance(source, Judge) else Judge(source)
    best = None
    for bits in PRECISIONS:
        with ctx.workprec(bits):
            found = Line(judge, bits).infimum()
            if found is not None:
                best = found
                if is_sharp(found):
                    break
    return best


def is_sharp(found):
    """Whether the radius is small enough, or nothing finite is enclosed."""
    return found is not None and (not found.is_finite() or found.rad() <= abs(found.mid()) * SHARP)


class Line:
    """F(a) and F'(a) for one feature, in balls."""

    def __init__(self, judge, bits):
        V, c, q, R, self.eta = judge._at(bits)
        pairs = [(ck, qk, V[k, 0] ** 2) for k, (ck, qk) in enumerate(zip(c, q, strict=True))]
        self.pairs = [pair for pair in pairs if not pair[2].is_zero()]
        alike = (
            ck * (qk * ball_softplus(-self.eta) + (1 - qk) * ball_softplus(self.eta))
            for ck, qk, w in pairs
            if w.is_zero()
        )
        self.constant = sum(alike, arb(0)) + sum(map(arb, judge.given.constants), arb(0))
        self.R, self.blocks = R[0, 0], judge.given.blocks

    def value(self, a):
        total = self.constant + self.R * a
        for c, q, w in self.pairs:
            s = w * a - self.eta
            total += c * (q * ball_softplus(s) + (1 - q) * ball_softplus(-s))
        for block in self.blocks:
            total += block.value_on_line(a)
        return total

    def slope(self, a):
        total = self.R
        for c, q, w in self.pairs:
            s = w * a - self.eta
            total += c * w * (q * ball_sigmoid(s) - (1 - q) * ball_sigmoid(-s))
        for block in self.blocks:
            total += block.slope(a)
        return total

    def infimum(self):
        low, high = arb(0), None
        for block in self.blocks:
            its_low, its_high = block.interval()
            low = low.max(its_low)
            if its_high is not None:
                high = its_high if high is None else high.min(its_high)
        if high is not None:
            if high < low:
                return arb("+inf")
            if not low <= high:
                return None
        at_low = self.slope(low)
        if at_low >= 0:
            return self.value(low)
        if not at_low < 0:
            return None
        if high is not None:
            at_high = self.slope(high)
            if at_high <= 0:
                return self.value(high)
            if not at_high > 0:
                return None
        return self._inside(low, high)

    def _inside(self, low, high):
        """The minimum between two numbers, F falling at the first and rising at the second."""
        bottom, top = -LARGEST_EXPONENT, LARGEST_EXPONENT
        two = arb(2)
        if high is None and not self.slope(two**top) > 0:
            return self._at_infinity()
        while top - bottom > 1:
            middle = (top + bottom) // 2
            a = two**middle
            slope = arb(-1) if a <= low else arb(1) if high is not None and a >= high else None
            slope = self.slope(a) if slope is None else slope
            if slope < 0:
                bottom = middle
            elif slope > 0:
                top = middle
            else:
                return None
        a, b = (two**bottom).max(low), two**top
        if bottom == -LARGEST_EXPONENT:
            a = low
        b = b if high is None else b.min(high)
        found = None
        for k in range(1, MOST_BISECTIONS + 1):
            middle = ((a + b) / 2).mid()
            slope = self.slope(middle)
            if slope < 0:
                a = middle
            elif slope > 0:
                b = middle
            else:
                return self._between(a, b)
            if k % BISECTIONS == 0:
                found = self._between(a, b)
                if is_sharp(found):
                    break
        return found

    def _between(self, a, b):
        """The infimum between two numbers: above the tangent at the second."""
        above = self.value(b)
        below = above + self.slope(b) * (a - b)
        return below.lower().union(above.upper()) if below.is_finite() else None

    def _at_infinity(self):
        """The limit where F falls for ever; None where that is not clear."""
        is_free = all(isinstance(b, OffDiagonalZero | OffDiagonalSum) for b in self.blocks)
        falls = self.R.is_zero() and is_free and all(q.is_zero() for _, q, _ in self.pairs)
        return self.constant if falls else None


def optimum_of_two_points(source):
    """inf f for two points: by the least <R, A> under which their distance is d, minimized in d."""
    judge = source if isinstance(source, Judge) else Judge(source)
    with ctx.workprec(PRECISIONS[0]):
        x, given = balls(judge.given.points), judge.given
        eta, c = arb(given.threshold), arb(float(given.confidence[0]))
        if len(given.similar):
            return c * (-eta).exp().log1p()
        squares = ((x[0, a] - x[1, a]) ** 2 for a in range(x.ncols()))
        length, weight = sum(squares, arb(0)), sum(map(arb, given.trace_weights), arb(0))
        if length == 0 or weight == 0:
            return c * ball_softplus(eta) if length == 0 else arb(0)
        share = weight / length / c
        if share >= 1 / (1 + (-eta).exp()):
            return c * ball_softplus(eta)
        return c * (-(-share).log1p() + share * (eta + (-share).log1p() - share.log()))
