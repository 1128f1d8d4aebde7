"""Families of ways in: other arrays, inputs written into later or nearly right, estimators, files.

And CVXPY problems made from an M-step: what was added is written down twice, as CVXPY takes it and
as the judge does. A problem changed behind the objective's back has to be refused, or its
bounds have to hold for the problem as it is stated.
"""

from __future__ import annotations

import copy
import pickle
import warnings
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import array_api_strict
import cvxpy as cp
import numpy as np
from stress_blocks import Ceiling, Divergence, Equations, OffDiagonalSum, Quadratic
from stress_families import (
    BLOCKS,
    PENALIZED,
    PLAIN,
    Instance,
    all_pairs,
    chance,
    class_labels,
    decades,
    drawn,
    gaussian,
    halved,
    integer,
    m_step,
    of_previous_metric,
    orthogonal,
    pick,
    psd,
    some_metric,
    some_of,
    stated,
    zero_or,
)
from stress_judge import given, optimum_of_one_feature

import seraph_cvx.estimators.base
from seraph_cvx import (
    SERAPH,
    SERAPHCV,
    KernelSERAPH,
    MStepObjective,
    PairSERAPH,
    PairSet,
    alternate,
    certify,
    certify_problem,
    load_model,
    save_model,
    seraph_path,
    solve_m_step,
    state_m_step,
)
from seraph_cvx.penalties import LinearConstraints, LogDet, Ridge, UpperBound

try:
    import torch
except ImportError:
    torch = None

try:
    import dask.array as dask_array
except ImportError:
    dask_array = None

try:
    import pandas
except ImportError:
    pandas = None


def judged(found):
    """The instance with its optimum, where that is known."""
    if found.objective.pairs.n_features > 1:
        return found
    source = found.objective if found.given is None else found.given
    return replace(found, optimum=optimum_of_one_feature(source))


# Arrays of other libraries and other shapes in memory


def memory_map(X):
    """An array on disk; the folder is gone at once, which POSIX allows."""
    with TemporaryDirectory() as folder:
        mapped = np.memmap(Path(folder) / "X", dtype=np.float64, mode="w+", shape=X.shape)
    mapped[:] = X
    return mapped


def spread_out(X):
    """A view of every second number, backwards."""
    view = np.zeros((len(X), 2 * X.shape[1]))[::-1, ::2]
    view[:] = X
    return view


CONTAINERS = {
    "lists": lambda X: X.tolist(),
    "columns": np.asfortranarray,
    "a view": spread_out,
    "a memory map": memory_map,
    "array-api-strict": array_api_strict.asarray,
    "float32 of array-api-strict": lambda X: array_api_strict.asarray(X.astype(np.float32)),
    "float32": lambda X: X.astype(np.float32),
    "big-endian": lambda X: X.astype(">f8"),
    "torch": None if torch is None else lambda X: torch.asarray(X.copy()),
    "float32 of torch": None if torch is None else lambda X: torch.asarray(X.astype(np.float32)),
    "dask": None if dask_array is None else lambda X: dask_array.from_array(X, chunks=(3, 2)),
    "pandas": None if pandas is None else lambda X: pandas.DataFrame(X.copy()),
}
FOREIGN = [array_api_strict] + [torch] * (torch is not None)


def other_arrays(rng):
    """Points in a container of any library: judged by the same numbers given plainly."""
    kinds = [kind for kind, make in CONTAINERS.items() if make is not None]
    foreign = ["array-api-strict"] + ["torch"] * (torch is not None)
    kind = str(rng.choice(foreign if chance(rng, 0.5) else kinds))
    X = gaussian(rng, (3, 14), (1, 4))
    n, m = X.shape
    if chance(rng, 0.3):
        X = X * decades(rng, -6, 6, size=m)
    elif chance(rng, 0.4):
        X = X + decades(rng, 0, 8)
    if "float32" in kind:
        X = X.astype(np.float32).astype(np.float64)
    elif chance(rng, 0.1):
        X = X * decades(rng, -140, 140)
    y = class_labels(rng, n)
    plain = PairSet.from_labels(X, y)
    pairs = PairSet.from_labels(CONTAINERS[kind](X), y if chance(rng, 0.5) else y.tolist())
    if chance(rng, 0.4) and plain.n_unlabeled > 1:
        seed = integer(rng, 0, 1 << 30)
        k = integer(rng, 1, plain.n_unlabeled)
        plain, pairs = (one.sampled(k, random_state=seed) for one in (plain, pairs))
    settings = {
        "trace_weight": zero_or(rng, 0.3, -6, 1),
        "unlabeled_weight": pick(rng, "ratio", decades(rng, -3, 2)),
    }
    if chance(rng, 0.4):
        settings |= of_previous_metric(rng, plain, -2, 2)
    if chance(rng, 0.2):
        settings["penalties"] = [BLOCKS["ridge"](rng, m, 0.0)]
    found = Instance(MStepObjective(pairs, **settings), given(plain, **settings))
    return found if "penalties" in settings else judged(found)


