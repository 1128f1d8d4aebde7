"""Families of M-steps with penalties and constraints, at all scales of the data.

A metric of points of size x has the size 1/x^2, and so has what a block is given; now and then it
is off by many decades, or the block's weight is of any size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from stress_extremes import known, line, suited
from stress_instances import decades, draw_pairs, psd, some_metric, stated

from seraph_cvx.penalties import (
    Diagonal,
    LinearConstraints,
    LogDet,
    Manifold,
    Ridge,
    Sparse,
    Trace,
    TraceBound,
    UpperBound,
)

LEAST, MOST = -305.0, 305.0
"""Powers of ten that numbers are cut off at."""


def power(exponent):
    return float(10.0 ** np.clip(exponent, LEAST, MOST))


@dataclass(frozen=True)
class Sizes:
    """Powers of ten: of the points, and of the metric that a block is made for."""

    points: float
    metric: float

    @classmethod
    def draw(cls, rng, most=140.0):
        points = rng.uniform(-2, 2) if rng.random() < 0.5 else rng.uniform(-most, most)
        off = rng.uniform(-60, 60) if rng.random() < 0.15 else rng.uniform(-2, 2)
        return cls(points, -2.0 * points + off)


def weight(rng, fitting, near=6.0):
    """Of about the power of ten `fitting`, or of any size."""
    if rng.random() < 0.2:
        return power(rng.uniform(-300, 306))
    return power(fitting + rng.uniform(-near, near))


@np.errstate(all="ignore")
def positive_definite(rng, m, exponent):
    """A positive definite matrix of about this power of ten: diagonal, or turned."""
    spread = float(rng.choice([0.0, 1.0, 4.0]))
    spectrum = 10.0 ** rng.uniform(-spread, spread, size=m)
    if rng.random() < 0.4:
        return np.diag(spectrum) * power(exponent)
    turn = np.linalg.qr(rng.normal(size=(m, m)))[0]
    A = (turn * spectrum) @ turn.T
    return (A + A.T) / 2.0 * power(exponent)


def a_ridge(rng, m, sizes):
    prior = None
    if rng.random() < 0.5:
        prior = positive_definite(rng, m, sizes.metric)
        if rng.random() < 0.3:
            signs = rng.choice([-1.0, 1.0], size=m)
            prior = prior * (signs[:, None] + signs) / 2.0
    return Ridge(weight(rng, -2.0 * sizes.metric), prior)


def a_log_det(rng, m, sizes):
    prior = positive_definite(rng, m, sizes.metric) if rng.random() < 0.7 else None
    return LogDet(weight(rng, 0.0, 5.0), prior)


def a_trace_bound(rng, m, sizes):
    return TraceBound(weight(rng, sizes.metric, 3.0))


def an_upper_bound(rng, m, sizes):
    return UpperBound(positive_definite(rng, m, sizes.metric + rng.uniform(-2, 2)))


def a_diagonal(rng, m, sizes):
    return Diagonal()


def a_sparse(rng, m, sizes):
    return Sparse(weight(rng, -sizes.metric, 4.0))


@np.errstate(all="ignore")
def linear_matrices(rng, m, exponent):
    """Of the entries, the trace, directions, or any symmetric ones."""
    found = []
    for _ in range(int(rng.integers(1, 3))):
        kind, B = rng.integers(4), np.zeros((m, m))
        if kind == 0:
            i, j = rng.integers(m, size=2)
            B[i, j] = B[j, i] = 1.0 if i == j else 0.5
        elif kind == 1:
            B = np.eye(m)
        elif kind == 2:
            u = rng.normal(size=m)
            B = np.outer(u, u)
        else:
            B = rng.normal(size=(m, m))
            B = (B + B.T) / 2.0
        found.append(B * power(exponent))
    return np.array(found)


def linear_bounds(rng, m, sizes):
    exponent = rng.uniform(-3, 3) - (sizes.metric if rng.random() < 0.5 else 0.0)
    B = linear_matrices(rng, m, exponent)
    t = 10.0 ** np.clip(exponent + sizes.metric + rng.uniform(-2, 2, size=len(B)), LEAST, MOST)
    sign = np.where(rng.random(len(B)) < 0.1, rng.choice([0.0, -1.0]), 1.0)
    return LinearConstraints(B, upper=sign * t)


def linear_equations(rng, m, sizes):
    """<B_i, A> = t_i, where some A of the right size meets them all."""
    exponent = rng.uniform(-3, 3) - (sizes.metric if rng.random() < 0.5 else 0.0)
    B = linear_matrices(rng, m, exponent)
    A = positive_definite(rng, m, sizes.metric)
    with np.errstate(all="ignore"):
        t = np.einsum("kij,ij->k", B, A)
    return LinearConstraints(B, equal=np.where(rng.random(len(t)) < 0.2, 0.0, t))


def a_trace(rng, m, sizes):
    return Trace(0.0 if rng.random() < 0.1 else weight(rng, -sizes.metric, 6.0))


def a_manifold(rng, m, sizes):
    kernel = ["heat", "binary"][rng.integers(2)]
    return Manifold(
        float(decades(rng, -6, 6)), int(rng.integers(1, 4)), kernel, bool(rng.integers(2))
    )


BLOCKS = {
    "ridge": a_ridge,
    "LogDet": a_log_det,
    "trace bound": a_trace_bound,
    "upper bound": an_upper_bound,
    "diagonal": a_diagonal,
    "sparse": a_sparse,
    "linear bounds": linear_bounds,
    "linear equations": linear_equations,
    "trace": a_trace,
    "manifold": a_manifold,
}


def with_blocks(rng, *kinds, has_term=False):
    """An M-step with a block of each of these kinds."""
    sizes = Sizes.draw(rng)
    n, m = int(rng.integers(2, 8)), int(rng.choice([1, 2, 3, 4], p=[0.2, 0.35, 0.3, 0.15]))
    X = rng.normal(size=(n, m)) * power(sizes.points)
    if rng.random() < 0.2:
        X = X * decades(rng, -3, 3, size=m)
    pairs = draw_pairs(rng, X, (-3, 3) if rng.random() < 0.2 else None)
    mu = [0.0, "ratio", float(decades(rng, -3, 1))][rng.integers(3)]
    plain = 0.0 if rng.random() < 0.5 else power(2.0 * sizes.points + rng.uniform(-8, 2))
    settings = {"unlabeled_weight": mu, "trace_weight": plain}
    settings["threshold"] = [1.0, float(decades(rng, -2, 2))][rng.integers(2)]
    source = rng.integers(4)
    if source == 0:
        settings["soft_labels"] = rng.random(pairs.n_unlabeled)
    elif source == 1:
        settings["previous_metric"] = some_metric(rng, pairs)
        settings["sharpness"] = float(decades(rng, -0.3, 1.0))
    if has_term:
        term = psd(rng, m)
        settings["manifold_term"] = (term + term.T) / 2.0 * power(2.0 * sizes.points)
    blocks = [BLOCKS[kind](rng, m, sizes) for kind in kinds]
    found = stated(pairs, penalties=blocks, **settings)
    return known(rng, found) if m == 1 else found


def family_of(kind):
    def made(rng):
        return with_blocks(rng, kind)

    made.__doc__ = f"One block: {kind}."
    return made


def several_blocks(rng):
    """Two or three blocks of different kinds."""
    kinds = rng.permutation(list(BLOCKS))[: int(rng.integers(2, 4))]
    return with_blocks(rng, *kinds.tolist())


def linear_blocks(rng):
    """Trace and Manifold as blocks, one or several, with a trace weight and a manifold term."""
    kinds = [["trace", "manifold"][k] for k in rng.integers(2, size=int(rng.integers(1, 4)))]
    return with_blocks(rng, *kinds, has_term=rng.random() < 0.5)


def one_feature_and_blocks(rng):
    """One feature of size 1e-140 to 1e140, and one or two blocks: the optimum is known."""
    sizes = Sizes.draw(rng)
    X = line(rng, power(sizes.points))
    pairs = draw_pairs(rng, X, (-6, 6) if rng.random() < 0.2 else None)
    kinds = rng.permutation(list(BLOCKS))[: int(rng.choice([1, 1, 2]))].tolist()
    blocks = [BLOCKS[kind](rng, 1, sizes) for kind in kinds]
    found = stated(
        pairs,
        penalties=blocks,
        trace_weight=0.0 if rng.random() < 0.5 else suited(rng, power(sizes.points)),
        unlabeled_weight=[0.0, "ratio"][rng.integers(2)],
        threshold=[1.0, float(decades(rng, -3, 3))][rng.integers(2)],
    )
    return known(rng, found)


PENALIZED = {
    "ridge": family_of("ridge"),
    "LogDet": family_of("LogDet"),
    "trace bound": family_of("trace bound"),
    "upper bound": family_of("upper bound"),
    "diagonal metric": family_of("diagonal"),
    "sparse metric": family_of("sparse"),
    "linear bounds": family_of("linear bounds"),
    "linear equations": family_of("linear equations"),
    "linear blocks": linear_blocks,
    "several blocks": several_blocks,
    "one feature and blocks": one_feature_and_blocks,
}
