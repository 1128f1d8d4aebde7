"""Certificates of M-steps on extreme data, each judged against every metric that could refute it.

An instance is its family and its seed: `inspect("far points", 7)` makes and judges the same one on
any machine.
"""

from __future__ import annotations

import traceback
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from high_precision import EXTENDED, total
from judge import Judge
from stress_blocks import root_of
from stress_inputs import FAMILIES
from stress_search import Search

from seraph_cvx import certify, solve_m_step
from seraph_cvx.proof.m_step_checker import _entropy

THOROUGH_EVERY = 20
"""Seeds that are multiples of this are inspected thoroughly: solvers, polished candidates."""

FIRST_SEED = 10_000
"""Of the slow test; the fast test has seeds below."""


@dataclass
class Verdict:
    """What the inspection of one instance found.

    What was disproven is among `falsehoods`: "lower bound", "upper bound" or "order" with the
    numbers; an ArithmeticError of the package's is of the last kind, and any other error but a
    ValueError a "crash". What was seen while the instance was made has a kind of its own.
    """

    falsehoods: dict = field(default_factory=dict)
    certificates: int = 0
    refusals: list = field(default_factory=list)  # a ValueError instead of a certificate
    warnings: list = field(default_factory=list)  # of `certify`: there should be none
    is_informative: bool = False  # the best lower bound is above the trivial ones

    @contextmanager
    def listening(self, to):
        """Take a ValueError as a refusal, an ArithmeticError as bounds that crossed."""
        try:
            yield
        except ValueError as error:
            self.refusals.append(f"{to}: {error}")
        except Exception as error:
            kind = "order" if type(error) is ArithmeticError else "crash"
            frame = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(frame.filename).name}:{frame.lineno}"
            words = f"{to}: {type(error).__name__} in {where}: {error}"
            self.falsehoods.setdefault(kind, words)


def inspect(family, seed):
    """Make the instance, certify it at many metrics, and try to refute each certificate."""
    rng = np.random.default_rng([seed, *family.encode()])
    verdict, instance = Verdict(), None
    try:
        with verdict.listening("objective"):
            instance = FAMILIES[family](rng)
        if instance is not None:
            judge_certificates(instance, rng, verdict, thorough=seed % THOROUGH_EVERY == 0)
    except Exception as error:
        error.add_note(f"by stress.inspect({family!r}, {seed})")
        raise
    return verdict


def judge_certificates(instance, rng, verdict, thorough):
    """Fill the verdict on an instance."""
    objective = instance.objective
    judge = Judge(objective) if instance.judge is None else instance.judge
    verdict.falsehoods |= instance.falsehoods
    with np.errstate(all="ignore"):
        factors, metrics = find_metrics(instance, judge, rng, thorough)
    certificates = list(instance.certificates)
    if thorough and instance.can_be_solved:
        with verdict.listening("solve"):
            metric, certificate = solution(objective)
            certificates += [] if certificate is None else [certificate]
            if metric is not None:
                metrics.append(metric)
                factors.append(root_of(metric).T)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k, metric in enumerate([*instance.metrics, *metrics]):
            with verdict.listening("certify"):
                certificates.append(certify(objective, metric))
            if k == 0 and instance.disturb is not None:
                instance.disturb()
    verdict.warnings += [f"{warning.category.__name__}: {warning.message}" for warning in caught]
    verdict.certificates = len(certificates)
    if certificates:
        with np.errstate(all="ignore"):
            refute(verdict.falsehoods.setdefault, judge, certificates, factors)
            assess(verdict, judge, certificates)


def find_metrics(instance, judge, rng, thorough):
    """Factors of metrics that may refute a certificate, and metrics to be certified."""
    search, zero = Search(judge, rng), np.zeros((judge.n_features, 1), dtype=EXTENDED)
    found = search.best_directions()
    best = found[-1] if found else zero
    starts = [best, 1e-3 * best] if thorough and search.blocks else [best]
    candidates = [search.feasible(best)]
    candidates += [L for start in starts if found or search.blocks for L in search.polish(start)]
    if judge.n_features == 1 or len(judge.rows) == 1:
        candidates += search.exact_optimum(candidates)
    others = [random_factor(search, rng) for _ in range(2 if thorough else 1)]
    factors = [zero, *found, *candidates, *others]
    if thorough:
        chosen = [zero, *found, *candidates, *others]
    else:
        drawn = [some[int(rng.integers(len(some)))] for some in (candidates, factors)]
        chosen = [candidates[-1], *drawn]
    if search.blocks:
        factors += [search.feasible(L) for L in [zero, *found, *others]]
    metrics = [(L @ L.T).astype(np.float64) for L in chosen]
    return factors, [(A + A.T) / 2.0 for A in metrics if np.all(np.isfinite(A))]


def random_factor(search, rng):
    """Of any rank and length, in the coordinates of the features or of the pairs."""
    m, T = search.judge.n_features, search.basis.columns
    T = np.eye(m, dtype=EXTENDED) if rng.random() < 0.3 or not T.size else T
    rank = int(rng.integers(1, m + 1))
    length = 10.0 ** rng.choice([rng.uniform(-2, 2), -20.0, 12.0], p=[0.8, 0.1, 0.1])
    return T @ (length * rng.normal(size=(T.shape[1], rank)))


def solution(objective):
    """The metric and the certificate of the package's answer, each None where there is none."""
    limits = {"max_iter": 200, "time_limit": 1.0, "allow_unattained": True}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        answer = solve_m_step(objective, **limits)
    return answer.metric, answer.certificate


def refute(say, judge, certificates, factors):
    """Say each kind of claim that some factor disproves."""
    bound = max(c.dual_value for c in certificates)
    for c in certificates:
        claim = f"[{c.dual_value!r}, {c.primal_value!r}]"
        if not c.dual_value <= c.primal_value:
            say("order", f"the bounds cross: {claim}")
        if len(c.factor) and judge.compare(c.factor, c.primal_value) > 0:
            say("upper bound", f"F at the factor is above {claim}")
    for L in [*factors, *(c.factor for c in certificates if len(c.factor))]:
        if judge.compare(L, bound) < 0:
            words = f"F = {judge.value(L).str(17)} at a feasible matrix, below {bound!r}"
            say("lower bound", words)


def assess(verdict, judge, certificates):
    """Whether the best lower bound is better than the trivial ones."""
    upper = min(c.primal_value for c in certificates)
    lower = max(c.dual_value for c in certificates)
    trivial = float(total(c * _entropy(q) for c, q in judge.weights_and_labels()))
    verdict.is_informative = bool(np.isfinite(upper) and lower > 1.000001 * trivial)