# Arrays that are written into after they were given


def mutated(rng):
    """Everything given is written into, at once or after the first certificate."""
    X = gaussian(rng, (3, 8), (1, 4))
    (n, m), y, own = X.shape, class_labels(rng, len(X)), {}
    library = FOREIGN[rng.integers(len(FOREIGN))] if chance(rng, 0.3) else None
    points = own["X"] = X if library is None else library.asarray(X.copy())
    if chance(rng, 0.5):
        own["y"] = y
        pairs = PairSet.from_labels(points, y)
    else:
        rows = some_of(rng, all_pairs(n), 2)
        own["similar"], own["dissimilar"] = rows[:1].copy(), rows[1:].copy()
        own["confidence"] = decades(rng, -1, 1, size=len(rows) - 1)
        pairs = PairSet.from_constraints(
            points, own["similar"], own["dissimilar"], None, own["confidence"]
        )
    settings = {"trace_weight": decades(rng, -3, 0), "unlabeled_weight": 0.5}
    source = rng.integers(4)
    if source == 0:
        settings["soft_labels"] = own["soft labels"] = rng.random(pairs.n_unlabeled)
    elif source == 1:
        settings["previous_metric"] = own["previous metric"] = some_metric(rng, pairs)
    elif source == 2:
        pairs = drawn(rng, pairs)
    if chance(rng, 0.4):
        settings["manifold_term"] = own["manifold term"] = halved(psd(rng, m))
    A = np.diag(decades(rng, -1, 1, size=m))
    B, t = np.array([np.eye(m)]), np.array([decades(rng, -1, 1)])
    kinds = [
        (Ridge, {"weight": 0.3, "prior": A}),
        (LogDet, {"weight": 0.3, "prior": A}),
        (UpperBound, {"bound": A}),
        (LinearConstraints, {"matrices": B, "upper": t}),
    ]
    chosen = [kinds[k] for k in rng.permutation(len(kinds))[: integer(rng, 0, 2)]]
    blocks = [kind(**arguments) for kind, arguments in chosen]
    for kind, arguments in chosen:
        own |= {f"{name} of {kind}": x for name, x in arguments.items() if name != "weight"}
    found = stated(pairs, penalties=blocks, **settings)
    is_bold = chance(rng, 0.5)

    def disturb():
        writable = exposed_arrays(found.objective)
        for array in [*(writable.values() if is_bold else []), *own.values()]:
            write_into(rng, array)
        for block in blocks:
            block.weight = 7.0 * block.weight
        words = f"can be written into: {', '.join(sorted(writable))}"
        return {"exposed arrays": words} if writable else {}

    if chance(rng, 0.5):
        return replace(found, falsehoods=disturb())
    return replace(found, disturb=disturb)


def write_into(rng, array):
    """Change the numbers of an array of any library, keeping their kind."""
    if isinstance(array, np.ndarray) and array.dtype.kind in "iu":
        array[...] = rng.permutation(array.ravel()).reshape(array.shape)
    else:
        array[...] = array * 0.25


OF_OBJECTIVE = (
    "soft_labels previous_metric manifold_term regularizer pair_moment label_matrix whitening "
    "similar_matrix recession_matrix soft_label_matrix falling_direction"
)
OF_LABELS = "similar dissimilar confidence listed members ends classes"
OF_PAIRS = f"points labeled unlabeled drawn device_array {OF_LABELS}"


