"""Random input of every kind that users have: points, containers, labels, constraints, settings."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from seraph_cvx import MStepObjective, PairSet
from seraph_cvx.penalties import manifold_term

SEEDS = st.integers(0, 2**32 - 1)

ENDINGS: Counter[str] = Counter()
"""How the random calls of this run ended: certified, not certified or refused."""


# Points


def duplicated(rng, n, m):
    return rng.normal(size=(n, m))[rng.integers(max(1, n // 2), size=n)]


def with_constant_feature(rng, n, m):
    X = rng.normal(size=(n, m))
    X[:, rng.integers(m)] = 0.1
    return X


def on_a_line(rng, n, m):
    return np.outer(rng.integers(-9, 10, size=n), rng.integers(-9, 10, size=m)) / 4.0


def nearly_on_a_line(rng, n, m):
    return np.outer(rng.normal(size=n), rng.normal(size=m))


def uneven(rng, n, m):
    return rng.normal(size=(n, m)) * 10.0 ** rng.uniform(-4.0, 4.0, size=m)


SHAPES = {
    "gaussian": lambda rng, n, m: rng.normal(size=(n, m)),
    "integer grid": lambda rng, n, m: rng.integers(-3, 4, size=(n, m)).astype(float),
    "duplicated": duplicated,
    "one point": lambda rng, n, m: np.tile(rng.normal(size=m), (n, 1)),
    "constant feature": with_constant_feature,
    "on a line": on_a_line,
    "on a line but for rounding": nearly_on_a_line,
    "far from the origin": lambda rng, n, m: rng.normal(size=(n, m)) + 1e3,
    "uneven features": uneven,
}

EXPONENTS = st.one_of(st.just(0), st.just(0), st.integers(-4, 4), st.integers(-150, 150))
"""Half of the time the points are of size 1, now and then of 1e-150 or 1e150."""

LARGEST, SMALLEST = 1e150, 1e-152


@st.composite
def points(draw, max_points=8, max_features=4, shapes=tuple(SHAPES), exponents=EXPONENTS):
    """(n, m) floats: n = 2 and m = 1 included, m > n too."""
    n, m = draw(st.integers(2, max_points)), draw(st.integers(1, max_features))
    X = SHAPES[draw(st.sampled_from(shapes))](np.random.default_rng(draw(SEEDS)), n, m)
    spread = np.ptp(X, axis=0)
    least = np.min(spread, where=spread > 0.0, initial=1.0)
    size = max(10.0 ** draw(exponents), SMALLEST / least)
    return X * min(size, LARGEST / max(1.0, np.max(np.abs(X))))


def strided(X):
    roomy = np.full((2 * len(X), 3 * X.shape[1]), np.nan)
    roomy[::2, 1::3] = X
    return roomy[::2, 1::3]


def read_only(X):
    frozen = X.copy()
    frozen.flags.writeable = False
    return frozen


EXACT_CONTAINERS = {
    "array": np.array,
    "Fortran order": np.asfortranarray,
    "strided": strided,
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": read_only,
    "list": lambda X: X.tolist(),
    "tuple of arrays": tuple,
    "object": lambda X: X.astype(object),
    "big-endian": lambda X: X.astype(">f8"),
    "data frame": lambda X: pd.DataFrame(X, columns=[f"feature {j}" for j in range(X.shape[1])]),
}
"""What holds the very same numbers."""


def narrowed(X):
    with np.errstate(over="ignore"):  # infinity, where it is too large: to be refused in words
        return X.astype(np.float32)


def counted(X):
    return np.rint(np.clip(X, -1e9, 1e9)).astype(np.int64)


CONTAINERS = {**EXACT_CONTAINERS, "float32": narrowed, "integers": counted}


@st.composite
def tables(draw, **settings):
    """Points in any container."""
    X = draw(points(**settings))
    return CONTAINERS[draw(st.sampled_from(list(CONTAINERS)))](X)


# Supervision


DRESSES = {
    "integers": list,
    "integer array": np.array,
    "floats": lambda y: np.array(y, dtype=float),
    "strings and None": lambda y: [None if c == -1 else "abc"[c] for c in y],
    "strings": lambda y: np.array(["-1" if c == -1 else "abc"[c] for c in y]),
    "objects": lambda y: np.array([None if c == -1 else c for c in y], dtype=object),
}


@st.composite
def labels(draw, n, dresses=tuple(DRESSES), min_known=0):
    """n class labels, many unknown; one class alone and no class at all are among them."""
    most = draw(st.integers(0, 2))
    codes = draw(st.lists(st.integers(-1, most), min_size=n, max_size=n))
    codes[: min(n, min_known)] = [max(0, code) for code in codes[: min(n, min_known)]]
    return DRESSES[draw(st.sampled_from(dresses))](codes)


@st.composite
def constraints(draw, n):
    """Disjoint lists of similar and dissimilar pairs, and a confidence for each or none."""
    rows = [(i, j) for i in range(n) for j in range(i + 1, n)]
    kinds = draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
    arguments = {}
    for kind, name in [(1, "similar"), (2, "dissimilar")]:
        chosen = [row for row, its_kind in zip(rows, kinds, strict=True) if its_kind == kind]
        arguments[name] = np.array(chosen, dtype=np.int64).reshape(-1, 2)
        if draw(st.booleans()):
            arguments[f"{name}_confidence"] = draw(
                st.lists(st.floats(1e-3, 1e3), min_size=len(chosen), max_size=len(chosen))
            )
    return arguments


@st.composite
def pair_sets(draw, **settings):
    """A PairSet of class labels or of constraints with at least one labeled pair."""
    X = draw(points(**settings))
    if draw(st.booleans()):
        return PairSet.from_labels(X, draw(labels(len(X), min_known=2)))
    given = draw(constraints(len(X)))
    if not len(given["similar"]) + len(given["dissimilar"]):
        given["dissimilar"], given["dissimilar_confidence"] = np.array([[0, 1]]), 2.0
    return PairSet.from_constraints(X, **given)


# Settings


UNLABELED_WEIGHTS = st.one_of(st.just("ratio"), st.just(0.0), st.floats(1e-3, 10.0))
THRESHOLDS = st.one_of(st.just(1.0), st.floats(1e-3, 100.0))
SHARPNESSES = st.one_of(st.none(), st.just(2.0), st.floats(1e-2, 50.0))
TRACE_SHARES = st.one_of(st.just(0.0), st.just(0.02), st.floats(1e-6, 2.0))
"""lambda as a share of the largest squared spread of a feature, times the labeled pairs."""


def unit_of(pairs):
    """A trace weight in the unit of the points: it makes lambda*tr(A) of the size of the terms."""
    return float(np.max(np.ptp(pairs.points, axis=0)) ** 2) * pairs.n_labeled or 1.0


@st.composite
def weights(draw, pairs):
    """mu, lambda and eta of an M-step; lambda in the unit of the points, or just 1."""
    share = draw(TRACE_SHARES)
    return {
        "unlabeled_weight": draw(UNLABELED_WEIGHTS),
        "trace_weight": draw(st.sampled_from([share * unit_of(pairs)] * 3 + [1.0])),
        "threshold": draw(THRESHOLDS),
    }


@st.composite
def objectives(draw, **settings):
    """An M-step with soft labels of every source, with a manifold term now and then."""
    pairs = draw(pair_sets(**settings))
    arguments = {**draw(weights(pairs)), "sharpness": draw(SHARPNESSES)}
    rng = np.random.default_rng(draw(SEEDS))
    source = draw(st.sampled_from(["start", "given", "zero or one", "streamed"]))
    if source == "given":
        arguments["soft_labels"] = rng.random(pairs.n_unlabeled)
    elif source == "zero or one":
        arguments["soft_labels"] = rng.integers(2, size=pairs.n_unlabeled)
    elif source == "streamed":
        arguments["previous_metric"] = draw(metrics(pairs))
    if draw(st.integers(0, 3)) == 3:
        arguments["manifold_term"] = manifold_term(pairs.points, draw(st.floats(1e-3, 10.0)))
    return MStepObjective(pairs, **arguments)


@st.composite
def metrics(draw, pairs):
    """A PSD matrix of any rank; distances under it are of size 0.01 to 100, or it is zero."""
    m = pairs.n_features
    rng = np.random.default_rng(draw(SEEDS))
    F = rng.normal(size=(m, draw(st.integers(0, m))))
    spread = np.max(np.ptp(pairs.points, axis=0)) or 1.0
    F *= 10.0 ** draw(st.integers(-1, 1)) / spread
    return F @ F.T


SEEN_IN_FLOATS = tuple(name for name in SHAPES if name != "on a line but for rounding")
"""Without lambda, `certify` takes a spread that is nothing but rounding for none."""

ESTIMATOR_SETTINGS = st.fixed_dictionaries(
    {"max_iter": st.sampled_from([5, 50])},
    optional={
        "setting": st.sampled_from([None, "none", "post", "proj", "hyper"]),
        "unlabeled_weight": st.sampled_from(["full", "ratio", 0.0, 0.5]),
        "trace_weight": st.sampled_from(["auto", "auto", 1.0, 0.0]),
        "threshold": THRESHOLDS,
        "sharpness": st.sampled_from([2.0, 1.5, None]),
        "algorithm": st.sampled_from(["em", "em", "direct"]),
        "n_components": st.sampled_from([None, 1]),
        "allow_unattained": st.booleans(),
        "laplacian_weight": st.sampled_from([0.0, 0.1]),
        "identity_share": st.sampled_from([0.0, 0.3, 1.0]),
    },
)
"""Of the estimators; the data's unit is unknown, so a given trace weight may be absurd."""


@st.composite
def supervisions(draw, n):
    """y and the further arguments of `fit`: labels, constraints or both, not always consistent."""
    kind = draw(st.sampled_from(["labels", "labels", "constraints", "both", "nothing known"]))
    if kind == "nothing known":
        return DRESSES[draw(st.sampled_from(list(DRESSES)))]([-1] * n), {}
    y = None if kind == "constraints" else draw(labels(n, min_known=2))
    return y, {} if kind == "labels" else draw(constraints(n))
