"""How many passes over all pairs a fit with the default parameters takes, on six kinds of data."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.datasets import load_digits, load_wine, make_classification

from seraph_cvx import SERAPH
from seraph_cvx.engine.passes import BlocksPass, ListedPairs, ListPass
from seraph_cvx.model.pair_program import PairProgram

from .measuring import MeasuredRows, Report, quiet

N_LABELED = 50
"""Points of known class."""


def five_classes(n: int, rng: np.random.Generator, separation: float, student: bool = False):
    """Five classes in 20 features, Gaussian or Student's t with three degrees of freedom."""
    means, classes = separation * rng.normal(size=(5, 20)), rng.integers(5, size=n)
    noise = rng.standard_t(3, size=(n, 20)) if student else rng.normal(size=(n, 20))
    return means[classes] + noise, classes


def noisy_copies(data, n: int, rng: np.random.Generator, additive: float, relative: float):
    """Points drawn from a data set, with noise: more of them than it has."""
    drawn = rng.integers(len(data.data), size=n)
    X = data.data[drawn]
    noise = rng.normal(size=X.shape)
    return X + (additive + relative * X) * noise, data.target[drawn]


def classification(n: int, rng: np.random.Generator, n_features: int, n_informative: int):
    """Points of scikit-learn's generator, in four classes."""
    seed = int(rng.integers(2**31))
    return make_classification(
        n, n_features, n_informative=n_informative, n_classes=4, random_state=seed
    )


KINDS: dict[str, Callable[..., Any]] = {
    "Gaussian classes": lambda n, rng: five_classes(n, rng, 0.5),
    "t-distributed classes": lambda n, rng: five_classes(n, rng, 1.5, student=True),
    "digits": lambda n, rng: noisy_copies(load_digits(), n, rng, 0.5, 0.0),
    "make_classification": lambda n, rng: classification(n, rng, 20, 5),
    "raw wine": lambda n, rng: noisy_copies(load_wine(), n, rng, 0.0, 0.05),
    "100 features": lambda n, rng: classification(n, rng, 100, 10),
}


class Counts:
    """Passes and products, each counted by its share of all pairs."""

    def __init__(self, n: int) -> None:
        self.n, self.passes, self.products = n, 0.0, 0.0

    def share(self, n_points: int) -> float:
        """The share of all pairs that the pairs of some points are."""
        return (n_points / self.n) ** 2

    def drawn_share(self, drawn: ListedPairs) -> float:
        """The share of all pairs that some drawn ones are."""
        return 2.0 * len(drawn.pairs) / (self.n * (self.n - 1))


@contextmanager
def counted(n: int) -> Iterator[Counts]:
    """A context in which passes and Hessian products over the pairs of points are counted."""
    counts, at, product = Counts(n), PairProgram.at, BlocksPass.hessian_product
    drawn_at, drawn_product = ListedPairs.at, ListPass.hessian_product

    def counted_at(self, L):
        counts.passes += counts.share(self.sums.n_points)
        return at(self, L)

    def counted_product(self, E):
        counts.products += counts.share(len(self.Y))
        return product(self, E)

    def counted_drawn_at(self, *given):
        counts.passes += counts.drawn_share(self)
        return drawn_at(self, *given)

    def counted_drawn_product(self, E):
        counts.products += counts.drawn_share(self.pairs)
        return drawn_product(self, E)

    with (
        patch.object(ListedPairs, "at", counted_drawn_at),
        patch.object(ListPass, "hessian_product", counted_drawn_product),
        patch.object(PairProgram, "at", counted_at),
        patch.object(BlocksPass, "hessian_product", counted_product),
    ):
        yield counts


def bench_fit_passes(report: Report, sizes: Sequence[int], n_seeds: int = 3) -> MeasuredRows:
    """Count passes for value and slope, plus half a pass for each product over all pairs."""
    report.start("Passes over all pairs of a fit with the default parameters")
    totals = []
    for n in sizes:
        for kind, draw in KINDS.items():
            for seed in range(n_seeds):
                report.tell(f"{kind}, n = {n}, seed {seed}")
                rng = np.random.default_rng(seed)
                X, classes = draw(n, rng)
                y = np.full(n, -1)
                known = rng.choice(n, N_LABELED, replace=False)
                y[known] = classes[known]
                clock = time.perf_counter()
                with quiet(), counted(n) as counts:
                    model = SERAPH().fit(X, y)
                totals.append(counts.passes + 0.5 * counts.products)
                yield {
                    "data": kind,
                    "n": n,
                    "seed": seed,
                    "passes": counts.passes,
                    "products": counts.products,
                    "in all": totals[-1],
                    "iterations": model.n_iter_,
                    "gap": model.history_[-1].relative_gap,
                    "seconds": time.perf_counter() - clock,
                }
    report.note(
        f"In all is passes plus half of products: median {np.median(totals):.1f}, worst "
        f"{np.max(totals):.1f}. What is summed over some of the points counts by its share."
    )