def exposed_arrays(objective):
    """The arrays of the objective that can be written into, by name."""
    found = {}
    holders = [
        ("objective", objective, OF_OBJECTIVE),
        ("pairs", objective.pairs, OF_PAIRS),
        ("labels", objective.pairs.labels, OF_LABELS),
    ]
    for k, block in enumerate(objective.penalties):
        names = " ".join(name for name in vars(block) if name[0] != "_")
        holders.append((f"penalties[{k}]", block, names))
    for where, holder, names in holders:
        for name in sorted(names.split()):
            array, again = (getattr(holder, name, None) for _ in range(2))
            if not isinstance(array, np.ndarray) or not np.shares_memory(array, again):
                continue  # none, or a fresh copy each time
            if array.flags.writeable and array.size:
                found[f"{where}.{name}"] = array
    return found


# Inputs that are nearly what they should be


def nearly_right(rng):
    """Matrices with an eigenvalue below zero, or asymmetric, by very little: as given, or refused.

    A matrix that is asymmetric counts as (B + B')/2.
    """
    X = gaussian(rng, (3, 8), (2, 5))
    n, m = X.shape
    if chance(rng, 0.3):
        X = X * decades(rng, -3, 3, size=m)
    pairs = PairSet.from_labels(X, class_labels(rng, n))
    settings = {
        "trace_weight": zero_or(rng, 0.7, -14, -6),
        "unlabeled_weight": pick(rng, "ratio", decades(rng, -1, 1)),
    }
    B = nearly_psd(rng, m)
    name = ["manifold_term", "manifold_term", "previous_metric", None, None][rng.integers(5)]
    if name is None:
        block, name, B = nearly_right_block(rng, m)
        found = stated(pairs, penalties=[block], **settings)
        return replace(found, falsehoods=changed(name, getattr(block, name), B))
    if name == "previous_metric":
        settings["sharpness"] = decades(rng, 0, 3)
    found = stated(pairs, **settings, **{name: B})
    return replace(found, falsehoods=changed(name, getattr(found.objective, name), B))


def nearly_psd(rng, m):
    """A matrix that lacks little to a PSD one, in one way or in both."""
    turn = orthogonal(rng, m)
    spectrum = decades(rng, -3, 1, size=m)
    if chance(rng, 0.7):
        spectrum[0] = -decades(rng, -17, -7) * np.max(spectrum)
    B = halved((turn * spectrum) @ turn.T)
    if chance(rng, 0.4):
        B[0, 1] += decades(rng, -16, -8) * np.sqrt(abs(B[0, 0] * B[1, 1]))
    if chance(rng, 0.3):
        scale = 2.0 ** rng.integers(-20, 21, size=m)
        B = B * scale[:, None] * scale
    return B


def nearly_right_block(rng, m):
    """A prior, a bound or a linear constraint whose matrix is asymmetric by very little."""
    A = rng.normal(size=(m, m))
    A = halved(A @ A.T + 0.1 * np.eye(m))
    A[0, 1] += decades(rng, -16, -8) * np.sqrt(A[0, 0] * A[1, 1])
    kind = rng.integers(3)
    if kind == 0:
        return Ridge(decades(rng, -3, 3), A), "prior", A
    if kind == 1:
        return UpperBound(A), "bound", A
    return LinearConstraints(A, upper=decades(rng, -1, 1)), "matrices", A[None]


def changed(name, held, array):
    """A falsehood if what an object holds is not what it was given, made symmetric."""
    meant = (array + np.swapaxes(array, -1, -2)) / 2.0
    if np.array_equal(held, meant):
        return {}
    off = float(np.max(np.abs(held - meant)) / np.max(np.abs(meant)))
    return {"changed input": f"{name} is not what was given: off by {off:.3g} of its size"}


# Objectives made from others


def made_from_another(rng):
    """An M-step derived from one that was certified before: what they share must be the same.

    Or one that was pickled, or copied.
    """
    X = gaussian(rng, (3, 8), (1, 4))
    X = X * (decades(rng, -3, 3, size=X.shape[1]) if chance(rng, 0.3) else 1.0)
    pairs = PairSet.from_labels(X, class_labels(rng, len(X)))
    pairs = drawn(rng, pairs) if chance(rng, 0.3) else pairs
    objective = MStepObjective(**own_settings(rng, pairs))
    for _ in range(integer(rng, 1, 4)):
        certify(objective, some_metric(rng, pairs))
        change = own_settings(rng, pairs)
        names = some_of(rng, np.array(list(change)), 1, 2).tolist()
        change = {name: change[name] for name in names}
        if "previous_metric" in change or "soft_labels" in change:
            change = {"soft_labels": None, "previous_metric": None} | change
        if "pairs" in change:
            change |= {"soft_labels": None}
        objective = replace(objective, **change)
        pairs = objective.pairs
    if chance(rng, 0.15):
        objective = pickle.loads(pickle.dumps(objective))
    elif chance(rng, 0.15):
        objective = copy.deepcopy(objective)
    return judged(Instance(objective))


