"""Claim 15: the reason that the paper gives for the convexity of the M-step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...display.chart import Chart, Curve
from ...numerics.checks import FloatArray
from ..claim import Check, Claim, ClaimResult, Recomputation, Verdict
from ..claim_data import ClaimData

CLAIM = Claim(
    number=15,
    name="Why the M-step is convex: the reason given",
    place="Section 2.4, below the gradient of (11)",
    statement="The convexity of the feature function in A implies that of the objective.",
    formula=r"f(x, x', y; A) \quad \operatorname{convex} \Rightarrow -\ln p^A(y) ="
    r" \ln \sum_{y'} e^{\kappa f(x, x', y'; A)} - \kappa f(x, x', y; A) \quad"
    r" \operatorname{convex}",
    evidence="The midpoint inequality for -ln p(y) with kappa = -1: for a feature function that is "
    "convex in A for each y but not affine, and for random affine ones, as (4) is.",
    expected=Verdict.REFUTED,
    correction="It is affinity that does it: ln Z is convex in the features, so in A where they "
    "are affine in A, as those of (4) are. With a feature function that is convex but not "
    "affine, the loss of an observed label need not be convex.",
    consequence="With a feature function of your own it is not enough that it is convex: make it "
    "affine in A, or let explain_convexity check your M-step.",
    recomputation=Recomputation(
        """\
import numpy as np
feature = lambda a, y: a**2 if y == 1 else 0.0 * a  # convex in A = a for each y
def loss(a, y):  # -ln p(y) by (2), kappa = -1
    return np.logaddexp(-feature(a, 1), -feature(a, -1)) + feature(a, y)
ends, middle = (loss(0.0, -1) + loss(1.0, -1)) / 2, loss(0.5, -1)
print(f"loss at the midpoint {middle:.4f}, mean of the ends {ends:.4f}")
""",
        "loss at the midpoint 0.5759, mean of the ends 0.5032\n",
    ),
)


Feature = Callable[[FloatArray], FloatArray]


def loss(y: int, similar: FloatArray, dissimilar: FloatArray) -> FloatArray:
    """The loss -ln p(y) = ln Z - kappa f(y), eq. (2), with kappa = -1 and features of both y."""
    feature = similar if y == 1 else dissimilar
    return np.asarray(np.logaddexp(-similar, -dissimilar) + feature)


def check_feature_convexity(setting: ClaimData) -> ClaimResult:
    """Check -ln p(y) at midpoints, for f(+1) = a^2 and f(-1) = 0, and for f affine in a."""
    rng = setting.random(15)
    a, b = rng.uniform(0.0, 3.0, size=(2, 500))
    a[0], b[0] = 0.0, 1.0
    convex = max(_excess(y, a, b, np.square, np.zeros_like) for y in (1, -1))
    affine = 0.0
    for _ in range(20):
        slope, shift = rng.normal(size=(2, 2)) * 3.0
        near, far = _line(slope[0], shift[0]), _line(slope[1], shift[1])
        affine = max(affine, *(_excess(y, a, b, near, far) for y in (1, -1)))
    line = np.linspace(0.0, 3.0, 61)
    return ClaimResult(
        CLAIM,
        [Check("midpoint inequality, f convex, excess", convex, 1e-9)],
        [Check("midpoint inequality, f affine, excess", affine, 1e-12)],
        numbers={
            "f = a^2 and 0: largest excess": convex,
            "loss at 0.5, between 0 and 1": float(loss(-1, np.array(0.25), np.array(0.0))),
            "mean of the losses at 0 and 1": float(
                np.mean(loss(-1, np.array([0.0, 1.0]), np.zeros(2)))
            ),
        },
        charts=[
            Chart(
                "A loss that is not convex, of a convex feature",
                "A",
                "-ln p(-1)",
                [Curve("f(+1) = A^2", list(line), list(loss(-1, line**2, 0.0 * line)))],
            )
        ],
    )


def _line(slope: float, shift: float) -> Feature:
    return lambda t: slope * t + shift


def _excess(y: int, a: FloatArray, b: FloatArray, similar: Feature, dissimilar: Feature) -> float:
    """By how much convexity fails: the largest loss((a + b)/2) - (loss(a) + loss(b))/2, or 0."""
    values = [loss(y, similar(t), dissimilar(t)) for t in ((a + b) / 2.0, a, b)]
    return max(0.0, float(np.max(values[0] - (values[1] + values[2]) / 2.0)))
