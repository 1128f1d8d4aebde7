"""Certificates of fits as files: every one has to hold, and none that was changed beyond the truth.

    python tests/helpers/m_step_stress.py --count 1000 --mutants 2
    python tests/helpers/m_step_stress.py --seed 17

Each seed is one fit of one estimator. What is true of a changed file is told by F in doubles, from
the numbers of the file: at the metrics that it names, and at others near them.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import warnings
from collections import Counter
from copy import deepcopy
from pathlib import Path

import numpy as np

from seraph_cvx import (
    SERAPH,
    KernelSERAPH,
    PairSERAPH,
    certify,
    check_certificate,
    load_model,
    save_model,
)
from seraph_cvx.penalties import (
    Diagonal,
    LogDet,
    Ridge,
    Sparse,
    TraceBound,
)

SLACK = 1e-9
"""How far a claim may be off what F is in doubles, relatively: its rounding errors are smaller."""

PENALTIES = {
    "Ridge": lambda rng, m: Ridge(rng.uniform(0.01, 2.0)),
    "Ridge, prior": lambda rng, m: Ridge(rng.uniform(0.01, 2.0), np.diag(rng.random(m))),
    "LogDet": lambda rng, m: LogDet(rng.uniform(0.01, 2.0), np.diag(rng.uniform(0.5, 2.0, m))),
    "TraceBound": lambda rng, m: TraceBound(rng.uniform(0.1, 3.0)),
    "Diagonal": lambda rng, m: Diagonal(),
    "Sparse": lambda rng, m: Sparse(rng.uniform(0.05, 2.0)),
}


def random_points(rng, n, m):
    """Points of one of several kinds: ordinary, on a grid, of uneven scale, off the origin."""
    X = rng.normal(size=(n, m))
    kind = rng.integers(4)
    if kind == 1:
        X = np.round(X)
    if kind == 2:
        X = X * 10.0 ** rng.uniform(-2.0, 2.0, m)
    return X + (100.0 if kind == 3 else 0.0)


def fitted(seed):
    """A fitted estimator, and how it was made; data that are refused are drawn again."""
    for attempt in range(100):
        try:
            return fitted_once(np.random.default_rng([seed, attempt]))
        except (ValueError, RuntimeError) as refusal:
            reason = refusal
    raise RuntimeError(f"nothing to fit for seed {seed}") from reason


def fitted_once(rng):
    """An estimator of a random kind, with random settings, fitted to random points."""
    n, m = int(rng.integers(8, 31)), int(rng.integers(1, 6))
    X, y = random_points(rng, n, m), np.full(n, -1)
    known = rng.choice(n, size=int(rng.integers(4, n // 2 + 1)), replace=False)
    y[known] = np.arange(len(known)) % int(rng.integers(2, 4))
    kind = str(rng.choice(["classes", "constraints", "pairs", "kernel"]))
    settings = {
        "trace_weight": float(10.0 ** rng.uniform(-2.0, 1.5)),
        "sharpness": [None, float(rng.uniform(1.1, 4.0))][rng.integers(2)],
        "threshold": float(rng.choice([1.0, 0.3, 4.0])),
        "max_iter": [None, 1, 3][rng.integers(3)],
        "allow_unattained": True,
    }
    mu = [0.0, "ratio", "full", 0.3][rng.integers(4)]
    settings["unlabeled_weight"] = "ratio" if mu == "full" and settings["sharpness"] is None else mu
    if rng.random() < 0.2:
        settings["trace_weight"] = 0.0
    if rng.random() < 0.15:
        settings |= {"laplacian_weight": 0.1, "laplacian_neighbors": 3}
    if kind in ("classes", "constraints") and rng.random() < 0.5:
        names = rng.choice(list(PENALTIES), size=int(rng.integers(1, 3)), replace=False)
        settings["penalties"] = [PENALTIES[name](rng, m) for name in names]
    cls = {"pairs": PairSERAPH, "kernel": KernelSERAPH}.get(kind, SERAPH)
    model = cls(**settings, **({"kernel": "rbf"} if kind == "kernel" else {}))
    if kind == "constraints":
        rows = np.array([(i, j) for i in range(n) for j in range(i + 1, n)])
        rng.shuffle(rows)
        given = {"similar": rows[:4], "dissimilar": rows[4:9]}
        if rng.random() < 0.5:
            given["similar_confidence"] = 10.0 ** rng.uniform(-2.0, 1.0, 4)
        model.fit(X, **given)
    elif kind == "pairs":
        k = n // 2
        model.fit(X[: 2 * k].reshape(k, 2, m), np.where(np.arange(k) % 2, 1, -1))
    else:
        model.fit(X, y)
    return model, f"{kind}, {settings}"


# What a file says, in doubles


def numbers(values):
    """The doubles of nested lists in hexadecimal."""
    return [numbers(v) for v in values] if isinstance(values, list) else float.fromhex(values)


def forms(X, A):
    """(x_i - x_j)'A(x_i - x_j) for all i, j."""
    V = X[:, None, :] - X[None, :, :]
    return np.einsum("ija,ab,ijb->ij", V, A, V)


