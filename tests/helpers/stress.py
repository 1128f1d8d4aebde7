"""Certificates of M-steps on extreme data, each judged against every metric that could refute it.

An instance is its family and its seed: `inspect("far points", 7)` makes and judges the same one on
any machine. As a script it prints a table of the families:

    python stress.py [instances per family, or "marathon"] [family ...]
"""

from __future__ import annotations

import sys
import time
import traceback
import warnings
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from stress_candidates import Search
from stress_families import FAMILIES, MARATHON
from stress_instances import with_points
from stress_judge import Judge
from stress_numbers import EXTENDED, ball
from threadpoolctl import threadpool_limits

from seraph_cvx import certify, solve_m_step

THOROUGH_EVERY = 20
"""Seeds that are multiples of this are inspected thoroughly: solvers, polished candidates."""


FIRST_SEED = 10_000
"""Of the table and of the slow test; the fast test has seeds below."""


@dataclass
class Verdict:
    """What the inspection of one instance found.

    Attributes
    ----------
    falsehoods : dict of str
        What was disproven, "lower bound", "upper bound" or "order", and by which numbers; an
        ArithmeticError is of the last kind, and any other error but a ValueError, such as an
        OverflowError, is a "crash". What was seen while the instance was made, such as arrays that
        can be written into, has a kind of its own.
    certificates : int
        How many were given out.
    refusals : list of str
        A ValueError instead of an objective or of a certificate.
    crossings : int
        How often it was an ArithmeticError: the package's own bounds crossed.
    warnings : list of str
        What `certify` warned of: it should not.
    is_kept : bool
        Whether there was an objective and at least one certificate.
    is_informative : bool
        Whether the best lower bound is above the trivial ones, 0 and the soft labels' entropy.
    excess : float
        By how much the lower bound is too high at least, relative to max(1, |lower bound|).
    gap : float
        The best upper bound minus the best lower one, relative to max(1, upper).
    provable_gap : float
        The same by balls, at the same metrics; known for thorough inspections alone.
    """

    falsehoods: dict = field(default_factory=dict)
    certificates: int = 0
    refusals: list = field(default_factory=list)
    crossings: int = 0
    warnings: list = field(default_factory=list)
    is_kept: bool = False
    is_informative: bool = False
    excess: float = 0.0
    gap: float = np.inf
    provable_gap: float = np.inf

    @contextmanager
    def listening(self, to):
        """Take a ValueError as a refusal, an ArithmeticError as bounds that crossed."""
        try:
            yield
        except ValueError as error:
            self.refusals.append(f"{to}: {error}")
        except Exception as error:
            kind = "order" if type(error) is ArithmeticError else "crash"
            self.crossings += kind == "order"
            frame = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(frame.filename).name}:{frame.lineno}"
            words = f"{to}: {type(error).__name__} in {where}: {error}"
            self.falsehoods.setdefault(kind, words)


def inspect(family, seed):
    """Make the instance, certify it at many metrics, and try to refute each certificate."""
    rng = np.random.default_rng([seed, *family.encode()])
    verdict = Verdict()
    instance = None
    try:
        with verdict.listening("objective"):
            instance = FAMILIES[family](rng)
        if instance is None:
            return verdict
        return judge_certificates(instance, rng, verdict, thorough=seed % THOROUGH_EVERY == 0)
    except Exception as error:
        error.add_note(f"by stress.inspect({family!r}, {seed})")
        raise


