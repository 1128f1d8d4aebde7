"""Claim 12: when the M-step has an optimum."""

from __future__ import annotations

import numpy as np

from ...display.chart import Chart, Curve
from ...model.m_step_objective import MStepObjective
from ...numerics.checks import FloatArray
from ...pairs.pair_set import PairSet
from ..claim import Check, Claim, ClaimResult, Recomputation, Verdict
from ..claim_data import ClaimData, certified, differences

ZERO = 1e-10
"""An eigenvalue of M(1) below this, relative to the sum over all pairs, counts as zero."""

CLAIM = Claim(
    number=12,
    name="The M-step has an optimal solution",
    place="(6), (7) and (11) with lambda >= 0; the settings with lambda = 0 of Section 5.1",
    statement="(11) has an optimal solution for every lambda >= 0 (implied, not stated).",
    formula=r"M(1) = \sum_{k} (c_k - b_k) v_k v_k^\top + \lambda I \succ 0 \Rightarrow"
    r" \arg\min_{A \succeq 0} -\mathcal{F}(A) \neq \emptyset",
    evidence="The criterion on M(1) pair by pair, against the behavior of -F along rays and the "
    "certified solver: on the data with lambda = 0 and lambda > 0, and on three small examples, "
    "one on each side and one on the border.",
    expected=Verdict.CORRECTED,
    correction="With lambda = 0 an optimum exists if and only if no pair that counts as dissimilar "
    "leaves the range of M(1). Otherwise -F falls for ever along a direction, and approaches an "
    "infimum that no metric attains: the usual case with few labels.",
    consequence="With lambda = 0 a fit may have no answer: the package then says so and names the "
    "direction, and a trace weight above 0 gives it one.",
    recomputation=Recomputation(
        """\
import numpy as np
near, far = np.array([1.0, 0.0]), np.array([0.0, 1.0])  # x_i - x_j: one similar, one dissimilar
def f(A):  # -F of (11), lambda = 0, mu = 0, eta = 1
    return np.logaddexp(0, near @ A @ near - 1) + np.logaddexp(0, 1 - far @ A @ far)
for t in (1, 10, 30):
    print(f"f({t} e2 e2') = {f(t * np.outer(far, far)):.4f}", end=", ")
print(f"infimum log(1 + 1/e) = {np.log1p(np.exp(-1)):.4f}")
""",
        "f(1 e2 e2') = 1.0064, f(10 e2 e2') = 0.3134, f(30 e2 e2') = 0.3133, "
        "infimum log(1 + 1/e) = 0.3133\n",
    ),
)


def recession_matrix(objective: MStepObjective, q: FloatArray) -> FloatArray:
    """The matrix of the criterion, M(1) = sum_S v v' + mu sum_U q(+1) v v' + lambda I."""
    pairs = objective.pairs
    S, U = differences(pairs.points, pairs.similar), differences(pairs.points, pairs.unlabeled)
    unlabeled = objective.mu * (U * q[:, None]).T @ U
    return np.asarray(S.T @ S + unlabeled + objective.trace_weight * np.eye(pairs.n_features))


def has_optimum(objective: MStepObjective, q: FloatArray) -> bool:
    """Whether an optimum exists: no pair that counts as dissimilar leaves the range of M(1)."""
    pairs = objective.pairs
    M = recession_matrix(objective, q)
    far = [differences(pairs.points, pairs.dissimilar)]
    if objective.mu > 0.0:
        far.append(differences(pairs.points, pairs.unlabeled[q == 0.0]))
    V = np.vstack(far)
    everything = float(np.sum(V**2)) + float(np.trace(M))
    eigenvalues, vectors = np.linalg.eigh(M)
    null = vectors[:, eigenvalues <= ZERO * everything]
    return bool(np.all(np.sum((V @ null) ** 2, axis=1) <= ZERO * everything))