def value(content, L):
    """F(LL') of a file's M-step; infinite where a constraint is clearly violated."""
    data = content["m_step"]
    X, A, eta = np.array(numbers(data["points"])), L @ L.T, float.fromhex(data["threshold"])
    n, m = X.shape
    mu, a = float.fromhex(data["unlabeled_weight"]), float.fromhex(data["sharpness"])
    c, q = np.triu(np.full((n, n), mu), 1), np.zeros((n, n))
    labeled = data["similar"] + data["dissimilar"]
    is_unlabeled = np.triu(np.ones((n, n), dtype=bool), 1)
    for i, j in labeled:
        is_unlabeled[i, j] = False
    previous = None
    if data["previous_factor"] is not None:
        F = np.array(numbers(data["previous_factor"])).reshape(m, -1)
        previous = F @ F.T
    if data["previous_metric"] is not None:
        previous = np.array(numbers(data["previous_metric"]))
    if previous is not None:
        q = 1.0 / (1.0 + np.exp(np.clip(a * (forms(X, previous) - eta), -700.0, 700.0)))
    if data["soft_labels"] is not None:
        q[is_unlabeled] = numbers(data["soft_labels"])
    weights = [1.0] * len(labeled) if data["confidence"] is None else numbers(data["confidence"])
    for k, ((i, j), weight) in enumerate(zip(labeled, weights, strict=True)):
        c[i, j], q[i, j] = weight, float(k < len(data["similar"]))
    s = forms(X, A) - eta
    total = float(np.sum(c * (np.logaddexp(0.0, -s) + q * s)))
    total += float.fromhex(data["trace_weight"]) * float(np.trace(A))
    if data["manifold_term"] is not None:
        total += float(np.sum(np.array(numbers(data["manifold_term"])) * A))
    return total + sum(penalty_value(block, A) for block in data["penalties"])


def penalty_value(block, A):
    """The value of a penalty of a file."""
    off, given = A - np.diag(np.diag(A)), {k: v for k, v in block.items() if k != "kind"}
    size = SLACK * (1.0 + np.max(np.abs(A), initial=0.0))
    match block["kind"]:
        case "quadratic":
            shift = A - np.array(numbers(given["prior"]))
            return float.fromhex(given["weight"]) / 2.0 * float(np.sum(shift**2))
        case "log_det":
            Q, logs = np.array(numbers(given["inverse"])), np.linalg.slogdet(A)
            if logs[0] <= 0.0:
                return np.inf
            linear = float(np.sum(Q * A)) - logs[1] - np.linalg.slogdet(Q)[1] - len(A)
            return float.fromhex(given["weight"]) * linear
        case "off_diagonal":
            if given["limit"] is None:
                return 0.0 if np.max(np.abs(off), initial=0.0) <= size else np.inf
            return float.fromhex(given["limit"]) * float(np.sum(np.abs(off)))
    bound = float.fromhex(given["bound"])
    return 0.0 if np.trace(A) - bound <= size * (1.0 + bound + len(A)) else np.inf


# Changed files


def nudged(text, rng):
    """A number that is a little or very different."""
    size = float.fromhex(text)
    shift = 10.0 ** -float(rng.integers(0, 10)) * max(abs(size), 0.1)
    return float(rng.choice([size + shift, size - shift, -size, 2.0 * size, 0.0])).hex()


def places(content, keys=()):
    """The way to each number of a part of a file."""
    if isinstance(content, dict | list):
        items = content.items() if isinstance(content, dict) else enumerate(content)
        for key, item in items:
            yield from places(item, (*keys, key))
    elif content is not None and not isinstance(content, bool):
        yield keys