def own_settings(rng, pairs):
    """Every argument of an objective, each of its own kind."""
    m = pairs.n_features
    term = psd(rng, m)
    settings = {
        "trace_weight": zero_or(rng, 0.4, -6, 1),
        "unlabeled_weight": decades(rng, -2, 1),
        "threshold": decades(rng, -1, 1),
        "manifold_term": None if chance(rng, 0.5) else halved(term),
        "penalties": [],
        "pairs": pairs,
    }
    if chance(rng, 0.3):
        kind = str(rng.choice(["ridge", "trace bound", "diagonal", "LogDet"]))
        settings["penalties"] = [BLOCKS[kind](rng, m, 0.0)]
    if chance(rng, 0.3):
        settings["pairs"] = pairs.whole if chance(rng, 0.5) else drawn(rng, pairs.whole)
    if chance(rng, 0.4):
        settings |= of_previous_metric(rng, pairs)
    elif chance(rng, 0.4) and settings["pairs"].drawn is None:
        settings["soft_labels"] = rng.random(pairs.n_unlabeled)
    return settings


PROVED = ["one feature", "huge and tiny weights", "mixed", "ridge", "LogDet", "upper bound"]
PROVED += ["linear bounds", "linear equations", "several blocks", "denormal numbers"]


def proofs(rng):
    """The same bounds by balls, `certify(..., rigorous=True)`, of instances of other families."""

    def prove(objective, metric):
        try:
            return certify(objective, metric, rigorous=True)
        except ArithmeticError as error:
            if "cannot be enclosed" in str(error) or "can be proven" in str(error):
                raise ValueError(str(error)) from None  # says so, and what to do
            raise

    found = (PLAIN | PENALIZED)[str(rng.choice(PROVED))](rng)
    return replace(found, certify=prove, can_be_solved=False)


# Estimators, paths and files


@contextmanager
def quiet_alternations():
    """The alternations that estimators run, as they end; without their warnings."""
    runs, module = [], seraph_cvx.estimators.base
    original = module.run_alternation

    def run_alternation(*args, **kwargs):
        runs.append(original(*args, **kwargs))
        return runs[-1]

    module.run_alternation = run_alternation
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield runs
    finally:
        module.run_alternation = original


def classes_of_points(rng, scale):
    n, m = integer(rng, 10, 22), integer(rng, 1, 4)
    truth = np.arange(n) % 2
    X = (rng.normal(size=(2, m))[truth] * 2.0 + rng.normal(size=(n, m))) * scale
    y = np.where(rng.random(n) < 0.5, truth, -1)
    y[:4] = truth[:4]
    return X, y


def estimator_settings(rng):
    """Settings in which the estimators run, none of which takes long."""
    settings = {"max_iter": integer(rng, 1, 6), "time_limit": 2.0}
    if chance(rng, 0.5):
        settings["setting"] = str(rng.choice(["none", "post", "proj", "hyper"]))
        settings["allow_unattained"] = True
    if chance(rng, 0.2):
        settings["unlabeled_pairs"] = integer(rng, 5, 30)
        settings["random_state"] = integer(rng, 0, 1000)
    if chance(rng, 0.2):
        settings["laplacian_weight"] = decades(rng, -3, 1)
    return settings


