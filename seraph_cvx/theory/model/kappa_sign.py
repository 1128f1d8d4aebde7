"""Claim 4: the remark under (5) that kappa* must be negative."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit

from ...display.chart import Chart, Curve
from ...model.m_step_objective import MStepObjective
from ...numerics.checks import FloatArray
from ...pairs.pair_set import PairSet
from ..claim import Check, Claim, ClaimResult, Recomputation, Verdict
from ..claim_data import ClaimData, certified, scores
from .full_model import GAMMA

TRACE_WEIGHT, THRESHOLD = 1.0, 1.0

CLAIM = Claim(
    number=4,
    name='The remark "so there must be kappa* < 0"',
    place="Section 2.2, below (5)",
    statement="At an optimum of the model (6) kappa is negative.",
    formula=r"\kappa^* < 0 , \quad p^A(y | x, x') = \frac{1}"
    r"{1 + \exp(-\kappa y (\|x-x'\|_A^2 - \eta))}",
    evidence="For a fixed kappa of either sign (6) without its unlabeled part is an M-step, with S "
    "and D exchanged where kappa > 0: both profiles are solved and certified over a grid of kappa, "
    "on the data and on four points on a line with one similar and three dissimilar pairs.",
    expected=Verdict.REFUTED,
    correction="One labeled pair as hoped, p > 1/2 and y(d^2 - eta) < 0, does imply kappa < 0. But "
    "nothing makes the hope come true: where the trace penalty drives A* to zero, the sign of "
    "kappa* is that of #D - #S, and with more dissimilar than similar pairs it is positive.",
    consequence="A fit of (6) can end with the sign turned round, near pairs called dissimilar; "
    "SERAPH uses (8), which has the sign built in, so its metrics are not concerned.",
    recomputation=Recomputation(
        """\
import numpy as np
k, a = np.linspace(-6, 6, 2401)[:, None], np.linspace(0, 40, 2001)[None, :]
def loss(y, v):  # -ln p(y), eq. (5), of a pair at distance |v|; A = a, eta = 1
    return np.logaddexp(0, -k * y * (a * v**2 - 1))