def examples() -> dict[str, PairSet]:
    """Make M-steps on each side of the criterion, and on its border, with lambda = mu = 0."""
    plane = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    line = [[0.0], [1.0], [2.0]]
    flat = [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]]
    return {
        "not attained": PairSet.from_constraints(plane, [(0, 1)], [(0, 2)]),
        "attained": PairSet.from_constraints(line, [(0, 1)], [(0, 2)]),
        "attained, not unique": PairSet.from_constraints(flat, [(0, 1)], [(0, 2)]),
    }


def check_attainment(setting: ClaimData) -> ClaimResult:
    """Compare the criterion on M(1) with how -F behaves along rays."""
    start = np.zeros(setting.pairs.n_unlabeled)
    cases = [(o, np.zeros(o.pairs.n_unlabeled)) for o in map(_supervised, examples().values())]
    cases.append((setting.objective(None).with_trace_weight(0.0), start))
    cases.append((setting.objective(None), start))
    cases.append((_supervised(setting.pairs), start))
    said = [has_optimum(objective, q) for objective, q in cases]
    seen = [_behaves(objective) for objective, _ in cases]
    package = [objective.attains_optimum for objective, _ in cases]
    missing = sum(not attained for attained in seen)
    unattained = _supervised(examples()["not attained"])
    ray = np.diag([0.0, 1.0])
    times = np.linspace(0.0, 20.0, 41)
    values = [unattained.value(t * ray) for t in times]
    infimum = float(np.log1p(np.exp(-1.0)))
    other = _supervised(examples()["attained"])
    best = ClaimData.metric_of(certified(other))
    return ClaimResult(
        CLAIM,
        [Check("M-steps without an optimum", float(missing), 0.0)],
        [
            Check("criterion against behavior, cases that differ", _differ(said, seen), 0.0),
            Check("criterion against the package's", _differ(said, package), 0.0),
            Check("infimum approached, not attained", values[-1] - infimum, 1e-7),
            Check("a value at or below the infimum", float(min(values) <= infimum), 0.0),
            Check(
                "attained: slope at the optimum", float(np.abs(other.gradient(best)).max()), 1e-4
            ),
        ],
        numbers={
            "not attained: f at t = 1": unattained.value(ray),
            "not attained: f at t = 20": values[-1],
            "not attained: infimum": infimum,
            "attained: A*": float(best[0, 0]),
            "the data, lambda = 0, first M-step": "attained" if seen[3] else "not attained",
            "the data, lambda > 0": "attained" if seen[4] else "not attained",
            "the data, lambda = 0, mu = 0": "attained" if seen[5] else "not attained",
        },
        charts=[
            Chart(
                "Two small M-steps with lambda = 0",
                "t",
                "-F",
                [
                    Curve("not attained", list(times), values),
                    Curve(
                        "attained",
                        list(times[:13]),
                        [other.value([[t]]) for t in times[:13]],
                    ),
                ],
            )
        ],
    )


def _supervised(pairs: PairSet) -> MStepObjective:
    return MStepObjective(pairs, unlabeled_weight=0.0, trace_weight=0.0)


def _behaves(objective: MStepObjective) -> bool:
    """Whether -F stops falling along every ray of eigenvectors of M(1), judged by its values."""
    pairs = objective.pairs
    V = differences(pairs.points, pairs.dissimilar)
    if objective.mu > 0.0:
        V = np.vstack([V, differences(pairs.points, pairs.unlabeled)])
    M = objective.recession_matrix
    _, vectors = np.linalg.eigh(M)
    for u in vectors.T:
        longest = float(np.max((V @ u) ** 2, initial=0.0))
        if longest < 1e-12 * float(np.max(np.sum(V**2, axis=1), initial=1e-300)):
            continue  # -F does not see this direction: flat
        scale = 1.0 / longest
        values = [objective.value(t * scale * np.outer(u, u)) for t in (5.0, 10.0, 20.0)]
        if values[0] > values[1] > values[2]:
            far = [objective.value(t * scale * np.outer(u, u)) for t in (1e3, 1e6)]
            if far[1] <= far[0] + 1e-7 * max(1.0, abs(far[0])):
                return False
    return True


def _differ(some: list[bool], others: list[bool]) -> float:
    return float(sum(a != b for a, b in zip(some, others, strict=True)))