def estimators(rng):
    """The certificate of a fitted estimator, of the M-step that it ended with; also from a file."""
    scale = 1.0 if chance(rng, 0.6) else decades(rng, -6, 6)
    X, y = classes_of_points(rng, scale)
    settings = estimator_settings(rng)
    kind = rng.choice(["SERAPH", "SERAPH", "KernelSERAPH", "PairSERAPH", "SERAPHCV"])
    with quiet_alternations() as runs:
        if kind == "SERAPH":
            if chance(rng, 0.3):
                block = BLOCKS[str(rng.choice(["ridge", "trace bound", "diagonal", "sparse"]))]
                settings["penalties"] = [block(rng, X.shape[1], -2 * np.log10(scale))]
            more, free = {}, np.flatnonzero(y == -1)
            if len(free) > 3 and chance(rng, 0.3):
                more = {"similar": [free[:2]], "dissimilar": [free[1:3]]}
                more["similar_confidence"] = decades(rng, -1, 1)
            model = SERAPH(**settings).fit(X, y, **more)
        elif kind == "KernelSERAPH":
            model = KernelSERAPH(kernel=str(rng.choice(["rbf", "linear", "poly"])), **settings)
            model.fit(X / scale, y)
        elif kind == "PairSERAPH":
            rows = all_pairs(len(X))
            rows = rows[rng.permutation(len(rows))[:12]]
            signs = np.where(rng.random(len(rows)) < 0.5, 1, -1)
            c = decades(rng, -1, 1, size=len(rows)) if chance(rng, 0.5) else None
            model = PairSERAPH(**settings).fit(X[rows], signs, confidence=c)
        else:
            model = SERAPHCV(trace_weights=[0.1, 1.0], cv=2, max_iter=2).fit(X, y)
        certificates = [model.certificate_]
        if chance(rng, 0.5):
            with TemporaryDirectory() as folder:
                save_model(model, Path(folder) / "model.npz")
                certificates.append(load_model(Path(folder) / "model.npz").certificate_)
    run = runs[-1]
    objective = replace(run.objective, pairs=run.objective.pairs.whole)  # of all, if some are drawn
    return Instance(objective, certificates=certificates, metrics=[run.metric])


