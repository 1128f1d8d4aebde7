"""Infeasible problems with one irreducible conflict each, planted among constraints that hold.

Whether each is found exactly, and in how many times the proof of infeasibility:

    python tests/helpers/planted_conflicts.py
"""

from __future__ import annotations

import argparse
import time

import cvxpy as cp
import numpy as np


def _linear(x, members, rng):
    """Rows r_k'x <= b_k of which the last is minus the sum of the others, and 0.1 short."""
    rows = rng.integers(-3, 4, (members - 1, x.size)) + np.eye(members - 1, x.size) * 7.0
    first = [row @ x <= float(row @ x.value) + 0.25 for row in rows]
    total = rows.sum(axis=0)
    return [*first, total @ x >= float(total @ x.value) + 0.25 * len(first) + 0.125]


def _equations(x, members, rng):
    """Equations that fix members - 1 forms, and an inequality that their sum breaks."""
    rows = rng.integers(-3, 4, (members - 1, x.size)) + np.eye(members - 1, x.size) * 7.0
    total = rows.sum(axis=0)
    last = total @ x <= float(total @ x.value) - 0.5
    return [*(row @ x == float(row @ x.value) for row in rows), last]


def _second_order(x, members, rng):
    """A ball, and half-spaces whose intersection is away from it, though none of them is."""
    k = members - 1
    apart = [x[j] >= float(x.value[j]) + 1.0 for j in range(k)]
    return [cp.norm(x[:k] - x.value[:k]) <= float(np.sqrt(k)) - 0.0625, *apart]


def _semidefinite(x, members, rng):
    """A matrix that is PSD only if the product of two entries is large, which the others forbid."""
    matrix = cp.bmat([[x[0] - x.value[0], 1.0], [1.0, x[1] - x.value[1]]])
    bounds = [x[0] <= float(x.value[0]) + 1.0, x[1] <= float(x.value[1]) + 0.75]
    return [matrix >> 0, *bounds]


def _exponential(x, members, rng):
    """Exponentials whose sum is too large where each variable has grown."""
    k = members - 1
    apart = [x[j] >= float(x.value[j]) + 0.5 for j in range(k)]
    return [cp.sum(cp.exp(x[:k] - x.value[:k])) <= k * np.exp(0.5) - 0.125, *apart]


KINDS = {
    "linear": _linear,
    "equations": _equations,
    "second-order": _second_order,
    "PSD": _semidefinite,
    "exponential": _exponential,
}

SIZES = {5: 3, 20: 4, 80: 5, 300: 6}
"""By the number of constraints, how many of them are in conflict (three, of PSD ones)."""


def planted(kind, size, seed=0):
    """A problem of `size` constraints, and the set of the places of those in conflict.

    All others hold at a point near which every conflict can be resolved by leaving out any one of
    its members: they are loose there.
    """
    rng = np.random.default_rng([seed, size, *kind.encode()])
    x = cp.Variable(max(4, size // 10), name="x")
    x.value = rng.integers(-4, 5, x.size).astype(float)
    members = KINDS[kind](x, SIZES[size], rng)
    others = []
    for k in range(size - len(members)):
        center = x.value + rng.integers(-1, 2, x.size)
        row = rng.integers(-3, 4, x.size)
        loose = 100.0 * x.size * (1 + k % 7)
        others.append(
            row @ x <= float(row @ center) + loose
            if k % 3
            else cp.norm(x - center, (1, 2, "inf")[k % 9 // 3]) <= loose
        )
    order = rng.permutation(size)
    constraints = [(members + others)[k] for k in order]
    for place, constraint in enumerate(constraints):
        constraint.set_label(f"c{place}")
    goal = cp.Minimize(cp.sum(x))
    return cp.Problem(goal, constraints), {
        int(np.flatnonzero(order == k)[0]) for k in range(len(members))
    }


def measured(kind, size, seed):
    """Whether the conflict is found exactly, and the seconds of the proof and of the search."""
    from seraph_cvx.proof import certify_problem

    problem, places = planted(kind, size, seed)
    clock = time.perf_counter()
    certificate = certify_problem(problem)
    proof = time.perf_counter() - clock
    conflict = certificate.conflict
    is_exact = set(conflict.names) == {f"c{place}" for place in places}
    return is_exact and conflict.is_irreducible, proof, time.perf_counter() - clock - proof


def main():
    """Find a planted conflict of every kind and size, and print what it took."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    measured("linear", 5, seed)  # without what the first call imports
    rows = [(kind, size, *measured(kind, size, seed)) for kind in KINDS for size in SIZES]
    print(f"{'conflict':12} constraints  exact  proof, s  search, s  ratio")
    for kind, size, is_exact, proof, search in rows:
        found = "yes" if is_exact else "NO"
        print(f"{kind:12} {size:11} {found:>6} {proof:9.3f} {search:10.3f} {search / proof:6.1f}")
    ratios = [search / proof for *_, proof, search in rows]
    exact = sum(is_exact for _, _, is_exact, *_ in rows)
    print(
        f"{exact} of {len(rows)} found exactly; the search takes {np.median(ratios):.1f} times the"
    )
    print(f"proof of infeasibility in the median, {max(ratios):.1f} times at most")


if __name__ == "__main__":
    main()