L = loss(1, 0.3) + loss(-1, 0.1) + loss(-1, 0.2) + loss(-1, 0.2) + 0.05 * k**2 + a
i, j = np.unravel_index(L.argmin(), L.shape)
print(f"κ* = {k[i, 0]:.3f}, A* = {a[0, j]:.3f}, value {L.min():.4f};", end=" ")
print(f"best with κ < 0: {L[k[:, 0] < 0].min():.4f}")
""",
        "κ* = 0.975, A* = 0.000, value 2.3027; best with κ < 0: 2.7776\n",
    ),
)


@dataclass(frozen=True)
class ProfilePoint:
    """The minimum over A of (6) at one kappa: a value, a certified lower bound, and the metric."""

    kappa: float
    value: float
    lower_bound: float
    metric: FloatArray


def counterexample() -> PairSet:
    """Make four points on a line, with one similar and three dissimilar pairs."""
    X = np.array([[0.0], [0.3], [0.1], [0.5]])
    return PairSet.from_constraints(X, [(0, 1)], [(0, 2), (1, 2), (1, 3)])


def model_posterior(y: FloatArray | float, kappa: float, s: FloatArray) -> FloatArray:
    """The posterior p(y) = 1 / (1 + exp(-kappa y s)), eq. (5)."""
    return np.asarray(expit(kappa * y * s))


def slope_at_zero_metric(kappa: float, n_similar: int, n_dissimilar: int) -> float:
    """The derivative of -L(0, kappa) of (6) in kappa: eta (#S p(-1) - #D p(+1)) + gamma kappa."""
    p = float(model_posterior(1.0, kappa, np.array(-THRESHOLD)))
    return THRESHOLD * (n_similar * (1.0 - p) - n_dissimilar * p) + GAMMA * kappa


def profile(
    pairs: PairSet,
    kappa: float,
    trace_weight: float = TRACE_WEIGHT,
    start: FloatArray | None = None,
) -> ProfilePoint:
    """Minimize -L(A, kappa) of (6) over A, with mu = 0, in the metric B = |kappa| A."""
    t = abs(kappa)
    if kappa > 0.0:  # far pairs are the similar ones: S and D are exchanged
        pairs = PairSet.from_constraints(pairs.points, pairs.dissimilar, pairs.similar)
    objective = MStepObjective(
        pairs, unlabeled_weight=0.0, trace_weight=trace_weight / t, threshold=t * THRESHOLD
    )
    solution = certified(objective, start)
    metric = ClaimData.metric_of(solution)
    prior = GAMMA / 2.0 * kappa**2
    gap = solution.relative_gap * max(1.0, abs(solution.value))
    return ProfilePoint(kappa, solution.value + prior, solution.value - gap + prior, metric / t)


def best_kappa(
    pairs: PairSet, sign: float, trace_weight: float = TRACE_WEIGHT, count: int = 15
) -> tuple[ProfilePoint, list[ProfilePoint]]:
    """Find the best kappa of one sign, by a grid and a search around its best point."""
    grid = [profile(pairs, sign * t, trace_weight) for t in np.geomspace(0.01, 20.0, count)]
    best = min(grid, key=lambda point: point.value)
    found = minimize_scalar(
        lambda log_t: profile(pairs, sign * float(np.exp(log_t)), trace_weight).value,
        bounds=(np.log(abs(best.kappa)) - 0.5, np.log(abs(best.kappa)) + 0.5),
        method="bounded",
        options={"xatol": 1e-6},
    )
    refined = profile(pairs, sign * float(np.exp(found.x)), trace_weight)
    return min(refined, best, key=lambda point: point.value), grid


def check_kappa_sign(setting: ClaimData) -> ClaimResult:
    """Compare the sign of kappa* in (6) with the remark under (5)."""
    pairs = counterexample()
    (up, _), (_, grid_down) = best_kappa(pairs, 1.0), best_kappa(pairs, -1.0)
    root = brentq(slope_at_zero_metric, -50.0, 50.0, args=(1, 3))
    counts = [(1, 3), (3, 1), (10, 12), (len(setting.pairs.similar), len(setting.pairs.dissimilar))]
    mismatches = sum(
        np.sign(round(brentq(slope_at_zero_metric, -50.0, 50.0, args=n), 9)) != np.sign(n[1] - n[0])
        for n in counts
    )
    lower = float(min(point.lower_bound for point in grid_down))
    own_up, own_grid_up = best_kappa(setting.pairs, 1.0)
    own_down, own_grid_down = best_kappa(setting.pairs, -1.0)
    own = min(own_up, own_down, key=lambda point: point.value)
    curve = sorted([*own_grid_up, *own_grid_down], key=lambda point: point.kappa)
    return ClaimResult(
        CLAIM,
        [Check("kappa* of the four points is not negative", max(0.0, up.kappa), 0.0)],
        [
            Check("A* of the four points", float(np.abs(up.metric).max()), 1e-6),
            Check("kappa* against the root at A = 0", abs(up.kappa - root), 1e-3),
            Check("value at kappa* above the bound for kappa < 0", max(0.0, up.value - lower), 0.0),
            Check("sign of kappa* at A = 0 against #D - #S", float(mismatches), 0.0),
            Check("pairs as hoped with kappa >= 0", float(_hopes_with_positive(setting)), 0.0),
        ],
        numbers={
            "kappa* of the four points": up.kappa,
            "value at kappa*": up.value,
            "certified bound for kappa < 0, over the grid": lower,
            "kappa* on the data": own.kappa,
            "value on the data, kappa < 0": own_down.value,
            "value on the data, kappa > 0": own_up.value,
            "trace of A* on the data": float(np.trace(own.metric)),
        },
        charts=[
            Chart(
                "The best value of (6) at each kappa",
                "kappa",
                "value, to be minimized",
                [Curve(setting.name, [p.kappa for p in curve], [p.value for p in curve])],
            )
        ],
    )


def _hopes_with_positive(setting: ClaimData) -> int:
    """Count labeled pairs with p(y) > 1/2 and y s < 0 at random metrics with kappa > 0."""
    rng, found = setting.random(4), 0
    for A in setting.random_metrics(claim=4, count=10):
        s = scores(setting.labeled, A, THRESHOLD)
        p = model_posterior(setting.labels, float(rng.uniform(0.1, 5.0)), s)
        found += int(np.sum((p > 0.5) & (setting.labels * s < 0.0)))
    return found