def alternations(rng):
    """The last M-step of `alternate`, and the points of `seraph_path`."""
    X, y = classes_of_points(rng, 1.0 if chance(rng, 0.6) else decades(rng, -6, 6))
    pairs = PairSet.from_labels(X, y)
    if chance(rng, 0.3):
        pairs = drawn(rng, pairs)
    spread = float(np.max(np.ptp(X, axis=0)) ** 2)
    mu = pick(rng, "ratio", decades(rng, -2, 0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if chance(rng, 0.5):
            run = alternate(
                pairs,
                mu,
                trace_weight=spread * decades(rng, -3, 0),
                max_iter=integer(rng, 1, 5),
                time_limit=2.0,
            )
            certificate = run.m_step.certificate
            return Instance(run.objective, certificates=[certificate], metrics=[run.metric])
        weights = sorted(spread * decades(rng, -3, 0, size=3), reverse=True)
        path = seraph_path(pairs, weights, unlabeled_weight=mu)
    point = path.points[integer(rng, 0, 3)]
    objective = MStepObjective(pairs, unlabeled_weight=mu, trace_weight=float(point.weight))
    return Instance(objective, certificates=[point.certificate], metrics=[point.metric])


def solvers(rng):
    """What solve_m_step says of its own answer, by each of several solvers."""
    n, m = integer(rng, 3, 8), integer(rng, 1, 4)
    X = rng.normal(size=(n, m)) * decades(rng, -1, 1)
    found = m_step(rng, PairSet.from_labels(X, class_labels(rng, n)))
    solver = str(rng.choice(["fista", "CLARABEL", "SCS"]))
    options = {} if solver == "fista" else {"formulation": str(rng.choice(["primal", "dual"]))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = solve_m_step(found.objective, solver=solver, allow_unattained=True, **options)
    if answer.certificate is None:
        return found
    return replace(found, certificates=[answer.certificate], metrics=[answer.metric])


# CVXPY problems with parts added


def equations(*matrices, bounds, is_equality=False):
    return Equations(np.array(matrices), np.array(bounds, dtype=float), is_equality)


def added_part(rng, A, scale, kind):
    """A term or constraints as CVXPY takes them, and what they add to a judge's M-step."""
    m = A.shape[0]
    if kind == "trace":
        weight = decades(rng, -3, 1) / scale
        return weight * cp.trace(A), {"trace_weights": [weight]}
    if kind == "linear":
        F = rng.normal(size=(m, m + 1))
        B = halved(F @ F.T / scale)
        return cp.sum(cp.multiply(B, A)), {"terms": [B]}
    if kind == "squares":
        weight = decades(rng, -2, 2) / scale**2
        prior = np.diag(rng.normal(size=m)) * scale
        prior = 0.0 * prior if chance(rng, 0.3) else prior
        return weight * cp.sum_squares(A - prior), {"blocks": [Quadratic(2.0 * weight, prior)]}
    if kind == "absolute values":
        weight = decades(rng, -2, 1) / scale
        parts = {"blocks": [OffDiagonalSum(weight)], "trace_weights": [weight]}
        return weight * cp.norm1(A), parts
    if kind == "log det":
        weight = decades(rng, -2, 1)
        return -weight * cp.log_det(A), {"blocks": [Divergence(weight)]}
    if kind == "constants":  # that cancel: their exact sum counts
        large = float(rng.choice([1e6, 1e8, 3.0**20]))
        numbers = rng.permutation([large, 0.1, -large, float(rng.normal())]).tolist()
        return [cp.Constant(number) for number in numbers], {"constants": numbers}
    if kind == "ceiling":
        bound = np.diag(scale * decades(rng, -1, 1, size=m))
        return A << bound, {"blocks": [Ceiling(bound)]}
    if kind == "diagonal":
        least = scale * decades(rng, -3, -1)
        rows = equations(*(-np.diag(row) for row in np.eye(m)), bounds=m * [-least])
        return cp.diag(A) >= least, {"blocks": [rows]}
    if kind == "trace bound" or m == 1:
        bound = scale * decades(rng, -1, 1)
        return cp.trace(A) <= bound, {"blocks": [equations(np.eye(m), bounds=[bound])]}
    B = np.zeros((m, m))
    B[0, 1] = B[1, 0] = 0.5
    return A[0, 1] == 0, {"blocks": [equations(B, bounds=[0.0], is_equality=True)]}


PARTS = ["trace", "linear", "squares", "absolute values", "log det", "constants"]
PARTS += ["trace bound", "ceiling", "diagonal", "zero entry"]


def drawn_m_step(rng, most_features=3):
    """Pairs and settings of an ordinary M-step, and the size of its metrics."""
    n, m = integer(rng, 3, 7), integer(rng, 1, most_features + 1)
    size = 1.0 if chance(rng, 0.5) else decades(rng, -3, 3)
    X = rng.normal(size=(n, m)) * size
    pairs = PairSet.from_labels(X, class_labels(rng, n))
    settings = {
        "trace_weight": size**2 * decades(rng, -3, 0),
        "unlabeled_weight": pick(rng, 0.0, "ratio", decades(rng, -2, 0)),
        "threshold": pick(rng, 1.0, decades(rng, -1, 1)),
    }
    source = rng.integers(3)
    if source == 0:
        settings["previous_metric"] = some_metric(rng, pairs)
    elif source == 1:
        settings["soft_labels"] = rng.random(pairs.n_unlabeled)
    return pairs, settings, 1.0 / size**2


def of_problem(objective, numbers, problem, is_solved=False):
    """The instance whose certificates are of a problem, at a metric or at a solver's answer."""

    def make(objective, metric):
        if is_solved:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                problem.solve(solver="CLARABEL")
        else:
            problem.variables()[0].save_value(metric)
        return certify_problem(problem, objective)

    return Instance(objective, numbers, certify=make, can_be_solved=False)


def added_to(rng):
    """One to three parts that are understood, at any metric or at a solver's answer."""
    pairs, settings, scale = drawn_m_step(rng)
    objective, numbers = MStepObjective(pairs, **settings), given(pairs, **settings)
    statement = state_m_step(objective)
    goal, constraints = statement.objective.expr, list(statement.constraints)
    for k in rng.permutation(len(PARTS))[: integer(rng, 1, 4)]:
        stated, parts = added_part(rng, statement.variables()[0], scale, PARTS[k])
        for part in stated if isinstance(stated, list) else [stated]:
            if isinstance(part, cp.Expression):
                goal = goal + part
            else:
                constraints.append(part)
        changes = {name: (*getattr(numbers, name), *more) for name, more in parts.items()}
        numbers = replace(numbers, **changes)
    problem = cp.Problem(cp.Minimize(goal), constraints)
    return judged(of_problem(objective, numbers, problem, is_solved=chance(rng, 0.15)))


# Changed behind the objective's back


def slightly(rng, x):
    """x changed by 1e-13 to 1e-6 of itself."""
    return x * (1.0 + float(rng.choice([-1.0, 1.0]) * decades(rng, -13, -6)))


def of_another_objective(rng):
    """The problem of an objective that differs by very little from the one it is certified for."""
    pairs, settings, _ = drawn_m_step(rng, most_features=2)
    objective = MStepObjective(pairs, **settings)
    names = ["points", "trace_weight", "threshold", "unlabeled_weight", "soft_labels"]
    name = names[rng.integers(5)]
    if name == "points":
        X = np.array(pairs.points)
        i, a = rng.integers(len(X)), rng.integers(X.shape[1])
        X[i, a] = slightly(rng, X[i, a])
        pairs = replace(pairs, points=X)
    elif name == "soft_labels":
        settings.pop("previous_metric", None)
        settings[name] = rng.random(pairs.n_unlabeled)
    else:
        is_mu = name == "unlabeled_weight"
        settings[name] = slightly(rng, given(pairs, **settings).mu if is_mu else settings[name])
    problem = state_m_step(MStepObjective(pairs, **settings))
    return judged(of_problem(objective, given(pairs, **settings), problem))


def terms_of(expression):
    """The terms of a sum, nested or not."""
    if type(expression).__name__ != "AddExpression":
        return [expression]
    return [term for arg in expression.args for term in terms_of(arg)]


def damaged(rng):
    """A term dropped, doubled or with its sign flipped: nothing but an error will do."""
    pairs, settings, _ = drawn_m_step(rng, most_features=2)
    objective = MStepObjective(pairs, **settings)
    statement = state_m_step(objective)
    kind, terms = rng.integers(4), terms_of(statement.objective.expr)
    if kind < 2:  # dropped, or with its sign flipped
        k = integer(rng, 0, len(terms))
        terms[k : k + 1] = [-terms[k]] if kind else []
    else:  # the first, a sum of logistic functions, twice; or all doubled
        terms = [*terms, terms[0]] if kind == 2 else [2.0 * term for term in terms]
    problem = cp.Problem(cp.Minimize(sum(terms[1:], terms[0])), statement.constraints)
    found = of_problem(objective, given(pairs, **settings), problem)

    def make(objective, metric):
        raise AssertionError(f"change {kind} is certified: {found.certify(objective, metric)}")

    return replace(found, certify=make)


def unbounded(rng):
    """A linear term with an eigenvalue of -1e-14 to -1e-9, that no trace weight makes up for.

    Whatever is said of it, some huge metric has a smaller value.
    """
    pairs, settings, scale = drawn_m_step(rng)
    m = pairs.n_features
    settings["trace_weight"] = 0.0
    turn = orthogonal(rng, m)
    spectrum = decades(rng, -1, 1, size=m)
    spectrum[0] = -decades(rng, -14, -9)
    B = halved((turn * spectrum) @ turn.T / scale)
    objective = MStepObjective(pairs, **settings)
    statement = state_m_step(objective)
    goal = statement.objective.expr + cp.sum(cp.multiply(B, statement.variables()[0]))
    problem = cp.Problem(cp.Minimize(goal), statement.constraints)
    return of_problem(objective, replace(given(pairs, **settings), terms=(B,)), problem)


def changed_problems(rng):
    """Problems that are not what the objective says, in one of several ways."""
    return pick(rng, of_another_objective, damaged, unbounded, p=[0.6, 0.2, 0.2])(rng)


DOORS = {
    "made from another objective": made_from_another,
    "proofs by balls": proofs,
    "other arrays": other_arrays,
    "written into later": mutated,
    "nearly right inputs": nearly_right,
    "estimators and files": estimators,
    "alternations and paths": alternations,
    "solvers": solvers,
    "added to a problem": added_to,
    "changed problems": changed_problems,
}

FAMILIES = PLAIN | PENALIZED | DOORS

MARATHON = (
    dict.fromkeys(PLAIN, 800)
    | dict.fromkeys(list(PLAIN)[17:], 600)  # at the ends of the range, where each costs more
    | {"sampled pairs of one feature": 500}
    | dict.fromkeys(PENALIZED, 300)
    | {"one feature and blocks": 500}
    | dict.fromkeys(DOORS, 150)
    | dict.fromkeys(["nearly right inputs", "other arrays", "made from another objective"], 300)
)
"""How many instances of each family the marathon has: 22,550 in all."""