def judge_certificates(instance, rng, verdict, thorough):
    """Fill the verdict on an instance."""
    objective = instance.objective
    judge = Judge(objective if instance.given is None else instance.given)
    verdict.falsehoods |= instance.falsehoods
    verdict.refusals += instance.refusals
    with np.errstate(all="ignore"):
        factors, metrics = find_metrics(instance, judge, rng, thorough)
    certificates = list(instance.certificates)
    if thorough and instance.can_be_solved:
        with verdict.listening("solve"):
            metric, certificate = solution(objective, rng)
            certificates += [] if certificate is None else [certificate]
            metrics += [] if metric is None else [metric]
            factors += [] if metric is None else [factor_of(metric)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k, metric in enumerate([*instance.metrics, *metrics]):
            with verdict.listening("certify"):
                make = certify if instance.certify is None else instance.certify
                certificates.append(make(objective, metric))
            if k == 0 and instance.disturb is not None:
                verdict.falsehoods |= instance.disturb()
    verdict.warnings += [f"{warning.category.__name__}: {warning.message}" for warning in caught]
    verdict.certificates = len(certificates)
    verdict.is_kept = bool(certificates)
    if certificates:
        own = [L for L in map(factor_in, certificates) if L is not None]
        with np.errstate(all="ignore"):
            refute(verdict, instance, judge, certificates, [*factors, *own])
            assess(verdict, judge, certificates, factors if thorough else [])
    return verdict


def factor_in(certificate):
    """The L of f(LL') <= primal_value, for certificates that have one."""
    L = getattr(certificate, "factor", None)
    return None if L is None or not len(L) else L


def find_metrics(instance, judge, rng, thorough):
    """Factors of metrics that may refute a certificate, and metrics to be certified."""
    search = Search(judge, rng)
    found = list(search.pursue(rounds=5 if thorough else 3).values())
    nothing = [np.zeros((judge.n_features, 1), dtype=EXTENDED)]
    best = nothing if not found else search.polish(found[-1]) if thorough else found[-1:]
    if judge.given.blocks:
        best = best_with_blocks(search, (found or nothing)[-1], thorough)
    if instance.clean is not None:
        clean = Search(Judge(instance.clean), rng)
        cleaned = list(clean.pursue(rounds=5 if thorough else 2).values())[-1:]
        best = best + (clean.polish(cleaned[0]) if thorough and cleaned else cleaned)
    anything = [random_factor(search, rng) for _ in range(2 if thorough else 1)]
    factors = [*nothing, *found, *best, *anything]
    if thorough:
        chosen = [*nothing, *found[:3], *found[-1:], *best, *anything]
    else:
        chosen = [best[int(rng.integers(len(best)))], factors[int(rng.integers(len(factors)))]]
    metrics = [metric for metric in map(product, chosen) if np.all(np.isfinite(metric))]
    if judge.given.blocks:
        factors += [search.feasible(L) for L in [*nothing, *found, *anything]]
    return factors, metrics


def best_with_blocks(search, L, thorough):
    """What descents of F find from a factor of small f, and from one near zero."""
    starts = [L, 1e-3 * L] if thorough else [L]
    best = [found for start in starts for found in search.polish(start)]
    return best or [search.feasible(L)]


def random_factor(search, rng):
    """Of any rank and length, in the coordinates of the features or of the pairs."""
    m = search.judge.n_features
    is_plain = rng.random() < 0.3 or not search.basis.size
    basis = np.eye(m, dtype=EXTENDED) if is_plain else search.basis.columns
    rank = int(rng.integers(1, m + 1))
    length = 10.0 ** rng.choice([rng.uniform(-2, 2), -20.0, 12.0], p=[0.8, 0.1, 0.1])
    return basis @ (length * rng.normal(size=(basis.shape[1], rank)))


def product(L):
    """LL' in doubles, symmetric."""
    with np.errstate(all="ignore"):
        A = (L @ L.T).astype(np.float64)
    return (A + A.T) / 2.0


def factor_of(A):
    """L with LL' near the PSD part of A, by eigenvectors of A scaled to a unit diagonal."""
    lengths = np.sqrt(np.maximum(np.diag(A), 0.0))
    unit = np.where(lengths > 0.0, lengths, 1.0)
    with np.errstate(all="ignore"):
        scaled = A / unit[:, None] / unit
    if not np.all(np.isfinite(scaled)):
        return np.diag(lengths).astype(EXTENDED)
    eigenvalues, vectors = np.linalg.eigh(scaled)
    return (unit[:, None] * vectors * np.sqrt(np.maximum(eigenvalues, 0.0))).astype(EXTENDED)


def solution(objective, rng):
    """The package's answer, of the M-step as it is or with its features scaled to size one.

    Returns its metric and its certificate, or None in the place of either.
    """
    scale = np.max(np.abs(objective.pairs.points - objective.pairs.points[0]), axis=0)
    scale = 2.0 ** np.rint(np.log2(np.where(scale > 0.0, scale, 1.0)))
    can_move = objective.pairs.drawn is None and not objective.penalties
    other = rescaled(objective, scale) if rng.random() < 0.3 and can_move else objective
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = solve_m_step(other, max_iter=200, time_limit=1.0, allow_unattained=True)
    if answer.metric is None:
        return None, None
    if other is objective:
        return answer.metric, answer.certificate
    with np.errstate(all="ignore"):
        metric = answer.metric / scale[:, None] / scale
    return (metric if np.all(np.isfinite(metric)) else None), None


def rescaled(objective, scale):
    """The same M-step in other units: R goes into the manifold term."""
    previous = objective.previous_metric
    with np.errstate(all="ignore"):
        R = np.diag(objective.trace_weight * scale**2)
        if objective.manifold_term is not None:
            R = R + objective.manifold_term * scale[:, None] * scale
        if previous is not None:
            previous = previous * scale[:, None] * scale
    return replace(
        objective,
        pairs=with_points(objective.pairs, objective.pairs.points / scale),
        trace_weight=0.0,
        manifold_term=R,
        previous_metric=previous,
    )


def refute(verdict, instance, judge, certificates, factors):
    """Write down each kind of claim that some factor or closed form disproves.

    The factors of the certificates are among `factors`.
    """
    say = verdict.falsehoods.setdefault
    seen = {id(L): judge.screen(L) for L in factors}
    for c in certificates:
        claim = f"[{c.dual_value!r}, {c.primal_value!r}]"
        if not c.dual_value <= c.primal_value:
            say("order", f"the bounds cross: {claim}")
        L = factor_in(c)
        if L is not None and judge.is_above(L, c.primal_value, seen[id(L)]):
            say("upper bound", f"F at the factor is {told(judge.value(L))}, above {claim}")
        if instance.optimum is not None:
            if instance.optimum < ball(c.dual_value):
                say("lower bound", f"the optimum is {told(instance.optimum)}, below {claim}")
                excess = ball(c.dual_value) - instance.optimum
                verdict.excess = max(verdict.excess, float(excess / max(1.0, abs(c.dual_value))))
            if instance.optimum > ball(c.primal_value):
                say("upper bound", f"the optimum is {told(instance.optimum)}, above {claim}")
    bound = max(c.dual_value for c in certificates)
    for L in lowest(judge, factors, seen):
        if judge.is_below(L, bound, seen[id(L)]):
            value = judge.value(L)
            say("lower bound", f"F = {told(value)} at a feasible matrix, below {bound!r}")
            excess = float((ball(bound) - value) / max(1.0, abs(bound)))
            verdict.excess = max(verdict.excess, excess)


def lowest(judge, factors, seen, how_many=6):
    """The factors at which F is smallest."""
    if not judge.given.blocks:
        return sorted(factors, key=lambda L: seen[id(L)][0] - seen[id(L)][1])[:how_many]
    values = [judge.value(L) for L in factors]
    finite = [k for k, value in enumerate(values) if value is not None and value.is_finite()]
    return [factors[k] for k in sorted(finite, key=lambda k: float(values[k].mid()))[:how_many]]


def told(value):
    return "undecided" if value is None else value.str(17)


def assess(verdict, judge, certificates, factors):
    """How good the certificates are, and for some factors how good they could be."""
    upper = min(c.primal_value for c in certificates)
    lower = max(c.dual_value for c in certificates)
    q = judge.labels.astype(np.float64)
    with np.errstate(all="ignore"):
        entropy = -sum(np.where(x > 0.0, x * np.log(x), 0.0) for x in (q, 1.0 - q))
        trivial = np.sum(judge.weights * entropy)
        verdict.is_informative = bool(np.isfinite(upper) and lower > 1.000001 * trivial)
        verdict.gap = float((upper - lower) / max(1.0, abs(upper)))
    if not factors or not judge.is_plain:
        return
    values = [judge.screen(L)[0] for L in factors]
    best = int(np.argmin(values))
    proven = judge.lower_bound(factors[best])
    if proven > ball(upper):
        words = f"the optimum is above {proven.str(17)}, the upper bound is {upper!r}"
        verdict.falsehoods.setdefault("upper bound", words)
    verdict.provable_gap = float(
        (values[best] - float(proven)) / max(1.0, abs(float(values[best])))
    )


@dataclass
class Tally:
    """The verdicts on a family, counted."""

    family: str
    instances: int = 0
    counts: Counter = field(default_factory=Counter)
    false_seeds: list = field(default_factory=list)
    examples: dict = field(default_factory=dict)
    warned: dict = field(default_factory=dict)
    refused: dict = field(default_factory=dict)
    seconds: float = 0.0

    def add(self, seed, verdict):
        self.instances += 1
        self.counts["certificates"] += verdict.certificates
        self.counts["kept"] += verdict.is_kept
        self.counts["refusals"] += len(verdict.refusals)
        self.counts["ArithmeticErrors"] += verdict.crossings
        self.counts["warnings"] += len(verdict.warnings)
        self.counts["informative"] += verdict.is_informative
        self.counts["closed"] += verdict.gap <= 1e-6
        self.counts["provably closed"] += verdict.provable_gap <= 1e-6
        self.counts["thorough"] += seed % THOROUGH_EVERY == 0
        self.counts["closed where provably"] += verdict.gap <= 1e-6 >= verdict.provable_gap
        self.counts["grossly false"] += verdict.excess > 1e-6
        self.counts.update(f"false {kind}" for kind in verdict.falsehoods)
        for words in verdict.warnings[:1]:
            self.warned.setdefault(words, seed)
        for words in verdict.refusals[:1]:
            self.refused.setdefault(words[:40], f"{seed}: {words[:200]}")
        if verdict.falsehoods:
            self.false_seeds.append(seed)
            for kind, words in verdict.falsehoods.items():
                self.examples.setdefault(kind, f"({self.family!r}, {seed}): {words}")


def tally(family, seeds):
    """Inspect the instances of these seeds."""
    count = Tally(family)
    started = time.process_time()
    with threadpool_limits(1):
        for seed in seeds:
            count.add(seed, inspect(family, seed))
    count.seconds = time.process_time() - started
    return count


def main(arguments):
    asked = arguments[0] if arguments else "100"
    names = arguments[1:] or list(FAMILIES)
    write = sys.stdout.write
    columns = ["kept", "false lower bound", "grossly false", "false upper bound", "false order"]
    columns += ["false crash", "false exposed arrays", "false changed input"]
    columns += ["informative", "closed", "thorough", "provably closed", "closed where provably"]
    columns += ["refusals", "ArithmeticErrors", "warnings"]
    write(" | ".join(["family", "instances", "false", *columns, "seconds"]) + "\n")
    for name in names:
        each = MARATHON[name] if asked == "marathon" else int(asked)
        found = tally(name, range(FIRST_SEED, FIRST_SEED + each))
        numbers = [found.instances, len(found.false_seeds), *(found.counts[x] for x in columns)]
        write(" | ".join([name, *map(str, numbers), f"{found.seconds:.1f}"]) + "\n")
        for words in [*found.examples.values(), *map(str, found.warned.items())]:
            write(f"    {words}\n")
        if found.false_seeds:
            write(f"    false seeds: {found.false_seeds[:30]}\n")
        for words in list(found.refused.values())[:4]:
            write(f"    refused: {words}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