def changed(content, rng, known):
    """A file with one to three changes; and which parts were changed."""
    content, parts = deepcopy(content), set()
    for _ in range(int(rng.integers(1, 4))):
        part = str(rng.choice(["claim", "claim", "primal", "dual", "dual", "m_step"]))
        parts.add(part)
        if part == "claim":
            side = str(rng.choice(["lower", "upper"]))
            step = 10.0 ** -float(rng.integers(0, 14)) * max(1.0, abs(known[1]))
            beyond = known[1] + step if side == "lower" else known[0] - step
            content["claim"][side] = float(beyond).hex()
            continue
        ways = list(places(content[part]))
        if not ways:
            continue
        *keys, last = ways[rng.integers(len(ways))]
        place = content[part]
        for key in keys:
            place = place[key]
        old = place[last]
        if last == "anchor":
            place[last] = "labels" if old == "one" else "one"
        elif last == "kind":
            place[last] = "quadratic"
        elif isinstance(old, int):
            place[last] = int(rng.integers(-1, len(content["m_step"]["points"])))
        else:
            place[last] = nudged(old, rng)
        if keys and isinstance(place, list) and keys[-1] in range(99):  # keep matrices symmetric
            rows = content[part]
            for key in keys[:-1]:
                rows = rows[key]
            if "points" not in keys and "factor" not in keys and last < len(rows):
                is_square = isinstance(rows[last], list) and len(rows[last]) == len(rows)
                if is_square and len(rows[last]) == len(place):
                    rows[last][keys[-1]] = place[last]
    return content, parts


def is_beyond(content, parts, found, known):
    """Whether what is accepted is not true."""
    if not found.valid:
        return False
    claim = content["claim"]
    sides = [(found.lower, found.upper)]
    sides += [tuple(end and float.fromhex(end) for end in (claim["lower"], claim["upper"]))]
    tried = [content[part]["factor"] for part in ("primal", "dual") if content[part] is not None]
    m = len(content["m_step"]["points"][0])
    factors = [np.array(numbers(L)).reshape(m, -1) for L in tried]
    with np.errstate(all="ignore"):
        values = [value(content, t * L) for L in factors for t in (1.0, 0.999, 1.001, 0.9, 0.0)]
        own = value(content, factors[0]) if content["primal"] is not None else -np.inf
    slack = SLACK * max(1.0, *(abs(v) for v in values if np.isfinite(v)))
    for lower, upper in sides:
        if lower is not None and lower > min(values) + slack:
            return True
        if upper is not None and np.isfinite(own) and upper < own - slack:
            return True
        if "m_step" not in parts:  # the same problem, whose optimum is known as well as proved
            if lower is not None and lower > known[1]:
                return True
            if upper is not None and upper < known[0]:
                return True
    return False


def judged(seed, mutants):
    """What the checker says of a fit's certificate, of one made again, and of changed files."""
    rng, row = np.random.default_rng([seed, 1]), Counter(fits=1)
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        path = Path(folder) / "certificate.json"
        model, words = fitted(seed)
        if rng.random() < 0.3:
            save_model(model, Path(folder) / "model.npz")
            model = load_model(Path(folder) / "model.npz")
            row["loaded"] += 1
        again = certify(model.m_step_objective_, model.m_step_metric_)
        for certificate in (model.certificate_, again):
            path.write_text(certificate.to_json())
            found = check_certificate(path)
            row["files"] += 1
            if not found.valid:
                row["rejected"] += 1
                print(f"seed {seed}: rejected: {found.reasons}: {words}")
        content = json.loads(model.certificate_.to_json())
        path.write_text(json.dumps(content))
        found = check_certificate(path)
        known = found.lower, found.upper
        if None in known:
            row["without both bounds"] += 1
            return row
        row["gap <= 1e-8"] += known[1] - known[0] <= 1e-8 * max(1.0, abs(known[1]))
        for _ in range(mutants):
            other, parts = changed(content, rng, known)
            path.write_text(json.dumps(other))
            verdict = check_certificate(path)
            row["changed files"] += 1
            row["accepted"] += verdict.valid
            if is_beyond(other, parts, verdict, known):
                row["false files accepted"] += 1
                print(f"seed {seed}: false, changed in {parts}: {verdict}: {words}")
    return row


def main():
    """Fit, write, check and change; count what is false."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--mutants", type=int, default=2, help="changed files for each fit")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="this fit alone")
    given = parser.parse_args()
    one = range(given.first, given.first + given.count)
    totals = Counter()
    for seed in one if given.seed is None else [given.seed]:
        totals.update(judged(seed, given.mutants))
    print(", ".join(f"{count} {name}" for name, count in totals.items()))


if __name__ == "__main__":
    main()
